"""The search for rules: tables of odd shapes, limits, and what must not change what is found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracles import profile as oracle
from profile_tables import frame, table_of

import tuplewise as tw
from tuplewise import ProfileResult
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import ProfileOptions
from tuplewise.engine.profile import candidates, search
from tuplewise.engine.run import Run


def rules_of(found: ProfileResult) -> set[tuple[str, int, int]]:
    return {(rule.rule, rule.rows, rule.exceptions) for rule in found}


def people(count: int = 400, seed: int = 0) -> pd.DataFrame:
    """A table of strong rules: a key, zip -> city -> state, an order rule, two dates, a constant, a copy."""
    rng = np.random.default_rng(seed)
    zips = rng.integers(0, 60, count)
    salary = rng.integers(1000, 9000, count)
    begin = rng.integers(0, 900, count)
    return frame(
        id=np.arange(count),
        zip=zips + 1000,
        city=[f"city {z // 3}" for z in zips],
        state=[f"S{z // 12}" for z in zips],
        salary=salary,
        tax=(salary * 0.3).round(),
        begin=begin,
        end=begin + rng.integers(0, 60, count),
        country=["X"] * count,
        noise=rng.integers(0, 25, count),
        copy=zips + 1000,
    )


def test_what_people_show() -> None:
    found = {rule.rule for rule in tw.profile(people())}
    assert found >= {"zip == copy", "[id]", "city -> state", "begin <= end", "[]: salary ~ tax"}
    assert any(rule.endswith("-> city") for rule in found)
    assert not any("noise" in rule for rule in found)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_what_is_shown_is_counted_on_all_rows(nulls: Any) -> None:
    """A table with wrong cells and nulls: rows and exceptions by definition, strength and evidence of FDs, too."""
    rng = np.random.default_rng(8)
    table = people(700)
    table["begin"] = table["begin"].astype("Int64")
    for name in ("city", "begin", "noise"):
        table.loc[rng.choice(700, 3, replace=False), name] = table[name].iloc[3]
        table.loc[rng.choice(700, 4, replace=False), name] = None
    table.loc[5, "tax"] = 99_999
    columns = [list(table[name].astype(object).where(table[name].notna(), None)) for name in table]
    if nulls == "value":
        columns = [
            ["" if v is None and isinstance(column[0], str) else -1 if v is None else v for v in column]
            for column in columns
        ]
    place = {name: i for i, name in enumerate(table)}
    found = tw.profile(table, nulls=nulls)
    assert {"key", "fd", "od", "row", "constant"} == {rule.kind for rule in found}
    assert any(rule.exceptions for rule in found if rule.kind == "fd")
    for rule in found:
        sides = {
            name: [place[c] for c in (side if isinstance(side, list) else [side])]
            for name, side in rule.columns.items()
            if name not in ("op", "direction")
        }
        named = [c for side in sides.values() for c in side]
        assert rule.rows == len(oracle.rows_with_values(columns, named)), rule
        if rule.kind == "key":
            assert rule.exceptions == oracle.key_removals(columns, named)
        elif rule.kind in ("fd", "constant"):
            left, target = sides.get("determinant", []), named[-1]
            assert rule.exceptions == oracle.fd_removals(columns, left, target)
            if left:
                assert rule.strength == pytest.approx(float(oracle.mu_plus(columns, left, target)), abs=1e-4)
                assert rule.evidence == pytest.approx(float(oracle.fd_evidence(columns, left, target)), abs=1e-2)
        elif rule.kind == "row":
            against = {"==": (-1, 1), "<": (0, 1), "<=": (1,)}[rule.columns["op"]]
            assert rule.exceptions == sum(oracle.compared(columns, *named)[sign] for sign in against)
        else:
            alike, against = oracle.order_pairs(columns, named[:-2], *named[-2:])
            if rule.columns["direction"] == "descending":
                alike, against = against, alike
            assert rule.strength == pytest.approx((alike - against) / (alike + against), abs=1e-6)
            assert bool(rule.exceptions) == bool(against)
            broken = set(rule.broken_by()["row"])
            assert oracle.order_holds(
                columns, named[:-2], *named[-2:], rule.columns["direction"], [r for r in range(700) if r not in broken]
            )


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "numbers": lambda n: {"a": list(range(n)), "b": list(range(n)), "c": ["x"] * n},
    "all null": lambda n: {"a": pd.array([None] * n, dtype="Int64"), "b": pd.array([None] * n, dtype="string")},
    "one column": lambda n: {"a": ["x", "y"][:n]},
    "half null": lambda n: {"a": pd.array([1, None][:n], dtype="Int64"), "b": [1.5, 2.5][:n]},
}


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_any_rows(shape: str, count: int, nulls: Any) -> None:
    found = tw.profile(pd.DataFrame(SHAPES[shape](count)), nulls=nulls)
    assert found.rules == []
    assert not found.partial
    assert found.to_text()
    assert found.to_dict()["result"]["shown"] == 0


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_columns_without_anything_to_say(nulls: Any) -> None:
    count = 300
    nothing = pd.DataFrame({"none": pd.array([None] * count, dtype="Int64"), "one": [7] * count})
    found = tw.profile(nothing, nulls=nulls)
    kinds = {rule.columns["column"]: rule.english for rule in found if rule.kind == "constant"}
    assert kinds == {"one": "`one` is 7 in every row"} | (
        {"none": "`none` is null in every row"} if nulls == "value" else {}
    )
    assert len(found) == len(kinds)
    assert [(w["column"], w["text"]) for w in found.warnings][:2] == [
        ("none", "has no values"),
        ("one", "has one value"),
    ]


def test_one_column() -> None:
    assert [rule.rule for rule in tw.profile(frame(a=range(200)))] == ["[a]"]
    assert tw.profile(frame(a=[i % 7 for i in range(200)])).rules == []


def test_a_null_that_is_a_value_may_be_the_constant() -> None:
    column = pd.array([None] * 4999 + [3], dtype="Int64")
    (rule,) = [r for r in tw.profile(pd.DataFrame({"a": column, "b": [1, 2] * 2500}), nulls="value") if "a" in r.rule]
    assert rule.english == "`a` is null; 1 of 5,000 rows breaks it"
    assert rule.broken_by().to_dict("list") == {"row": [4999], "a": [3]}


def test_nulls_as_values() -> None:
    rng = np.random.default_rng(2)
    left = rng.integers(0, 30, 600)
    table = pd.DataFrame(
        {"a": pd.array(left, dtype="Int64"), "b": pd.array(left // 2, dtype="Int64"), "c": rng.integers(0, 9, 600)}
    )
    table.loc[table.a == 4, "b"] = pd.NA
    table.loc[::50, "a"] = pd.NA
    (unknown,) = [r for r in tw.profile(table) if r.rule == "a -> b"]
    assert (unknown.rows, unknown.exceptions) == (int((table.a.notna() & table.b.notna()).sum()), 0)
    (value,) = [r for r in tw.profile(table, nulls="value") if r.rule == "a -> b"]
    rest = table[table.a.isna()].b.astype(object).where(lambda b: b.notna(), None).value_counts(dropna=False)
    assert (value.rows, value.exceptions) == (600, int(rest.sum() - rest.max()))


def test_a_seed_gives_one_result() -> None:
    table = people(seed=3)
    results = [tw.profile(table, seed=seed).to_dict()["result"] for seed in (5, 5)]
    assert results[0] == results[1]


def test_the_order_of_rows_does_not_matter() -> None:
    """Of a table whose rules hold in every row: which pairs are drawn changes nothing."""
    table = people()
    wanted = rules_of(tw.profile(table))
    for seed in range(3):
        assert rules_of(tw.profile(table.sample(frac=1, random_state=seed))) == wanted


def test_names_of_columns_do_not_matter() -> None:
    table = people()
    found, renamed = tw.profile(table), tw.profile(table.rename(columns=lambda name: f"the {name}"))
    assert len(found) == len(renamed)
    for ours, theirs in zip(found, renamed, strict=True):
        assert (ours.kind, ours.rows, ours.exceptions, ours.score) == (
            theirs.kind,
            theirs.rows,
            theirs.exceptions,
            theirs.score,
        )
        assert theirs.english.replace("the ", "").replace("`", "") == ours.english.replace("the ", "").replace("`", "")


def test_the_order_of_columns_does_not_matter() -> None:
    table = people().drop(columns="copy")
    wanted = tw.profile(table)
    found = tw.profile(table[table.columns[::-1]])
    assert {rule.kind for rule in found} == {rule.kind for rule in wanted}

    def sides(result: ProfileResult) -> set[tuple[str, frozenset[str], int]]:
        return {
            (r.kind, frozenset(w for w in r.rule.replace(":", "").split() if w.isalpha()), r.exceptions) for r in result
        }

    assert sides(found) == sides(wanted)


def test_rules_of_a_table_that_is_larger_than_what_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(4000)
    table.loc[7, "city"] = "elsewhere"
    wanted = rules_of(tw.profile(table))
    monkeypatch.setattr(search, "SEARCHED_ROWS", 500)
    assert rules_of(tw.profile(table)) == wanted
    assert any(exceptions for _, _, exceptions in wanted)


def test_wide_tables_end_at_their_limit() -> None:
    rng = np.random.default_rng(4)
    wide = tw.load(
        pd.DataFrame({f"c{i:03}": rng.integers(0, int(rng.choice([2, 9, 40, 150, 10**6])), 200) for i in range(500)})
    )
    tw.profile(people(50))
    started = time.monotonic()
    found = tw.profile(wide, time_limit=5)
    assert time.monotonic() - started < 6
    assert found.partial
    assert any("limited time" in note or "time limit" in note for note in found.notes)


def test_wide_tables_say_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MOST_CONTEXTS", 40)
    found = tw.profile(people())
    assert [note for note in found.notes if "too many" in note] == [
        "11 columns are too many for all pairs of them: left sides of two columns were looked for among those with the "
        "most values"
    ]
    assert not found.partial


def test_short_rules_come_first_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on by a second with each set of columns that is looked at."""
    now = [0.0]
    looked: list[tuple[int, ...]] = []
    look = search.Search.look

    def slowly(self: search.Search, context: tuple[int, ...]) -> None:
        now[0] += 1
        looked.append(context)
        look(self, context)

    monkeypatch.setattr(search.Search, "look", slowly)
    monkeypatch.setattr("tuplewise.engine.run.time.monotonic", lambda: now[0])
    run = Run(deadline=20.0)
    found = search.RuleSearch(table_of(tw.load(people()), run), ProfileOptions(), run).run()
    assert found.partial
    assert [len(context) for context in looked] == sorted(len(context) for context in looked)
    assert "sets of columns were looked at in the limited time: there may be more rules" in found.notes[0]
    kinds = {one.rule.kind for one in found.listed}
    assert {"key", "fd", "od", "row"} <= kinds


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"limit": 0}, "limit: 0"),
        ({"max_context": 4}, "max_context: 4; allowed: 1 to 3"),
        ({"max_context": 0}, "max_context: 0"),
        ({"nulls": "none"}, "nulls: 'none'"),
        ({"seed": -1}, "seed: -1"),
        ({"time_limit": 0}, "time_limit: 0"),
    ],
)
def test_options_that_can_not_be_used(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        tw.profile(people(20), **options)


def test_limits_of_what_is_listed() -> None:
    table = people()
    whole, few, short = tw.profile(table), tw.profile(table, limit=3), tw.profile(table, max_context=1)
    assert [r.rule for r in few] == [r.rule for r in whole][:3]
    counts = [r.to_dict()["result"] for r in (whole, few)]
    assert counts[0]["held_back"] + len(whole) == counts[1]["held_back"] + 3
    assert all(len(rule.columns["determinant"]) == 1 for rule in short if rule.kind == "fd")
