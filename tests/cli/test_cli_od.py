"""`tuplewise od discover`, `od check` and `od order-by`: what they print, with which exit code and message."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_runs import Ran, inside

import tuplewise as tw
from tuplewise.engine.errors import LimitReached

USAGE, LIMIT, VIOLATED = 2, 3, 1
DAYS = "day,month,week,left\n1,1,1,9\n2,1,4,8\n3,2,5,3\n4,2,5,2\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "days.csv"
    path.write_text(DAYS)
    return str(path)


@pytest.fixture
def saved(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / "found.json"
    assert discover(capsys, table, "-o", str(path)).code == 0
    return str(path)


def discover(capsys: pytest.CaptureFixture[str], table: str, *more: str) -> Ran:
    return inside(capsys, "od", "discover", table, "--device", "cpu", *more)


def check(capsys: pytest.CaptureFixture[str], *more: str) -> Ran:
    return inside(capsys, "od", "check", "--device", "cpu", *more)


def test_json_is_the_default_away_from_a_terminal(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = discover(capsys, table)
    document = json.loads(ran.out)
    assert ran.code == 0
    assert (document["command"], document["tables"][0]["name"]) == ("od discover", "days")
    result = document["result"]
    assert result["count"] == len(result["constant"]) + len(result["order_compatible"])
    assert {"context": ["week"], "attribute": "month"} in result["constant"]
    compatible = {"context": [], "left": "day", "right": "left", "direction": "descending"}
    assert compatible in result["order_compatible"]
    assert document["options"]["limit"] is None
    assert document["options"]["encoding"] == "utf-8"
    assert document["options"]["nulls"] == "value"


def test_each_algorithm_lists_the_same(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    results = [json.loads(discover(capsys, table, "--algorithm", a).out)["result"] for a in ("hybrid", "levelwise")]
    assert [r["algorithm"] for r in results] == ["hybrid", "levelwise"]
    for name in ("constant", "order_compatible", "count"):
        assert results[0][name] == results[1][name]


def test_text_csv_and_sql(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = discover(capsys, table, "--format", "text", "--limit", "1").out
    assert text.startswith("days: 4 rows, 4 columns")
    assert "order compatible (among rows that are equal on what is in brackets" in text
    assert "the best 1 of 6, by genuineness:" in text
    assert "1  []: day ~ month\n" in discover(capsys, table, "--format", "text", "--rank-by", "size").out
    assert "All of them: --format json, csv or sql" in text
    csv = discover(capsys, table, "--format", "csv", "--limit", "2").out
    assert csv.splitlines()[0] == "kind,context,attribute,left,right,direction"
    assert len(csv.splitlines()) == 5
    sql = discover(capsys, table, "--format", "sql", "--dialect", "duckdb", "--sql-table", "main.days").out
    assert 'FROM "main"."days"' in sql
    assert "-- []: day ~ `left` desc" not in sql
    assert "-- []: day ~ left desc" in sql


def test_options_reach_the_search(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--columns", "month,week,left", "--max-context", "0", "--lexicographic", "1", "--seed", "3"]
    document = json.loads(discover(capsys, table, *more).out)
    assert [c["name"] for c in document["tables"][0]["columns"]] == ["month", "week", "left"]
    assert {tuple(c["context"]) for c in document["result"]["order_compatible"]} == {()}
    assert document["result"]["constant"] == []
    options = document["options"]
    assert (options["max_context"], options["lexicographic"], options["seed"]) == (0, 1, 3)
    assert document["result"]["lexicographic"] == []
    lists = json.loads(discover(capsys, table, "--lexicographic", "1").out)["result"]["lexicographic"]
    assert "left -> day desc" in lists


def test_rows_to_remove(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(discover(capsys, table, "--error", "0.5").out)["result"]
    assert result["measure"] == "g3"
    assert result["constant"][0] == {"context": [], "attribute": "month", "rows_to_remove": 2, "g3": 0.5}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--nulls", "unknown"], "nulls of order dependencies: 'unknown'; allowed: 'value'. Order dependencies are"),
        (["--error", "1"], "error: '1'; allowed: 0 <= error < 1 (share of rows to remove, g3)"),
        (["--error", "0.1", "--algorithm", "hybrid"], "algorithm with error above 0: 'hybrid'; allowed: 'auto' or"),
        (["--error", "0.1", "--lexicographic", "2"], "lexicographic with error: '0.1'; allowed: 0."),
        (["--max-context", "-1", "--rows", "-1"], "rows: -1; allowed: 0 or more; max_context: -1; allowed: 0 or more"),
        (["--columns", "day,weak"], "Did you mean 'week'?"),
        (["--device", "cuda:77"], "cuda:77"),
        (["--sql-table", "a..b"], "SQL table name: 'a..b'"),
        (["-o", "/nosuch/folder/x.json"], "There is no folder '/nosuch/folder'"),
    ],
)
def test_faults_are_one_message(more: list[str], message: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "od", "discover", table, *more)
    assert ran.code == USAGE
    assert ran.err.startswith("tuplewise: error: ")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["od"], "Usage: "),
        (["od", "discover"], "Missing argument 'TABLE'"),
        (["od", "discover", "x.csv", "--algorithm", "fastod"], "not one of 'auto', 'hybrid', 'levelwise'"),
        (["od", "discover", "x.csv", "--limit", "0"], "limit: 0; allowed: 1 or more"),
        (["od", "check", "x.csv"], "No order dependency is given: --od TEXT, or --ods FILE."),
        (["od", "check", "--od", "a -> b"], "Give a TABLE, or the JSON of od discover: --against RESULT"),
        (["od", "check", "x.csv", "--od", "a -> b", "--against", "y.json"], "(one of the two)"),
        (["od", "check", "x.csv", "--od", "a -> b", "--format", "sql"], "'sql' is not one of 'text', 'json', 'csv'"),
        (["od", "order-by", "a"], "Missing option '--against'"),
    ],
)
def test_usage_errors(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, *argv)
    assert ran.code == USAGE
    assert message in ran.err + ran.out
    assert "Traceback" not in ran.err


def test_a_time_limit_prints_what_was_found_and_exits_3(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = discover(capsys, table, "--time-limit", "0.000001")
    document = json.loads(ran.out)
    assert (ran.code, document["partial"]) == (LIMIT, True)
    assert document["result"]["complete_context"] == -1
    late, reached = document["notes"]
    said = r"time limit reached with \d+ candidates undecided: each one listed holds and is minimal, others are missing"
    assert re.fullmatch(said, late)
    assert re.fullmatch(
        r"the time limit was over before the table was read \(\d+\.\d s\), which it does not interrupt", reached
    )
    text = discover(capsys, table, "--time-limit", "0.000001", "--format", "text")
    assert text.code == LIMIT
    assert "PARTIAL: a limit was reached; there may be more order dependencies" in text.out


def test_interruption_exits_130(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*args: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("tuplewise.engine.cli.main._interrupted", lambda: 130)
    monkeypatch.setattr("tuplewise.engine.tasks.discover_dependencies", interrupt)
    assert discover(capsys, table).code == 130


def test_a_check_that_fails_exits_1(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    held = check(capsys, table, "--od", "week -> month", "--od", "day, left -> week")
    assert held.code == 0
    assert [o["holds"] for o in json.loads(held.out)["result"]["ods"]] == [True, True]
    ran = check(capsys, table, "--od", "week -> month", "--od", "month -> day desc")
    assert ran.code == VIOLATED
    document = json.loads(ran.out)
    assert (document["command"], document["options"]["against"]) == ("od check", None)
    assert document["options"]["encoding"] == "utf-8"
    first, second = document["result"]["ods"]
    assert (first["od"], first["holds"], first["violation"]) == ("week -> month", True, None)
    assert (second["holds"], second["violation"]["kind"]) == (False, "split")
    text = check(capsys, table, "--od", "month -> day desc", "--format", "text")
    assert text.code == VIOLATED
    assert "VIOLATED  month -> day desc\n  split: t and u are equal" in text.out
    csv = check(capsys, table, "--od", "day -> left", "--format", "csv").out.splitlines()
    assert csv[0] == "od,holds,kind,t,u,seconds"
    assert csv[1].startswith("day -> left,false,swap,")


def test_files_of_dependencies(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ods.txt"
    path.write_text("# two\nweek -> month\nday -> left desc\n")
    ran = check(capsys, table, "--ods", str(path), "--od", "week -> month")
    document = json.loads(ran.out)
    assert ran.code == 0
    assert [o["od"] for o in document["result"]["ods"]] == ["week -> month", "day -> left desc"]
    assert "ods.txt line 2 is the same dependency as 'week -> month': it is checked once" in document["notes"]
    missing = check(capsys, table, "--ods", str(tmp_path / "no.txt"))
    assert (missing.code, "No such file" in missing.err) == (USAGE, True)


def test_faults_in_dependencies_are_told_before_loading(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*args: Any, **more: Any) -> Any:
        raise AssertionError("the table was loaded")

    monkeypatch.setattr("tuplewise.engine.table.table.open_table", never)
    ran = check(capsys, table, "--od", "weak -> month", "--od", "month ->")
    assert ran.code == USAGE
    assert "Did you mean 'week'?" in ran.err
    assert "position " in ran.err
    assert ran.err.count("Accepted: ") == 1


def test_a_check_that_a_limit_ended(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = check(capsys, table, "--od", "week -> month", "--time-limit", "0.000001")
    assert ran.code == LIMIT
    assert json.loads(ran.out)["partial"] is True
    assert check(capsys, table, "--od", "week -> month", "--run-on", "spark", "--reader", "arrow").code == USAGE
    assert check(capsys, table, "--od", "week -> month", "--nulls", "unknown").code == USAGE


def test_a_check_against_a_saved_result(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = check(capsys, "--against", saved, "--od", "week, day -> month")
    assert held.code == 0
    document = json.loads(held.out)
    assert (document["tables"], document["options"]["against"]) == ([], saved)
    timings = document["timings_seconds"]
    assert list(timings) == ["checking", "total"]
    assert timings["total"] >= timings["checking"] > 0
    for more, named in ([["--sep", ";"], "--sep"], [["--no-header", "--columns", "day"], "--columns, --no-header"]):
        ran = check(capsys, "--against", saved, "--od", "day -> month", *more)
        assert ran.code == USAGE
        assert f"options of reading a table beside --against: '{named}'. No table is read: leave them out." in ran.err
    failed = check(capsys, "--against", saved, "--od", "month -> week", "--format", "text")
    assert failed.code == VIOLATED
    assert failed.out.startswith("1 order dependency: 1 violated\n")
    ran = check(capsys, "--against", saved, "--od", "weak -> month")
    assert (ran.code, "Did you mean 'week'?" in ran.err) == (USAGE, True)
    other = tmp_path / "other.json"
    other.write_text(tw.discover_keys(pa.table({"a": [1, 2]}), device="cpu").to_json())
    ran = check(capsys, "--against", str(other), "--od", "a -> a")
    assert (ran.code, "is not of od discover: 'key discover'" in ran.err) == (USAGE, True)


def test_a_partial_result_proves_and_leaves_the_rest_undecided(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line as in Python."""
    document = json.loads(Path(saved).read_text())
    document["partial"] = True
    Path(saved).write_text(json.dumps(document))
    held = check(capsys, "--against", saved, "--od", "week, day -> month")
    assert (held.code, json.loads(held.out)["result"]["ods"][0]["holds"]) == (0, True)
    ran = check(capsys, "--against", saved, "--od", "month -> week")
    document = json.loads(ran.out)
    assert (ran.code, document["result"]["ods"][0]["holds"], document["partial"]) == (LIMIT, None, True)
    assert "the discovery was limited: it does not tell about 1 of 1 dependencies" in document["notes"]


def test_shortest_order_by(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "od", "order-by", "--against", saved, "month, week, day desc", "--format", "text")
    assert (ran.code, ran.out) == (0, "week, day desc\n")
    document = json.loads(inside(capsys, "od", "order-by", "--against", saved, "month, day, left").out)
    assert document["command"] == "od order-by"
    assert document["result"] == {"order_by": "month, day, left", "shortest": "day", "minimal": True}
    assert document["timings_seconds"]["total"] > 0
    ran = inside(capsys, "od", "order-by", "--against", saved, "week, month, day")
    assert json.loads(ran.out)["result"]["shortest"] == "day"
    ran = inside(capsys, "od", "order-by", "--against", saved, "month, dy")
    assert ran.code == USAGE
    assert "ORDER BY, position 8: no column of the name 'dy'. Did you mean 'day'?\n" in ran.err
    assert "Accepted: month, week desc | [a, b]." in ran.err
    ran = inside(capsys, "od", "order-by", "--against", saved, " ")
    assert (ran.code, "columns of ORDER BY: ' '; allowed: one or more, such as" in ran.err) == (USAGE, True)


def test_a_shortened_order_says_where_there_may_be_a_shorter_one(
    saved: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tuplewise.engine.od.order_by.MOST_STEPS", 0)
    note = "the search ended after 0 lists: there may be a shorter one that sorts alike"
    argv = ["od", "order-by", "--against", saved, "month, week desc, left desc"]
    document = json.loads(inside(capsys, *argv).out)
    assert (document["result"]["minimal"], document["notes"]) == (False, [note])
    ran = inside(capsys, *argv, "--format", "text")
    assert (ran.code, note in ran.err, note in ran.out) == (0, True, False)
    days = pa.table({"month": [1, 1, 2], "week": [1, 2, 3], "day": [5, 4, 9]})
    assert tw.discover_ods(days, device="cpu").shortest_order_by("month, week desc, day desc") == "month, week desc"
    assert note in caplog.text


def test_limits_that_leave_nothing_exit_3(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reached(*args: Any, **more: Any) -> Any:
        raise LimitReached("memory limit of 5 bytes reached")

    monkeypatch.setattr("tuplewise.engine.od.discover.discover", reached)
    ran = discover(capsys, table)
    assert (ran.code, "memory limit" in ran.err) == (LIMIT, True)


def test_help_names_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    shown = inside(capsys, "od", "discover", "--help").out
    for option in ("--error", "--max-context", "--algorithm", "--lexicographic", "--limit", "--nulls", "--sql-table"):
        assert option in shown
    for option in ("--od ", "--ods", "--against"):
        assert option in inside(capsys, "od", "check", "--help").out
