"""Files that are written whole or not at all: beside their place first, then renamed; Ctrl-C leaves nothing half."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tuplewise.engine.errors import InputError, message

_unfinished: set[str] = set()
_given_up = threading.Event()
_renaming = threading.Lock()


def check_target(what: str, given: str) -> None:
    """Raise InputError now where a file could not be written later, after the work. `what`: what to call it."""
    path = Path(os.path.realpath(given))
    if path.is_dir():
        raise InputError(message(what, given, "a file; this is a folder"))
    if not path.parent.is_dir():
        raise InputError(message(what, given, hint=f"There is no folder {str(path.parent)!r}"))
    where = path if path.exists() and not path.is_file() else path.parent
    if not os.access(where, os.W_OK):
        raise InputError(message(what, given, hint=f"{str(where)!r} can't be written"))


def check_apart(outputs: Iterable[str | None], inputs: Iterable[str]) -> None:
    """Raise InputError where a file to be written is one that is read, or is to be written twice."""
    taken = {os.path.realpath(path): path for path in inputs if os.path.exists(path)}
    for output in filter(None, outputs):
        path = os.path.realpath(output)
        if path in taken:
            raise InputError(message("output file", output, hint=f"It is {taken[path]!r}: name another file"))
        taken[path] = output


@contextlib.contextmanager
def replacing(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Names to write to instead of `paths`, in the same folders. After the block they are renamed, all together.

    Readers see the old files or the new ones. Where the block fails, or `give_up` was called, nothing is left of them.
    """
    temporary: list[str] = []
    try:
        for path in paths:
            name = str(path.parent / f".{path.name}.{secrets.token_hex(8)}.part")
            _unfinished.add(name)  # before it is there, so that Ctrl-C finds it at any moment
            temporary.append(name)
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield [Path(name) for name in temporary]
        with _renaming:
            if not _given_up.is_set():
                for name, path in zip(temporary, paths, strict=True):
                    os.chmod(name, _mode(path))
                for name, path in zip(temporary, paths, strict=True):
                    os.replace(name, path)
    finally:
        for name in temporary:
            with contextlib.suppress(OSError):
                os.unlink(name)
            _unfinished.discard(name)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """The folder is there within the block; where it was made for it, it goes again if the block leaves it empty."""
    made = not path.exists()
    path.mkdir(exist_ok=True)
    if made:
        _unfinished.add(str(path))
    try:
        yield
    finally:
        if made:
            with contextlib.suppress(OSError):  # it holds what was written
                path.rmdir()
            _unfinished.discard(str(path))


def given_up() -> bool:
    """Whether nothing is to be written any more."""
    return _given_up.is_set()


def give_up() -> None:
    """Write nothing any more and remove what is half written: the process is about to end."""
    _given_up.set()
    with _renaming:
        left = sorted(_unfinished, key=len, reverse=True)  # files before the folders that they lie in
        for name in left:
            with contextlib.suppress(OSError):
                remove = os.rmdir if os.path.isdir(name) else os.unlink
                remove(name)


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced, else what a new file gets."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
