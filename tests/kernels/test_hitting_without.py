"""Minimal hitting sets after edges have gone: the same as from the edges that are left, and as by definition."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import hitting as oracle

from tuplewise.gpu_kernels import hitting
from tuplewise.gpu_kernels.hitting import RevisedSets, minimal_hitting_sets, without_edges
from tuplewise.gpu_kernels.hitting_types import wanted_sets


def number(row: NDArray[np.uint64]) -> int:
    return sum(int(word) << (64 * w) for w, word in enumerate(row))


def as_rows(masks: list[int], words: int = 1) -> NDArray[np.uint64]:
    rows = [[mask >> (64 * w) & (2**64 - 1) for w in range(words)] for mask in masks]
    return np.array(rows, dtype=np.uint64).reshape(len(masks), words)


def numbers(rows: NDArray[np.uint64]) -> set[int]:
    result = {number(row) for row in rows}
    assert len(result) == len(rows)
    return result


def check_kept(result: RevisedSets, before: NDArray[np.uint64]) -> None:
    stays = result.kept >= 0
    np.testing.assert_array_equal(result.sets[stays], before[result.kept[stays]])
    assert len(set(result.kept[stays].tolist())) == stays.sum()
    assert not numbers(result.sets[~stays]) & numbers(before)
    np.testing.assert_array_equal(np.lexsort(result.sets.T[::-1]), np.arange(len(result.sets)))


class Cases:
    """Groups of two or three atoms, or any edges at all; in any place of the words."""

    def __init__(self, rng: np.random.Generator, groups: int, in_front: int = 0) -> None:
        self.rng = rng
        self.group = [g // 2 for g in range(in_front)]
        self.mirror = list(range(in_front))
        ends = [in_front]
        for g, is_ordered in enumerate(rng.integers(0, 2, groups)):
            first = len(self.group)
            self.group += [in_front + g] * (3 if is_ordered else 2)
            self.mirror += [first + 2, first + 1, first] if is_ordered else [first, first + 1]
            ends.append(len(self.group))
        self.in_front = in_front
        self.bounds = list(pairwise(ends))
        self.atoms = len(self.group)
        self.words = -(-self.atoms // 64)
        self.any_edge = bool(rng.random() < 0.4)

    def edge(self) -> int:
        """One outcome a group, or all where it is unknown; or any atoms, sometimes none."""
        if self.any_edge:
            dense = self.rng.choice([0.2, 0.5, 0.8])
            return sum(1 << a for a in range(self.in_front, self.atoms) if self.rng.random() < dense)
        edge = 0
        for first, last in self.bounds:
            whole = self.rng.random() < 0.15
            edge |= ((1 << last) - (1 << first)) if whole else 1 << int(self.rng.integers(first, last))
        return edge

    def edges(self, count: int, closed: bool) -> list[int]:
        """Sometimes twice; with their mirrors where asked for."""
        edges = []
        for _ in range(count):
            edge = self.edge()
            edges += [edge] * int(self.rng.integers(1, 3))
            edges += [oracle.mirrored(edge, self.mirror)] if closed else []
        return edges


def definition(cases: Cases, edges: list[int], exclusive: bool, most_groups: int) -> set[int]:
    """The oracle tries all sets: it gets the atoms behind those in front only."""
    shift = cases.in_front
    behind = [edge >> shift for edge in edges]
    found = oracle.minimal_sets(behind, [1] * len(behind), 0, cases.group[shift:], exclusive, most_groups)
    return {chosen << shift for chosen in found}


def one_of_each_pair(sets: set[int], cases: Cases) -> list[int]:
    """Either one of a set and its mirror, whichever chance takes."""
    result = []
    for chosen in sorted(sets):
        other = oracle.mirrored(chosen, cases.mirror)
        if chosen <= other:
            result.append(chosen if cases.rng.random() < 0.5 else other)
    return result


@pytest.mark.parametrize("seed", range(150))
def test_equals_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hitting, "MOST_GONE", 0.2 if seed % 3 == 0 else 99)
    rng = np.random.default_rng([21, seed])
    for case in range(20):
        in_front = 0 if case % 4 < 2 else int(rng.integers(50, 140)) // 2 * 2
        cases = Cases(rng, int(rng.integers(1, 4)), in_front)
        closed, exclusive = bool(rng.integers(0, 2)), case % 5 == 0
        most_groups = int(rng.integers(1, 4)) if case % 3 == 0 else 99
        wanted = wanted_sets(
            np.array(cases.group, dtype=np.int32),
            mirror=np.array(cases.mirror, dtype=np.int32) if closed else None,
            exclusive=exclusive,
            max_groups=None if most_groups == 99 else most_groups,
        )
        edges = cases.edges(int(rng.integers(0, 9)), closed)
        removed = cases.edges(int(rng.integers(0, 5)), closed)
        if edges and rng.random() < 0.3:  # still there: not removed at all
            again = edges[int(rng.integers(len(edges)))]
            removed += [again, oracle.mirrored(again, cases.mirror)] if closed else [again]
        before = definition(cases, edges + removed, exclusive, most_groups)
        given = as_rows(one_of_each_pair(before, cases) if closed else sorted(before), cases.words)
        result = without_edges(
            given, as_rows(edges, cases.words), as_rows(removed, cases.words), wanted, threads=1 + case % 2
        )
        assert result.complete
        check_kept(result, given)
        found = numbers(result.sets)
        if closed:
            others = {oracle.mirrored(chosen, cases.mirror) for chosen in found}
            assert all(oracle.mirrored(chosen, cases.mirror) == chosen for chosen in found & others)
            found |= others
        assert found == definition(cases, edges, exclusive, most_groups)


@pytest.mark.parametrize("most_gone", [0.2, 99])
@pytest.mark.parametrize("closed", [False, True])
def test_many_sets_over_three_words(closed: bool, most_gone: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One edge goes, then more, then most; the same as a search from nothing."""
    monkeypatch.setattr(hitting, "MOST_GONE", most_gone)
    rng = np.random.default_rng(12)
    groups = np.arange(50)
    group = np.repeat(groups, 3).astype(np.int32)
    mirror = (3 * groups[:, None] + np.array([2, 1, 0])).ravel().astype(np.int32)
    outcome = rng.integers(0, 3, (300, 8))
    outcome = np.concatenate([outcome, 2 - outcome])
    edges = np.zeros((600, 3), dtype=np.uint64)
    for column, g in enumerate(range(0, 50, 7)):  # in all three words; no edge holds atoms of other groups
        atom = 3 * g + outcome[:, column]
        edges[np.arange(600), atom // 64] |= np.uint64(1) << (atom % 64).astype(np.uint64)
    wanted = wanted_sets(group, mirror=mirror if closed else None)
    sets = minimal_hitting_sets(edges, wanted).sets
    assert len(sets) > 1000
    left = np.arange(300)
    for take in (1, 1, 20, 150, 128):
        gone, left = left[:take], left[take:]
        both = np.concatenate([left, left + 300])
        result = without_edges(sets, edges[both], edges[np.concatenate([gone, gone + 300])], wanted)
        check_kept(result, sets)
        expected = minimal_hitting_sets(edges[both], wanted).sets
        if closed:
            # the given set of a mirror pair stays, and the search from nothing may name the other
            expected = np.unique(np.concatenate([expected, mirrored_rows(expected, mirror)]), axis=0)
            found = np.unique(np.concatenate([result.sets, mirrored_rows(result.sets, mirror)]), axis=0)
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_array_equal(result.sets, expected)
        sets = result.sets
    assert len(left) == 0
    assert sets.tolist() == [[0, 0, 0]]


def mirrored_rows(rows: NDArray[np.uint64], mirror: NDArray[np.int32]) -> NDArray[np.uint64]:
    return as_rows([oracle.mirrored(number(row), mirror.tolist()) for row in rows], rows.shape[1])


def test_nothing_goes_and_everything_goes() -> None:
    group = np.array([0, 0, 1, 1], dtype=np.int32)
    none = as_rows([])
    sets = as_rows([0b0001, 0b0100])
    same = without_edges(sets, as_rows([0b0101]), none, wanted_sets(group))
    assert same.kept.tolist() == [0, 1]
    still = without_edges(sets, as_rows([0b0101]), as_rows([0b0101, 0b0111]), wanted_sets(group))
    assert still.kept.tolist() == [0, 1]
    empty = without_edges(sets, none, as_rows([0b0101]), wanted_sets(group))
    assert empty.sets.tolist() == [[0]]
    assert empty.kept.tolist() == [-1]
    # an edge without atoms kept every set away
    freed = without_edges(none, as_rows([0b0101]), as_rows([0]), wanted_sets(group))
    assert freed.sets[:, 0].tolist() == [0b0001, 0b0100]
    never = without_edges(none, as_rows([0]), as_rows([0b0101, 0]), wanted_sets(group))
    assert len(never.sets) == len(never.kept) == 0


def test_a_deadline_ends_the_search_and_says_so() -> None:
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(20), 3).astype(np.int32)
    outcome = rng.integers(0, 3, (20000, 20))
    edges = (np.uint64(1) << (3 * np.arange(20) + outcome).astype(np.uint64)).sum(axis=1, dtype=np.uint64)[:, None]
    started = time.monotonic()
    found = without_edges(
        edges[:0], edges[:19990], edges[19990:], wanted_sets(group), deadline=started + 0.3
    )  # the given sets play no part in what is new
    assert not found.complete
    assert time.monotonic() - started < 30
    for row in found.sets[:100]:
        assert (edges[:19990, 0] & row[0] != 0).all()


@pytest.mark.parametrize("name", ["sets", "edges", "removed"])
def test_bad_arguments(name: str) -> None:
    arguments: dict[str, Any] = {"sets": np.ones((1, 1), np.uint64), "edges": np.ones((1, 1), np.uint64)}
    arguments |= {"removed": np.ones((1, 1), np.uint64), name: np.ones((1, 2), np.uint64)}
    with pytest.raises(ValueError, match=f"^{name}: uint64 array of shape"):
        without_edges(**arguments, wanted=wanted_sets(np.zeros(2, np.int32)))
