"""Where results go: the terminal, a pipe that may close, or a file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tuplewise.engine.errors import InputError, message

_unfinished: set[str] = set()
_given_up = threading.Event()

_SUFFIX_FORMS = {".csv": "csv", ".sql": "sql", ".txt": "text"}


def default_format(output: str | None) -> str:
    """Text on a terminal, JSON otherwise."""
    return "text" if output is None and sys.stdout.isatty() else "json"


def terminal(output: str | None) -> dict[str, Any]:
    """Width and colour of text: the terminal's, or plain and as wide as needed."""
    if output is not None or not sys.stdout.isatty():
        return {"width": None, "color": False}
    return {"width": shutil.get_terminal_size().columns, "color": not os.environ.get("NO_COLOR")}


def surprising_format(form: str, output: str | None) -> str | None:
    """A note where a file's name speaks of another format than the default that it gets."""
    by_name = _SUFFIX_FORMS.get(Path(output).suffix.lower()) if output else None
    if by_name is None or by_name == form:
        return None
    return f"{output!r} gets {form}; --format {by_name} would write {by_name}"


def check_output(output: str | None) -> None:
    """Raise InputError now where a file could not be written later, after the work."""
    if output is None:
        return
    path = Path(os.path.realpath(output))
    if path.is_dir():
        raise InputError(message("output file", output, "a file; this is a folder"))
    if not path.parent.is_dir():
        raise InputError(message("output file", output, hint=f"There is no folder {str(path.parent)!r}"))
    where = path if path.exists() and not path.is_file() else path.parent
    if not os.access(where, os.W_OK):
        raise InputError(message("output file", output, hint=f"{str(where)!r} can't be written"))


def write(pieces: Iterable[str], output: str | None) -> None:
    """Write a result. A reader that goes away early (`| head`) ends the writing quietly."""
    if _given_up.is_set():
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
            _replace(path, pieces)
    except OSError as error:
        raise InputError(
            message("output file", output, hint=f"It can't be written: {error.strerror or error}")
        ) from error


def _replace(path: Path, pieces: Iterable[str]) -> None:
    """Write beside `path`, then rename: readers see the old file or the new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    _unfinished.add(temporary)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
            stream.writelines(pieces)
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        _unfinished.discard(temporary)


def give_up() -> None:
    """Write nothing any more and remove what is half written: the process is about to end."""
    _given_up.set()
    for temporary in list(_unfinished):
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced, else what a new file gets."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


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
