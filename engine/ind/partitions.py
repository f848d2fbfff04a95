"""What a partitioned state is at one moment: one small file, which is put in the place of the last one as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.state_folders import INDS, damaged, write_record
from tuplewise.gpu_kernels.inclusion import mask_words

FILE = "partitions.json"
_WORD_BYTES = 8


@dataclass(frozen=True)
class StreamPlace:
    """How far a stream of batches has been applied.

    `batch`: the number of the last one. `query`: the identity of the query that numbers them, None where the caller
    does.
    """

    batch: int
    query: str | None = None


@dataclass(frozen=True, eq=False)
class Partitions:
    """One revision of a partitioned state.

    Attributes
    ----------
    rows : of each table
    filled : of each attribute, rows where it isn't null
    buckets : how many there are
    folders : of each bucket that has a file, the name of the folder that holds it
    masks, values : of the attribute clustering
    streams : by name
    dialect : how CSV files of changes are written: sep, quote, escape, encoding
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
        """Put it in the place of the last one, and hand it to the disk. Killed at any moment, one of both is there."""
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
        """Raises InputError where the file is damaged."""
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
