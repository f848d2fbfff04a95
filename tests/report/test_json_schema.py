"""JSON that commands write is what its schema, and the page made of it, say; test_recorded.py has other commands."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from tools import command_page, json_page
from tuplewise.engine.cli.main import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCHEMA = json_page.schema()
COMMANDS = [
    "check tax.csv --contract rules.yaml",
    "check tax.csv --contract rules.yaml --time-limit 0.000001",
    "dc check tax.csv --rule 'zip -> city' --time-limit 0.000001",
    "ind check orders.csv customers.csv --ind 'orders.customer <= customers.id' --time-limit 0.000001",
    "dc discover tax.csv --time-limit 0.000001",
    "diff rules.yaml tax.csv",
    "diff orders.csv customers.csv",
    "profile tax.csv",
    "dc discover tax.csv --columns zip,city,state --algorithm hybrid",
    "dc discover tax.csv --columns zip,city,state --algorithm hydra",
    "dc check bookings.csv --rule 'not(t.start >= t.end)' --explain",
    "od discover tax.csv --columns zip,city --error 0.1 --error-measure lift",
    "ind discover orders=customers.csv customers.csv --max-arity 2",
]


def document(command: str, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    run([*shlex.split(command), "--quiet", "--format", "json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", COMMANDS)
def test_results(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(EXAMPLES)
    Draft202012Validator(SCHEMA).validate(document(command, capsys))


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    schema = {"$ref": "#/$defs/doctor", "$defs": SCHEMA["$defs"]}
    Draft202012Validator(schema).validate(document("doctor", capsys))


def test_what_the_schema_lacks_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(EXAMPLES)
    found = document("key discover orders.csv", capsys)
    Draft202012Validator(SCHEMA).validate(found)
    for spoil in (found, found["result"], found["tables"][0]):
        spoil["unknown"] = 1
        with pytest.raises(ValidationError, match="'unknown' was unexpected"):
            Draft202012Validator(SCHEMA).validate(found)
        del spoil["unknown"]
    found["result"]["keys"] = "no"
    with pytest.raises(ValidationError, match="'no' is not of type 'array'"):
        Draft202012Validator(SCHEMA).validate(found)


def test_pages_are_current() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert json_page.PAGE.read_text(encoding="utf-8") == json_page.page(), "run: make pages"
    assert command_page.PAGE.read_text(encoding="utf-8") == command_page.page(), "run: make pages"
