"""A real Spark cluster on this machine's loopback: a standalone master and workers, each a process of its own.

Executors and Python workers are other processes than the driver's, as on a cluster, so that what a task needs must be
sent to it. Workers are different hosts to Spark (127.0.1.1, 127.0.1.2, ...) and offer GPUs that aren't there, which a
script tells of, as on real machines. Drivers are programs of their own (`remote.py`), since one process holds one Spark
context; they do what tests tell them, one call after the other. Ports are chosen by the system, memory is small, files
lie in one folder, and whatever was started is ended.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pyspark

HERE = Path(__file__).parent
START_SECONDS = 90
STOP_SECONDS = 10
CALL_SECONDS = 240
MASTER_HOST = "127.0.0.1"
GPUS = ("0", "1")  # addresses that each worker tells of
CORES = 2
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CICompilerCount=1"
# What a driver on this cluster says: Python workers run in this Python and find what tests give to tasks, it listens on
# loopback only, and executors are small enough for any machine: two of one core, so that two drivers have room.
DRIVER_CONF = {
    "spark.pyspark.python": sys.executable,
    "spark.executorEnv.PYTHONPATH": str(HERE),
    "spark.driver.host": MASTER_HOST,
    "spark.driver.bindAddress": MASTER_HOST,
    "spark.driver.memory": "512m",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": f"{SMALL_JVM} -Duser.timezone=UTC",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # all workers take part in the first job
    "spark.standalone.executorRemoveDelayOnDisconnection": "500ms",
    "spark.locality.wait": "0",  # tiles are shared out, wherever their rows lie
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.files.minPartitionNum": "3",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
GPU_CONF = {"spark.executor.resource.gpu.amount": "1", "spark.task.resource.gpu.amount": "1"}


class Failed(AssertionError):
    """A call failed in the driver: what was raised there, as text."""


@dataclass(eq=False)
class Driver:
    """A program of its own that does what it is told. `folder`: where it runs, with its log and temporary files."""

    process: subprocess.Popen[bytes]
    connection: Connection
    folder: Path

    def begin(self, function: Callable[..., Any], *given: Any, **named: Any) -> None:
        """Call a function of a module beside this one; its answer is to be asked for."""
        self.connection.send((function, given, named))

    def answer(self, timeout_seconds: float = CALL_SECONDS) -> Any:
        """What the function returned. Raises `Failed` with the driver's traceback."""
        if not self.connection.poll(timeout_seconds):
            raise Failed(f"no answer after {timeout_seconds} s: {self.log[-3000:]}")
        try:
            done, answer = self.connection.recv()
        except EOFError:
            raise Failed(f"the driver ended: {self.log[-3000:]}") from None
        if not done:
            raise Failed(answer)
        return answer

    def call(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Begin, and wait for the answer."""
        self.begin(function, *given, **named)
        return self.answer()

    @property
    def log(self) -> str:
        """What it wrote to stdout and stderr."""
        return (self.folder / "log").read_text(errors="replace")

    def end(self) -> int:
        """Let it return from its program, and its JVM end; the exit code."""
        below: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.process.pid).children(recursive=True)
        with suppress(OSError):
            self.connection.send(None)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(2 * STOP_SECONDS)
        psutil.wait_procs(below, STOP_SECONDS)
        _end_group(self.process)
        self.connection.close()
        return self.process.returncode


@dataclass(eq=False)
class Cluster:
    """A running cluster: its address, the folder that holds its logs and work, and its processes."""

    master: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def start_workers(self, number: int) -> None:
        """So many workers more; they are registered on return."""
        logs = []
        for n in itertools.islice(self.numbers, number):
            size = ("--cores", str(CORES), "--memory", "1536m", "--work-dir", str(self.folder / f"work{n}"))
            logs.append(self.folder / f"worker{n}.log")
            host = f"127.0.1.{n + 1}"
            self.workers.append(_start(self.folder, logs[-1], "worker.Worker", host, *size, self.master))
        for log, worker in zip(logs, self.workers[-number:], strict=True):
            _wait_for(log, r"(Successfully registered with master)", worker)

    def lose_worker(self, process: int) -> None:
        """Kill the worker that a process belongs to, with its executors and their Python workers, at once."""
        above = {process, *(parent.pid for parent in psutil.Process(process).parents())}
        lost = next(worker for worker in self.workers if worker.pid in above)
        self.workers.remove(lost)
        _kill(psutil.Process(lost.pid))
        lost.wait(STOP_SECONDS)

    def lose_executor(self, process: int) -> None:
        """Kill the executor that a process belongs to, with its Python workers, at once. Its worker starts another."""
        executors = self.executors()
        _kill(next(p for p in psutil.Process(process).parents() if p.pid in executors))

    def executors(self) -> list[int]:
        """Processes of executors that run now, of all drivers."""
        found = []
        for child in (c for w in self.workers for c in psutil.Process(w.pid).children()):
            with suppress(psutil.Error):  # one that has just ended
                if any("ExecutorBackend" in part for part in child.cmdline()):
                    found.append(child.pid)
        return found

    @contextmanager
    def driver(self, name: str, conf: Mapping[str, str] | None = None) -> Iterator[Driver]:
        """A driver program in an empty folder of that name. It finds the master in the variable LOOPBACK_MASTER, and
        settings, JSON, in LOOPBACK_CONF; it is ended with all that it started, however the block ends."""
        folder = self.folder / name
        for name in ("tmp", "local"):
            (folder / name).mkdir(parents=True)
        here, there = Pipe()
        environment = {
            **_environment(folder, MASTER_HOST),
            "LOOPBACK_MASTER": self.master,
            "LOOPBACK_CONF": json.dumps({**DRIVER_CONF, **(conf or {})}),
            "TMPDIR": str(folder / "tmp"),
            "SPARK_SUBMIT_OPTS": f"{SMALL_JVM} -Djava.io.tmpdir={folder / 'tmp'}",
        }
        with (folder / "log").open("wb") as log, there:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "remote.py"), str(there.fileno())],
                env=environment, cwd=folder, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        driver = Driver(process, here, folder)
        try:
            yield driver
        finally:
            driver.end()


@contextmanager
def loopback_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster in an empty folder; ended, however the block ends."""
    (folder / "local").mkdir(parents=True)
    script = folder / "gpus.sh"
    script.write_text(f"#!/bin/sh\necho '{json.dumps({'name': 'gpu', 'addresses': GPUS})}'\n")
    script.chmod(0o755)
    log = folder / "master.log"
    started = [_start(folder, log, "master.Master", MASTER_HOST)]
    cluster = Cluster("", folder)
    try:
        cluster.master = _wait_for(log, r"Starting Spark master at (spark://\S+)", started[0])
        cluster.start_workers(workers)
        yield cluster
    finally:
        for process in [*cluster.workers, *started]:  # workers first: they end their executors
            _end_group(process)


def belonging_to(folder: Path) -> list[str]:
    """Processes that were started for a cluster: its folder stands in their command or their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            said = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(folder) in part for part in said):
            found.append(" ".join(process.cmdline())[:200])
    return found


def wait_until(what: Callable[[], Any], seconds: float = 150) -> Any:
    """What it returns, as soon as that is true."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > deadline:
            raise AssertionError(f"this did not come about in {seconds} s: {what}")
        time.sleep(0.02)
    return found


def _environment(folder: Path, host: str) -> dict[str, str]:
    """Loopback only; files in the folder."""
    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_JAVA_OPTS": f"{SMALL_JVM} -Dspark.master.rest.enabled=false",
        "SPARK_DAEMON_MEMORY": "160m",
        "SPARK_WORKER_OPTS": f"-Dspark.worker.resource.gpu.amount={len(GPUS)} "
        f"-Dspark.worker.resource.gpu.discoveryScript={folder / 'gpus.sh'}",
    }


def _start(folder: Path, log: Path, name: str, host: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = _environment(folder, host)
    command = [f"{environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
    with log.open("wb") as output:
        return subprocess.Popen(
            [*command, "--host", host, "--port", "0", "--webui-port", "0", *arguments],
            env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip


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


def _kill(process: psutil.Process) -> None:
    """A process and all below it, without being asked."""
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            one.kill()


def _end_group(process: subprocess.Popen[Any]) -> None:
    """End a process and the group that it leads: asked first, then made to."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
