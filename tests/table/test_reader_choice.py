"""Which reader takes a table, and why; and tables that come through pipes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table import reader as module
from tuplewise.engine.table.reader import choose_reader
from tuplewise.engine.table.source import find_source
from tuplewise.engine.table.table import load

pytestmark = pytest.mark.arrow
TABLE = "a,b\n1,x\n2,y\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "t.csv").write_text(TABLE)
    return str(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("options", "reader", "reason"),
    [
        ({}, "arrow", "local CSV that fits in memory"),
        ({"reader": "arrow"}, "arrow", "asked for with reader=arrow"),
        ({"reader": "spark"}, "spark", "asked for with reader=spark"),
        ({"master": "local[1]"}, "spark", "Spark was asked for with master"),
        ({"conf": {"a": "b"}}, "spark", "Spark was asked for with conf"),
        ({"master": "local[1]", "reader": "arrow"}, "arrow", "asked for with reader=arrow"),
    ],
)
def test_small_files(path: str, options: dict[str, object], reader: str, reason: str) -> None:
    found = choose_reader(find_source(path), LoadOptions(**options))  # type: ignore[arg-type]
    assert (found.name, found.reason) == (reader, reason)


def test_files_that_need_more_memory_than_they_may_take(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_room", lambda: 10)
    found = choose_reader(find_source(path), LoadOptions())
    assert found.name == "spark"
    assert "would be needed here" in found.reason
    assert choose_reader(find_source(path), LoadOptions(reader="arrow")).name == "arrow"


def test_sessions_and_submitted_programs_read_by_spark(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_reader(find_source(path), LoadOptions(), session=True).name == "spark"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert choose_reader(find_source(path), LoadOptions()).reason == "the command runs under spark-submit"


def test_what_only_one_of_them_reads(tmp_path: Path) -> None:
    for given in ("s3://bucket/t.parquet", "spark:db.t"):
        assert choose_reader(find_source(given), LoadOptions()).name == "spark"
        with pytest.raises(InputError, match="reader 'arrow' for a table that only Spark reads"):
            choose_reader(find_source(given), LoadOptions(reader="arrow"))
    (tmp_path / "_t.csv").write_text(TABLE)
    hidden = find_source(str(tmp_path / "_t.csv"))
    assert choose_reader(hidden, LoadOptions(master="local[1]")).name == "arrow"
    with pytest.raises(InputError, match=r"Spark can't read .*passes over names.*Leave the reader out"):
        choose_reader(hidden, LoadOptions(reader="spark"))
    with pytest.raises(InputError, match="reader: 'duckdb'; allowed: 'auto', 'arrow', 'spark'"):
        LoadOptions(reader="duckdb")  # type: ignore[arg-type]


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TABLE,))
    writer.start()
    relation = load(str(pipe))
    writer.join()
    assert (relation.name, relation.rows) == ("pipe", 2)


def test_tables_and_rules_from_pipes(tmp_path: Path, path: str) -> None:
    command = f"{sys.executable} -m tuplewise.engine.cli.main"
    checked = f"{command} dc check - --rules <(echo 'a -> b') --format text < {path}"
    done = subprocess.run(["bash", "-c", checked], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("stdin: 2 rows, 2 columns")
