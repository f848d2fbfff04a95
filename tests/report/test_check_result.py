"""What a check hands on: verdicts, pairs with cells, ranked rows, every form of them, and what callers may give."""

from __future__ import annotations

import datetime
import json
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from oracles.dc import outcome, satisfies

import tuplewise as tw
from tuplewise.engine.options import DcCheckOptions, FailOn
from tuplewise.engine.report import text as report_text

UTC = datetime.UTC
PLANES = pd.DataFrame({
    "tail.no": ["N1", "N1", "N2", "N3", "N3", None],
    "type": ["A", "B", "B", "B", "C", "C"],
    "seats": [100, 100, 180, 180, 170, 90],
    "hours": [1.5, 2.5, 2.5, 7.0, 9.0, float("inf")],
})  # fmt: skip
FD = "not(t.`tail.no` == u.`tail.no` and t.type != u.type)"
ORDER = "not(t.seats < u.seats and t.hours > u.hours)"
ONE_ROW = "not(t.seats > 150)"


def check(rules: Any, table: Any = PLANES, **options: Any) -> tw.CheckResult:
    return tw.check(table, rules, device="cpu", **options)


@pytest.fixture(scope="module")
def planes() -> tw.Relation:
    return tw.load(PLANES, name="planes")


def by_definition(table: dict[str, list[Any]], predicates: list[tuple[str, str, str]], nulls: str) -> list[Any]:
    """Ordered pairs (t, u) that satisfy `t.left op u.right` for all predicates."""
    rows = range(len(next(iter(table.values()))))
    found = []
    for t in rows:
        for u in rows:
            outcomes = [(outcome(table[a][t], table[b][u], nulls), op) for a, op, b in predicates]
            if t != u and all(o is not None and satisfies(o, op) for o, op in outcomes):
                found.append((t, u))
    return found


def test_json_has_the_promised_shape(planes: tw.Relation) -> None:
    document = json.loads(check([FD, ORDER, ONE_ROW, "not(t.type == 'Z')"], planes).to_json())
    assert list(document) == [
        "schema", "command", "version", "tables", "options", "device", "device_reason", "spark", "timings_seconds",
        "peak_rss_bytes", "partial", "notes", "result",
    ]  # fmt: skip
    assert (document["command"], document["partial"], document["device"]) == ("dc check", False, "cpu")
    assert set(document["options"]) == {
        "pairs", "key", "count_only", "fail_on", "together", "nulls", "rules_syntax", "device", "time_limit",
        "memory_limit", "seed", "run_on",
    }  # fmt: skip
    assert document["timings_seconds"]["total"] > 0
    fd, order, one_row, holding = document["result"]["rules"]
    for entry in (fd, order, one_row, holding):
        assert list(entry) == [
            "id", "rule", "predicates", "holds", "failed", "violating_pairs", "g1", "violating_rows", "rows_unknown",
            "symmetric", "one_row", "pairs", "pairs_listed", "truncated", "worst_rows", "plan", "seconds",
        ]  # fmt: skip
        assert re.fullmatch("[0-9a-f]{12}", entry["id"])
        assert entry["pairs_listed"] == len(entry["pairs"])
        assert entry["plan"]
        assert entry["seconds"] >= 0
    assert fd["rule"] == FD
    assert fd["predicates"] == [[["t", "tail.no"], "==", ["u", "tail.no"]], ["t.type", "!=", "u.type"]]
    assert (fd["holds"], fd["failed"], fd["violating_pairs"], fd["violating_rows"]) == (False, True, 4, 4)
    assert (fd["rows_unknown"], fd["symmetric"], fd["one_row"], fd["g1"]) == (1, True, False, 4 / 30)
    cells = [["t", "tail.no"], ["u", "tail.no"], ["t", "type"], ["u", "type"]]
    assert fd["pairs"] == [
        {"t": 0, "u": 1, "cells": cells, "values": ["N1", "N1", "A", "B"]},
        {"t": 3, "u": 4, "cells": cells, "values": ["N3", "N3", "B", "C"]},
    ]
    assert fd["worst_rows"] == [{"row": row, "pairs": 1} for row in (0, 1, 3, 4)]
    assert order["symmetric"] is False
    assert [(p["t"], p["u"]) for p in order["pairs"]] == [(4, 2), (4, 3), (5, 0), (5, 1), (5, 2), (5, 3), (5, 4)]
    assert order["pairs"][2]["cells"] == [["t", "seats"], ["u", "seats"], ["t", "hours"], ["u", "hours"]]
    assert order["pairs"][2]["values"] == [90, 100, "Infinity", 1.5]
    assert order["worst_rows"][0] == {"row": 5, "pairs": 5}
    assert one_row["pairs"][0] == {"t": 2, "u": None, "cells": [["t", "seats"]], "values": [180]}
    assert (one_row["violating_pairs"], one_row["violating_rows"], one_row["g1"]) == (3, 3, 0.5)
    assert one_row["predicates"] == [["t.seats", ">", {"value": 150, "type": "integer"}]]
    assert (holding["holds"], holding["failed"], holding["pairs"], holding["truncated"]) == (True, False, [], False)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_pairs_and_rows_are_those_by_definition(nulls: Any) -> None:
    rng = random.Random(4)
    table = {
        "a": [rng.choice([1, 2, 3, None]) for _ in range(40)],
        "b": [rng.choice([1, 2, 3, 4]) for _ in range(40)],
        "s": [rng.choice(["x", "y", None]) for _ in range(40)],
    }
    rules = {
        "not(t.a == u.a and t.b < u.b)": [("a", "==", "a"), ("b", "<", "b")],
        "not(t.s == u.s and t.b != u.b)": [("s", "==", "s"), ("b", "!=", "b")],
        "not(t.a <= u.b and t.b > u.a)": [("a", "<=", "b"), ("b", ">", "a")],
    }
    result = check(list(rules), pa.table(table), nulls=nulls, pairs=7)
    per_row = [0] * 40
    for rule, predicates in zip(result.rules, rules.values(), strict=True):
        found = by_definition(table, predicates, nulls)
        assert (rule.violating_pairs, rule.holds) == (len(found), False)
        listed = [(t, u) for t, u in found if t < u] if rule.symmetric else found
        frame = rule.pairs()
        assert list(zip(frame["t"], frame["u"], strict=True)) == listed
        assert list(zip(rule.pairs(9)["t"], rule.pairs(9)["u"], strict=True)) == listed[:9]
        assert [(p["t"], p["u"]) for p in rule.to_dict()["pairs"]] == listed[:7]
        assert rule.to_dict()["truncated"] is True
        for role, index in (("t", 0), ("u", 1)):
            for name in {n for a, _, b in predicates for n in (a, b)} & {c[2:] for c in frame if c[0] == role}:
                expected = [table[name][pair[index]] for pair in listed]
                assert [None if pd.isna(v) else v for v in frame[f"{role}.{name}"]] == expected
        counts = [sum(row in pair for pair in listed) for row in range(40)]
        ranked = sorted((row for row in range(40) if counts[row]), key=lambda row: (-counts[row], row))
        assert list(rule.rows()["row"]) == ranked
        assert list(rule.rows(3)["pairs"]) == [counts[row] for row in ranked[:3]]
        assert rule.violating_rows == len(ranked)
        per_row = [p + c for p, c in zip(per_row, counts, strict=True)]
    rows = result.rows()
    assert dict(zip(rows["row"], rows["pairs"], strict=True)) == {r: n for r, n in enumerate(per_row) if n}
    assert list(rows["pairs"]) == sorted(rows["pairs"], reverse=True)
    assert set(rows["rules"]) <= {1, 2, 3}
    whole = result.pairs()
    assert list(whole.columns[:4]) == ["rule_id", "rule", "t", "u"]
    assert len(whole) == sum(len(rule.pairs()) for rule in result.rules)
    assert len(result.pairs(5)) == 15


def test_values_are_those_of_the_table() -> None:
    day = datetime.date(2026, 2, 3)
    instant = datetime.datetime(2026, 2, 3, 4, 5, 6, 700000, tzinfo=UTC)
    columns = {
        "k": pa.array([1, 1]),
        "long": pa.array([2**53 + 1, None]),
        "money": pa.array([Decimal("1.50"), Decimal("20.25")], pa.decimal128(20, 4)),
        "share": pa.array([float("nan"), -0.5]),
        "day": pa.array([day, None]),
        "at": pa.array([instant, instant.replace(microsecond=0)], pa.timestamp("us", "UTC")),
        "flag": pa.array([True, None]),
        "name": pa.array(["naïve 名", ""]),
    }
    rule = "not(t.k == u.k and " + " and ".join(f"t.{name} is not null" for name in columns if name != "k") + ")"
    result = check(rule, pa.table(columns), key=["long", "money"])
    (pair,) = json.loads(result.to_json())["result"]["rules"][0]["pairs"]
    assert pair["t"] == {"long": 2**53 + 1, "money": "1.50"}
    assert pair["u"] == {"long": None, "money": "20.25"}
    values = {name: v for (role, name), v in zip(pair["cells"], pair["values"], strict=True) if role == "t"}
    assert values == {
        "k": 1, "long": 2**53 + 1, "money": "1.50", "share": "NaN", "day": "2026-02-03",
        "at": "2026-02-03T04:05:06.7Z", "flag": True, "name": "naïve 名",
    }  # fmt: skip
    frame = result.pairs()
    assert (frame["t.long"][0], frame["t.money"][0], frame["t.day"][0]) == (2**53 + 1, Decimal("1.50"), day)
    assert frame["u.long"].isna()[0]
    assert frame["t.flag"][0] is True or bool(frame["t.flag"][0])


def test_rules_may_be_given_in_many_ways(planes: tw.Relation, tmp_path: Path) -> None:
    discovered = tw.discover_dcs(planes, device="cpu", max_predicates=2)
    file = tmp_path / "rules.txt"
    file.write_text(f"# rules\n{FD}\n\n`tail.no` -> type\n")
    constraint = tw.DenialConstraint((tw.Predicate("t", "seats", "==", "u", "seats"),))
    result = check([FD, "type -> seats; type -> hours", constraint, discovered, file], planes)
    rules = [rule.rule for rule in result.rules]
    assert len(set(rules)) == len(rules) == 4 + len(discovered)
    assert rules[3] == constraint
    assert all(rule.holds for rule in result.rules if rule.rule in set(discovered.constraints))
    assert check(discovered, planes).holds is True
    with pytest.raises(tw.InputError, match="a rule of this type can't be read: 'int'; allowed: text, a DenialCons"):
        check([3], planes)
    with pytest.raises(tw.RuleError, match=r"no column of the name 'seat'\. Did you mean 'seats'"):
        check("not(t.seat == u.seat)", planes)
    with pytest.raises(TypeError, match=r"check\(\) has no option: 'pair'. Did you mean 'pairs'"):
        check(FD, planes, pair=3)
    with pytest.raises(tw.InputError, match=r"key: there is no column of the name: 'typ'\. Did you mean 'type'"):
        check(FD, planes, key="typ")


def test_a_result_is_no_truth_value(planes: tw.Relation) -> None:
    result = check(FD, planes)
    with pytest.raises(TypeError, match=r"neither true nor false: ask \.holds"):
        bool(result)
    assert (result.holds, result.failed, result.violating_pairs) == (False, True, 4)
    several = check([FD, "not(t.type == 'Z')"], planes)
    assert several.holds is False
    with pytest.raises(tw.InputError, match=r"rules that were checked: 2\. Each has its own number of pairs: \.rules"):
        _ = several.violating_pairs
    assert check("not(t.type == 'Z')", planes).holds is True


def test_a_key_names_rows_and_says_where_it_does_not(planes: tw.Relation) -> None:
    result = check(FD, planes, key="hours")
    (entry,) = json.loads(result.to_json())["result"]["rules"]
    assert [(p["t"], p["u"]) for p in entry["pairs"]] == [
        ({"hours": 1.5}, {"hours": 2.5}),
        ({"hours": 7.0}, {"hours": 9.0}),
    ]
    assert [w["row"] for w in entry["worst_rows"]] == [{"hours": h} for h in (1.5, 2.5, 7.0, 9.0)]
    (note,) = [n for n in result.notes if "key" in n]
    assert note.startswith("the key ('hours') is not unique: 2 rows share theirs with another row")
    assert not [n for n in check(FD, planes, key=["hours", "seats"]).notes if "key" in n]
    frame = result.pairs()
    assert list(frame.columns) == ["t", "u", "t.hours", "u.hours", "t.tail.no", "u.tail.no", "t.type", "u.type"]
    assert list(result.rows()["hours"]) == [1.5, 2.5, 7.0, 9.0]
    assert "t.hours  u.hours" in result.to_text()


def test_a_key_may_be_called_like_a_column_of_ours() -> None:
    table = pa.table({"row": ["x", "y"], "pairs": [1, 2], "a": [3, 3]})
    frame = check("not(t.a == u.a)", table, key=["row", "pairs"]).rows()
    assert list(frame.columns) == ["row", "key.row", "key.pairs", "pairs"]
    assert frame.to_numpy().tolist() == [[0, "x", 1, 1], [1, "y", 2, 1]]


def test_what_fails_is_exact() -> None:
    table = pa.table({"a": [1] * 3 + list(range(10, 107))})  # 100 rows, 6 violating ordered pairs of 9,900
    rule = "not(t.a == u.a)"
    for bound, fails in (
        (None, True), (5, True), (6, False), ("6", False), ("0", True), ("0.06%", True),
        ("0.0606%", True), ("0.06060606060606060606060606060606060606%", True),
        ("0.06060606060606060606060606060606060607%", False), ("100%", False),
    ):  # fmt: skip
        result = check(rule, table, fail_on=bound)
        assert (result.failed, result.holds) == (fails, False), bound
    one = check("not(t.a == 1)", table, fail_on="3%")
    assert (one.failed, one.to_dict()["options"]["fail_on"]) == (False, "3%")
    assert check("not(t.a == 1)", table, fail_on="2.99%").failed


@pytest.mark.parametrize("bad", ["-1", "1.5", "101%", "-1%", "x", "", "%", 0.5, True, "NaN", "Infinity"])
def test_bounds_that_are_none(bad: Any) -> None:
    with pytest.raises(tw.InputError, match=r"fail_on: .*; allowed: a count of pairs such as 10, or a percentage"):
        FailOn.read(bad)


def test_faults_in_options_come_together() -> None:
    with pytest.raises(tw.InputError) as caught:
        DcCheckOptions.of(
            "check", {"pairs": -1, "key": ["a", "a"], "nulls": "no", "together": "x", "run_on": "y", "time_limit": 0}
        )
    for fault in (
        "pairs: -1; allowed: 0 or more", "key: ['a', 'a']; allowed: each column once",
        "nulls: 'no'; allowed: 'unknown' or 'value'", "together: 'x'; allowed: 'auto' or 'cost' or",
        "run_on: 'y'; allowed: 'auto' or 'driver' or 'spark'", "time_limit: 0; allowed: seconds above 0",
    ):  # fmt: skip
        assert fault in str(caught.value)


def test_counts_alone() -> None:
    result = check([FD, ONE_ROW], count_only=True)
    for entry in json.loads(result.to_json())["result"]["rules"]:
        assert entry["violating_pairs"] > 0
        assert (entry["pairs"], entry["worst_rows"], entry["truncated"]) == ([], [], True)
    assert len(result.rules[0].pairs()) == 2  # asked for, they are listed
    with pytest.raises(tw.InputError, match=r"rows were not ranked: .* Check without count_only"):
        result.rows()


def test_no_pairs_listed_and_none_held() -> None:
    result = check(FD, pairs=0)
    (entry,) = json.loads(result.to_json())["result"]["rules"]
    assert (entry["pairs"], entry["pairs_listed"], entry["truncated"], entry["worst_rows"]) == ([], 0, True, [])
    assert len(result.pairs()) == 2
    assert list(result.pairs(0).columns) == list(result.pairs().columns)
    assert len(result.rows()) == 4


def test_a_limit_that_was_reached_is_marked_everywhere() -> None:
    result = check([ONE_ROW, FD], time_limit=1e-9)
    one_row, fd = result.rules
    assert (one_row.holds, fd.holds, fd.violating_pairs, fd.failed) == (False, None, None, False)
    assert result.partial
    assert (result.holds, result.failed) == (False, True)
    assert check(FD, time_limit=1e-9).holds is None
    entry = json.loads(result.to_json())["result"]["rules"][1]
    assert (entry["holds"], entry["g1"], entry["truncated"]) == (None, None, True)
    for shown in (result.to_text(), repr(result), result._repr_html_()):
        assert "UNDECIDED" in shown
        assert "partial" in shown.lower()
    assert any("time limit" in note for note in result.notes)


def test_text_tells_verdicts_pairs_and_rows(planes: tw.Relation) -> None:
    shown = check([FD, ORDER, "not(t.type == 'Z')"], planes).to_text(limit=2)
    assert "3 rules: 2 violated, 1 hold" in shown
    assert f"VIOLATED  {FD}\n  4 ordered pairs (13.33 % of all), 4 rows; 1 row left out for a null" in shown
    assert re.search(r"^  t  u  t\.tail\.no  u\.tail\.no  t\.type  u\.type$", shown, re.MULTILINE)
    assert "all pairs, each once (t before u)" in shown
    assert "the first 2 pairs\n  rows in most pairs: 5 (5), 4 (3)" in shown
    assert "holds  not(t.type == 'Z')\n  no row violates it" in shown
    assert "All pairs: .pairs(), or .write_pairs(path) into a file; more here: .to_text(limit=N)" in shown
    assert "--pairs-out" not in check(FD, planes).to_text()
    assert "hash" in check(FD, planes).to_text(plan=True)
    assert "1 beyond the bound of 5" in check([FD, ORDER], planes, fail_on=5).to_text()
    assert all(len(line) <= 60 for line in check(ORDER, planes).to_text(width=60).splitlines())


def test_values_in_text_are_cut_and_shown_as_they_are() -> None:
    assert report_text.value("x" * 41) == "x" * 39 + "…"
    assert [report_text.value(v) for v in (None, True, 2.5, 10**20, "")] == [
        "(null)", "true", "2.5", "100000000000000000000", "",
    ]  # fmt: skip


def test_text_and_html_cannot_be_steered_by_names_and_values() -> None:
    table = pd.DataFrame({"[bold]x[/bold]": ["<script>alert(1)</script>", "\x1b[31mred\n"], "\x1b]0;": [1, 1]})
    rule = "not(t.`[bold]x[/bold]` != u.`[bold]x[/bold]` and t.`\x1b]0;` == u.`\x1b]0;`)"
    result = check(rule, table, key="\x1b]0;")
    for shown in (result.to_text(), repr(result)):
        assert "[bold]x[/bold]" in shown
        assert "\x1b" not in shown
    page = result._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page


def test_html_and_repr(planes: tw.Relation) -> None:
    result = check([FD, "not(t.type == 'Z')"], planes)
    assert repr(result).startswith("<CheckResult: 1 of 2 rules violated in 'planes', 6 rows, cpu>\n  VIOLATED not(")
    assert "4 ordered pairs" in repr(result.rules[0])
    page = result._repr_html_()
    assert "<b>planes</b>" in page
    assert page.count("<tr>") == 3
    assert page.count("<b>holds</b>") == 1


def test_csv_has_a_line_for_each_listed_pair(planes: tw.Relation) -> None:
    text = check([FD, ONE_ROW], planes, pairs=2, key="hours").to_csv()
    table = pyarrow.csv.read_csv(pa.BufferReader(text.encode()))
    assert table.column_names == [
        "rule_id", "rule", "t", "u", "t.hours", "u.hours", "t.tail.no", "u.tail.no", "t.type", "u.type", "t.seats",
    ]  # fmt: skip
    assert table["rule"].to_pylist() == [FD, FD, ONE_ROW, ONE_ROW]
    assert table["u"].to_pylist() == [1, 4, None, None]
    assert table["t.seats"].to_pylist() == [None, None, 180, 180]


def test_pandas_has_a_row_for_each_rule(planes: tw.Relation) -> None:
    frame = check([FD, ONE_ROW], planes).to_pandas()
    assert list(frame.columns) == [
        "id", "rule", "holds", "violating_pairs", "g1", "violating_rows", "rows_unknown", "symmetric", "seconds",
    ]  # fmt: skip
    assert list(frame["violating_pairs"]) == [4, 3]
    assert list(frame["holds"]) == [False, False]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_all_pairs_in_a_file(ending: str, tmp_path: Path, planes: tw.Relation) -> None:
    result = check([FD, ORDER], planes, pairs=1, key="hours")
    path = tmp_path / f"pairs.{ending}"
    path.write_text("old")
    told: list[int] = []
    assert result.write_pairs(str(path), progress=told.append) == 9
    assert told[-1] == 9
    table = pq.read_table(path) if ending == "parquet" else pyarrow.csv.read_csv(path)
    assert table.column_names == list(result.pairs().columns)
    assert table["t"].to_pylist() == [0, 3, 4, 4, 5, 5, 5, 5, 5]
    assert table["rule"].to_pylist() == [FD] * 2 + [result.rules[1].rule.rule] * 7
    assert table["t.hours"].to_pylist() == [1.5, 7.0, 9.0, 9.0] + [float("inf")] * 5
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert check(FD, planes).write_pairs(str(path)) == 2
    assert "rule" not in (pq.read_table(path) if ending == "parquet" else pyarrow.csv.read_csv(path)).column_names


def test_a_list_that_breaks_off_leaves_the_old_file(tmp_path: Path, planes: tw.Relation) -> None:
    path = tmp_path / "pairs.parquet"
    path.write_text("old")
    with pytest.raises(tw.LimitReached, match="time limit came before all pairs were listed"):
        check(ORDER, planes, pairs=0).write_pairs(str(path), deadline=0.0)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["pairs.parquet"]
    for bad, fault in (
        ("pairs.txt", "allowed: a name that ends in .parquet or .csv"),
        ("nosuch/pairs.csv", "There is no folder"),
    ):
        with pytest.raises(tw.InputError, match=fault):
            check(FD, planes).write_pairs(str(tmp_path / bad))


def test_more_pairs_than_a_frame_holds_are_refused() -> None:
    table = pa.table({"a": [1] * 12_000})
    result = check("not(t.a == u.a)", table)
    assert result.violating_pairs == 12_000 * 11_999
    assert len(result.pairs(1000)) == 1000
    with pytest.raises(tw.InputError, match=r"pairs for one data frame: 71994000; allowed: up to 50,000,000"):
        result.pairs()
    with pytest.raises(tw.InputError, match="limit: -1; allowed: 0 or more"):
        result.pairs(-1)


def sql_table() -> pa.Table:
    return pa.table({
        "id": pa.array([3, 1, None, 0, 5, 9, 7, 2]),
        "part": pa.array(["a", "b", "a", None, "b", "a", "a", "b"]),
        "x": pa.array([1, 1, 2, 2, None, None, 1, 2], pa.int64()),
        "y": pa.array([2, 3, 1, 2, 1, 3, 3, 1]),
    })  # fmt: skip


SQL_RULES = [
    "x -> y", "not(t.x < u.x and t.y > u.y)", "not(t.y >= 2 and t.part == 'a')", "not(t.x == u.x)",
    "not(t.part != u.part and t.y == u.y and u.id is not null)",
]  # fmt: skip


def listed_by_key(result: tw.CheckResult, key: list[str]) -> list[list[tuple[Any, ...]]]:
    """Per rule the rows of each pair by their keys; a pair that is listed once without its order."""
    found = []
    for rule in result.rules:
        frame = rule.pairs().astype(object)
        frame = frame.where(frame.notna(), None)
        sides = [tuple(frame[f"{role}.{k}"] for k in key) for role in ("t", "u") if f"{role}.{key[0]}" in frame]
        rows = [tuple(zip(*side, strict=True)) for side in sides]
        found.append([one_order(pair, rule.symmetric) for pair in zip(*rows, strict=True)])
    return [sorted(pairs, key=repr) for pairs in found]


def one_order(pair: tuple[Any, ...], symmetric: bool) -> tuple[Any, ...]:
    return tuple(sorted(pair, key=repr)) if symmetric else pair


def of_rows(result: tw.CheckResult, number: int, rows: list[tuple[Any, ...]], key: list[str]) -> list[Any]:
    """Rows of a query, with t's and u's key columns by turns, as `listed_by_key` has them."""
    rule = result.rules[number]
    sides = 1 if rule.rule.names_one_tuple else 2
    keys = [tuple(tuple(row[side : sides * len(key) : sides]) for side in range(sides)) for row in rows]
    return sorted((one_order(pair, rule.symmetric) for pair in keys), key=repr)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("key", [["id"], ["part", "id"]])
def test_sql_lists_the_same_pairs_by_key_on_duckdb(key: list[str], nulls: Any) -> None:
    table = sql_table()
    result = check(SQL_RULES, table, key=key, nulls=nulls)
    script = result.to_sql("duckdb", table="things")
    assert "row_number" not in script
    names = ", ".join(f'"{name}"' for name in key)
    assert f"-- Rows are told apart by {names}, in which no two rows" in script
    expected = listed_by_key(result, key)
    assert sum(map(len, expected)) > 20
    with duckdb.connect() as db:
        db.register("things", table)
        queries = [q for q in script.split(";\n") if "SELECT" in q]
        for number, query in enumerate(queries):
            assert of_rows(result, number, db.sql(query).fetchall(), key) == expected[number], query


def test_sql_of_a_key_that_is_not_unique_numbers_rows() -> None:
    table = pa.table({"k": [1, 1, 2], "a": [5, 5, 5]})
    result = check("not(t.a == u.a)", table, key="k")
    script = result.to_sql("duckdb", table="things")
    assert '"k" is listed, but did not tell the rows of the checked table apart' in script
    with duckdb.connect() as db:
        db.register("things", table)
        found = db.sql(script)
        assert found.columns == ["t", "u", "t_k", "u_k", "t_a", "u_a"]
        assert sorted(found.fetchall()) == [(0, 1, 1, 1, 5, 5), (0, 2, 1, 2, 5, 5), (1, 2, 1, 2, 5, 5)]


@pytest.mark.spark
def test_sql_lists_the_same_pairs_on_spark(spark: Any) -> None:
    table = sql_table()
    spark.createDataFrame(table).createOrReplaceTempView("checked_things")
    key = ["part", "id"]
    rules = [SQL_RULES[0], SQL_RULES[1], SQL_RULES[2]]
    result = check(rules, table, key=key)
    expected = listed_by_key(result, key)
    script = result.to_sql("spark", table="checked_things")
    for number, query in enumerate(q for q in script.split(";\n") if "SELECT" in q):
        found = [tuple(row) for row in spark.sql(query).collect()]
        assert of_rows(result, number, found, key) == expected[number], query
    numbered = check(SQL_RULES[3], table).to_sql("spark", table="checked_things")
    assert spark.sql(numbered.rstrip().removesuffix(";")).count() == len(check(SQL_RULES[3], table).pairs())


def test_results_without_rows_or_rules() -> None:
    empty = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    result = check(["a -> b", "not(t.a > 1)"], empty, key="a")
    assert result.holds is True
    assert len(result.pairs()) == len(result.rows()) == 0
    assert json.loads(result.to_json())["result"]["rules"][0]["g1"] == 0
    assert "2 hold" in result.to_text()
    none = check([], empty)
    assert (none.holds, len(none.to_pandas()), len(none.rows()), len(none.pairs())) == (True, 0, 0, 0)
    assert json.loads(none.to_json())["result"] == {"rules": []}
    assert "0 rules" in none.to_text()


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda r: r.to_sql("oracle"), "dialect: 'oracle'"),
        (lambda r: r.to_sql("spark", table="a..b"), "SQL table name: 'a..b'"),
        (lambda r: r.pieces("yaml"), "format: 'yaml'"),
    ],
)
def test_faults_in_how_to_list(planes: tw.Relation, call: Any, fault: str) -> None:
    with pytest.raises(tw.InputError, match=re.escape(fault)):
        call(check(FD, planes))


def test_what_discovery_lists_is_a_list_of_rules(planes: tw.Relation) -> None:
    found = tw.discover_dcs(planes, device="cpu").constraints
    assert check(found, planes).holds
    assert check(found[:1], planes).holds


def test_a_rule_that_is_given_again_is_checked_once_and_noted() -> None:
    table = pd.DataFrame({"a": [1, 1], "b": [1, 2]})
    found = tw.check(table, ["a -> b", "not(t.a == u.a and t.b != u.b)"], device="cpu")
    assert len(found.rules) == 1
    assert "'not(t.a == u.a and t.b != u.b)' is the same rule as 'a -> b': it is checked once" in found.notes
