"""Checks of order dependencies between lists, start to end: on a table here, on one in Spark, against a discovery."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuplewise.engine.od.implied import SavedOds, check_against
from tuplewise.engine.od.lexicographic import OdCheck, check_orders
from tuplewise.engine.od.list_od import ListOd
from tuplewise.engine.placement import refuse_spark
from tuplewise.engine.run import Run
from tuplewise.engine.table.in_spark import Table, TableInSpark
from tuplewise.engine.table.schema import note_on_text
from tuplewise.gpu_kernels.device import pick_device

if TYPE_CHECKING:
    from tuplewise.engine.od.found import Discovery
    from tuplewise.engine.options import OdCheckOptions
    from tuplewise.engine.table.relation import Relation


OTHER_ROWS = "checked in Spark's tasks: another run may show other two rows of those that break a dependency"


@dataclass(frozen=True, eq=False)
class CheckedOds:
    """The result of a check of order dependencies.

    Attributes
    ----------
    relation : None if they were checked against a saved result
    device, device_reason : None in that case
    partial : whether some are undecided
    """

    relation: Relation | None
    options: OdCheckOptions
    checks: Sequence[OdCheck]
    device: str | None
    device_reason: str | None
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: Sequence[str] = ()


def check_table(
    table: Table,
    ods: Sequence[ListOd],
    options: OdCheckOptions,
    run: Run | None = None,
) -> CheckedOds:
    """Check list-based order dependencies on a table.

    Verdicts don't depend on where the rows are. In Spark, the two rows that break a dependency are any that a task
    found: to choose the best ones, the findings of all tasks would have to be compared on all columns.

    Parameters
    ----------
    table : Relation or TableInSpark
    run : reports "checking"; None: one that starts now, with the options' limits

    Raises
    ------
    InputError
        If Spark is requested for a table in this process.
    DeviceError
        If the requested device is not available.
    LimitReached
        If the process holds more than options.memory_limit.
    """
    run, in_spark = run or Run(options), isinstance(table, TableInSpark)
    if isinstance(table, TableInSpark):
        from tuplewise.engine.od import distributed_check
        from tuplewise.engine.spark.resources import devices_of_tasks

        start = time.perf_counter()
        device, reason = devices_of_tasks(table.session.spark, options.device)
        relation, checks = distributed_check.check_in_spark(
            table, ods, device=options.device, seed=options.seed, run=run
        )
    else:
        relation = table
        refuse_spark(options, relation.name)
        picked = pick_device(options.device)
        device, reason, start = picked.described, picked.reason, time.perf_counter()
        checks = check_orders(relation, ods, device=picked, run=run)
    seconds = time.perf_counter() - start
    undecided = sum(check.holds is None for check in checks)
    sorted_by = [item.name for check in checks if check.od.left for item in (*check.od.left, *check.od.right)]
    notes = note_on_text(relation, sorted_by)
    if undecided:
        notes.append(f"time limit reached: {undecided:,} of {len(checks):,} dependencies are undecided")
    if in_spark and any(check.violation is not None for check in checks):
        notes.append(OTHER_ROWS)
    return CheckedOds(
        relation=relation,
        options=options,
        checks=checks,
        device=device,
        device_reason=reason,
        timings_seconds={"checking": seconds},
        partial=undecided > 0,
        notes=notes,
    )


def check_saved(saved: SavedOds | Discovery, ods: Sequence[ListOd], options: OdCheckOptions) -> CheckedOds:
    """Decide list-based order dependencies from the result of a discovery, without rows."""
    start = time.perf_counter()
    checks = check_against(saved, ods)
    undecided = sum(check.holds is None for check in checks)
    limited = f"the discovery was limited: it does not tell about {undecided:,} of {len(checks):,} dependencies"
    return CheckedOds(
        relation=None,
        options=options,
        checks=checks,
        device=None,
        device_reason=None,
        timings_seconds={"checking": time.perf_counter() - start},
        partial=undecided > 0,
        notes=[limited] if undecided else [],
    )
