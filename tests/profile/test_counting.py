"""What is counted of candidates, by definition: with nulls left out, and with nulls as values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import profile as oracle
from profile_tables import Table, numbers_of, rows_of, tables, without_none

from tuplewise.engine.options import Nulls
from tuplewise.engine.profile import counting
from tuplewise.engine.profile.candidates import _count_both
from tuplewise.engine.profile.rows import SampledPairs
from tuplewise.engine.profile.rule import Rule, order_constraint

NULLS = st.sampled_from(["unknown", "value"])
quick = settings(deadline=None, max_examples=50)


def as_counted(table: Table, nulls: Nulls) -> Table:
    """The table as the oracle has to see it."""
    return table if nulls == "unknown" else without_none(table)


@quick
@given(tables(columns=4), NULLS)
def test_fds(table: Table, nulls: Nulls) -> None:
    rows, seen = rows_of(table, nulls), as_counted(table, nulls)
    for left in ((), (0,), (0, 1), (0, 1, 2)):
        targets = [c for c in range(4) if c not in left]
        for target, found in counting.count_fds(rows, left, targets).items():
            assert found.rows == len(oracle.rows_with_values(seen, [*left, target]))
            assert found.exceptions == oracle.fd_removals(seen, left, target)
            assert found.evidence == pytest.approx(float(oracle.fd_evidence(seen, left, target)))
            assert found.strength == pytest.approx(float(oracle.mu_plus(seen, left, target)), abs=1e-3)
            if not found.exceptions and found.evidence:
                assert found.strength == 1.0


@quick
@given(tables(columns=3), NULLS)
def test_keys(table: Table, nulls: Nulls) -> None:
    rows, seen = rows_of(table, nulls), as_counted(table, nulls)
    for columns in ((0,), (0, 1), (0, 1, 2)):
        found = counting.count_key(rows, columns)
        by_chance = oracle.doubles_by_chance(seen, columns)
        assert found.rows == len(oracle.rows_with_values(seen, columns))
        assert found.exceptions == oracle.key_removals(seen, columns)
        assert found.evidence == pytest.approx(float(by_chance), abs=1e-9)
        strength = max(0, 1 - oracle.doubles(seen, columns) / by_chance) if by_chance else 0
        assert found.strength == pytest.approx(float(strength), abs=1e-9)


def discordant(table: Table, context: tuple[int, ...], a: int, b: int, sense: str) -> int:
    alike, against = oracle.order_pairs(table, context, a, b)
    return against if sense == "ascending" else alike


@quick
@given(tables(columns=3), NULLS, st.sampled_from([(), (2,)]), st.sampled_from(["ascending", "descending"]))
def test_orders(table: Table, nulls: Nulls, context: tuple[int, ...], sense: str) -> None:
    rows, seen = rows_of(table, nulls), as_counted(table, nulls)
    against = discordant(seen, context, 0, 1, sense)
    found = counting.count_order(rows, context, 0, 1, against)
    strict, kept = sum(oracle.order_pairs(seen, context, 0, 1)), oracle.rows_with_values(seen, [*context, 0, 1])
    assert found.rows == len(kept)
    assert found.strength == pytest.approx((strict - 2 * against) / strict if strict else 0)
    groups = oracle.classes(seen, context, kept)
    pairs = sum(len(members) * (len(members) - 1) // 2 for members in groups)
    repeated = len(kept) - len(groups)
    assert found.evidence == pytest.approx(repeated * strict / pairs / 2 if pairs else 0)


@settings(deadline=None, max_examples=50)
@given(tables(columns=3, most_rows=7), NULLS, st.sampled_from([(), (2,)]), st.sampled_from(["ascending", "descending"]))
def test_fewest_rows_to_remove(table: Table, nulls: Nulls, context: tuple[int, ...], sense: str) -> None:
    rows, seen = rows_of(table, nulls), as_counted(table, nulls)
    fewest = oracle.order_removals(seen, context, 0, 1, sense)
    for a, b in ((0, 1), (1, 0)):
        assert counting.rows_to_remove(rows, context, a, b, sense == "ascending") == fewest


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("sense", ["ascending", "descending"])
def test_contradicting_pairs_are_those_of_the_constraint(nulls: Nulls, sense: str) -> None:
    from tuplewise.engine.dc.violations.detect import check_rules
    from tuplewise.engine.options import DcCheckOptions

    rng = np.random.default_rng(3)
    for _ in range(20):
        table = [[None if v == 0 else int(v) for v in rng.integers(0, 5, 9)] for _ in range(3)]
        relation = numbers_of(table)
        rule = Rule("od", (2,), (0, 1), sense, 0, 0, 0.0, 0.0, 0.0)
        against = order_constraint(relation.column_names, rule)
        checked = check_rules(relation, [against], DcCheckOptions(count_only=True, nulls=nulls, device="cpu"))
        assert checked.rules[0].violating_pairs == discordant(as_counted(table, nulls), (2,), 0, 1, sense)


@quick
@given(tables(columns=2), NULLS)
def test_rules_of_one_row(table: Table, nulls: Nulls) -> None:
    codes, seen = rows_of(table, nulls).codes, as_counted(table, nulls)
    found = counting.compare(codes[0], codes[1])
    counted, by_chance = oracle.compared(seen, 0, 1), oracle.compared_by_chance(seen, 0, 1)
    assert found.rows == len(oracle.rows_with_values(seen, [0, 1]))
    assert (found.above, found.equal, found.below) == (counted[1], counted[0], counted[-1])
    assert found.above_by_chance == pytest.approx(float(by_chance[1]))
    assert found.equal_by_chance == pytest.approx(float(by_chance[0]))
    assert found.below_by_chance == pytest.approx(float(by_chance[-1]), abs=1e-9)


@quick
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_pairs_are_counted_by_bits(columns: int, others: int, pairs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.random((columns, pairs)) < 0.4, rng.random((others, pairs)) < 0.7
    wanted = first.astype(np.int64) @ second.T.astype(np.int64)
    assert np.array_equal(_count_both(first, second), wanted)
    assert np.array_equal(_count_both(np.asfortranarray(first), second), wanted)


@quick
@given(tables(columns=3), st.integers(0, 99))
def test_pairs_that_are_drawn(table: Table, seed: int) -> None:
    rows = rows_of(table)
    classes = rows.classes((0,))
    pairs = SampledPairs(rows, classes, 1000, np.random.default_rng(seed))
    assert len(pairs) == classes.repeated
    for i, (t, u) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        assert t != u
        assert table[0][t] == table[0][u] is not None
        for c, column in enumerate(table):
            assert pairs.known[c, i] == (column[t] is not None and column[u] is not None)
            assert pairs.equal[c, i] == (pairs.known[c, i] and column[t] == column[u])
    order = pairs.order([1, 2])
    for i, c in itertools.product(range(len(pairs)), (1, 2)):
        x, y = table[c][pairs.first[i]], table[c][pairs.second[i]]
        assert order[c - 1, i] == (0 if x is None or y is None else (x > y) - (x < y))


def test_drawn_pairs_estimate_strength() -> None:
    """By many draws: contradictions by chance and in fact, each class by its rows beyond the first."""
    rng = np.random.default_rng(1)
    left = rng.zipf(1.6, 400).clip(max=40).tolist()
    table = [left, [int(x % 7) if rng.random() < 0.7 else int(rng.integers(0, 7)) for x in left]]
    rows = rows_of(table)
    differ = []
    for seed in range(40):
        pairs = SampledPairs(rows, rows.classes((0,)), 4096, np.random.default_rng(seed))
        differ.append(1 - pairs.equal[1].mean())
    estimate = 1 - float(np.mean(differ)) / float(rows.differing[1])
    assert estimate == pytest.approx(float(oracle.mu_plus(table, [0], 1)), abs=0.02)
