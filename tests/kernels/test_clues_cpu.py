"""Distinct clues of chosen pairs: against the definition, in portions, by direct table and by hashing."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clues import ComparableRows, lay_out
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.cpu import clues as cpu
from tuplewise.gpu_kernels.words import ACROSS, WITHIN_T, ClueLayout, make_layout

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from oracles import clues as oracle

Words = set[tuple[int, ...]]


def layout_of(rng: np.random.Generator, columns: int, across: bool = True) -> ClueLayout:
    comparisons = [(c, c, ACROSS, bool(rng.integers(2))) for c in range(columns)]
    if across:
        for c in range(columns - 1):
            for scope in (ACROSS, WITHIN_T):
                if rng.integers(2):
                    comparisons.append((c, c + 1, scope, bool(rng.integers(2))))
    return make_layout(comparisons)


def expected(codes: NDArray[np.int32], layout: ClueLayout, nulls: str, pairs: set[tuple[int, int]]) -> Words:
    """Clues of both orders of these pairs."""
    columns = zip(layout.left.tolist(), layout.right.tolist(), layout.scope.tolist(), layout.ordered, strict=True)
    comparisons = list(columns)
    table = codes.tolist()
    both = pairs | {(u, t) for t, u in pairs}
    return {oracle.words(oracle.clue(table, comparisons, t, u, nulls == "unknown")) for t, u in both}


def left_by(
    codes: NDArray[np.int32], layout: ClueLayout, nulls: str, rows: NDArray[np.int32]
) -> list[tuple[int, ...]]:
    """The clue of each pair of rows."""
    pairs = rows.tolist()
    return [next(iter(clue_of(codes, layout, nulls, t, u))) for t, u in pairs]


def clue_of(codes: NDArray[np.int32], layout: ClueLayout, nulls: str, t: int, u: int) -> Words:
    columns = zip(layout.left.tolist(), layout.right.tolist(), layout.scope.tolist(), layout.ordered, strict=True)
    return {oracle.words(oracle.clue(codes.tolist(), list(columns), t, u, nulls == "unknown"))}


def words(clues: NDArray[np.uint64]) -> Words:
    """As a set; checks that they are sorted and distinct."""
    rows = [tuple(int(w) for w in row) for row in clues]
    assert rows == sorted(set(rows))
    return set(rows)


def reflexive(rng: np.random.Generator, rows: int) -> ClusterPairs:
    """Random rows in random clusters."""
    members = rng.permutation(rows)[: rng.integers(rows + 1)].astype(np.int32)
    cuts = np.sort(rng.integers(0, len(members) + 1, rng.integers(1, 5)))
    offsets = np.concatenate([[0], cuts, [len(members)]]).astype(np.int64)
    return ClusterPairs(members, offsets, members, offsets)


def two_sided(rng: np.random.Generator, rows: int) -> ClusterPairs:
    a, b = reflexive(rng, rows), reflexive(rng, rows)
    clusters = min(a.clusters, b.clusters)
    ends = int(a.left_offsets[clusters]), int(b.left_offsets[clusters])
    return ClusterPairs(
        a.left[: ends[0]], a.left_offsets[: clusters + 1], b.left[: ends[1]], b.left_offsets[: clusters + 1]
    )


def row_pairs(pairs: ClusterPairs) -> set[tuple[int, int]]:
    found = set()
    for k in range(pairs.clusters):
        left = pairs.left[pairs.left_offsets[k] : pairs.left_offsets[k + 1]].tolist()
        right = pairs.right[pairs.right_offsets[k] : pairs.right_offsets[k + 1]].tolist()
        found |= {(t, u) for t in left for u in right if t != u}
    return found


def what_is_told(codes: NDArray[np.int32], pairs: set[tuple[int, int]]) -> set[tuple[frozenset[int], int, int, bool]]:
    """For each pair of rows and any two columns on which it differs (one of them twice, too): the columns on which it
    differs, the two, and whether it orders them alike."""
    table = codes.tolist()
    told = set()
    for t, u in pairs:
        signs = [(c[t] > c[u]) - (c[t] < c[u]) for c in table]
        differ = frozenset(a for a, sign in enumerate(signs) if sign)
        told |= {(differ, a, b, signs[a] == signs[b]) for a in differ for b in differ}
    return told


@pytest.mark.parametrize("columns", [1, 3, 15, 16, 17, 20, 21, 33])
@pytest.mark.parametrize("seed", range(4))
def test_clues_that_tell_nothing_new_may_be_left_out(seed: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "TASK_PAIRS", 1000)
    rng = np.random.default_rng(seed)
    varying = rng.permutation(columns)[:6]
    codes = np.zeros((columns, 90), dtype=np.int32)
    codes[varying] = rng.integers(-1, 5, (len(varying), 90))
    layout = make_layout([(c, c, ACROSS, True) for c in range(columns)])
    comparable = lay_out(codes, layout, nulls="value", threads=1 + seed % 2, telling=True)
    compared: set[tuple[int, int]] = set()
    left: set[tuple[int, int]] = set()
    returned = 0
    for pairs in (reflexive(rng, 90), two_sided(rng, 90), all_rows(np.arange(90, dtype=np.int32))):
        got = comparable.within(pairs)
        assert [*map(tuple, got.clues.tolist())] == left_by(codes, layout, "value", got.rows)
        compared |= row_pairs(pairs)
        left |= {(t, u) for t, u in got.rows.tolist()}
        returned += len(got.clues)
        assert left <= compared | {(u, t) for t, u in compared}
        assert what_is_told(codes, left) == what_is_told(codes, compared)
    if columns > 3:
        assert returned < 0.8 * len(expected(codes, layout, "value", compared))
    assert not len(comparable.within(all_rows(np.arange(90, dtype=np.int32))).clues) or seed % 2


def test_only_orders_of_single_columns_are_told() -> None:
    codes = np.zeros((2, 3), dtype=np.int32)
    plain = (0, 0, ACROSS, True)
    for comparison, nulls in (((0, 0, ACROSS, False), "value"), ((0, 1, ACROSS, True), "value"), (plain, "unknown")):
        with pytest.raises(ValueError, match="telling: True for this layout; allowed: for columns compared in order"):
            lay_out(codes, make_layout([comparison]), nulls=nulls, telling=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["direct", "hashed"])
@pytest.mark.parametrize("seed", range(60))
def test_portions_give_each_clue_once(seed: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    if how == "hashed":
        monkeypatch.setattr(cpu, "DIRECT_BITS", 0)
        monkeypatch.setattr(cpu, "KEY_BITS", int(rng.integers(2, 8)))  # several words a key
    monkeypatch.setattr(cpu, "TASK_PAIRS", int(rng.integers(1, 50)))
    rows, columns = int(rng.integers(2, 40)), int(rng.integers(1, 6))
    codes = rng.integers(-1, rng.integers(1, 6), (columns, rows)).astype(np.int32)
    layout = layout_of(rng, columns)
    nulls = ("unknown", "value")[int(rng.integers(2))]
    compared: set[tuple[int, int]] = set()
    comparable = lay_out(codes, layout, nulls=nulls, threads=int(rng.integers(1, 4)))  # type: ignore[arg-type]
    known: Words = set()
    for make in (reflexive, two_sided, reflexive):
        pairs = make(rng, rows)
        got = comparable.within(pairs)
        assert got.complete
        compared |= row_pairs(pairs)
        assert words(got.clues) == expected(codes, layout, nulls, compared) - known
        known |= words(got.clues)
        assert left_by(codes, layout, nulls, got.rows) == [tuple(map(int, clue)) for clue in got.clues]
    t, u = (rng.integers(0, rows, 20).astype(np.int32) for _ in range(2))
    chosen = set(zip(t.tolist(), u.tolist(), strict=True))
    counted = comparable.of_pairs(t, u, counting=True)
    assert words(counted.clues) == expected(codes, layout, nulls, chosen)
    assert counted.counts is not None
    assert counted.counts.sum() == counted.ordered_pairs == 40
    fresh = comparable.of_pairs(t, u)
    assert words(fresh.clues) == expected(codes, layout, nulls, chosen) - known
    assert len(comparable.of_pairs(u, t).clues) == 0


@pytest.mark.parametrize("sides", ["one", "two"])
def test_clusters_of_several_blocks(sides: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "TASK_PAIRS", 1 << 12)
    rng = np.random.default_rng(5)
    rows = 700
    codes = rng.integers(0, 4, (3, rows)).astype(np.int32)
    codes[:, 650] = 9  # rows whose pairs nobody else makes
    codes[:, 30] = [11, 0, 12]
    layout = layout_of(rng, 3)
    left = rng.permutation(rows).astype(np.int32)
    offsets = np.array([0, 600, 690], dtype=np.int64)
    right = rng.permutation(rows).astype(np.int32)[:690]
    pairs = (
        ClusterPairs(left[:690], offsets, left[:690], offsets)
        if sides == "one"
        else ClusterPairs(left[:690], offsets, right, offsets)
    )
    if sides == "one":
        pairs = ClusterPairs(pairs.left, offsets, pairs.left, offsets)
    found = lay_out(codes, layout).within(pairs)
    assert words(found.clues) == expected(codes, layout, "unknown", row_pairs(pairs))
    sizes = [600 * 599 + 90 * 89, 2 * (600 * 600 + 90 * 90)]
    assert found.ordered_pairs == sizes[sides == "two"]


@pytest.mark.parametrize("how", ["direct", "hashed"])
def test_calls_at_the_same_time_give_each_clue_once(how: str) -> None:
    """Thousands of clues, so that tables of hashed keys grow; no column is null."""
    rng = np.random.default_rng(3)
    rows, columns = 200, 7 if how == "direct" else 20
    codes = rng.integers(0, 40, (columns, rows)).astype(np.int32)
    layout = make_layout([(c, c, ACROSS, True) for c in range(columns)])
    comparable = lay_out(codes, layout, nulls="value")
    portions = [rng.permutation(rows)[:120].astype(np.int32) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = [new.clues for new in pool.map(lambda p: comparable.within(all_rows(np.sort(p)), threads=1), portions)]
    pairs = {(t, u) for p in portions for t in p.tolist() for u in p.tolist() if t != u}
    everything = np.concatenate(found)
    assert words(np.array(sorted(map(tuple, everything.tolist())), dtype=np.uint64)) == expected(
        codes, layout, "value", pairs
    )
    assert len(comparable.within(all_rows(portions[0])).clues) == 0


@pytest.mark.parametrize("columns", [1, 20])
def test_a_clue_and_its_mirror_tell_the_pairs_that_left_them(columns: int) -> None:
    """Rows that leave rare clues are looked for: two pairs of rows are told, not one of them in both orders."""
    codes = np.array([[0, 1, 0, 1]] * columns, dtype=np.int32)
    members, offsets = np.array([0, 1, 3, 2], dtype=np.int32), np.array([0, 2, 4], dtype=np.int64)
    comparable = lay_out(codes, make_layout([(c, c, ACROSS, True) for c in range(columns)]), nulls="value", threads=1)
    found = comparable.within(ClusterPairs(members, offsets, members, offsets))
    assert {tuple(pair) for pair in found.rows.tolist()} == {(0, 1), (3, 2)}


def test_counts_are_those_of_the_definition() -> None:
    codes = np.array([[1, 1, 2, -1]], dtype=np.int32)
    rows = lay_out(codes, make_layout([(0, 0, ACROSS, True)]))
    counted = rows.of_pairs(np.array([0, 0, 0, 1]), np.array([1, 2, 3, 2]), counting=True)
    assert counted.counts is not None
    by_clue = dict(zip(counted.clues.ravel().tolist(), counted.counts.tolist(), strict=True))
    assert by_clue == {0: 2, 1: 2, 2: 2, 3: 2}  # less, equal, greater, unknown


def test_a_deadline_that_is_over_leaves_pairs_out() -> None:
    codes = np.arange(3000, dtype=np.int32)[None]
    rows: ComparableRows = lay_out(codes, make_layout([(0, 0, ACROSS, True)]))
    found = rows.within(all_rows(np.arange(3000, dtype=np.int32)), deadline=time.monotonic() - 1)
    assert not found.complete


def test_no_rows_and_no_comparisons() -> None:
    empty = all_rows(np.empty(0, dtype=np.int32))
    assert len(lay_out(np.empty((2, 0), np.int32), make_layout([(0, 1, ACROSS, True)])).within(empty).clues) == 0
    found = lay_out(np.zeros((1, 3), np.int32), make_layout([])).within(all_rows(np.arange(3, dtype=np.int32)))
    assert found.clues.tolist() == [[0]]


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((1, 2), np.int64), "int32"),
        (np.zeros(2, np.int32), "dimensions"),
        (np.zeros((1, 2), np.int32), "column 1"),
    ],
)
def test_what_does_not_fit_is_refused(codes: NDArray[np.int32], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lay_out(codes, make_layout([(1, 1, ACROSS, False)]))
