"""Discovery of order dependencies: one call from a relation to the minimal ones. FDs and keys share all but targets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.od import levelwise, search
from tuplewise.engine.od.dependency import Targets
from tuplewise.engine.od.found import Discovery, Found
from tuplewise.engine.options import Nulls, OdDiscoverOptions
from tuplewise.engine.relation.relation import Relation
from tuplewise.engine.watch import Clock, Progress, Watch, refuse_spark
from tuplewise.gpu_kernels.device import Device, pick_device

STAGE = "searching"  # what progress is told of a search
NAMES_SHOWN = 5
MANY_COLUMNS = 64  # of more, contexts are looked at from small to large, and only within a limit


def discover_orders(
    relation: Relation,
    options: OdDiscoverOptions | None = None,
    *,
    progress: Progress | None = None,
    deadline: float | None = None,
) -> Discovery:
    """The minimal set-based order dependencies of a relation (semantics.md, "Set-based OD").

    Parameters
    ----------
    relation : Relation
        All columns take part; nulls come first and are equal to each other.
    options : OdDiscoverOptions or None
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
    targets = Targets.of_orders(len(relation.columns))
    return discover(relation, targets, options or OdDiscoverOptions(), "value", progress, deadline)


def discover(
    relation: Relation,
    targets: Targets,
    options: Any,
    nulls: Nulls,
    progress: Progress | None,
    deadline: float | None,
) -> Discovery:
    """The minimal dependencies with these targets.

    Parameters
    ----------
    options : OdDiscoverOptions, FdDiscoverOptions or KeyDiscoverOptions
    """
    refuse_spark(options, relation.name)
    if deadline is None and options.time_limit is not None:
        deadline = time.monotonic() + options.time_limit
    refuse_many_columns(len(relation.columns), options)
    device = pick_device(options.device)
    clock, watch = Clock(), Watch(progress, options.memory_limit)
    algorithm, reason = choose_algorithm(options, len(relation.columns))
    run = {"hybrid": _by_hybrid, "levelwise": _by_levels}[algorithm]
    found = run(
        relation, targets, options, nulls=nulls, device=device, deadline=deadline, progress=watch.stage(STAGE),
        lap=clock.lap,
    )  # fmt: skip
    return discovery_of(relation, options, found, algorithm, reason, device, clock)


def discovery_of(
    relation: Relation, options: Any, found: Found, algorithm: str, reason: str, device: Device, clock: Clock
) -> Discovery:
    """What a search found, with what there is to say."""
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


def _by_hybrid(relation: Relation, targets: Targets, options: Any, **how: Any) -> Found:
    return search.find(
        relation.codes, targets, relation.column_names, max_context=options.max_context, seed=options.seed, **how
    )


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


def notes_on(relation: Relation, options: Any, found: Found) -> list[str]:
    """What in the table makes results empty or idle, and what a limit means for them."""
    notes = []
    if not relation.columns:
        notes.append("the table has no columns: nothing to learn")
    elif relation.all_rows < 2:
        rows = f"{relation.all_rows} row" + ("" if relation.all_rows == 1 else "s")
        notes.append(f"{rows}, so there are no pairs of rows: everything holds with an empty context")
    with_nulls = [column.name for column in relation.columns if column.nulls]
    if options.nulls == "unknown" and with_nulls:
        more = " and others" if len(with_nulls) > NAMES_SHOWN else ""
        shown = ", ".join(map(repr, with_nulls[:NAMES_SHOWN])) + more
        notes.append(f"nulls are unknown: a row with a null agrees with no other on {shown} (--nulls value: it does)")
    if options.max_context is not None:
        notes.append(f"only sets of at most {options.max_context} columns were looked at")
    if found.reached is not None:
        what = "candidates left to look at"
        if found.undecided:
            what = f"{found.undecided:,} candidate{'s' if found.undecided > 1 else ''} undecided"
        notes.append(f"{found.reached} with {what}: each one listed holds and is minimal, others are missing")
    return notes
