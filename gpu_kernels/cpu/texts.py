"""CPU twin: ranking texts with Arrow. It also ranks other types that Arrow orders by value (decimals)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def run(parts: Sequence[pa.Array]) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """Rank parts of one type, without nulls: distinct values, ascending, and each part's ranks. See `rank_texts`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pa.chunked_array(parts)
    if not len(values):
        return parts[0], [np.empty(0, dtype=np.int32) for _ in parts]
    encoded = values.dictionary_encode().combine_chunks()
    union = encoded.dictionary
    order = pc.sort_indices(union)
    rank_of = np.empty(len(union), dtype=np.int32)
    rank_of[order.to_numpy(zero_copy_only=False)] = np.arange(len(union), dtype=np.int32)
    ranks = rank_of[encoded.indices.to_numpy(zero_copy_only=False)]
    return union.take(order), np.split(ranks, np.cumsum([len(p) for p in parts])[:-1])
