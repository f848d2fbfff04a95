"""One revision of a partitioned state: a small file, replaced as a whole by that of the next revision."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.state_folders import INDS, damaged, write_record
from tuplewise.gpu_kernels.words import mask_words

FILE = "partitions.json"
_WORD_BYTES = 8


@dataclass(frozen=True)
class StreamPlace:
    """Progress of a stream of batches.

    `batch`: number of the last batch applied. `query`: identity of the query that numbers the batches; None if the
    caller does.
    """

    batch: int
    query: str | None = None


@dataclass(frozen=True, eq=False)
class Partitions:
    """One revision of a partitioned state.

    Attributes
    ----------
    rows : number of rows of each table
    filled : number of non-null rows of each attribute
    buckets : number of buckets
    folders : by bucket with a file, the name of the folder that holds it
    masks, values : arrays of the attribute clustering
    streams : progress of each stream, by name
    dialect : CSV dialect of change files: sep, quote, escape, encoding
    """

    revision: int
    rows: tuple[int, ...]
    filled: tuple[int, ...]
    buckets: int
    folders: Mapping[int, str]
    masks: NDArray[np.uint64]
    values: NDArray[np.int64]
    streams: Mapping[str, StreamPlace] = field(default_factory=dict)
    dialect: Mapping[str, str | None] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Replace the last revision, and sync to disk. A process killed at any moment leaves one of both."""
        clusters = [
            [int.from_bytes(mask.astype("<u8").tobytes(), "little"), int(count)]
            for mask, count in zip(self.masks, self.values, strict=True)
        ]
        record = {
            "revision": self.revision,
            "rows": list(self.rows),
            "filled": list(self.filled),
            "buckets": self.buckets,
            "folders": {str(bucket): name for bucket, name in sorted(self.folders.items())},
            "clusters": [[f"{mask:x}", count] for mask, count in clusters],
            "streams": {name: asdict(place) for name, place in self.streams.items()},
            "dialect": dict(self.dialect),
        }
        write_record(folder / FILE, record)

    @classmethod
    def read(cls, folder: Path, tables: int, attributes: int) -> Partitions:
        """Read the current revision. Raises InputError if the file is damaged."""
        try:
            record = json.loads((folder / FILE).read_text(encoding="utf-8"))
            found = cls(
                revision=int(record["revision"]),
                rows=tuple(int(n) for n in record["rows"]),
                filled=tuple(int(n) for n in record["filled"]),
                buckets=int(record["buckets"]),
                folders={int(bucket): str(name) for bucket, name in record["folders"].items()},
                masks=_masks([int(mask, 16) for mask, _ in record["clusters"]], attributes),
                values=np.array([count for _, count in record["clusters"]], dtype=np.int64),
                streams={name: StreamPlace(**place) for name, place in record["streams"].items()},
                dialect=record["dialect"],
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise damaged(folder, f"{FILE} can't be read: {error}", INDS) from error
        if len(found.rows) != tables or len(found.filled) != attributes:
            raise damaged(folder, f"{FILE} is of other tables than the state", INDS)
        return found


def _masks(masks: Sequence[int], attributes: int) -> NDArray[np.uint64]:
    words = mask_words(attributes)
    packed: Any = b"".join([mask.to_bytes(_WORD_BYTES * words, "little") for mask in masks])
    return np.frombuffer(packed, dtype="<u8").astype(np.uint64).reshape(-1, words)
