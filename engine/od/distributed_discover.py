"""Discovery of keys, functional and order dependencies of tables beyond one machine: those found in-process."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.od.dependency import ASCENDING, Dependencies, Targets, context_words
from tuplewise.engine.od.discover import STAGE, discover
from tuplewise.engine.od.distributed import SparkContextTable
from tuplewise.engine.od.found import Discovery, Found
from tuplewise.engine.od.remarks import complete_context, notes_on, without_idle
from tuplewise.engine.od.search import PAIRS_A_ROW, SAMPLED_ROWS, clue_layout, find
from tuplewise.engine.options import DependencyOptions, FdDiscoverOptions, Nulls, OdDiscoverOptions
from tuplewise.engine.spark.resources import devices_of_tasks
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.spark_encoded import encode_for
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.engine.watch import Clock, Progress, Step, Watch, silent
from tuplewise.gpu_kernels.device import pick_device


def discover_in_spark(
    opened: TableInSpark,
    options: DependencyOptions,
    *,
    step: Step = silent,
    progress: Progress | None = None,
    deadline: float | None = None,
) -> Discovery:
    """The minimal dependencies that options are about of a table whose rows stay in Spark; see `discover.discover`."""
    table = encode_for("searched", opened, opened.column_names, step)
    try:
        return discover_on_spark(table, options, progress=progress, deadline=deadline)
    finally:
        table.close()


def discover_on_spark(
    table: EncodedFrame,
    options: DependencyOptions,
    *,
    progress: Progress | None = None,
    deadline: float | None = None,
) -> Discovery:
    """The minimal dependencies of a table in Spark; see `discover.discover`.

    Notes
    -----
    Its relation holds no rows (`table_rows` says how many there are). What comes here: codes of some rows, clues.
    Cost beside that of `search`: a shuffle of all codes to collapse equal rows, and one of those rows for each column
    set; contexts as `distributed.SparkContextTable` says.
    """
    if deadline is None and options.time_limit is not None:
        deadline = time.monotonic() + options.time_limit
    targets, nulls = targets_of(options, len(table.header.columns))
    if table.rows < 2:
        few = table.excerpt(np.arange(table.rows))
        here = discover(few, targets, replace(options, run_on="driver"), nulls, progress, deadline)
        return replace(here, options=options)
    relation = replace(table.excerpt(np.zeros(0, dtype=np.int64)), table_rows=table.rows)
    clock, watch = Clock(), Watch(progress, options.memory_limit)
    device, reason = devices_of_tasks(table.frame.sparkSession, options.device)
    found = without_idle(relation, options, _find(table, targets, nulls, options, deadline, watch, clock))
    asked = "asked for" if options.algorithm == "hybrid" else "auto: what Spark's tasks do"
    return Discovery(
        relation=relation,
        options=options,
        dependencies=found.dependencies,
        removals=None,
        algorithm="hybrid",
        algorithm_reason=f"{asked}: compares pairs that agree on chosen column sets, validates the rest",
        device=device,
        device_reason=reason,
        timings_seconds=clock.seconds,
        partial=found.reached is not None,
        notes=notes_on(relation, options, found),
        search=found.search,
        complete_context=complete_context(options, found),
    )


def targets_of(options: DependencyOptions, columns: int) -> tuple[Targets, Nulls]:
    """What options are about, and their null rule."""
    if isinstance(options, OdDiscoverOptions):
        return Targets.of_orders(columns), "value"
    assert isinstance(options, FdDiscoverOptions)
    functional = type(options) is FdDiscoverOptions
    return Targets.of_functional(columns) if functional else Targets.of_keys(), options.nulls


def _find(
    table: EncodedFrame, targets: Targets, nulls: Nulls, options: DependencyOptions, deadline: float | None,
    watch: Watch, clock: Clock,
) -> Found:  # fmt: skip
    columns = len(table.header.columns)
    layout = clue_layout(columns, ordered=bool(np.any(targets.kind >= ASCENDING)))
    try:
        rows = SparkContextTable(
            table, layout, nulls=nulls, seed=options.seed, device=options.device, deadline=deadline,
            pairs_a_row=PAIRS_A_ROW, sampled_rows=SAMPLED_ROWS,
        )  # fmt: skip
    except LimitReached as limit:
        none = np.zeros(0, dtype=np.int32)
        nothing = Dependencies(
            np.zeros((0, context_words(columns)), dtype=np.uint64), none.astype(np.int8), none, none
        )
        return Found(nothing, len(targets), {}, str(limit))
    try:
        return find(
            table.header.codes, targets, table.header.column_names, nulls=nulls, device=pick_device("cpu"),
            max_context=options.max_context, seed=options.seed, deadline=deadline, progress=watch.stage(STAGE),
            lap=clock.lap, table=rows, rows=table.rows,
        )  # fmt: skip
    finally:
        rows.close()
