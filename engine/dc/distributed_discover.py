"""Discovery for tables beyond one machine: the same constraints as in-process, from few pairs (`hybrid`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tuplewise.engine.dc import workload
from tuplewise.engine.dc.discovery import DcDiscovery, discovery_of, notes_on_nulls
from tuplewise.engine.dc.distributed import SparkDcTable
from tuplewise.engine.dc.distributed_figures import SparkFigures
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.hybrid import find, found_constraints
from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import PredicateSpace, given_space, space_to_search
from tuplewise.engine.dc.ranking import Ranking, rank_counted
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.spark.resources import devices_of_tasks
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.device import pick_device


def discover_on_spark(
    table: EncodedFrame, options: DcDiscoverOptions, *, space: PredicateSpace | None, run: Run
) -> DcDiscovery:
    """Find the minimal denial constraints of a table of two rows or more in Spark; see `discover.discover`.

    Notes
    -----
    The result's relation holds no rows (`table_rows` is their number). Only figures of columns, codes of some rows and
    clues are sent to this process. Cost in addition to that of `hybrid`: a shuffle of all codes to collapse equal rows,
    and a shuffle of the collapsed rows for each column set.
    """
    relation = replace(table.excerpt(np.zeros(0, dtype=np.int64)), table_rows=table.rows)
    clock, figures = Clock(), SparkFigures(table)
    workload.refuse_many_columns(relation, options)
    if space is None:
        space = space_to_search(table.header, options, figures)
    else:
        space = given_space(space, relation, options)
    workload.refuse_many_atoms(relation, space.atoms, options)
    clock.lap("space")
    device, reason = devices_of_tasks(table.frame.sparkSession, options.device)
    found = _find(table, relation, space, run, clock)
    with_null = figures.rows_with_null(space) if options.nulls == "unknown" else 0
    notes = notes_on_nulls(with_null, table.rows, figures.undecided_pairs(space)) if with_null else []
    ranking = Ranking.none()
    if len(found.arrays):
        ranking = rank_counted(found.arrays, space, figures.outcome_counts(space), table.rows)
    found = replace(found, ranking=ranking, notes=notes)
    asked = "asked for" if options.algorithm == "hybrid" else "auto: what Spark's tasks do"
    why = f"{asked}: compares pairs that agree on chosen column sets, validates the rest"
    return discovery_of(relation, options, space, found, "hybrid", why, device, reason, clock)


def _find(table: EncodedFrame, relation: Relation, space: PredicateSpace, run: Run, clock: Clock) -> FoundConstraints:
    try:
        rows = SparkDcTable(table, space, device=space.options.device, deadline=run.deadline)
    except LimitReached as limit:
        return found_constraints(ConstraintArrays.none(False), None, 0, str(limit), space)
    try:
        return find(relation, space, device=pick_device("cpu"), run=run, lap=clock.lap, table=rows)
    finally:
        rows.close()
