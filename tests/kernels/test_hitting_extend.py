"""Minimal hitting sets continued with new edges: the same as from all edges together, and as by definition."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import hitting as oracle

from tuplewise.gpu_kernels.cpu import hitting_extend
from tuplewise.gpu_kernels.hitting import RevisedSets, extend_hitting_sets, minimal_hitting_sets, misses_some
from tuplewise.gpu_kernels.hitting_types import wanted_sets


def number(row: NDArray[np.uint64]) -> int:
    return sum(int(word) << (64 * w) for w, word in enumerate(row))


def as_rows(masks: list[int], words: int) -> NDArray[np.uint64]:
    rows = [[mask >> (64 * w) & (2**64 - 1) for w in range(words)] for mask in masks]
    return np.array(rows, dtype=np.uint64).reshape(len(masks), words)


class Cases:
    """Groups of two or three atoms, some held by no edge in front so that the others lie in any word; and edges."""

    def __init__(self, rng: np.random.Generator, groups: int, in_front: int = 0) -> None:
        self.rng = rng
        ordered = rng.integers(0, 2, groups)
        self.group = [g // 2 for g in range(in_front)]
        self.mirror = list(range(in_front))
        ends = [in_front]
        for g, is_ordered in enumerate(ordered):
            first = len(self.group)
            self.group += [in_front + g] * (3 if is_ordered else 2)
            self.mirror += [first + 2, first + 1, first] if is_ordered else [first, first + 1]
            ends.append(len(self.group))
        self.bounds = list(pairwise(ends))
        self.atoms = len(self.group)
        self.words = -(-self.atoms // 64)

    def edges(self, count: int, closed: bool) -> list[int]:
        """One outcome a group, or all where it is unknown; sometimes twice."""
        edges = []
        for _ in range(count):
            edge = 0
            for first, last in self.bounds:
                whole = self.rng.random() < 0.15
                edge |= ((1 << last) - (1 << first)) if whole else 1 << int(self.rng.integers(first, last))
            edges += [edge] * int(self.rng.integers(1, 3))
            edges += [oracle.mirrored(edge, self.mirror)] if closed else []
        return edges


def check_kept(result: RevisedSets, before: NDArray[np.uint64]) -> None:
    stays = result.kept >= 0
    np.testing.assert_array_equal(result.sets[stays], before[result.kept[stays]])
    assert len(set(result.kept[stays].tolist())) == stays.sum()
    new = {number(row) for row in result.sets[~stays]}
    assert len(new) == (~stays).sum()
    assert not new & {number(row) for row in before}
    np.testing.assert_array_equal(np.lexsort(result.sets.T[::-1]), np.arange(len(result.sets)))


@pytest.mark.parametrize("seed", range(300))
def test_equals_all_edges_together_and_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([7, seed])
    monkeypatch.setattr(hitting_extend, "TASK_SETS", int(rng.integers(1, 40)))
    monkeypatch.setattr(hitting_extend, "TASK_WORDS", 1 if seed % 2 else 1 << 20)
    in_front = 0 if seed % 4 < 2 else int(rng.integers(50, 140)) // 2 * 2
    cases = Cases(rng, int(rng.integers(1, 5)), in_front)
    closed = bool(rng.integers(0, 2))
    most_groups = int(rng.integers(1, 4)) if seed % 3 == 0 else None
    wanted = wanted_sets(
        np.array(cases.group, dtype=np.int32),
        mirror=np.array(cases.mirror, dtype=np.int32) if closed else None,
        exclusive=seed % 5 == 0,
        max_groups=most_groups,
    )
    threads = 1 + seed % 2
    edges = cases.edges(int(rng.integers(0, 6)), closed)
    sets = minimal_hitting_sets(as_rows(edges, cases.words), wanted, threads=threads).sets
    for _ in range(int(rng.integers(1, 5))):
        new = cases.edges(int(rng.integers(0, 8)), closed)
        new += [edges[i] for i in rng.integers(0, len(edges), 2)] if edges and not closed else []
        before = sets
        result = extend_hitting_sets(
            sets, as_rows(edges, cases.words), as_rows(new, cases.words), wanted, threads=threads
        )
        edges, sets = edges + new, result.sets
        assert result.complete
        check_kept(result, before)
        found = {number(row) for row in sets}
        together = minimal_hitting_sets(as_rows(edges, cases.words), wanted, threads=threads).sets
        expected = {number(row) for row in together}
        if closed:
            others = {oracle.mirrored(chosen, cases.mirror) for chosen in found}
            assert all(oracle.mirrored(chosen, cases.mirror) == chosen for chosen in found & others)
            found |= others
            expected |= {oracle.mirrored(chosen, cases.mirror) for chosen in expected}
        assert found == expected
        # the oracle tries all sets: it gets the atoms behind those in front only
        behind = [edge >> in_front for edge in edges]
        by_definition = oracle.minimal_sets(
            behind, [1] * len(behind), 0, cases.group[in_front:], seed % 5 == 0, most_groups or 99
        )
        assert {chosen >> in_front for chosen in found} == set(by_definition)


def test_wide_edges_round_after_round() -> None:
    """Edges over three words, thousands of sets, bitmaps of several words; rounds that keep most sets, and few."""
    rng = np.random.default_rng(11)
    group = np.repeat(np.arange(50), 3).astype(np.int32)
    atoms = len(group)
    edges = np.zeros((700, 3), dtype=np.uint64)
    for g in range(0, 50, 7):  # in all three words; no edge holds atoms of other groups
        outcome = rng.integers(0, 3, 700)
        for o in range(3):
            atom = 3 * g + o
            edges[outcome == o, atom // 64] |= np.uint64(1) << np.uint64(atom % 64)
    sets = minimal_hitting_sets(edges[:40], wanted_sets(group)).sets
    shares = []
    for begin, end in pairwise([40, 41, 100, 300, 690, 692, 700]):
        before = sets
        result = extend_hitting_sets(sets, edges[:begin], edges[begin:end], wanted_sets(group))
        sets = result.sets
        check_kept(result, before)
        np.testing.assert_array_equal(sets, minimal_hitting_sets(edges[:end], wanted_sets(group)).sets)
        missing = np.array([(before[i] & edges[begin:end]).any(axis=1).all() for i in range(len(before))])
        np.testing.assert_array_equal(misses_some(before, edges[begin:end], atoms=atoms), ~missing)
        shares.append(float(missing.mean()))
    assert min(shares) < 0.3
    assert max(shares) > 0.7


def test_nothing_new_nothing_before_nothing_holds() -> None:
    group = np.array([0, 0, 1, 1], dtype=np.int32)
    none = np.empty((0, 1), dtype=np.uint64)
    root = minimal_hitting_sets(none, wanted_sets(group)).sets
    same = extend_hitting_sets(root, none, none, wanted_sets(group))
    assert same.kept.tolist() == [0]
    first = extend_hitting_sets(root, none, np.array([[0b0101]], dtype=np.uint64), wanted_sets(group))
    assert first.sets[:, 0].tolist() == [0b0001, 0b0100]
    assert first.kept.tolist() == [-1, -1]
    again = extend_hitting_sets(first.sets, first.sets[:1] | first.sets[1:], none, wanted_sets(group))
    assert again.kept.tolist() == [0, 1]
    never = extend_hitting_sets(
        first.sets, np.array([[0b0101]], dtype=np.uint64), np.zeros((1, 1), dtype=np.uint64), wanted_sets(group)
    )
    assert len(never.sets) == len(never.kept) == 0
    assert never.complete
    still = extend_hitting_sets(none, np.zeros((1, 1), np.uint64), np.array([[1]], np.uint64), wanted_sets(group))
    assert len(still.sets) == 0


def test_a_deadline_ends_the_search_and_says_so() -> None:
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(20), 3).astype(np.int32)
    outcome = rng.integers(0, 3, (20000, 20))
    edges = (np.uint64(1) << (3 * np.arange(20) + outcome).astype(np.uint64)).sum(axis=1, dtype=np.uint64)[:, None]
    sets = minimal_hitting_sets(edges[:8], wanted_sets(group)).sets
    told: list[float] = []
    started = time.monotonic()
    found = extend_hitting_sets(
        sets, edges[:8], edges[8:], wanted_sets(group), deadline=started + 0.3, progress=told.append
    )
    assert not found.complete
    assert told == sorted(told)
    assert told[-1] < 1
    for row in found.sets[:100]:
        assert (edges[:, 0] & row[0] != 0).all()


@pytest.mark.parametrize("name", ["sets", "edges", "new_edges"])
def test_bad_arguments(name: str) -> None:
    arguments = {"sets": np.ones((1, 1), np.uint64), "edges": np.ones((1, 1), np.uint64)}
    arguments |= {"new_edges": np.ones((1, 1), np.uint64), name: np.ones((1, 2), np.uint64)}
    with pytest.raises(ValueError, match=f"^{name}: uint64 array of shape"):
        extend_hitting_sets(**arguments, wanted=wanted_sets(np.zeros(2, np.int32)))
