"""`tuplewise dc check`: what it prints and writes, with which exit code, and the message for each fault."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cli_runs import Ran, inside

VIOLATED, USAGE, LIMIT = 1, 2, 3
TABLE = "id,zip,city,pay\n1,Z1,A,10\n2,Z1,B,20\n3,Z2,B,20\n4,Z2,B,35\n5,Z1,A,5\n"
FD = "zip -> city"
HOLDS = "not(t.id == u.id)"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return str(path)


def check(capsys: pytest.CaptureFixture[str], table: str, *more: str) -> Ran:
    return inside(capsys, "dc", "check", table, "--device", "cpu", *more)


def rules(ran: Ran) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ran.out)["result"]["rules"]
    return found


def test_json_is_the_default_and_violations_exit_1(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = check(capsys, table, "--rule", FD, "--rule", HOLDS)
    assert (ran.code, ran.err) == (VIOLATED, "")
    document = json.loads(ran.out)
    assert document["command"] == "dc check"
    assert document["tables"][0]["name"] == "people"
    fd, holds = document["result"]["rules"]
    assert fd["rule"] == "not(t.zip == u.zip and t.city != u.city)"
    assert (fd["violating_pairs"], [(p["t"], p["u"]) for p in fd["pairs"]]) == (4, [(0, 1), (1, 4)])
    assert (holds["holds"], holds["violating_pairs"]) == (True, 0)
    assert check(capsys, table, "--rule", HOLDS).code == 0


def test_options_say_all_with_defaults(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = json.loads(check(capsys, table, "--rule", FD, "--fail-on", "0.10%", "--key", "id,pay").out)["options"]
    expected = {
        "fail_on": "0.10%", "key": ["id", "pay"], "pairs": 100, "count_only": False, "together": "auto",
        "run_on": "auto", "rules_syntax": "auto", "nulls": "unknown", "pairs_out": None, "split": None,
        "explain": False, "encoding": "utf-8", "columns": None, "time_limit": None, "memory_limit": None, "seed": 0,
    }  # fmt: skip
    assert {name: options[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("bound", "code"),
    [("0", 1), ("3", 1), ("4", 0), ("19.9%", 1), ("20%", 0), ("19.99999999999999999999999999999999999%", 1)],
)
def test_fail_on_is_exact(bound: str, code: int, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = check(capsys, table, "--rule", FD, "--fail-on", bound)
    assert ran.code == code
    assert (rules(ran)[0]["holds"], rules(ran)[0]["failed"]) == (False, bool(code))


def test_fewer_pairs_and_counts_alone_still_exit_1(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--pairs", "1"], ["--pairs", "0"], ["--count-only"]):
        ran = check(capsys, table, "--rule", FD, *more)
        (rule,) = rules(ran)
        assert (ran.code, rule["violating_pairs"], rule["truncated"]) == (VIOLATED, 4, True)
        assert rule["pairs_listed"] == (1 if more[-1] == "1" else 0)


def test_rules_from_files_and_other_syntaxes(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "rules.txt"
    lines.write_text("# of people\nt1&t2&EQ(t1.zip,t2.zip)&IQ(t1.city,t2.city)\n\n" + HOLDS + "\n")
    ran = check(capsys, table, "--rules", str(lines), "--rule", FD, "--rule", "not(t.pay < u.pay and t.id > u.id)")
    document = json.loads(ran.out)
    assert len(document["result"]["rules"]) == 3
    assert any("rules.txt line 2 is the same rule as" in note for note in document["notes"])
    again = tmp_path / "found.json"
    again.write_text(ran.out)
    assert [r["id"] for r in rules(check(capsys, table, "--rules", str(again)))] == [r["id"] for r in rules(ran)]
    bare = check(capsys, table, "--rule", "!(s.city == B and s.pay == 20)", "--rules-syntax", "desbordante")
    assert [p["t"] for p in rules(bare)[0]["pairs"]] == [1, 2]


def test_text_shows_ten_pairs_unless_told(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    rule = ["--rule", "not(t.pay != u.pay)", "--format", "text"]
    shown = check(capsys, table, *rule, "-v")
    assert shown.code == VIOLATED
    assert shown.out.startswith("people: 5 rows, 4 columns")
    assert re.search(r"^zip +text", shown.out, re.MULTILINE)
    assert "VIOLATED  not(t.pay != u.pay)\n  18 ordered pairs (90 % of all), 5 rows" in shown.out
    assert "all pairs, each once" in shown.out
    two = check(capsys, table, *rule, "--pairs", "2").out
    assert "the first 2 pairs, each once" in two
    assert "All pairs: --pairs-out FILE.parquet" in two


def test_csv_and_sql(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = check(capsys, table, "--rule", FD, "--format", "csv", "--key", "id").out.splitlines()
    assert lines[0] == '"rule_id","rule","t","u","t.id","u.id","t.zip","u.zip","t.city","u.city"'
    assert lines[1].endswith(',0,1,1,2,"Z1","Z1","A","B"')
    assert len(lines) == 3
    how = ["--format", "sql", "--dialect", "duckdb", "--sql-table", "main.people"]
    sql = check(capsys, table, "--rule", FD, *how)
    assert (sql.code, 'FROM "main"."people"' in sql.out) == (VIOLATED, True)
    by_key = check(capsys, table, "--rule", FD, *how, "--key", "id").out
    assert 'FROM "main"."people" AS t' in by_key
    assert "row_number" not in by_key


def test_csv_of_counts_has_a_line_for_each_rule(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--rule", FD, "--rule", HOLDS, "--count-only", "--format", "csv"]
    ran = check(capsys, table, *argv)
    lines = list(csv.DictReader(io.StringIO(ran.out)))
    assert ran.code == VIOLATED
    assert [list(line.values())[1:] for line in lines] == [
        ["not(t.zip == u.zip and t.city != u.city)", "false", "4", "0.2", "0", "true"],
        ["not(t.id == u.id)", "true", "0", "0.0", "0", "true"],
    ]
    assert list(lines[0])[:2] == ["rule_id", "rule"]
    assert [line["rule_id"] for line in lines] == [r["id"] for r in rules(check(capsys, table, *argv[:-2]))]
    late = check(capsys, table, *argv, "--time-limit", "0.000001")
    assert [line["holds"] for line in csv.DictReader(io.StringIO(late.out))] == ["", ""]


def test_key_columns_are_loaded_where_columns_are_chosen(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = check(capsys, table, "--rule", FD, "--columns", "zip,city", "--key", "id")
    assert rules(ran)[0]["pairs"][0]["t"] == {"id": 1}
    assert json.loads(ran.out)["options"]["columns"] == ["zip", "city", "id"]
    repeated = check(capsys, table, "--rule", FD, "--key", "city")
    assert any("the key ('city') is not unique: 5 rows share" in n for n in json.loads(repeated.out)["notes"])


def test_explain_tells_the_plan_and_still_checks(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = check(capsys, table, "--rule", FD, "--explain", "--format", "text")
    assert ran.code == VIOLATED
    assert "equality: t.zip == u.zip" in ran.out
    assert "t.city  u.city" not in ran.out
    (rule,) = rules(check(capsys, table, "--rule", FD, "--explain"))
    assert (rule["pairs"], rule["violating_pairs"]) == ([], 4)
    assert [step["predicates"] for step in rule["plan"]][:1] == [["t.zip == u.zip"]]
    assert check(capsys, table, "--rule", FD, "--explain", "--format", "sql").code == USAGE


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_all_pairs_into_a_file(ending: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / f"pairs.{ending}"
    ran = check(capsys, table, "--rule", FD, "--pairs", "1", "--pairs-out", str(target), "--key", "id")
    assert ran.code == VIOLATED
    assert f"pairs: 2 written to '{target}'" in json.loads(ran.out)["notes"]
    found = pq.read_table(target) if ending == "parquet" else pyarrow.csv.read_csv(target)
    assert found.column_names == ["t", "u", "t.id", "u.id", "t.zip", "u.zip", "t.city", "u.city"]
    assert (found["t.id"].to_pylist(), found["u.id"].to_pylist()) == ([1, 2], [2, 5])


def test_rows_are_split(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "parts"
    argv = ["--rule", FD, "--rule", "not(t.pay > 30)", "--split", str(folder)]
    ran = check(capsys, table, *argv)
    ids = [rule["id"] for rule in rules(ran)]
    assert ran.code == VIOLATED
    assert (folder / "valid.csv").read_text() == "id,zip,city,pay\n3,Z2,B,20\n"
    assert (folder / "violating.csv").read_text() == (
        "row_position,violated_rules,id,zip,city,pay\n"
        f"0,{ids[0]},1,Z1,A,10\n1,{ids[0]},2,Z1,B,20\n3,{ids[1]},4,Z2,B,35\n4,{ids[0]},5,Z1,A,5\n"
    )
    (note,) = [n for n in json.loads(ran.out)["notes"] if n.startswith("split: ")]
    assert note.startswith(f"split: 1 row in '{folder}/valid.csv', 4 in ")
    assert check(capsys, table, *argv).code == VIOLATED  # our own files are replaced
    (folder / "mine.txt").write_text("")
    refused = check(capsys, table, *argv)
    assert (refused.code, refused.out) == (USAGE, "")
    assert "holds 'mine.txt'" in refused.err


def test_a_time_limit_exits_3_and_a_violation_before_it_1(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--pairs-out", str(tmp_path / "p.csv"), "--split", str(tmp_path / "parts")]
    ran = check(capsys, table, "--rule", FD, "--time-limit", "0.000001", *files)
    document = json.loads(ran.out)
    assert (ran.code, document["partial"], rules(ran)[0]["holds"]) == (LIMIT, True, None)
    assert any("pairs were not written to" in note for note in document["notes"])
    assert any("rows were not split into" in note for note in document["notes"])
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]
    ran = check(capsys, table, "--rule", FD, "--rule", "not(t.pay > 30)", "--time-limit", "0.000001")
    assert (ran.code, json.loads(ran.out)["partial"]) == (VIOLATED, True)
    text = check(capsys, table, "--rule", FD, "--time-limit", "0.000001", "--format", "text").out
    assert "PARTIAL" in text
    assert "UNDECIDED" in text


def test_pairs_that_a_limit_cuts_short_are_partial(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def too_late(*args: Any, **more: Any) -> Any:
        raise TimeoutError
        yield

    monkeypatch.setattr("tuplewise.engine.dc.violations.listing.iterate_pairs", too_late)
    target = tmp_path / "p.csv"
    ran = check(capsys, table, "--rule", FD, "--pairs", "1", "--pairs-out", str(target), "--fail-on", "4")
    assert (ran.code, json.loads(ran.out)["partial"], target.exists()) == (LIMIT, True, False)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--rule", FD, "--pairs", "-1"], "pairs: -1; allowed: 0 or more"),
        ([], "No rule is given: --rule TEXT, or --rules FILE."),
        (["--rule", FD, "--fail-on", "1.5"], "fail_on: '1.5'; allowed: a count of pairs such as 10, or a percentage"),
        (["--rule", FD, "--rules-syntax", "sql"], "'sql' is not one of 'auto', 'holoclean', 'desbordante'"),
        (["--rule", FD, "--together", "all"], "'all' is not one of"),
        (["--rule", FD, "--run-on", "gpu"], "'gpu' is not one of"),
        (["--rule", FD, "--explain", "--format", "csv"], "--explain has the formats text and json, not csv"),
    ],
)
def test_usage_errors(argv: list[str], message: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = check(capsys, table, *argv)
    assert (ran.code, ran.out) == (USAGE, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--rule", "not(t.zpi == u.zip)"], "no column of the name 'zpi'. Did you mean 'zip'"),
        (["--rule", "not(t.zip = = u.zip)"], "position"),
        (["--rule", FD, "--rules", "nosuch.txt"], "rules file can't be read: 'nosuch.txt'"),
        (["--rule", FD, "--key", "idd"], "key: there is no column of the name: 'idd'. Did you mean 'id'?"),
        (["--rule", FD, "--columns", "zip,cty"], "Did you mean 'city'?"),
        (["--rule", FD, "--columns", "zip"], "'city'"),
        (["--rule", FD, "--sql-table", "a..b"], "SQL table name: 'a..b'"),
        (["--rule", FD, "--pairs-out", "x.json"], "file of pairs: 'x.json'; allowed: a name that ends in .parquet or"),
        (["--rule", FD, "--pairs-out", "/nosuch/x.csv"], "There is no folder '/nosuch'"),
        (["--rule", FD, "--split", "x", "--count-only"], "leave out --count-only"),
        (["--rule", FD, "-o", "x.csv", "--pairs-out", "./x.csv"], "--pairs-out and -o name one file"),
        (["--rule", "not(t.zip < 5)"], "zip"),
        (["--rule", FD, "--device", "cuda:77"], "cuda:77"),
        (["--rule", FD, "--time-limit", "0", "--rows", "-1"], "rows: -1; allowed: 0 or more; time_limit: 0.0"),
    ],
)
def test_faults_are_one_message(more: list[str], message: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "dc", "check", table, *more)
    assert (ran.code, ran.out) == (USAGE, "")
    assert ran.err.startswith("tuplewise: error: ")
    assert message in ran.err
    assert "internal error" not in ran.err


def test_all_faulty_rules_are_told_at_once(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rules.txt"
    file.write_text("not(t.nosuch == u.zip)\nzip -> town\n")
    ran = check(capsys, table, "--rule", "not(t.cty == u.city)", "--rule", HOLDS, "--rules", str(file))
    assert ran.code == USAGE
    for fault in ("'cty'", "rules.txt line 1", "'nosuch'", "rules.txt line 2", "'town'"):
        assert fault in ran.err
    assert ran.err.count("Accepted: ") == 1


def test_a_faulty_rule_or_key_is_told_before_the_table_is_loaded(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loaded(*args: Any, **more: Any) -> Any:
        raise AssertionError("the table was loaded")

    monkeypatch.setattr("tuplewise.engine.table.table.open_table", loaded)
    assert "Did you mean 'city'" in check(capsys, table, "--rule", "zip -> cit").err
    assert "Did you mean 'pay'" in check(capsys, table, "--rule", FD, "--key", "id,pya").err
    assert "the table was loaded" in check(capsys, table, "--rule", FD).err


def test_help_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    shown = inside(capsys, "dc", "check", "--help").out
    for option in (
        "--rule ", "--rules ", "--rules-syntax", "--pairs ", "--pairs-out", "--key", "--count-only", "--fail-on",
        "--split", "--explain", "--together", "--run-on", "--nulls", "--device", "--time-limit", "--memory-limit",
        "--seed", "--columns", "--format", "--dialect", "--sql-table",
    ):  # fmt: skip
        assert option in shown, option
