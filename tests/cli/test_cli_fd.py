"""`tuplewise fd discover` and `key discover`: what they print, with which exit code and message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import inside

USAGE, LIMIT = 2, 3
PLACES = "id,zip,city,street\n1,01,A,S\n2,01,A,T\n3,02,B,S\n4,,A,T\n5,,B,T\n"
COMMANDS = pytest.mark.parametrize("command", ["fd", "key"])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "places.csv"
    path.write_text(PLACES)
    return str(path)


def discover(capsys: pytest.CaptureFixture[str], command: str, table: str, *more: str) -> dict[str, object]:
    ran = inside(capsys, command, "discover", table, "--device", "cpu", *more)
    assert ran.code == 0, ran.err
    document: dict[str, object] = json.loads(ran.out)
    assert document["command"] == f"{command} discover"
    result = document["result"]
    assert isinstance(result, dict)
    return result


def test_functional_dependencies(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = discover(capsys, "fd", table)
    assert {"determinant": ["zip"], "dependent": "city"} in result["fds"]  # type: ignore[operator]
    assert result["count"] == len(result["fds"])  # type: ignore[arg-type]
    strict = discover(capsys, "fd", table, "--nulls", "value")
    assert {"determinant": ["zip"], "dependent": "city"} not in strict["fds"]  # type: ignore[operator]
    for algorithm in ("hybrid", "levelwise"):
        assert discover(capsys, "fd", table, "--algorithm", algorithm)["fds"] == result["fds"]


def test_keys(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = discover(capsys, "key", table)
    assert result["keys"] == [["id"], ["zip", "street"]]
    assert discover(capsys, "key", table, "--nulls", "value")["keys"] == [["id"], ["zip", "city", "street"]]
    assert discover(capsys, "key", table, "--max-context", "1")["keys"] == [["id"]]
    assert discover(capsys, "key", table, "--exclude", "id", "--algorithm", "levelwise")["keys"] == [["zip", "street"]]
    nearly = discover(capsys, "key", table, "--error", "0.2", "--columns", "zip,street")
    assert nearly["measure"] == "g3"
    assert nearly["keys"] == [["zip"]]
    assert nearly["removals"] == [{"rows_to_remove": 1, "g3": 0.2}]


def test_text_csv_and_sql(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    def out(*argv: str) -> str:
        ran = inside(capsys, *argv, table, "--device", "cpu")
        assert ran.code == 0
        return ran.out

    text = out("fd", "discover", "--format", "text", "--limit", "2")
    assert "minimal functional dependencies (exact)" in text
    assert "rows that are equal on the left are equal on the right, the best 2 of " in text
    assert out("fd", "discover", "--format", "csv").startswith("determinant,dependent\n")
    assert "\n-- zip -> city\nWITH numbered_rows AS (" in out("fd", "discover", "--format", "sql")
    text = out("key", "discover", "--format", "text")
    assert "2 minimal keys (exact)" in text
    assert (
        "no two rows are equal on all of these columns, by genuineness:\n   dependency\n1  [id]\n2  [zip, street]\n"
        in text
    )
    assert out("key", "discover", "--format", "csv") == 'columns\nid\n"zip,street"\n'
    assert "-- [zip, street]" in out("key", "discover", "--format", "sql", "--dialect", "ansi")


@COMMANDS
def test_a_time_limit_prints_what_was_found_and_exits_3(
    command: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, command, "discover", table, "--device", "cpu", "--time-limit", "0.000001")
    assert ran.code == LIMIT
    assert json.loads(ran.out)["partial"] is True


@COMMANDS
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--error", "-1"], "error: '-1'; allowed: 0 <= error < 1 (share of rows to remove, g3)"),
        (["--max-context", "-1"], "max_context: -1; allowed: 0 or more"),
        (["--columns", "id,zpi"], "Did you mean 'zip'?"),
        (["--run-on", "spark", "--reader", "arrow"], "run_on 'spark' with reader 'arrow'"),
        (["--run-on", "spark", "--algorithm", "levelwise"], "run_on 'spark' with algorithm: 'levelwise';"),
        (["--run-on", "spark", "--error", "0.1"], "run_on 'spark' with error: '0.1'; allowed: 0"),
    ],
)
def test_faults_are_one_message(
    command: str, more: list[str], message: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, command, "discover", table, *more)
    assert (ran.code, ran.out) == (USAGE, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_lists_are_for_orders_only(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "fd", "discover", table, "--lexicographic", "2")
    assert (ran.code, "No such option" in ran.err) == (USAGE, True)
