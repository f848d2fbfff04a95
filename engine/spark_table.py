"""The table of `engine.loop` for rows in Spark: tasks compare and sample pairs.

It is the counterpart of `engine.local_table`: shuffles on column sets form the groups, and tasks return distinct clues
only. Subclasses for each kind of rule check whether rules hold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work, agreeing, pairs_of_rows, pieces, start
from tuplewise.engine.local_table import COMMON_PART, ESTIMATE_ROWS, count_agreeing
from tuplewise.engine.loop import SAMPLED_PAIRS_A_ROW, Agreement, Clues, ComparedPairs
from tuplewise.engine.options import Nulls
from tuplewise.engine.run import TIME_LIMIT
from tuplewise.engine.spark import agreeing as pairs_on_spark
from tuplewise.engine.spark import jobs, run
from tuplewise.engine.spark.agreeing import (
    LEAST_PAIRS,
    AgreeingPairs,
    ClueKernels,
    Collected,
    PairSizes,
    SampleSizes,
    TileClues,
)
from tuplewise.engine.spark.tasks import RowChoice
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.refine import refine_equal
from tuplewise.gpu_kernels.words import ClueLayout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NO_ROWS = np.zeros((0, 2), dtype=np.int32)


@dataclass(frozen=True, eq=False)
class PairsToCompare:
    """What the tasks of a job compare: the clue, the null rule; what pairs agree on, and of how many rows a group is
    cut whose pairs are a sample; None: all pairs are compared."""

    layout: ClueLayout
    nulls: Nulls
    agreement: Agreement = ()
    group_rows: int | None = None


def compare_tile(
    codes: NDArray[np.int32], wanted: PairsToCompare, left: RowChoice, right: RowChoice, device: Device | str
) -> TileClues:
    """Clues of the agreeing pairs of a tile; see `engine.spark.agreeing.ClueKernels`. One thread: tasks are many."""
    picked = pick_device(device)
    everything = np.arange(codes.shape[1], dtype=np.int32)
    pairs = all_rows(everything) if left is None or right is None else all_rows(left, right)
    pairs = refine_equal(pairs, codes, wanted.agreement, device=picked, threads=1)
    if not pairs.clusters:
        return TileClues(np.zeros((0, wanted.layout.words), dtype=np.uint64), NO_ROWS, 0)
    if wanted.group_rows is not None:
        pairs = pieces(pairs, wanted.group_rows)
    used, pairs = _narrowed(pairs, codes.shape[1])
    rows = lay_out(np.ascontiguousarray(codes[:, used]), wanted.layout, nulls=wanted.nulls, device=picked, threads=1)
    found = rows.within(pairs)
    return TileClues(found.clues, used[found.rows], pairs_of_rows(pairs, len(used)))


def sample_rows(
    codes: NDArray[np.int32],
    repeated: NDArray[np.bool_],
    wanted: PairsToCompare,
    seed: Sequence[int],
    device: Device | str,
) -> TileClues:
    """Clues of all pairs inside random groups of rows; see `engine.spark.agreeing.ClueKernels`."""
    assert wanted.group_rows is not None
    rows = lay_out(codes, wanted.layout, nulls=wanted.nulls, device=device, threads=1)
    order = np.random.default_rng(seed).permutation(codes.shape[1]).astype(np.int32)
    groups = max(1, -(-len(order) // wanted.group_rows))
    offsets = np.linspace(0, len(order), groups + 1).astype(np.int64)
    twice = np.flatnonzero(repeated).astype(np.int32)
    own = rows.of_pairs(twice, twice)
    found = rows.within(ClusterPairs(order, offsets, order, offsets))
    all_rows_known = len(own.rows) + len(found.rows) == len(own.clues) + len(found.clues)
    return TileClues(
        np.concatenate([own.clues, found.clues]),
        np.concatenate([own.rows, found.rows]) if all_rows_known else NO_ROWS,
        found.ordered_pairs // 2,
    )


KERNELS = ClueKernels(compare_tile, sample_rows)


def _narrowed(pairs: ClusterPairs, rows: int) -> tuple[NDArray[np.int32], ClusterPairs]:
    """The rows that are in cluster pairs, and the pairs with rows numbered among them. Most rows agree with no other
    on a selective column set: they need not be laid out."""
    present = np.zeros(rows, dtype=np.bool_)
    present[pairs.left] = True
    present[pairs.right] = True
    place = (np.cumsum(present) - 1).astype(np.int32)
    left = place[pairs.left]
    right = left if pairs.reflexive else place[pairs.right]
    return np.flatnonzero(present).astype(np.int32), ClusterPairs(left, pairs.left_offsets, right, pairs.right_offsets)


@contextmanager
def within_limit(spark: SparkSession, deadline: float | None) -> Iterator[None]:
    """Cancel the jobs of the block at the deadline, and raise LimitReached."""
    try:
        with jobs.until(spark, deadline):
            yield
    except TimeoutError as error:
        raise LimitReached(TIME_LIMIT) from error


class SparkTable:
    """A table of rows in Spark. Equal rows are collapsed. Close it after use.

    Parameters
    ----------
    table : all its columns are compared
    layout : the comparisons of a clue
    pairs_a_row : pairs of a sample for each sampled row
    sampled_rows : approximate number of rows of a sample, beside those with copies; None: all rows
    estimate_rows : approximate number of rows for estimates
    least_pairs : pairs that are worth a task

    Attributes
    ----------
    rows : distinct rows
    pairs_a_row : of a sample

    Notes
    -----
    Construction takes one shuffle of all codes. Only the codes of the rows for estimates, clues, and witnesses are
    collected.
    """

    def __init__(
        self,
        table: EncodedFrame,
        layout: ClueLayout,
        *,
        nulls: Nulls,
        seed: int = 0,
        device: str = "auto",
        deadline: float | None = None,
        pairs_a_row: int = SAMPLED_PAIRS_A_ROW,
        sampled_rows: int | None = None,
        estimate_rows: int = ESTIMATE_ROWS,
        least_pairs: int = LEAST_PAIRS,
    ) -> None:
        self._layout, self._nulls, self._seed = layout, nulls, seed
        self._device, self._deadline = device, deadline
        self.pairs_a_row = pairs_a_row
        self._most_sampled, self._estimate_rows, self._least_pairs = sampled_rows, estimate_rows, least_pairs
        self._columns = len(table.header.columns)
        self._spark = table.frame.sparkSession
        self._distinct = table
        started = time.perf_counter()
        frame = pairs_on_spark.distinct_rows(table.frame, self._columns).persist()
        try:
            with self._within_time():
                rows = frame.count()
            self._collapsing_seconds = time.perf_counter() - started
            self._take(frame, rows)
        except BaseException:
            frame.unpersist()
            raise

    def _take(self, frame: DataFrame, rows: int) -> None:
        """Work on so many different rows from now on, having met no clue."""
        self.rows = rows
        self._distinct = replace(self._distinct, frame=frame, rows=rows)
        self._cut = run.cluster_sizes(self._spark, rows, self._columns)
        self._known = np.zeros((0, self._layout.words), dtype=np.uint64)
        self._row_numbers: dict[int, int] = {}
        with self._within_time():
            self._sample_codes = pairs_on_spark.sampled_rows(
                frame, self._columns, rows, self._estimate_rows, self._seed
            )
        self._sample_codes_by_row = np.ascontiguousarray(self._sample_codes.T)

    def close(self) -> None:
        """Let Spark drop what this holds."""
        self._distinct.frame.unpersist()

    def clock(self) -> float:
        """Seconds of time: the work is in other processes."""
        return time.perf_counter()

    def equal_rows(self) -> Clues:
        """The clues of equal rows if all rows are equal; otherwise none, since `sample` returns them."""
        only = np.zeros(int(self.rows == 1), dtype=np.int64)
        return self._clues_of(self._sample_codes, only, only)

    def sample(self) -> ComparedPairs:
        """Compare all pairs inside random groups of rows, and pairs of equal rows."""
        started = time.perf_counter()
        share = self._sampled_share
        with self._within_time():
            others = self._sample_codes[:, [0, -1]] if self.rows else None
            job = self._job(sampled=True)
            if share < 1:
                job = replace(job, frame=pairs_on_spark.some_rows(job.frame, share, self._seed))
            found = pairs_on_spark.sample_pairs(job, others, self._seed)
        return self._compared(found, started, self._collapsing_seconds, sampled=True)

    def compare_rows(self, rows: NDArray[np.int32]) -> ComparedPairs:
        """Compare rows that a `Compared` has reported with all rows, in tasks."""
        started = time.perf_counter()
        with self._within_time():
            found = pairs_on_spark.compare_known(self._job(), self._positions_of(rows))
        return self._compared(found, started)

    def without(self, rows: NDArray[np.int32]) -> Self:
        """The table without some of its reported rows. It owns no resources: close the original one."""
        rest = copy(self)
        frame = pairs_on_spark.without_rows(self._distinct.frame, self._positions_of(rows))
        rest._take(frame, self.rows - len(rows))
        rest._collapsing_seconds = 0.0
        return rest

    def estimate_pairs(self, agreement: Agreement) -> float:
        """The estimated number of pairs that agree, scaled from the sample of rows. One is added to the pairs found
        there, so that no estimate is zero."""
        sampled = self._sample_codes.shape[1]
        if all(left == right for left, right in agreement):
            columns = np.array([left for left, _ in agreement], dtype=np.int64)
            found = float(count_agreeing(self._sample_codes_by_row, columns, self._nulls == "value"))
        else:
            work = Work(self._sample_codes, pick_device("cpu"))
            found = float(pairs_of_rows(agreeing(work, start(work), agreement, self._nulls == "value"), sampled))
        if sampled < self.rows:
            found = (found + 1) * (self.rows * (self.rows - 1) / max(1, sampled * (sampled - 1)))
        return found

    def sample_agreeing(self, agreement: Agreement) -> ComparedPairs:
        """Pairs inside pieces of the groups that agree, in tasks."""
        cut, share = self._cut, self._sampled_share
        rows = max(1, int(share * self.rows))
        sizes = SampleSizes(rows, cut.slots, cut.tile_rows, cut.least_rows, cut.most_partitions)
        job = self._job(agreement, sampled=True)
        if share < 1:
            job = replace(job, frame=job.frame.sample(share, self._seed))
        return self._compare(job, agreement, sizes, sampled=True)

    def compare_agreeing(self, agreement: Agreement) -> ComparedPairs:
        """All pairs that agree, in tasks."""
        cut, pairs = self._cut, int(self.estimate_pairs(agreement))
        sizes = PairSizes(
            self.rows, cut.slots, cut.tile_rows, cut.least_rows, cut.most_partitions, pairs, self._least_pairs
        )
        return self._compare(self._job(agreement), agreement, sizes, sampled=False)

    def compare_each(self, agreements: Sequence[Agreement]) -> list[ComparedPairs]:
        """Compare one after the other: each comparison has as many tasks as there are slots."""
        return [self.compare_agreeing(agreement) for agreement in agreements]

    def _compare(
        self, job: AgreeingPairs, agreement: Agreement, sizes: PairSizes | SampleSizes, *, sampled: bool
    ) -> ComparedPairs:
        started = time.perf_counter()
        with self._within_time():
            found = pairs_on_spark.compare_agreeing(job, agreement, sizes)
        return self._compared(found, started, sampled=sampled)

    def _codes_at(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Positions (ascending, each once) and codes, int32 (columns, rows), of rows. One job."""
        return pairs_on_spark.codes_at(self._distinct.frame, self._columns, positions)

    def _clues_of(self, codes: NDArray[np.int32], t: NDArray[np.int64], u: NDArray[np.int64]) -> Clues:
        """The clues of pairs of rows and of the exchanged pairs, which become known."""
        if not len(t):
            return np.zeros((0, self._layout.words), dtype=np.uint64)
        used, places = np.unique(np.concatenate([t, u]), return_inverse=True)
        rows = lay_out(np.ascontiguousarray(codes[:, used]), self._layout, nulls=self._nulls, device="cpu")
        clues = rows.of_pairs(*places.astype(np.int32).reshape(2, -1), counting=True).clues
        self._new(clues)
        return clues

    def _compared(
        self, found: Collected, started: float, before_seconds: float = 0.0, *, sampled: bool = False
    ) -> ComparedPairs:
        """Kernels' seconds count as comparing, all else (shuffles, starting jobs) as grouping.

        Of a sample only the rows of rare clues are told: those that one tile met, where another was met by as many as
        COMMON_PART.
        """
        new = self._new(found.clues)
        told = new
        if sampled:
            told = new[found.tiles[new] == 1] if found.tiles.max(initial=0) >= COMMON_PART else new[:0]
        rows = self._numbers_of(found.positions[told])
        seconds = time.perf_counter() - started
        comparing = min(seconds, found.task_seconds / self._cut.slots)
        return ComparedPairs(found.clues[new], rows, found.pairs, before_seconds + seconds - comparing, comparing)

    def _new(self, clues: Clues) -> NDArray[np.int64]:
        """The distinct clues that were not known before, as a mask; they become known."""
        both = np.concatenate([self._known, clues])
        order = np.lexsort(both.T[::-1])
        begins = np.ones(len(both), dtype=np.bool_)
        begins[1:] = (both[order[1:]] != both[order[:-1]]).any(axis=1)
        first = order[begins]  # the sort is stable: of two alike, the known one comes first
        self._known = np.ascontiguousarray(both[first])
        return first[first >= len(both) - len(clues)] - (len(both) - len(clues))

    def _numbers_of(self, positions: NDArray[np.int64]) -> NDArray[np.int32]:
        """Small numbers of the rows at some positions, int32 in their shape, the same in later calls; none where a
        position is unknown."""
        if (positions < 0).any():
            return NO_ROWS
        known = self._row_numbers
        numbers = [known.setdefault(position, len(known)) for position in positions.ravel().tolist()]
        return np.array(numbers, dtype=np.int32).reshape(-1, 2)

    def _positions_of(self, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        return np.array(list(self._row_numbers), dtype=np.int64)[rows]

    def _within_time(self) -> AbstractContextManager[None]:
        return within_limit(self._spark, self._deadline)

    @property
    def _sampled_share(self) -> float:
        """Share of the rows that samples are drawn from."""
        return 1.0 if self._most_sampled is None else min(1.0, self._most_sampled / max(1, self.rows))

    def _job(self, agreement: Agreement = (), *, sampled: bool = False) -> AgreeingPairs:
        wanted = PairsToCompare(self._layout, self._nulls, agreement, 2 * self.pairs_a_row + 1 if sampled else None)
        return AgreeingPairs(
            self._distinct.frame, self._columns, self._layout.words, KERNELS, wanted, self._nulls == "value",
            self._device,
        )  # fmt: skip
