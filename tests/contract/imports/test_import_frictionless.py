"""Imports from Table Schemas and data packages: each constraint as a proposed rule, and a note on all else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tuplewise as tw
from tuplewise.engine.contract.exports import export
from tuplewise.engine.contract.file import ContractFile
from tuplewise.engine.contract.imports import read, text_of

YEAR = {"minimum": "2024-01-01", "maximum": "2024-12-31"}
SCHEMA: dict[str, Any] = {
    "fields": [
        {"name": "id", "type": "integer"},
        {"name": "it's a `name`", "type": "string", "constraints": {"enum": ["a'b", "c\\d\n"], "pattern": "a.*"}},
        {"name": "size", "type": "number", "constraints": {"required": True, "minimum": "0.50", "exclusiveMaximum": 9}},
        {"name": "day", "type": "date", "constraints": {"unique": True, **YEAR}},
        {"name": "where", "type": "geopoint"},
        {"name": "open"},
    ],
    "primaryKey": ["id", "day"],
    "missingValues": ["", "NA"],
    "foreignKeys": [
        {"fields": "id", "reference": {"resource": "", "fields": "size"}},
        {"fields": ["id"], "reference": {"resource": "elsewhere", "fields": ["id"]}},
        {"fields": ["id", "size"], "reference": {"resource": "", "fields": ["id"]}},
    ],
}


def test_each_constraint_becomes_a_rule(tmp_path: Path) -> None:
    path = tmp_path / "orders.json"
    path.write_text(json.dumps(SCHEMA), encoding="utf-8")
    found = read(path, "frictionless")
    assert [(rule.table, rule.kind, rule.text) for rule in found.rules] == [
        ("orders", "not_null", "id is not null"),
        ("orders", "not_null", "day is not null"),
        ("orders", "key", "[id, day]"),
        ("orders", "values", "`it's a ``name``` in ('a''b', 'c\\d'\\n)"),
        ("orders", "not_null", "size is not null"),
        ("orders", "range", "size >= 0.50"),
        ("orders", "dc", "not(t.size >= 9)"),
        ("orders", "key", "[day]"),
        ("orders", "range", "day between '2024-01-01' and '2024-12-31'"),
        ("", "ind", "orders.id <= orders.size"),
    ]
    assert {(rule.status, rule.note) for rule in found.rules} == {("proposed", "read from Frictionless")}
    (table,) = found.tables
    assert [(column.name, column.type) for column in table.columns or ()] == [
        ("id", "integer"), ("it's a `name`", "text"), ("size", "decimal"), ("day", "date"), ("where", None),
        ("open", None),
    ]  # fmt: skip
    noted = "\n".join(found.notes)
    for said in ("type 'geopoint'", "missing values '', 'NA'", "pattern 'a.*'", "'elsewhere'", "key 'id', 'size'"):
        assert said in noted
    assert len(found.notes) == 5


def test_the_text_is_a_contract_that_says_what_was_not_read() -> None:
    text = tw.import_contract({"name": "t", "schema": SCHEMA}, "frictionless")
    contract = ContractFile("rules.yaml", text).contract
    found = read({"name": "t", "schema": SCHEMA}, "frictionless")
    assert [rule.identity for rule in contract.rules] == [rule.identity for rule in found.rules]
    assert all(rule.status == "proposed" for rule in contract.rules)
    assert text.count("\n# Not read: ") == len(found.notes) == 5
    assert contract.accepted() == []


def test_what_is_exported_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "tuplewise_contract: 1\n"
        "tables:\n  orders: {path: o.csv, columns: {id: {type: integer}, 'the day': {type: date}, of: {type: text}}}\n"
        "  people: {columns: {name: {type: text}, age: {type: integer}}}\n"
        "rules:\n- {id: a, table: orders, kind: key, rule: [id]}\n"
        "- {id: b, table: orders, kind: not_null, rule: id is not null}\n"
        "- {id: c, table: orders, kind: range, rule: \"`the day` >= '2024-01-01'\"}\n"
        "- {id: d, table: people, kind: key, rule: [name]}\n"
        "- {id: e, table: people, kind: range, rule: age between 0 and 120}\n"
        "- {id: f, table: people, kind: values, rule: \"name in ('x', 'it''s')\"}\n"
        "- {id: g, kind: ind, rule: orders.of <= people.name}\n"
    )
    contract = ContractFile(path).contract
    exported = export(contract, "frictionless")
    assert exported.left_out == ()
    back = read(json.loads(exported.text), "frictionless")
    assert {rule.identity for rule in back.rules} == {rule.identity for rule in contract.rules}
    assert back.notes == []
    assert [(table.name, table.path) for table in back.tables] == [("orders", "o.csv"), ("people", "people.csv")]
    assert [table.columns for table in back.tables] == [table.columns for table in contract.tables.values()]
    assert text_of(back)


def test_objects_of_the_library() -> None:
    frictionless = pytest.importorskip("frictionless", reason="frictionless is not installed")
    field = {"name": "a", "type": "integer", "constraints": {"unique": True}}
    schema = frictionless.Schema.from_descriptor({"fields": [field]})
    assert [rule.text for rule in read(schema, "frictionless").rules] == ["[a]"]


@pytest.mark.parametrize(
    ("text", "said"), [("{", "is no JSON"), ("[1]", "is no Table Schema"), ("{}", "is no Table Schema")]
)
def test_what_is_no_schema_is_an_error(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(tw.InputError, match=said):
        read(path, "frictionless")
    with pytest.raises(tw.InputError, match=r"can't be read: .*absent"):
        read(tmp_path / "absent.json", "frictionless")
    with pytest.raises(tw.InputError, match=r"format to import: 'frictionles'; allowed: .*Did you mean 'frictionless'"):
        read(path, "frictionles")
