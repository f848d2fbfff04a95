"""Rule checking against its definition: each class of rule on random small tables, both null rules, all ways to ask."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from dc.check_tables import CLASSES, Rules, as_rule, random_table, rows_of
from dc.dc_tables import encode
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.check import mirror, roles_of, satisfied, violations

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.violations.count import row_counts
from tuplewise.engine.dc.violations.detect import RuleCheck, check_rules
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.dc.violations.listing import iterate_pairs
from tuplewise.engine.dc.violations.program import bind
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.relation.relation import Relation

TABLES = 80


def assert_as_defined(check: RuleCheck, truth: Any, limit: int) -> None:
    assert check.violating_pairs == len(truth.pairs)
    assert check.holds == (not truth.pairs)
    assert check.symmetric == truth.symmetric
    assert check.violating_rows == sum(c > 0 for c in truth.counts)
    assert check.rows_unknown == truth.rows_unknown
    assert check.pairs.tolist() == [list(p) for p in truth.listed[:limit]]
    assert check.pairs_in_list == len(truth.listed)
    assert check.row_counts is not None
    assert check.row_counts.tolist() == list(truth.counts)


@pytest.mark.parametrize("seed", range(4))
def test_every_class_of_rule_has_the_violations_of_its_definition(seed: int) -> None:
    rng = random.Random(seed)
    violated = dict.fromkeys(CLASSES, 0)
    for _ in range(TABLES):
        table = random_table(rng)
        relation, rows = encode(table), rows_of(table)
        rules = list(Rules(rng, table).each())
        for nulls in ("unknown", "value"):
            limit = rng.choice([0, 1, 3, 100])
            options = DcCheckOptions(device="cpu", nulls=nulls, pairs=limit)  # type: ignore[arg-type]
            found = check_rules(relation, [as_rule(table, rule) for _, rule in rules], options)
            for (kind, rule), check in zip(rules, found.rules, strict=True):
                truth = violations(rows, rule, nulls)
                violated[kind] += bool(truth.pairs)
                try:
                    assert_as_defined(check, truth, limit)
                except AssertionError as failure:
                    raise AssertionError(f"{kind} {rule} nulls={nulls}\n{table}\n{truth}") from failure
    assert all(n > 5 for kind, n in violated.items() if kind != "contradiction"), violated
    assert violated["contradiction"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_larger_tables_with_blocks_trees_and_levels(seed: int) -> None:
    rng = random.Random(100 + seed)
    for rows in (63, 64, 65, 130, 200):
        table = random_table(rng, rows)
        relation, values = encode(table), rows_of(table)
        rules = [(kind, rule) for kind, rule in Rules(rng, table).each() if kind != "only filters"]
        options = DcCheckOptions(device="cpu", pairs=1_000_000)
        for (kind, rule), check in zip(
            rules, check_rules(relation, [as_rule(table, r) for _, r in rules], options).rules, strict=True
        ):
            truth = violations(values, rule, "unknown")
            assert check.violating_pairs == len(truth.pairs), (kind, rule)
            assert check.pairs.tolist() == [list(p) for p in truth.listed], (kind, rule)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_streams_witnesses_and_row_counts_agree_with_the_definition(nulls: str) -> None:
    rng = random.Random(7)
    for _ in range(40):
        table = random_table(rng)
        relation, rows = encode(table), rows_of(table)
        for kind, rule in Rules(rng, table).each():
            truth, constraint = violations(rows, rule, nulls), as_rule(table, rule)
            chunks = list(iterate_pairs(relation, constraint, nulls=nulls, device="cpu", chunk_pairs=4))
            assert [tuple(p) for c in chunks for p in c.tolist()] == list(truth.listed), (kind, rule, table)
            limit = rng.choice([1, 2, 5])
            found = find_witnesses(relation, [constraint], nulls=nulls, limit=limit, device="cpu")[0]
            assert {tuple(p) for p in found.tolist()} <= truth.pairs, (kind, rule, table)
            assert bool(len(found)) == bool(truth.pairs), (kind, rule, table)
            assert len({tuple(p) for p in found.tolist()}) == len(found) <= limit
            if len(roles_of(rule)) == 2:
                left, right = row_counts(relation.codes, bind(constraint, relation, nulls), device="cpu")
                for row in range(len(rows)):
                    assert left[row] == sum(t == row for t, _ in truth.pairs)
                    assert right[row] == sum(u == row for _, u in truth.pairs)


def test_exchanging_tuples_changes_no_count() -> None:
    rng = random.Random(8)
    for _ in range(40):
        table = random_table(rng)
        relation = encode(table)
        for _, rule in Rules(rng, table).each():
            both = check_rules(
                relation, [as_rule(table, rule), as_rule(table, mirror(rule))], DcCheckOptions(device="cpu", pairs=0)
            )
            assert both.rules[0].violating_pairs == both.rules[1].violating_pairs
            assert both.rules[0].row_counts.tolist() == both.rules[1].row_counts.tolist()  # type: ignore[union-attr]


def test_permuting_rows_and_renaming_columns_changes_no_count() -> None:
    rng = random.Random(9)
    for _ in range(40):
        table = random_table(rng, 12)
        order = rng.sample(range(12), 12)
        moved = [(name + " '`", type_, [values[i] for i in order]) for name, type_, values in table]
        for _, rule in Rules(rng, table).each():
            a = check_rules(encode(table), [as_rule(table, rule)], DcCheckOptions(device="cpu", pairs=0)).rules[0]
            b = check_rules(encode(moved), [as_rule(moved, rule)], DcCheckOptions(device="cpu", pairs=0)).rules[0]
            assert a.violating_pairs == b.violating_pairs
            assert a.row_counts is not None
            assert b.row_counts is not None
            assert a.row_counts[order].tolist() == b.row_counts.tolist()


@given(
    st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 3))] * 3), max_size=9),
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(0, 2)),
        min_size=1, max_size=5,
    ),
    st.sampled_from(["unknown", "value"]),
)  # fmt: skip
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_comparisons_of_three_columns(rows: list[Any], comparisons: list[Any], nulls: str) -> None:
    table = [(name, "integer", [row[i] for row in rows]) for i, name in enumerate("abc")]
    rule = [("t", a, op, "u", b) for a, op, b in comparisons]
    options = DcCheckOptions(device="cpu", nulls=nulls)  # type: ignore[arg-type]
    check = check_rules(encode(table), [as_rule(table, rule)], options).rules[0]
    assert_as_defined(check, violations(rows, rule, nulls), 100)


def test_the_definition_itself_on_a_table_done_by_hand() -> None:
    rows = [(1, "a"), (1, "b"), (None, "b"), (2, None)]
    fd = [("t", 0, "==", "u", 0), ("t", 1, "!=", "u", 1)]
    found = violations(rows, fd, "unknown")
    assert found.listed == ((0, 1),)
    assert (found.counts, found.rows_unknown, found.symmetric) == ((1, 1, 0, 0), 2, True)
    later = violations(rows, [("t", 0, "<", "u", 0)], "value")
    assert sorted(later.pairs) == [(0, 3), (1, 3), (2, 0), (2, 1), (2, 3)]
    assert violations(rows, [("u", 0, "is", None, None)], "unknown").listed == ((2, -1),)
    assert satisfied(float("nan"), ">", float("inf"), "unknown")
    assert satisfied(-0.0, "==", 0.0, "unknown")
    assert not satisfied(None, "!=", 1, "unknown")


def limited(relation: Relation, rule: DenialConstraint, **limits: Any) -> RuleCheck:
    return check_rules(relation, [rule], DcCheckOptions(device="cpu", **limits)).rules[0]


def test_a_limit_leaves_what_is_not_known_open() -> None:
    table = [("a", "integer", list(range(50))), ("b", "integer", list(range(50)))]
    rule = as_rule(table, [("t", 0, "<", "u", 0), ("t", 1, ">", "u", 1)])
    for limits in ({"time_limit": 1e-9}, {"memory_limit": 1}):
        check = limited(encode(table), rule, **limits)
        assert (check.holds, check.violating_pairs, check.violating_rows, check.pairs_in_list) == (None,) * 4
    assert limited(encode(table), rule, time_limit=600.0).holds is True


def test_counting_alone_lists_and_ranks_nothing() -> None:
    table = [("a", "integer", [1, 1, 2])]
    check = limited(encode(table), as_rule(table, [("t", 0, "==", "u", 0)]), count_only=True)
    assert (check.violating_pairs, check.row_counts, len(check.pairs)) == (2, None, 0)


def test_a_billion_violating_pairs_are_counted_and_only_the_first_are_made() -> None:
    n = 100_000
    table = [("k", "integer", [1] * n), ("v", "integer", [i % 2 for i in range(n)])]
    fd = limited(encode(table), as_rule(table, [("t", 0, "==", "u", 0), ("t", 1, "!=", "u", 1)]), pairs=3)
    assert (fd.violating_pairs, fd.pairs.tolist()) == (n * n // 2, [[0, 1], [0, 3], [0, 5]])
    x = [("x", "integer", list(range(n))), ("y", "integer", list(range(n, 0, -1)))]
    order = limited(encode(x), as_rule(x, [("t", 0, "<", "u", 0), ("t", 1, ">", "u", 1)]), pairs=2)
    assert (order.violating_pairs, order.violating_rows) == (n * (n - 1) // 2, n)
    assert order.pairs.tolist() == [[0, 1], [0, 2]]
    assert np.all(order.row_counts == n - 1)
