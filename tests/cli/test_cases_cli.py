"""Inputs that break tools of this kind, through `tuplewise dc discover`: cases A2, A3, A6 to A11, B3, B5, B10, B16."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, inside

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

KEY_A = "not(t.a == u.a)"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Writes a text to a file and discovers its rules."""

    def write_and_discover(text: str, *more: str, name: str = "t.csv") -> Ran:
        (tmp_path / name).write_text(text)
        return inside(capsys, "dc", "discover", str(tmp_path / name), "--device", "cpu", "--format", "json", *more)

    return write_and_discover


def table(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)["tables"][0]
    return found


def rules(ran: Ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [c["rule"] for c in json.loads(ran.out)["result"]["constraints"]]


def notes(ran: Ran) -> str:
    return "\n".join(json.loads(ran.out)["notes"])


def test_a2_nan_equals_nan_and_zeros_are_one(run: Callable[..., Ran]) -> None:
    ran = run("x\nNaN\nNaN\n0.0\n-0.0\n\n\n", "--types", "x=double")
    assert table(ran)["rows"] == 6
    assert (table(ran)["columns"][0]["distinct"], table(ran)["columns"][0]["nulls"]) == (2, 2)
    assert "not(t.x == u.x)" not in rules(ran)


def test_a3_nan_is_greatest(run: Callable[..., Ran]) -> None:
    ran = run("x,y\n1,1\ninf,2\nNaN,3\n", "--types", "x=double")
    assert "not(t.x <= u.x and t.y >= u.y)" in rules(ran)  # stronger than the order by < and >, since y has no ties


def test_a6_long_ids_are_told_apart(run: Callable[..., Ran]) -> None:
    ran = run("id\n9007199254740993\n\n9007199254740992\n")
    assert rules(ran) == ["not(t.id == u.id)"]
    assert table(ran)["rows"] == 3


def test_a7_zip_codes(run: Callable[..., Ran]) -> None:
    ran = run("zip,city\n01234,A\n1234,B\n")
    column = table(ran)["columns"][0]
    assert column["type"] == "text"
    assert "leading zeros" in column["why"]
    assert "not(t.zip == u.zip)" in rules(ran)


def test_a8_newline_in_quotes(run: Callable[..., Ran]) -> None:
    ran = run('a,b\n1,"x\ny"\n1,z\n')
    assert table(ran)["rows"] == 2
    assert KEY_A not in rules(ran)


def test_a9_ragged_rows(run: Callable[..., Ran]) -> None:
    tabs = run("a\tb\n1\tx\n1\t\n", name="t.tsv")
    assert (table(tabs)["rows"], table(tabs)["columns"][1]["nulls"]) == (2, 1)
    assert KEY_A not in rules(tabs)
    failed = run("a,b\n1,x\n2\n3,y,zz\n")
    assert failed.code == 2
    assert "2 rows do not have 2 fields (lines 3, 4)" in failed.err
    reported = run("a,b\n1,x\n2\n3,y,zz\n", "--bad-rows", "report")
    assert table(reported)["rows"] == 1
    assert "lines 3, 4" in notes(reported)


def test_a10_repeated_names(run: Callable[..., Ran]) -> None:
    ran = run("x,x,y\n1,2,a\n3,2,b\n")
    assert [c["name"] for c in table(ran)["columns"]] == ["x", "x_2", "y"]
    assert "called 'x_2'" in notes(ran)


def test_a11_odd_names(run: Callable[..., Ran]) -> None:
    header = ["Phone No.", "a.b", "a`b", "my col", "select", "naïve 名", "r and d", "[x]", ""]
    ran = run(",".join(header) + "\n" + "1,2,3,4,5,6,7,8,9\n" + "9,8,7,6,5,4,3,2,1\n")
    assert [c["name"] for c in table(ran)["columns"]] == [*header[:-1], "column_9"]
    assert len(rules(ran)) > 0


def test_b3_na_is_text(run: Callable[..., Ran]) -> None:
    text = "code,name\nNA,Namibia\nNC,New Caledonia\n,?\n"
    assert table(run(text))["columns"][0]["nulls"] == 1
    assert table(run(text, "--null-token", "NA"))["columns"][0]["nulls"] == 2


def test_b5_mixed_column(run: Callable[..., Ran]) -> None:
    ran = run("x\n1\nabc\n2.5\n1\n")
    assert table(ran)["columns"][0]["type"] == "text"
    assert "'abc'" in notes(ran)
    assert "not(t.x == u.x)" not in rules(ran)


def test_b10_text_is_not_compared_with_numbers(run: Callable[..., Ran]) -> None:
    assert not [rule for rule in rules(run("A,B\n1,1\nx,\n")) if "A" in rule and "B" in rule]


def test_b16_little_or_nothing(run: Callable[..., Ran]) -> None:
    empty = run("")
    assert empty.code == 2
    assert "this file is empty" in empty.err
    for text, rows in (("a,b\n", 0), ("a,b\n1,x\n", 1)):
        ran = run(text)
        assert table(ran)["rows"] == rows
        assert rules(ran) == []
        assert notes(ran)
    assert run("a\n1\n", "--format", "text").out.startswith("t: 1 row, 1 column (1 integer)\n")
    assert run("a,b\n1,x\n2,y\n", "--format", "text").out.startswith("t: 2 rows, 2 columns (1 integer, 1 text)\n")


def test_wrong_encoding_is_told(run: Callable[..., Ran], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "l.csv").write_bytes("a,b\n1,é\n".encode("latin-1"))
    ran = inside(capsys, "dc", "discover", str(tmp_path / "l.csv"))
    assert ran.code == 2
    assert "line 2: a byte that encoding utf-8 does not allow" in ran.err
    assert "--encoding latin-1" in ran.err
