"""Check of a running cluster: each executor's machine, Python and packages, its GPUs, and a trial of kernels.

At least one task on each executor reports. Tasks call a function of this module, sent by name, so a cluster without
tuplewise, or with another version, is detected.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np

from tuplewise.engine.errors import TuplewiseError, command_line_option
from tuplewise.engine.spark.checks import Check
from tuplewise.engine.spark.jobs import until
from tuplewise.engine.spark.resources import GPU, task_device
from tuplewise.engine.spark.session import open_session, stop
from tuplewise.spark_conf.configuration import discovered_gpus
from tuplewise.spark_conf.plugin import PLUGIN_VERSION, has_plugin, only_explains

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tuplewise.gpu_kernels.device import Device

PACKAGES = ("tuplewise", "numba", "numpy", "pyarrow", "pyspark")
STILL_SECONDS = 3.0  # executors that have come and are followed by no other for so long are all
HOLD_SECONDS = 0.5  # a task stays so long, so that the next one starts on another executor
ROUNDS = 5


@dataclass(frozen=True)
class Executor:
    """A task's report on its executor.

    Attributes
    ----------
    host, process : the machine's name, and the parent process of the Python worker
    python : version and path of Python
    versions : versions of PACKAGES, or "not installed"
    gpus_given : GPU addresses that Spark assigned to the task; None: it assigns no GPUs
    gpus_seen : output of the discovery script on that machine
    cpu_fault : the fault of kernels on the CPU, or ""
    device, reason, device_fault : the device of the task's kernels, the reason for it, and their fault there, or ""
    """

    host: str
    process: int
    python: tuple[str, str]
    versions: dict[str, str]
    gpus_given: tuple[str, ...] | None
    gpus_seen: str
    cpu_fault: str
    device: str
    reason: str
    device_fault: str


def look_at_cluster(
    *, master: str | None, profile: str | None, conf: Mapping[str, str], wait_seconds: float
) -> list[Check]:
    """Examine the cluster of the active session, or of one that is started for this and then stopped.

    Parameters
    ----------
    wait_seconds : limit for each of: starting the session, waiting for executors, running tasks

    Raises
    ------
    InputError
        If there is no session: the configuration is impossible, no master answers, or Spark doesn't start in time.
    """
    opened = open_session(master=master, profile=profile, conf=conf, start_seconds=wait_seconds)
    try:
        found = [Check("session", True, f"Spark {opened.version}, {opened.master}")]
        count = wait_for_executors(opened.spark, wait_seconds)
        if not count:
            return [*found, _no_executor(opened.spark, wait_seconds)]
        found.append(_plugin(opened.spark, wait_seconds))
        try:
            executors = ask_executors(opened.spark, count, time.monotonic() + wait_seconds)
        except TimeoutError:
            return [*found, _no_tasks(opened.spark, wait_seconds)]
        except TuplewiseError as problem:
            advice = "see that every node has the same Python packages"
            return [*found, Check("tasks", False, problem.spelled(command_line_option), advice)]
        except Exception as problem:  # what Spark says of a task that failed
            return [*found, Check("tasks", False, _said(problem), "see the executors' logs")]
        missing = max(0, executor_count(opened.spark) - len(executors))
        hosts = ", ".join(sorted({executor.host for executor in executors}))
        told = f"{len(executors)} on {hosts}" + (f"; {missing} more did not get a task" if missing else "")
        found.append(Check("executors", not missing, told, "ask again, with more time to wait" if missing else ""))
        return found + [one for n, executor in enumerate(executors, 1) for one in _of_executor(n, executor)]
    finally:
        if opened.started:
            stop()


def executor_count(spark: SparkSession) -> int:
    """The number of running executors; in local mode the driver counts as one."""
    context = spark.sparkContext._jsc.sc()
    return 1 if context.isLocal() else int(context.getExecutorMemoryStatus().size()) - 1


def wait_for_executors(spark: SparkSession, wait_seconds: float) -> int:
    """Wait for executors, until the requested number is running, no further one starts, or the time is over."""
    conf = spark.sparkContext.getConf()
    if conf.get("spark.dynamicAllocation.enabled") == "true":
        return max(1, executor_count(spark))  # they come as tasks do
    wanted = int(conf.get("spark.executor.instances") or 0)
    deadline = time.monotonic() + wait_seconds
    count, since = executor_count(spark), time.monotonic()
    while time.monotonic() < deadline and not spark.sparkContext._jsc.sc().isLocal():
        now = executor_count(spark)
        if now != count:
            count, since = now, time.monotonic()
        if count and (count >= wanted > 0 or (not wanted and time.monotonic() - since > STILL_SECONDS)):
            break
        time.sleep(0.2)
    return count


def ask_executors(spark: SparkSession, count: int, deadline: float) -> list[Executor]:
    """The report of each executor, by machine and process. Rounds of tasks continue until `count` have reported."""
    context = spark.sparkContext
    told: dict[tuple[str, int], Executor] = {}
    tasks = 2 * max(count, int(context.defaultParallelism))
    for _ in range(ROUNDS):
        with until(spark, deadline):
            slots = context.parallelize(range(tasks), tasks)
            for executor in slots.mapPartitions(partial(tell, known=frozenset(told))).collect():
                told.setdefault((executor.host, executor.process), executor)
        if len(told) >= count:
            break
    return [told[key] for key in sorted(told)]


def tell(_: Iterator[int], known: frozenset[tuple[str, int]] = frozenset()) -> Iterator[Executor]:
    """The task: report on its executor, unless that is known."""
    begin = time.monotonic()
    here = (socket.gethostname(), os.getppid())
    found = [] if here in known else [_executor(*here)]
    time.sleep(max(0.0, HOLD_SECONDS - (time.monotonic() - begin)))
    return iter(found)


def _executor(host: str, process: int) -> Executor:
    from pyspark import TaskContext

    context = TaskContext.get()
    given = context.resources().get(GPU) if context is not None else None
    device = task_device("auto")
    cpu_fault = try_kernels("cpu")[2]
    return Executor(
        host,
        process,
        (platform.python_version(), sys.executable),
        installed_versions(),
        None if given is None else tuple(given.addresses),
        _gpus_seen(),
        cpu_fault,
        *(("cpu", "Spark gives its tasks no GPU", cpu_fault) if given is None else try_kernels(device)),
    )


def installed_versions() -> dict[str, str]:
    """Versions of the packages that must match between driver and executors."""
    versions = {}
    for package in PACKAGES:
        versions[package] = "not installed"
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def try_kernels(spec: Device | str) -> tuple[str, str, str]:
    """The device of kernels, the reason for it, and their fault: "" if the clues of a small table are right.

    The table is i mod 3 and i mod 2 for i below 600: each pair of remainders is in 100 rows, so the counts of the nine
    outcomes are known.
    """
    from tuplewise.gpu_kernels.device import pick_device
    from tuplewise.gpu_kernels.evidence import collect_clues
    from tuplewise.gpu_kernels.words import make_layout

    try:
        device = pick_device(spec)
        numbers = np.arange(600, dtype=np.int32)
        layout = make_layout([(0, 0, 0, True), (1, 1, 0, True)])
        counts = collect_clues(np.stack([numbers % 3, numbers % 2]), layout, device=device).counts
        right = counts is not None and sorted(counts.tolist()) == [30000] * 6 + [59400] + [60000] * 2
        return device.described, device.reason, "" if right else f"wrong counts: {counts}"
    except Exception as error:  # drivers and packages fail in many ways, and saying so is this module's work
        return str(spec), "", f"{type(error).__name__}: {_said(error)}"


def _gpus_seen() -> str:
    """The output of the discovery script on this machine, or the reason why there is none."""
    addresses, reason = discovered_gpus()
    return reason or f"sees GPU {', '.join(addresses)}"


def _of_executor(number: int, executor: Executor) -> list[Check]:
    """Findings about an executor: its Python compared with the driver's, its GPUs, its kernels."""
    name = f"executor {number}"
    here = {"python": platform.python_version(), **installed_versions()}
    there = {"python": executor.python[0], **executor.versions}
    same_python = here["python"].split(".")[:2] == there["python"].split(".")[:2]
    unlike = [f"{k} {there[k]} (driver {here[k]})" for k in PACKAGES if there[k] != here[k]]
    if not same_python:
        unlike.insert(0, f"python {there['python']} (driver {here['python']})")
    versions = ", ".join(f"{k} {v}" for k, v in there.items())
    found = [
        Check(
            f"{name}: versions",
            not unlike,
            f"{executor.host}, {executor.python[1]}: {', '.join(unlike) if unlike else versions}",
            "install the same versions there, or name another Python: spark.pyspark.python" if unlike else "",
        )
    ]
    if executor.gpus_given is None:
        given, ok = "Spark gives its tasks no GPU", None
    else:
        given, ok = f"Spark gives a task GPU {', '.join(executor.gpus_given)}", executor.device.startswith("cuda")
    advice = "" if ok is not False else "see that nvidia-smi works there, and that tuplewise[cuda12] is installed"
    found.append(Check(f"{name}: gpus", ok, f"{given}; {executor.gpus_seen}", advice))
    fault = executor.cpu_fault or executor.device_fault
    if fault:
        found.append(Check(f"{name}: kernels", False, fault, "mend or reinstall numba (and numba-cuda) there"))
    else:
        told = f"right on the CPU and on {executor.device}" if executor.device != "cpu" else "right on the CPU"
        found.append(Check(f"{name}: kernels", True, f"{told}; {executor.device}: {executor.reason}"))
    return found


def _plugin(spark: SparkSession, wait_seconds: float) -> Check:
    """Whether the RAPIDS Accelerator plans for GPUs in this session."""
    conf = dict(spark.sparkContext.getConf().getAll())
    if not has_plugin(conf):
        return Check("rapids plugin", None, "not loaded: plans run on CPUs")
    if only_explains(conf):
        return Check("rapids plugin", None, f"{PLUGIN_VERSION} explains plans only, which run on CPUs")
    try:
        frame = spark.range(0, 8, 1, 2).selectExpr("id + 1 as next")
        planned = "Gpu" in frame._jdf.queryExecution().executedPlan().toString()
        with until(spark, time.monotonic() + wait_seconds):
            right = sorted(row[0] for row in frame.collect()) == list(range(1, 9))
    except Exception as problem:
        return Check("rapids plugin", False, _said(problem), "see the executors' logs")
    if planned and right:
        return Check("rapids plugin", True, "plans run on GPUs")
    said = "plans stay on CPUs" if right else "a plan on the GPU gave a wrong answer"
    return Check("rapids plugin", False, said, "see that spark.rapids.sql.enabled is true")


def _no_executor(spark: SparkSession, wait_seconds: float) -> Check:
    conf = spark.sparkContext.getConf()
    keys = ("spark.executor.cores", "spark.executor.memory", "spark.executor.resource.gpu.amount", "spark.cores.max")
    asked = ", ".join(f"{key}={value}" for key in keys if (value := conf.get(key)))
    advice = f"see that its workers are there, and offer what an executor asks for ({asked or 'defaults'})"
    return Check("executors", False, f"none came within {wait_seconds:g} seconds", advice)


def _no_tasks(spark: SparkSession, wait_seconds: float) -> Check:
    advice = "see that the cluster isn't busy, and that executors stay alive (their logs)"
    return Check("tasks", False, f"not done within {wait_seconds:g} seconds", advice)


def _said(problem: BaseException) -> str:
    """The line of an error that says most."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"(Error|Exception)\b: ", line)]
    return (telling or lines or [type(problem).__name__])[-1 if telling else 0][:300]


