"""A real Spark cluster on this machine's loopback: a standalone master and two workers, each a process of its own.

Executors and Python workers are other processes than the driver's, as on a cluster, so that what a task needs must be
sent to it. The driver is a program of its own, too, since one process holds one Spark context. Ports are chosen by the
system, memory is small, files lie in one folder, and `stop` ends whatever was started.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

START_SECONDS = 90
STOP_SECONDS = 10
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false"
# What a driver on this cluster says: Python workers run in this Python, it listens on loopback only, and executors are
# small enough for any machine.
DRIVER_CONF = {
    "spark.pyspark.python": sys.executable,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.timezone=UTC",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # all workers take part in the first job
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.minPartitionNum": "4",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True)
class Loopback:
    """A running cluster: its address, and the folder that holds its logs and work."""

    master: str
    folder: Path

    def run(self, program: Path, *arguments: str, timeout_seconds: float = 240) -> Any:
        """Run a driver program, `program arguments...`, and return the JSON of its last line on stdout.

        It finds the master in the variable LOOPBACK_MASTER and the settings, JSON, in LOOPBACK_CONF. On failure or
        after `timeout_seconds` it is ended with all that it started, and what it wrote to stderr is raised.
        """
        environment = {
            **_environment(self.folder),
            "LOOPBACK_MASTER": self.master,
            "LOOPBACK_CONF": json.dumps({**DRIVER_CONF, "spark.local.dir": str(self.folder / "local")}),
        }
        driver = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = driver.communicate(timeout=timeout_seconds)
        finally:
            _end_group(driver)
        if driver.returncode != 0:
            raise AssertionError(f"{program.name} ended with {driver.returncode}: {err[-4000:]}")
        return json.loads(out.splitlines()[-1])


@contextmanager
def loopback_cluster(folder: Path, workers: int = 2) -> Iterator[Loopback]:
    """A cluster of one-core workers in an empty folder; ended, however the block ends."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        master_log = folder / "master.log"
        started.append(_start(folder, master_log, "master.Master", "--port", "0"))
        master = _wait_for(master_log, r"Starting Spark master at (spark://\S+)", started[0])
        logs = [folder / f"worker{i}.log" for i in range(workers)]
        for i, log in enumerate(logs):
            work = str(folder / f"work{i}")
            size = ("--cores", "1", "--memory", "768m")
            started.append(_start(folder, log, "worker.Worker", "--port", "0", *size, "--work-dir", work, master))
        for log, worker in zip(logs, started[1:], strict=True):
            _wait_for(log, r"(Successfully registered with master)", worker)
        yield Loopback(master, folder)
    finally:
        for process in reversed(started):  # workers first: they end their executors, which end their Python workers
            _end_group(process)


def _environment(folder: Path) -> dict[str, str]:
    """Loopback only; files in the folder."""
    (folder / "local").mkdir(exist_ok=True)
    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
        "SPARK_DAEMON_MEMORY": "160m",
    }


def _start(folder: Path, log: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = _environment(folder)
    command = [f"{environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
    where = ("--host", "127.0.0.1", "--webui-port", "0")
    with log.open("wb") as output:
        return subprocess.Popen(
            [*command, *where, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """The first group of `pattern` as soon as the log holds it."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"{log.name}: no {pattern!r} in: {log.read_text(errors='replace')[-3000:]}")


def _end_group(process: subprocess.Popen[Any]) -> None:
    """End a process and the group that it leads: asked first, then made to."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
