"""What the folders of all states have in common: one writer, the file that says what they are, and their errors."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tuplewise.engine.errors import InputError, message

FORMAT = 1
"""Version of what a folder holds; another number with every change to it."""
STATE_FILE = "state.json"
NEW_STATE_FILE = f".{STATE_FILE}.new"
_WRITER = "writer.lock"
_PIECE_BYTES = 16 << 20
NOTHING_APPLIED = "Nothing was applied; make room and apply it again"
NOTHING_BUILT = "Nothing was built; make room and build it again"


@dataclass(frozen=True)
class StateKind:
    """What messages say of a kind of state.

    Attributes
    ----------
    rules : what it keeps current
    source : what it is built of
    command : the group of commands that it belongs to
    add : the one of them that adds rows
    """

    rules: str
    source: str
    command: str
    add: str


INDS = StateKind("inclusion dependencies", "tables", "ind", "apply")
DCS = StateKind("denial constraints", "table", "dc", "insert")


class ClosedOnExit(ABC):
    """Closed at the end of a `with` statement."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class WriterLock:
    """Held by the one process that may write a state; the system lets go of it when the process ends, however it does.

    Raises InputError where another holds it.
    """

    def __init__(self, folder: Path, kind: StateKind) -> None:
        try:
            self._descriptor = os.open(folder / _WRITER, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise no_file(folder, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            who = "this process" if holder == str(os.getpid()) else f"process {holder or '(unknown)'}"
            meanwhile = f"one writer at a time; {kind.command} show reads meanwhile"
            hint = f"Wait until it is done, or close the state there: {meanwhile}"
            raise InputError(message(f"the state is being written by {who}", str(folder), hint=hint)) from None
        with contextlib.suppress(OSError):  # only the others' message tells it, and a full disk has no room for it
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let another process write. May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextlib.contextmanager
def beside(target: Path, kind: StateKind) -> Iterator[Path]:
    """A folder that becomes the target when all is done, and is removed when it isn't.

    Parameters
    ----------
    target : a new or an empty folder

    Raises
    ------
    InputError
        Where the target holds something, or can't be made.
    """
    check_new(target, kind)
    place = target.with_name(f".{target.name}.building")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(message(f"the folder of the state can't be made: {error.strerror}", str(target))) from error
    try:
        lock = WriterLock(place, kind)
    except InputError:
        with contextlib.suppress(OSError):  # it holds the lock of another build
            place.rmdir()
        raise
    try:
        for left in place.iterdir():  # of a build that was killed
            if left.is_dir():
                shutil.rmtree(left)
            elif not left.name.endswith(".lock"):
                left.unlink()
        yield place
        sync_path(place)
        try:
            os.rename(place, target)
        except OSError as error:
            raise InputError(message(f"the state can't be put in place: {error.strerror}", str(target))) from error
        sync_path(target.parent)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    finally:
        lock.release()


def check_new(target: Path, kind: StateKind) -> None:
    """Raise InputError where a state can't be built in this folder, since it holds something. See `beside`."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        hint = f"Name another folder, or remove it; rows are added to a state by {kind.command} {kind.add}"
        raise InputError(message("the folder of the state is not empty", str(target), "a new or an empty folder", hint))


def sync_path(path: Path) -> None:
    """Hand a file, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(new: Path, old: Path) -> None:
    """Rename a file over another one, and hand the folder's names to the disk."""
    os.replace(new, old)
    sync_path(old.parent)


def write_file(path: Path, *parts: Any) -> tuple[int, int]:
    """Write a new file of the parts' bytes and hand it to the disk; its bytes and their checksum. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    size = crc = 0
    try:
        for part in parts:
            view = memoryview(part).cast("B")
            for start in range(0, len(view), _PIECE_BYTES):
                piece = view[start : start + _PIECE_BYTES]
                write_all(descriptor, piece, size)
                size, crc = size + len(piece), zlib.crc32(piece, crc)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size, crc


def write_all(descriptor: int, content: Any, at: int) -> None:
    """Write bytes at a place of a file: one call, more only where the system takes less than all. Raises OSError."""
    view = memoryview(content)
    while len(view):
        done = os.pwrite(descriptor, view, at)
        view, at = view[done:], at + done


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Put a file of JSON in the place of the last one, on the disk. Killed at any moment, one of both is there."""
    new = path.with_name(f".{path.name}.new")
    write_file(new, json.dumps(record).encode())
    put_in_place(new, path)


def write_state_file(folder: Path, kind: StateKind, record: Mapping[str, Any]) -> None:
    """Write what a state is, as `read_state_file` reads it."""
    write_record(folder / STATE_FILE, {"kind": f"tuplewise {kind.rules}", "format": FORMAT, **record})


def read_state_file(folder: Path, kind: StateKind) -> dict[str, Any]:
    """What a state is. Raises InputError where the folder is no such state, is damaged, or of another version."""
    init = f"{kind.command} init"
    if not folder.is_dir():
        raise InputError(message("no such state", str(folder), f"a folder that {init} made"))
    hint = f"Name the folder that {init} made"
    try:
        record = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        fault = f"this folder is not a state: it has no {STATE_FILE}"
        raise InputError(message(fault, str(folder), hint=hint)) from None
    except (OSError, ValueError) as error:
        raise damaged(folder, f"{STATE_FILE} can't be read: {error}", kind) from error
    if not isinstance(record, dict) or record.pop("kind", None) != f"tuplewise {kind.rules}":
        raise InputError(message(f"this folder is not a state of {kind.rules}", str(folder), hint=hint))
    format_ = record.pop("format", None)
    if format_ != FORMAT:
        hint = f"Use the version that wrote it, or build it again from the {kind.source}: tuplewise {init}"
        written = f"format {format_!r}, written by tuplewise {record.get('written_by')}"
        raise InputError(message(f"the state {str(folder)!r} is of another version", written, f"format {FORMAT}", hint))
    return record


def real_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder itself, whatever links lead to it, and `~` as the home that it means."""
    return Path(os.path.realpath(os.path.expanduser(os.fspath(folder))))


def damaged(folder: Path, how: str, kind: StateKind) -> InputError:
    """The error of a state that can't be read."""
    hint = f"Build it again from the {kind.source}: tuplewise {kind.command} init"
    return InputError(message(f"the state is damaged: {how}", str(folder), hint=hint))


def no_file(folder: Path, error: OSError, more: int = 0, hint: str = NOTHING_APPLIED) -> InputError:
    """The error of a state whose file the system doesn't write or read.

    `more`: bytes that were asked for, told in whole MB; 0 where it isn't known. `hint`: what has become of the state
    where the disk is full.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        needed = f" ({more >> 20} MB more were asked for)" if more >> 20 else ""
        return InputError(message(f"no space is left on the disk of the state{needed}", str(folder), hint=hint))
    hint = "See whether this process may read and write the folder, and doesn't hold the state open already"
    return InputError(message(f"the state can't be written or read: {error.strerror}", str(folder), hint=hint))
