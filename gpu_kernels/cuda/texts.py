"""CUDA twin: ranking texts with cuDF, on the thread's current GPU.

The module uses pylibcudf, cuDF's lower layer: `import cudf` would set the memory managers of Numba and CuPy for the
whole process, and require pandas and more version limits. It is written from cuDF's sources (26.06 to 26.10) and tested
with a stand-in; it hasn't run on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def run(parts: Sequence[pa.Array]) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """Rank texts as the CPU twin does: cuDF compares unsigned bytes, and a prefix comes before longer texts.

    Notes
    -----
    Values are copied to the device once, as one column; distinct texts and 4 bytes for each value come back. The device
    finds distinct rows by hashing, sorts them, and does a binary search for each value.
    """
    import pyarrow as pa
    import pylibcudf as cudf

    kinds = cudf.types
    upwards, nulls = [kinds.Order.ASCENDING], [kinds.NullOrder.BEFORE]
    texts = pa.concat_arrays(parts).cast(pa.string())  # 32-bit offsets: the front door has checked the size
    rows = cudf.Table([cudf.Column.from_arrow(texts)])
    distinct = cudf.stream_compaction.distinct(
        rows,
        [0],
        cudf.stream_compaction.DuplicateKeepOption.KEEP_ANY,
        kinds.NullEquality.EQUAL,
        kinds.NanEquality.ALL_EQUAL,
    )
    ascending = cudf.sorting.sort(distinct, upwards, nulls)
    places = cudf.search.lower_bound(ascending, rows, upwards, nulls).to_arrow()
    ranks = np.array(places.to_numpy(zero_copy_only=False), dtype=np.int32)
    ends = np.cumsum([len(part) for part in parts])
    return ascending.columns()[0].to_arrow().cast(pa.large_string()), np.split(ranks, ends[:-1])
