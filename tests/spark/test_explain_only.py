"""A session of the profile `local-gpu` whose plugin explains plans only works without a GPU, and answers the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from explain_only import RULE, answers

from tuplewise.spark_conf.plugin import PLUGIN_CLASS, rapids_jar

PROGRAM = Path(__file__).with_name("explain_only.py")
ROWS = [
    "zip,city,pay,tax,day,least",
    *("01,A,10,1.0,2020-01-01,10", "01,A,20,2.5,2020-01-02,10", "02,B,20,2.5,2020-01-02,20"),
    *("02,C,35,3.0,2020-02-01,20", "03,C,35,3.0,2020-02-01,35", ",C,40,,2020-03-01,35", "04,D,50,4.5,,40"),
]
pytestmark = [pytest.mark.rapids, pytest.mark.spark]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    if rapids_jar() is None:
        pytest.skip("the RAPIDS jar is neither at TUPLEWISE_RAPIDS_JAR nor in the Maven cache")
    path = tmp_path_factory.mktemp("explain_only") / "pay.csv"
    path.write_text("\n".join(ROWS) + "\n")
    return str(path)


@pytest.mark.parametrize("run_on", ["driver", pytest.param("spark", marks=pytest.mark.slow)])
def test_answers_are_those_of_the_laptop(spark: Any, table: str, run_on: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), table, run_on], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["plugins"] == PLUGIN_CLASS
    assert found["answers"] == json.loads(json.dumps(answers(table, run_on)))
    assert all(found["answers"].values())
    assert found["answers"]["check"] == [2, 2]


@pytest.mark.slow
def test_a_command_runs_so(table: str) -> None:
    how = ["--profile", "local-gpu", "--conf", "spark.rapids.sql.mode=explainOnly", "--run-on", "spark"]
    command = [sys.executable, "-m", "tuplewise.engine.cli.main", "dc", "check", table, "--dc", RULE, *how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr[-3000:]
    document = json.loads(done.stdout)
    assert document["result"]["rules"][0]["violating_pairs"] == 2
