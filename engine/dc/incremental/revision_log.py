"""The revisions since a checkpoint: one file that only grows, a record for each.

A record is a head (`_HEAD`, then `_REST`, whose checksum the head holds), a JSON text and the bytes of the arrays, each
filled up to a multiple of 8 bytes, so that arrays lie where compiled loops want them. It is written by one call; a
process that is killed in it leaves the beginning of a record at the end of the file. That is what an end is taken for
that is shorter than its head says (or all zeros: a file that was made longer before a loss of power, and not written).
Anything else that isn't what was written is damage, in the last record as in another: a revision that was told to be
applied is not left out without a word.
"""

from __future__ import annotations

import json
import math
import os
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError
from tuplewise.engine.state_folders import DCS, damaged, no_file, write_all

_MAGIC = b"twR1"
_HEAD = struct.Struct("<4sI")  # magic, checksum of the rest
_REST = struct.Struct("<qqII")  # revision, bytes of the body, their checksum, bytes of the JSON text in it
_HEAD_BYTES = _HEAD.size + _REST.size
_ALIGNED = 8
_BLOCK_BYTES = 256 << 10
_SMALL_BYTES = 4096  # a copy costs less than a view
_encoded = json.JSONEncoder(separators=(",", ":")).encode  # making one costs as much as a small text
_LOOKS, _WAIT_SECONDS = 3, 0.01


@dataclass(frozen=True, eq=False)
class LogRecord:
    """One revision.

    Attributes
    ----------
    header : what JSON can hold; "revision" (int) and "history" (dict) are in it
    arrays : by name, of any shape, plain types (no objects, no structures); those that are read are C order, read-only
    """

    header: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class _Body(NamedTuple):
    text: bytes  # JSON
    content: bytes  # text and arrays
    end: int  # of the record in the file


def plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """An array in C order. Raises TypeError where its values aren't bytes that can be written as they are."""
    if array.dtype.hasobject or array.dtype.names is not None:
        raise TypeError(f"array {name!r} is of type {array.dtype}: objects and structures can't be written")
    return np.asarray(array, order="C")


def packed(record: LogRecord, revision: int) -> bytes:
    """A record as it lies in the file. `revision`: the one that it must be of, else ValueError."""
    if record.header["revision"] != revision or not isinstance(record.header["history"], dict):
        raise ValueError(f"revision {record.header['revision']} with its history comes after {revision - 1}")
    arrays = [(name, plain(name, array)) for name, array in record.arrays.items()]
    named = [[name, array.dtype.str, array.shape] for name, array in arrays]
    text = _encoded({"header": record.header, "arrays": named}).encode()
    parts: list[Any] = [text, bytes(-len(text) % _ALIGNED)]
    for _, array in arrays:
        if array.nbytes:
            content = array.tobytes() if array.nbytes < _SMALL_BYTES else array.reshape(-1).view(np.uint8)
            parts += [content, bytes(-array.nbytes % _ALIGNED)]
    body = b"".join(parts)
    rest = _REST.pack(revision, len(body), zlib.crc32(body), len(text))
    return _HEAD.pack(_MAGIC, zlib.crc32(rest)) + rest + body


class RevisionLog:
    """The log of one checkpoint, open.

    Parameters
    ----------
    folder : of the state
    name : of the file
    revision : that the checkpoint is of
    write : whether this is the one writer; it cuts off what a killed one left of its last record

    Attributes
    ----------
    revision : the last one that is complete
    end : bytes of the complete records

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    InputError
        Where a record is not what was written.

    Notes
    -----
    Opening reads the file once, for its checksums.
    """

    def __init__(self, folder: Path, name: str, revision: int, *, write: bool) -> None:
        self._folder, self._name, self._write = folder, name, write
        self._first, self.revision, self.end = revision, revision, 0
        self._descriptor = -1
        self._descriptor = os.open(folder / name, os.O_RDWR if write else os.O_RDONLY)
        self.extend()
        self._longer = os.fstat(self._descriptor).st_size > self.end
        if write:
            self._cut()

    def __del__(self) -> None:  # not before: whoever is given its records may ask for more after the state is closed
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def append(self, record: LogRecord, *, sync: bool) -> None:
        """Write the next revision by one call of the system: all of it or, where something is raised, nothing.

        `sync`: hand it to the disk too. Raises InputError where the disk is full or fails.
        """
        content = packed(record, self.revision + 1)
        end, revision = self.end, self.revision
        try:
            if self._longer:
                os.ftruncate(self._descriptor, end)
            self._longer = True
            write_all(self._descriptor, content, end)
            if sync:
                os.fsync(self._descriptor)
            self.end, self.revision = end + len(content), revision + 1
            self._longer = False
        except BaseException as error:
            self.end, self.revision, self._longer = end, revision, True
            self._cut()
            if isinstance(error, OSError):
                raise no_file(self._folder, error, len(content)) from error
            raise

    def extend(self) -> bool:
        """Look for complete records after those that are known; whether there are any.

        Raises InputError where a record is damaged.
        """
        known = self.revision
        for look in range(_LOOKS):
            try:
                for body in self._bodies(self.end, self.revision):
                    self.end, self.revision = body.end, self.revision + 1
                break
            except InputError:
                # The writer may have taken back a record that it couldn't finish, and written another over it meanwhile
                if self._write or look == _LOOKS - 1:
                    raise
                time.sleep(_WAIT_SECONDS)
        return self.revision > known

    def records(self) -> Iterator[LogRecord]:
        """The records that are known, oldest first. Raises InputError where one is damaged."""
        for body in self._known():
            yield self._record(body)

    def headers(self) -> Iterator[dict[str, Any]]:
        """The headers of `records`."""
        for body in self._known():
            yield json.loads(body.text)["header"]

    def _known(self) -> Iterator[_Body]:
        last, at = self.revision, 0
        number = self._first
        bodies = self._bodies(0, number)
        while number < last:
            body = next(bodies, None)
            if body is None:
                raise self._damaged(at, "ends early")
            yield body
            number, at = number + 1, body.end

    def _bodies(self, at: int, revision: int) -> Iterator[_Body]:
        """Complete records from a place on, the first of the revision after `revision`; to the end or a torn one."""
        block, start, descriptor = b"", at, self._descriptor
        while True:
            revision += 1
            head, block, start = _taken(descriptor, block, start, at, _HEAD_BYTES)
            if len(head) < _HEAD_BYTES:
                return
            magic, check = _HEAD.unpack_from(head)
            rest = head[_HEAD.size :]
            if magic != _MAGIC or check != zlib.crc32(rest):
                if self._never_written(at):
                    return
                raise self._damaged(at, f"of revision {revision} begins otherwise than it was written")
            named, size, check, text_bytes = _REST.unpack(rest)
            body, block, start = _taken(descriptor, block, start, at + _HEAD_BYTES, size)
            if len(body) < size:
                return
            if zlib.crc32(body) != check:
                raise self._damaged(at, f"of revision {revision} is not what was written")
            if named != revision:
                raise self._damaged(at, f"is of revision {named}, and {revision} was to come")
            at += _HEAD_BYTES + size
            yield _Body(body[:text_bytes], body, at)

    def _never_written(self, at: int) -> bool:
        """Whether all is zero from here on."""
        while block := os.pread(self._descriptor, _BLOCK_BYTES, at):
            if block.strip(b"\0"):
                return False
            at += len(block)
        return True

    def _record(self, body: _Body) -> LogRecord:
        parsed, arrays = json.loads(body.text), {}
        at = -(-len(body.text) // _ALIGNED) * _ALIGNED
        for name, code, shape in parsed["arrays"]:
            kind, count = np.dtype(code), math.prod(shape)
            arrays[name] = np.frombuffer(body.content, kind, count, at if count else 0).reshape(shape)
            at += -(-count * kind.itemsize // _ALIGNED) * _ALIGNED
        return LogRecord(parsed["header"], arrays)

    def _cut(self) -> None:
        """Cut off what lies after the complete records; where it can't be now, before the next is written."""
        with suppress(OSError):
            if self._longer:
                os.ftruncate(self._descriptor, self.end)
                self._longer = False

    def _damaged(self, at: int, how: str) -> InputError:
        return damaged(self._folder, f"the record at byte {at} of {self._name} {how}", DCS)


def _taken(descriptor: int, block: bytes, start: int, at: int, size: int) -> tuple[bytes, bytes, int]:
    """Bytes of a file, fewer where it ends; and the block that was read, with its place."""
    low = at - start
    if low + size > len(block):
        parts, left = [], max(size, _BLOCK_BYTES)
        place = at
        while left and (part := os.pread(descriptor, left, place)):  # a call gives 2 GB at most
            parts.append(part)
            left, place = left - len(part), place + len(part)
        block, start, low = b"".join(parts), at, 0
    return block[low : low + size], block, start
