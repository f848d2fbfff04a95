"""Control of Spark's jobs: time limits, progress, several jobs at once, and clear errors for faults of the setup."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from tuplewise.engine.errors import DeviceError, InputError, TuplewiseError, Wording, message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
CANCEL_SECONDS = 0.2
MOST_AT_ONCE = 4
TELL_SECONDS = 0.5


@contextlib.contextmanager
def until(spark: SparkSession, deadline: float | None) -> Iterator[None]:
    """Cancel the jobs of the block at the deadline (`time.monotonic()`) and raise TimeoutError."""
    if deadline is None:
        with _named_faults():
            yield
        return
    if time.monotonic() >= deadline:
        raise TimeoutError("the time limit was reached")
    cancelled = threading.Event()

    def cancel(tag: str, ended: threading.Event) -> None:
        wait = deadline - time.monotonic()
        while not ended.wait(max(0.0, wait)):
            cancelled.set()
            spark.sparkContext.cancelJobsWithTag(tag)
            wait = CANCEL_SECONDS  # the next job of the block may be about to start

    try:
        with _watched(spark, "time limit", cancel), _named_faults():
            yield
    except TuplewiseError:
        raise
    except Exception as problem:
        if cancelled.is_set():
            raise TimeoutError("the time limit was reached") from problem
        raise


@contextlib.contextmanager
def _watched(spark: SparkSession, name: str, watch: Callable[[str, threading.Event], None]) -> Iterator[None]:
    """Run `watch` beside the block, with the tag of the block's jobs, and an event that the end of the block sets."""
    tag = f"tuplewise-{uuid.uuid4().hex}"
    ended = threading.Event()
    thread = threading.Thread(target=watch, args=(tag, ended), name=name, daemon=True)
    spark.sparkContext.addJobTag(tag)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        spark.sparkContext.removeJobTag(tag)


@contextlib.contextmanager
def telling(spark: SparkSession, progress: Callable[[float], None] | None) -> Iterator[None]:
    """Call `progress` from time to time with the share of finished tasks of the block's jobs.

    An exception of `progress` (a limit that is reached) ends the jobs and is raised here.
    """
    if progress is None:
        yield
        return
    raised: list[Exception] = []

    def tell(tag: str, ended: threading.Event) -> None:
        while not raised and not ended.wait(TELL_SECONDS):
            try:
                progress(_share_of_tasks(spark, tag))
            except Exception as problem:
                raised.append(problem)
        while raised and not ended.is_set():
            spark.sparkContext.cancelJobsWithTag(tag)
            ended.wait(CANCEL_SECONDS)  # the job may not have been there yet

    try:
        with _watched(spark, "progress", tell):
            yield
    except Exception:
        if not raised:
            raise
    if raised:
        raise raised[0]


def _share_of_tasks(spark: SparkSession, tag: str) -> float:
    context = spark.sparkContext
    tracker = context.statusTracker()
    done = all_ = 0
    for job in context._jsc.sc().statusTracker().getJobIdsForTag(tag):
        known = tracker.getJobInfo(int(job))
        for stage in [] if known is None else known.stageIds:
            seen = tracker.getStageInfo(int(stage))
            if seen is not None:
                done, all_ = done + seen.numCompletedTasks, all_ + seen.numTasks
    return done / all_ if all_ else 0.0


def at_once(spark: SparkSession, work: Sequence[Callable[[], T]]) -> list[T]:
    """Run functions a few at a time and return their results: a small job is mostly planning and waiting."""
    context = spark.sparkContext._jsc.sc()
    properties = context.getLocalProperties()

    def run(one: Callable[[], T]) -> T:
        context.setLocalProperties(properties.clone())
        return one()

    if len(work) < 2:
        return [one() for one in work]
    with ThreadPoolExecutor(min(len(work), MOST_AT_ONCE), "Spark jobs") as pool:
        return list(pool.map(run, work))


@contextlib.contextmanager
def _named_faults() -> Iterator[None]:
    """Turn faults that users can mend into clear errors."""
    try:
        yield
    except TuplewiseError:
        raise
    except Exception as problem:
        text = str(problem)
        missing = re.search(r"No module named '([A-Za-z_]+)", text)
        if missing is not None:
            text = "Install tuplewise there, or name a Python that has it: {conf}"
            hint = Wording(text, conf={"spark.pyspark.python": "PATH"})
            raise InputError(message("Spark's Python workers lack a module", missing.group(1), hint=hint)) from problem
        device = re.search(r"tuplewise\.\S+\.(?:DeviceError|OutOfDeviceMemory|NoRoom): (.+)", text)
        if device is not None:
            raise DeviceError(f"in a task of Spark: {device.group(1)}") from problem
        raise
