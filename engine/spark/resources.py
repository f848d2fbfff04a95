"""What a cluster gives to the kernels in its tasks: GPUs, by Spark's resource scheduling, and the device of a task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tuplewise.engine.errors import DeviceError, message
from tuplewise.engine.spark.jobs import until
from tuplewise.gpu_kernels.device import Device, pick_device

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

GPU = "gpu"


def task_device(asked: str) -> Device:
    """The device that a task runs kernels on: a GPU that Spark gave it, else the CPU unless one was asked for.

    Under "auto" the task may fall back to the CPU where that GPU can't be used or has no room; one answer for all tiles
    of a task, so that what fell back once isn't tried again by each.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    given = context.resources().get(GPU) if context is not None else None
    attempt = -1 if context is None else int(context.taskAttemptId())
    if asked.startswith("cpu") or (asked == "auto" and given is None):
        return pick_device("cpu")
    if given is None:
        return _of_attempt(asked, attempt)
    number = gpu_number(given.addresses[0], os.environ.get("CUDA_VISIBLE_DEVICES"))
    return _of_attempt(f"auto:{number}" if asked.startswith("auto") else f"cuda:{number}", attempt)


@lru_cache(maxsize=4)
def _of_attempt(spec: str, attempt: int) -> Device:
    """A device, picked once by each attempt of a task."""
    return pick_device(spec)


def gpu_number(address: str, visible: str | None) -> int:
    """The number by which a process knows a GPU that Spark calls `address`.

    Spark's addresses are what the discovery script prints. Ours prints numbers as processes count them, that is among
    the GPUs in CUDA_VISIBLE_DEVICES where it is set; others print the machine's own numbers or names, whose place there
    counts.

    Examples
    --------
    >>> gpu_number("3", None), gpu_number("1", "1,0"), gpu_number("3", "2,3"), gpu_number("GPU-b", "GPU-a,GPU-b")
    (3, 1, 1, 1)

    Raises DeviceError where it is none of these.
    """
    shown = [] if visible is None else [name.strip() for name in visible.split(",")]
    if address.isdigit() and (not shown or int(address) < len(shown)):
        return int(address)
    if address in shown:
        return shown.index(address)
    hint = "Let workers use the discovery script that comes with tuplewise: spark_conf/gpu_discovery.sh"
    raise DeviceError(message("Spark's address of a GPU is none that a task sees", address, visible or "numbers", hint))


def kernel_resources(spark: SparkSession) -> ResourceProfile | None:
    """What a task that runs kernels on broadcast codes asks for: a whole GPU and its share of the executor's cores.

    For `rdd.withResources`, since the RAPIDS Accelerator drops the `profile` of `mapInArrow`: tasks of these have what
    `spark.task.resource.gpu.amount` gives them. None where executors have no GPU, or Spark can't schedule by it (local
    mode), or how many cores they have isn't said. With dynamic allocation, too: Spark would then start executors of
    their own for such tasks, and wait for GPUs that idle ones hold.
    """
    conf = spark.sparkContext.getConf()
    gpus = int(_amount(spark, "spark.executor.resource.gpu.amount"))
    cores = _cores_of_gpu(spark)
    if spark.sparkContext._jsc.sc().isLocal() or not gpus or not cores:
        return None
    if conf.get("spark.dynamicAllocation.enabled") == "true":
        return None
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    asked = TaskResourceRequests().cpus(cores).resource(GPU, 1.0)
    return ResourceProfileBuilder().require(asked).build


def _cores_of_gpu(spark: SparkSession) -> int:
    """Cores of an executor for each of its GPUs; 0 where it isn't said how many it has."""
    cores = int(_amount(spark, "spark.executor.cores"))
    return cores and max(1, cores // max(1, int(_amount(spark, "spark.executor.resource.gpu.amount"))))


def kernel_tasks(spark: SparkSession, resources: ResourceProfile | None) -> int:
    """Tasks with these resources that run at the same time; an estimate before all executors are there."""
    slots = int(spark.sparkContext.defaultParallelism)
    return slots if resources is None else max(1, slots // _cores_of_gpu(spark))


def devices_of_tasks(
    spark: SparkSession, asked: str, resources: ResourceProfile | None = None
) -> tuple[str, str]:
    """What tasks with these resources begin with, as `task_device` decides it, and why. Raises DeviceError where a GPU
    was asked for that a task can't use.

    Notes
    -----
    One small job, unless it is clear that tasks run on the CPU: only a task can tell whether its GPU works.
    """
    where = f"kernels run in the tasks of Spark ({spark.sparkContext.master})"
    gpus = resources is not None or _amount(spark, "spark.task.resource.gpu.amount") > 0
    if asked == "cpu" or (asked == "auto" and not gpus):
        return "cpu", where
    tasks = kernel_tasks(spark, resources)
    asking = spark.sparkContext.parallelize(range(tasks), tasks)
    if resources is not None:
        asking = asking.withResources(resources)

    def describe(_: Iterator[int]) -> Iterator[tuple[str, str]]:
        device = task_device(asked)
        yield device.described, device.reason

    with until(spark, None):
        return together(where, set(asking.mapPartitions(describe).collect()))


def together(where: str, found: set[tuple[str, str]]) -> tuple[str, str]:
    """Devices of many tasks as one text, and why: `found` are pairs of both."""
    devices = ", ".join(sorted({device for device, _ in found}))
    reasons = "; ".join(sorted({reason for _, reason in found}))
    return devices or "cpu", f"{where}: {reasons}" if reasons else where


def _amount(spark: SparkSession, setting: str) -> float:
    return float(spark.sparkContext.getConf().get(setting) or 0)
