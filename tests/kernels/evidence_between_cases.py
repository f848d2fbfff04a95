"""One body of checks of the evidence between two sets of rows, for the CPU, for the simulator and for a device."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels import words
from tuplewise.gpu_kernels.evidence import ClueSet, collect_clues_between

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from oracles import clues as oracle

Counts = dict[tuple[int, ...], int]
LARGEST = (1 << 30) - 1  # codes of a state lie anywhere from 0 to this, with gaps


def gapped_table(rng: np.random.Generator, columns: int, rows: int, nulls: bool = True) -> NDArray[np.int32]:
    """Few values far apart, the same ones in all columns so that these meet; nulls, constants, and equal rows."""
    values = np.sort(rng.choice(LARGEST, 12, replace=False))
    values[[0, -1]] = 0, LARGEST
    codes = values[rng.integers(0, rng.integers(1, 13, (columns, 1)), (columns, rows))]
    if nulls:
        codes[rng.random((columns, rows)) < rng.choice([0, 0.3], (columns, 1))] = -1
    if rows > 2:
        codes[:, 1] = codes[:, 0]
    return np.ascontiguousarray(codes, dtype=np.int32)


def layout_of(rng: np.random.Generator, columns: int) -> words.ClueLayout:
    """Every column with itself, some with others, across and within rows."""
    comparisons = [(c, c, words.ACROSS, bool(rng.integers(2))) for c in range(columns)]
    for a in range(columns - 1):
        if rng.random() < 0.4:
            comparisons.append((a, a + 1, int(rng.integers(2)), bool(rng.integers(2))))
    return words.make_layout(comparisons)


def expected(
    codes: NDArray[np.int32], layout: words.ClueLayout, left: list[int], right: list[int], nullable: bool
) -> Counts:
    """By definition: each row of one side with each of the other, in both orders."""
    arrays = (layout.left, layout.right, layout.scope, layout.ordered)
    comparisons = [(int(a), int(b), int(s), bool(o)) for a, b, s, o in zip(*arrays, strict=True)]
    pairs = [pair for t in left for u in right for pair in ([t, u], [u, t])]
    return oracle.count_clues(codes.tolist(), comparisons, pairs, nullable)


def counts_of(found: ClueSet) -> Counts:
    """Clues with counts, checked for what every clue set promises."""
    assert found.complete
    assert found.counts is not None
    assert found.clues.dtype == np.uint64
    rows = [tuple(int(word) for word in row) for row in found.clues]
    assert rows == sorted(set(rows))
    assert found.ordered_pairs == int(found.counts.sum())
    return dict(zip(rows, found.counts.tolist(), strict=True))


def check(seed: int, device: str, most_rows: int, most_columns: int = 6) -> None:
    """A random table, layout, rule for nulls and two sets of rows: the definition's answer."""
    rng = np.random.default_rng(seed)
    columns, rows = int(rng.integers(1, most_columns + 1)), int(rng.integers(2, most_rows + 1))
    codes, layout = gapped_table(rng, columns, rows), layout_of(rng, columns)
    order = rng.permutation(rows)
    cut = int(rng.integers(0, rows + 1))
    left, right = order[:cut], order[cut:]
    if cut and seed % 3 == 0:
        left = np.append(left, left[0])  # counts twice
    for nulls in ("unknown", "value"):
        found = collect_clues_between(codes, layout, left, right, nulls=nulls, device=device)
        assert counts_of(found) == expected(codes, layout, left.tolist(), right.tolist(), nulls == "unknown")
