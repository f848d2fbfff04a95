"""CPU twin of the pairwise evidence kernel for one tile of the triangle of all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.evidence import DenseTable, count_jobs, tile_jobs
from tuplewise.gpu_kernels.words import Comparisons


def run(
    codes: NDArray[np.int32],
    comparisons: Comparisons,
    first: int,
    last: int,
    control: Control,
    prepared: dict[str, Any],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Count the clues of a tile: unordered pairs of a row from `first` to `last` with any row before it.

    Parameters
    ----------
    codes, comparisons, control : as for `cpu.evidence.run`
    first, last : rows of the tile
    prepared : kept between the tiles of a table in one process: its dense codes

    Returns
    -------
    clues, counts, complete : as in `cpu.evidence.run`

    Notes
    -----
    Cost and floor: those of `cpu.evidence.run` for each of the (last - first) * (first + last - 1) / 2 pairs; once, a
    pass over all codes.
    """
    if "table" not in prepared:
        prepared["table"] = DenseTable(codes, comparisons)
    return count_jobs(prepared["table"], *tile_jobs(0, first, last), np.array([0, codes.shape[1]]), control)
