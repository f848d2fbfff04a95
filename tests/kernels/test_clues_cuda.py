"""The CUDA twin of clues: what it adds to the evidence kernel, here with the kernel's CPU twin, and on a device."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba.cuda")

from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.clusters import all_rows
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import pick_device

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_clues_cpu import layout_of, reflexive, two_sided


@pytest.mark.parametrize("seed", range(30))
def test_new_clues_of_any_cluster_pairs(seed: int) -> None:
    from tuplewise.gpu_kernels.cuda.clues import ComparableRows

    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(2, 40)), int(rng.integers(1, 5))
    codes = rng.integers(-1, 4, (columns, rows)).astype(np.int32)
    layout, nullable = layout_of(rng, columns), bool(rng.integers(2))
    nulls = "unknown" if nullable else "value"
    twin = ComparableRows(codes, layout, nullable, pick_device("cpu"))
    met: set[tuple[int, ...]] = set()
    for make in (reflexive, two_sided, reflexive):
        pairs = make(rng, rows)
        clues, told, complete = twin.within(pairs, Control())
        assert complete
        assert len(told) == 0
        new = {tuple(c) for c in clues.tolist()}
        assert len(new) == len(clues)
        assert not new & met
        asked = lay_out(codes, layout, nulls=nulls, device="cpu").within(pairs)
        assert {tuple(c) for c in asked.clues.tolist()} <= met | new
        met |= new
    everything = lay_out(codes, layout, nulls=nulls, device="cpu").within(all_rows(np.arange(rows, dtype=np.int32)))
    assert met <= {tuple(c) for c in everything.clues.tolist()}


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_codes_that_lie_far_apart_take_no_memory_of_their_size(nulls: str) -> None:
    from tuplewise.gpu_kernels.cuda.clues import ComparableRows

    rng = np.random.default_rng(4)
    dense = rng.integers(-1, 6, (4, 30)).astype(np.int32)
    gaps = np.array([-1, 0, 3, 40_000, 2**30, 2**31 - 2, 2**31 - 1], dtype=np.int32)
    layout = layout_of(rng, 4)
    pairs = all_rows(np.arange(30, dtype=np.int32))
    found = [ComparableRows(codes, layout, nulls == "unknown", pick_device("cpu")).within(pairs, Control())[0]
             for codes in (dense, gaps[dense + 1])]  # fmt: skip
    assert np.array_equal(*found)


@pytest.mark.device
def test_a_device_finds_what_the_cpu_finds() -> None:
    device = pick_device("auto")
    if device.kind != "cuda":
        pytest.skip(f"no GPU: {device.reason}")
    rng = np.random.default_rng(1)
    codes = rng.integers(-1, 6, (5, 3000)).astype(np.int32)
    layout = layout_of(rng, 5)
    for make in (reflexive, two_sided):
        pairs = make(rng, 3000)
        here = lay_out(codes, layout, device="cpu").within(pairs).clues
        there = lay_out(codes, layout, device=device).within(pairs).clues
        assert {tuple(c) for c in here.tolist()} <= {tuple(c) for c in there.tolist()}
        if pairs.reflexive:
            assert np.array_equal(here, there)
