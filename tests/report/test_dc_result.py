"""What a discovery hands on: objects, dict, JSON, CSV, pandas, SQL, text, HTML; ranking and limits."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tuplewise as tw
from tuplewise import InputError
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.report import model, text
from tuplewise.engine.report.json import pieces

FLIGHTS = pd.DataFrame({
    "tail.no": ["N1", "N1", "N2", "N3", "N3"],
    "type": ["A", "A", "B", "B", "B"],
    "seats": [100, 100, 180, 180, 170],
    "hours": [1.5, 2.5, 2.5, 7.0, 9.0],
})  # fmt: skip


@pytest.fixture(scope="module")
def found() -> tw.DcResult:
    return tw.discover_dcs(tw.load(FLIGHTS, name="flights"), device="cpu")


def test_json_has_the_promised_shape(found: tw.DcResult) -> None:
    document = json.loads(found.to_json())
    assert list(document) == [
        "schema", "command", "version", "tables", "options", "device", "device_reason", "spark", "timings_seconds",
        "peak_rss_bytes", "partial", "notes", "result",
    ]  # fmt: skip
    assert document["schema"] == "tuplewise/1"
    assert document["command"] == "dc discover"
    assert document["version"] == tw.__version__
    assert document["spark"] is None
    assert document["partial"] is False
    assert document["device"] == "cpu"
    assert {"session", "load", "encode", "evidence", "inversion", "total"} <= set(document["timings_seconds"])
    assert document["peak_rss_bytes"] > 10_000_000
    (table,) = document["tables"]
    assert (table["name"], table["path"], table["rows"]) == ("flights", None, 5)
    assert [list(c) for c in table["columns"]] == [["name", "type", "why", "distinct", "nulls"]] * 4
    result = document["result"]
    assert list(result) == [
        "predicate_space", "distinct_evidences", "pairs", "algorithm", "algorithm_reason", "search", "estimate",
        "count", "constraints",
    ]  # fmt: skip
    assert result["estimate"] is None
    assert result["pairs"] == 20
    assert result["count"] == len(result["constraints"]) == len(found) > 0
    for entry in result["constraints"]:
        assert list(entry) == [
            "id", "rule", "predicates", "kind", "violating_pairs", "g1", "succinctness", "coverage",
        ]  # fmt: skip
        assert re.fullmatch("[0-9a-f]{12}", entry["id"])
        assert entry["kind"] in {"key", "fd", "constant", "od", "dc"}
        assert entry["violating_pairs"] == 0 == entry["g1"]
        assert 0 < entry["succinctness"] <= 1
        assert 0 < entry["coverage"] <= 1
        for left, operator, right in entry["predicates"]:
            assert operator in {"==", "!=", "<", "<=", ">", ">="}
            for operand in (left, right):
                dotted = isinstance(operand, list)
                assert (operand[1] if dotted else operand[2:]) in FLIGHTS.columns
                assert dotted == (operand[1] == "tail.no" if dotted else False)
    assert [["t", "tail.no"], "==", ["u", "tail.no"]] in [p for e in result["constraints"] for p in e["predicates"]]


def test_all_forms_tell_the_same_constraints_in_the_same_order(found: tw.DcResult) -> None:
    rules = [DenialConstraint(c.predicates).rule for c in found.constraints]
    ids = [c.id for c in found.constraints]
    assert rules == [c.rule for c in found]
    document = found.to_dict()
    assert json.loads(found.to_json())["result"] == document["result"]
    assert [e["rule"] for e in document["result"]["constraints"]] == rules
    assert [e["id"] for e in document["result"]["constraints"]] == ids
    frame = found.to_pandas()
    assert list(frame["kind"]) == [c.kind for c in found.constraints]
    assert list(frame.columns) == [
        "id", "rule", "kind", "size", "violating_pairs", "g1", "succinctness", "coverage",
    ]  # fmt: skip
    assert list(frame["rule"]) == rules
    assert list(frame["size"]) == [len(c) for c in found.constraints]
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [line["rule"] for line in lines] == rules
    assert [float(line["coverage"]) for line in lines] == list(frame["coverage"])
    assert re.findall(r"^-- [0-9a-f]{12} (.*)$", found.to_sql(), re.MULTILINE) == rules


def test_options_are_complete_and_exact() -> None:
    table = tw.load(FLIGHTS)
    options = tw.discover_dcs(table, error=0.1, device="cpu", shared_values="0.25").to_dict()["options"]
    assert options["error"] == 0.1
    assert options["shared_values"] == 0.25
    assert set(options) == {
        "error", "error_measure", "max_predicates", "cross_columns", "single_tuple", "order_text", "shared_values",
        "comparable_means", "nulls", "minimality", "algorithm", "sample_pairs", "device", "time_limit", "memory_limit",
        "seed", "run_on",
    }  # fmt: skip
    precise = Decimal("0.1000000000000000000001")
    assert model.plain(precise) == "0.1000000000000000000001"
    assert model.plain({"a": (Decimal("0.5"), Decimal(0))}) == {"a": [0.5, 0]}


def test_settings_that_may_be_secret_are_not_written() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "abc", "spark.hadoop.fs.s3a.access.key": "abc", "spark.master": "local"}
    record = model.options_record(LoadOptions(conf=conf))
    assert record["conf"] == dict.fromkeys(list(conf)[:2], "(not shown)") | {"spark.master": "local"}


def test_ranking_puts_the_best_first_and_keeps_result_order_in_ties(found: tw.DcResult) -> None:
    frame = found.to_pandas()
    for by in ("succinctness", "coverage"):
        ranked = found.to_pandas(rank_by=by)
        figures = list(ranked[by])
        assert figures == sorted(figures, reverse=True)
        for figure in set(figures):
            in_ties = list(ranked.loc[ranked[by] == figure, "rule"])
            assert in_ties == list(frame.loc[frame[by] == figure, "rule"])
    assert [c.rule for c in found.ranked("coverage", limit=3)] == list(found.to_pandas(rank_by="coverage")["rule"][:3])
    assert len(set(frame["succinctness"])) > 1


def test_ranking_by_violations() -> None:
    approximate = tw.discover_dcs(tw.load(FLIGHTS), error=0.2, device="cpu")
    ranked = approximate.to_pandas(rank_by="g1")
    assert list(ranked["g1"]) == sorted(ranked["g1"])
    assert ranked["g1"].max() > 0
    assert np.array_equal(ranked["g1"], ranked["violating_pairs"] / 20)


def test_a_limit_lists_the_most_succinct_and_says_so(found: tw.DcResult) -> None:
    document = json.loads(found.to_json(limit=2))
    assert document["result"]["count"] == len(found)
    assert [e["rule"] for e in document["result"]["constraints"]] == [c.rule for c in found.ranked(limit=2)]
    assert document["notes"][-1] == f"2 of {len(found)} constraints are listed (limit)"
    assert found.to_csv(limit=2).count("\n") == 3


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda f: f.ranked("size"), "rank_by: 'size'; allowed: 'genuineness', 'succinctness', 'coverage', 'g1'"),
        (lambda f: f.to_csv(limit=0), "limit: 0; allowed: 1 or more"),
        (lambda f: f.to_sql("oracle"), "dialect: 'oracle'"),
        (lambda f: f.to_sql("spark", table="a..b"), "SQL table name: 'a..b'"),
        (lambda f: f.pieces("yaml"), "format: 'yaml'"),
    ],
)
def test_faults_in_how_to_list(found: tw.DcResult, call: Any, fault: str) -> None:
    with pytest.raises(tw.InputError, match=re.escape(fault)):
        call(found)


def test_sql_of_a_result_finds_nothing_in_its_own_table(found: tw.DcResult) -> None:
    with duckdb.connect() as db:
        db.register("my flights", pa.Table.from_pandas(FLIGHTS))
        script = found.to_sql("duckdb", table='"my flights"')
        for statement in script.split(";\n"):
            if "SELECT" in statement:
                assert db.sql(statement).fetchall() == []
        changed = pd.concat([FLIGHTS, FLIGHTS.iloc[[0]].assign(type="Z")])
        db.register("my flights", pa.Table.from_pandas(changed, preserve_index=False))
        fd = next(c for c in found.constraints if c.rule == "not(t.`tail.no` == u.`tail.no` and t.type != u.type)")
        query = next(s for s in script.split("\n\n") if fd.id in s)
        assert len(db.sql(query).fetchall()) == 2


def test_text_shows_the_best_and_the_count(found: tw.DcResult) -> None:
    shown = found.to_text(limit=2)
    assert f"{len(found)} minimal denial constraints (exact); 20 ordered pairs" in shown
    assert f"best 2 of {len(found) - 1} groups, by genuineness:" in shown
    assert "All of them: .to_json(), .to_csv()" in shown
    assert "All of them: --format json, csv or sql" in found.to_text(limit=2, command_line=True)
    assert [c.rule in shown for c in found.ranked("genuineness", limit=3)] == [True, True, False]
    ranked = found.to_text(limit=2, rank_by="succinctness")
    assert f"best 2 of {len(found)}, by succinctness:" in ranked
    assert [c.rule in ranked for c in found.ranked(limit=3)] == [True, True, False]
    whole = found.to_text(limit=10_000, verbose=True, rank_by="coverage")
    assert "All of them" not in whole
    assert re.search(r"^tail\.no +text +3 +0 +\S", whole, re.MULTILINE)
    assert all(len(line) <= 60 for line in found.to_text(width=60).splitlines())


def test_text_and_html_cannot_be_steered_by_names() -> None:
    names = ["[bold]x[/bold]", "\x1b[31mred\n", "<script>alert(1)</script>", ":smile:"]
    result = tw.discover_dcs(tw.load(pd.DataFrame([[1, 2, 3, 4], [1, 3, 5, 7]], columns=names)), device="cpu")
    shown = result.to_text(limit=100)
    assert "[bold]x[/bold]" in shown
    assert ":smile:" in shown
    assert "\x1b" not in shown + repr(result)
    assert "``\\x1b`[31mred`\\n" in shown
    page = result._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page


def test_colour_only_where_it_is_asked_for(found: tw.DcResult) -> None:
    assert "\x1b" not in found.to_text(width=100)
    assert "\x1b[1m" in found.to_text(width=100, color=True)


def test_html_and_repr_say_what_was_found(found: tw.DcResult) -> None:
    page = found._repr_html_()
    assert "<b>flights</b>" in page
    groups = {tuple((p.left, p.right) for p in rule.predicates) for rule in found.constraints}
    assert page.count("<tr>") == 1 + min(len(groups), text.SHOWN)
    assert "best first, by genuineness" in page
    assert "<th>variants</th>" in page
    assert page.count("<td>1</td><td style") == len(found) - len(groups) == 1
    assert repr(found).startswith(
        f"<DcResult: {len(found)} minimal denial constraints of 'flights' (exact), 5 rows, cpu>"
    )
    assert f"... and {len(found) - 5} more" in repr(found)


@pytest.mark.parametrize(
    ("frame", "note"),
    [
        (pd.DataFrame({"a": pd.Series([], dtype="int64"), "b": pd.Series([], dtype="object")}), "nothing to learn"),
        (pd.DataFrame({"a": [1], "b": ["x"]}), "1 row, so there are no pairs of rows: nothing to learn"),
        (pd.DataFrame({"a": [None, None, None]}, dtype="object"), "column 'a' has no values: left out"),
        (pd.DataFrame({"a": [1, 1, 1], "b": ["x", "x", "x"]}), "with one value only"),
    ],
)
def test_tables_that_teach_little_say_so_in_every_form(frame: pd.DataFrame, note: str) -> None:
    result = tw.discover_dcs(frame, device="cpu")
    assert any(note in n for n in result.notes)
    assert note in result.to_text()
    assert any(note in n for n in json.loads(result.to_json())["notes"])
    assert note.replace("'", "&#39;") in result._repr_html_()
    assert result.to_csv().startswith("id,rule,kind")
    assert len(result.to_pandas()) == len(result)
    assert repr(result).startswith("<DcResult: ")
    assert result.to_sql().startswith("-- Each query")


def test_a_limit_that_was_reached_is_marked_everywhere() -> None:
    rng = np.random.default_rng(5)
    wide = pd.DataFrame(rng.integers(0, 30, (400, 30)), columns=[f"c{i}" for i in range(30)])
    result = tw.discover_dcs(wide, device="cpu", time_limit=0.2, cross_columns=False)
    assert result.partial
    assert json.loads(result.to_json())["partial"] is True
    assert "PARTIAL" in result.to_text()
    assert "PARTIAL" in repr(result)
    assert "Partial" in result._repr_html_()
    assert any("time limit" in note for note in result.notes)


def test_entries_are_spliced_into_a_document_that_ends_in_an_empty_list() -> None:
    head = {"a": [], "b": {"c": 1, "d": []}}
    assert json.loads("".join(pieces(head, [{"x": "]"}, {"y": "[]"}]))) == {
        "a": [],
        "b": {"c": 1, "d": [{"x": "]"}, {"y": "[]"}]},
    }
    assert json.loads("".join(pieces(head, []))) == head
    with pytest.raises(ValueError, match="does not end in an empty list"):
        list(pieces({"a": 1}, []))


def test_errors_relative_to_chance() -> None:
    """Of 100 rows each with a number, a few share it: nearly a key by all pairs, and what chance gives by lift."""
    rows = range(100)
    table = pd.DataFrame({"id": [max(2, row) for row in rows], "kind": [row % 5 for row in rows]})
    table["group"] = table["kind"] // 2
    by_pairs = tw.discover_dcs(table, error="0.001", device="cpu")
    assert "not(t.id == u.id)" in [c.rule for c in by_pairs.constraints]
    found = tw.discover_dcs(table, error="0.001", error_measure="lift", device="cpu")
    rules = [c.rule for c in found.constraints]
    assert "not(t.id == u.id)" not in rules
    assert "not(t.kind == u.kind and t.group != u.group)" in rules
    assert "(lift <= 0.001)" in found.to_text()
    assert {c["lift"] for c in found.to_dict()["result"]["constraints"]} == {0.0}
    assert "lift" not in by_pairs.to_dict()["result"]["constraints"][0]
    loose = tw.discover_dcs(table, error="0.9", error_measure="lift", max_predicates=2, device="cpu")
    pairs = 100 * 99
    for record in loose.to_dict()["result"]["constraints"]:
        chance = 1.0
        for (left, operator, right), _ in zip(record["predicates"], range(2), strict=False):
            chance *= tw.check(table, f"not({left} {operator} {right})").rules[0].violating_pairs / pairs
        assert record["lift"] == pytest.approx(record["g1"] / chance if chance else 0.0)


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"error_measure": "g3"}, "error_measure: 'g3'; allowed: 'g1', 'lift'. g3 and mu are about dependencies"),
        ({"error_measure": "mu"}, "error_measure: 'mu'; allowed: 'g1', 'lift'"),
        ({"error_measure": "lift", "sample_pairs": 10}, "error_measure with sample_pairs: 'lift'; allowed: 'g1'"),
    ],
)
def test_measures_that_constraints_do_not_have(asked: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=re.escape(fault)):
        tw.discover_dcs(pd.DataFrame({"a": [1, 2]}), error=0.1, **asked)


def test_a_state_knows_no_errors_relative_to_chance(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="error_measure of a state: 'lift'; allowed: 'g1'"):
        tw.maintain_dcs(tmp_path / "state", pd.DataFrame({"a": [1, 2]}), error=0.1, error_measure="lift")
