"""Comparison of all pairs of rows in Spark's tasks: codes are broadcast, tasks count the clues of tiles of the triangle
of pairs, and counts are added up by clue before they are collected.

The evidence equals that of `gpu_kernels.evidence.collect_clues`, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pyspark import Broadcast, TaskContext
from pyspark.sql import SparkSession

from tuplewise.engine.spark.jobs import telling, until
from tuplewise.engine.spark.resources import devices_of_tasks, kernel_resources, kernel_tasks, task_device, together
from tuplewise.engine.spark.tasks import spare_zip_reading
from tuplewise.engine.spark.tiles import WAVES
from tuplewise.gpu_kernels.evidence import ClueSet
from tuplewise.gpu_kernels.evidence_tiles import PairTriangle, count_tile, merged, of_all_tiles, pair_triangle
from tuplewise.gpu_kernels.word_hash import mix_word
from tuplewise.gpu_kernels.words import ClueLayout

LEAST_TILE_PAIRS = 1 << 27
"""Pairs that a task compares in about the time that it takes to start."""


@dataclass(frozen=True, eq=False)
class CountedClues:
    """The clues of all pairs with their counts, the devices that counted them, and the reason for these."""

    clues: ClueSet
    device: str
    device_reason: str


@dataclass(frozen=True, eq=False)
class BucketClues:
    """The clues of some tiles in one bucket, uint64 (distinct, words), sorted, with their counts over unordered pairs,
    int64 (distinct,); and the devices that counted them."""

    clues: NDArray[np.uint64]
    counts: NDArray[np.int64]
    devices: frozenset[tuple[str, str]]

    def __add__(self, other: BucketClues) -> BucketClues:
        clues, counts = merged((self.clues, self.counts), (other.clues, other.counts))
        return BucketClues(clues, counts, self.devices | other.devices)


@dataclass(frozen=True, eq=False)
class TileCounter:
    """The input of the tasks of the job. `buckets`: number of buckets of clues; counts are added up by bucket."""

    pairs: Broadcast[PairTriangle]
    device: str
    buckets: int

    def count(self, tile: tuple[int, int]) -> Iterator[tuple[int, BucketClues]]:
        """The clues of a tile, by bucket."""
        spare_zip_reading()
        context = TaskContext.get()
        device = replace(task_device(self.device), more=())  # tiles are what other GPUs get
        clues, counts, _ = count_tile(
            self.pairs.value, tile, device=device, threads=1 if context is None else context.cpus()
        )
        devices = frozenset({(device.described, device.reason)})
        bucket = bucket_of(clues, self.buckets)
        for number in range(self.buckets):
            mine = bucket == number
            yield number, BucketClues(clues[mine], counts[mine], devices)


def bucket_of(clues: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """The bucket of each clue, int64 (clues,). Equal clues share a bucket, others are spread evenly."""
    mixed = np.zeros(len(clues), dtype=np.uint64)
    for word in clues.T:
        mixed = mix_word(mixed, word)
    return np.asarray(mixed % np.uint64(buckets), dtype=np.int64)


def count_pairs(
    spark: SparkSession,
    pairs: PairTriangle,
    *,
    device: str = "auto",
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    least_pairs: int = LEAST_TILE_PAIRS,
) -> CountedClues:
    """The distinct clues of all pairs of rows with counts, as `gpu_kernels.evidence.collect_clues` returns them.

    Parameters
    ----------
    device : "auto", "cpu", "cuda" or "cuda:N", as tasks see it (`resources.task_device`)
    deadline : `time.monotonic()` value from which on tasks are cancelled
    progress : called with the share of finished tiles
    least_pairs : pairs that are worth a task

    Raises
    ------
    TimeoutError
        The deadline came first.
    DeviceError
        A GPU was asked for by name and a task can't use it.

    Notes
    -----
    One job of two stages. A task's only output is its input for the second stage, and Spark uses one attempt for each
    tile: a task that runs twice counts once, and a lost executor costs only its tiles. Cost beside the pairs: codes to
    each executor once, distinct clues of each tile through a shuffle, all distinct clues to the driver.
    """
    resources = kernel_resources(spark)
    slots = kernel_tasks(spark, resources)
    total = pairs.rows * (pairs.rows - 1) // 2
    tiles = pairs.tiles(max(1, min(WAVES * slots, -(-total // least_pairs))))
    context = spark.sparkContext
    sent = context.broadcast(pairs)
    try:
        rdd = context.parallelize(tiles, len(tiles))
        if resources is not None:
            rdd = rdd.withResources(resources)
        counter = TileCounter(sent, device, min(slots, len(tiles)))
        added = rdd.flatMap(counter.count).reduceByKey(BucketClues.__add__, counter.buckets)
        with until(spark, deadline), telling(spark, progress):
            parts: list[tuple[int, BucketClues]] = added.collect()
    finally:
        sent.destroy()
    where = f"kernels run in the tasks of Spark ({context.master})"
    devices = together(where, {found for _, part in parts for found in part.devices})
    # buckets hold different clues: to put them together is to sort them
    clues, counts = merged(
        (np.concatenate([part.clues for _, part in parts]), np.concatenate([part.counts for _, part in parts])),
        (parts[0][1].clues[:0], parts[0][1].counts[:0]),
    )
    return CountedClues(of_all_tiles(pairs, clues, counts, True), *devices)


@dataclass(eq=False)
class PairsInSpark:
    """Comparison of all pairs in Spark tasks, as in `gpu_kernels.evidence.collect_clues`.

    Attributes
    ----------
    ran : the devices that compare, and why

    Raises
    ------
    DeviceError
        If tasks can't use a requested GPU.
    """

    spark: SparkSession
    device: str
    ran: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.ran = devices_of_tasks(self.spark, self.device, kernel_resources(self.spark))

    @property
    def slots(self) -> int:
        """Number of tasks that run at the same time."""
        return int(self.spark.sparkContext.defaultParallelism)

    def __call__(
        self,
        codes: NDArray[np.int32],
        layout: ClueLayout,
        *,
        nulls: Literal["unknown", "value"],
        deadline: float | None,
        progress: Callable[[float], None] | None,
    ) -> ClueSet:
        pairs = pair_triangle(codes, layout, nulls=nulls)
        try:
            counted = count_pairs(self.spark, pairs, device=self.device, deadline=deadline, progress=progress)
        except TimeoutError:
            nothing = np.zeros((0, layout.words), dtype=np.uint64)
            return ClueSet(nothing, np.zeros(0, dtype=np.int64), 0, False)
        self.ran = counted.device, counted.device_reason
        return counted.clues
