"""Minimal hitting sets against the definition: exact, weighted, mirrored, limited, and however the work is split."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from oracles import hitting as oracle

from tuplewise.gpu_kernels.cpu import hitting as cpu
from tuplewise.gpu_kernels.hitting import HittingSets, minimal_hitting_sets
from tuplewise.gpu_kernels.hitting_types import wanted_sets


def random_problem(rng: np.random.Generator, symmetric: bool) -> tuple[dict[int, int], list[int], list[int]]:
    """Edges (mask to weight) with one outcome a group, or all where it is unknown; groups; the mirror of each atom."""
    ordered = rng.integers(0, 2, int(rng.integers(1, 5)))
    group: list[int] = []
    mirror: list[int] = []
    offset = [0]
    for g, is_ordered in enumerate(ordered):
        first = len(group)
        group += [g] * (3 if is_ordered else 2)
        mirror += [first + 2, first + 1, first] if is_ordered else [first, first + 1]
        offset.append(len(group))
    edges: dict[int, int] = {}
    for _ in range(int(rng.integers(1, 25))):
        edge = 0
        for first, last in pairwise(offset):
            edge |= ((1 << last) - (1 << first)) if rng.random() < 0.15 else 1 << int(rng.integers(first, last))
        edges[edge] = int(rng.integers(1, 5))
    if symmetric:
        for edge, weight in list(edges.items()):
            edges[oracle.mirrored(edge, mirror)] = edges[edge] = weight
        for edge in list(edges):
            edges[oracle.mirrored(edge, mirror)] = edges[edge]
    return edges, group, mirror


def as_dict(found: HittingSets) -> dict[int, int]:
    sets = {
        sum(int(word) << (64 * w) for w, word in enumerate(row)): int(unhit)
        for row, unhit in zip(found.sets, found.uncovered, strict=True)
    }
    assert len(sets) == len(found.sets)
    return sets


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(60))
def test_equals_definition(seed: int, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "SPLIT_LEVELS", levels)
    rng = np.random.default_rng([seed, levels])
    symmetric = seed % 2 == 0
    edges, group, mirror = random_problem(rng, symmetric)
    budget = int(rng.integers(0, sum(edges.values()) // 2 + 1)) if seed % 3 else 0
    exclusive = seed % 5 == 0
    most_groups = int(rng.integers(1, 4)) if seed % 7 == 0 else len(set(group))
    found = as_dict(
        minimal_hitting_sets(
            np.array(list(edges), dtype=np.uint64)[:, None],
            wanted_sets(
                np.array(group, dtype=np.int32),
                mirror=np.array(mirror, dtype=np.int32) if symmetric else None,
                exclusive=exclusive,
                max_groups=most_groups,
            ),
            weights=np.array(list(edges.values()), dtype=np.int64),
            budget=budget,
            threads=1 + seed % 2,
        )
    )
    if symmetric:
        others = {oracle.mirrored(chosen, mirror): unhit for chosen, unhit in found.items()}
        both = set(others) & set(found)
        assert all(oracle.mirrored(chosen, mirror) == chosen for chosen in both)
        found |= others
    assert found == oracle.minimal_sets(list(edges), list(edges.values()), budget, group, exclusive, most_groups)


@pytest.mark.parametrize("atoms", [63, 64, 65, 127, 128, 129, 200])
def test_pairs_at_the_edges_of_words(atoms: int) -> None:
    """Edges {2k, 2k + 1} of the last three pairs: a minimal set takes one atom of each."""
    pairs = [(atoms - 2 * k - 2, atoms - 2 * k - 1) for k in range(3)]
    edges = np.zeros((3, -(-atoms // 64)), dtype=np.uint64)
    for row, pair in enumerate(pairs):
        for a in pair:
            edges[row, a // 64] |= np.uint64(1) << np.uint64(a % 64)
    group = np.arange(atoms, dtype=np.int32)
    # groups of one atom would be trivial at once: give each atom a partner that no edge holds
    group = np.concatenate([group, group]).astype(np.int32)
    wide = np.zeros((3, -(-2 * atoms // 64)), dtype=np.uint64)
    wide[:, : edges.shape[1]] = edges
    found = as_dict(minimal_hitting_sets(wide, wanted_sets(group)))
    expected = {sum(1 << pairs[k][(choice >> k) & 1] for k in range(3)) for choice in range(8)}
    assert set(found) == expected


def test_no_edge_and_empty_edge() -> None:
    group = np.array([0, 0], dtype=np.int32)
    nothing = minimal_hitting_sets(np.empty((0, 1), dtype=np.uint64), wanted_sets(group))
    assert as_dict(nothing) == {0: 0}
    never = minimal_hitting_sets(np.zeros((1, 1), dtype=np.uint64), wanted_sets(group))
    assert as_dict(never) == {}


def test_order_of_edges_and_threads_change_nothing() -> None:
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(8), 3).astype(np.int32)
    outcome = rng.integers(0, 3, (600, 8))
    edges = (np.uint64(1) << (3 * np.arange(8) + outcome).astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    edges = np.unique(edges)[:, None]
    first = minimal_hitting_sets(edges, wanted_sets(group), threads=1)
    second = minimal_hitting_sets(rng.permutation(edges), wanted_sets(group), threads=2)
    assert first.complete
    assert len(first.sets) > 500
    np.testing.assert_array_equal(first.sets, second.sets)
    for row in first.sets[:: len(first.sets) // 100]:
        assert (edges[:, 0] & row[0] != 0).all()
        for a in range(24):
            if int(row[0]) >> a & 1:
                assert (edges[:, 0] & (row[0] & ~(np.uint64(1) << np.uint64(a))) == 0).any()


def test_a_deadline_ends_the_search_and_says_so() -> None:
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(20), 3).astype(np.int32)
    outcome = rng.integers(0, 3, (20000, 20))
    edges = (np.uint64(1) << (3 * np.arange(20) + outcome).astype(np.uint64)).sum(axis=1, dtype=np.uint64)[:, None]
    found = minimal_hitting_sets(edges, wanted_sets(group), deadline=time.monotonic() + 0.3)
    assert not found.complete
    for row in found.sets[:100]:
        assert (edges[:, 0] & row[0] != 0).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"edges": np.zeros((2, 3), dtype=np.uint64)}, "allowed: uint64"),
        ({"budget": -1}, "must be 0 or more"),
        ({"budget": 1}, "needs weights"),
    ],
)
def test_bad_arguments(change: dict[str, object], says: str) -> None:
    arguments: dict[str, object] = {
        "edges": np.ones((1, 1), dtype=np.uint64),
        "wanted": wanted_sets(np.zeros(2, dtype=np.int32)),
    }
    with pytest.raises(ValueError, match=says):
        minimal_hitting_sets(**(arguments | change))  # type: ignore[arg-type]


def test_a_mirror_of_other_atoms_is_refused() -> None:
    with pytest.raises(ValueError, match="mirror: 3 entries; allowed: one for each of 2 atoms"):
        wanted_sets(np.zeros(2, dtype=np.int32), mirror=np.arange(3, dtype=np.int32))


# ---------------------------------------------------------------- what chance would leave unhit


@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize("seed", range(60))
def test_relative_to_chance_equals_definition(seed: int, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "SPLIT_LEVELS", levels)
    rng = np.random.default_rng([seed, levels, 1])
    symmetric = seed % 2 == 0
    edges, group, mirror = random_problem(rng, symmetric)
    exclusive = seed % 5 == 0
    most_groups = int(rng.integers(1, 4)) if seed % 7 == 0 else len(set(group))
    most = sum(edges.values()) * float(rng.choice([0.3, 0.6, 0.9]))
    chances = np.ones((max(group) + 1, 8))
    for g, row in enumerate(chances):
        single = {a: rng.uniform(0.2, 1) for a in range(len(group)) if group[a] == g}
        if symmetric:
            single = {a: single[min(a, mirror[a])] for a in single}
        for pattern in range(8):
            row[pattern] = np.prod([single.get(group.index(g) + k, 1.0) for k in range(3) if pattern >> k & 1])
    found = as_dict(
        minimal_hitting_sets(
            np.array(list(edges), dtype=np.uint64)[:, None],
            wanted_sets(
                np.array(group, dtype=np.int32),
                mirror=np.array(mirror, dtype=np.int32) if symmetric else None,
                exclusive=exclusive,
                max_groups=most_groups,
            ),
            weights=np.array(list(edges.values()), dtype=np.int64),
            budget=int(most),
            most=most,
            chances=chances,
            threads=1 + seed % 2,
        )
    )
    if symmetric:
        found |= {oracle.mirrored(chosen, mirror): unhit for chosen, unhit in found.items()}
    weights = list(edges.values())
    expected = oracle.minimal_sets_by_chance(
        list(edges), weights, most, chances.tolist(), group, exclusive, most_groups
    )
    assert found == expected
