"""Exports to Frictionless: the data package finds the rows that our check lists in files, and leaves out the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from exported_tables import broken, clean, contract, in_polars, listed

import tuplewise as tw
from tuplewise.engine.contract.exports import export
from tuplewise.engine.contract.file import read_contract

frictionless = pytest.importorskip("frictionless", reason="frictionless is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library's own
SAID = {"id", "filled", "kinds", "sizes", "days", "chief"}
UNSAID = {"order-line", "city", "tax", "tax-in-zip", "dates", "plain", "above", "pairs"}


def problems(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int, str, int | None]]:
    """What Frictionless finds in the files of a package: its kind, the table from 1, the column, the row from 0."""
    (folder / "package.json").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    assert frictionless.Package.validate_descriptor("package.json").valid
    report = frictionless.Package("package.json").validate()
    found = report.flatten(["type", "taskNumber", "fieldName", "rowNumber", "note"])
    assert not report.errors, report.errors
    return {
        (kind if kind != "constraint-error" else note.split('"')[1], task, column or "", row and row - 2)
        for kind, task, column, row, note in found
    }


def write(folder: Path, frame: pd.DataFrame, name: str = "t") -> None:
    """The table as CSV. Empty texts are nulls there."""
    in_polars(frame).write_csv(folder / f"{name}.csv")


def without_empty(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(**{"class": [None if state == "" else state for state in frame["class"]]})


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[tuple[str, int, str, int | None]]]:
    def run(frame: pd.DataFrame, path: Path) -> set[tuple[str, int, str, int | None]]:
        write(tmp_path, without_empty(frame))
        return problems(tmp_path, tw.export_contract(path, "frictionless"), monkeypatch)

    return run


def test_the_clean_table_passes(check: Any, tmp_path: Path) -> None:
    path = contract(tmp_path)
    exported = export(read_contract(path), "frictionless")
    assert (set(exported.left_out), exported.suffix) == (UNSAID, ".json")
    assert check(clean(), path) == set()
    package = json.loads(exported.text)
    assert len(package["notes"]) == len(UNSAID)
    (resource,) = package["resources"]
    assert resource["schema"]["primaryKey"] == ["id"]


FOUND = {
    "id": ("primary-key", ""), "filled": ("required", "id"), "kinds": ("enum", "class"),
    "sizes": ("maximum", "größe (m)"),
    "days": ("minimum", "begin"), "chief": ("foreign-key", ""),
}  # fmt: skip


@pytest.mark.parametrize("rule_id", sorted(SAID))
def test_each_planted_violation_is_found(check: Any, rule_id: str, tmp_path: Path) -> None:
    path, frame = contract(tmp_path), broken(rule_id)
    kind, column = FOUND[rule_id]
    (row, *_) = sorted(listed(without_empty(frame), path)[rule_id])
    assert (kind, 1, column, row) in check(frame, path)


def test_a_key_with_nulls_is_unique_only(check: Any, tmp_path: Path) -> None:
    path = contract(tmp_path, ["id"])
    assert json.loads(tw.export_contract(path, "frictionless"))["resources"][0]["schema"].get("primaryKey") is None
    assert check(broken("filled"), path) == set()
    assert check(broken("id"), path) == {("unique-error", 1, "id", 12)}


def test_a_composite_key_without_nulls_is_the_primary_key(check: Any, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    text = contract(tmp_path, ["order-line"]).read_text(encoding="utf-8")
    document = json.loads(text)
    document["rules"] += [{"id": n, "kind": "not_null", "rule": f"`{n}` is not null"} for n in ("line",)]
    document["rules"].append({"id": "order", "kind": "not_null", "rule": "`order id` is not null"})
    path.write_text(json.dumps(document))
    assert export(read_contract(path), "frictionless").left_out == ()
    assert check(clean(), path) == set()
    assert check(broken("order-line"), path) == {("primary-key", 1, "", 10)}


def test_tolerances_warnings_and_nulls_as_values_are_left_out(tmp_path: Path) -> None:
    more: Any = {"sizes": {"tolerance": {"share": 0.5}}, "days": {"severity": "warning"}, "kinds": {"note": "x"}}
    path = contract(tmp_path, ["sizes", "days", "kinds"], **more)
    assert export(read_contract(path), "frictionless").left_out == ("sizes", "days")
    path = contract(tmp_path, ["id", "filled", "kinds"], nulls="value")
    assert export(read_contract(path), "frictionless").left_out == ("kinds",)


def test_tables_that_refer_to_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "the rules.yaml"
    path.write_text(
        "tuplewise_contract: 1\n"
        "tables:\n  Öne: {path: a.csv, columns: {x: {type: integer}, y: {type: text}}}\n"
        "  öne: {path: b.csv, columns: {u: {type: integer}, v: {type: text}}}\n"
        "rules:\n- {id: one, kind: ind, rule: '`Öne`.x <= `öne`.u'}\n"
        "- {id: two, kind: ind, rule: '`Öne`[x, y] <= `öne`[u, v]'}\n"
    )
    (tmp_path / "a.csv").write_text("x,y\n1,p\n,q\n3,p\n")
    (tmp_path / "b.csv").write_text("u,v\n1,p\n2,p\n")
    exported = export(read_contract(path), "frictionless")
    assert exported.left_out == ("two",)  # the second row has a null: the rule doesn't speak of it, Frictionless would
    assert problems(tmp_path, exported.text, monkeypatch) == {("foreign-key", 1, "", 2)}
    alone = export(read_contract(path), "frictionless", "Öne")
    assert alone.left_out == ("one", "two")
    assert problems(tmp_path, alone.text, monkeypatch) == set()


def test_columns_without_types_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "tuplewise_contract: 1\ntables: {t: }\nrules:\n- {id: n, kind: values, rule: 'a in (1, 2)'}\n"
        "- {id: t, kind: values, rule: b in ('x')}\n- {id: r, kind: range, rule: a >= 1}\n"
    )
    assert export(read_contract(path), "frictionless").left_out == ("n", "r")
