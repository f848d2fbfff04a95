"""Checks of rules in Spark's tasks, for tables beyond one machine: counts, rows, first pairs, witnesses, all pairs.

Results equal those in this process and don't depend on partitioning. Any `layout.PairRule` can be checked; its kernels
say what a task does with the rows of a tile.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.spark.layout import Layout, PairRule, lay_out, passing
from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.spark.routes import full_row_counts, full_tile_selves, send_rows, tiles_both_ways
from tuplewise.engine.spark.tasks import FirstPairs, TileKernels, TileWork
from tuplewise.engine.spark.tiles import TileSizes

FEWEST_TILE_ROWS, MOST_TILE_ROWS = 1 << 16, 1 << 22
KERNEL_BYTES = 160
"""What a row of a tile takes beside its codes: kernels up to 65 bytes (measured), the hand-over 60, some to spare."""
TASK_BYTES = 512 << 20
"""Memory of a Python worker where no setting says."""
PAIRS = "t bigint, u bigint"


@dataclass(frozen=True)
class RuleOnSpark:
    """One rule on one table.

    Attributes
    ----------
    frame : position (bigint) and codes c0, c1, ... (int), `columns` of them; null is -1
    one_way : whether each pair is listed once, t < u: the rule is its own mirror
    """

    frame: DataFrame
    columns: int
    rule: PairRule
    kernels: TileKernels
    sizes: TileSizes
    device: str = "cpu"
    seed: int = 0

    @property
    def one_way(self) -> bool:
        return self.rule.symmetric


@dataclass(frozen=True, eq=False)
class Violations:
    """The violations of one rule; rows are given by position.

    Attributes
    ----------
    pairs : violating ordered pairs, or rows for a rule about one row
    rows : rows in at least one
    first : int64 (k, 2), the first pairs (t, u) by position; u = -1 for rules about one row
    worst_rows, worst_counts : int64, rows in the most pairs, then by position, and the number of pairs of each
    """

    pairs: int
    rows: int
    first: NDArray[np.int64]
    worst_rows: NDArray[np.int64]
    worst_counts: NDArray[np.int64]


NOTHING = Violations(0, 0, np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def count_where(frame: DataFrame, conditions: Sequence[str]) -> list[int]:
    """The number of rows that satisfy each condition (SQL text). No row satisfies an empty one. One job."""
    counts = [f.count_if(f.expr(c or "false")) for c in conditions]
    return [int(n) for n in frame.agg(*counts).collect()[0]] if counts else []


def cluster_sizes(spark: SparkSession, rows: int, columns: int) -> TileSizes:
    """The sizes for cutting groups on this cluster, from its slots and a task's memory for Python."""
    context = spark.sparkContext
    conf = context.getConf()
    cores = int(conf.get("spark.executor.cores") or 1)
    given = conf.get("spark.executor.pyspark.memory") or conf.get("spark.executor.memoryOverhead")
    if given is not None:
        parse = context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes  # type: ignore[union-attr]
        room = int(parse(given)) // cores
    else:
        room = TASK_BYTES
    fitting = room // (2 * (KERNEL_BYTES + 12 * columns))
    return TileSizes(rows, context.defaultParallelism, max(FEWEST_TILE_ROWS, min(MOST_TILE_ROWS, fitting)))


def count_pairs(check: RuleOnSpark) -> int:
    """The number of violating ordered pairs. Kernels count each tile, except full tiles, whose count is known."""
    with _laid_out(check, full=True) as layout:
        total = layout.tiles.full_pairs(layout.left, layout.right)
        selves = full_tile_selves(layout)
        if selves is not None:
            total -= selves.count()
        sent = send_rows(layout, check.sizes)
        if sent is not None:
            found = sent.mapInArrow(_work(check, layout).count, "pairs bigint").toArrow()
            total += sum(found["pairs"].to_pylist())
    return total


def check_pairs(check: RuleOnSpark, *, pairs: int, worst: int) -> Violations:
    """The number of pairs and rows, the first `pairs` pairs, and the `worst` rows in the most pairs.

    Notes
    -----
    Tasks return the number of pairs of each row that has any, which Spark adds up over tiles. The first pairs start
    with the lowest such rows; these few are then broadcast to all rows.
    """
    with _laid_out(check, full=True) as layout:
        parts = full_row_counts(layout)
        sent = send_rows(layout, check.sizes)
        if sent is not None:
            schema = "position bigint, as_t bigint, as_u bigint"
            parts.append(sent.mapInArrow(_work(check, layout).count_rows, schema))
        if not parts:
            return NOTHING
        counts = reduce(lambda a, b: a.unionAll(b), parts).groupBy("position")
        summed = counts.agg(f.sum("as_t").alias("as_t"), f.sum("as_u").alias("as_u"))
        listed = f.col("as_t") if check.one_way else f.col("as_t") + f.col("as_u")
        summed = summed.withColumn("pairs", listed).where((f.col("as_t") > 0) | (f.col("as_u") > 0)).persist()
        try:
            total, rows = summed.agg(f.sum("as_t"), f.count("*")).collect()[0]
            if not rows:
                return NOTHING
            ranked = summed.orderBy(f.desc("pairs"), "position").limit(worst).select("position", "pairs").collect()
            # each pair of a rule that is its own mirror is among the partners of both its rows
            starts = summed.where("as_t > 0").orderBy("position").limit(pairs * (2 if check.one_way else 1))
            left_rows = [row["position"] for row in starts.select("position").collect()]
        finally:
            summed.unpersist()
    return Violations(
        int(total),
        int(rows),
        _first_pairs(check, left_rows, pairs),
        np.array([row["position"] for row in ranked], dtype=np.int64),
        np.array([row["pairs"] for row in ranked], dtype=np.int64),
    )


def check_rows(check: RuleOnSpark, *, rows: int) -> Violations:
    """The rows that violate a rule about one row; the first `rows` of them are listed."""

    violating = check.frame.where(passing(check.rule.left_tests, check.rule.left_needed))
    total = violating.count()
    listed = violating.orderBy("position").limit(rows).select("position").collect() if total and rows else []
    first = np.array([row["position"] for row in listed], dtype=np.int64)
    pairs = np.stack([first, np.full(len(first), -1, dtype=np.int64)], axis=1)
    return Violations(total, total, pairs, first, np.ones(len(first), dtype=np.int64))


def find_pairs(check: RuleOnSpark, limit: int) -> NDArray[np.int64]:
    """At most `limit` violating pairs, int64 (found, 2) of positions, in order. Which ones depends on Spark.

    Tasks stop at so many pairs, and no further round of tasks starts after they are found. Spark's first round has as
    many tasks as run at once, each later one four times as many.
    """
    spark = check.frame.sparkSession
    with _laid_out(check, full=False) as layout:
        sent = send_rows(layout, check.sizes)
        if sent is None:
            return np.empty((0, 2), dtype=np.int64)
        work = _work(check, layout)
        found = sent.mapInArrow(lambda batches: work.find(batches, limit), PAIRS)
        # the session is a clone of our own, and others may be taking at the same time: it stays set
        spark.conf.set("spark.sql.limit.initialNumPartitions", str(check.sizes.slots))
        rows = found.take(limit)
    pairs = np.array([(row["t"], row["u"]) for row in rows], dtype=np.int64).reshape(-1, 2)
    if check.one_way:
        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


@contextlib.contextmanager
def all_pairs(check: RuleOnSpark) -> Iterator[DataFrame]:
    """All violating pairs as an unordered frame (t, u) of positions, valid inside the block."""
    if check.rule.one_row:
        rows = check.frame.where(passing(check.rule.left_tests, check.rule.left_needed))
        yield rows.selectExpr("position as t", "cast(null as bigint) as u")
        return
    with _laid_out(check, full=False) as layout:
        sent = send_rows(layout, check.sizes)
        if sent is None:
            yield no_pairs(check)
        else:
            yield sent.mapInArrow(_work(check, layout).list_pairs, PAIRS)


def no_pairs(check: RuleOnSpark) -> DataFrame:
    """An empty list of pairs."""
    return frame_of(check.frame.sparkSession, [], PAIRS)


def with_values(pairs: DataFrame, values: Mapping[str, DataFrame], named: tuple[str, str] | None) -> DataFrame:
    """Add the values of their rows to pairs (t, u). `values`: a frame (position, ...) for "t", "u" or both.

    `named`: id and text of the rule, as additional first columns.
    """
    found = pairs
    for role, frame in values.items():
        found = found.join(frame.withColumnRenamed("position", f"{role}_"), f.col(role) == f.col(f"{role}_"), "left")
        found = found.drop(f"{role}_")
    if named is not None:
        found = found.select(f.lit(named[0]).alias("rule_id"), f.lit(named[1]).alias("rule"), "*")
    return found


def put_together(lists: Sequence[DataFrame], columns: Sequence[str]) -> DataFrame:
    """Combine lists of pairs, with these columns after rule, t and u; null where a list lacks one."""
    whole = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), lists)
    first = [c for c in ("rule_id", "rule", "t", "u") if c in whole.columns]
    return whole.select(*(f"`{c.replace('`', '``')}`" for c in [*first, *columns]))


def write_whole(frame: DataFrame, folder: str) -> None:
    """Write a frame as Parquet, completely or not at all: the folder appears only after all tasks have ended.

    Raises InputError if the folder exists. A store without renaming (S3) copies file by file instead.
    """
    spark = frame.sparkSession
    jvm = spark._jvm
    target = jvm.org.apache.hadoop.fs.Path(folder)
    files = target.getFileSystem(spark._jsc.hadoopConfiguration())
    if files.exists(target):
        raise InputError(message("this folder is there already", folder, hint="Name a new one, or remove it"))
    beside = jvm.org.apache.hadoop.fs.Path(target.getParent(), f".{target.getName()}.{uuid.uuid4().hex}.part")
    try:
        frame.write.parquet(beside.toString())
        if not files.rename(beside, target):
            raise InputError(message("the folder of pairs can't be put in its place", folder))
    finally:
        files.delete(beside, True)


@contextlib.contextmanager
def _laid_out(check: RuleOnSpark, *, full: bool) -> Iterator[Layout]:
    layout = lay_out(check.frame, check.columns, check.rule, check.sizes, full=full, seed=check.seed)
    try:
        yield layout
    finally:
        layout.close()


def _work(check: RuleOnSpark, layout: Layout) -> TileWork:
    two = tiles_both_ways(layout)
    return TileWork(check.kernels, check.rule, check.columns, two, check.one_way, check.device)


def _first_pairs(check: RuleOnSpark, left_rows: list[int], limit: int) -> NDArray[np.int64]:
    """The first of all pairs, given the rows with which they start (or more)."""
    if not left_rows or not limit:
        return np.empty((0, 2), dtype=np.int64)
    chosen = check.frame.where(f.col("position").isin(left_rows)).toArrow().sort_by("position")
    codes = np.stack([chosen[f"c{i}"].to_numpy() for i in range(check.columns)])
    positions = np.asarray(chosen["position"].to_numpy(), dtype=np.int64)
    work = FirstPairs(check.kernels, check.rule, positions, codes, check.one_way, limit, check.device)
    fitting = check.frame.where(passing(check.rule.right_tests, check.rule.right_needed))
    found = fitting.mapInArrow(work.list_pairs, PAIRS).orderBy("t", "u").limit(limit).collect()
    return np.array([(row["t"], row["u"]) for row in found], dtype=np.int64).reshape(-1, 2)
