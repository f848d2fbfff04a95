"""Saved results of nothing, given to be checked: there is nothing to check, which is no error (case D20)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import inside

import tuplewise as tw

TABLE = "a,b\n1,x\n1,x\n2,y\n2,x\n"
OTHER = "k,m\n7,z\n8,w\n"


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    (tmp_path / "one.csv").write_text(TABLE)
    (tmp_path / "two.csv").write_text(OTHER)
    return [str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]


@pytest.mark.parametrize("run_on", ["auto", "driver", "spark"])
def test_no_inclusion_dependencies(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], run_on: str
) -> None:
    saved = str(tmp_path / "found.json")
    assert inside(capsys, "ind", "discover", *tables, "--format", "json", "-o", saved).code == 0
    assert json.loads(Path(saved).read_text())["result"]["inds"] == []
    ran = inside(capsys, "ind", "check", *tables, "--inds", saved, "--run-on", run_on, "--format", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["result"]["inds"] == []
    assert "no inclusion dependencies in saved result 'found.json': nothing to check" in document["notes"]
    text = inside(capsys, "ind", "check", *tables, "--inds", saved, "--format", "text").out
    assert "0 inclusion dependencies\n" in text


def test_no_inclusion_dependencies_from_python(tables: list[str]) -> None:
    found = tw.discover_inds(tables)
    assert len(found) == 0
    checked = tw.check_inds(tables, found)
    assert checked.holds is True
    assert "no inclusion dependencies in the result: nothing to check" in checked.notes
    with pytest.raises(tw.RuleError, match="one or more"):
        tw.check_inds(tables, [])


def test_no_rules(tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "found.json")
    only_b = ("--columns", "b", "--max-predicates", "1")
    assert inside(capsys, "dc", "discover", tables[0], *only_b, "--format", "json", "-o", saved).code == 0
    assert json.loads(Path(saved).read_text())["result"]["constraints"] == []
    ran = inside(capsys, "dc", "check", tables[0], "--rules", saved, "--format", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["result"]["rules"] == []
    assert "no rules: nothing to check" in document["notes"]
    checked = str(tmp_path / "checked.json")
    Path(checked).write_text(ran.out)
    assert inside(capsys, "dc", "check", tables[0], "--rules", checked).code == 0
    more = inside(capsys, "dc", "check", tables[0], "--rules", saved, "--rule", "a -> b", "--format", "json")
    assert more.code == 1
    assert len(json.loads(more.out)["result"]["rules"]) == 1


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_no_rules_in_spark(tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "found.json"
    saved.write_text('{"command": "dc discover", "result": {"constraints": [], "count": 0}}')
    ran = inside(capsys, "dc", "check", tables[0], "--rules", str(saved), "--run-on", "spark", "--format", "json")
    assert ran.code == 0, ran.err
    assert "no rules: nothing to check" in json.loads(ran.out)["notes"]


@pytest.mark.parametrize("run_on", ["driver", pytest.param("spark", marks=pytest.mark.spark)])
def test_no_order_dependencies(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], run_on: str
) -> None:
    saved = str(tmp_path / "found.json")
    how = ("--lexicographic", "1", "--format", "json", "-o", saved)
    assert inside(capsys, "od", "discover", tables[0], *how).code == 0
    assert json.loads(Path(saved).read_text())["result"]["lexicographic"] == []
    ran = inside(capsys, "od", "check", tables[0], "--ods", saved, "--run-on", run_on, "--format", "json")
    assert ran.code == 0, ran.err
    assert "no order dependencies in saved result 'found.json': nothing to check" in json.loads(ran.out)["notes"]


CUT = {
    "ind": '{"command": "ind discover", "result": {"inds": [], "count": 3}}',
    "dc": '{"command": "dc discover", "result": {"constraints": [], "count": 3}}',
    "od": '{"command": "od discover", "result": {"lexicographic": [], "lexicographic_count": 3}}',
}


@pytest.mark.parametrize("kind", list(CUT))
@pytest.mark.parametrize("content", ["", "# nothing\n", "cut"])
def test_other_files_without_any_stay_errors(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, content: str
) -> None:
    path = tmp_path / "given.txt"
    path.write_text(CUT[kind] if content == "cut" else content)
    option = {"ind": "--inds", "dc": "--rules", "od": "--ods"}[kind]
    ran = inside(capsys, kind, "check", tables[0], option, str(path))
    assert (ran.code, ran.out) == (2, "")
    assert "given.txt" in ran.err
