"""CUDA twin: texts ranked by cuDF, on the GPU that is the thread's current one.

cuDF is called by pylibcudf, its own lower layer: `import cudf` would set the memory managers of Numba and CuPy for the
whole process, and bring in pandas and a second set of version limits. Written from cuDF's sources (26.06 to 26.10) and
tested with a stand-in; it has not run on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def run(parts: Sequence[pa.Array]) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """As the CPU twin's: cuDF compares texts as unsigned bytes, a shorter one before those that it begins.

    Notes
    -----
    The values go to the device once, as one column; the distinct texts and 4 bytes for each value come back. On the
    device: distinct rows by hashing, one sort of them, a binary search for each value.
    """
    import pyarrow as pa
    import pylibcudf as cudf

    kinds = cudf.types
    upwards, nulls = [kinds.Order.ASCENDING], [kinds.NullOrder.BEFORE]
    texts = pa.concat_arrays(parts).cast(pa.string())  # 32-bit offsets: the front door has looked at the size
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
