"""The embedded store of a state, and its records: LMDB, a B-tree in one file that is mapped into memory.

A transaction is complete in the file's pages before its root is named. A killed process thus leaves the state before
the transaction or after it; the system's page cache keeps what the process has written. Loss of power differs: only a
state with `sync` writes each transaction to disk before reporting it done.

Keys begin with a byte for their kind:

- `META`: one record: the revision, the number of the next long value, the rows of each table
- `CLUSTER`, then the cluster's number: its number of values, and its attributes (a bit each)
- `ROW`, then the table and a hash of 128 bits: how often the table holds the row (if rows are tracked)
- `LONG`, then a hash of 128 bits: the values with this hash too long for a key, each with a number
- `VALUE` and the family, then the value's canonical bytes (or the number of a long one): the number of its cluster,
  and how often each attribute of the cluster holds it
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tuplewise.engine.ind.values import FAMILIES, Family
from tuplewise.engine.state_folders import INDS, damaged, no_file
from tuplewise.engine.table.relation import TypeName

META = b"\x00"
CLUSTER = b"\x01"
ROW = b"\x02"
LONG = b"\x03"
_VALUE, _LONG_VALUE = 0x10, 0x20
LONGEST_NAME = 500
"""Maximum length of a key, in bytes; the limit of LMDB is 511."""

_FILE = "data.mdb"
_LEAST_ROOM = 64 << 20
_ROOM_SHARE = 8  # an eighth more than there is
_OPEN: dict[tuple[int, str], tuple[Any, int]] = {}  # by process and folder: the open store, and its number of users
T = TypeVar("T")


def value_prefix(family: Family) -> bytes:
    """Prefix of the names of a family's values."""
    return bytes([_VALUE + FAMILIES.index(family)])


def long_key(name: bytes, number: int) -> bytes:
    """The key of a value too long to be a key itself. `name`: prefix and canonical bytes."""
    return bytes([_LONG_VALUE - _VALUE + name[0]]) + number.to_bytes(8, "big")


class Store:
    """An open store. One process writes; any number read, each at the last revision when it began.

    Parameters
    ----------
    folder : holds the file
    sync : sync each transaction to disk before it is done
    write : False for a reader

    Raises
    ------
    InputError
        If the file is damaged or missing, or the disk is full.

    Notes
    -----
    The file is as long as the map, and its disk space is allocated ahead, so every written page has its place. A full
    disk thus shows as an error when the map grows, before a transaction, never as a fault during a write.
    """

    def __init__(self, folder: Path, *, sync: bool = False, write: bool = True) -> None:
        import lmdb

        self.folder = folder
        self._path = folder / _FILE
        self._key = os.getpid(), str(folder)
        if not write and self._key in _OPEN:  # LMDB refuses to open a file twice in one process
            self._environment, users = _OPEN[self._key]
            _OPEN[self._key] = self._environment, users + 1
            return
        before = self._path.stat().st_size if self._path.exists() else 0
        if not write and not before:
            raise damaged(folder, f"{_FILE} is missing or empty", INDS)
        self._size = before or _LEAST_ROOM
        with self._understood():
            self._environment = lmdb.open(
                str(folder), map_size=self._size, readonly=not write, writemap=write, sync=sync, metasync=sync,
                readahead=False, max_dbs=0, max_readers=1024, create=write,
            )  # fmt: skip
            if before and self.used_bytes > before:
                self._environment.close()
                raise damaged(folder, f"{_FILE} ends early", INDS)
            if write:
                try:
                    self._take_space(self._size)
                except BaseException:
                    self._environment.close()
                    raise
                self._environment.reader_check()
        _OPEN[self._key] = self._environment, 1

    def close(self) -> None:
        """Release the file; it is closed once all users in this process have done so."""
        environment, users = _OPEN.pop(self._key)
        if users > 1:
            _OPEN[self._key] = environment, users - 1
        else:
            environment.close()

    def sync(self) -> None:
        """Sync everything to disk."""
        with self._understood():
            self._environment.sync(True)

    @property
    def used_bytes(self) -> int:
        """Bytes of pages in use or used before; the file is longer."""
        pages = int(self._environment.info()["last_pgno"]) + 1
        return pages * int(self._environment.stat()["psize"])

    def read(self, work: Callable[[Any], T]) -> T:
        """Result of `work` on a transaction that sees the last revision."""
        import lmdb

        with self._understood():
            try:
                transaction = self._environment.begin()
            except lmdb.MapResizedError:  # the writer has grown the file since it was opened here
                self._environment.set_mapsize(self._path.stat().st_size)
                transaction = self._environment.begin()
            with transaction:
                return work(transaction)

    def write(self, work: Callable[[Any], T]) -> T:
        """Result of `work` on a transaction, once committed. After an exception, nothing of it is written.

        `work` is called again if the map was full. Raises InputError if the disk is full.
        """
        import lmdb

        with self._understood():
            while True:
                transaction = self.begin()
                try:
                    result = work(transaction)
                    transaction.commit()
                    return result
                except lmdb.MapFullError:
                    transaction.abort()
                    self._grow()
                except BaseException:
                    transaction.abort()
                    raise

    def begin(self) -> Any:
        """Begin a write transaction."""
        return self._environment.begin(write=True)

    def reserve(self, more: int) -> None:
        """Make room for `more` bytes."""
        if self.used_bytes + more > self._size:
            self._grow(self.used_bytes + more - self._size)

    def _grow(self, least: int = 0) -> None:
        self._take_space(self._size + max(_LEAST_ROOM, self._size // _ROOM_SHARE, least))
        self._environment.set_mapsize(self._size)

    def _take_space(self, size: int) -> None:
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                allocate(descriptor, size)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise no_file(self.folder, error, size - self._size) from error
        self._size = size

    @contextlib.contextmanager
    def _understood(self) -> Iterator[None]:
        """Turn LMDB's errors into errors of this package."""
        import lmdb

        try:
            yield
        except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError) as error:
            raise damaged(self.folder, str(error), INDS) from error
        except lmdb.VersionMismatchError as error:
            raise damaged(self.folder, f"its file is of another version of LMDB ({error})", INDS) from error
        except (lmdb.DiskError, lmdb.Error) as error:
            full = "No space left" in str(error)
            problem = OSError(errno.ENOSPC if full else errno.EIO, os.strerror(errno.ENOSPC) if full else str(error))
            raise no_file(self.folder, problem) from error


def allocate(descriptor: int, size: int) -> None:
    """Set the length of a file and allocate its disk space. Raises OSError if the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:  # macOS: the space is not allocated ahead
        os.ftruncate(descriptor, max(size, os.fstat(descriptor).st_size))


def mask_bytes(attributes: int) -> int:
    """Length of a cluster's mask in the store, in bytes."""
    return -(-attributes // 8)


def put_cluster(transaction: Any, number: int, mask: int, values: int, attributes: int) -> None:
    """Write the number of values of a cluster; empty clusters are not stored."""
    key = CLUSTER + number.to_bytes(4, "big")
    if values:
        transaction.put(key, values.to_bytes(8, "little") + mask.to_bytes(mask_bytes(attributes), "little"))
    else:
        transaction.delete(key)


def cluster_of(record: bytes) -> tuple[int, int]:
    """Mask and number of values from a cluster's record."""
    return int.from_bytes(record[8:], "little"), int.from_bytes(record[:8], "little")


def heading(revision: int, next_long: int, rows: Sequence[int], filled: Sequence[int]) -> bytes:
    """The record of META. `filled`: non-null rows of each attribute."""
    return struct.pack(f"<{2 + len(rows) + len(filled)}Q", revision, next_long, *rows, *filled)


def heading_numbers(record: bytes) -> list[int]:
    """Revision, number of the next long value, rows of each table, and non-null rows of each attribute."""
    numbers: list[int] = np.frombuffer(record, dtype="<u8").tolist()
    return numbers


def value_text(name: bytes, type_: TypeName) -> str:
    """A value as readable text, from its name."""
    family, canonical = FAMILIES[name[0] & 0x0F], name[1:]
    if family == "double":
        return repr(float(np.frombuffer(canonical, dtype=">f8")[0]))
    text = canonical.decode("utf-8", "replace")
    if family != "instant":
        return text
    micro, _, nano = text.partition(".")
    moment = np.datetime64(int(micro), "us")
    return str(moment.astype("datetime64[D]") if type_ == "date" else moment) + nano
