"""Resources of kernels in Spark's tasks: GPUs by Spark's resource scheduling, and the device of a task."""

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


def task_device(device: str) -> Device:
    """The device for a task's kernels: the GPU that Spark assigned, else the CPU unless a GPU was requested.

    With "auto" the task may fall back to the CPU if that GPU is unusable or full. All tiles of a task use the same
    device, so that none repeats a failed attempt.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    given = context.resources().get(GPU) if context is not None else None
    attempt = -1 if context is None else int(context.taskAttemptId())
    if device.startswith("cpu") or (device == "auto" and given is None):
        return pick_device("cpu")
    if given is None:
        return _of_attempt(device, attempt)
    number = gpu_number(given.addresses[0], os.environ.get("CUDA_VISIBLE_DEVICES"))
    return _of_attempt(f"auto:{number}" if device.startswith("auto") else f"cuda:{number}", attempt)


@lru_cache(maxsize=4)
def _of_attempt(spec: str, attempt: int) -> Device:
    """A device, picked once by each attempt of a task."""
    return pick_device(spec)


def gpu_number(address: str, visible: str | None) -> int:
    """The number of a GPU in this process, from Spark's `address` for it.

    Addresses come from the discovery script. Ours prints numbers as processes count them, that is among the GPUs in
    CUDA_VISIBLE_DEVICES if it is set. Other scripts print the machine's numbers or names; their place in that variable
    is the number.

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
    """The resources of a task that runs kernels on broadcast codes: a whole GPU and its share of the executor's cores.

    They are for `rdd.withResources`, since the RAPIDS Accelerator ignores the `profile` of `mapInArrow`, whose tasks
    get `spark.task.resource.gpu.amount`. None if executors have no GPU, if Spark can't schedule GPUs (local mode), if
    the number of cores is unknown, and with dynamic allocation: Spark would start separate executors for such tasks and
    wait for GPUs that idle ones hold.
    """
    conf = spark.sparkContext.getConf()
    gpus = int(_amount(spark, "spark.executor.resource.gpu.amount"))
    cores = _cores_of_gpu(spark)
    if spark.sparkContext._jsc.sc().isLocal() or not gpus or not cores:
        return None
    if conf.get("spark.dynamicAllocation.enabled") == "true":
        return None
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    requests = TaskResourceRequests().cpus(cores).resource(GPU, 1.0)
    return ResourceProfileBuilder().require(requests).build


def _cores_of_gpu(spark: SparkSession) -> int:
    """Cores of an executor for each of its GPUs; 0 if unknown."""
    cores = int(_amount(spark, "spark.executor.cores"))
    return cores and max(1, cores // max(1, int(_amount(spark, "spark.executor.resource.gpu.amount"))))


def kernel_tasks(spark: SparkSession, resources: ResourceProfile | None) -> int:
    """The number of tasks with these resources that run at once; an estimate until all executors have started."""
    slots = int(spark.sparkContext.defaultParallelism)
    return slots if resources is None else max(1, slots // _cores_of_gpu(spark))


def devices_of_tasks(
    spark: SparkSession, device: str, resources: ResourceProfile | None = None
) -> tuple[str, str]:
    """The initial device of tasks with these resources, see `task_device`, and the reason for it. Raises DeviceError if
    a task can't use the requested GPU.

    Notes
    -----
    One small job, unless tasks certainly run on the CPU: only a task can tell whether its GPU works.
    """
    where = f"kernels run in the tasks of Spark ({spark.sparkContext.master})"
    gpus = resources is not None or _amount(spark, "spark.task.resource.gpu.amount") > 0
    if device == "cpu" or (device == "auto" and not gpus):
        return "cpu", where
    tasks = kernel_tasks(spark, resources)
    asking = spark.sparkContext.parallelize(range(tasks), tasks)
    if resources is not None:
        asking = asking.withResources(resources)

    def describe(_: Iterator[int]) -> Iterator[tuple[str, str]]:
        own = task_device(device)
        yield own.described, own.reason

    with until(spark, None):
        return together(where, set(asking.mapPartitions(describe).collect()))


def together(where: str, found: set[tuple[str, str]]) -> tuple[str, str]:
    """One text for the devices of many tasks, and one for the reasons. `found`: pairs of device and reason."""
    devices = ", ".join(sorted({device for device, _ in found}))
    reasons = "; ".join(sorted({reason for _, reason in found}))
    return devices or "cpu", f"{where}: {reasons}" if reasons else where


def _amount(spark: SparkSession, setting: str) -> float:
    return float(spark.sparkContext.getConf().get(setting) or 0)
