"""`tuplewise export` and `tuplewise import`: what they write, with which exit codes and notes."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tuplewise as tw
from tuplewise.engine.contract.exports import TARGETS, WITH_DIALECT
from tuplewise.engine.contract.file import ContractFile, schema

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cli_runs import inside

USAGE = 2


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "tuplewise_contract: 1\ntables: {t: {path: t.csv, columns: {a: {type: integer}, b: {type: text}}}}\nrules:\n"
        "- {id: key, kind: key, rule: [a]}\n- {id: fd, kind: fd, rule: b -> a}\n- {id: od, kind: od, rule: a ~ b}\n"
        "- {id: later, kind: fd, rule: a -> b, status: proposed}\n"
    )
    return path


def test_export_writes_to_stdout_and_notes_what_is_left_out(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "export", str(rules), "--to", "gx")
    assert ran.code == 0
    assert ran.out == tw.export_contract(rules, "gx")
    assert ran.err == "tuplewise: note: 2 of 3 accepted rules can't be said in gx and were left out: fd, od\n"
    assert inside(capsys, "export", str(rules), "--to", "gx", "--quiet").err == ""
    ran = inside(capsys, "export", str(rules), "--to", "pandera")
    assert ran.err == ""
    ast.parse(ran.out)


def test_export_writes_a_file_whole_or_not_at_all(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = rules.parent / "suite.json"
    target.write_text("before")
    ran = inside(capsys, "export", str(rules), "--to", "gx", "--table", "u", "-o", str(target))
    assert (ran.code, target.read_text()) == (USAGE, "before")
    assert "no table of this name" in ran.err
    assert "'u'" in ran.err
    ran = inside(capsys, "export", str(rules), "--to", "gx", "-o", str(target))
    assert (ran.code, ran.out) == (0, "")
    assert target.read_text(encoding="utf-8") == tw.export_contract(rules, "gx")


def test_schema_is_that_of_the_file(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "export", str(rules), "--to", "schema")
    assert (json.loads(ran.out), ran.err) == (schema(), "")


def test_what_makes_no_sense_is_refused(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more, said in (
        ([], "Missing option '--to'"),
        (["--to", "panderra"], "target of an export: 'panderra'; allowed: "),
        (["--to", "gx", "--dialect", "spark"], f"--dialect is for --to {', '.join(WITH_DIALECT)}, not gx"),
    ):
        ran = inside(capsys, "export", str(rules), *more)
        assert ran.code == USAGE
        assert said in ran.err
    with pytest.raises(tw.InputError, match="dialect='ansi' is for sql, dbt, soda, not gx"):
        tw.export_contract(rules, "gx", dialect="ansi")
    assert "Did you mean 'pandera'" in inside(capsys, "export", str(rules), "--to", "panderra").err


def test_every_target_is_named_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(inside(capsys, "export", "--help").out.split())
    assert all(target in shown for target in TARGETS)


def test_a_rule_that_no_column_can_be_compared_by_is_named(rules: Path) -> None:
    rules.write_text(rules.read_text() + "- {id: odd, kind: range, rule: \"a >= 'x'\"}\n")
    for target in ("gx", "pandera", "pandera-polars", "frictionless"):
        with pytest.raises(tw.RuleError, match="rule 'odd': constant beside column 'a', whose type is integer"):
            tw.export_contract(rules, target)


def test_import_proposes_rules_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "t.json", tmp_path / "rules.yaml"
    fields: list[dict[str, Any]] = [{"name": "a", "type": "integer", "constraints": {"required": True, "pattern": "x"}}]
    source.write_text(json.dumps({"fields": fields}))
    argv = ["import", str(source), "--from", "frictionless", "-o", str(target)]
    ran = inside(capsys, *argv)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        "tuplewise: note: not read: table 't', column 'a': pattern 'x'\n"
        f"tuplewise: 1 rule proposed in {str(target)!r}, 1 thing not read\n"
    )
    assert target.read_text().endswith("# Not read: table 't', column 'a': pattern 'x'\n")
    file = ContractFile(target)
    file.set_status(file.contract.rules[0].id, "accepted")
    file.save()
    fields[0]["constraints"] = {"minimum": 3}
    fields.append({"name": "b", "type": "integer", "constraints": {"minimum": 3}})
    source.write_text(json.dumps({"fields": fields}))
    assert inside(capsys, *argv).err == f"tuplewise: 2 rules proposed in {str(target)!r}, 0 things not read\n"
    contract = ContractFile(target).contract
    assert contract.tables["t"].column_names == ["a", "b"]  # the new column is added with its rule
    statuses = [(rule.text, rule.status) for rule in contract.rules]
    assert statuses == [("a is not null", "accepted"), ("a >= 3", "proposed"), ("b >= 3", "proposed")]


def test_import_needs_a_format_and_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more, said in (
        ([], "Missing option '--from'"), (["--from", "pandera"], "Missing option '-o'"),
        (["--from", "gx", "-o", str(tmp_path / "r.yaml")], "format to import: 'gx'; allowed: "),
        (["--from", "frictionless", "-o", str(tmp_path / "r.yaml")], "file to import can't be read"),
    ):  # fmt: skip
        ran = inside(capsys, "import", str(tmp_path / "x.json"), *more)
        assert ran.code == USAGE
        assert said in ran.err
    assert not (tmp_path / "r.yaml").exists()
