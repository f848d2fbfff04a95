"""Pairs found in a sample, and by comparing all, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Comparison
from tuplewise.gpu_kernels.pair_search import find_by_comparing, find_sampled

OUTCOMES = (LESS, LESS | EQUAL, EQUAL, LESS | GREATER, GREATER, GREATER | EQUAL)


def satisfied(left: int, right: int, outcomes: int) -> bool:
    return bool(outcomes & (LESS if left < right else GREATER if left > right else EQUAL))


def clusters_of(rng: np.random.Generator, rows: int, *, reflexive: bool) -> ClusterPairs:
    """Rows by a class drawn for each as t, and another one as u."""
    sides = []
    for _ in range(1 if reflexive else 2):
        classes = rng.integers(0, 4, rows)
        order = np.argsort(classes, kind="stable").astype(np.int32)
        sides.append((order, np.searchsorted(classes[order], np.arange(5)).astype(np.int64)))
    return ClusterPairs(*sides[0], *sides[-1])


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_pairs_that_are_found_satisfy_all_comparisons(seed: int, reflexive: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, limit = int(rng.integers(1, 700 if seed % 4 == 0 else 100)), int(rng.integers(1, 20))
    values = np.array([-(2**31), -1, 0, 7, 2**31 - 1], dtype=np.int32)  # the ends of the range, too
    codes = values[rng.integers(0, int(rng.integers(1, 6)), (3, rows))]
    pairs = clusters_of(rng, rows, reflexive=reflexive)
    comparisons = [Comparison(*map(int, rng.integers(0, 3, 2)), int(rng.choice(OUTCOMES))) for _ in range(3)]
    allowed = {
        (t, u)
        for c in range(pairs.clusters)
        for t in pairs.left[pairs.left_offsets[c] : pairs.left_offsets[c + 1]].tolist()
        for u in pairs.right[pairs.right_offsets[c] : pairs.right_offsets[c + 1]].tolist()
        if t != u and all(satisfied(int(codes[x.left, t]), int(codes[x.right, u]), x.outcomes) for x in comparisons)
    }
    found = [
        list(map(tuple, find_sampled(pairs, codes, comparisons, blocks=blocks, limit=limit).tolist()))
        for blocks in (1, 10, 500, 500)
    ]
    for some in found:
        assert set(some) <= allowed
        assert len(set(some)) == len(some) <= limit
    assert found[2] == found[3]
    compared = list(map(tuple, find_by_comparing(pairs, codes, comparisons, limit=limit).tolist()))
    assert set(compared) <= allowed
    assert len(compared) == min(limit, len({t for t, _ in allowed}))  # one for each left row that has a partner
    if len(allowed) * 10 > pairs.pairs:  # so many that hardly any block is without one
        assert found[2]


def test_a_sample_is_spread_over_rows_and_clusters() -> None:
    codes = np.zeros((1, 4000), dtype=np.int32)
    offsets = np.array([0, 1000, 1000, 4000], dtype=np.int64)  # an empty cluster, too
    rows = np.arange(4000, dtype=np.int32)
    pairs = ClusterPairs(rows, offsets, rows, offsets)
    found = find_sampled(pairs, codes, [Comparison(0, 0, EQUAL)], blocks=200, limit=100)
    assert len(found) > 90
    assert len(np.unique(found[:, 0])) > 85


@pytest.mark.parametrize("rows", [0, 1])
def test_without_pairs_nothing_is_found(rows: int) -> None:
    nothing = all_rows(np.arange(rows, dtype=np.int32))
    codes = np.zeros((1, rows), dtype=np.int32)
    assert find_sampled(nothing, codes, [Comparison(0, 0, EQUAL)], blocks=9, limit=3).shape == (0, 2)
    assert find_by_comparing(nothing, codes, [Comparison(0, 0, EQUAL)], limit=3).shape == (0, 2)
