"""CUDA twin of the pairwise evidence kernel between two sets of rows: the same kernel, over a rectangle of pairs.

The rows of both sides lie side by side, as two different bands of rows do in `evidence`, and only strips of the first
side with the second are counted.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda.clue_counter import Sizes
from tuplewise.gpu_kernels.cuda.digits import make_plan
from tuplewise.gpu_kernels.cuda.evidence import count_bands
from tuplewise.gpu_kernels.cuda.strips import rectangle_bands
from tuplewise.gpu_kernels.words import Comparisons, among_compared


def run(
    codes: NDArray[np.int32],
    many: NDArray[np.int64],
    few: NDArray[np.int64],
    comparisons: Comparisons,
    control: Control,
    *,
    sizes: Sizes | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Distinct clues of all pairs of one row of `many` and one of `few`, on the current CUDA device.

    Parameters and what is returned as for the CPU twin.

    Notes
    -----
    `many` is the side of which each thread has a row. Cost and floor as in `evidence`; the kernel compares codes
    themselves, so nothing is ranked. Rows are not put into an order: like neighbours are merged where the table has
    them.
    """
    rows = np.concatenate([many, few])
    plan = make_plan(*among_compared(codes, comparisons, rows))
    # rows of `few` pair with none after them
    row_end = np.concatenate([np.full(len(many), len(rows)), np.arange(len(many), len(rows)) + 1]).astype(np.int32)
    bands = partial(rectangle_bands, len(many), len(rows))
    return count_bands(plan, row_end, len(many) * len(few), bands, control, sizes)
