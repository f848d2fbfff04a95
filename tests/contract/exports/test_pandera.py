"""Exports to Pandera: the schema finds the rows that our check lists, of pandas frames and of Polars frames."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from exported_tables import PLANTED, RULES, broken, clean, contract, in_polars, listed

import tuplewise as tw
from tuplewise.engine.contract.exports import export
from tuplewise.engine.contract.file import ContractFile, read_contract

pytest.importorskip("pandera", reason="pandera is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
TARGETS = ("pandera", "pandera-polars")
AS_COLUMN = {
    "pandera": {"filled": "not_nullable", "id": "field_uniqueness"}, "pandera-polars": {"filled": "not_nullable"},
}  # fmt: skip
"""Rules that Pandera has an attribute of a column for, and what it calls a failure."""


def loaded(text: str) -> Any:
    """The schema that the text of a module defines."""
    defined: dict[str, Any] = {}
    exec(compile(text, "rules.py", "exec"), defined)
    return defined["schema"]


def as_frame(frame: pd.DataFrame, target: str) -> Any:
    """The table as the target takes it; in pandas with an index that doesn't begin at 0."""
    if target == "pandera":
        return frame.set_index(frame.index + 1000)
    return in_polars(frame)


def failures(schema: Any, frame: Any) -> dict[str, set[int]]:
    """The failing rows of each check, by the id of its rule, or by Pandera's name."""
    from pandera.errors import SchemaErrors

    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as error:
        cases: Any = error.failure_cases
        first = 1000 if isinstance(frame, pd.DataFrame) and len(frame) and frame.index[0] == 1000 else 0
        found: dict[str, set[int]] = {}
        for check, index in zip(list(cases["check"]), list(cases["index"]), strict=True):
            known = index is not None and index == index
            found.setdefault(check.split(":")[0], set()).update([int(index) - first] if known else [])
        return found
    return {}


@pytest.mark.parametrize("target", TARGETS)
def test_the_clean_table_passes(target: str, tmp_path: Path) -> None:
    exported = export(read_contract(contract(tmp_path)), target)
    assert (exported.suffix, exported.left_out) == (".py", ())
    assert failures(loaded(exported.text), as_frame(clean(), target)) == {}
    assert listed(clean(), contract(tmp_path)) == {}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rule_id", PLANTED)
def test_each_planted_violation_is_found(rule_id: str, target: str, tmp_path: Path) -> None:
    path, frame = contract(tmp_path), broken(rule_id)
    found = failures(loaded(tw.export_contract(path, target)), as_frame(frame, target))
    expected = listed(frame, path)
    assert rule_id in expected
    assert found.get("chief", set()) >= expected.pop("chief", set())  # of missing values some rows are listed
    assert found.pop("chief", {64}) == {64} or rule_id in ("id", "filled")
    assert found == {AS_COLUMN[target].get(one, one): rows for one, rows in expected.items()}


@pytest.mark.parametrize("target", TARGETS)
def test_a_tolerance_allows_so_many(target: str, tmp_path: Path) -> None:
    frame = broken("city")
    frame.loc[32, "city"] = "elsewhere"
    for tolerance, passes in (
        ({"max_violations": 2}, True), ({"max_violations": 1}, False), ({"share": 0.0107}, True),
        ({"share": 0.0106}, False),  # of 188 rows with a city
    ):  # fmt: skip
        path = contract(tmp_path, ["city"], city={"tolerance": tolerance})
        found = failures(loaded(tw.export_contract(path, target)), as_frame(frame, target))
        assert found == ({} if passes else {"city": {31, 32}}), tolerance
        assert tw.check_contract(in_polars(frame), path).failed is not passes


@pytest.mark.parametrize("target", TARGETS)
def test_a_warning_is_one(target: str, tmp_path: Path) -> None:
    from pandera.errors import SchemaWarning

    path = contract(tmp_path, ["sizes", "filled"], sizes={"severity": "warning"}, filled={"severity": "warning"})
    schema = loaded(tw.export_contract(path, target))
    for rule_id in ("sizes", "filled"):
        with pytest.warns(SchemaWarning, match=rule_id):
            schema.validate(as_frame(broken(rule_id), target), lazy=True)


@pytest.mark.parametrize("target", TARGETS)
def test_types_and_missing_columns(target: str, tmp_path: Path) -> None:
    schema = loaded(tw.export_contract(contract(tmp_path, []), target))
    frame = clean()
    frame["id"], frame["tax"] = frame["id"].astype(float), frame["tax"].astype(str)
    assert set(failures(schema, as_frame(frame, target))) == {"tax"}
    frame["id"] += 0.5
    assert set(failures(schema, as_frame(frame, target))) == {"tax", "id"}
    assert set(failures(schema, as_frame(clean().drop(columns="zip"), target))) == {"column_in_dataframe"}


def test_dates_compare_whatever_pandas_keeps_them_in(tmp_path: Path) -> None:
    schema = loaded(tw.export_contract(contract(tmp_path, ["days", "dates"]), "pandera"))
    for rule_id, rows in (("days", {199}), ("dates", {7})):
        frame = broken(rule_id)
        for name in ("begin", "end"):
            frame[name] = frame[name].dt.date
        assert failures(schema, frame) == {rule_id: rows}
        frame["begin"] = pd.to_datetime(frame["begin"]).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
        assert failures(schema, frame) == {rule_id: rows}


def test_names_and_values_stay_literals(tmp_path: Path) -> None:
    """What stands in a contract is in the module as text, never as code."""
    evil = "x'); boom(); ('\\\n\"\"\""
    rules = [
        {"id": "key", "kind": "key", "rule": [evil], "english": "a\nboom()\r\u2028boom()\x0cboom()"},
        {"id": "in", "kind": "values", "rule": "a in ('\\'\\n'boom()')", "note": "\nboom()"},
    ]
    rules[1]["rule"] = "a in ('''); boom()'\\n'boom() \\')"
    document = {
        "tuplewise_contract": 1, "tables": {f"t'{evil}": {"columns": {evil: {"type": "text"}, "a": {"type": "text"}}}},
        "rules": rules,
    }  # fmt: skip
    path = tmp_path / "boom()\n.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    for target in TARGETS:
        tree = ast.parse(tw.export_contract(path, target))
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        assert "key" in called
        assert "boom" not in called
        frame: Any = pd.DataFrame({evil: ["u", "v", "u"], "a": ["'); boom()\nboom() \\"] * 3})
        frame = frame if target == "pandera" else pl.from_pandas(frame)
        assert failures(loaded(tw.export_contract(path, target)), frame) == {"key": {2}}


def test_several_tables_and_rules_between_them(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "tuplewise_contract: 1\ntables: {orders: {columns: {id: , customer: }}, customers: {columns: {id: }}}\nrules:\n"
        "- {id: refers, kind: ind, rule: orders.customer <= customers.id}\n"
        "- {id: order, table: orders, kind: key, rule: [id]}\n"
    )
    exported = export(read_contract(path), "pandera")
    assert exported.left_out == ("refers",)
    assert "# Left out: refers: orders.customer <= customers.id: it is about two tables" in exported.text
    defined: dict[str, Any] = {}
    exec(exported.text, defined)
    assert set(defined["schemas"]) == {"orders", "customers"}
    frame = pd.DataFrame({"id": [1, 2, 1], "customer": [5, 5, 5]})
    assert failures(defined["schemas"]["orders"], frame) == {"order": {2}}
    assert export(read_contract(path), "pandera", "customers").left_out == ()


KINDS = [
    ("key", "[a]"), ("key", "[a, b]"), ("range", "a >= 1"), ("range", "b between 1 and 2"),
    ("values", "c in ('x', 'y')"),
    ("row", "a <= b"), ("row", "a == b"), ("row", "a != b"), ("fd", "a -> c"), ("fd", "a, b -> c"), ("fd", "-> c"),
    ("od", "a ~ b"), ("od", "a ~ b desc"), ("od", "[c]: a ~ b"), ("dc", "not(t.a == 1 and t.c == 'x')"),
    ("dc", "not(t.a < 2)"), ("dc", "not(t.a == u.a and t.b < u.b)"), ("dc", "not(u.a != 1)"), ("dc", "not(t.a < u.b)"),
    ("dc", "not(t.a is null and u.b is null)"), ("dc", "not(t.a == u.b and t.c != u.c)"), ("ind", "t.a <= t.b"),
    ("dc", "not(u.a == 1 and t.b > 1 and t.c == u.c)"), ("dc", "not(t.a < u.a and t.b > u.b and t.c != u.c)"),
    ("dc", "not(t.a is null and t.b == 1)"), ("dc", "not(t.a == u.a and t.b == u.b)"), ("dc", "not(t.b is not null)"),
]  # fmt: skip


def _of_kinds(nulls: str, allowed: list[int] | None = None) -> Any:
    """A contract with a rule of each kind, and how many may break it."""
    rules = [{"id": f"r{i}", "kind": kind, "rule": text} for i, (kind, text) in enumerate(KINDS)]
    for rule, most in zip(rules, allowed or [], strict=False):
        rule["tolerance"] = {"max_violations": most}  # type: ignore[assignment]
    tables = {"t": {"columns": dict.fromkeys("abc")}}
    document = {"tuplewise_contract": 1, "nulls": nulls, "tables": tables, "rules": rules}
    return ContractFile("rules.yaml", json.dumps(document)).contract


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("rows", [0, 1, 2, 9, 25])
def test_exceptions_are_counted_as_our_check_counts_them(rows: int, nulls: str) -> None:
    """With a tolerance of as many as there are a schema passes, with one less it fails: random tables, with nulls."""
    rng = np.random.default_rng(rows)
    numbers = {name: [int(v) or None for v in rng.integers(0, 4, rows)] for name in "ab"}
    texts = [[None, "w", "x", "y"][v] for v in rng.integers(0, 4, rows)]
    types = {"a": pl.Int64, "b": pl.Int64, "c": pl.String}
    frame = pl.DataFrame({**numbers, "c": texts}, schema=types)
    found = tw.check_contract(frame, _of_kinds(nulls))
    counts = [rule["exceptions"] for rule in found.rules]
    frames = {"pandera": pd.DataFrame({**numbers, "c": texts}).astype({"a": "Int64", "b": "Int64", "c": object})}
    for target, own in {**frames, "pandera-polars": frame}.items():
        assert failures(loaded(export(_of_kinds(nulls, counts), target).text), own) == {}
        fewer = [max(count - 1, 0) for count in counts]
        failed = failures(loaded(export(_of_kinds(nulls, fewer), target).text), own)
        failed.pop("field_uniqueness", None)
        as_attribute = {"r0"} if target == "pandera" and fewer[0] == 0 and nulls == "value" else set()
        assert set(failed) == {f"r{i}" for i, count in enumerate(counts) if count} - as_attribute
    assert rows < 9 or sum(count > 0 for count in counts) > 15


def test_rules_are_all_of_the_kinds_that_contracts_have() -> None:
    from tuplewise.engine.contract.forms import KINDS as kinds

    assert {kind for kind, _ in RULES.values()} == set(kinds)
