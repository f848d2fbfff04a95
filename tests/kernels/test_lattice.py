"""Levels of the lattice of contexts against the definition, with columns on both sides of every word's edge."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from tuplewise.gpu_kernels.lattice import Lattice

Open = dict[tuple[int, ...], set[int]]


def masks(sets: list[tuple[int, ...]] | list[set[int]], bits: int) -> NDArray[np.uint64]:
    found = np.zeros((len(sets), max(1, -(-bits // 64))), dtype=np.uint64)
    for row, members in enumerate(sets):
        for m in members:
            found[row, m // 64] |= np.uint64(1 << (m % 64))
    return found


def attributes_of(context: NDArray[np.uint64]) -> tuple[int, ...]:
    number = sum(int(word) << (64 * w) for w, word in enumerate(context))
    return tuple(a for a in range(number.bit_length()) if number >> a & 1)


def as_sets(lattice: Lattice) -> Open:
    contexts = [attributes_of(context) for context in lattice.contexts]
    assert contexts == sorted(contexts, key=lambda c: c[::-1])
    rows, targets = lattice.candidates(0, len(lattice))
    found: Open = {context: set() for context in contexts}
    for row, target in zip(rows.tolist(), targets.tolist(), strict=True):
        found[contexts[row]].add(target)
    return found


def grown(before: Open, own: list[set[int]]) -> Open:
    """By definition: what is open for every subset with one attribute less, and isn't about an attribute."""
    attributes = {a for context in before for a in context} or set(range(len(own)))
    size = len(next(iter(before), ())) + 1
    found = {}
    for context in combinations(sorted(attributes), size):
        subsets = [before.get(subset, set()) for subset in combinations(context, size - 1)]
        open_ = set.intersection(*subsets) - set().union(*(own[a] for a in context))
        if open_:
            found[context] = open_
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("attributes", "targets"), [(1, 1), (5, 3), (7, 64), (9, 65), (6, 200)])
def test_levels_equal_definition(attributes: int, targets: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = [set(np.flatnonzero(rng.random(targets) < 0.2).tolist()) for _ in range(attributes)]
    lattice = Lattice(masks(own, targets), targets, threads=2)
    expected: Open = {(): set(range(targets))}
    while expected:
        assert as_sets(lattice) == expected
        rows, places = lattice.candidates(0, len(lattice))
        closed = rng.random(len(rows)) < 0.1
        contexts = [attributes_of(context) for context in lattice.contexts]
        for row, target in zip(rows[closed].tolist(), places[closed].tolist(), strict=True):
            expected[contexts[row]].discard(target)
        lattice.close(rows[closed], places[closed])
        expected = grown({c: t for c, t in expected.items() if t}, own) if any(expected.values()) else {}
        assert lattice.grow()
    assert len(lattice) == 0
    assert lattice.grow()


@pytest.mark.parametrize("attributes", [63, 64, 65, 128, 129, 257])
def test_every_pair_of_many_attributes(attributes: int) -> None:
    """One target, none of them in it; the attributes at the words' edges closed."""
    lattice = Lattice(np.zeros((attributes, 1), dtype=np.uint64), 1)
    assert lattice.grow()
    edges = [a for a in (0, 63, 64, 127, 128, 256) if a < attributes]
    lattice.strike(masks([(a,) for a in edges], attributes), np.ones((len(edges), 1), dtype=np.uint64))
    assert lattice.grow()
    kept = [a for a in range(attributes) if a not in edges]
    assert set(as_sets(lattice)) == set(combinations(kept, 2))
    assert lattice.counts().tolist() == [1] * len(lattice)


def test_blocks_hold_every_context_once() -> None:
    rng = np.random.default_rng(5)
    lattice = Lattice(np.zeros((40, 2), dtype=np.uint64), 100)
    lattice.grow()
    lattice.open &= rng.integers(0, 2**63, lattice.open.shape, dtype=np.uint64)
    for most in (1, 60, 500, 10**9):
        blocks = lattice.blocks(most)
        assert [first for first, _ in blocks] == [0, *(last for _, last in blocks[:-1])]
        assert blocks[-1][1] == len(lattice)
        assert max(int(lattice.counts()[a:b].sum()) for a, b in blocks) <= most + 100
    lattice.end()
    assert lattice.blocks(10) == []


def test_strike_meets_contexts_that_are_here_only() -> None:
    lattice = Lattice(np.zeros((4, 1), dtype=np.uint64), 3)
    lattice.grow()
    lattice.strike(masks([(1,), (2, 3), (3,)], 4), np.array([[0b101], [0b111], [0b111]], dtype=np.uint64))
    assert as_sets(lattice) == {(0,): {0, 1, 2}, (1,): {1}, (2,): {0, 1, 2}}


def test_deadline_leaves_the_level_as_it_is() -> None:
    lattice = Lattice(np.zeros((4, 1), dtype=np.uint64), 3)
    lattice.grow()
    assert not lattice.grow(deadline=time.monotonic() - 1)
    assert len(lattice) == 4
    assert lattice.size == 1


def test_without_targets_or_attributes() -> None:
    assert len(Lattice(np.zeros((3, 1), dtype=np.uint64), 0)) == 0
    lattice = Lattice(np.zeros((0, 1), dtype=np.uint64), 1)
    assert len(lattice) == 1
    assert lattice.grow()
    assert len(lattice) == 0


def test_own_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"own: uint64 array of shape \(3, 1\); allowed: uint64 \(attributes, 2\)"):
        Lattice(np.zeros((3, 1), dtype=np.uint64), 65)
