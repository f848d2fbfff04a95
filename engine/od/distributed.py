"""Discovery of keys, functional and order dependencies of tables beyond one machine: those found in-process.

Tasks validate contexts; comparing and sampling are those of every discovery (`engine.spark_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work, agreeing, start
from tuplewise.engine.loop import Clues
from tuplewise.engine.od.dependency import ASCENDING, Dependencies, Mask, Targets
from tuplewise.engine.od.found import Discovery, FoundDependencies
from tuplewise.engine.od.remarks import discovery_of
from tuplewise.engine.od.search import PAIRS_A_ROW, SAMPLED_ROWS, clue_layout, find
from tuplewise.engine.options import Nulls
from tuplewise.engine.placement import bytes_for_codes
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.spark import agreeing as pairs_on_spark
from tuplewise.engine.spark import jobs
from tuplewise.engine.spark.orders import (
    OrderChecks,
    OrdersOnSpark,
    SharedRows,
    check_shared,
    cut_checks,
    laid_out,
)
from tuplewise.engine.spark.resources import devices_of_tasks
from tuplewise.engine.spark.tiles import TileSizes
from tuplewise.engine.spark_table import NO_ROWS, SparkTable
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.words import as_flags, mask_words

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

Violations = NDArray[np.int64]  # (violations, 3): check, positions t and u
CODE_BYTES = 4


class ContextsOnSpark:
    """Validation of dependencies on a frame that is too large for one task.

    Contexts that share a column are validated with one shuffle by it. Those whose classes are too large for a task take
    one sort in Spark for each left column.

    Parameters
    ----------
    frame : position (bigint) and codes c0, c1, ... (int); null is -1
    sample_codes : int32 (columns, rows), of the rows that sizes of classes are estimated from
    rows : of the frame
    """

    def __init__(
        self, frame: DataFrame, sample_codes: NDArray[np.int32], rows: int, nulls: Nulls, sizes: TileSizes, device: str
    ) -> None:
        self._frame, self._sample_codes, self._rows = frame, sample_codes, rows
        self._nulls, self._sizes, self._device = nulls, sizes, device
        self._largest: dict[tuple[int, ...], float] = {}

    def violations(self, checks: OrderChecks, limit: int) -> Violations:
        """The violating pairs that tasks return, the first `limit` of each check by position."""
        work = self._jobs(OrdersOnSpark(self._frame, self._nulls, self._sizes, limit, self._device), checks)
        found = np.concatenate([np.zeros((0, 3), dtype=np.int64), *jobs.at_once(self._frame.sparkSession, work)])
        return _first_of_each(found, limit)

    def _jobs(self, table: OrdersOnSpark, checks: OrderChecks) -> list[Callable[[], Violations]]:
        """What decides all checks: one shuffle for the contexts that have a column by which no class is too large, the
        column of most contexts first; one for each other context without such classes; else a sort."""
        work: list[Callable[[], Violations]] = []
        open_ = np.ones(len(checks.contexts), dtype=np.bool_)
        small = np.array([self._stays_whole([c]) for c in range(len(self._sample_codes))], dtype=np.bool_)
        while open_.any():
            served = np.count_nonzero(checks.contexts[open_] & small, axis=0)
            column = int(np.argmax(served)) if len(served) else 0
            if not served.any():
                break
            having = open_ & checks.contexts[:, column]
            work.append(partial(table.check_classes, checks.take(having[checks.which]), [column]))
            open_ &= ~having
        for context in np.flatnonzero(open_):
            own = checks.take(np.flatnonzero(checks.which == context))
            columns = np.flatnonzero(checks.contexts[context]).tolist()
            if columns and self._stays_whole(columns):
                work.append(partial(table.check_classes, own, columns))
            else:
                for left in np.unique(own.left):
                    work.append(partial(table.check_sorted, own.take(own.left == left)))
        return work

    def _stays_whole(self, columns: Sequence[int]) -> bool:
        """Whether no class by these columns is too large for one task, or large enough to delay the others."""
        key = tuple(columns)
        if key not in self._largest:
            work = Work(self._sample_codes, pick_device("cpu"))
            classes = agreeing(work, start(work), [(c, c) for c in columns], self._nulls == "value")
            sampled = self._sample_codes.shape[1]
            largest = int(np.diff(classes.left_offsets).max(initial=1))
            self._largest[key] = largest * self._rows / max(1, sampled)
        return self._largest[key] <= self._sizes.heavy_rows


class SparkContextTable(SparkTable):
    """Rows in Spark, put in classes by contexts (`candidates.CheckingTable`). Close it after use.

    Notes
    -----
    A sample of rows in this process refutes most violated contexts. The others are validated in tasks. Where
    the memory of a task has room for all codes, every worker gets them, once, and tasks share contexts; beyond that, as
    `ContextsOnSpark` says.
    """

    def _take(self, frame: DataFrame, rows: int) -> None:
        super()._take(frame, rows)
        self._partitioned = laid_out(self._sample_codes, self._nulls, "cpu")
        self._contexts = ContextsOnSpark(frame, self._sample_codes, rows, self._nulls, self._cut, self._device)
        self._shared: Broadcast[SharedRows] | None = None

    def close(self) -> None:
        super().close()
        if self._shared is not None:
            self._shared.destroy()

    def violating_pairs(
        self, contexts: Mask, which: NDArray[np.int32], wanted: Dependencies, limit: int
    ) -> tuple[NDArray[np.bool_], Clues, NDArray[np.int32]]:
        """See `candidates.CheckingTable`; the pairs themselves are not told."""
        numbers = np.arange(len(which), dtype=np.int64)
        flags = as_flags(contexts, self._columns)
        checks = OrderChecks(flags, which, wanted.kind, wanted.left, wanted.right, numbers)
        holds = np.ones(len(which), dtype=np.bool_)
        violated, pairs = checks.violated_in(self._partitioned, limit)
        holds[violated] = False
        clues = [self._clues_of(self._sample_codes, *pairs.astype(np.int64).T)]
        if holds.any() and self._sample_codes.shape[1] < self.rows:
            with self._within_time():
                violated, found = self._violating_in_spark(checks.take(holds), limit)
            holds[violated] = False
            clues.append(found)
        return holds, np.concatenate(clues), NO_ROWS

    def _violating_in_spark(self, checks: OrderChecks, limit: int) -> tuple[NDArray[np.int64], Clues]:
        """Checks that are violated, and clues."""
        if self._fits_a_task:
            return self._violating_in_shared(checks, limit)
        found = self._contexts.violations(checks, limit)
        if not len(found):
            return found[:, 0], self._clues_of(self._sample_codes, found[:, 1], found[:, 2])
        positions, codes = self._codes_at(found[:, 1:].ravel())
        return found[:, 0], self._clues_of(codes, *np.searchsorted(positions, found[:, 1:]).T)

    @property
    def _fits_a_task(self) -> bool:
        """Whether a task has room for all codes, and this process, through which they are sent."""
        here = CODE_BYTES * self.rows * self._columns <= bytes_for_codes()
        return here and self.rows <= self._cut.tile_rows

    def _violating_in_shared(self, checks: OrderChecks, limit: int) -> tuple[NDArray[np.int64], Clues]:
        if self._shared is None:
            codes = pairs_on_spark.sampled_rows(self._distinct.frame, self._columns, self.rows, self.rows, self._seed)
            self._shared = self._spark.sparkContext.broadcast(SharedRows(codes, self._layout, self._nulls))
        worth = -(-len(checks) * self.rows // self._cut.least_rows)
        distinct = [column.distinct for column in self._distinct.header.columns]
        parts = cut_checks(checks, distinct, min(self._cut.slots, max(1, worth)))
        violated, clues = check_shared(self._spark, self._shared, parts, limit, self._layout.words, self._device)
        self._new(clues)
        return violated, clues


def _first_of_each(found: Violations, limit: int) -> Violations:
    """At most `limit` of each check, the first ones by position."""
    found = np.unique(found, axis=0)
    begins = np.searchsorted(found[:, 0], found[:, 0])
    return found[np.arange(len(found)) - begins < limit]


def discover_on_spark(
    table: EncodedFrame, targets: Targets, options: Any, run: Run
) -> Discovery:
    """The minimal dependencies of a table of two rows or more in Spark; see `discover.discover`.

    Notes
    -----
    Its relation holds no rows (`table_rows` says how many there are). What comes here: codes of some rows, clues.
    Cost beside that of `search`: a shuffle of all codes to collapse equal rows, and one of those rows for each column
    set; contexts as `SparkContextTable` says.
    """
    relation = replace(table.excerpt(np.zeros(0, dtype=np.int64)), table_rows=table.rows)
    clock = Clock()
    device, reason = devices_of_tasks(table.frame.sparkSession, options.device)
    found = _find(table, targets, options, run, clock)
    asked = "asked for" if options.algorithm == "hybrid" else "auto: what Spark's tasks do"
    why = f"{asked}: compares pairs that agree on chosen column sets, validates the rest"
    return discovery_of(relation, options, found, "hybrid", why, device, reason, clock)


def _find(table: EncodedFrame, targets: Targets, options: Any, run: Run, clock: Clock) -> FoundDependencies:
    columns = len(table.header.columns)
    layout = clue_layout(columns, ordered=bool(np.any(targets.kind >= ASCENDING)))
    try:
        rows = SparkContextTable(
            table, layout, nulls=options.nulls, seed=options.seed, device=options.device, deadline=run.deadline,
            pairs_a_row=PAIRS_A_ROW, sampled_rows=SAMPLED_ROWS,
        )  # fmt: skip
    except LimitReached as limit:
        none = np.zeros(0, dtype=np.int32)
        nothing = Dependencies(np.zeros((0, mask_words(columns)), dtype=np.uint64), none.astype(np.int8), none, none)
        return FoundDependencies(nothing, len(targets), {}, str(limit))
    with closing(rows):
        return find(
            table.header.codes, targets, table.header.column_names, nulls=options.nulls, device=pick_device("cpu"),
            max_context=options.max_context, seed=options.seed, run=run, lap=clock.lap,
            table=rows, rows=table.rows,
        )  # fmt: skip
