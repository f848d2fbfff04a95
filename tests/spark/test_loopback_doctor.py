"""`tuplewise doctor --cluster` on a cluster: what it says of one that works, and of what doesn't."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from loopback import DRIVER_CONF, GPU_CONF, Cluster

from tools.build_wheel import build_wheel

pytestmark = pytest.mark.cluster


def ask(cluster: Cluster, *options: str, code: int, **conf: str) -> dict[str, Any]:
    """The checks by name, of a run that ended with this exit code."""
    settings = {**DRIVER_CONF, **{key.replace("_", "."): value for key, value in conf.items()}}
    given = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [sys.executable, "-m", "tuplewise.engine.cli.main", "doctor", "--cluster", "--master", cluster.master,
         *given, "--format", "json", *options],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout, done.stderr
    checks = json.loads(done.stdout)["checks"]
    assert all(list(check) == ["name", "ok", "found", "advice"] for check in checks)
    assert all((check["ok"] is False) == bool(check["advice"]) for check in checks)
    assert "Traceback" not in done.stdout + done.stderr
    return {check["name"]: check for check in checks}


def test_a_cluster_that_works(cluster: Cluster) -> None:
    checks = ask(cluster, code=0)
    assert checks["session"]["found"].endswith(cluster.master)
    assert checks["executors"]["found"].startswith("2 on ")
    assert checks["rapids plugin"]["ok"] is None
    for number in (1, 2):
        assert (
            f"{sys.executable}: python {sys.version.split()[0]}, tuplewise "
            in (checks[f"executor {number}: versions"]["found"])
        )
        assert checks[f"executor {number}: gpus"]["found"].startswith("Spark gives its tasks no GPU; ")
        assert checks[f"executor {number}: kernels"]["ok"] is True
    assert len(checks) == 3 + 2 * 3


def test_gpus_that_spark_gives_and_no_kernel_can_use(cluster: Cluster) -> None:
    checks = ask(cluster, code=2, **GPU_CONF)
    for number in (1, 2):
        gpus, kernels = checks[f"executor {number}: gpus"], checks[f"executor {number}: kernels"]
        assert gpus["ok"] is False
        assert gpus["found"].startswith("Spark gives a task GPU ")
        assert kernels["ok"] is True
        assert kernels["found"].startswith("right on the CPU; cpu: ")
        assert "Spark gives" not in kernels["found"]  # why that GPU isn't used


@pytest.mark.slow
def test_executors_that_can_not_come(cluster: Cluster) -> None:
    at_once = {"spark.scheduler.minRegisteredResourcesRatio": "0"}  # the session starts without executors
    checks = ask(cluster, "--wait", "30", code=2, spark_executor_memory="900g", **at_once)
    assert checks["executors"]["found"] == "none came within 30 seconds"
    assert "spark.executor.cores=1, spark.executor.memory=900g" in checks["executors"]["advice"]
    assert list(checks) == ["session", "executors"]


@pytest.mark.slow
def test_executors_whose_python_lacks_us(cluster: Cluster, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    checks = ask(cluster, code=2, spark_pyspark_python=str(bare))
    assert checks["tasks"]["found"].startswith("Spark's Python workers lack a module: ")
    assert list(checks) == ["session", "rapids plugin", "tasks"]


@pytest.mark.slow
def test_a_wheel_that_is_sent_along(cluster: Cluster, tmp_path: Path) -> None:
    """By spark-submit, to a Python that has the dependencies only: everything runs from the wheel."""
    wheel = build_wheel(tmp_path)
    bare = tmp_path / "python"
    packages = sysconfig.get_path("purelib")
    bare.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    settings = {**DRIVER_CONF, "spark.pyspark.python": str(bare), "spark.pyspark.driver.python": sys.executable}
    given = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    submitted = ["submit", "--master", cluster.master, "--py-files", str(wheel), *given]
    found = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", "tuplewise.engine.cli.main", *submitted, "--", "doctor", "--cluster", "-o", str(found)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    checks = {check["name"]: check for check in json.loads(found.read_text())["checks"]}
    assert checks["session"]["found"].endswith(cluster.master)
    assert checks["executor 1: kernels"]["ok"] is True
    assert checks["executor 1: gpus"]["found"].endswith("not asked: Not a directory")  # our files lie in the wheel
