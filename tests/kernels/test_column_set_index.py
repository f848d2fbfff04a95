"""Boxes of old rows, scans and searches against loops over all pairs by definition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tuplewise.gpu_kernels import column_set_index
from tuplewise.gpu_kernels.column_set_index import SPARE, ClueTable, Comparing, SortedRows
from tuplewise.gpu_kernels.column_set_types import Queries, Term
from tuplewise.gpu_kernels.cpu import zones
from tuplewise.gpu_kernels.words import WITHIN_T, make_layout, mirror_clues

LAYOUT = make_layout([(0, 0, 0, True), (1, 1, 0, False), (2, 2, 0, True), (0, 2, 0, True), (0, 2, WITHIN_T, True)])
LISTS = [[1, 0, 2], [2], [0, 2]]
TERMS: list[tuple[int, list[Term]]] = [
    (0, [(1, 0, 1), (0, 2, 0), (2, 5, 2)]),
    (0, [(1, 1, 1), (0, 3, 2)]),
    (1, [(2, 4, 0)]),
    (2, [(0, 0, 0), (2, 1, 2), (2, 2, 0)]),
    (1, []),
]


def holds(value: int, operator: int, mine: int) -> bool:
    return (value == mine, value != mine, value < mine, value <= mine, value > mine, value >= mine)[operator]


def satisfied(codes: NDArray[np.int32], r: int, u: int, terms: Sequence[Term], unknown: bool) -> bool:
    for old, operator, new in terms:
        if unknown and (codes[u, old] < 0 or codes[r, new] < 0):
            return False
        if not holds(int(codes[u, old]), operator, int(codes[r, new])):
            return False
    return True


def outcome(a: int, b: int, ordered: bool, unknown: bool) -> int:
    if unknown and (a < 0 or b < 0):
        return 3
    return 1 if a == b else (2 if ordered and a > b else 0)


def clue_of(codes: NDArray[np.int32], t: int, u: int, unknown: bool) -> int:
    clue = 0
    for g in range(LAYOUT.comparisons):
        left, right, scope = int(LAYOUT.left[g]), int(LAYOUT.right[g]), int(LAYOUT.scope[g])
        a = codes[t if scope in (0, WITHIN_T) else u, left]
        b = codes[t if scope == WITHIN_T else u, right]
        clue |= outcome(int(a), int(b), bool(LAYOUT.ordered[g]), unknown) << (2 * g)
    return clue


def table_of(rng: np.random.Generator, rows: int, values: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    codes = (rng.integers(-1, values, (rows, 3)) * 1000).astype(np.int32)
    codes[codes < 0] = -1
    return codes, rng.random(rows) < 0.8


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("by_classes", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_a_new_row_meets_the_earlier_rows_of_its_boxes(
    seed: int, by_classes: bool, whole: bool, nulls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_set_index, "FEW_PROBING", 0 if by_classes else 512)
    rng = np.random.default_rng(seed)
    old = int(rng.integers(0, 400))
    codes, alive = table_of(rng, old + 70, int(rng.integers(1, 9)))
    alive[old:] = True
    span = (0, old) if seed % 2 else (old // 3, old + 70)  # the second: as rows of the tail meet each other
    rows = SortedRows.build(codes, LISTS, [whole] * len(LISTS), span)
    queries = Queries.of_terms(rows.lists, [i for i, _ in TERMS], [terms for _, terms in TERMS])
    comparing = Comparing(LAYOUT, nulls)
    known = ClueTable(np.zeros((0, LAYOUT.words), dtype=np.uint64))
    met, compared = comparing.probe(codes, alive, old, old + 70, rows, queries, known)
    unknown = nulls == "unknown"
    wanted: set[int] = set()
    for q, (_, terms) in enumerate(TERMS):
        pairs = [
            (r, u)
            for r in range(old, old + 70)
            for u in range(span[0], min(span[1], r))
            if alive[u] and satisfied(codes, r, u, terms, unknown)
        ]
        if len({old_column for old_column, _, _ in terms}) == len(terms):
            assert compared[q] == len(pairs)
        else:
            assert compared[q] >= len(pairs)  # a box may hold more than a query asks for
        wanted |= {clue_of(codes, r, u, unknown) for r, u in pairs}
    found = [int(clue) for clue in met.clues.ravel()]
    assert len(found) == len(set(found))
    assert wanted <= set(found)
    for clue, (t, u) in zip(found, met.rows.tolist(), strict=True):
        assert clue_of(codes, t, u, unknown) == clue
        assert alive[u]
        assert span[0] <= u < min(t, span[1])
        assert t >= old


@pytest.mark.parametrize("seed", range(8))
def test_classes_are_found_where_an_order_has_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, _ = table_of(rng, int(rng.integers(1, 300)), int(rng.integers(1, 40)))
    chosen, of_columns = (np.array(columns, dtype=np.int32) for columns in ([1, 0], [2, 0]))
    order = np.lexsort((codes[:, 2], codes[:, 0], codes[:, 1])).astype(np.int32)
    order = np.where(rng.random(len(order)) < 0.1, -order - 1, order).astype(np.int32)
    rows = np.lexsort((codes[:, 0], codes[:, 2])).astype(np.int32)
    places = np.empty((len(rows), 2), dtype=np.int32)
    zones.find_classes(codes, chosen, order, of_columns, rows, places)
    held = [tuple(codes[u if u >= 0 else -u - 1, chosen].tolist()) for u in order.tolist()]
    for row, (start, end) in zip(rows.tolist(), places.tolist(), strict=True):
        mine = tuple(codes[row, of_columns].tolist())
        assert [k for k, theirs in enumerate(held) if theirs == mine] == list(range(start, end))


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("seed", range(6))
def test_a_scan_compares_with_all_and_counts(seed: int, nulls: str) -> None:
    rng = np.random.default_rng(seed)
    count, start = int(rng.integers(2, 700)), int(rng.integers(0, 2))
    codes, alive = table_of(rng, count, 4)
    by_column = np.pad(codes[start:].T, ((0, 0), (0, SPARE)))
    comparing, unknown = Comparing(LAYOUT, nulls), nulls == "unknown"
    new = np.sort(rng.choice(np.arange(start, count), min(count - start, 70), replace=False)).astype(np.int32)
    every = np.unique([clue_of(codes, int(r), u, unknown) for r in new for u in range(start, count) if u != r])
    if not len(every):
        return
    known = every[:: 2].astype(np.uint64)[:, None]
    for only_before in (True, False):
        met, counts = comparing.scan(
            codes, alive, new, start, count, by_column, ClueTable(known), only_before=only_before, counting=len(known)
        )
        wanted: dict[int, int] = {}
        for r in new.tolist():
            for u in range(start, r if only_before else count):
                if alive[u] and u != r:
                    clue = clue_of(codes, r, u, unknown)
                    wanted[clue] = wanted.get(clue, 0) + 1
        found = dict(zip([int(c) for c in met.clues.ravel()], met.counts.tolist(), strict=True))
        found |= {int(c): int(k) for c, k in zip(known.ravel(), counts, strict=True) if k}
        assert found == wanted


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_is_sought_until_all_rows_were_looked_at(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, alive = table_of(rng, int(rng.integers(2, 120)), 3)
    rows = SortedRows.build(codes, LISTS, [True] * len(LISTS))
    comparing, living = Comparing(LAYOUT, "unknown"), np.flatnonzero(alive).astype(np.int32)
    there = {clue_of(codes, int(t), int(u), True) for t in living for u in living if t != u}
    wanted = [*sorted(there)[:10], *rng.integers(0, 4 ** LAYOUT.comparisons, 3).tolist()]
    for clue in wanted:
        for index in range(len(LISTS)):
            t, u, complete = comparing.seek(
                codes, alive, living, np.array([clue], dtype=np.uint64), rows, index, 10_000_000
            )
            assert (t >= 0) == (clue in there)
            assert complete or t >= 0
            if t >= 0:
                assert alive[t]
                assert alive[u]
                assert clue_of(codes, t, u, True) == clue
    assert comparing.seek(codes, alive, living, np.array([0], dtype=np.uint64), rows, 0, 0)[2] == (len(living) == 0)


@pytest.mark.parametrize("seed", range(8))
def test_renewed_orders_are_those_built_anew(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old, more = int(rng.integers(0, 200)), int(rng.integers(0, 60))
    codes, alive = table_of(rng, old + more, 5)
    kept = np.flatnonzero(alive)
    number = np.full(old + more, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept))
    before = SortedRows.build(codes, LISTS[:2], [True, False], (0, old))
    after = codes[kept]
    added = np.arange(old, old + more, dtype=np.int32)
    renewed = before.renewed(codes, added, number, after, LISTS, [True, False, True])
    anew = SortedRows.build(after, LISTS, [True, False, True])
    for name, array in anew.arrays().items():
        if name != "orders":
            assert np.array_equal(array, getattr(renewed, name)), name
    for i, columns in enumerate(LISTS):
        mine, theirs = (np.where(o < 0, -o - 1, o) for o in (renewed.order(i), anew.order(i)))
        assert np.array_equal(after[mine][:, columns], after[theirs][:, columns])
    assert sorted(renewed.order(0).tolist()) == list(range(len(kept)))


def test_rows_are_found_by_their_values() -> None:
    codes, alive = table_of(np.random.default_rng(5), 100, 6)
    rows = SortedRows.build(codes, LISTS, [True] * len(LISTS))
    wanted = np.concatenate([codes[:, [0, 2]], np.array([[7, 7]], dtype=np.int32)])
    found = rows.find(2, codes, alive, wanted)
    for row, values in zip(found.tolist(), wanted.tolist(), strict=True):
        there = [r for r in range(100) if alive[r] and codes[r, [0, 2]].tolist() == values]
        assert row in there if there else row == -1


def test_known_clues_are_told_from_others() -> None:
    clues = np.random.default_rng(1).integers(0, 4**15, (500, 2)).astype(np.uint64)
    clues[0] = 0
    table = ClueTable(np.unique(clues[:200], axis=0))
    every = np.concatenate([np.unique(clues[:200], axis=0), clues[200:]])
    assert (table.numbers_of(clues[200:]) < 0).all()
    table.add(every)
    assert np.array_equal(every[table.numbers_of(every)], every)
    assert (table.numbers_of(every[:200]) == np.arange(200)).all()


def test_terms_of_a_clue_hold_for_its_pairs() -> None:
    codes, _ = table_of(np.random.default_rng(3), 40, 3)
    comparing = Comparing(LAYOUT, "unknown")
    t, u = (np.array(side, dtype=np.int32) for side in np.nonzero(~np.eye(40, dtype=np.bool_)))
    clues = comparing.of_pairs(codes, t, u)
    assert [int(c) for c in clues.ravel()] == [
        clue_of(codes, int(a), int(b), True) for a, b in zip(t, u, strict=True)
    ]
    assert np.array_equal(comparing.of_pairs(codes, u, t), mirror_clues(clues, LAYOUT))
    for clue, a, b in zip(clues[::7], t[::7], u[::7], strict=True):
        assert satisfied(codes, int(a), int(b), column_set_index.terms_of_clue(clue, LAYOUT), False)
