"""Where results go: the terminal, a pipe that may close, or a file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.report import files

_SUFFIX_FORMS = {".csv": "csv", ".sql": "sql", ".txt": "text"}


def default_format(output: str | None, *, page: bool = False) -> str:
    """Text on a terminal, HTML in a file that is named so where there is a page, JSON otherwise."""
    if page and output and Path(output).suffix.lower() in (".html", ".htm"):
        return "html"
    return "text" if output is None and sys.stdout.isatty() else "json"


def terminal(output: str | None) -> dict[str, Any]:
    """Width and colour of text: the terminal's, or plain and as wide as needed."""
    if output is not None or not sys.stdout.isatty():
        return {"width": None, "color": False}
    return {"width": shutil.get_terminal_size().columns, "color": not os.environ.get("NO_COLOR")}


def surprising_format(form: str, output: str | None) -> str | None:
    """A note where the name of a file suggests another format than the default one."""
    by_name = _SUFFIX_FORMS.get(Path(output).suffix.lower()) if output else None
    if by_name is None or by_name == form:
        return None
    return f"{output!r} gets {form}; --format {by_name} would write {by_name}"


def write(pieces: Iterable[str], output: str | None) -> None:
    """Write a result. A reader that goes away early (`| head`) ends the writing quietly."""
    if files.given_up():
        return
    if output is None:
        _write_stdout(pieces)
        return
    path = Path(os.path.realpath(output))
    try:
        if path.exists() and not path.is_file():  # a device or a pipe can't be replaced
            with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
                stream.writelines(pieces)
        else:
            with (
                files.replacing([path]) as (temporary,),
                temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream,
            ):
                stream.writelines(pieces)
    except OSError as error:
        raise InputError(
            message("output file", output, hint=f"It can't be written: {error.strerror or error}")
        ) from error


def _write_stdout(pieces: Iterable[str]) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at exit, which must not fail again
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
