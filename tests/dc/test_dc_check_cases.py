"""Inputs that break tools of this kind, as `tuplewise.check` takes them: cases A1 to A5, A12 and A13, and the classes
of rules that another verifier gets wrong."""

from __future__ import annotations

import math
import random
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dc.check_tables import MAKERS, NANS, Rules, as_rule
from dc.dc_tables import Table, encode
from oracles.check import Condition, violations

import tuplewise as tw
from tuplewise.engine.dc.rule_text import read_rule
from tuplewise.engine.dc.violations.detect import check_rules
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.options import DcCheckOptions


def check(table: Any, rules: Any, **options: Any) -> tw.CheckResult:
    return tw.check(table, rules, device="cpu", **options)


def listed(result: tw.CheckResult) -> list[tuple[Any, ...]]:
    frame = result.pairs()
    return [(t, None if pd.isna(u) else int(u)) for t, u in zip(frame["t"], frame["u"], strict=True)]


# ---------------------------------------------------------------- A1

SPELLINGS = [
    "!(t.a==s.a and t.b!=s.b)",
    "!(t.a == s.a AND t.b != s.b)",
    "t1&t2&IQ(t1.b,t2.b)&EQ(t1.a,t2.a)",
    "not(t.a = u.a and t.b <> u.b)",
    "¬{ t.a = t'.a ∧ t.b ≠ t'.b }",
    "∀t,u: ¬(t.a = u.a ∧ t.b ≠ u.b)",
    "a -> b",
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_a1_a_rule_in_any_spelling_is_violated(text: str) -> None:
    result = check(pd.DataFrame({"a": [1, 1], "b": [1, 2]}), text)
    assert (result.holds, result.violating_pairs, listed(result)) == (False, 2, [(0, 1)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("!(t.nosuch == s.a)", "nosuch"),
        ("!(t.aa == s.aa)", "'a'"),
        ("t.a == u.a", ""),
        ("!(t.a == s.a and)", ""),
        ("!(t.a ~ s.a)", ""),
        ("", ""),
    ],
)
def test_a1_a_rule_that_cannot_be_read_is_an_error_and_never_an_answer(text: str, said: str) -> None:
    table = pd.DataFrame({"a": [1, 1], "b": [1, 2]})
    with pytest.raises(tw.RuleError) as caught:
        check(table, text)
    assert said in str(caught.value)
    with pytest.raises(tw.RuleError):
        check(table, [SPELLINGS[0], text])  # one bad rule of several is not dropped


# ---------------------------------------------------------------- A2, A3


def nan_table(kind: str) -> Any:
    values = np.array([NANS[0], NANS[1], 0.0, -0.0, 1.0, 1.0])
    assert len(set(values[:4].view(np.uint64).tolist())) == 4
    column = pa.array(values, mask=np.array([False] * 4 + [True] * 2))
    return pa.table({"x": column}) if kind == "arrow" else pl.DataFrame({"x": pl.from_arrow(column)})


@pytest.mark.parametrize("device", ["cpu", "auto"])
@pytest.mark.parametrize("kind", ["arrow", "polars"])
def test_a2_nans_of_any_bits_are_equal_and_so_are_both_zeros(kind: str, device: str) -> None:
    table = nan_table(kind)
    result = tw.check(table, "!(t.x == s.x)", device=device)
    assert (result.violating_pairs, listed(result), result.rules[0].rows_unknown) == (4, [(0, 1), (2, 3)], 2)
    result = tw.check(table, "!(t.x == s.x)", device=device, nulls="value")
    assert (result.violating_pairs, listed(result)) == (6, [(0, 1), (2, 3), (4, 5)])
    assert result.rules[0].rows_unknown == 0
    apart = tw.check(table, "!(t.x != s.x)", device=device)
    assert listed(apart) == [(0, 2), (0, 3), (1, 2), (1, 3)]
    (witness,) = find_witnesses(tw.load(table), [read_rule("not(t.x == u.x)")], device=device, limit=9)
    assert {frozenset(p) for p in witness.tolist()} == {frozenset((0, 1)), frozenset((2, 3))}


def test_a2_constants_meet_nan_and_zero() -> None:
    table = nan_table("arrow")
    assert listed(check(table, "not(t.x == 'NaN')")) == [(0, None), (1, None)]
    assert listed(check(table, "not(t.x > 'inf')")) == [(0, None), (1, None)]
    assert listed(check(table, "not(t.x == -0.0)")) == [(2, None), (3, None)]
    assert listed(check(table, "not(t.x <= 0)", nulls="value")) == [(2, None), (3, None), (4, None), (5, None)]


@pytest.mark.parametrize("kind", ["arrow", "polars"])
def test_a3_nan_is_above_all_numbers_in_order_predicates(kind: str) -> None:
    data = {"x": [1.0, math.inf, math.nan], "y": [1, 2, 3]}
    table = pa.table({"x": pa.array(data["x"]), "y": pa.array(data["y"])}) if kind == "arrow" else pl.DataFrame(data)
    assert check(table, "!(t.x < s.x and t.y > s.y)").holds is True
    turned = check(table, "!(t.x < s.x and t.y < s.y)")  # a row that is never compared would not be listed
    assert listed(turned) == [(0, 1), (0, 2), (1, 2)]


# ---------------------------------------------------------------- A4, A5


def test_a4_a_key_with_nulls() -> None:
    key = "!(t.a == s.a and t.b == s.b)"
    three = pd.DataFrame({"a": ["p", "q", "p"], "b": pd.array([None, None, 1], dtype="Int64")})
    assert [check(three, key, nulls=n).holds for n in ("unknown", "value")] == [True, True]
    four = pd.concat([three, three[:1]], ignore_index=True)
    unknown, value = (check(four, key, nulls=n) for n in ("unknown", "value"))
    assert (unknown.holds, unknown.rules[0].rows_unknown) == (True, 3)
    assert (value.holds, listed(value), value.rules[0].rows_unknown) == (False, [(0, 3)], 0)


FRAMES = {
    "pandas": lambda: pd.DataFrame({"a": pd.array([5, None], dtype="Int64"), "b": [3, 3]}),
    "pandas objects": lambda: pd.DataFrame({"a": pd.Series([5, None], dtype=object), "b": [3, 3]}),
    "polars": lambda: pl.DataFrame({"a": [5, None], "b": [3, 3]}),
    "arrow": lambda: pa.table({"a": [5, None], "b": [3, 3]}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a5_a_row_with_a_null_is_not_applicable(kind: str) -> None:
    table = FRAMES[kind]()
    result = check(table, "!(t.a <= t.b)")
    assert (result.holds, result.violating_pairs, result.rules[0].rows_unknown) == (True, 0, 1)
    assert (result.rules[0].to_dict()["one_row"], listed(result)) == (True, [])
    assert listed(check(table, "!(t.a <= t.b)", nulls="value")) == [(1, None)]
    assert listed(check(table, "!(t.a > t.b)")) == [(0, None)]
    assert listed(check(table, "!(t.a is null)")) == [(1, None)]
    assert check(table, "!(t.a is null)").rules[0].rows_unknown == 0


# ---------------------------------------------------------------- A12, A13

N = 100_000


@pytest.mark.parametrize(
    ("rule", "pairs", "first"),
    [
        ("k -> v", N * N // 2, [(0, 1), (0, 3), (0, 5)]),
        ("!(t.x < s.x and t.y > s.y)", N * (N - 1) // 2, [(0, 1), (0, 2), (0, 3)]),
        ("!(t.k == s.k)", N * (N - 1), [(0, 1), (0, 2), (0, 3)]),
        ("!(t.x != s.x and t.v != s.v)", N * N // 2, [(0, 1), (0, 3), (0, 5)]),
        ("!(t.x < s.x and t.y > s.y and t.v <= s.v)", 3 * N * N // 8 - N // 4, [(0, 1), (0, 2), (0, 3)]),
    ],
)
def test_a12_billions_of_pairs_are_counted_in_bounded_memory(
    rule: str, pairs: int, first: list[tuple[int, int]]
) -> None:
    row = np.arange(N)
    relation = tw.load(pa.table({"k": np.ones(N, dtype=np.int64), "v": row % 2, "x": row, "y": -row}))
    check(relation, rule, pairs=3)  # compiles the kernels, which takes memory of its own
    tracemalloc.start()
    result = check(relation, rule, pairs=3)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.violating_pairs == pairs
    entry = result.rules[0].to_dict()
    assert [(p["t"], p["u"]) for p in entry["pairs"]] == first
    assert (entry["truncated"], entry["violating_rows"], entry["pairs_listed"]) == (True, N, 3)
    assert peak_bytes < 150 * N


def test_a13_the_list_is_cut_the_file_and_the_query_are_whole(tmp_path: Path) -> None:
    table = pa.table({"a": [1] * 1000, "b": list(range(1000)), "who": [f"n{i}" for i in range(1000)]})
    result = check(tw.load(table, name="things"), "a -> b", pairs=50, key=["who"])
    entry = result.rules[0].to_dict()
    assert (entry["violating_pairs"], entry["violating_rows"]) == (999_000, 1000)
    assert (entry["pairs_listed"], len(entry["pairs"]), entry["truncated"]) == (50, 50, True)
    assert result.write_pairs(str(tmp_path / "all.parquet")) == 499_500
    whole = pq.read_table(tmp_path / "all.parquet")
    t, u = (whole[name].to_numpy() for name in "tu")
    expected = np.argwhere(np.triu(np.ones((1000, 1000), dtype=bool), 1))
    assert np.array_equal(np.stack([t, u], axis=1), expected)
    assert len(result.pairs()) == 499_500
    with duckdb.connect() as db:
        db.register("things", table)
        for query in (result.to_sql("duckdb"), check(tw.load(table, name="things"), "a -> b").to_sql("duckdb")):
            assert len(db.sql(query).fetchall()) == 499_500
    exact = check(table.slice(0, 2), "a -> b", pairs=1).rules[0].to_dict()
    assert (exact["pairs_listed"], exact["truncated"]) == (1, False)


# ---------------------------------------------------------------- classes that another verifier gets wrong

OTHERS_FAIL: dict[str, tuple[list[tuple[int, int]], list[Condition], list[list[int]]]] = {
    "mixed orientation": (
        [(1, 2), (2, 1), (3, 3)], [("t", 0, "<", "u", 0), ("u", 1, "<", "t", 1)], [[0, 1]],
    ),
    "one column, one orientation": (
        [(1, 0), (2, 0), (2, 0)], [("t", 0, "<", "u", 0), ("t", 0, "<=", "u", 0)], [[0, 1], [0, 2]],
    ),
    "same column several times": (
        [(1, 2), (2, 2), (3, 0)],
        [("t", 0, "<=", "u", 0), ("t", 0, "!=", "u", 0), ("t", 0, "<", "u", 1)],
        [[0, 1]],
    ),
    "across columns": ([(1, 5), (4, 0), (0, 1)], [("t", 0, "<", "u", 1)], [[1, 0], [2, 0]]),
    "across equalities": ([(1, 2), (2, 1), (3, 4)], [("t", 0, "==", "u", 1), ("t", 1, "==", "u", 0)], [[0, 1]]),
    "single tuple": (
        [(1, 2), (1, 0), (2, 9)], [("t", 0, "==", "u", 0), ("t", 0, "<", "t", 1)], [[0, 1]],
    ),
    "constants": ([(1, 5), (2, 6), (3, 7)], [("t", 0, "==", "u", 0), ("t", 1, ">", None, 5)], []),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS_FAIL)
def test_classes_in_which_another_verifier_fails(kind: str) -> None:
    """An example done by hand, then hundreds of rules of the class on tables of two to seven rows."""
    rows, rule, pairs = OTHERS_FAIL[kind]
    table: Table = [(name, "integer", [r[i] for r in rows]) for i, name in enumerate("AB")]
    options = DcCheckOptions(device="cpu")
    assert check_rules(encode(table), [as_rule(table, rule)], options).rules[0].pairs.tolist() == pairs
    assert kind in MAKERS
    rng = random.Random(kind)
    violated = held = 0
    for _ in range(30):
        n = rng.randint(2, 7)
        table = [(f"c{i}", "integer", [rng.randint(1, 4) for _ in range(n)]) for i in range(5)]
        values = list(zip(*(v for _, _, v in table), strict=True))
        rules = [Rules(rng, table).of(kind) for _ in range(8)]
        checks = check_rules(encode(table), [as_rule(table, r) for r in rules], options).rules
        for conditions, found in zip(rules, checks, strict=True):
            truth = violations(values, conditions, "unknown")
            assert (found.holds, found.violating_pairs) == (not truth.pairs, len(truth.pairs)), (found.rule, table)
            assert found.pairs.tolist() == [list(p) for p in truth.listed[:100]], (found.rule, table)
            violated += not found.holds
            held += bool(found.holds)
    assert min(violated, held) > 10
