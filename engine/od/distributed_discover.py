"""Discovery of keys, functional and order dependencies of tables beyond one machine: those found in-process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.od.dependency import ASCENDING, Dependencies, Targets, context_words
from tuplewise.engine.od.distributed import SparkContextTable
from tuplewise.engine.od.found import Discovery, FoundDependencies
from tuplewise.engine.od.remarks import discovery_of
from tuplewise.engine.od.search import PAIRS_A_ROW, SAMPLED_ROWS, clue_layout, find
from tuplewise.engine.options import DependencyOptions, Nulls
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.spark.resources import devices_of_tasks
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.device import pick_device


def discover_on_spark(
    table: EncodedFrame, targets: Targets, options: DependencyOptions, nulls: Nulls, run: Run
) -> Discovery:
    """The minimal dependencies of a table of two rows or more in Spark; see `discover.discover`.

    Notes
    -----
    Its relation holds no rows (`table_rows` says how many there are). What comes here: codes of some rows, clues.
    Cost beside that of `search`: a shuffle of all codes to collapse equal rows, and one of those rows for each column
    set; contexts as `distributed.SparkContextTable` says.
    """
    relation = replace(table.excerpt(np.zeros(0, dtype=np.int64)), table_rows=table.rows)
    clock = Clock()
    device, reason = devices_of_tasks(table.frame.sparkSession, options.device)
    found = _find(table, targets, nulls, options, run, clock)
    asked = "asked for" if options.algorithm == "hybrid" else "auto: what Spark's tasks do"
    why = f"{asked}: compares pairs that agree on chosen column sets, validates the rest"
    return discovery_of(relation, options, found, "hybrid", why, device, reason, clock)


def _find(
    table: EncodedFrame, targets: Targets, nulls: Nulls, options: DependencyOptions, run: Run, clock: Clock
) -> FoundDependencies:
    columns = len(table.header.columns)
    layout = clue_layout(columns, ordered=bool(np.any(targets.kind >= ASCENDING)))
    try:
        rows = SparkContextTable(
            table, layout, nulls=nulls, seed=options.seed, device=options.device, deadline=run.deadline,
            pairs_a_row=PAIRS_A_ROW, sampled_rows=SAMPLED_ROWS,
        )  # fmt: skip
    except LimitReached as limit:
        none = np.zeros(0, dtype=np.int32)
        nothing = Dependencies(np.zeros((0, context_words(columns)), dtype=np.uint64), none.astype(np.int8), none, none)
        return FoundDependencies(nothing, len(targets), {}, str(limit))
    try:
        return find(
            table.header.codes, targets, table.header.column_names, nulls=nulls, device=pick_device("cpu"),
            max_context=options.max_context, seed=options.seed, run=run, lap=clock.lap,
            table=rows, rows=table.rows,
        )  # fmt: skip
    finally:
        rows.close()
