"""Values with their attributes and counts, in the order of the store's keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SortedValues:
    """Distinct values, ascending by name.

    Attributes
    ----------
    names : large_binary (values,)
    starts : int64 (values,), start of each value's entries
    attributes, counts : int32 and int64 (entries,), ascending within a value
    """

    names: pa.Array
    starts: NDArray[np.int64]
    attributes: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of attributes of each value."""
        return np.diff(np.append(self.starts, len(self.attributes)))

    @classmethod
    def of(
        cls, parts: Sequence[pa.Array], attributes: Sequence[NDArray[np.int32]], counts: Sequence[NDArray[np.int64]]
    ) -> SortedValues:
        """Build from names of values, column by column. A value may occur in several columns, and repeatedly in one."""
        names = pa.concat_arrays(list(parts))
        order = pc.sort_indices(names)
        names = names.take(order)
        places = order.to_numpy()
        own, held = np.concatenate(attributes)[places], np.concatenate(counts)[places]
        new = np.ones(len(names), dtype=np.bool_)
        if len(names):
            new[1:] = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy(zero_copy_only=False)
        starts = np.flatnonzero(new)
        names = names if len(starts) == len(names) else names.take(pa.array(starts))
        if not ((own[1:] <= own[:-1]) & ~new[1:]).any():
            return cls(names, starts, own, held)
        value = np.cumsum(new) - 1  # equal values of one column spelled in two ways, or columns out of order
        order = np.lexsort((own, value))
        own, held, value = own[order], held[order], value[order]
        entry = np.ones(len(value), dtype=np.bool_)
        entry[1:] = (value[1:] != value[:-1]) | (own[1:] != own[:-1])
        kept = np.flatnonzero(entry)
        return cls(
            names, np.searchsorted(value[kept], np.arange(len(starts))), own[kept], np.add.reduceat(held, kept)
        )

    def counts_of(self, values: NDArray[np.int64]) -> dict[bytes, dict[int, int]]:
        """Occurrences of the given values in each attribute, by name."""
        ends = self.starts[values] + self.sizes[values]
        attributes, counts = self.attributes, self.counts
        return {
            name: dict(zip(attributes[start:end].tolist(), counts[start:end].tolist(), strict=True))
            for name, start, end in zip(
                self.names.take(pa.array(values)).to_pylist(), self.starts[values].tolist(), ends.tolist(), strict=True
            )
        }


def cut(raw: bytes, places: NDArray[np.int64]) -> list[bytes]:
    """Slices between consecutive places."""
    return [raw[a:b] for a, b in pairwise(places.tolist())]
