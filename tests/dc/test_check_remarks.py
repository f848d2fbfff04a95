"""What checks say of rules beside their figures: an order of text is one of bytes (D17)."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.cli import main as cli

SHOPS = {"opens": ["9:00", "9:30", None], "shuts": ["10:30", "18:00", "17:00"], "no": [1, 2, 3]}
SAID = (
    "are text: compared byte by byte, so that '10:30' comes before '9:00'. Times and numbers that are text compare "
    "right where all are padded with zeros ('09:00')"
)


def notes_on(*rules: str) -> list[str]:
    found = tw.check(pd.DataFrame(SHOPS | {"empty": [None] * 3}), list(rules), device="cpu")
    return [note for note in found.notes if "byte by byte" in note]


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_an_order_of_text_is_told(sign: str) -> None:
    assert notes_on(f"not(t.opens {sign} t.shuts)") == [f"opens and shuts {SAID}"]
    assert notes_on(f"not(t.opens {sign} u.opens and t.no == u.no)") == [f"opens {SAID.replace('are', 'is', 1)}"]
    assert notes_on(f"not(t.opens {sign} '10:00')") == [f"opens {SAID.replace('are', 'is', 1)}"]


def test_columns_of_all_rules_are_told_once() -> None:
    rules = ("not(t.opens < u.opens and t.no < u.no)", "not(t.shuts > u.shuts)", "not(t.opens > t.shuts)")
    assert notes_on(*rules) == [f"opens and shuts {SAID}"]


@pytest.mark.parametrize(
    "rule",
    ["opens -> shuts", "not(t.no < u.no)", "not(t.opens == u.opens and t.no < u.no)", "not(t.empty < u.empty)"],
)
def test_other_rules_are_not_spoken_of(rule: str) -> None:
    assert notes_on(rule) == []


def test_many_columns_are_counted() -> None:
    table = pd.DataFrame({f"c{i}": ["x", "y"] for i in range(8)})
    notes = tw.check(table, [f"not(t.c{i} < u.c{i})" for i in range(8)], device="cpu").notes
    (note,) = [note for note in notes if "byte by byte" in note]
    assert note == f"c0, c1, c2, c3, c4 and 3 more columns {SAID}"


def test_orders_of_text_are_told_of_order_dependencies_too() -> None:
    table = pd.DataFrame(SHOPS | {"empty": [None] * 3})
    told = tw.check_ods(table, ["opens -> shuts desc", "no, opens -> no"], device="cpu").notes
    assert list(told) == [f"opens and shuts {SAID}"]
    assert list(tw.check_ods(table, ["no -> empty", "[] -> opens"], device="cpu").notes) == []


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame(SHOPS).to_csv(tmp_path / "shops.csv", index=False)
    argv = ["dc", "check", str(tmp_path / "shops.csv"), "--rule", "not(t.opens > t.shuts)", "--format", "json"]
    cli.run([*argv, "--run-on", "spark"])
    assert f"opens and shuts {SAID}" in json.loads(capsys.readouterr().out)["notes"]
