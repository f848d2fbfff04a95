"""The session: Java that is missing, Spark Connect, settings that stay as they were, profiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.relation.load import load
from tuplewise.engine.spark.session import check_java, open_session
from tuplewise.spark_conf.profiles import profile_names, read_profile


def test_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"needs Java, which is not found.*openjdk-17") as caught:
        check_java()
    assert "\n" not in str(caught.value)


def test_missing_java_when_a_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    program = (
        "import sys\nfrom tuplewise.engine.relation.load import load\n"
        "try:\n    load(sys.argv[1])\nexcept ValueError as problem:\n    print(problem)\n"
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
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    frame = remote()
    frame.sparkSession = session  # type: ignore[attr-defined]
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


def test_profiles() -> None:
    assert profile_names() == ["cpu-cluster", "laptop", "local-gpu"]
    laptop = read_profile("laptop")
    assert laptop["spark.ui.enabled"] == "false"
    assert laptop["spark.driver.bindAddress"] == "127.0.0.1"
    assert not any(".resource.gpu." in key for key in read_profile("local-gpu"))
    with pytest.raises(InputError, match="Did you mean 'laptop'"):
        read_profile("labtop")


@pytest.mark.parametrize("name", profile_names())
def test_each_setting_says_why(name: str) -> None:
    lines = (Path(sys.modules["tuplewise.spark_conf.profiles"].__file__ or "").parent / f"{name}.conf").read_text()
    assert all(len(line) <= 120 for line in lines.splitlines())
    assert lines.count("#") >= len(read_profile(name)) // 2
