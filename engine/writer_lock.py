"""What the folders of all states have in common: one writer, built beside their place, their errors."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tuplewise.engine.errors import InputError, message

_WRITER = "writer.lock"
NOTHING_APPLIED = "Nothing was applied; make room and apply it again"
NOTHING_BUILT = "Nothing was built; make room and build it again"


class WriterLock:
    """Held by the one process that may write a state; the system lets go of it when the process ends, however it does.

    `command`: the group of commands that the state belongs to, "ind" or "dc".

    Raises InputError where another holds it.
    """

    def __init__(self, folder: Path, command: str) -> None:
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
            meanwhile = f"one writer at a time; {command} show reads meanwhile"
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
def beside(target: Path, command: str, add: str) -> Iterator[Path]:
    """A folder that becomes the target when all is done, and is removed when it isn't.

    Parameters
    ----------
    target : a new or an empty folder
    command : the group of commands that the state belongs to
    add : its command that adds rows to a state

    Raises
    ------
    InputError
        Where the target holds something, or can't be made.
    """
    check_new(target, command, add)
    place = target.with_name(f".{target.name}.building")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(message(f"the folder of the state can't be made: {error.strerror}", str(target))) from error
    try:
        lock = WriterLock(place, command)
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


def check_new(target: Path, command: str, add: str) -> None:
    """Raise InputError where a state can't be built in this folder, since it holds something. See `beside`."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        hint = f"Name another folder, or remove it; rows are added to a state by {command} {add}"
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


def damaged(folder: Path, how: str, command: str) -> InputError:
    """The error of a state that can't be read. `command`: as in WriterLock."""
    again = {"ind": "tables", "dc": "table"}[command]
    hint = f"Build it again from the {again}: tuplewise {command} init"
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
