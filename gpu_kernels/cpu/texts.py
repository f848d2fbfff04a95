"""CPU twin: texts ranked with Arrow. What Arrow orders by value (decimals) is ranked here too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def run(parts: Sequence[pa.Array]) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """Distinct values, ascending, and each part's ranks; parts are of one type, without nulls. See `rank_texts`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    union = pc.unique(pa.concat_arrays(parts)) if len(parts) > 1 else parts[0].unique()
    order = pc.sort_indices(union)
    rank_of = np.empty(len(union), dtype=np.int32)
    rank_of[order.to_numpy(zero_copy_only=False)] = np.arange(len(union), dtype=np.int32)
    ranks = [rank_of[pc.index_in(p, union).to_numpy(zero_copy_only=False)] for p in parts]
    return union.take(order), ranks
