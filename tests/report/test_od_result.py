"""What discoveries of keys, functional and order dependencies hand on, and what checks of order dependencies do."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tuplewise as tw
from tuplewise.engine.dc.rule_text import read_rule
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, KEY, Dependencies, mask_of
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.options import FdDiscoverOptions, KeyDiscoverOptions, OdDiscoverOptions
from tuplewise.engine.report import csv as csv_report
from tuplewise.engine.report import text
from tuplewise.engine.report.dependencies import Constancy, FunctionalDependency, Key, OrderCompatibility
from tuplewise.engine.report.fd_result import FdResult, KeyResult
from tuplewise.engine.report.od_check_result import OdCheckResult
from tuplewise.engine.report.od_result import OdResult
from tuplewise.engine.report.sql import writer_of
from tuplewise.gpu_kernels.words import mask_words

ENVELOPE = [
    "schema", "command", "version", "tables", "options", "device", "device_reason", "spark", "timings_seconds",
    "peak_rss_bytes", "partial", "notes", "result",
]  # fmt: skip
ABOUT = ["algorithm", "algorithm_reason", "search", "measure", "complete_context", "count"]
FLIGHTS = pa.table({
    "tail.no": ["N1", "N1", "N2", "N3", None],
    "month": [1, 1, 2, 2, 3],
    "week": [1, 4, 5, 5, None],
    "days, left": [9, 8, 3, 3, 1],
})  # fmt: skip
Entry = tuple[Sequence[int], int, int, int]
ODS: list[Entry] = [
    ([2], CONSTANT, 1, -1),
    ([0, 2], CONSTANT, 3, -1),
    ([], ASCENDING, 1, 2),
    ([], DESCENDING, 1, 3),
    ([0, 1], DESCENDING, 2, 3),
]


def discovery(entries: Sequence[Entry], options: Any, **more: Any) -> Discovery:
    """A discovery with these contexts, kinds and sides."""
    relation = more.pop("relation", None) or tw.load(FLIGHTS, name="flights")
    words = mask_words(len(relation.columns))
    kind, left, right = (np.array([e[i] for e in entries], dtype=np.int32) for i in (1, 2, 3))
    masks = np.array([mask_of(e[0], words) for e in entries], dtype=np.uint64).reshape(len(entries), words)
    known: dict[str, Any] = {
        "relation": relation, "options": options, "removals": None, "algorithm": "hybrid",
        "algorithm_reason": "asked for", "device": "cpu", "device_reason": "asked for",
        "timings_seconds": {"sample": 0.5}, "partial": False, "notes": ["a note"],
        "search": {"compared_pairs": 10, "share_of_pairs": 1.0},
    }  # fmt: skip
    return Discovery(dependencies=Dependencies(masks, kind.astype(np.int8), left, right), **{**known, **more})


def ods(**more: Any) -> OdResult:
    return OdResult(discovery(ODS, more.pop("options", OdDiscoverOptions()), **more), total_seconds=1.5)


def fds(**more: Any) -> FdResult:
    entries: list[Entry] = [([], CONSTANT, 3, -1), ([0, 2], CONSTANT, 1, -1)]
    return FdResult(discovery(entries, more.pop("options", FdDiscoverOptions()), **more))


def keys(**more: Any) -> KeyResult:
    entries: list[Entry] = [([3], KEY, -1, -1), ([0, 1], KEY, -1, -1)]
    return KeyResult(discovery(entries, more.pop("options", KeyDiscoverOptions()), **more))


def approximate(kind: type, *removals: int) -> dict[str, Any]:
    return {"options": kind(error=Decimal("0.4")), "removals": np.array(removals, dtype=np.int64)}


def test_json_of_order_dependencies_has_the_promised_shape() -> None:
    document = json.loads(ods().to_json())
    assert list(document) == ENVELOPE
    assert document["command"] == "od discover"
    assert document["timings_seconds"]["total"] == 1.5
    assert {"session", "load", "encode", "sample", "total"} <= set(document["timings_seconds"])
    assert document["options"] == {
        "error": 0, "error_measure": "g3", "max_context": None, "algorithm": "auto", "device": "auto",
        "time_limit": None, "memory_limit": None, "seed": 0, "run_on": "auto", "lexicographic": None, "nulls": "value",
    }  # fmt: skip
    result = document["result"]
    assert list(result) == [*ABOUT, "constant", "order_compatible"]
    assert (result["measure"], result["count"]) == (None, 5)
    assert result["search"] == {"compared_pairs": 10, "share_of_pairs": 1.0}
    assert result["constant"] == [
        {"context": ["week"], "attribute": "month"},
        {"context": ["tail.no", "week"], "attribute": "days, left"},
    ]
    assert result["order_compatible"] == [
        {"context": [], "left": "month", "right": "week", "direction": "ascending"},
        {"context": [], "left": "month", "right": "days, left", "direction": "descending"},
        {"context": ["tail.no", "month"], "left": "week", "right": "days, left", "direction": "descending"},
    ]
    assert ods().to_dict()["result"] == result


def test_json_of_functional_dependencies_and_keys() -> None:
    result = json.loads(fds().to_json())["result"]
    assert list(result) == [*ABOUT, "fds"]
    assert result["fds"] == [
        {"determinant": [], "dependent": "days, left"},
        {"determinant": ["tail.no", "week"], "dependent": "month"},
    ]
    document = json.loads(keys().to_json())
    assert (document["command"], list(document["result"])) == ("key discover", [*ABOUT, "keys"])
    assert document["result"]["keys"] == [["days, left"], ["tail.no", "month"]]
    assert document["options"]["nulls"] == "unknown"


def test_rows_to_remove_are_told_with_their_share() -> None:
    result = json.loads(ods(**approximate(OdDiscoverOptions, 1, 0, 2, 0, 1)).to_json())["result"]
    assert result["measure"] == "g3"
    assert result["constant"][0] == {"context": ["week"], "attribute": "month", "rows_to_remove": 1, "g3": 0.2}
    assert [(o["rows_to_remove"], o["g3"]) for o in result["order_compatible"]] == [(2, 0.4), (0, 0.0), (1, 0.2)]
    found = fds(**approximate(FdDiscoverOptions, 2, 1))
    assert json.loads(found.to_json())["result"]["fds"][0]["rows_to_remove"] == 2
    assert [fd.rows_to_remove for fd in found.fds] == [2, 1]
    assert list(found.to_pandas().columns) == ["determinant", "dependent", "rows_to_remove", "g3"]
    assert found.to_csv().splitlines()[1] == ',"days, left",2,0.4'
    shown = found.to_text()
    assert "2 minimal functional dependencies (g3 <= 0.4)" in shown
    assert re.search(r"^ +rows to remove +g3 +dependency$", shown, re.MULTILINE)
    assert re.search(r"^2 +1 +0\.2 +`tail\.no`, week -> month$", shown, re.MULTILINE)
    listed = keys(**approximate(KeyDiscoverOptions, 0, 1))
    result = json.loads(listed.to_json())["result"]
    assert list(result) == [*ABOUT, "removals", "keys"]
    assert result["keys"] == [["days, left"], ["tail.no", "month"]]
    assert result["removals"] == [{"rows_to_remove": 0, "g3": 0.0}, {"rows_to_remove": 1, "g3": 0.2}]
    assert [key.rows_to_remove for key in listed.keys] == [0, 1]
    assert "<KeyResult: 2 minimal keys of 'flights' (g3 <= 0.4), 5 rows, cpu>" in repr(listed)
    assert "<td>0.2</td>" in listed._repr_html_()


def test_objects_have_names_texts_and_rules() -> None:
    found = ods()
    assert list(found.constants) == [Constancy(("week",), "month"), Constancy(("tail.no", "week"), "days, left")]
    assert found.order_compatible[1] == OrderCompatibility((), "month", "days, left", "descending")
    assert found.order_compatible[-1] == list(found.order_compatible)[2]
    assert list(found.order_compatible[1:]) == list(found.order_compatible)[1:]
    with pytest.raises(IndexError):
        found.order_compatible[3]
    assert list(map(str, found)) == [
        "week -> month",
        "`tail.no`, week -> `days, left`",
        "[]: month ~ week",
        "[]: month ~ `days, left` desc",
        "[`tail.no`, month]: week ~ `days, left` desc",
    ]
    assert len(found) == 5
    assert list(fds().fds) == [
        FunctionalDependency((), "days, left"),
        FunctionalDependency(("tail.no", "week"), "month"),
    ]
    assert list(keys().keys) == [Key(("days, left",)), Key(("tail.no", "month"))]


def test_texts_of_functional_dependencies_and_keys_are_rules_that_can_be_read() -> None:
    columns = FLIGHTS.column_names
    for dependency in (*fds().fds, *ods().constants, *keys().keys):
        wanted = dependency.rule.normalised(columns)
        assert read_rule(str(dependency), columns=columns).normalised(columns) == wanted


def test_contexts_of_more_than_one_word() -> None:
    names = [f"c{i}" for i in range(130)]
    wide = tw.load(pd.DataFrame([list(range(130))] * 2, columns=names))
    found = FdResult(discovery([([0, 63, 64, 129], CONSTANT, 127, -1)], FdDiscoverOptions(), relation=wide))
    assert list(found.fds) == [FunctionalDependency(("c0", "c63", "c64", "c129"), "c127")]


def test_all_forms_tell_the_same_in_the_same_order() -> None:
    found = ods()
    frame = found.to_pandas()
    assert list(frame.columns) == ["kind", "context", "attribute", "left", "right", "direction"]
    assert frame["kind"].tolist() == ["constant"] * 2 + ["order_compatible"] * 3
    assert frame["context"].tolist() == [("week",), ("tail.no", "week"), (), (), ("tail.no", "month")]
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [line["context"] for line in lines] == ["week", "tail.no,week", "", "", "tail.no,month"]
    assert [line["direction"] for line in lines] == ["", "", "ascending", "descending", "descending"]
    titles = re.findall(r"^-- (.*(?: -> |: ).*)$", found.to_sql().split("\n\n", 1)[1], re.MULTILINE)
    assert titles == list(map(str, found))
    assert keys().to_csv() == 'columns\n"""days, left"""\n"tail.no,month"\n'
    assert keys().to_pandas()["columns"].tolist() == [("days, left",), ("tail.no", "month")]


@pytest.mark.parametrize("names", [["a"], ["a", "b c"], ["a,b", 'say "x"', "ü"], [""], [" a", "b"], []])
def test_names_in_csv_are_read_back(names: list[str]) -> None:
    (read,) = csv.reader([csv_report.names(names)]) if names else [[]]
    assert read == names


def test_a_limit_cuts_each_list_and_says_so() -> None:
    document = json.loads(ods().to_json(limit=1))
    assert (len(document["result"]["constant"]), len(document["result"]["order_compatible"])) == (1, 1)
    assert document["result"]["count"] == 5
    assert document["notes"] == ["a note", "2 of 5 order dependencies are listed (limit)"]
    assert json.loads(ods().to_json(limit=3))["notes"] == ["a note"]
    assert len(ods().to_dict(limit=1)["result"]["constant"]) == 1
    assert ods().to_csv(limit=1).count("\n") == 3
    assert len(ods().to_pandas(limit=2)) == 4
    assert ods().to_sql(limit=1).count("SELECT t.") == 2


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda f: f.to_csv(limit=0), "limit: 0; allowed: 1 or more"),
        (lambda f: f.to_sql("oracle"), "dialect: 'oracle'"),
        (lambda f: f.to_sql("spark", table="a..b"), "SQL table name: 'a..b'"),
        (lambda f: f.pieces("yaml"), "format: 'yaml'"),
    ],
)
def test_faults_in_how_to_list(call: Any, fault: str) -> None:
    with pytest.raises(tw.InputError, match=re.escape(fault)):
        call(ods())


def test_text_groups_by_kind_and_shows_the_first() -> None:
    shown = ods().to_text()
    assert "5 minimal order dependencies (exact): 2 constant, 3 order compatible" in shown
    assert "hybrid (asked for)\ncompared 10 pairs of rows (100 % of all)\nnote: a note\n" in shown
    assert re.search(r"^constant \(rows .*\), by genuineness:\n +dependency\n1 +week -> month$", shown, re.MULTILINE)
    assert re.search(r"^2 +\[\]: month ~ `days, left` desc$", shown, re.MULTILINE)
    assert "All of them" not in shown
    cut = ods().to_text(limit=2)
    assert "never rises), the best 2 of 3, by genuineness:" in cut
    assert "All of them: .to_json(), .to_csv()" in cut
    assert "All of them: --format json, csv or sql" in ods().to_text(limit=2, command_line=True)
    assert "[`tail.no`, month]" not in cut
    assert all(len(line) <= 60 for line in ods().to_text(width=60).splitlines())
    assert "2 minimal keys (exact)\n" in keys().to_text()
    assert "column      type" in keys().to_text(verbose=True)


def test_text_of_a_search_by_levels() -> None:
    level = {"level": 1, "candidates": 12, "validated": 6, "valid": 5, "sample_rows": 3}
    search = {"levels": [level], "sample_rows": 3, "checked_on_sample": 12, "validated": 6, "violated": 1}
    shown = fds(algorithm="levelwise", search=search).to_text(verbose=True)
    assert "1 level; 12 candidates checked on a sample, of 3 rows in the end; 6 candidates checked on the" in shown
    assert "table, 1 violated\n" in shown
    assert re.search(r"^ +1 +12 +3 +6 +5$", shown, re.MULTILINE)


def test_html_and_repr() -> None:
    page = ods()._repr_html_()
    assert "<b>flights</b>" in page
    assert page.count("<table>") == 2
    assert "week -&gt; month" in page
    assert repr(ods()).splitlines()[0] == ("<OdResult: 5 minimal order dependencies of 'flights' (exact), 5 rows, cpu>")
    assert len(repr(ods()).splitlines()) == 6
    assert repr(fds().fds) == "[[] -> `days, left`, `tail.no`, week -> month]"


def test_names_cannot_steer_text_or_html() -> None:
    names = ["[bold]x[/bold]", "\x1b[31mred\n", "<script>alert(1)</script>", "b"]
    table = tw.load(pd.DataFrame([[1, 2, 3, 4], [1, 3, 5, 7]], columns=names))
    result = ods(relation=table)
    shown = result.to_text() + repr(result)
    assert "[bold]x[/bold]" in shown
    assert "\x1b" not in shown
    page = result._repr_html_()
    assert "<script>" not in page
    assert "\x1b" not in page


def test_a_limit_that_was_reached_is_marked_everywhere() -> None:
    search = {"compared_pairs": 1, "share_of_pairs": 0.1, "undecided": 7, "validated": 0, "violated": 0}
    result = ods(partial=True, search=search)
    assert result.partial
    assert json.loads(result.to_json())["partial"] is True
    missing = "a limit was reached; there may be more order dependencies: 7 candidates were undecided"
    assert f"PARTIAL: {missing}." in result.to_text()
    assert f"Partial: {missing}." in result._repr_html_()
    assert "PARTIAL" in repr(result)


def test_results_without_dependencies() -> None:
    result = OdResult(discovery([], OdDiscoverOptions()))
    assert (len(result), list(result), list(result.constants)) == (0, [], [])
    document = json.loads(result.to_json())["result"]
    assert (document["count"], document["constant"], document["order_compatible"]) == (0, [], [])
    assert "0 minimal order dependencies (exact)\n" in result.to_text()
    assert result.to_csv() == "kind,context,attribute,left,right,direction\n"
    assert list(result.to_pandas().columns) == ["kind", "context", "attribute", "left", "right", "direction"]
    assert result.to_sql().startswith("-- Each query")
    assert "<table>" not in result._repr_html_()
    assert text.SHOWN == 20


def violating(result: Any, table: pa.Table) -> list[int]:
    """How many pairs each query of a result lists on DuckDB."""
    with duckdb.connect() as db:
        db.register("flights", table)
        return [len(db.sql(q).fetchall()) for q in result.to_sql("duckdb").split(";\n") if "SELECT" in q]


def test_sql_lists_violating_pairs_with_nulls_as_values() -> None:
    table = FLIGHTS
    # month rises with week but for the null week, which is before all others and has the last month
    assert violating(ods(), table) == [0, 0, 4, 0, 0]
    unknown, value = (keys(options=KeyDiscoverOptions(nulls=nulls)) for nulls in ("unknown", "value"))
    twice = pa.concat_tables([FLIGHTS, FLIGHTS.slice(4)])
    assert violating(unknown, table) == [1, 1]  # both rows of 3 days left; N1 twice in month 1
    assert violating(unknown, twice) == [2, 1]
    assert violating(value, twice) == [2, 2]
    assert violating(fds(options=FdDiscoverOptions(nulls="value")), table) == [9, 0]


def test_sql_of_a_key_of_no_columns_lists_all_pairs() -> None:
    assert violating(KeyResult(discovery([([], KEY, -1, -1)], KeyDiscoverOptions())), FLIGHTS) == [10]


def test_list_dependencies_are_derived_where_asked_for() -> None:
    days = pd.DataFrame({"month": [1, 1, 2, 2], "quarter": [1, 1, 1, 1], "week": [1, 4, 5, 6]})
    found = tw.discover_ods(days, lexicographic=1, device="cpu")
    assert list(map(str, found.lexicographic)) == ["week -> month"]
    result = json.loads(found.to_json())["result"]
    assert list(result) == [*ABOUT, "lexicographic_count", "lexicographic", "constant", "order_compatible"]
    assert result["lexicographic"] == ["week -> month"]
    assert found.to_csv().splitlines()[0].endswith(",list")
    assert found.to_csv().splitlines()[-1].endswith(",week -> month")
    assert result["count"] == len(found)
    assert "lists, derived from the above (rows sorted by the left are sorted by the right):" in found.to_text()
    plain = tw.discover_ods(days, device="cpu")
    assert plain.lexicographic == []
    assert plain.shortest_order_by("quarter, month desc, week desc") == "week desc"
    assert plain.shortest_order_by("quarter") == "[]"


def test_list_dependencies_are_counted_where_cut_and_have_queries() -> None:
    table = pa.table({"a": [1, 1, 2, 3], "b": [4, None, 5, 5], "c": [9, 9, 7, 6]})
    found = tw.discover_ods(tw.load(table, name="flights"), lexicographic=2, device="cpu")
    count = len(found.lexicographic)
    assert count > 3
    document = json.loads(found.to_json(limit=2))
    assert (document["result"]["lexicographic_count"], len(document["result"]["lexicographic"])) == (count, 2)
    assert f"2 of {count} dependencies between lists are listed (limit)" in document["notes"]
    assert found.to_dict(limit=2)["notes"] == document["notes"]
    script = found.to_sql("duckdb")
    assert f"-- {found.lexicographic[0]} (t is before u on the left, or equal to it, and behind it on the" in script
    assert script.count("SELECT t.") == len(found) + count
    assert found.to_sql(limit=1).count("SELECT t.") == 3
    assert violating(found, table) == [0] * (len(found) + count)


@pytest.mark.parametrize("seed", range(3))
def test_queries_of_list_dependencies_list_the_pairs_that_break_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["a", "b c", "d"]
    columns = [rng.integers(-1, 3, 8).tolist() for _ in names]
    table = pa.table({n: [None if v < 0 else v for v in c] for n, c in zip(names, columns, strict=True)})
    writer = writer_of(tw.load(table, name="flights"), "duckdb", None, "value")
    with duckdb.connect() as db:
        db.register("flights", table)
        for left, right in [("ab", "d"), ("A", "bD"), ("", "a"), ("bA", "Db")]:
            sides = [[("abd".index(x.lower()), x.islower()) for x in side] for side in (left, right)]

            def after(t: int, u: int, side: list[tuple[int, bool]]) -> int:
                for c, ascends in side:
                    if columns[c][t] != columns[c][u]:
                        return 1 if (columns[c][t] > columns[c][u]) == ascends else -1
                return 0

            pairs = [(t, u) for t in range(8) for u in range(8) if t != u]
            wanted = sum(after(t, u, sides[0]) <= 0 < after(t, u, sides[1]) for t, u in pairs)
            named = [[(names[c], ascends) for c, ascends in side] for side in sides]
            assert len(db.sql(writer.order_query(*named).removesuffix(";\n")).fetchall()) == wanted, (left, right)


def test_a_table_with_equal_rows_has_no_key_and_the_result_says_why() -> None:
    table = pa.table({"a": [1, 2, 1, 2, None, None], "b": ["x", "y", "x", "y", "z", "z"]})
    found = tw.discover_keys(tw.load(table), device="cpu")
    assert (len(found), found.notes[-1]) == (0, "rows 0 and 2 are equal in all columns: no key")
    nulls = tw.load(table.slice(3))
    assert "equal in all columns" not in " ".join(tw.discover_keys(nulls, device="cpu").notes)
    known = tw.discover_keys(nulls, nulls="value", device="cpu")
    assert known.notes[-1] == "rows 1 and 2 are equal in all columns: no key"
    some = tw.discover_keys(tw.load(table), error=0.1, device="cpu")
    assert some.notes[-1].startswith("rows 0 and 2 are equal in all columns, and more so than rows may be removed")
    assert not tw.discover_keys(tw.load(table), error=0.4, device="cpu").notes[1:]
    assert "no key" not in " ".join(tw.discover_keys(tw.load(table.slice(0, 2)), device="cpu").notes)


def test_too_much_to_derive_loses_no_discovery(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(known: Any, most: int) -> Any:
        raise tw.InputError("more than 5 lists to look at. Lower --lexicographic")

    monkeypatch.setattr("tuplewise.engine.report.od_result.derive_list_ods", refuse)
    result = ods(options=OdDiscoverOptions(lexicographic=3))
    assert json.loads(result.to_json())["result"]["lexicographic"] == []
    assert "no list-based dependencies were derived: more than 5 lists" in result.to_text()


DAYS = pa.table({"month": [1, 1, 2, 3], "week": [1, 4, 5, None], "no": ["a", "a", "b", "c"]})


def check(ods: Any, **options: Any) -> OdCheckResult:
    return tw.check_ods(tw.load(DAYS, name="days"), ods, device="cpu", **options)


def test_a_check_tells_verdicts_and_two_rows() -> None:
    result = check(["month -> no", "month -> month, week", "week -> month", "no, week desc -> month"])
    assert [c.holds for c in result.ods] == [True, False, False, True]
    assert (result.holds, result.failed, result.partial, len(result)) == (False, True, False, 4)
    document = json.loads(result.to_json())
    assert list(document) == ENVELOPE
    assert (document["command"], document["tables"][0]["name"]) == ("od check", "days")
    _, split, swap, _ = document["result"]["ods"]
    assert list(split) == ["od", "holds", "violation", "seconds"]
    assert split["violation"] == {
        "kind": "split", "t": 0, "u": 1, "cells": [["t", "month"], ["u", "month"], ["t", "week"], ["u", "week"]],
        "values": [1, 1, 1, 4],
    }  # fmt: skip
    assert (swap["violation"]["kind"], swap["violation"]["t"]) == ("swap", 3)  # nulls are first
    assert result.to_dict()["result"] == document["result"]
    lines = list(csv.DictReader(io.StringIO(result.to_csv())))
    told = [(line["holds"], line["kind"], line["t"]) for line in lines]
    assert told[:2] == [("true", "", ""), ("false", "split", "0")]
    frame = result.to_pandas()
    assert list(frame.columns) == ["od", "holds", "kind", "t", "u", "seconds"]
    assert frame["t"].tolist()[1:3] == [0, 3]
    with pytest.raises(TypeError, match=r"ask .holds"):
        bool(result)
    with pytest.raises(tw.InputError, match="format: 'sql'; allowed: 'json' or 'csv'"):
        result.pieces("sql")


def test_text_and_html_of_a_check() -> None:
    result = check(["month -> no", "month -> month, week"])
    shown = result.to_text()
    assert "2 order dependencies: 1 violated, 1 hold" in shown
    assert "holds  month -> no\n" in shown
    assert "VIOLATED  month -> month, week\n  split: t and u are equal on the left and differ on the right\n" in shown
    assert re.search(r"^  t  u  t\.month  u\.month  t\.week  u\.week\n  0  1  1 ", shown, re.MULTILINE)
    assert repr(result).startswith("<OdCheckResult: 2 order dependencies: 1 violated, 1 hold in 'days'>\n  holds month")
    page = result._repr_html_()
    assert page.count("<table>") == 1
    assert "month -&gt; no" in page


def test_a_check_against_a_discovery_needs_no_rows() -> None:
    found = tw.discover_ods(DAYS, device="cpu")
    wanted = ["month -> no", "month -> month, week", "week -> month", "no, week desc -> month"]
    against = tw.check_ods(found, wanted)
    assert [c.holds for c in against.ods] == [c.holds for c in check(wanted).ods]
    document = json.loads(against.to_json())
    assert (document["tables"], document["device"], document["partial"]) == ([], None, False)
    assert document["result"]["ods"][1]["violation"] is None
    assert "VIOLATED  month -> month, week" in against.to_text()
    assert "month" in against._repr_html_()
    limited = tw.check_ods(tw.discover_ods(DAYS, device="cpu", max_context=0), wanted)
    assert limited.partial
    assert None in [c.holds for c in limited.ods]
    assert any("it does not tell about" in note for note in limited.notes)


def test_a_check_that_a_limit_ended() -> None:
    result = check(["month -> no", "week -> no"], time_limit=1e-9)
    assert [c.holds for c in result.ods] == [None, None]
    assert (result.holds, result.failed, result.partial) == (None, False, True)
    assert result.notes[-1] == "time limit reached: 2 of 2 dependencies are undecided"
    assert "UNDECIDED  month -> no" in result.to_text()
    over = "the time limit was over before the table was read"
    for late in (
        tw.check_ods(DAYS, "month -> no", time_limit=1e-9),
        tw.discover_ods(DAYS, time_limit=1e-9),
        tw.discover_dcs(DAYS, time_limit=1e-9),
        tw.check(DAYS, "month -> no", time_limit=1e-9),
    ):
        assert late.partial
        assert over in " ".join(late.notes)


def test_dependencies_are_given_as_text_objects_and_files(tmp_path: Path) -> None:
    lines, saved = tmp_path / "ods.txt", tmp_path / "checked.json"
    lines.write_text("# days\nmonth -> no\n\nweek -> month desc\n")
    first = check([lines, "month -> no"])
    assert [str(c.od) for c in first.ods] == ["month -> no", "week -> month desc"]
    assert "'month -> no' is the same dependency as ods.txt line 2: it is checked once" in first.notes
    saved.write_text(first.to_json())
    assert [str(c.od) for c in check(saved).ods] == [str(c.od) for c in first.ods]
    assert [str(c.od) for c in check([first.ods[0].od]).ods] == ["month -> no"]
    listed = tmp_path / "found.json"
    listed.write_text(tw.discover_ods(DAYS.select(["month", "no"]), lexicographic=1).to_json())
    assert {str(c.od) for c in check(listed).ods} == {"month -> no", "no -> month"}


def test_faults_in_dependencies_come_together(tmp_path: Path) -> None:
    path = tmp_path / "ods.txt"
    path.write_text("month -> day\nmonth\n")
    with pytest.raises(tw.RuleError) as caught:
        check([path, "weak -> month"])
    for fault in ("ods.txt line 1: ", "no column of the name 'day'", "ods.txt line 2: ", "Did you mean 'week'?"):
        assert fault in str(caught.value)
    assert str(caught.value).count("Accepted: ") == 1
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    with pytest.raises(tw.RuleError, match=r"no order dependencies in file: 'empty\.txt'; allowed: one order"):
        check(empty)
    empty.write_text('{"result": {"keys": []}}')
    with pytest.raises(tw.RuleError, match=r"no list of order dependencies in JSON file: 'empty\.txt'"):
        check(empty)
    for content, fault in {
        '{"command": "od discover", "result": {"constant": []}}': "It was discovered without lexicographic=N",
        '{"command": "key discover", "result": {"keys": []}}': "It is of key discover",
        '{"result": {"ods": [5]}}': "empty.txt entry 1 is no order dependency: 5; allowed: one order dependency a",
        '{"result": {"ods": {"a": 1}}}': "empty.txt entry 1 is no order dependency: {'a': 1}",
        '{"result": {"ods": []}}': "no order dependencies in file: 'empty.txt'",
        '{"result": 5}': "no list of order dependencies in JSON file: 'empty.txt'",
        '{"result"': "file 'empty.txt' begins as JSON and isn't: \"line 1, column 10: Expecting ':' delimiter",
    }.items():
        empty.write_text(content)
        with pytest.raises(tw.RuleError) as caught:
            check(empty)
        assert fault in str(caught.value)
    with pytest.raises(tw.RuleError, match="file of order dependencies can't be read: "):
        check(tmp_path)
    with pytest.raises(tw.RuleError, match=r"order dependencies: \[\]; allowed: one or more, such as \"month, week"):
        check([])
    with pytest.raises(tw.InputError, match="an order dependency of this type can't be read: 'int'"):
        check([5])
    with pytest.raises(tw.InputError, match="run_on 'spark' for a table that is held here"):
        check("month -> no", run_on="spark")
