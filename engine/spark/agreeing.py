"""Comparison, in Spark's tasks, of the pairs of rows that agree on some columns. Only distinct clues are collected.

Rows are sent to groups as for checking rules (`layout`, `routes`): by a shuffle on the columns; heavy groups are cut
into blocks, and pairs of blocks are tiles. Tiles are sized by their number of pairs, since every pair is compared. The
kernels of a job say what a task does with the rows of a tile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tuplewise.engine.spark.layout import Layout, PairRule, RowCondition, lay_out
from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.spark.resources import task_device
from tuplewise.engine.spark.routes import send_rows
from tuplewise.engine.spark.tasks import Batches, Codes, RowChoice, Tile, make_tile, spare_zip_reading, tiles_of
from tuplewise.engine.spark.tiles import LEFT, RIGHT, WAVES, TileSizes
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.join_types import EQUAL, Comparison

LEAST_PAIRS = 1 << 27
"""Pairs that a task compares in about the time that it takes to start: fewer are not worth a task of their own."""
POSITION = "position"
FIGURES = ("t", "u", "pairs", "nanoseconds")
COPIES = "copies"


@dataclass(frozen=True, slots=True)
class PairSizes(TileSizes):
    """Sizes for cutting groups if all their pairs are compared: the cost of a tile is its number of pairs.

    Attributes
    ----------
    pairs : unordered pairs that will be compared, as estimated
    least_pairs : pairs that are worth a task

    Examples
    --------
    >>> sizes = PairSizes(rows=10_000_000, slots=16, tile_rows=1_000_000, pairs=10**12)
    >>> sizes.heavy_rows, sizes.light_tiles(8_000_000), sizes.blocks(1_000_000)
    (204124, 48, 7)
    """

    pairs: int = 0
    least_pairs: int = LEAST_PAIRS

    @property
    def task_pairs(self) -> int:
        """Pairs for one task."""
        return max(self.least_pairs, -(-self.pairs // (WAVES * self.slots)))

    @property
    def heavy_rows(self) -> int:
        """Rows from which on a group is cut into blocks: its pairs are more than a task's share."""
        return min(self.tile_rows, isqrt(2 * self.task_pairs))

    def light_tiles(self, rows: int) -> int:
        """Tiles for so many rows of groups that stay whole."""
        tasks = max(-(-rows // self.least_rows), -(-self.pairs // self.least_pairs))
        return max(1, -(-rows // self.tile_rows), min(WAVES * self.slots, tasks))

    def blocks(self, group_rows: int) -> int:
        """Blocks of a group that is cut: two of them make the pairs of one task."""
        return max(1, -(-group_rows // min(self.tile_rows, isqrt(self.task_pairs))))


@dataclass(frozen=True, slots=True)
class SampleSizes(TileSizes):
    """Sizes for cutting groups if a sample of their pairs is compared: the cost of a task is its number of rows."""

    @property
    def heavy_rows(self) -> int:
        """Rows from which on a group is cut into blocks."""
        return min(self.tile_rows, max(self.least_rows, self.rows // (WAVES * self.slots)))

    def blocks(self, group_rows: int) -> int:
        """Blocks of a group that is cut."""
        return -(-group_rows // self.heavy_rows)


@dataclass(frozen=True, eq=False)
class TileClues:
    """The clues of a tile.

    Attributes
    ----------
    clues : uint64 (clues, words), distinct, of both orders of the pairs
    rows : int32 (clues, 2), for each clue a pair of rows of the tile that has it; (0, 2) if unknown
    pairs : unordered pairs that were compared
    """

    clues: NDArray[np.uint64]
    rows: NDArray[np.int32]
    pairs: int


@dataclass(frozen=True)
class ClueKernels:
    """The kernels of a job, over codes, int32 (columns, rows). They are functions of modules, so that they are sent to
    tasks by name.

    Attributes
    ----------
    compare : the clues of the pairs (t in left, u in right) that agree, by what is wanted
    sample : the clues of random pairs, at least one for each row (if there are two), and of pairs of copies; takes bool
        (rows,), whether a row has copies, and a seed
    """

    compare: Callable[[Codes, Any, RowChoice, RowChoice, Device], TileClues]
    sample: Callable[[Codes, NDArray[np.bool_], Any, Sequence[int], Device], TileClues]


@dataclass(frozen=True, eq=False)
class Collected:
    """The result of a comparison: distinct clues, uint64 (clues, words), with the positions of a pair of rows for each,
    int64 (clues, 2), -1 if unknown, and the number of tiles with that clue, int64 (clues,); the number of unordered
    pairs; and the total seconds of the kernels."""

    clues: NDArray[np.uint64]
    positions: NDArray[np.int64]
    tiles: NDArray[np.int64]
    pairs: int
    task_seconds: float


@dataclass(frozen=True)
class AgreeingPairs:
    """The agreeing pairs of one table.

    Attributes
    ----------
    frame : position (bigint) and codes c0, c1, ... (int), `columns` of them; null is -1
    words : 64-bit words of a clue
    wanted : an argument of the kernels that says what is compared
    null_agrees : whether null agrees with null; else rows with a null in the columns are left out
    """

    frame: DataFrame
    columns: int
    words: int
    kernels: ClueKernels
    wanted: Any
    null_agrees: bool
    device: str = "cpu"

    @property
    def schema(self) -> str:
        """The schema of what tasks return: a clue and the positions of a pair that has it; with the first clue of a
        tile, its pairs and time."""
        return ", ".join(f"{name} bigint" for name in (*self.word_names, *FIGURES))

    @property
    def word_names(self) -> list[str]:
        return [f"w{i}" for i in range(self.words)]


@dataclass(frozen=True)
class AgreementRule:
    """Agreement on some columns in the form of a rule, by which `layout.lay_out` sends rows to tiles."""

    comparisons: tuple[Comparison, ...]
    left_needed: tuple[int, ...]
    right_needed: tuple[int, ...]
    symmetric: bool
    left_tests: tuple[RowCondition, ...] = field(default=())
    right_tests: tuple[RowCondition, ...] = field(default=())
    one_row: bool = False

    @classmethod
    def of(cls, agreement: Sequence[tuple[int, int]], null_agrees: bool) -> AgreementRule:
        left, right = (() if null_agrees else tuple(sorted({pair[side] for pair in agreement})) for side in (0, 1))
        comparisons = tuple(Comparison(a, b, EQUAL) for a, b in agreement)
        return cls(comparisons, left, right, all(a == b for a, b in agreement))


@dataclass(frozen=True, eq=False)
class ClueWork:
    """The input of the tasks of one job.

    `others`: int32 (columns, 2), two different rows of the table (or its only one): partners for a single row.
    """

    kernels: ClueKernels
    wanted: Any
    columns: int
    device: str
    seed: int = 0
    others: NDArray[np.int32] | None = None

    def compare(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The clues of each tile: `AgreeingPairs.schema`."""
        spare_zip_reading()
        for tile in tiles_of(batches, self.columns):
            yield self._compared(tile)

    def compare_known(
        self, batches: Batches, positions: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> Iterator[pa.RecordBatch]:
        """The clues of some known rows, int64 (rows,) and int32 (columns, rows), with all rows of each batch."""
        spare_zip_reading()
        for batch in batches:
            came, own = _rows_of(batch, self.columns)
            sides = np.repeat(np.array([LEFT, RIGHT], dtype=np.int8), [len(positions), len(came)])
            given = np.concatenate([codes, own], axis=1)
            yield self._compared(make_tile(0, np.concatenate([positions, came]), sides, given))

    def sample(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The clues of random pairs of rows that lie in one batch. Rows (codes, copies) lie at random already."""
        spare_zip_reading()
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        for number, batch in enumerate(batches):
            start = time.perf_counter_ns()
            positions, codes = _rows_of(batch, self.columns)
            repeated = batch.column(COPIES).to_numpy(zero_copy_only=False) > 1
            if len(batch) == 1 and self.others is not None:
                another = self.others[:, (self.others != codes).any(axis=0)][:, :1]
                codes = np.concatenate([codes, another], axis=1)
                repeated = np.concatenate([repeated, np.zeros(another.shape[1], dtype=np.bool_)])
                positions = np.repeat(positions, codes.shape[1])
            seed = (self.seed, partition, number)
            found = self.kernels.sample(codes, repeated, self.wanted, seed, task_device(self.device))
            yield _batch(found, positions, time.perf_counter_ns() - start)

    def _compared(self, tile: Tile) -> pa.RecordBatch:
        start = time.perf_counter_ns()
        found = self.kernels.compare(tile.codes, self.wanted, tile.left, tile.right, task_device(self.device))
        return _batch(found, tile.positions, time.perf_counter_ns() - start)


def _rows_of(rows: pa.RecordBatch | pa.Table, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Positions and codes, int32 (columns, rows)."""
    codes = np.empty((columns, len(rows)), dtype=np.int32)
    for i in range(columns):
        codes[i] = rows.column(f"c{i}").to_numpy(zero_copy_only=False)
    return rows.column(POSITION).to_numpy(zero_copy_only=False), codes


def _batch(found: TileClues, positions: NDArray[np.int64], nanoseconds: int) -> pa.RecordBatch:
    """Clues as signed integers for Spark; the first one carries the figures of the tile (no pairs: no clues)."""
    figures = np.zeros((len(FIGURES), len(found.clues)), dtype=np.int64)
    figures[:2] = positions[found.rows].T if len(found.rows) else -1
    figures[2:, :1] = [[found.pairs], [nanoseconds]]
    words = np.ascontiguousarray(found.clues.T).view(np.int64)
    names = [*(f"w{i}" for i in range(len(words))), *FIGURES]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in (*words, *figures)], names=names)


def distinct_rows(frame: DataFrame, columns: int) -> DataFrame:
    """Collapse equal rows into one with their lowest position, codes, and their number (`copies`). One shuffle."""
    codes = [f"c{i}" for i in range(columns)]
    if not codes:
        return frame.select(POSITION, f.lit(1).cast("bigint").alias(COPIES))
    found = frame.groupBy(*codes).agg(f.min(POSITION).alias(POSITION), f.count("*").alias(COPIES))
    return found.select(POSITION, *codes, COPIES)


def some_rows(frame: DataFrame, share: float, seed: int) -> DataFrame:
    """A random share of the rows of `distinct_rows`, and all rows with several copies."""
    single = frame.where(f.col(COPIES) == 1).sample(share, seed)
    return single.unionAll(frame.where(f.col(COPIES) > 1))


def sample_pairs(job: AgreeingPairs, others: NDArray[np.int32] | None, seed: int) -> Collected:
    """Compare random pairs of the rows of `distinct_rows`, at least one for each row, and pairs of copies. One job."""
    work = ClueWork(job.kernels, job.wanted, job.columns, job.device, seed, others)
    chosen = job.frame.select(POSITION, *(f"c{i}" for i in range(job.columns)), COPIES)
    return _collected(job, chosen.mapInArrow(work.sample, job.schema))


def compare_agreeing(
    job: AgreeingPairs, agreement: Sequence[tuple[int, int]], sizes: PairSizes | SampleSizes
) -> Collected:
    """Compare all pairs with t.left == u.right for all of `agreement`, and the exchanged pairs.

    With `SampleSizes` a block of a group that is cut is only compared with itself. A pair that agrees both ways counts
    twice, unless each column is compared with itself.

    Notes
    -----
    Jobs: one for the sizes of groups, and one for the figures of blocks if groups are heavy (`layout.lay_out`); then
    the comparison, whose clues are made distinct in tasks, in Spark, and here. A repeated task returns the same clues;
    nothing is counted outside its output.
    """
    rule = AgreementRule.of(agreement, job.null_agrees)
    layout = lay_out(job.frame, job.columns, rule, sizes, full=False)
    if isinstance(sizes, SampleSizes):
        itself = layout.tiles.left == layout.tiles.right
        layout.tiles = replace(layout.tiles, left=layout.tiles.left[itself], right=layout.tiles.right[itself])
    return _compare_tiles(job, layout, sizes)


def _compare_tiles(job: AgreeingPairs, layout: Layout, sizes: TileSizes) -> Collected:
    with closing(layout):
        sent = send_rows(layout, sizes) if layout.light_tiles > 0 or len(layout.tiles) else None
        if sent is None:
            nothing = np.zeros((0, 2), dtype=np.int64)
            return Collected(np.zeros((0, job.words), dtype=np.uint64), nothing, nothing[:, 0], 0, 0.0)
        work = ClueWork(job.kernels, job.wanted, job.columns, job.device)
        return _collected(job, sent.mapInArrow(work.compare, job.schema))


def compare_violating(job: AgreeingPairs, rule: PairRule, sizes: TileSizes) -> Collected:
    """Compare the pairs that violate a rule over these columns, as the kernel finds them in a tile, and the exchanged
    pairs. Rows are sent to tiles as for checking."""
    layout = lay_out(job.frame, job.columns, rule, sizes, full=False)
    return _compare_tiles(job, layout, sizes)


def compare_known(job: AgreeingPairs, positions: NDArray[np.int64]) -> Collected:
    """Compare the rows at some positions with all rows, without moving these. Two jobs."""
    positions, codes = codes_at(job.frame, job.columns, positions)
    work = ClueWork(job.kernels, job.wanted, job.columns, job.device)
    chosen = job.frame.select(POSITION, *(f"c{i}" for i in range(job.columns)))
    compared = chosen.mapInArrow(lambda batches: work.compare_known(batches, positions, codes), job.schema)
    return _collected(job, compared)


def without_rows(frame: DataFrame, positions: NDArray[np.int64]) -> DataFrame:
    """The rows of a frame except those at some positions."""
    return frame.join(_known_positions(frame, positions), POSITION, "left_anti")


def _known_positions(frame: DataFrame, positions: NDArray[np.int64]) -> DataFrame:
    return f.broadcast(frame_of(frame.sparkSession, pa.table({POSITION: np.unique(positions)})))


def _collected(job: AgreeingPairs, found: DataFrame) -> Collected:
    """Collect each clue once, with any of the pairs that have it."""
    kept = [f.first(name).alias(name) for name in FIGURES[:2]] + [f.sum(name).alias(name) for name in FIGURES[2:]]
    table = found.groupBy(*job.word_names).agg(*kept, f.count("*").alias("tiles")).toArrow()
    words, rows = (
        np.stack([np.asarray(table[name].to_numpy(), dtype=np.int64) for name in names], axis=1)
        for names in (job.word_names, FIGURES[:2])
    )
    pairs, nanoseconds = (sum(table[name].to_pylist()) for name in FIGURES[2:])
    tiles = np.asarray(table["tiles"].to_numpy(), dtype=np.int64)
    return Collected(np.ascontiguousarray(words).view(np.uint64), rows, tiles, int(pairs), nanoseconds / 1e9)


def sampled_rows(frame: DataFrame, columns: int, rows: int, wanted: int, seed: int) -> NDArray[np.int32]:
    """The codes, int32 (columns, rows), of a sample of about `wanted` rows, at least two, in order of position."""
    named = frame.select(POSITION, *(f"c{i}" for i in range(columns)))
    found = _codes_of(named if rows <= wanted else named.sample(wanted / rows, seed), columns)[1]
    return found if found.shape[1] > 1 or rows <= wanted else _codes_of(named.limit(2), columns)[1]


def codes_at(
    frame: DataFrame, columns: int, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Positions (ascending, each once) and codes, int32 (columns, rows), of the rows at some positions."""
    chosen = frame.join(_known_positions(frame, positions), POSITION, "left_semi")
    return _codes_of(chosen.select(POSITION, *(f"c{i}" for i in range(columns))), columns)


def _codes_of(frame: DataFrame, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    return _rows_of(frame.toArrow().sort_by(POSITION), columns)
