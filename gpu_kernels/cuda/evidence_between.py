"""CUDA twin of the pairwise evidence kernel between two sets of rows: the same kernel, over a rectangle of pairs.

The rows of both sides are stored side by side, like two different bands of rows in `evidence`, and only strips of the
first side with the second are counted.
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

    Parameters and results are those of the CPU twin.

    Notes
    -----
    Each thread has one row of `many`. Cost and floor are those of `evidence`. The kernel compares the codes themselves,
    so nothing is ranked. Rows aren't sorted either: equal neighbours are merged only where the table has them.
    """
    rows = np.concatenate([many, few])
    plan = make_plan(*among_compared(codes, comparisons, rows))
    # rows of `few` pair with none after them
    row_end = np.concatenate([np.full(len(many), len(rows)), np.arange(len(many), len(rows)) + 1]).astype(np.int32)
    bands = partial(rectangle_bands, len(many), len(rows))
    return count_bands(plan, row_end, len(many) * len(few), bands, control, sizes)
