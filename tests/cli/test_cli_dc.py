"""`tuplewise dc discover`: what it prints, where, with which exit code and message for each fault."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TABLE, Ran, inside

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.listing import Written, format_of
from tuplewise.engine.errors import LimitReached

USAGE = 2
LIMIT = 3


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return str(path)


def discover(capsys: pytest.CaptureFixture[str], table: str, *more: str) -> Ran:
    return inside(capsys, "dc", "discover", table, "--device", "cpu", *more)


def test_json_is_the_default_away_from_a_terminal(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = discover(capsys, table)
    document = json.loads(ran.out)
    assert ran.code == 0
    assert document["tables"][0]["name"] == "people"
    assert document["result"]["count"] == len(document["result"]["constraints"]) > 3
    assert "not(t.id == u.id)" in [c["rule"] for c in document["result"]["constraints"]]


def test_options_say_all_with_defaults(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = [
        "--error",
        "0.10",
        "--columns",
        "id,zip,pay",
        "--types",
        "zip=text",
        "--null-token",
        "NA",
        "--conf",
        "a.b=c=d",
        "--reader",
        "arrow",
    ]
    options = json.loads(discover(capsys, table, *more).out)["options"]
    assert options["error"] == 0.1
    assert options["columns"] == ["id", "zip", "pay"]
    assert options["types"] == {"zip": "text"}
    assert options["null_tokens"] == ["NA"]
    assert options["conf"] == {"a.b": "c=d"}
    assert options["encoding"] == "utf-8"
    assert options["cross_columns"] is True
    assert options["minimality"] == "implication"
    assert options["limit"] is None


def test_switches_reach_the_search(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--no-cross-columns", "--order-text", "--nulls", "value", "--max-predicates", "1", "--minimality", "subset"]
    document = json.loads(discover(capsys, table, *more, "--shared-values", "0", "--comparable-means", "0.5").out)
    options = document["options"]
    assert options["cross_columns"] is False
    assert options["order_text"] is True
    assert options["nulls"] == "value"
    assert options["shared_values"] == 0
    assert options["comparable_means"] == 0.5
    assert {len(c["predicates"]) for c in document["result"]["constraints"]} == {1}
    assert document["result"]["predicate_space"] == 4 * 6


def test_text_csv_and_sql(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = discover(capsys, table, "--format", "text", "-v").out
    assert text.startswith("people: 4 rows, 4 columns")
    assert re.search(r"^zip +text .* leading zeros", text, re.MULTILINE)
    csv = discover(capsys, table, "--format", "csv", "--rank-by", "coverage", "--limit", "2").out
    assert csv.splitlines()[0] == "id,rule,kind,violating_pairs,g1,succinctness,coverage"
    assert len(csv.splitlines()) == 3
    sql = discover(capsys, table, "--format", "sql", "--dialect", "duckdb", "--sql-table", "main.people").out
    assert 'FROM "main"."people"' in sql


def test_limit_lists_the_best_in_rank_order(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads(discover(capsys, table, "--rank-by", "coverage").out)["result"]["constraints"]
    assert [c["coverage"] for c in whole] == sorted((c["coverage"] for c in whole), reverse=True)
    ran = discover(capsys, table, "--rank-by", "coverage", "--limit", "3")
    assert ran.code == 0
    assert json.loads(ran.out)["result"]["constraints"] == whole[:3]


def test_explain_space_stops_before_the_search(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(discover(capsys, table, "--explain-space").out)
    assert list(document["result"]) == ["predicate_space", "groups", "column_pairs"]
    groups = document["result"]["groups"]
    assert sum(len(g["operators"]) for g in groups) == document["result"]["predicate_space"]
    assert {"left": "t.id", "right": "u.id", "operators": ["==", "!=", "<", "<=", ">", ">="]} in groups
    assert all(
        p["verdict"] in {"left out", "six operators", "== and != only"} for p in document["result"]["column_pairs"]
    )
    text = discover(capsys, table, "--explain-space", "--format", "text").out
    assert "predicate space: " in text
    ran = discover(capsys, table, "--explain-space", "--format", "csv")
    assert ran.code == USAGE
    assert "--explain-space has the formats text and json, not csv" in ran.err


def test_a_file_is_written_whole_and_replaced(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "found.json"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(target)
    ran = discover(capsys, table, "-o", str(link))
    assert (ran.code, ran.out) == (0, "")
    assert json.loads(target.read_text())["result"]["count"] > 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["found.json", "link.json", "people.csv"]


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    target.write_text("old")

    def pieces() -> Any:
        yield "new"
        raise RuntimeError("the search broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        output.write(pieces(), str(target))
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["found.json"]


def test_a_file_named_for_another_format_is_noted(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "rules.sql"
    ran = discover(capsys, table, "-o", str(target))
    assert f"'{target}' gets json; --format sql would write sql" in ran.err
    assert json.loads(target.read_text())
    assert discover(capsys, table, "-o", str(target), "--quiet").err == ""


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["dc", "nosuch"], "No such command 'nosuch'"),
        (["dc", "discover"], "Missing argument 'TABLE'"),
        (["dc", "discover", "x.csv", "--sample-pairs", "0"], "sample_pairs: 0; allowed: 1 or more"),
        (["dc", "discover", "x.csv", "--sample-pairs", "1e6"], "'1e6' is not a valid integer"),
        (["dc", "discover", "x.csv", "--algorithm", "dcfinder"], "not one of 'auto', 'evidence', 'hybrid', 'hydra'"),
        (["dc", "discover", "x.csv", "--error", "abc"], "error: 'abc'; allowed: a decimal number"),
        (["dc", "discover", "x.csv", "--error", "nan"], "error: 'nan'; allowed: a decimal number"),
        (["dc", "discover", "x.csv", "--types", "zip"], "'zip' is not of the form col=type"),
        (["dc", "discover", "x.csv", "--conf", "=v"], "'=v' is not of the form key=value"),
        (["dc", "discover", "x.csv", "--columns", ""], "no name is given"),
        (["dc", "discover", "x.csv", "--memory-limit", "much"], "'much' is not a size such as 500000000, 512M or 4G"),
        (["dc", "discover", "x.csv", "--limit", "0"], "limit: 0; allowed: 1 or more"),
        (["doctor", "--format", "csv"], "'csv' is not one of 'text', 'json'"),
    ],
)
def test_usage_errors(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, *argv)
    assert ran.code == USAGE
    assert message in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--error", "1"], "error: '1'; allowed: 0 <= error < 1 (share of ordered pairs, g1)"),
        (["--time-limit", "0"], "time_limit: 0.0; allowed: seconds above 0"),
        (
            ["--sep", "ab", "--rows", "-1", "--error", "-1"],
            "sep: 'ab'; allowed: one character that ends no line; rows: -1; allowed: 0 or more; error: '-1'",
        ),
        (
            ["--algorithm", "hydra", "--error", "0.01"],
            "algorithm with error above 0: 'hydra'; allowed: 'auto', 'evidence' or 'hybrid'. Hydra finds exact "
            "constraints",
        ),
        (
            ["--algorithm", "hydra", "--sample-pairs", "5", "--seed", "-1"],
            "seed: -1; allowed: 0 or more; algorithm with sample_pairs: 'hydra'; allowed: 'auto' or 'evidence'",
        ),
        (["--columns", "id,zpi"], "Did you mean 'zip'?"),
        (["--device", "gpu"], "gpu"),
        (["--device", "cuda:77"], "cuda:77"),
        (["--sql-table", "a..b"], "SQL table name: 'a..b'"),
        (["-o", "/nosuch/folder/x.json"], "There is no folder '/nosuch/folder'"),
        (["-o", "/"], "output file: '/'; allowed: a file; this is a folder"),
    ],
)
def test_faults_in_options_are_one_message(
    more: list[str], message: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "dc", "discover", table, *more)
    assert ran.code == USAGE
    assert ran.err.startswith("tuplewise: error: ")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_a_time_limit_prints_what_was_found_and_exits_3(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = discover(capsys, table, "--time-limit", "0.000001")
    document = json.loads(ran.out)
    assert ran.code == LIMIT
    assert document["partial"] is True
    assert any("time limit" in note for note in document["notes"])
    text = discover(capsys, table, "--time-limit", "0.000001", "--format", "text")
    assert text.code == LIMIT
    assert "PARTIAL" in text.out


def test_hundreds_of_columns_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(3000)) + "\n" + (",".join(["1"] * 3000) + "\n") * 3)
    ran = discover(capsys, str(path))
    assert ran.code == USAGE
    assert "3,000 columns make" in ran.err
    assert "--columns" in ran.err


@pytest.mark.parametrize(("rows", "note"), [(0, "0 rows, so there are no pairs"), (1, "1 row, so there are no pairs")])
def test_tables_without_pairs(rows: int, note: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(table).write_text("".join(TABLE.splitlines(keepends=True)[: rows + 1]))
    ran = discover(capsys, table, "--format", "text")
    assert ran.code == 0
    assert note in ran.out


def test_faults_nobody_foresaw_are_one_line_unless_verbose(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **more: Any) -> Any:
        raise KeyError("first line\nsecond line")

    monkeypatch.setattr("tuplewise.engine.table.table.open_table", broken)
    ran = discover(capsys, table)
    assert ran.code == USAGE
    assert ran.err.startswith("tuplewise: error: internal error: KeyError: ")
    assert ran.err.endswith("(-v shows where)\n")
    assert "Traceback" in discover(capsys, table, "-v").err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(LimitReached("memory limit of 5 bytes reached"), LIMIT, "memory limit"), (MemoryError(), LIMIT, "out of memory")],
)
def test_limits_that_leave_nothing_exit_3(
    error: BaseException,
    code: int,
    message: str,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def reached(*args: Any, **more: Any) -> Any:
        raise error

    monkeypatch.setattr("tuplewise.engine.dc.discover.discover", reached)
    ran = discover(capsys, table)
    assert ran.code == code
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.fullmatch(r"tuplewise \S+\n", inside(capsys, "--version").out)
    shown = inside(capsys, "dc", "discover", "--help").out
    assert inside(capsys).code in (0, USAGE)
    for option in ("--error", "--explain-space", "--rank-by", "--time-limit", "--null-token", "--sql-table"):
        assert option in shown


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b", ("a", "b")), ('"a,b",c', ("a,b", "c")), ('"say ""x""", naïve 名', ('say "x"', "naïve 名"))],
)
def test_lists_of_names(text: str, names: tuple[str, ...]) -> None:
    assert settings.Names().convert(text, None, None) == names


@pytest.mark.parametrize(
    ("text", "size"), [("5", 5), ("512M", 512 << 20), ("4g", 4 << 30), ("1.5 GiB", 3 << 29), ("2KB", 2048)]
)
def test_sizes(text: str, size: int) -> None:
    assert settings.Bytes().convert(text, None, None) == size


def test_types_of_columns_whose_names_hold_an_equals_sign() -> None:
    assert settings.Assignment("col=type").convert("a=b=text", None, None) == ("a=b", "text")


def test_writing_to_a_device_does_not_replace_it(capsys: pytest.CaptureFixture[str]) -> None:
    format_of(Written(output=os.devnull))
    output.write(["x"], os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_errors_relative_to_chance_and_the_order_by_genuineness(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(discover(capsys, table, "--error", "0.4", "--error-measure", "lift").out)
    assert document["options"]["error_measure"] == "lift"
    assert all(c["lift"] <= 0.4 for c in document["result"]["constraints"])
    asked = discover(capsys, table, "--error", "0.4", "--error-measure", "mu")
    assert asked.code == USAGE
    assert "error_measure: 'mu'; allowed: 'g1', 'lift'. g3 and mu are about dependencies" in asked.err
    ranked = json.loads(discover(capsys, table, "--rank-by", "genuineness").out)["result"]["constraints"]
    plain = json.loads(discover(capsys, table).out)["result"]["constraints"]
    assert sorted(map(json.dumps, ranked)) == sorted(map(json.dumps, plain))
    text = discover(capsys, table, "--format", "text", "--limit", "1").out
    assert ranked[0]["rule"] in text
    assert ", by genuineness:" in text
