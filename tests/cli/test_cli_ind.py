"""`tuplewise ind discover` and `ind check`: what they read, write and exit with. CSV is read without a JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from cli_runs import inside, process
from pyarrow import parquet

ORDERS = "no,customer,amount\n1,c1,5\n2,c2,7\n3,c9,7\n4,,1\n"
CUSTOMERS = "id,name\nc1,Ann\nc2,Bob\nc3,Eve\n"
IND = "orders.customer <= customers.id"


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "customers.csv").write_text(CUSTOMERS)
    return str(tmp_path / "orders.csv"), str(tmp_path / "customers.csv")


@pytest.mark.arrow
def test_discover_as_json(tables: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "ind", "discover", *tables, "--error", "0.34", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    document = json.loads(ran.out)
    assert document["command"] == "ind discover"
    assert [(t["name"], t["path"]) for t in document["tables"]] == [("orders", tables[0]), ("customers", tables[1])]
    assert document["tables"][0]["columns"][1] | {"why": ""} == {
        "name": "customer", "type": "text", "why": "", "distinct": 3, "nulls": 1,
    }  # fmt: skip
    assert document["options"] | {"error": 0.34, "as_text": False, "max_arity": 1, "limit": None} == document["options"]
    assert document["spark"] is None
    by_name = {(entry["dependent"], entry["referenced"]): entry for entry in document["result"]["inds"]}
    entry = by_name["orders.customer", "customers.id"]
    assert (entry["dependent_distinct"], entry["referenced_distinct"], entry["missing_values"]) == (3, 3, 1)
    assert entry["foreign_key"]["unique"] is True
    assert document["result"]["count"] == len(document["result"]["inds"])


def test_discover_in_every_format(tables: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("ind", "discover", *tables, "--error", "0.34", "--limit", "1", "--quiet")
    text = inside(capsys, *argv, "--format", "text").out
    assert "orders: 4 rows, 3 columns" in text
    assert [line.split()[-3:] for line in text.splitlines() if line.startswith("1 ")] == [IND.split()]
    lines = inside(capsys, *argv, "--format", "csv").out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("orders.customer,customers.id,3,3,1,")
    named = ("--dialect", "duckdb", "--sql-table", "orders=db.orders")
    script = inside(capsys, *argv, "--format", "sql", *named).out
    assert 'FROM "db"."orders" AS d' in script
    assert "NOT EXISTS" in script
    target = tmp_path / "found.json"
    assert inside(capsys, *argv, "-o", str(target)).out == ""
    document = json.loads(target.read_text())
    assert document["notes"][-1].startswith("the best 1 of ")
    assert document["options"]["limit"] == 1


def test_check_tells_what_is_missing(tables: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "ind", "check", *tables, "--ind", IND, "--quiet")
    assert (ran.code, ran.err) == (1, "")
    [entry] = json.loads(ran.out)["result"]["inds"]
    assert {k: entry[k] for k in ("ind", "holds", "missing_values", "rows_missing", "rows_null")} == {
        "ind": IND, "holds": False, "missing_values": 1, "rows_missing": 1, "rows_null": 1,
    }  # fmt: skip
    assert entry["examples"] == [{"value": "c9", "count": 1, "rows": [2]}]
    text = inside(capsys, "ind", "check", *tables, "--ind", IND, "--format", "text", "--quiet").out
    assert f"VIOLATED  {IND}" in text
    assert "1 of 3 values missing, in 1 row; 1 row left out for a null" in text
    assert inside(capsys, "ind", "check", *tables, "--ind", IND, "--error", "0.34", "--quiet").code == 0
    assert inside(capsys, "ind", "check", *tables, "--ind", "customers.id <= customers.id", "--quiet").code == 0


def test_dependencies_of_files(tables: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "inds.txt"
    lines.write_text(f"# foreign keys\n{IND}\n\n[orders.csv.customer][=[customers.csv.id]\n")
    ran = inside(capsys, "ind", "check", *tables, "--inds", str(lines), "--format", "csv", "--quiet")
    assert ran.code == 1
    assert len(ran.out.splitlines()) == 2
    found = tmp_path / "found.json"
    some = ("--error", "0.34", "--quiet")
    assert inside(capsys, "ind", "discover", *tables, "--max-arity", "2", "-o", str(found), *some).code == 0
    ran = inside(capsys, "ind", "check", *tables, "--inds", str(found), *some)
    assert ran.code == 0, ran.err
    verdicts = [entry["holds"] for entry in json.loads(ran.out)["result"]["inds"]]
    assert verdicts == [True] * json.loads(found.read_text())["result"]["count"]
    checked = tmp_path / "checked.json"
    checked.write_text(ran.out)
    assert inside(capsys, "ind", "check", *tables, "--inds", str(checked), *some).code == 0


def test_a_folder_is_one_table_and_paths_get_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "orders").mkdir()
    for day in (1, 2):
        (tmp_path / "orders" / f"{day}.csv").write_text(f"customer\nc{day}\n")
    parquet.write_table(pa.table({"id": ["c1", "c2"]}), tmp_path / "x.parquet")
    named = f"customers={tmp_path / 'x.parquet'}"
    ran = inside(capsys, "ind", "check", str(tmp_path / "orders"), named, "--ind", IND, "--quiet")
    assert ran.code == 0, ran.err
    assert [(t["name"], t["rows"]) for t in json.loads(ran.out)["tables"]] == [("orders", 2), ("customers", 2)]


def test_two_tables_of_one_name(tables: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old").mkdir()
    old = tmp_path / "old" / "orders.csv"
    old.write_text(ORDERS)
    ran = inside(capsys, "ind", "discover", tables[0], str(old))
    assert ran.code == 2
    assert ran.err.startswith(f"tuplewise: error: two tables are called 'orders': '{tables[0]} and {old}'")
    assert ran.err.endswith("Name one of them: NAME=PATH\n")
    assert inside(capsys, "ind", "discover", tables[0], f"old={old}", "--quiet").code == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "No inclusion dependency is given: --ind TEXT, or --inds FILE."),
        (["--ind", "orders.custommer <= customers.id"], "position 8: table 'orders' has no column of the name 'custom"),
        (["--ind", "orders.customer <= custmers.id"], "no table of the name 'custmers'. Did you mean 'customers'?"),
        (["--ind", IND, "--error", "1"], "error: '1'; allowed: 0 <= error < 1"),
        (["--ind", IND, "--nulls", "value"], "nulls of inclusion dependencies: 'value'; allowed: 'unknown'"),
        (["--ind", IND, "--device", "cuda"], "device of a check of inclusion dependencies: 'cuda'"),
        (["--ind", IND, "--sql-table", "o=x"], "--sql-table for an unknown table: 'o'"),
        (["--ind", IND, "--exclude", "nosuch"], "no table has a column of that name: 'nosuch'"),
        (["--inds", "nosuch.txt"], "file of inclusion dependencies can't be read: 'nosuch.txt'"),
    ],
)
def test_faults_are_one_message(
    tables: tuple[str, str], capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    ran = inside(capsys, "ind", "check", *tables, *more)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err, ran.err
    assert "Traceback" not in ran.err
    assert "internal error" not in ran.err


@pytest.mark.arrow
def test_limits_are_exit_3(tables: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "ind", "check", *tables, "--ind", IND, "--time-limit", "1e-9", "--quiet")
    document = json.loads(ran.out)
    assert (ran.code, document["partial"]) == (3, True)
    assert document["result"]["inds"][0]["holds"] is None
    ran = inside(capsys, "ind", "discover", *tables, "--time-limit", "1e-9", "--quiet")
    assert (ran.code, json.loads(ran.out)["partial"]) == (3, True)


def test_text_is_compared_with_numbers_only_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("A,k\n1,1\nx,2\n")
    (tmp_path / "u.csv").write_text("B,k\n1,1\n2,2\n")
    argv = ("ind", "check", str(tmp_path / "t.csv"), str(tmp_path / "u.csv"), "--ind", "t.A <= u.B", "--quiet")
    ran = inside(capsys, *argv, "--ind", "t.k <= u.k")
    document = json.loads(ran.out)
    assert ran.code == 1
    assert [(e["holds"], e["missing_values"]) for e in document["result"]["inds"]] == [(False, 2), (True, 0)]
    assert "t.A is text and u.B is integer" in document["result"]["inds"][0]["reason"]
    [entry] = json.loads(inside(capsys, *argv, "--as-text").out)["result"]["inds"]
    assert (entry["holds"], entry["missing_values"], entry["reason"]) == (False, 1, None)


def test_the_process_needs_no_jvm(tables: tuple[str, str]) -> None:
    """Without Java on the machine."""
    env = {"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    ran = process("ind", "check", *tables, "--ind", IND, "--format", "text", "--quiet", env=env)
    assert ran.code == 1, ran.err
    assert ran.err == ""
    assert "VIOLATED" in ran.out
