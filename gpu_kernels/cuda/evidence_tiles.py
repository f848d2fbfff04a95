"""CUDA twin of the pairwise evidence kernel for one tile of the triangle of all pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda.clue_counter import Sizes
from tuplewise.gpu_kernels.cuda.digits import make_plan
from tuplewise.gpu_kernels.cuda.evidence import count_bands
from tuplewise.gpu_kernels.cuda.strips import later_bands
from tuplewise.gpu_kernels.words import Comparisons


def run(
    codes: NDArray[np.int32],
    comparisons: Comparisons,
    first: int,
    last: int,
    control: Control,
    prepared: dict[str, Any],
    *,
    sizes: Sizes | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Count the clues of a tile on the current device: unordered pairs of a row from `first` to `last` with any row
    before it.

    Parameters and results are those of the CPU twin.

    Notes
    -----
    Kernel, cost and floor are those of `cuda.evidence`. Each tile copies the operands of its rows to the device, 4
    bytes for each column of a comparison and row.
    """
    if "plan" not in prepared:
        prepared["plan"] = make_plan(codes, comparisons)
    rows = codes.shape[1]
    row_end = np.full(rows, rows, dtype=np.int32)
    pairs = (last * (last - 1) - first * (first - 1)) // 2
    return count_bands(prepared["plan"], row_end, pairs, partial(later_bands, first, last), control, sizes)
