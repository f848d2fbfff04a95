"""Every form in which inclusion dependencies and their checks are handed on."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import tuplewise as tw
from tuplewise.engine.errors import InputError

TABLES = {
    "orders": pa.table({"no": [1, 2, 3, 4], "customer id": ["a", "b", "b", None], "site": ["x", "x", "y", "y"]}),
    "customers": pa.table({"id": ["a", "b", "c"], "site": ["x", "y", "z"]}),
}
FOUND = tw.discover_inds(TABLES, max_arity=2)
CHILDREN = {
    "child": pa.table({"a": [1, None, 9, 9, 7], "w": ["p", "p", "q", "<b>", None]}),
    "parent": pa.table({"b": [1, None], "v": ["p", "r"]}),
}
CHECKED = tw.check_inds(CHILDREN, ["child.a <= parent.b", "child[a, w] <= parent[b, v]", "parent.b <= child.a"])


def test_json_of_a_discovery() -> None:
    document = json.loads(FOUND.to_json())
    assert document == FOUND.to_dict()
    assert document["schema"] == "tuplewise/1"
    assert document["command"] == "ind discover"
    assert [t["name"] for t in document["tables"]] == ["orders", "customers"]
    assert document["tables"][1]["columns"][0]["distinct"] == 3
    assert (document["options"]["max_arity"], document["options"]["nulls"]) == (2, "unknown")
    result = document["result"]
    assert result["count"] == len(result["inds"]) == len(FOUND)
    assert result["trivial"] == 0
    by_name = {str(entry["dependent"]): entry for entry in result["inds"]}
    entry = by_name["orders.`customer id`"]
    assert {k: v for k, v in entry.items() if k != "foreign_key"} == {
        "dependent": "orders.`customer id`",
        "referenced": "customers.id",
        "dependent_distinct": 2,
        "referenced_distinct": 3,
        "missing_values": 0,
    }
    assert entry["foreign_key"] == {
        "coverage": 0.666667, "name_likeness": 1.0, "key": 1.0, "unique": True, "score": 0.9,
    }  # fmt: skip
    assert list(document["result"])[-1] == "inds"


def test_several_columns_are_lists_in_json() -> None:
    tables = {"t": pa.table({"a": [1], "b": ["x"]}), "u": pa.table({"k": [1, 2], "m": ["x", "y"]})}
    entries = json.loads(tw.discover_inds(tables, max_arity=2).to_json())["result"]["inds"]
    assert entries[-1]["dependent"] == ["t.a", "t.b"]
    assert entries[-1]["referenced"] == ["u.k", "u.m"]


def test_a_limit_lists_the_best_and_says_so() -> None:
    document = FOUND.to_dict(limit=1)
    assert [entry["dependent"] for entry in document["result"]["inds"]] == ["orders.`customer id`"]
    assert document["result"]["count"] == len(FOUND)
    cut = f"the best 1 of {len(FOUND)} inclusion dependencies are listed (limit)"
    assert document["notes"][-1] == cut
    assert json.loads(FOUND.to_json(limit=1))["notes"][-1] == cut
    assert len(FOUND.to_csv(limit=1).splitlines()) == 2
    for limited in (lambda: FOUND.to_dict(limit=0), lambda: FOUND.pieces("json", limit=0), lambda: FOUND.ranked(0)):
        with pytest.raises(InputError, match="limit: 0; allowed: 1 or more"):
            limited()
    with pytest.raises(InputError, match="format: 'xml'"):
        FOUND.pieces("xml")


def test_csv_and_pandas_have_a_row_each() -> None:
    rows = list(csv.DictReader(io.StringIO(FOUND.to_csv())))
    assert [row["dependent"] for row in rows] == [str(one.ind).split(" <= ")[0] for one in FOUND.inds]
    assert rows[0]["unique"] in ("true", "false")
    frame = FOUND.to_pandas()
    assert list(frame.columns) == list(rows[0])
    assert len(frame) == len(FOUND)


def test_text_shows_the_likeliest_first() -> None:
    text = FOUND.to_text()
    assert "orders: 4 rows, 3 columns" in text
    assert f"{len(FOUND)} inclusion dependencies (exact)" in text
    lines = [line for line in text.splitlines() if line.startswith("1 ")]
    assert lines[0].endswith("orders.`customer id` <= customers.id")
    assert "--format" in FOUND.to_text(limit=1, command_line=True)
    assert ".to_json()" in FOUND.to_text(limit=1)
    assert "at most 0.5 of the distinct values missing, compared as text" in tw.discover_inds(
        TABLES, error=0.5, as_text=True
    ).to_text()  # fmt: skip


def test_html_is_escaped() -> None:
    shown = FOUND._repr_html_()
    assert "<code>orders.`customer id` &lt;= customers.id</code>" in shown
    shown = CHECKED._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>VIOLATED</b>" in shown


def test_repr_is_short() -> None:
    assert repr(FOUND).splitlines()[0].startswith(f"<IndResult: {len(FOUND)} inclusion dependencies (exact)")
    assert repr(CHECKED).splitlines() == [
        "<IndCheckResult: 3 inclusion dependencies: 2 violated, 1 hold>",
        "  VIOLATED child.a <= parent.b",
        "  VIOLATED child[a, w] <= parent[b, v]",
        "  holds parent.b <= child.a",
    ]
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(CHECKED)


def test_json_of_a_check() -> None:
    document = json.loads(CHECKED.to_json())
    assert document == CHECKED.to_dict()
    assert document["command"] == "ind check"
    first, second, third = document["result"]["inds"]
    assert {name: first[name] for name in ("ind", "holds", "missing_values", "rows_missing", "rows_null")} == {
        "ind": "child.a <= parent.b",
        "holds": False,
        "missing_values": 2,
        "rows_missing": 3,
        "rows_null": 1,
    }
    assert first["examples"] == [{"value": 9, "count": 2, "rows": [2, 3]}, {"value": 7, "count": 1, "rows": [4]}]
    assert second["examples"][0] == {"value": [9, "q"], "count": 1, "rows": [2]}
    assert (third["holds"], third["examples"]) == (True, [])
    assert CHECKED.failed


def test_csv_and_text_of_a_check() -> None:
    rows = list(csv.DictReader(io.StringIO(CHECKED.to_csv())))
    assert [(row["ind"], row["holds"], row["missing_values"]) for row in rows] == [
        ("child.a <= parent.b", "false", "2"),
        ("child[a, w] <= parent[b, v]", "false", "2"),
        ("parent.b <= child.a", "true", "0"),
    ]
    assert CHECKED.to_pandas()["rows_missing"].tolist() == [3, 2, 0]
    text = CHECKED.to_text()
    assert "2 of 3 values missing, in 3 rows; 1 row left out for a null" in text
    assert "no value is missing; 1 row left out for a null" in text
    one = tw.check_inds(CHILDREN, "child.a <= parent.b", examples=1)
    assert "1 of 2 missing values, those of most rows" in one.to_text()
    assert "--examples N" in one.to_text(command_line=True)


def run_in_duckdb(script: str, tables: dict[str, pa.Table]) -> list[list[tuple[Any, ...]]]:
    """What each query of a script gives."""
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    queries = [part for part in script.split(";\n") if "SELECT" in part]
    return [connection.execute(query).fetchall() for query in queries]


def test_sql_lists_the_missing_values() -> None:
    assert run_in_duckdb(CHECKED.to_sql("duckdb"), CHILDREN) == [
        [(9, 2), (7, 1)],
        [(9, "<b>", 1), (9, "q", 1)],
        [],
    ]
    assert "NOT IN" not in CHECKED.to_sql()


def test_sql_of_odd_names_runs() -> None:
    names = ["a.b", "a`b", 'q"q', "select", "rows_missing", "naïve 名", "line\nend"]
    tables = {
        "my t": pa.table({n: [1, 2] for n in names}),
        "u": pa.table({n: [1] for n in names}),
    }
    inds = [f"`my t`.`{n.replace('`', '``')}` <= u.`{n.replace('`', '``')}`" for n in names]
    found = run_in_duckdb(tw.check_inds(tables, inds).to_sql("duckdb"), tables)
    assert found == [[(2, 1)]] * len(names)


def test_sql_as_text_and_other_names() -> None:
    tables = {"t": pa.table({"a": ["1", "x"]}), "u": pa.table({"b": [1]})}
    checked = tw.check_inds(tables, "t.a <= u.b", as_text=True)
    assert run_in_duckdb(checked.to_sql("duckdb"), tables) == [[("x", 1)]]
    script = checked.to_sql("spark", tables={"t": 'db."my t"'})
    assert "FROM `db`.`my t` AS d" in script
    assert "FROM `u` AS r" in script
    with pytest.raises(InputError, match="SQL name for an unknown table: 'tt'"):
        checked.to_sql("spark", tables={"tt": "x"})
    with pytest.raises(InputError, match="dialect: 'oracle'"):
        checked.to_sql("oracle")
    with pytest.raises(InputError, match=r"SQL table name: 'a\.\.b'"):
        checked.to_sql("ansi", tables={"t": "a..b"})


def test_sql_of_a_discovery_is_empty_where_all_hold() -> None:
    assert run_in_duckdb(FOUND.to_sql("duckdb"), TABLES) == [[]] * len(FOUND)
    partial = tw.discover_inds({"t": pd.DataFrame({"a": [1, 2]}), "u": pd.DataFrame({"b": [1, 3]})}, error=0.5)
    frames = {"t": pa.table({"a": [1, 2]}), "u": pa.table({"b": [1, 3]})}
    assert run_in_duckdb(partial.to_sql("duckdb"), frames) == [[(2, 1)], [(3, 1)]]
