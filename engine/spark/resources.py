"""What a cluster gives to the kernels in its tasks: GPUs, by Spark's resource scheduling, and the device of a task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuplewise.engine.spark.jobs import until
from tuplewise.gpu_kernels.device import pick_device

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

GPU = "gpu"


def task_device(asked: str) -> str:
    """The device that a task runs kernels on: a GPU that Spark gave it, else the CPU unless one was asked for.

    Under "auto" the task may fall back to the CPU where that GPU can't be used ("auto:N").
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    given = context.resources().get(GPU) if context is not None else None
    if asked.startswith("cpu") or (asked == "auto" and given is None):
        return "cpu"
    if given is None:
        return asked
    number = gpu_number(given.addresses[0], os.environ.get("CUDA_VISIBLE_DEVICES"))
    return f"auto:{number}" if asked.startswith("auto") else f"cuda:{number}"


def gpu_number(address: str, visible: str | None) -> int:
    """The number by which a process knows a GPU that Spark calls `address`.

    Spark's addresses are what the discovery script prints. Ours prints numbers as processes count them, that is among
    the GPUs in CUDA_VISIBLE_DEVICES where it is set; others print the machine's own numbers or names, whose place there
    counts.

    Examples
    --------
    >>> gpu_number("3", None), gpu_number("1", "1,0"), gpu_number("3", "2,3"), gpu_number("GPU-b", "GPU-a,GPU-b")
    (3, 1, 1, 1)
    """
    shown = [] if visible is None else [name.strip() for name in visible.split(",")]
    if address.isdigit() and (not shown or int(address) < len(shown)):
        return int(address)
    return shown.index(address) if address in shown else 0


def tasks_have_gpus(spark: SparkSession) -> bool:
    """Whether Spark gives tasks a GPU."""
    return _amount(spark, "spark.task.resource.gpu.amount") > 0 or kernel_resources(spark) is not None


def kernel_resources(spark: SparkSession) -> ResourceProfile | None:
    """What a task that runs kernels on broadcast codes asks for: a whole GPU and all cores of its executor.

    For `rdd.withResources`, since the RAPIDS Accelerator drops the `profile` of `mapInArrow`. None where executors have
    no GPU, or Spark can't schedule by it (local mode), or how many cores they have isn't said.
    """
    cores = int(_amount(spark, "spark.executor.cores"))
    if spark.sparkContext._jsc.sc().isLocal() or _amount(spark, "spark.executor.resource.gpu.amount") < 1 or not cores:
        return None
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    asked = TaskResourceRequests().cpus(cores).resource(GPU, 1.0)
    return ResourceProfileBuilder().require(asked).build


def kernel_tasks(spark: SparkSession, resources: ResourceProfile | None) -> int:
    """Tasks with these resources that run at the same time; an estimate before all executors are there."""
    slots = int(spark.sparkContext.defaultParallelism)
    return slots if resources is None else max(1, slots // int(_amount(spark, "spark.executor.cores")))


def devices_of_tasks(spark: SparkSession, asked: str) -> tuple[str, str]:
    """What tasks run kernels on, as `task_device` decides it, and why. Raises DeviceError where a GPU was asked for
    that a task can't use.

    Notes
    -----
    One small job, unless it is clear that tasks run on the CPU: only a task can tell whether its GPU works.
    """
    where = f"kernels run in the tasks of Spark ({spark.sparkContext.master})"
    if asked == "cpu" or (asked == "auto" and not tasks_have_gpus(spark)):
        return "cpu", where
    resources = kernel_resources(spark)
    tasks = kernel_tasks(spark, resources)
    asking = spark.sparkContext.parallelize(range(tasks), tasks)
    if resources is not None:
        asking = asking.withResources(resources)

    def describe(_: Iterator[int]) -> Iterator[tuple[str, str]]:
        yield described(asked)

    with until(spark, None):
        return together(where, set(asking.mapPartitions(describe).collect()))


def described(asked: str) -> tuple[str, str]:
    """The device of this task, and why."""
    picked = pick_device(task_device(asked))
    return picked.described, picked.reason


def together(where: str, found: set[tuple[str, str]]) -> tuple[str, str]:
    """Devices of many tasks as one text, and why: `found` are pairs of both."""
    devices = ", ".join(sorted({device for device, _ in found}))
    reasons = "; ".join(sorted({reason for _, reason in found}))
    return devices or "cpu", f"{where}: {reasons}" if reasons else where


def _amount(spark: SparkSession, setting: str) -> float:
    return float(spark.sparkContext.getConf().get(setting) or 0)
