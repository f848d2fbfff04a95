"""The published index against its definition: chains, what Fetch finds, and that no violating pair is missing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from dc_tables import encode, random_table
from numpy.typing import NDArray

from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.predicate import PredicateSpace, build_space
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.published.incdc import chains
from tuplewise.engine.published.incdc import indexes as indexes_module
from tuplewise.engine.published.incdc.chain_loops import ANY, EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, LIVE
from tuplewise.engine.published.incdc.chains import ChainIndexes, ChainOrder, optimal_chains
from tuplewise.engine.published.incdc.indexes import PublishedIndexes
from tuplewise.engine.published.incdc.selection import IndexScores, select_indexes
from tuplewise.gpu_kernels.words import ACROSS

Codes = NDArray[np.int32]
NULL_RULES = ("unknown", "value")
NONE_MARKED = np.empty(0, dtype=np.int32)

# Tables 1, 2, 8 and 9 of the paper, the columns that its examples use.
TAX = np.array(
    [
        # Date, NUM, SAL, TXA, RATE
        (20140410, 1448, 32000, 3000, 124), (20140224, 1401, 50000, 1500, 142), (20140413, 1486, 30000, 3400, 121),
        (20130403, 1386, 55000, 1300, 204), (20140329, 1427, 7500, 0, 121), (20130404, 1386, 6500, 900, 24),
        (20150324, 1547, 95000, 1100, 285), (20130322, 1368, 40000, 3300, 143), (20140218, 1478, 33000, 1400, 205),
        (20150213, 1533, 32000, 3200, 123),
    ],
    dtype=np.int32,
)  # fmt: skip
DATE, NUM, SAL, TXA, RATE = range(5)
SAMPLE = np.array(
    [(7, 5, 7, 9), (8, 6, 3, 25), (30, 8, 9, 11), (40, 0, 2, 15), (15, 7, 17, 22), (25, 2, 15, 30), (3, 22, 20, 10)],
    dtype=np.int32,
)
A, B, C, D = range(4)
STRICT = (True, True)


def made(codes: Codes, rows: int, *orders: ChainOrder, unknown: bool = False) -> ChainIndexes:
    """Indexes of the first rows."""
    indexes = ChainIndexes(unknown, rows)
    indexes.add(orders, codes, flags_of(rows))
    return indexes


def flags_of(rows: int, gone: Sequence[int] = ()) -> NDArray[np.uint8]:
    flags = np.full(rows, LIVE, dtype=np.uint8)
    flags[list(gone)] = 0
    return flags


def fetched(
    indexes: ChainIndexes, codes: Codes, new: int, *boxes: tuple[int, ...], gone: Sequence[int] = ()
) -> list[int]:
    """Earlier rows in these boxes, ascending."""
    table = np.array(boxes, dtype=np.int32)
    found = []
    for t, u in indexes.fetch(codes, (new, new + 1), table, flags_of(len(codes), gone), NONE_MARKED):
        assert (t == new).all()
        found += u.tolist()
    assert len(set(found)) == len(found)
    return sorted(found)


def candidate_pairs(indexes: PublishedIndexes, first: int, codes: Codes) -> chains.Pairs:
    """What `portions` gives, at once."""
    found = [(NONE_MARKED, NONE_MARKED), *indexes.portions(first, codes)]
    return np.concatenate([t for t, _ in found]), np.concatenate([u for _, u in found])


def stands(a: int, operator: int, b: int) -> bool:
    return {LESS: a < b, LESS_EQUAL: a <= b, GREATER: a > b, GREATER_EQUAL: a >= b, EQUAL: a == b}[operator]


def random_codes(rng: random.Random, rows: int, columns: int) -> Codes:
    """Gapped codes with ties and nulls; often correlated."""
    values = rng.choice([2, 4, 9, 30])
    slope = rng.choice([-1, 0, 1])
    table = []
    for _ in range(rows):
        first = rng.randrange(values)
        row = [first] + [slope * first % values + rng.randrange(values) for _ in range(columns - 1)]
        table.append([-1 if rng.random() < 0.1 else v * 7919 + 13 for v in row])
    return np.array(table, dtype=np.int32).reshape(rows, columns)


# ---------------------------------------------------------------- the paper's examples


def test_examples_6_and_7_fetch() -> None:
    indexes = made(TAX, 7, ChainOrder(TXA, SAL, (False, True), STRICT))
    assert sorted(indexes.chains(0)) == [[4, 5], [6, 3, 1, 0, 2]]
    assert fetched(indexes, TAX, 8, (0, TXA, LESS, SAL, GREATER)) == [3, 6]
    assert fetched(indexes, TAX, 8, (0, TXA, GREATER, SAL, LESS)) == [0, 2]


def test_example_8_fetch_across_columns() -> None:
    indexes = made(SAMPLE, 6, ChainOrder(A, C, (False, True), STRICT), ChainOrder(B, D, (True, False), STRICT))
    assert indexes.ranks == [2, 2]
    assert sorted(indexes.chains(1)) == [[0, 3], [2, 4, 1, 5]]
    assert fetched(indexes, SAMPLE, 6, (0, B, GREATER, D, LESS)) == [2, 3]
    assert fetched(indexes, SAMPLE, 6, (1, A, LESS, C, GREATER)) == [5]


def test_examples_9_and_10_an_index_read_the_other_way() -> None:
    indexes = made(TAX, 7, ChainOrder(DATE, NUM, (True, True), STRICT))
    assert indexes.chains(0) == [[6, 2, 0, 4, 1, 5], [3]]
    assert fetched(indexes, TAX, 8, (0, DATE, GREATER, NUM, LESS)) == [0, 1, 4]
    assert fetched(indexes, TAX, 8, (0, DATE, LESS, NUM, GREATER)) == []


def test_equal_values_share_a_chain_where_the_operators_allow_it() -> None:
    assert made(TAX, 7, ChainOrder(DATE, NUM, (True, True))).ranks == [1]


def test_examples_11_and_12_a_row_goes_into_its_gap() -> None:
    order = ChainOrder(DATE, NUM, (True, True), STRICT)
    codes = TAX[[0, 1, 2, 3, 4, 5, 6, 9]]
    indexes = made(codes, 7, order)
    indexes.absorb(codes, flags_of(8), 8)
    assert indexes.chains(0) == [[6, 7, 2, 0, 4, 1, 5], [3]]


def numbers_of(space: PredicateSpace, *rule: tuple[int, str]) -> list[int]:
    """Predicate numbers of `t.column operator u.column`."""
    names = ["==", "!=", "<", "<=", ">", ">="]
    groups = {int(c): g for g, c in enumerate(space.left)}
    return [int(space.first_predicate[groups[c]]) + names.index(o) for c, o in rule]


def space_of(codes: Codes, **options: Any) -> PredicateSpace:
    table = [(f"c{i}", "integer", [None if v < 0 else int(v) for v in column]) for i, column in enumerate(codes.T)]
    return build_space(encode(table), DcDiscoverOptions(device="cpu", **options))


def test_example_5_and_the_pairs_that_end_a_constraint() -> None:
    space = space_of(TAX, cross_columns=False)
    third = numbers_of(space, (TXA, ">"), (SAL, "<"), (RATE, ">"))
    indexes = PublishedIndexes(TAX[:7], space, [third[:2]], nulls="unknown")
    t, u = candidate_pairs(indexes, 7, TAX[:9])
    pairs = set(zip(t.tolist(), u.tolist(), strict=True))
    assert {other for row, other in pairs if row == 8} >= {0, 2, 3, 6}
    assert {(7, 1), (8, 3)} <= pairs


def test_example_13_correlated_columns_rise_together() -> None:
    space = space_of(TAX, cross_columns=False)
    fourth = numbers_of(space, (DATE, "<"), (NUM, ">="))
    scores = IndexScores(TAX, np.arange(7, dtype=np.int32), True, 0)
    assert scores.correlation(DATE, NUM) > 0.8
    assert select_indexes(space, [fourth], scores).indexes == {(DATE, NUM): False}
    assert select_indexes(space, [numbers_of(space, (TXA, "<"), (SAL, "<"))], scores).indexes == {(SAL, TXA): False}


# ---------------------------------------------------------------- chains


def comparable(a: Sequence[int], b: Sequence[int], order: ChainOrder) -> bool:
    """Whether two points may stand in one chain, either way round."""
    for one, other in ((a, b), (b, a)):
        signs = [-1 if falls else 1 for falls in order.descending]
        steps = [s * (y - x) for s, x, y in zip(signs, one, other, strict=True)]
        if all(step > 0 or (step == 0 and not strict) for step, strict in zip(steps, order.strict, strict=True)):
            return True
    return False


def largest_antichain(points: list[tuple[int, int]], order: ChainOrder) -> int:
    """By trying all sets."""
    apart = [sum(1 << j for j, q in enumerate(points) if p == q or not comparable(p, q, order)) for p in points]
    largest = 0
    for chosen in range(1 << len(points)):
        members = [i for i in range(len(points)) if chosen >> i & 1]
        if len(members) > largest and all(apart[i] & chosen == chosen for i in members):
            largest = len(members)
    return largest


EVERY_ORDER = [ChainOrder(0, 1, (a, b), (c, d)) for a, b, c, d in itertools.product((False, True), repeat=4)]


@pytest.mark.parametrize("order", EVERY_ORDER, ids=str)
def test_rank_is_the_largest_set_without_comparable_points(order: ChainOrder) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        values = rng.choice([2, 3, 6])
        codes = np.array([[rng.randrange(values), rng.randrange(values)] for _ in range(9)], dtype=np.int32)
        keys = order.keys(codes, np.arange(9, dtype=np.int32))
        _, offsets = optimal_chains(keys, order)
        assert len(offsets) - 1 == largest_antichain(sorted(set(map(tuple, codes.tolist()))), order)


def check_chains(indexes: ChainIndexes, index: int, codes: Codes, there: set[int]) -> None:
    """The specification: every row in one chain, and in a chain each row stands in both operators to those before."""
    order = indexes.orders[index]
    listed = indexes.chains(index)
    assert sorted(itertools.chain(*listed)) == sorted(there)
    signs = [-1 if falls else 1 for falls in order.descending]
    for chain in listed:
        assert chain
        points = [tuple(s * int(codes[row, c]) for s, c in zip(signs, order.columns, strict=False)) for row in chain]
        assert points == sorted(points)
        distinct = list(dict.fromkeys(points))
        assert sum(p != q for p, q in itertools.pairwise(points)) == len(distinct) - 1
        for p, q in itertools.combinations(distinct, 2):
            steps = zip(p, q, order.strict, strict=False)
            assert all(y > x or (y == x and not strict) for x, y, strict in steps)


@pytest.mark.parametrize("order", [*EVERY_ORDER, ChainOrder(0), ChainOrder(1, None, (True, False))], ids=str)
@pytest.mark.parametrize("unknown", [True, False])
def test_chains_stay_chains_as_rows_come_and_go(order: ChainOrder, unknown: bool) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        codes = random_codes(rng, 60, 2)
        indexes = made(codes, 40, order, unknown=unknown)
        gone: list[int] = []
        for end in (41, 47, 60):
            gone += rng.sample(range(end - 1), 3)
            indexes.absorb(codes, flags_of(60, gone), end)
            there = {
                row
                for row in set(range(end)) - set(gone)
                if not (unknown and any(codes[row, c] < 0 for c in order.columns))
            }
            check_chains(indexes, 0, codes, there)
        assert indexes.absorbed == 60


def test_an_index_that_doubled_has_the_least_rank_again() -> None:
    rng = random.Random(5)
    codes = np.array([[rng.randrange(1000), rng.randrange(1000)] for _ in range(700)], dtype=np.int32)
    indexes = made(codes, 100, ChainOrder(0, 1))
    for end in range(110, 701, 10):
        indexes.absorb(codes, flags_of(700), end)
        if end == 200:
            drifted = indexes.ranks[0]
            assert drifted >= made(codes, 200, ChainOrder(0, 1)).ranks[0]
        if end == 210:
            assert indexes.ranks == made(codes, 210, ChainOrder(0, 1)).ranks


# ---------------------------------------------------------------- Fetch and Fetch+


@pytest.mark.parametrize("unknown", [True, False])
def test_fetch_finds_exactly_the_rows_of_both_conditions(unknown: bool) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        codes = random_codes(rng, 50, 4)
        columns = (rng.randrange(4), rng.randrange(4))
        order = ChainOrder(*columns, (rng.random() < 0.5, rng.random() < 0.5), (rng.random() < 0.5, rng.random() < 0.5))
        indexes = made(codes, 30, order, ChainOrder(columns[0]), unknown=unknown)
        if rng.random() < 0.5:
            indexes.absorb(codes, flags_of(50), 37)
        gone = rng.sample(range(40), 4)
        for new in (40, 45, 49):
            for ops in itertools.product((LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL), repeat=2):
                own = (rng.randrange(4), rng.randrange(4))
                wanted = []
                for row in sorted(set(range(new)) - set(gone)):
                    cells = [(int(codes[row, c]), int(codes[new, o])) for c, o in zip(columns, own, strict=True)]
                    if not (unknown and min(map(min, cells)) < 0):
                        wanted.append((row, [stands(a, op, b) for (a, b), op in zip(cells, ops, strict=True)]))
                both = [row for row, kept in wanted if all(kept)]
                assert fetched(indexes, codes, new, (0, own[0], ops[0], own[1], ops[1]), gone=gone) == both
            alone = [
                row
                for row in sorted(set(range(new)) - set(gone))
                if stands(int(codes[row, columns[0]]), EQUAL, int(codes[new, own[0]]))
                and not (unknown and min(codes[row, columns[0]], codes[new, own[0]]) < 0)
            ]
            assert fetched(indexes, codes, new, (1, own[0], EQUAL, 0, ANY), gone=gone) == alone


def test_boxes_that_share_rows_hand_them_out_once() -> None:
    codes = np.array([[i % 3, i % 5] for i in range(30)], dtype=np.int32)
    indexes = made(codes, 20, ChainOrder(0, 1), ChainOrder(0))
    boxes = [(0, 0, LESS_EQUAL, 1, LESS_EQUAL), (0, 0, GREATER_EQUAL, 1, LESS_EQUAL), (1, 0, EQUAL, 0, ANY)]
    wanted = [r for r in range(29) if codes[r, 1] <= codes[29, 1] or codes[r, 0] == codes[29, 0]]
    assert fetched(indexes, codes, 29, *boxes) == wanted


def test_pairs_that_need_more_room_than_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_ROOM_ROWS", 1)
    codes = np.zeros((60, 1), dtype=np.int32)
    indexes = made(codes, 20, ChainOrder(0))
    boxes = np.array([(0, 0, EQUAL, 0, ANY)], dtype=np.int32)
    found = []
    for t, u in indexes.fetch(codes, (20, 60), boxes, flags_of(60), NONE_MARKED):
        assert 0 < len(t) <= 60
        found += zip(t.tolist(), u.tolist(), strict=True)
    assert found == [(a, b) for a in range(20, 60) for b in range(a)]


# ---------------------------------------------------------------- every violating pair


def violates(space: PredicateSpace, numbers: Sequence[int], t: Sequence[int], u: Sequence[int], nulls: str) -> bool:
    """Whether the ordered pair (t, u) satisfies all predicates, by definition."""
    for p in numbers:
        group = int(space.predicate_group[p])
        a = t[int(space.left[group])]
        b = (u if space.scope[group] == ACROSS else t)[int(space.right[group])]
        if nulls == "unknown" and (a == -1 or b == -1):
            return False
        if not [a == b, a != b, a < b, a <= b, a > b, a >= b][int(space.predicate_operator[p])]:
            return False
    return True


def violating(
    space: PredicateSpace, rules: list[list[int]], codes: Codes, first: int, gone: set[int], nulls: str
) -> set[tuple[int, int]]:
    """Pairs with a row from `first` on that violate a rule in either order."""
    rows = codes.tolist()

    def broken(t: int, u: int) -> bool:
        return any(violates(space, rule, rows[t], rows[u], nulls) for rule in rules)

    pairs = ((t, u) for t in range(first, len(rows)) for u in range(t) if not {t, u} & gone)
    return {(t, u) for t, u in pairs if broken(t, u) or broken(u, t)}


def pairs_of(indexes: PublishedIndexes, first: int, codes: Codes) -> set[tuple[int, int]]:
    t, u = candidate_pairs(indexes, first, codes)
    assert t.dtype == u.dtype == np.int32
    pairs = list(zip(t.tolist(), u.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert all(first <= a < len(codes) and 0 <= b < a for a, b in pairs)
    return set(pairs)


def random_rules(rng: random.Random, space: PredicateSpace, count: int) -> list[list[int]]:
    sizes = [min(space.predicates, rng.choice([1, 1, 2, 2, 3, 4])) for _ in range(count)]
    return [rng.sample(range(space.predicates), size) for size in sizes]


@pytest.mark.parametrize("nulls", NULL_RULES)
@pytest.mark.parametrize("types", [["integer"] * 3, ["integer", "integer", "text", "text"], ["text"] * 2 + ["boolean"]])
def test_no_violating_pair_is_missing(nulls: Any, types: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(15):
        rng = random.Random(seed)
        monkeypatch.setattr(indexes_module, "_TAIL_ROWS", rng.choice([1, 2, 5, 256]))
        table = random_table(seed, rows=45, types=types, values=rng.choice([2, 4, 6]), null_share=0.1)
        relation = encode(table)
        cross = rng.random() < 0.7
        options = DcDiscoverOptions(
            device="cpu", nulls=nulls, cross_columns=cross, single_tuple=cross, shared_values=Decimal(0)
        )
        space = build_space(relation, options)
        codes = np.where(relation.codes.T < 0, -1, relation.codes.T * 101 + 7).astype(np.int32, order="C")
        rules = random_rules(rng, space, rng.choice([1, 2, 8]))
        known = rng.choice([0, 1, 20])
        indexes = PublishedIndexes(codes[:known], space, rules, nulls=nulls, seed=seed)
        gone: set[int] = set()
        for end in (known + 1, known + 12, known + 13, 45):
            first = indexes_rows(indexes)
            found = pairs_of(indexes, first, codes[:end])
            assert found >= violating(space, rules, codes[:end], first, gone, nulls)
            assert not any({t, u} & gone for t, u in found)
            born = random_rules(rng, space, 2)
            indexes.cover(born)
            rules += born
            leaving = rng.sample(range(end), min(3, end))
            indexes.remove(leaving)
            gone.update(leaving)


def indexes_rows(indexes: PublishedIndexes) -> int:
    """How many rows are known: the number that the next call has to name."""
    return indexes.rows


@pytest.mark.parametrize("nulls", NULL_RULES)
def test_constraints_that_hold_are_covered(nulls: Any) -> None:
    for seed in range(4):
        table = random_table(
            seed, rows=70, types=["integer"] * 2 + ["text"], values=9, fewest=5, null_share=0.05, repeat_share=0
        )
        relation = encode(table)
        options = DcDiscoverOptions(device="cpu", nulls=nulls, shared_values=Decimal(0))
        space = build_space(relation, options)
        codes = np.ascontiguousarray(relation.codes.T)
        first = encode([(n, t, v[:50]) for n, t, v in table])
        found = discover(first, options)
        names = {str(space.predicate(p)): p for p in range(space.predicates)}
        rules = [[names[str(p)] for p in rule.predicates if str(p) in names] for rule in found.constraints]
        rules = [r for r, rule in zip(rules, found.constraints, strict=True) if len(r) == len(rule)][:100]
        assert rules
        indexes = PublishedIndexes(codes[:50], space, rules, nulls=nulls)
        assert pairs_of(indexes, 50, codes) >= violating(space, rules, codes, 50, set(), nulls)


def test_what_each_kind_of_constraint_asks_for() -> None:
    rows = 200
    rng = random.Random(3)
    codes = np.array([[i, i // 2, rng.randrange(9), i % 7] for i in range(rows)], dtype=np.int32)
    space = space_of(codes, cross_columns=False)
    indexes = PublishedIndexes(codes, space, [numbers_of(space, (0, "=="), (2, "!="))], nulls="unknown")
    assert indexes.described == [{"kind": "equality", "columns": ["c0"], "along": ["rises"], "rank": 1, "boxes": 1}]
    assert pairs_of(indexes, rows, np.vstack((codes, codes[5:6]))) == {(rows, 5)}

    indexes = PublishedIndexes(codes, space, [numbers_of(space, (0, "<"), (1, ">"))], nulls="unknown")
    assert indexes.described == [
        {"kind": "chains", "columns": ["c0", "c1"], "along": ["rises", "rises"], "rank": 1, "boxes": 2}
    ]
    grown = np.vstack((codes, [[50, 20, 0, 0]])).astype(np.int32)
    assert pairs_of(indexes, rows, grown) == {(rows, r) for r in range(42, 50)}

    constant = codes * [1, 1, 0, 1]
    indexes = PublishedIndexes(constant.astype(np.int32), space, [numbers_of(space, (2, "!="))], nulls="unknown")
    assert [d["kind"] for d in indexes.described] == ["sorted"]
    more = np.vstack((constant, [[1, 1, 0, 1], [1, 1, 4, 1]])).astype(np.int32)
    assert pairs_of(indexes, rows, more) == {(rows + 1, r) for r in range(rows + 1)}


def test_a_constraint_without_predicates_wants_every_pair() -> None:
    codes = np.zeros((4, 1), dtype=np.int32)
    space = space_of(codes)
    indexes = PublishedIndexes(codes[:1], space, [[]], nulls="unknown")
    assert pairs_of(indexes, 1, codes) == {(t, u) for t in range(1, 4) for u in range(t)}
    indexes.remove([0])
    grown = np.zeros((5, 1), dtype=np.int32)
    assert pairs_of(indexes, 4, grown) == {(4, 1), (4, 2), (4, 3)}


def test_rows_in_the_wrong_place_are_refused() -> None:
    codes = np.zeros((4, 1), dtype=np.int32)
    indexes = PublishedIndexes(codes[:2], space_of(codes), [], nulls="unknown")
    with pytest.raises(ValueError, match="first 3 must be the number of rows known, 2, of 4 given"):
        indexes.portions(3, codes)


# ---------------------------------------------------------------- SelectIndex


def test_equalities_of_many_values_come_first_then_inequalities_then_the_rest() -> None:
    rows = 400
    rng = random.Random(1)
    key, few = list(range(rows)), [rng.randrange(5) for _ in range(rows)]
    codes = np.array([key, few, [3 * k + 1 for k in key], [rng.randrange(rows) for _ in key]], dtype=np.int32).T.copy()
    space = space_of(codes, cross_columns=False)
    scores = IndexScores(codes, np.arange(rows, dtype=np.int32), True, 0)
    assert scores.equality(((0,),)) == 0
    assert scores.equality(((1,),)) == 1 - 5 / rows
    good = numbers_of(space, (0, "=="), (1, "=="), (3, "<"))
    assert list(select_indexes(space, [good], scores).indexes) == [(0,)]
    poor = numbers_of(space, (1, "=="), (2, "<"), (3, "<"))
    assert list(select_indexes(space, [poor], scores).indexes) == [(2, 3)]
    poorer = numbers_of(space, (1, "=="), (2, "<"))
    assert list(select_indexes(space, [poorer], scores).indexes) == [(1,)]
    few_values = numbers_of(space, (1, "<"), (2, "!="))
    assert list(select_indexes(space, [few_values], scores).indexes) == [(1, 2)]
    # Correlated columns are preferred, and one index serves all constraints that it can.
    both = [numbers_of(space, (0, "<"), (2, ">="), (3, "<")), numbers_of(space, (0, "!="), (2, "!="))]
    chosen = select_indexes(space, both, scores)
    assert chosen.indexes == {(0, 2): False}
    assert len(chosen.servings) == 2
    # What is built already serves first.
    assert select_indexes(space, [good], scores, [(1,)]).indexes == {}


def test_the_direction_follows_the_correlation_else_the_constraint() -> None:
    rng = random.Random(2)
    codes = np.array([[i, 500 - i, rng.randrange(1000)] for i in range(500)], dtype=np.int32)
    space = space_of(codes, cross_columns=False)
    scores = IndexScores(codes, np.arange(500, dtype=np.int32), True, 0)
    assert select_indexes(space, [numbers_of(space, (0, "<"), (1, "<"))], scores).indexes == {(0, 1): True}
    assert abs(scores.correlation(0, 2)) < 0.3
    assert select_indexes(space, [numbers_of(space, (0, "<"), (2, ">"))], scores).indexes == {(0, 2): True}
    assert select_indexes(space, [numbers_of(space, (0, ">"), (2, ">="))], scores).indexes == {(0, 2): False}


def test_correlation_is_of_ranks_and_of_rows_that_have_both_values() -> None:
    codes = np.array([[0, 5], [1, 6], [2, 1000], [-1, 0], [3, -1]], dtype=np.int32)
    rows = np.arange(5, dtype=np.int32)
    assert IndexScores(codes, rows, True, 0).correlation(0, 1) == pytest.approx(1)
    assert IndexScores(codes, rows, False, 0).correlation(0, 1) < 1
    assert IndexScores(codes[:1], rows[:1], True, 0).correlation(0, 1) == 0
    assert IndexScores(codes, rows, True, 0).distinct_share(0) == 4 / 5
    assert IndexScores(codes[:0], rows[:0], True, 0).distinct_share(0) == 1
