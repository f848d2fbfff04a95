"""Inputs that break tools of this kind, through `tuplewise dc check`: cases A1, A5, A11 to A13, B16, B28."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from cli_runs import Ran, inside

spark_only = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Writes a text to a file and checks rules on it."""

    def write_and_check(text: str, *more: str, name: str = "t.csv") -> Ran:
        (tmp_path / name).write_text(text)
        return inside(capsys, "dc", "check", str(tmp_path / name), "--device", "cpu", "--format", "json", *more)

    return write_and_check


def rules(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code in (0, 1), ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)["result"]["rules"]
    return found


def places(rule: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(p["t"], p["u"]) for p in rule["pairs"]]


class TestThroughSpark:
    pytestmark = spark_only

    def test_a1_every_spelling_is_read_and_bad_rules_are_errors(self, run: Run) -> None:
        table = "a,b\n1,1\n1,2\n"
        spellings = ["!(t.a==s.a and t.b!=s.b)", "!(t.a==s.a AND t.b!=s.b)", "t1&t2&IQ(t1.b,t2.b)&EQ(t1.a,t2.a)"]
        ran = run(table, *(part for text in spellings for part in ("--rule", text)))
        (rule,) = rules(ran)  # they are one rule
        assert (ran.code, rule["holds"], places(rule)) == (1, False, [(0, 1)])
        bad = run(table, "--rule", "!(t.nosuch == s.a)")
        assert (bad.code, bad.out) == (2, "")
        assert "no column of the name 'nosuch'" in bad.err
        assert "'a'" in bad.err

    def test_a5_a_null_row_is_not_applicable(self, run: Run) -> None:
        ran = run("a,b\n5,3\n,3\n", "--rule", "!(t.a <= t.b)")
        (rule,) = rules(ran)
        assert (ran.code, rule["violating_pairs"], rule["rows_unknown"]) == (0, 0, 1)
        (rule,) = rules(run("a,b\n5,3\n,3\n", "--rule", "!(t.a <= t.b)", "--nulls", "value"))
        assert (rule["violating_pairs"], rule["rows_unknown"], places(rule)) == (1, 0, [(1, None)])

    def test_a11_odd_names_in_rules_and_in_sql(self, run: Run, spark: Any) -> None:
        header = ["Phone No.", "a.b", "a`b", "my col", "select", "naïve 名", "r and d", "[x]", ""]
        names = [*header[:-1], "column_9"]
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        text = "not(" + " and ".join(f"t.{q} == u.{q}" for q in quoted) + ")"
        table = ",".join(header) + "\n" + "1,2,3,4,5,6,7,8,9\n" * 2 + "9,8,7,6,5,4,3,2,1\n"
        ran = run(table, "--rule", text, "--key", "Phone No.")
        (rule,) = rules(ran)
        assert (ran.code, rule["violating_pairs"]) == (1, 2)
        assert sorted(name for role, name in rule["pairs"][0]["cells"] if role == "t") == sorted(names)
        again = run(table, "--rule", rule["rule"])
        assert [(r["rule"], r["id"]) for r in rules(again)] == [(rule["rule"], rule["id"])]
        columns = ", ".join(f"{i} AS {q}" for i, q in enumerate(quoted))
        spark.sql(f"SELECT {columns} UNION ALL SELECT {columns}").createOrReplaceTempView("`naïve 名`")
        sql = run(table, "--rule", text, "--format", "sql", "--sql-table", '"naïve 名"').out
        assert spark.sql(sql.rstrip().removesuffix(";")).count() == 1

    def test_a12_billions_of_pairs_are_counted(self, run: Run, tmp_path: Path) -> None:
        lines = [f"1,{i % 2},{i},{-i}" for i in range(100_000)]
        ran = run(
            "k,v,x,y\n" + "\n".join(lines) + "\n", "--rule", "k -> v", "--rule", "!(t.x < s.x and t.y > s.y)",
            "--pairs", "3",
        )  # fmt: skip
        fd, order = rules(ran)
        assert (fd["violating_pairs"], order["violating_pairs"]) == (5_000_000_000, 4_999_950_000)
        assert (places(fd), places(order)) == ([(0, 1), (0, 3), (0, 5)], [(0, 1), (0, 2), (0, 3)])
        assert (fd["truncated"], order["truncated"]) == (True, True)
        assert max(fd["seconds"], order["seconds"]) < 20

    def test_a13_cut_list_whole_file_and_query(self, run: Run, tmp_path: Path) -> None:
        target = tmp_path / "all.parquet"
        table = "a,b\n" + "".join(f"1,{i}\n" for i in range(1000))
        ran = run(table, "--rule", "a -> b", "--pairs", "50", "--pairs-out", str(target))
        (rule,) = rules(ran)
        assert (rule["violating_pairs"], rule["pairs_listed"], rule["truncated"]) == (999_000, 50, True)
        assert pq.read_metadata(target).num_rows == 499_500
        sql = run(table, "--rule", "a -> b", "--format", "sql", "--dialect", "duckdb", "--sql-table", "t").out
        with duckdb.connect() as db:
            db.execute(f"CREATE TABLE t AS FROM read_csv('{tmp_path / 't.csv'}')")
            assert len(db.sql(sql).fetchall()) == 499_500

    def test_b16_little_or_nothing(self, run: Run) -> None:
        empty = run("", "--rule", "a -> b")
        assert (empty.code, "this file is empty" in empty.err) == (2, True)
        for text, rows in (("a,b\n", 0), ("a,b\n1,x\n", 1)):
            ran = run(text, "--rule", "a -> b", "--rule", "not(t.a == 1)")
            assert json.loads(ran.out)["tables"][0]["rows"] == rows
            two, one = rules(ran)
            assert (two["holds"], two["violating_pairs"]) == (True, 0)
            assert (one["holds"], one["violating_pairs"], ran.code) == (rows == 0, rows, rows)
        assert "= 1;" in run("a,b\n", "--rule", "not(t.a == 1)", "--format", "sql").out  # no value told a's type

    def test_b28_errors_and_violations_have_exit_codes(self, run: Run, tmp_path: Path) -> None:
        table = "a,b\n1,x\n1,y\n"
        assert run(table, "--rule", "a -> b").code == 1
        assert run(table, "--rule", "b -> a").code == 0
        assert run(table, "--rule", "a -> ").code == 2
        assert run("a,b\n1\n", "--rule", "a -> b").code == 2

    def test_split_keeps_each_line_of_a_messy_file(self, run: Run, tmp_path: Path) -> None:
        text = 'id,note\n1,"a\n\nb"\n\n2,"say ""x"""\nbad\n2,\n3,007\n'
        ran = run(text, "--rule", "not(t.id == u.id)", "--bad-rows", "report", "--split", str(tmp_path / "out"))
        assert ran.code == 1
        assert (tmp_path / "out" / "valid.csv").read_text() == 'id,note\n1,"a\n\nb"\n3,007\n'
        (rule,) = rules(ran)
        head = "row_position,violated_rules,id,note\n"
        assert (tmp_path / "out" / "violating.csv").read_text() == (
            f'{head}1,{rule["id"]},2,"say ""x"""\n3,{rule["id"]},2,\n'
        )


def test_b28_a_bad_path_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "dc", "check", str(tmp_path / "nosuch.csv"), "--rule", "a -> b")
    assert (ran.code, ran.out) == (2, "")
    assert "no such file" in ran.err


def test_ctrl_c_while_pairs_are_written_leaves_nothing(tmp_path: Path) -> None:
    program = """
from tuplewise.engine.cli.main import main
main()
"""
    (tmp_path / "t.csv").write_text("a\n" + "1\n" * 20_000)
    argv = ["dc", "check", "t.csv", "--rule", "not(t.a == u.a)", "--device", "cpu", "--pairs-out", "pairs.csv"]
    running = subprocess.Popen(
        [sys.executable, "-c", program, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    until = time.monotonic() + 60
    while len(os.listdir(tmp_path)) < 2 and time.monotonic() < until and running.poll() is None:
        time.sleep(0.02)
    assert len(os.listdir(tmp_path)) == 2  # 200 million pairs take a while
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert out == ""
    assert err.endswith("tuplewise: interrupted\n")
    assert os.listdir(tmp_path) == ["t.csv"]
