"""Imports from schemas of Pandera, as objects and as YAML: checks as proposed rules, and a note on all else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import tuplewise as tw
from tuplewise.engine.contract.exports import export
from tuplewise.engine.contract.file import ContractFile
from tuplewise.engine.contract.imports import read

pytest.importorskip("pandera", reason="pandera is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def pandas_schema() -> Any:
    import pandera.pandas as pa

    return pa.DataFrameSchema(
        {
            "id": pa.Column("int64", unique=True),
            "it's": pa.Column("str", [pa.Check.isin(["a'b", "c"]), pa.Check.str_length(1, 9)], nullable=True),
            "size": pa.Column(float, [pa.Check.in_range(0, 9.5, include_max=False), pa.Check.ne(3)], nullable=True),
            "day": pa.Column("datetime64[ns]", pa.Check.ge(pd.Timestamp("2024-01-01")), nullable=True, unique=True),
            "age": pa.Column("int64", [pa.Check.gt(0), pa.Check.le(120, raise_warning=True)], required=False),
            "sort": pa.Column("category", pa.Check.notin(["x", "y"]), nullable=True),
        },
        checks=pa.Check(lambda frame: frame["id"] > 0, name="mine"),
        unique=["id", "age"],
        name="people",
    )


RULES = [
    ("not_null", "id is not null", "error"),
    ("key", "[id]", "error"),
    ("values", "`it's` in ('a''b', 'c')", "error"),
    ("range", "size >= 0", "error"),
    ("dc", "not(t.size >= 9.5)", "error"),
    ("dc", "not(t.size == 3)", "error"),
    ("key", "[day]", "error"),
    ("range", "day >= '2024-01-01 00:00:00'", "error"),
    ("not_null", "age is not null", "error"),
    ("dc", "not(t.age <= 0)", "error"),
    ("range", "age <= 120", "warning"),
    ("dc", "not(t.sort == 'x')", "error"),
    ("dc", "not(t.sort == 'y')", "error"),
    ("key", "[id, age]", "error"),
]


def test_each_check_becomes_a_rule() -> None:
    found = read(pandas_schema(), "pandera")
    assert [(rule.kind, rule.text, rule.severity) for rule in found.rules] == RULES
    described = {(rule.table, rule.status, rule.note) for rule in found.rules}
    assert described == {("people", "proposed", "read from Pandera")}
    types = [column.type for column in found.tables[0].columns or ()]
    assert types == ["integer", "text", "double", "timestamp", "integer", None]
    noted = "\n".join(found.notes)
    for said in ("str_length", "'day': unique: that nulls", "'age': that it may", "'category'", "frame mine"):
        assert said in noted
    assert len(found.notes) == 5
    contract = ContractFile("rules.yaml", tw.import_contract(pandas_schema(), "pandera")).contract
    assert [(rule.kind, rule.text, rule.severity) for rule in contract.rules] == RULES


def test_yaml_says_what_the_object_says(tmp_path: Path) -> None:
    schema = pandas_schema().remove_columns(["sort"])
    schema.checks = []
    path = tmp_path / "people.yaml"
    path.write_text(schema.to_yaml())
    of_file, of_object = ([rule.identity for rule in read(source, "pandera").rules] for source in (path, schema))
    assert of_file == of_object


def test_polars_schemas(tmp_path: Path) -> None:
    import pandera.polars as pa

    text = pa.Column(pl.String, nullable=True)
    columns = {"a": pa.Column(pl.Int64, pa.Check.ge(0)), "b": text, "c": pa.Column(pl.Date)}
    schema = pa.DataFrameSchema(columns, name="t")
    path = tmp_path / "t.yaml"
    path.write_text(schema.to_yaml())
    for source in (schema, path):
        found = read(source, "pandera")
        assert [rule.text for rule in found.rules] == ["a is not null", "a >= 0", "c is not null"]
        assert [column.type for column in found.tables[0].columns or ()] == ["integer", "text", "date"]
        assert found.notes == []


def test_models() -> None:
    import pandera.pandas as pa

    class People(pa.DataFrameModel):
        age: int = pa.Field(ge=0, le=120)

    found = read(People, "pandera")
    assert [rule.text for rule in found.rules] == ["age is not null", "age >= 0", "age <= 120"]
    assert found.tables[0].name == "People"


def test_what_is_exported_with_checks_of_pandera_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "tuplewise_contract: 1\ntables: {t: {columns: {id: {type: integer}, of: {type: text}}}}\nrules:\n"
        "- {id: a, kind: key, rule: [id]}\n- {id: b, kind: not_null, rule: id is not null}\n"
        "- {id: c, kind: range, rule: id between 0 and 9}\n- {id: d, kind: values, rule: of in ('x')}\n"
        "- {id: e, kind: fd, rule: of -> id}\n"
    )
    contract = ContractFile(path).contract
    defined: dict[str, Any] = {}
    exec(export(contract, "pandera").text, defined)
    found = read(defined["schema"], "pandera")
    assert {rule.identity for rule in found.rules} == {rule.identity for rule in contract.rules if rule.kind != "fd"}
    assert [note for note in found.notes if "e: of -> id" in note]


def test_what_is_no_schema_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: [")
    with pytest.raises(tw.InputError, match=r"is no YAML of a Pandera schema: '.*x.yaml'"):
        read(path, "pandera")
    with pytest.raises(tw.InputError, match="schema of Pandera: 'int'; allowed: a DataFrameSchema"):
        read(5, "pandera")
