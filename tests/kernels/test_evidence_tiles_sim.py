"""Evidence by tiles of the triangle of pairs in Numba's CUDA simulator, against the CPU twin."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from evidence_cases import SMALL, TINY, sizes  # noqa: E402
from evidence_tiles_cases import check_cut, random_table  # noqa: E402

from tuplewise.gpu_kernels.control import Control  # noqa: E402
from tuplewise.gpu_kernels.cpu import evidence_tiles as cpu  # noqa: E402
from tuplewise.gpu_kernels.cuda import evidence_tiles as cuda  # noqa: E402
from tuplewise.gpu_kernels.evidence_tiles import pair_triangle  # noqa: E402


@pytest.mark.parametrize("seed", range(4))
def test_any_cut_is_the_whole(seed: int) -> None:
    codes, layout = random_table(seed, 17, 3)
    check_cut(codes, layout, 4, "cuda")
    check_cut(codes, layout, [(0, 1), (1, 9), (9, 17)], "cuda")


@pytest.mark.parametrize("band", [3, 8, 1 << 20])
@pytest.mark.parametrize("tile", [(0, 13), (4, 5), (5, 12), (8, 21), (0, 1)])
def test_bands_and_tile_edges(tile: tuple[int, int], band: int) -> None:
    codes, layout = random_table(sum(tile), 21, 3)
    pairs = pair_triangle(codes, layout)
    shape = pairs.codes, pairs.comparisons, *tile
    here = cpu.run(*shape, Control(), {})
    for geometry in (TINY, SMALL):
        there = cuda.run(*shape, Control(), {}, sizes=sizes(geometry, band=band))
        for mine, its in zip(there, here, strict=True):
            np.testing.assert_array_equal(mine, its)
