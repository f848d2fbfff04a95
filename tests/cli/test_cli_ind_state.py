"""`tuplewise ind init`, `apply` and `show`: what they read, write and exit with. Files are read without a JVM."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_runs import Ran, inside, process
from pyarrow import parquet

from tuplewise.engine.ind.state import IndState

PAPER = "A,B,C,D\na,a,f,a\nb,b,e,a\nb,c,f,c\nd,d,f,c\n"


class Work:
    """A folder with files, and the command line in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.state = str(folder / "state")

    def file(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def ind(self, *argv: str) -> Ran:
        return inside(self._capsys, "ind", *argv, "--quiet")

    def result(self, *argv: str) -> dict[str, Any]:
        ran = self.ind(*argv, "--format", "json")
        assert (ran.code, ran.err) == (0, "")
        document: dict[str, Any] = json.loads(ran.out)["result"]
        return document


@pytest.fixture
def work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Work:
    made = Work(tmp_path, capsys)
    made.file("t.csv", PAPER)
    return made


def test_the_example_of_the_paper(work: Work) -> None:
    built = work.result("init", work.state, str(work.folder / "t.csv"))
    size = built.pop("state_bytes")
    assert size >= 4096
    assert built == {"revision": 0, "rows": 4, "gained": ["t.A <= t.B", "t.D <= t.B"], "lost": []}
    row = work.file("row.csv", "D,C,B,A\na,e,b,b\n")  # columns are matched by name
    gone = work.result("apply", work.state, "--table", "t", "--delete", row)
    assert (gone["revision"], gone["rows"], gone["gained"]) == (1, 3, [])
    assert gone["lost"] == [{"rule": "t.A <= t.B", "broken_by": None}]
    assert work.result("apply", work.state, "--insert", row)["gained"] == ["t.A <= t.B"]
    more = work.file("more.csv", "A,B,C,D\nc,c,e,e\n")
    come = work.result("apply", work.state, "--insert", more)
    assert (come["gained"], come["lost"]) == (["t.B <= t.A"], [{"rule": "t.D <= t.B", "broken_by": None}])
    changed = work.result("apply", work.state, "--update", more, row)
    assert (changed["revision"], changed["rows"]) == (4, 5)
    shown = work.result("show", work.state)
    assert (shown["revision"], shown["rows"], shown["count"], shown["trivial"]) == (4, 5, 2, 0)
    assert [(i["dependent"], i["referenced"], i["dependent_distinct"]) for i in shown["inds"]] == [
        ("t.A", "t.B", 3), ("t.D", "t.B", 2),
    ]  # fmt: skip


def test_every_format(work: Work) -> None:
    ran = work.ind("init", work.state, str(work.folder / "t.csv"), "--format", "text")
    assert ran.out == "t: 4 rows, 4 columns (4 text)\nrevision 0: 2 inclusion dependencies gained, 0 lost\n" + (
        "+ t.A <= t.B\n+ t.D <= t.B\n"
    )
    text = work.ind("show", work.state, "--format", "text").out
    assert "revision 0: 2 inclusion dependencies (exact)" in text
    assert "t.D <= t.B" in text
    lines = list(csv.DictReader(io.StringIO(work.ind("show", work.state, "--format", "csv", "--limit", "1").out)))
    assert [(line["dependent"], line["referenced"]) for line in lines] == [("t.A", "t.B")]
    script = work.ind("show", work.state, "--format", "sql", "--sql-table", "t=db.t").out
    assert script.count("NOT EXISTS") == 2
    assert "db" in script
    unknown = work.ind("show", work.state, "--format", "sql", "--sql-table", "u=db.t")
    assert (unknown.code, "--sql-table for an unknown table: 'u'" in unknown.err) == (2, True)
    document = json.loads(work.ind("show", work.state, "--format", "json").out)
    assert (document["command"], document["options"]["track_rows"]) == ("ind show", False)
    assert [c["nulls"] for c in document["tables"][0]["columns"]] == [0, 0, 0, 0]


def test_several_tables_and_all_changes_at_once(work: Work) -> None:
    orders = work.file("orders.csv", "no,customer\n1,7\n2,8\n")
    parquet.write_table(pa.table({"id": [7, 8, 9]}), work.folder / "customers.parquet")
    customers = f"c={work.folder / 'customers.parquet'}"
    assert work.result("init", work.state, orders, customers, "--track-rows")["gained"] == ["orders.customer <= c.id"]
    which = work.ind("apply", work.state, "--insert", orders)
    assert (which.code, which.out) == (2, "")
    assert "the state has several tables: 'orders, c'. Name the table: --table NAME" in which.err
    come, old, new = (
        work.file(name, f"no,customer\n{row}\n") for name, row in (("a", "3,10"), ("o", "1,7"), ("n", "1,9"))
    )
    change = work.result("apply", work.state, "--table", "orders", "--insert", come, "--update", old, new)
    assert (change["revision"], change["lost"][0]["rule"]) == (1, "orders.customer <= c.id")
    crossed = work.ind("apply", work.state, "--table", "orders", "--delete", work.file("x", "no,customer\n2,9\n"))
    assert crossed.code == 2
    said = "table 'orders': line 2 to delete is not in the table (none of it). Nothing was applied"
    assert said in crossed.err
    assert work.result("show", work.state)["revision"] == 1


def test_errors_are_one_message(work: Work) -> None:
    table = str(work.folder / "t.csv")
    work.result("init", work.state, table)
    again = work.ind("init", work.state, table)
    assert (again.code, "the folder of the state is not empty" in again.err) == (2, True)
    assert "no such state" in work.ind("show", str(work.folder / "none")).err
    assert "Nothing to apply" in work.ind("apply", work.state).err
    gone = work.ind("apply", work.state, "--delete", work.file("gone.csv", "A,B,C,D\na,a,f,a\na,a,f,a\n"))
    assert gone.code == 2
    said = "table 't', column 'A': line 3 to delete has a value that the column does not have so often"
    assert said in gone.err
    assert "(only 1 left): 'a'. Nothing was applied" in gone.err
    other = work.ind("apply", work.state, "--insert", work.file("other.csv", "A,B,X\n1,2,3\n"))
    assert "has other columns than the state: \"missing 'C', 'D'; unknown 'X'\"; allowed: A, B, C, D" in other.err
    uneven = work.ind("apply", work.state, "--update", table, work.file("one.csv", "A,B,C,D\na,a,f,a\n"))
    assert "not as many new rows as old ones: '4 old, 1 new'" in uneven.err
    with IndState(work.state):
        second = work.ind("apply", work.state, "--insert", table)
        assert (second.code, "the state is being written by this process" in second.err) == (2, True)
        assert work.result("show", work.state)["revision"] == 0


def test_types_are_fixed(work: Work) -> None:
    typed = work.file("typed.csv", "n,day\n1,2026-01-01\n2,\n")
    work.result("init", work.state, typed, "--null-token", "-")
    bad = work.file("bad.csv", "n,day\n3,2026-01-02\n-,-\nx,2026-01-03\n4,soon\n")
    failed = work.ind("apply", work.state, "--insert", bad)
    assert (failed.code, failed.out) == (2, "")
    assert "column 'n': a value doesn't fit type integer at line 4: 'x'" in failed.err
    ran = work.ind("apply", work.state, "--insert", bad, "--bad-rows", "report", "--format", "json")
    document = json.loads(ran.out)
    assert document["result"]["rows"] == 4
    left_out = "2 rows with a value that does not fit its column's type left out, the first at line 4"
    assert document["notes"] == [f"{bad}: {left_out}"]
    assert [(c["type"], c["distinct"], c["nulls"]) for c in document["tables"][0]["columns"]] == [
        ("integer", 3, 1), ("date", 2, 2),
    ]  # fmt: skip


def test_text_and_options_of_a_state(work: Work) -> None:
    a, b = work.file("a.csv", "x\n1\n"), work.file("b.csv", "y\n1\nz\n")
    assert work.result("init", work.state, a, b)["gained"] == []
    shutil.rmtree(work.state)
    assert work.result("init", work.state, a, b, "--as-text", "--insert-only")["gained"] == ["a.x <= b.y"]
    refused = work.ind("apply", work.state, "--table", "a", "--delete", a)
    assert (refused.code, "this state takes no deletes and no updates" in refused.err) == (2, True)
    both = work.ind("init", str(work.folder / "other"), a, "--insert-only", "--track-rows")
    assert (both.code, "track_rows is for deletes" in both.err) == (2, True)


def test_as_a_process(work: Work) -> None:
    ran = process("ind", "init", work.state, str(work.folder / "t.csv"), "--format", "text")
    assert (ran.code, ran.err) == (0, "")
    assert "revision 0" in ran.out
