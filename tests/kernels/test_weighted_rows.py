"""Rows that stand for several equal ones: counts of clues as of all the rows that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.evidence import collect_clues
from tuplewise.gpu_kernels.words import make_layout

# (left, right, scope, ordered); both directions of columns that are compared with each other, and comparisons in a row
NARROW = [(0, 0, 0, True), (1, 1, 0, False), (2, 2, 0, True)]
CROSSED = [*NARROW, (0, 2, 0, True), (2, 0, 0, True), (0, 2, 1, True), (0, 2, 2, True)]
WIDE = [(c, c, 0, True) for c in range(40)]


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("comparisons", [NARROW, CROSSED, WIDE], ids=["narrow", "crossed", "wide"])
@pytest.mark.parametrize("rows", [1, 2, 255, 256, 257, 700])
def test_counts_are_those_of_the_rows_that_they_stand_for(
    rows: int, comparisons: list[tuple[int, int, int, bool]], nulls: Any
) -> None:
    rng = np.random.default_rng(rows)
    columns = 1 + max(max(left, right) for left, right, _, _ in comparisons)
    codes = rng.integers(-1, 4 if columns < 10 else 2, (columns, rows)).astype(np.int32)
    weights = rng.integers(1, 4, rows).astype(np.int64)
    layout = make_layout(comparisons)
    found = lay_out(codes, layout, nulls=nulls, device="cpu").of_weighted_rows(weights)
    every = np.repeat(codes, weights, axis=1)
    right = collect_clues(np.ascontiguousarray(every), layout, nulls=nulls, device="cpu")
    assert found.complete
    assert found.ordered_pairs == right.ordered_pairs == every.shape[1] * (every.shape[1] - 1)
    assert np.array_equal(found.clues, right.clues)
    assert np.array_equal(found.counts, right.counts)


def test_weights_of_another_shape_are_refused() -> None:
    rows = lay_out(np.zeros((3, 5), dtype=np.int32), make_layout(NARROW), device="cpu")
    with pytest.raises(ValueError, match=r"weights: int64 array of shape \(4,\); allowed: int64 \(5,\)"):
        rows.of_weighted_rows(np.ones(4, dtype=np.int64))


def test_a_deadline_ends_it() -> None:
    rows = lay_out(np.zeros((3, 5000), dtype=np.int32), make_layout(NARROW), device="cpu")
    assert not rows.of_weighted_rows(np.ones(5000, dtype=np.int64), deadline=0.0).complete
