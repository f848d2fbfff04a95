"""A session of the profile `local-gpu` whose plugin explains plans only works without a GPU, and answers the same.

What it answers in one process is asked in the session of `test_rapids`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from explain_only import RULE, TABLE, assert_as_here

from tuplewise.spark_conf.plugin import rapids_jar

PROGRAM = Path(__file__).with_name("explain_only.py")
pytestmark = [pytest.mark.rapids, pytest.mark.spark]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    if rapids_jar() is None:
        pytest.skip("the RAPIDS jar is neither at TUPLEWISE_RAPIDS_JAR nor in the Maven cache")
    path = tmp_path_factory.mktemp("explain_only") / "pay.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.slow
def test_answers_in_tasks_are_those_of_the_laptop(spark: Any, table: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), table, "spark"], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert_as_here(json.loads(done.stdout.splitlines()[-1]), table, "spark")


@pytest.mark.slow
def test_a_command_runs_so(table: str) -> None:
    how = ["--profile", "local-gpu", "--conf", "spark.rapids.sql.mode=explainOnly", "--run-on", "spark"]
    command = [sys.executable, "-m", "tuplewise.engine.cli.main", "dc", "check", table, "--rule", RULE, *how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr[-3000:]
    document = json.loads(done.stdout)
    assert document["result"]["rules"][0]["violating_pairs"] == 2
