"""Constants beside typed columns: what they mean, where they stand, and what can't be compared."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

import pytest
from dc_tables import POOLS, encode
from oracles.dc import sort_key

from tuplewise.engine.dc.constraint import Constant
from tuplewise.engine.dc.rule_text import check_types, place_constant, read_rule
from tuplewise.engine.errors import RuleError
from tuplewise.engine.table.relation import Relation

RELATION = encode(
    [
        ("i", "integer", [5, 7, None, 9007199254740993]),
        ("j", "decimal", [Decimal("5.50"), Decimal("-1.25"), None, Decimal("5.00")]),
        ("d", "double", [0.0, 1.5, math.nan, math.inf]),
        ("day", "date", [datetime.date(2024, 1, d) for d in (1, 2, 31, 31)]),
        ("at", "timestamp", [datetime.datetime(2024, 1, 1, h) for h in (0, 1, 2, 3)]),
        ("flag", "boolean", [True, False, None, True]),
        ("s", "text", ["5", "Texas", "ä", "05"]),
        ("only", "boolean", [None] * 4),
    ]
)


def place(column: str, written: str, relation: Relation = RELATION) -> tuple[int, bool]:
    (predicate,) = read_rule(f"not(t.{column} == {written})").predicates
    assert isinstance(predicate.right, Constant)
    return place_constant(relation, relation.index_of(column), predicate.right)


@pytest.mark.parametrize(
    ("column", "written", "rank", "present"),
    [
        ("i", "5", 1, True),
        ("i", "5.0", 1, True),
        ("i", "5.5", 2, True),  # integers and decimals share a dictionary
        ("i", "5.6", 3, False),
        ("i", "-9", 0, False),
        ("i", "5e0", 1, True),
        ("i", "'5'", 1, True),
        ("i", "'5.50'", 2, True),
        ("i", "'007'", 3, True),
        ("i", "9007199254740992", 4, False),
        ("i", "9007199254740993", 4, True),
        ("i", "1e300", 5, False),
        ("j", "5", 1, True),
        ("d", "1.5", 1, True),
        ("d", "-0.0", 0, True),
        ("d", "'NaN'", 3, True),
        ("d", "'nan'", 3, True),
        ("d", "'inf'", 2, True),
        ("d", "'-Infinity'", 0, False),
        ("d", "2", 2, False),
        ("d", "'1.5'", 1, True),
        ("day", "'2024-01-02'", 1, True),
        ("day", "date '2024-01-03'", 2, False),
        ("day", "'2024-02-29'", 3, False),
        ("at", "'2024-01-01'", 0, True),
        ("at", "'2024-01-01T01:00:00Z'", 1, True),
        ("at", "'2024-01-01 03:00:00+02:00'", 1, True),
        ("at", "'2024-01-01 02:00'", 2, True),
        ("at", "'2024-01-01 02:00:00.000001'", 3, False),
        ("at", "'0001-01-01T00:00:00+18:00'", 0, False),
        ("at", "'9999-12-31T23:59:59-18:00'", 4, False),
        ("flag", "true", 1, True),
        ("flag", "'FALSE'", 0, True),
        ("only", "true", 0, False),  # no value of its own
        ("only", "5", 0, False),
        ("s", "'Texas'", 2, True),
        ("s", "'5'", 1, True),
        ("s", "''", 0, False),
        ("s", "'z'", 3, False),
        ("s", "'名'", 4, False),
    ],
)
def test_place(column: str, written: str, rank: int, present: bool) -> None:
    assert place(column, written) == (rank, present)


@pytest.mark.parametrize("type_", ["integer", "decimal", "double", "text"])
def test_places_are_those_of_a_linear_search(type_: str) -> None:
    rng = random.Random(11)
    for _ in range(40):
        values: list[Any] = rng.sample(list(POOLS[type_]), 5)
        relation = encode([("x", type_, values)])
        ascending = sorted({sort_key(v) for v in values})
        for value in POOLS[type_]:
            written = f"'{value}'" if type_ in ("text", "double") else str(value)
            key = sort_key(value)
            rank = sum(1 for k in ascending if k < key)
            assert place("x", written, relation) == (rank, key in ascending), (values, written)


def test_timestamps_of_any_unit_and_empty_columns() -> None:
    import pandas as pd

    import tuplewise as tw

    moment = pd.Timestamp("2024-01-01 00:00:00.000000001")
    relation = tw.load(pd.DataFrame({"at": [moment], "none": pd.Series([None], dtype="object")}))
    assert place("at", "'2024-01-01'", relation) == (0, False)
    assert place("at", "'2024-01-01 00:00:00.000001'", relation) == (1, False)
    assert place("none", "'x'", relation) == (0, False)


@pytest.mark.parametrize(
    ("column", "written", "what"),
    [
        (
            "s",
            "5",
            r"constant beside column 's', whose type is text: '5'; allowed: text in single quotes\. Quote it: '5'",
        ),
        ("s", "1.5", "types={'s': 'decimal'}"),
        ("s", "true", "Quote it: 'true'"),
        ("i", "'x'", "whose type is integer: 'x'; allowed: digits.*types={'i': 'text'}"),
        ("i", "'NaN'", "whose type is integer: 'NaN'"),
        ("i", "' 5'", "whose type is integer: ' 5'"),
        ("i", "'٥'", "whose type is integer"),
        ("i", "true", "whose type is integer: 'true'"),
        ("d", "'x'", "whose type is double: 'x'; allowed: a number, NaN or inf"),
        ("day", "20240101", "whose type is date: '20240101'; allowed: YYYY-MM-DD. Quote it"),
        ("day", "'2024-02-30'", "whose type is date: '2024-02-30'"),
        ("day", "'2024-01-01 10:00'", "Give the day alone"),
        ("at", "'yesterday'", "whose type is timestamp: 'yesterday'; allowed: ISO 8601"),
        ("at", "2024", "Quote it: '2024'"),
        ("flag", "1", "whose type is boolean: '1'; allowed: true or false"),
        ("flag", "'yes'", "whose type is boolean: 'yes'"),
    ],
)
def test_constants_that_mean_nothing_there(column: str, written: str, what: str) -> None:
    with pytest.raises(RuleError, match=what):
        place(column, written)
    with pytest.raises(RuleError, match=what):
        check_types(RELATION, read_rule(f"not(t.{column} == {written})"))


def test_null_has_no_place() -> None:
    with pytest.raises(RuleError, match="Write `i is null`"):
        place_constant(RELATION, 0, Constant("", "null"))


@pytest.mark.parametrize(
    "rule",
    [
        "not(t.i == u.j and t.j < u.i and t.d >= u.d and t.flag == u.only and t.s is null and u.day is not null)",
        "not(t.i == 5 and t.d > 5 and t.day < '2024-01-01')",
        "not(t.only == 'x' and t.only < 5 and t.only == u.i)",  # no values: its type says nothing
    ],
)
def test_types_that_agree(rule: str) -> None:
    check_types(RELATION, read_rule(rule))


def test_all_faults_of_types_are_in_one_error() -> None:
    rule = read_rule(
        "not(t.i == u.d and t.day < u.at and t.s != u.i and t.flag == u.s and t.s == 5 and t.nosuch == u.i"
        " and t.i == u.i)"
    )
    with pytest.raises(RuleError) as caught:
        check_types(RELATION, rule)
    text = str(caught.value)
    assert text.startswith("rule not(t.day < u.at and ")
    for part in (
        "columns of different types in t.i == u.d: 'i (integer) and d (double)'; allowed: columns of one type",
        "Read both as doubles: types={'i': 'double'}",
        "columns of different types in t.day < u.at",
        "Read both as timestamps: types={'day': 'timestamp'}",
        "columns of different types in t.s != u.i: 's (text) and i (integer)'",
        "Read both as text: types={'i': 'text'}",
        "Read both as text: types={'flag': 'text'}",
        "constant beside column 's', whose type is text: '5'",
        "no column of that name in table 'table': 'nosuch'",
    ):
        assert part in text
    assert "t.i == u.i:" not in text
