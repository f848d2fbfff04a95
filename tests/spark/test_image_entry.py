"""The image's entry point with the real Spark: one process is a driver by it, another an executor that takes its tasks.

Kubernetes isn't there. The driver's master is a standalone one without workers, so that all that runs its tasks is the
executor that is started as in a pod, with the variables that Spark sets there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyspark
import pytest
from loopback import SMALL_JVM, loopback_cluster

from tuplewise.engine.spark.session import find_java

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

ENTRY = Path(__file__).resolve().parents[2] / "spark_conf" / "image_entry.sh"
JOB = """
import json, os, sys
from pyspark.sql import SparkSession

context = SparkSession.builder.getOrCreate().sparkContext
conf = context.getConf()
url = f"spark://CoarseGrainedScheduler@{conf.get('spark.driver.host')}:{conf.get('spark.driver.port')}"
said = {"url": url, "id": context.applicationId, "given": sys.argv[1:], "bound": conf.get("spark.driver.bindAddress")}
print(json.dumps(said), flush=True)

def summed(numbers):
    yield os.environ["SPARK_EXECUTOR_POD_NAME"], os.environ["SPARK_DRIVER_POD_IP"], sum(numbers)

print(json.dumps(context.parallelize(range(10), 2).mapPartitions(summed).collect()), flush=True)
"""


def test_one_image_is_driver_and_executor(tmp_path: Path) -> None:
    java = find_java()
    assert java is not None
    variables = {
        **os.environ,
        "JAVA_HOME": str(Path(java).resolve().parents[1]),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
    }
    with ExitStack() as ended:
        cluster = ended.enter_context(loopback_cluster(tmp_path / "cluster", workers=0))
        (tmp_path / "a job.py").write_text(JOB, encoding="utf-8")
        settings = {
            "spark.master": cluster.master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.log.level": "OFF",
            "spark.pyspark.python": sys.executable,
        }
        properties = tmp_path / "spark.properties"
        properties.write_text("".join(f"{key} {value}\n" for key, value in settings.items()), encoding="utf-8")

        def started(name: str, more: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
            """A container of the image, as it were; it is killed where the test fails."""
            log = ended.enter_context((tmp_path / f"{name}.log").open("w"))
            process = subprocess.Popen(
                [str(ENTRY), *arguments], env={**variables, **more}, cwd=tmp_path,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
            ended.callback(process.wait)
            ended.callback(process.kill)
            return process

        of_driver = {"SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1", "SPARK_SUBMIT_OPTS": SMALL_JVM}
        python = ("--class", "org.apache.spark.deploy.PythonRunner", str(tmp_path / "a job.py"))
        driver = started("driver", of_driver, "driver", "--properties-file", str(properties), *python, "two words", "*")
        assert driver.stdout is not None
        line = driver.stdout.readline()
        assert line, (tmp_path / "driver.log").read_text()
        said: dict[str, Any] = json.loads(line)
        assert (said["given"], said["bound"]) == (["two words", "*"], "127.0.0.1")
        pod = {
            "SPARK_DRIVER_URL": said["url"],
            "SPARK_APPLICATION_ID": said["id"],
            "SPARK_EXECUTOR_ID": "1",
            "SPARK_EXECUTOR_CORES": "2",
            "SPARK_EXECUTOR_MEMORY": "512m",
            "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
            "SPARK_EXECUTOR_POD_NAME": "pod-1",
            "SPARK_RESOURCE_PROFILE_ID": "0",
            **{f"SPARK_JAVA_OPT_{i}": option for i, option in enumerate([*SMALL_JVM.split(), "-Dsome=two words"])},
        }
        executor = started("executor", pod, "executor")
        answer, _ = driver.communicate(timeout=120)
        log = (tmp_path / "driver.log").read_text() + (tmp_path / "executor.log").read_text()
        assert driver.returncode == 0, log
        assert json.loads(answer) == [["pod-1", "127.0.0.1", 10], ["pod-1", "127.0.0.1", 35]], log
        executor.communicate(timeout=60)
        assert executor.returncode == 0, log  # the driver let it go
