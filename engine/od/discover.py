"""Discovery of order dependencies: one call from a relation to the minimal ones. FDs and keys share all but targets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.od import levelwise, search
from tuplewise.engine.od.dependency import Dependencies, Targets
from tuplewise.engine.od.found import Discovery, Found
from tuplewise.engine.od.remarks import complete_context, notes_on, without_idle
from tuplewise.engine.options import DependencyOptions, Nulls, OdDiscoverOptions
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.table import Table
from tuplewise.engine.watch import TIME_LIMIT, Clock, Progress, Step, Watch, most_bytes_unless, refuse_spark, silent
from tuplewise.gpu_kernels.device import Device, pick_device

STAGE = "searching"  # what progress is told of a search
PARTS = ("contexts", "kind", "left", "right")  # of Dependencies
SHARE_OF_LEVELS = 0.3  # of the time that is limited, where all can't be decided in the rest of it
MANY_COLUMNS = 64  # of more, contexts are looked at from small to large, and only within a limit


def discover_orders(
    table: Table,
    options: OdDiscoverOptions | None = None,
    *,
    step: Step = silent,
    progress: Progress | None = None,
    deadline: float | None = None,
) -> Discovery:
    """The minimal set-based order dependencies of a table (semantics.md, "Set-based OD").

    Parameters
    ----------
    table : Relation or TableInSpark
        All columns take part; nulls come first and are equal to each other.
    options : OdDiscoverOptions or None
    step : callable
        Called with the name of each step in Spark.
    progress : callable or None
        Called with the stage and the share of it that is done.
    deadline : float or None
        On the clock of time.monotonic; None: now and options.time_limit.

    Raises
    ------
    DeviceError
        For a device that was asked for and can't be had.

    Notes
    -----
    Cost: that of the search (search.py, levelwise.py); columns squared targets.
    """
    targets = Targets.of_orders(len(table.column_names))
    return discover(table, targets, options or OdDiscoverOptions(), "value", progress, deadline, step)


def most_bytes_to_search(options: DependencyOptions) -> int | None:
    """Bytes that the codes of a table may take for a discovery in this process; None: any. See `load`.

    Raises InputError where Spark is asked for what only this process does.
    """
    only_here: tuple[str, str, str] | None = None
    if options.algorithm == "levelwise":
        only_here = ("algorithm", options.algorithm, "'auto' or 'hybrid'")
    elif options.error > 0:
        only_here = ("error", str(options.error), "0: rows to remove are counted in one process")
    return most_bytes_unless(only_here, options)


def discover(
    table: Table,
    targets: Targets,
    options: Any,
    nulls: Nulls,
    progress: Progress | None,
    deadline: float | None,
    step: Step = silent,
) -> Discovery:
    """The minimal dependencies with these targets.

    Parameters
    ----------
    options : OdDiscoverOptions, FdDiscoverOptions or KeyDiscoverOptions
    """
    if deadline is None and options.time_limit is not None:
        deadline = time.monotonic() + options.time_limit
    if not isinstance(table, Relation):
        from tuplewise.engine.od.distributed_discover import discover_in_spark

        return discover_in_spark(table, options, step=step, progress=progress, deadline=deadline)
    relation = table
    refuse_spark(options, relation.name)
    refuse_many_columns(len(relation.columns), options)
    device = pick_device(options.device)
    clock, watch = Clock(), Watch(progress, options.memory_limit)
    algorithm, reason = choose_algorithm(options, len(relation.columns))
    run: Any = {"hybrid": _by_hybrid, "levelwise": _by_levels}[algorithm]
    found = run(
        relation, targets, options, nulls=nulls, device=device, deadline=deadline, progress=watch.stage(STAGE),
        lap=clock.lap,
    )  # fmt: skip
    return discovery_of(relation, options, found, algorithm, reason, device, clock)


def discovery_of(
    relation: Relation, options: Any, found: Found, algorithm: str, reason: str, device: Device, clock: Clock
) -> Discovery:
    """What a search found, with what there is to say."""
    found = without_idle(relation, options, found)
    return Discovery(
        relation=relation,
        options=options,
        dependencies=found.dependencies,
        removals=found.removals,
        algorithm=algorithm,
        algorithm_reason=reason,
        device=device.described,
        device_reason=device.reason,
        timings_seconds=clock.seconds,
        partial=found.reached is not None,
        notes=notes_on(relation, options, found),
        search=found.search,
        complete_context=complete_context(options, found),
    )


def refuse_many_columns(columns: int, options: Any) -> None:
    """Raise InputError for a table so wide that contexts may be too many ever to end, where nothing limits them."""
    if columns > MANY_COLUMNS and options.max_context is None and options.time_limit is None:
        hint = "Bound the search, --max-context 2 or --time-limit 600, or look at fewer columns: --columns, --exclude"
        raise InputError(message("columns of the table", columns, f"{MANY_COLUMNS} without a bound", hint))


def choose_algorithm(options: Any, columns: int) -> tuple[str, str]:
    """The algorithm for a table of so many columns, and why."""
    if options.algorithm != "auto":
        return options.algorithm, "asked for"
    if options.error > 0:
        return "levelwise", "auto: rows to remove are counted on partitions of each candidate"
    if columns > MANY_COLUMNS:
        return "levelwise", "auto: of so many columns small contexts are looked at first"
    return "hybrid", "auto: compares pairs that agree on chosen column sets, validates the rest"


def _by_hybrid(relation: Relation, targets: Targets, options: Any, *, deadline: float | None, **how: Any) -> Found:
    """All at once; where time runs out on that, what is left of it is for the small contexts, level by level.

    Much is undecided until all is decided. Whoever sets a limit that is too short wants the simple dependencies.
    """
    now = time.monotonic()
    soon = None if deadline is None else deadline - SHARE_OF_LEVELS * max(0.0, deadline - now)
    bounds = {"max_context": options.max_context, "seed": options.seed}
    found = search.find(relation.codes, targets, relation.column_names, deadline=soon, **bounds, **how)
    if deadline is None or found.reached != TIME_LIMIT or time.monotonic() >= deadline:
        return found
    return united(found, levelwise.find(relation.codes, targets, deadline=deadline, **bounds, **how))


def united(found: Found, by_level: Found) -> Found:
    """What two searches of one table found that a limit ended: each dependency holds and is minimal."""
    said = {**found.search, "by_level": by_level.search}
    if by_level.reached is None:
        return Found(by_level.dependencies, 0, {**said, "undecided": 0}, None)
    both = [found.dependencies, by_level.dependencies]
    contexts, kind, left, right = (np.concatenate([getattr(d, p) for d in both]) for p in PARTS)
    numbers = np.column_stack([contexts.view(np.int64), kind, left, right])
    _, first = np.unique(numbers, axis=0, return_index=True)
    dependencies = Dependencies(contexts, kind, left, right).take(first).in_result_order()
    complete = max(found.complete_context, by_level.complete_context)
    return Found(dependencies, found.undecided, said, by_level.reached, complete_context=complete)


def _by_levels(
    relation: Relation, targets: Targets, options: Any, *, lap: Callable[[str], None], **how: Any
) -> Found:
    allowed = None
    if options.error > 0:
        numerator, denominator = options.error.as_integer_ratio()
        allowed = numerator * relation.rows // denominator
    return levelwise.find(
        relation.codes, targets, max_context=options.max_context, allowed_removals=allowed, seed=options.seed,
        lap=lap, **how,
    )  # fmt: skip
