"""Evidence between two sets of rows in Numba's CUDA simulator, against the definition and the CPU twin."""

from __future__ import annotations

import os

import numpy as np
import pytest
from numpy.typing import NDArray

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from evidence_between_cases import check, gapped_table, layout_of  # noqa: E402
from evidence_cases import SMALL, TINY, sizes  # noqa: E402

from tuplewise.gpu_kernels.control import Control  # noqa: E402
from tuplewise.gpu_kernels.cpu import evidence_between as cpu  # noqa: E402
from tuplewise.gpu_kernels.cuda import clue_counter  # noqa: E402
from tuplewise.gpu_kernels.cuda import evidence_between as cuda  # noqa: E402
from tuplewise.gpu_kernels.words import ClueLayout, merge_clues, mirror_clues  # noqa: E402


def both_orders(
    found: tuple[NDArray[np.uint64], NDArray[np.int64], bool], layout: ClueLayout
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Clues and counts with those of the exchanged pairs: a twin may take either order of a pair."""
    clues, counts, complete = found
    assert complete
    return merge_clues(np.concatenate([clues, mirror_clues(clues, layout)]), np.concatenate([counts, counts]))


@pytest.mark.parametrize("seed", range(8))
def test_equals_definition(seed: int) -> None:
    check(seed, "cuda", 20, most_columns=4)


@pytest.mark.parametrize(("many", "few"), [(1, 1), (4, 3), (5, 4), (8, 5), (9, 9), (13, 1)])
@pytest.mark.parametrize("band", [3, 8, 1 << 20])
def test_rows_around_every_tile_edge_and_bands(many: int, few: int, band: int) -> None:
    rng = np.random.default_rng([many, few])
    codes, layout = gapped_table(rng, 3, many + few), layout_of(rng, 3)
    order = rng.permutation(many + few)
    sides = order[:many], order[many:]
    told: list[float] = []
    here = both_orders(cpu.run(codes, *sides, layout.under("unknown"), Control()), layout)
    for geometry in (TINY, SMALL):
        control = Control(progress=told.append)
        there = cuda.run(codes, *sides, layout.under("unknown"), control, sizes=sizes(geometry, band=band))
        for mine, its in zip(both_orders(there, layout), here, strict=True):
            np.testing.assert_array_equal(mine, its)
    assert max(told) == 1


def test_sizes_are_halved_when_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    codes, layout = gapped_table(rng, 3, 30), layout_of(rng, 3)
    zeros = clue_counter.zeros
    failures = []

    def short(shape: int | tuple[int, ...], dtype: type) -> object:
        if np.prod(shape) * np.dtype(dtype).itemsize > 40_000:
            failures.append(shape)
            raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")
        return zeros(shape, dtype)

    monkeypatch.setattr(clue_counter, "zeros", short)
    of = sizes(SMALL, slots=1 << 14, most=1 << 14)
    sides = np.arange(19), np.arange(19, 30)
    clues, counts, complete = cuda.run(codes, *sides, layout.under("unknown"), Control(), sizes=of)
    assert complete
    assert failures
    assert counts.sum() == 19 * 11
    assert len(clues) == len(counts)
