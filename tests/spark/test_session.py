"""The session: Java that is missing, Spark Connect, settings that stay as they were, sessions that can't work."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.spark import session
from tuplewise.engine.spark.session import check_java, open_session
from tuplewise.engine.table.table import load


def test_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"needs Java, which is not found.*openjdk-17") as caught:
        check_java()
    assert "\n" not in str(caught.value)


def test_missing_java_when_a_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    program = (
        "import sys\nfrom tuplewise.engine.options import LoadOptions\nfrom tuplewise.engine.table.table import load\n"
        "try:\n    load(sys.argv[1], LoadOptions(reader='spark'))\nexcept ValueError as problem:\n    print(problem)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "t.csv")],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "needs Java, which is not found" in done.stdout
    assert done.stderr == ""


def test_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"can't run Spark 4.*: 8; allowed: Java 17 or 21"):
        check_java()
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.2"\n')
    assert check_java() == 21


def test_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(InputError, match=r"Spark Connect session can't be used.*classic session"):
        open_session()
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "sparkSession": None})
    frame = remote()
    frame.sparkSession = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()  # type: ignore[attr-defined]
    monkeypatch.delenv("SPARK_REMOTE")
    with pytest.raises(InputError, match="Spark Connect session can't be used"):
        load(frame)


@pytest.mark.spark
def test_a_session_in_use_stays_as_it_was(spark: Any, tmp_path: Path) -> None:
    mine = spark.newSession()
    mine.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    before = {row.key: row.value for row in mine.sql("SET").collect()}
    (tmp_path / "t.csv").write_text("a,b\n2020-01-01T00:00:00,x\n")
    relation = load(str(tmp_path / "t.csv"), spark=mine)
    assert str(relation.values(0)[0]) == "2020-01-01 00:00:00+00:00"
    frame = mine.sql("select timestamp_ntz'2020-01-01 00:00:00' as n, timestamp'2020-01-01 09:00:00' as z")
    both = load(frame)
    assert both.codes.tolist() == [[0], [0]]  # naive is UTC; nine in Tokyo is midnight there
    assert {row.key: row.value for row in mine.sql("SET").collect()} == before
    assert mine.sparkContext._jsc is not None


@pytest.mark.spark
def test_one_session_serves_all_calls(spark: Any) -> None:
    first, second = open_session(), open_session()
    assert first.spark.sparkContext is second.spark.sparkContext
    assert second.seconds < 2
    with pytest.raises(InputError, match="another master"):
        open_session(master="local[1]")


@pytest.mark.spark
def test_all_settings_that_come_too_late_are_told_at_once(spark: Any) -> None:
    late = {"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    with pytest.raises(
        InputError, match=r"can't be changed in a running Spark session: 'spark.executor.memory, spark.driver.memory'"
    ):
        open_session(spark, conf=late)


class Context:
    """As much of a caller's context as is asked before anything is done with it."""

    master = "local[2]"

    def __init__(self, **settings: str) -> None:
        self.settings = [("spark.master", self.master), *((k.replace("_", "."), v) for k, v in settings.items())]

    def getConf(self) -> Context:
        return self

    def getAll(self) -> list[tuple[str, str]]:
        return self.settings


def test_a_callers_session_whose_tasks_would_wait_for_ever() -> None:
    mine = type("SparkSession", (), {})()
    mine.sparkContext = Context(spark_task_resource_gpu_amount="1", spark_executor_resource_gpu_amount="1")
    with pytest.raises(InputError, match=r"local mode, Spark would wait for them for ever: 'spark.task.resource.gpu"):
        open_session(mine)


RUN = """
import sys
import tuplewise as tw
from tuplewise.engine.spark.session import open_session
table = tw.load(sys.argv[1])
print(len(tw.discover_keys(table, device="cpu").keys), flush=True)
sys.exit(7)
"""


@pytest.mark.spark
def test_processes_end_with_their_code_and_share_nothing(tmp_path: Path) -> None:
    """No stop was called; both run at once, so that a fixed port would be taken."""
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,x\n")
    runs = [
        subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path / "t.csv")], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outs = [run.communicate(timeout=240)[0] for run in runs]
    assert [run.returncode for run in runs] == [7, 7]
    assert [out.split() for out in outs] == [["1"], ["1"]]


def test_a_master_that_is_not_there_is_told_at_once() -> None:
    with socket.socket() as taken:  # bound, and not listening: a connection is refused
        taken.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match=r"no Spark master answers \(127.0.0.1:\d+: Connection refused\)"):
            session._start(master, None, {}, None)


SLOW = """
import sys, time
from tuplewise.engine.errors import InputError
from tuplewise.engine.spark.session import open_session
begin = time.monotonic()
try:
    open_session(master=sys.argv[1], start_seconds=4)
except InputError as error:
    print(error)
print("seconds", time.monotonic() - begin)
from tuplewise.engine.spark import session
import psutil
print("children", len([c for c in psutil.Process().children(recursive=True) if c.status() != "zombie"]))
"""


@pytest.mark.spark
def test_a_start_that_takes_too_long_is_given_up() -> None:
    """A master that listens and never answers: Spark alone would try for a minute."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        master = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-c", SLOW, master], capture_output=True, text=True, check=True, timeout=120
        )
    told, seconds, children = done.stdout.splitlines()
    assert told.startswith(f"Spark did not start within 4 seconds and was given up: '{master}'.")
    assert float(seconds.split()[1]) < 30
    assert children == "children 0"
    assert done.stderr == ""


@pytest.mark.spark
def test_another_thread_takes_the_session_that_is_there(spark: Any, tmp_path: Path) -> None:
    """One opened it; a thread that begins later has no active session of its own."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,y\n")
    rows: list[int] = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: rows.append(load(str(path)).rows))
        thread.start()
        thread.join()
    assert rows == [2, 2]
