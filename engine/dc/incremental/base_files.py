"""What a state is at a checkpoint: arrays in files that never change, and the manifest that names them."""

from __future__ import annotations

import io
import json
import mmap
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.revision_log import plain
from tuplewise.engine.state_folders import DCS, STATE_FILE, damaged, read_state_file, write_file, write_state_file

HISTORY = "history.jsonl"


@dataclass(frozen=True)
class BaseFile:
    """A file, or the beginning of one, as it was written. `path`: in the folder; `crc`: CRC-32 of the bytes."""

    path: str
    bytes: int
    crc: int


@dataclass(frozen=True)
class CheckpointManifest:
    """What a state is at its last checkpoint.

    Attributes
    ----------
    fixed : what never changes, as JSON gives it back
    written_by : version of tuplewise
    checkpoint : number of the checkpoint, 0 when the state was built
    revision : that it is of
    files : of the arrays, by name
    history : how far the file of the history counts: one line of JSON for each revision from 0 on
    """

    fixed: dict[str, Any]
    written_by: str
    checkpoint: int
    revision: int
    files: Mapping[str, BaseFile]
    history: BaseFile

    @property
    def log(self) -> str:
        """Name of the file of the revisions since."""
        return f"log-{self.checkpoint}"

    def write(self, folder: Path) -> None:
        """Put it in the place of the last one, and hand it to the disk. Killed at any moment, one of both is there."""
        record = asdict(self)
        write_state_file(folder, DCS, {"crc": _checksum(record), **record})

    @classmethod
    def read(cls, folder: Path) -> CheckpointManifest:
        """Raises InputError where the folder is no state, is damaged, or is of another version."""
        record = read_state_file(folder, DCS)
        try:
            if record.pop("crc") != _checksum(record):
                raise ValueError("it is not what was written")
            files = {name: BaseFile(**file) for name, file in record.pop("files").items()}
            return cls(files=files, history=BaseFile(**record.pop("history")), **record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(folder, f"{STATE_FILE} can't be read: {error}", DCS) from error


def _checksum(record: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, separators=(",", ":")).encode())


def write_array(folder: Path, checkpoint: int, name: str, array: NDArray[Any]) -> BaseFile:
    """Write an array to a file of NumPy's format, C order, and hand it to the disk. Raises OSError."""
    path = f"base-{checkpoint}/{quote(name, safe='')}.npy"
    array = plain(name, array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    content = (array.reshape(-1).view(np.uint8),) if array.nbytes else ()
    size, crc = write_file(folder / path, header.getvalue(), *content)
    return BaseFile(path, size, crc)


def mapped(folder: Path, file: BaseFile) -> mmap.mmap:
    """A base file in memory, read only. Raises FileNotFoundError, or InputError where it is of another size."""
    descriptor = os.open(folder / file.path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if size != file.bytes:
            raise damaged(folder, f"{file.path} has {size} bytes, not {file.bytes}", DCS)
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)


def array_of(folder: Path, file: BaseFile, content: mmap.mmap) -> NDArray[Any]:
    """The array of a base file: a view of the map. Raises InputError where the file's heading is damaged."""
    content.seek(0)
    try:
        if np.lib.format.read_magic(content) != (1, 0):
            raise ValueError("it is of another version of NumPy's format")
        shape, order, kind = np.lib.format.read_array_header_1_0(content)
        if order:
            raise ValueError("it is in another order")
        return np.frombuffer(content, kind, offset=content.tell()).reshape(shape)
    except ValueError as error:
        raise damaged(folder, f"{file.path} can't be read: {error}", DCS) from error
