"""Rule checking against its definition: each class of rule on random small tables, both null rules, all ways to ask."""

from __future__ import annotations

import dataclasses
import pickle
import random
import time
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dc.check_tables import CLASSES, Rules, as_rule, random_table, relation_of, rows_of
from dc.dc_tables import Table, encode
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.check import Condition, Violations, mirror, roles_of, satisfied, violation_matrix, violations

import tuplewise as tw
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.violations.count import count_program, row_counts
from tuplewise.engine.dc.violations.detect import check_rules
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.dc.violations.found import RuleCheck
from tuplewise.engine.dc.violations.listing import iterate_pairs
from tuplewise.engine.dc.violations.program import bind
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.table.relation import Relation

TOGETHER = ["auto", "cost", "frequency", "none"]


def checked(relation: Relation, rules: list[DenialConstraint], **asked: Any) -> tuple[RuleCheck, ...]:
    return check_rules(relation, rules, DcCheckOptions(device="cpu", **asked)).rules


def assert_as_defined(check: RuleCheck, truth: Violations, limit: int, count_only: bool = False) -> None:
    assert check.violating_pairs == len(truth.pairs)
    assert check.holds == (not truth.pairs)
    assert check.symmetric == truth.symmetric
    assert check.rows_unknown == truth.rows_unknown
    assert check.pairs_in_list == len(truth.listed)
    if count_only:
        assert check.row_counts is None
        assert len(check.pairs) == 0
        return
    assert check.violating_rows == sum(c > 0 for c in truth.counts)
    assert check.pairs.tolist() == [list(p) for p in truth.listed[:limit]]
    assert check.row_counts is not None
    assert check.row_counts.tolist() == list(truth.counts)


def described(kind: str, rule: list[Condition], nulls: str, table: Table, **asked: Any) -> str:
    columns = "\n".join(f"  {column}" for column in table)
    return f"{kind} {rule} nulls={nulls} {asked}\n  {as_rule(table, rule)}\n{columns}"


def test_the_definition_itself_on_a_table_done_by_hand() -> None:
    rows = [(1, "a"), (1, "b"), (None, "b"), (2, None)]
    fd: list[Condition] = [("t", 0, "==", "u", 0), ("t", 1, "!=", "u", 1)]
    found = violations(rows, fd, "unknown")
    assert found.listed == ((0, 1),)
    assert (found.counts, found.rows_unknown, found.symmetric) == ((1, 1, 0, 0), 2, True)
    later = violations(rows, [("t", 0, "<", "u", 0)], "value")
    assert sorted(later.pairs) == [(0, 3), (1, 3), (2, 0), (2, 1), (2, 3)]
    assert violations(rows, [("u", 0, "is", None, None)], "unknown").listed == ((2, -1),)
    ends: list[Condition] = [("t", 0, "is", None, None), ("u", 1, "is", None, None)]
    assert violations(rows, ends, "unknown").listed == ((2, 3),)
    assert violations(rows, [("t", 0, ">=", None, 1), ("u", 1, "<", None, "b")], "unknown").listed == ((1, 0), (3, 0))
    assert violations(rows, [("t", 1, "!=", None, "b")], "value").listed == ((0, -1), (3, -1))
    assert satisfied(float("nan"), ">", float("inf"), "unknown")
    assert satisfied(float("nan"), "==", -float("nan"), "unknown")
    assert satisfied(-0.0, "==", 0.0, "unknown")
    assert satisfied("Z", "<", "a", "unknown")
    assert not satisfied(None, "!=", 1, "unknown")
    assert satisfied(None, "!=", 1, "value")
    assert satisfied(None, "<", False, "value")


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_the_two_formulations_of_the_definition_agree(nulls: str) -> None:
    rng = random.Random(3)
    for _ in range(15):
        n = rng.randint(1, 12)
        table: Table = [
            (name, "integer", [rng.choice([None, 1, 2, 2, 3]) for _ in range(n)]) for name in ("a", "b", "c", "d", "e")
        ]
        for kind, rule in Rules(rng, table).each():
            if len(roles_of(rule)) == 2:
                matrix = violation_matrix([values for _, _, values in table], rule, nulls)
                found = {(int(t), int(u)) for t, u in np.argwhere(matrix)}
                assert found == violations(rows_of(table), rule, nulls).pairs, described(kind, rule, nulls, table)


def test_random_rules_of_every_class_are_violated_and_held() -> None:
    rng = random.Random(0)
    violated = dict.fromkeys(CLASSES, 0)
    for _ in range(60):
        table = random_table(rng)
        for kind, rule in Rules(rng, table).each():
            violated[kind] += bool(violations(rows_of(table), rule, "unknown").pairs)
    assert violated.pop("contradiction") == 0
    assert 5 < min(violated.values()) <= max(violated.values()) < 50, violated


@pytest.mark.parametrize("seed", range(4))
def test_every_class_of_rule_has_the_violations_of_its_definition(seed: int) -> None:
    """Counts, rows, ranks, the list whole and cut; rules together in every way and alone; rules asked in any order."""
    rng = random.Random(seed)
    for _ in range(13):
        table = random_table(rng)
        relation, rows = relation_of(rng, table), rows_of(table)
        rules = rng.sample([*Rules(rng, table).each()], len(CLASSES))
        for nulls in ("unknown", "value"):
            truths = [violations(rows, rule, nulls) for _, rule in rules]
            for limit in (1_000, rng.choice([0, 1, 3])):
                asked = {"together": rng.choice(TOGETHER), "count_only": limit == 0, "pairs": limit}
                found = checked(relation, [as_rule(table, rule) for _, rule in rules], nulls=nulls, **asked)
                for (kind, rule), truth, check in zip(rules, truths, found, strict=True):
                    try:
                        assert_as_defined(check, truth, limit, count_only=limit == 0)
                    except AssertionError as failure:
                        raise AssertionError(described(kind, rule, nulls, table, **asked)) from failure


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_streams_witnesses_and_row_counts_agree_with_the_definition(nulls: str) -> None:
    rng = random.Random(7)
    for _ in range(14):
        table = random_table(rng)
        relation, rows = relation_of(rng, table), rows_of(table)
        for kind, rule in Rules(rng, table).each():
            truth, constraint = violations(rows, rule, nulls), as_rule(table, rule)
            case = described(kind, rule, nulls, table)
            chunks = list(
                iterate_pairs(relation, constraint, nulls=nulls, device="cpu", chunk_pairs=rng.choice([1, 4, 900]))
            )
            assert all(len(c) for c in chunks), case
            assert [tuple(p) for c in chunks for p in c.tolist()] == list(truth.listed), case
            limit = rng.choice([1, 2, 5])
            found = find_witnesses(
                relation, [constraint], nulls=nulls, limit=limit, sampled=rng.choice([0, 1, 50]), device="cpu"
            )[0]
            assert {tuple(p) for p in found.tolist()} <= truth.pairs, case
            assert bool(len(found)) == bool(truth.pairs), case
            assert len({tuple(p) for p in found.tolist()}) == len(found) <= limit, case
            if len(roles_of(rule)) == 2:
                left, right = row_counts(relation.codes, bind(constraint, relation, nulls), device="cpu")
                assert left.tolist() == [sum(t == row for t, _ in truth.pairs) for row in range(len(rows))], case
                assert right.tolist() == [sum(u == row for _, u in truth.pairs) for row in range(len(rows))], case


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_counts_add_up_over_tiles_that_overlap_in_nothing(nulls: str) -> None:
    """Programs travel as bytes; the two sides of a tile are any rows, the same or others."""
    rng = random.Random(11)
    for _ in range(4):
        table = random_table(rng, rng.choice([9, 13, 20]))
        relation, rows = relation_of(rng, table), rows_of(table)
        tile_of = [[rng.randrange(3) for _ in rows] for _ in "tu"]
        tile_of[1] = rng.choice(tile_of)
        sides = [[np.flatnonzero(np.array(of) == k).astype(np.int32) for k in range(3)] for of in tile_of]
        for kind, rule in Rules(rng, table).each():
            if len(roles_of(rule)) == 1:
                continue
            program = pickle.loads(pickle.dumps(bind(as_rule(table, rule), relation, nulls)))
            truth = violations(rows, rule, nulls)
            for a, left in enumerate(sides[0]):
                for b, right in enumerate(sides[1]):
                    inside = [(t, u) for t, u in truth.pairs if tile_of[0][t] == a and tile_of[1][u] == b]
                    count = count_program(relation.codes, program, left=left, right=right, device="cpu")
                    case = described(kind, rule, nulls, table, left=left, right=right)
                    assert count == len(inside), case
                    if a == b:
                        as_t, as_u = row_counts(relation.codes, program, left=left, right=right, device="cpu")
                        assert as_t.tolist() == [sum(t == row for t, _ in inside) for row in range(len(rows))], case
                        assert as_u.tolist() == [sum(u == row for _, u in inside) for row in range(len(rows))], case


def test_exchanging_tuples_exchanges_pairs() -> None:
    rng = random.Random(8)
    for _ in range(9):
        table = random_table(rng)
        relation = relation_of(rng, table)
        for kind, rule in Rules(rng, table).each():
            a, b = checked(relation, [as_rule(table, rule), as_rule(table, mirror(rule))], pairs=1_000)
            case = described(kind, rule, "unknown", table)
            assert (a.violating_pairs, a.symmetric) == (b.violating_pairs, b.symmetric), case
            assert a.row_counts is not None
            assert b.row_counts is not None
            assert a.row_counts.tolist() == b.row_counts.tolist(), case
            turned = a.pairs if a.symmetric or a.one_row else a.pairs[:, ::-1]
            assert sorted(turned.tolist()) == b.pairs.tolist(), case


def test_how_a_rule_is_written_and_columns_are_named_changes_nothing() -> None:
    rng = random.Random(10)
    for _ in range(8):
        table = random_table(rng)
        renamed = [(f"{name} '`.", type_, values) for name, type_, values in table]
        rules = [rule for _, rule in Rules(rng, table).each()]
        plain = checked(encode(table), [as_rule(table, rule) for rule in rules])
        turned = [as_rule(renamed, rng.sample(rule, len(rule)) + rule[:1]) for rule in rules]
        for written in (turned, [rule.normalised() for rule in turned]):
            for a, b in zip(plain, checked(encode(renamed), written), strict=True):
                assert (a.violating_pairs, a.symmetric, a.rows_unknown) == (
                    b.violating_pairs, b.symmetric, b.rows_unknown,
                ), (a.rule, b.rule)  # fmt: skip
                assert a.pairs.tolist() == b.pairs.tolist(), (a.rule, b.rule)


def test_permuting_rows_permutes_what_is_found() -> None:
    rng = random.Random(9)
    for _ in range(9):
        table = random_table(rng, 12)
        order = rng.sample(range(12), 12)  # row i is row order[i] of the table
        moved = [(name, type_, [values[i] for i in order]) for name, type_, values in table]
        rules = [as_rule(table, rule) for _, rule in Rules(rng, table).each()]
        for a, b in zip(checked(encode(table), rules), checked(encode(moved), rules), strict=True):
            assert (a.violating_pairs, a.rows_unknown) == (b.violating_pairs, b.rows_unknown), (a.rule, table)
            assert a.row_counts is not None
            assert b.row_counts is not None
            assert a.row_counts[order].tolist() == b.row_counts.tolist(), (a.rule, table)


def test_one_condition_more_never_adds_a_violation() -> None:
    rng = random.Random(12)
    for _ in range(8):
        table = random_table(rng, 10)
        rules = [rule for _, rule in Rules(rng, table).each() if len(roles_of(rule)) == len(roles_of(rule[1:])) == 2]
        longer = checked(encode(table), [as_rule(table, rule) for rule in rules], pairs=0)
        shorter = checked(encode(table), [as_rule(table, rule[1:]) for rule in rules], pairs=0)
        for a, b in zip(longer, shorter, strict=True):
            assert a.violating_pairs is not None
            assert b.violating_pairs is not None
            assert a.violating_pairs <= b.violating_pairs, (a.rule, table)
            assert a.rows_unknown >= b.rows_unknown


OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
ACROSS = st.tuples(st.sampled_from("tu"), st.integers(0, 2), OPERATORS, st.sampled_from("tu"), st.integers(0, 2))
ALONE = st.tuples(st.sampled_from("tu"), st.integers(0, 2), OPERATORS, st.none(), st.integers(0, 4))


@given(
    st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 3))] * 3), max_size=8),
    st.lists(st.one_of(ACROSS, ACROSS, ACROSS, ALONE), min_size=1, max_size=5),
    st.sampled_from(["unknown", "value"]),
)
@settings(max_examples=250, deadline=None, derandomize=True)
def test_any_conditions_on_three_columns(rows: list[Any], rule: list[Condition], nulls: str) -> None:
    table: Table = [(name, "integer", [row[i] for row in rows]) for i, name in enumerate("abc")]
    (check,) = checked(encode(table), [as_rule(table, rule)], nulls=nulls)
    assert_as_defined(check, violations(rows, rule, nulls), 100)


def test_a_limit_leaves_what_is_not_known_open() -> None:
    table: Table = [("a", "integer", list(range(50))), ("b", "integer", list(range(50)))]
    rule = as_rule(table, [("t", 0, "<", "u", 0), ("t", 1, ">", "u", 1)])
    for limits in ({"time_limit": 1e-9}, {"memory_limit": 1}):
        found = check_rules(encode(table), [rule], DcCheckOptions(device="cpu", **limits))  # type: ignore[arg-type]
        (check,) = found.rules
        assert (check.holds, check.violating_pairs, check.violating_rows, check.pairs_in_list) == (None,) * 4
        assert found.partial
        assert any("limit" in note and "reached" in note for note in found.notes)
    assert checked(encode(table), [rule], time_limit=600.0)[0].holds is True


@pytest.mark.parametrize(
    "rule",
    [
        [("t", 0, "<", "u", 0)],
        [("t", 0, "<", "u", 0), ("t", 1, "<", "u", 1)],
        [("t", 0, "!=", "u", 0), ("t", 1, "!=", "u", 1)],
    ],
)
def test_a_stream_of_pairs_ends_at_its_deadline(rule: list[Condition]) -> None:
    """These lists have billions of pairs."""
    n = 100_000
    values = [np.arange(n), np.arange(n), (np.arange(n) == 0).astype(np.int64)]
    relation = tw.load(pa.table({f"c{i}": v for i, v in enumerate(values)}))
    table: Table = [(f"c{i}", "integer", []) for i in range(3)]
    began = time.monotonic()
    chunks = iterate_pairs(relation, as_rule(table, rule), device="cpu", deadline=began + 0.5)
    with pytest.raises(TimeoutError, match="before all pairs were"):
        deque(chunks, maxlen=0)
    assert time.monotonic() - began < 10


def test_a_list_behind_two_non_equalities_takes_time_by_its_own_length() -> None:
    """Of the two, one leaves nearly all pairs and the other few: these are the ones that are looked at."""
    n = 200_000
    values = [np.arange(n), (np.arange(n) == 0).astype(np.int64)]
    relation = tw.load(pa.table({f"c{i}": v for i, v in enumerate(values)}))
    table: Table = [(f"c{i}", "integer", []) for i in range(2)]
    for first in ("!=", "<"):
        rule = as_rule(table, [("t", 0, first, "u", 0), ("t", 1, "!=", "u", 1)])
        pairs = np.concatenate(list(iterate_pairs(relation, rule, device="cpu", deadline=time.monotonic() + 60)))
        assert pairs.tolist() == [[0, u] for u in range(1, n)]


def test_no_rules_and_no_columns_are_no_fault() -> None:
    assert checked(encode([("a", "integer", [1, 2])]), []) == ()
    with pytest.raises(ValueError, match="limit: 0; allowed: 1 or more"):
        find_witnesses(encode([("a", "integer", [1])]), [], limit=0)


def test_results_do_not_change_what_was_asked() -> None:
    """The relation's codes are as before, and a check can be asked for again with the same answer."""
    rng = random.Random(13)
    table = random_table(rng, 13)
    relation = encode(table)
    before = relation.codes.copy()
    rules = [as_rule(table, rule) for _, rule in Rules(rng, table).each()]
    first, second = checked(relation, rules), checked(relation, rules)
    assert np.array_equal(relation.codes, before)
    for a, b in zip(first, second, strict=True):
        for field in dataclasses.fields(RuleCheck):
            if field.name not in ("seconds", "row_counts", "pairs"):
                assert getattr(a, field.name) == getattr(b, field.name)
        assert np.array_equal(a.pairs, b.pairs)
