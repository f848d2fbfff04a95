"""The commands of states: `dc init`, `insert`, `update`, `delete`, `show`, and `dc discover --space-from`."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, inside, process

from tuplewise.engine.cli.listing import EXIT_LIMIT
from tuplewise.engine.dc.incremental import initial
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.errors import LimitReached

USAGE = 2
HEADER = "id,zip,city,pay\n"
PEOPLE = HEADER + "1,01,A,10\n2,01,A,20\n3,02,B,25\n4,03,B,35\n"
SAME_ZIP = "not(t.zip == u.zip and t.city != u.city)"


class Work:
    """A folder with files and a place for a state, and the command line in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.state = str(folder / "state")
        self.people = self.file("people.csv", PEOPLE)

    def file(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def rows(self, *lines: str, header: str = HEADER) -> str:
        return self.file("rows.csv", header + "\n".join(lines) + "\n")

    def dc(self, *argv: str) -> Ran:
        return inside(self._capsys, "dc", *argv, "--quiet")

    def document(self, *argv: str) -> dict[str, Any]:
        ran = self.dc(*argv, "--format", "json")
        assert (ran.code, ran.err) == (0, "")
        document: dict[str, Any] = json.loads(ran.out)
        return document

    def result(self, *argv: str) -> dict[str, Any]:
        result: dict[str, Any] = self.document(*argv)["result"]
        return result

    def rules(self, *argv: str) -> list[str]:
        return [one["rule"] for one in self.result(*argv)["constraints"]]

    def init(self, *argv: str) -> dict[str, Any]:
        return self.result("init", self.state, self.people, "--no-cross-columns", "--types", "zip=text", *argv)

    def refused(self, *argv: str) -> str:
        ran = self.dc(*argv)
        assert (ran.code, ran.out) == (USAGE, "")
        assert "Traceback" not in ran.err
        return ran.err


@pytest.fixture
def work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Work:
    return Work(tmp_path, capsys)


def lost(change: dict[str, Any]) -> dict[str, Any]:
    """What broke each lost rule: the names of both rows."""
    return {one["rule"]: one["broken_by"] and list(one["broken_by"].values()) for one in change["lost"]}


def test_rows_come_change_and_go(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    built = work.init()
    assert (built["revision"], built["rows"], built["lost"], built["row_ids"]) == (0, 4, [], [])
    assert built["gained"] == work.rules("show", work.state)
    assert SAME_ZIP in built["gained"]
    come = work.result("insert", work.state, work.rows("C,50,01,5", header="city,pay,zip,id\n"))  # matched by name
    assert (come["revision"], come["rows"], come["row_ids"]) == (1, 5, [4])
    broken = lost(come)[SAME_ZIP]
    assert 4 in broken
    assert set(broken) <= {0, 1, 4}
    changed = work.result("update", work.state, work.rows("4,5,02,B,50", header="row_id," + HEADER))
    assert (changed["revision"], changed["rows"]) == (2, 5)
    assert SAME_ZIP in changed["gained"]
    gone = work.result("delete", work.state, "--ids", "4, 0")
    assert (gone["revision"], gone["rows"]) == (3, 3)
    kept = work.file("kept.csv", HEADER + "2,01,A,20\n3,02,B,25\n4,03,B,35\n")
    assert work.rules("show", work.state) == work.rules("discover", kept, "--space-from", work.state)


def test_what_show_says(work: Work) -> None:
    work.init()
    work.dc("insert", work.state, work.rows("5,01,C,50"))
    document = work.document("show", work.state)
    assert (document["command"], document["tables"][0]["rows"]) == ("dc show", 5)
    assert [(c["name"], c["type"], c["distinct"]) for c in document["tables"][0]["columns"]] == [
        ("id", "integer", 5), ("zip", "text", 3), ("city", "text", 3), ("pay", "integer", 5),
    ]  # fmt: skip
    options = document["options"]
    assert (options["cross_columns"], options["key"], options["counts"], options["sync"]) == (False, [], False, False)
    result = document["result"]
    assert (result["revision"], result["rows"], result["pairs"]) == (1, 5, 20)
    assert result["count"] == len(result["constraints"]) > 2
    assert {one["violating_pairs"] for one in result["constraints"]} == {0}
    assert all(0 < one["coverage"] <= 1 for one in result["constraints"])
    text = work.dc("show", work.state, "--format", "text", "--limit", "2").out
    assert text.startswith("people: 5 rows, 4 columns (2 integer, 2 text)\nrevision 1: ")
    assert re.search(r"^best 2 of \d+, by succinctness:$", text, re.MULTILINE)
    lines = list(csv.DictReader(io.StringIO(work.dc("show", work.state, "--format", "csv").out)))
    assert [line["rule"] for line in lines] == [one["rule"] for one in result["constraints"]]
    script = work.dc("show", work.state, "--format", "sql", "--dialect", "duckdb", "--sql-table", "main.people").out
    assert script.count('FROM "main"."people"') >= result["count"]


def test_earlier_revisions(work: Work) -> None:
    first = work.init()["gained"]
    work.dc("insert", work.state, work.rows("5,01,C,50"))
    then = work.document("show", work.state, "--revision", "0")
    result = then["result"]
    assert (result["revision"], result["rows"], result["pairs"]) == (0, 4, 12)
    assert [one["rule"] for one in result["constraints"]] == first
    assert {(one["violating_pairs"], one["g1"], one["coverage"]) for one in result["constraints"]} == {(0, 0.0, None)}
    assert then["tables"][0]["columns"][0]["distinct"] is None
    text = work.dc("show", work.state, "--revision", "0", "--format", "text", "-v").out
    assert re.search(r"^id +integer +- +- ", text, re.MULTILINE)
    assert work.rules("show", work.state, "--revision", "1") == work.rules("show", work.state)
    by_coverage = work.refused("show", work.state, "--revision", "0", "--rank-by", "coverage")
    assert "rank_by for an earlier revision: 'coverage'; allowed: 'succinctness'" in by_coverage
    assert "no such revision of the state: 7; allowed: 0 to 1" in work.refused("show", work.state, "--revision", "7")


def test_what_was_gained_and_lost_since(work: Work) -> None:
    work.init()
    change = work.result("insert", work.state, work.rows("5,01,C,50"))
    work.dc("insert", work.state, work.rows("6,04,C,60"))
    since = work.result("show", work.state, "--since", "0")
    assert (since["revision"], since["since"], since["rows"]) == (2, 0, 6)
    assert (since["gained"], since["lost"]) == (change["gained"], change["lost"])
    text = work.dc("show", work.state, "--since", "0", "--format", "text").out
    counts = f"{len(change['gained'])} denial constraints? gained, {len(change['lost'])} lost"
    assert re.search(f"^revision 2, since revision 0: {counts}$", text, re.MULTILINE)
    assert re.search(rf"^- {re.escape(SAME_ZIP)}\n    broken by rows t: \d, u: \d$", text, re.MULTILINE)
    nothing = work.result("show", work.state, "--since", "2")
    assert (nothing["gained"], nothing["lost"]) == ([], [])
    assert "--since has the formats text and json, not csv" in work.refused(
        "show", work.state, "--since", "0", "--format", "csv"
    )
    assert "Give --revision N or --since N, not both" in work.refused(
        "show", work.state, "--since", "0", "--revision", "1"
    )
    assert "without --rank-by and --limit" in work.refused("show", work.state, "--since", "0", "--limit", "3")


def test_rows_named_by_a_key(work: Work) -> None:
    work.init("--key", "id")
    come = work.result("insert", work.state, work.rows("5,01,C,50"))
    assert {"id": 5} in lost(come)[SAME_ZIP]
    text = work.dc("show", work.state, "--since", "0", "--format", "text").out
    assert re.search(r"broken by rows t: \(id = \d\), u: \(id = \d\)", text)
    changed = work.result("update", work.state, work.rows("5,01,A,50"))
    assert SAME_ZIP in changed["gained"]
    gone = work.result("delete", work.state, "--keys", work.file("keys.csv", "id\n5\n1\n"))
    assert (gone["revision"], gone["rows"]) == (3, 3)
    missing = work.refused("delete", work.state, "--keys", work.file("keys.csv", "id\n3\n5\n"))
    assert "no row of the state has the key of: 'row 1 of those given, id = 5'. Nothing was applied" in missing
    twice = work.refused("insert", work.state, work.rows("3,01,A,50"))
    assert "two rows have the same key 'id': 'row 0 of those given and the row with id 2'" in twice
    assert work.result("show", work.state)["revision"] == 3


def test_keys_of_every_type(work: Work) -> None:
    """Numbers of all columns share a dictionary; a row is named by the values of its own columns."""
    lines = ["1,2026-01-01,2026-01-01T10:00:00,1.50,a", "2,2026-01-01,2026-01-01T10:00:00,2.50,b"]
    table = work.file("typed.csv", "\n".join(["id,day,at,price,x", *lines]) + "\n")
    work.result("init", work.state, table, "--no-cross-columns", "--key", "id,day,at,price", "--types", "price=decimal")
    row = work.rows("3,2026-01-01,2026-01-01T10:00:00,2.5,a", header="id,day,at,price,x\n")
    come = work.result("insert", work.state, row)
    pair = next(one["broken_by"] for one in come["lost"] if one["rule"] == "not(t.x == u.x)")
    named = {"day": "2026-01-01", "at": "2026-01-01T10:00:00Z"}
    assert {"id": 3, **named, "price": "2.5"} in pair.values()
    assert {"id": 1, **named, "price": "1.5"} in pair.values()


def test_an_error_above_zero_keeps_counts(work: Work) -> None:
    built = work.document("init", work.state, work.people, "--error", "0.2", "--types", "zip=text")
    assert (built["options"]["error"], built["options"]["counts"]) == (0.2, True)
    work.dc("insert", work.state, work.rows("5,01,C,50"))
    shown = work.result("show", work.state)
    assert all(one["g1"] == one["violating_pairs"] / 20 <= 0.2 for one in shown["constraints"])
    then = work.result("show", work.state, "--revision", "0")["constraints"]
    assert {(one["violating_pairs"], one["g1"]) for one in then} == {(None, None)}


def test_types_are_fixed(work: Work) -> None:
    work.init("--null-token", "-")
    rows = work.rows("5,04,A,60", "x,05,B,70", "7,-,-,-")
    failed = work.refused("insert", work.state, rows)
    assert "column 'id': a value doesn't fit type integer at line 3" in failed
    assert work.result("show", work.state)["revision"] == 0
    document = work.document("insert", work.state, rows, "--bad-rows", "report")
    assert (document["result"]["rows"], document["result"]["row_ids"]) == (6, [4, 5])
    assert any("1 row" in note and "left out" in note for note in document["notes"])
    columns = work.document("show", work.state)["tables"][0]["columns"]
    assert [c["nulls"] for c in columns] == [0, 1, 1, 1]
    other = work.refused("insert", work.state, work.file("other.csv", "id,zip,town,pay\n5,04,A,60\n"))
    assert "'city'" in other
    assert "'town'" in other


def test_a_table_that_begins_empty_and_ends_so(work: Work) -> None:
    nothing = work.file("nothing.csv", "a,b\n")
    document = work.document("init", work.state, nothing, "--types", "b=integer")
    assert (document["result"]["rows"], document["result"]["gained"]) == (0, [])
    note = "column 'a' has no values: its type is text from now on; --types COL=TYPE fixes another"
    assert document["notes"] == [note]
    rows = work.file("few.csv", "a,b\nx,1\ny,2\n")
    assert "not(t.a == u.a)" in work.result("insert", work.state, rows)["gained"]
    assert work.result("insert", work.state, nothing)["revision"] == 2
    gone = work.dc("delete", work.state, "--ids", "0,1", "--format", "text").out
    assert "- not(t.a == u.a)\n" in gone
    assert "holds still" not in gone
    shown = work.document("show", work.state)
    assert (shown["result"]["count"], shown["result"]["pairs"]) == (0, 0)
    assert "0 rows, so there are no pairs of rows: nothing to learn" in shown["notes"]
    assert work.result("show", work.state, "--revision", "0")["constraints"] == []


def test_errors_are_one_message(work: Work) -> None:
    work.init()
    again = work.refused("init", work.state, work.people)
    assert "the folder of the state is not empty" in again
    assert "rows are added to a state by dc insert" in again
    assert "dc init" in work.refused("show", str(work.folder / "none"))
    assert "not by both" in work.refused("delete", work.state)
    assert "not by both" in work.refused("delete", work.state, "--ids", "1", "--keys", work.people)
    assert "'x' is not a whole number; numbers are written as 3,7" in work.refused("delete", work.state, "--ids", "1,x")
    assert "no row of the state has the id: 9. Nothing was applied" in work.refused(
        "delete", work.state, "--ids", "1,9"
    )
    assert "a row is named twice: 1; allowed: each row once" in work.refused("delete", work.state, "--ids", "1,1")
    named = "Name rows by their ids, or by a column row_id; or build the state with a key"
    assert named in work.refused("update", work.state, work.rows("5,01,A,50"))
    assert named in work.refused("delete", work.state, "--keys", work.file("keys.csv", "id\n3\n"))
    key = work.refused("init", str(work.folder / "other"), work.people, "--key", "idd")
    assert "'idd'" in key
    both = work.refused("init", str(work.folder / "other"), work.people, "--counts", "--algorithm", "hybrid")
    assert "algorithm with counts: 'hybrid'; allowed: 'auto' or 'evidence'" in both
    with DcState(work.state):
        assert "the state is being written by this process" in work.refused("insert", work.state, work.rows("5,1,A,5"))
        assert work.result("show", work.state)["revision"] == 0


def test_a_limit_leaves_no_state(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*given: Any, **more: Any) -> None:
        raise LimitReached("memory limit of 1 bytes reached")

    monkeypatch.setattr(initial, "build", build)
    ran = work.dc("init", work.state, work.people)
    assert (ran.code, ran.out) == (EXIT_LIMIT, "")
    assert not Path(work.state).exists()


def test_discovery_in_the_space_of_a_state(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.init("--nulls", "value", "--max-predicates", "2", "--columns", "id,zip,pay")
    found = work.document("discover", work.people, "--space-from", work.state)
    assert [one["rule"] for one in found["result"]["constraints"]] == work.rules("show", work.state)
    options = found["options"]
    assert (options["nulls"], options["max_predicates"], options["cross_columns"]) == ("value", 2, False)
    assert (options["columns"], options["types"]["zip"]) == (["id", "zip", "pay"], "text")
    assert options["space_from"] == work.state
    space = work.document("discover", work.people, "--space-from", work.state, "--explain-space")["result"]
    assert [group["left"] for group in space["groups"]] == ["t.id", "t.zip", "t.pay"]
    fixed = work.refused("discover", work.people, "--space-from", work.state, "--error", "0.1", "--types", "id=text")
    assert "options that the state of --space-from fixes: '--error, --types'. Leave them out." in fixed
    other = work.refused("discover", work.file("other.csv", "id,zip\n1,2\n"), "--space-from", work.state)
    assert "no column of that name in table 'other': 'pay'" in other


def test_as_a_process(work: Work) -> None:
    ran = process("dc", "init", work.state, work.people, "--format", "text")
    assert (ran.code, ran.err) == (0, "")
    assert "revision 0" in ran.out


WAITING = """
import sys, time
from tuplewise.engine.cli.main import main
from tuplewise.engine.dc.incremental import state

def insert(*given, **more):
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(60)

state.DcState.insert = insert
main(sys.argv[1:])
"""


def test_ctrl_c_leaves_the_state_as_it_was(work: Work) -> None:
    work.init()
    argv = [sys.executable, "-c", WAITING, "dc", "insert", work.state, work.rows("5,01,C,50")]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert running.stderr.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (130, "", "tuplewise: interrupted\n")
    assert work.result("show", work.state)["revision"] == 0
    assert work.result("insert", work.state, work.rows("5,01,C,50"))["revision"] == 1
