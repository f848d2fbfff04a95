"""Discovery of keys, functional and order dependencies, which share all but their targets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.od import levelwise, search, wide_search
from tuplewise.engine.od.chance import Errors
from tuplewise.engine.od.dependency import Targets
from tuplewise.engine.od.found import Discovery, FoundDependencies
from tuplewise.engine.od.remarks import discovery_of
from tuplewise.engine.od.search import MANY_COLUMNS
from tuplewise.engine.options import DependencyOptions, KeyDiscoverOptions, OdDiscoverOptions
from tuplewise.engine.placement import most_bytes_unless, refuse_spark
from tuplewise.engine.run import TIME_LIMIT, Clock, Run
from tuplewise.engine.table.in_spark import Table
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import pick_device

SHARE_OF_LEVELS = 0.3  # of the time that is limited, where all can't be decided in the rest of it


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


def targets_of(options: DependencyOptions, attributes: int) -> Targets:
    """The targets of the kind of dependencies that options are of."""
    if isinstance(options, OdDiscoverOptions):
        return Targets.of_orders(attributes)
    return Targets.of_keys() if isinstance(options, KeyDiscoverOptions) else Targets.of_functional(attributes)


def discover(table: Table, options: Any, run: Run | None = None) -> Discovery:
    """The minimal dependencies of a table: set-based order dependencies, functional dependencies X -> A with A not in
    X, or keys (docs/concepts/rules.md).

    Parameters
    ----------
    table : all columns take part
    options : OdDiscoverOptions, FdDiscoverOptions or KeyDiscoverOptions
        Its class says which kind is wanted. Under the null rule "unknown", a null neither agrees nor differs with
        anything, so that a key may hold rows with nulls. Order dependencies know "value" only: nulls come first and are
        equal to each other.
    run : None: one that begins now, with the options' limits

    Raises
    ------
    DeviceError
        For a device that was asked for and can't be had.

    Notes
    -----
    Cost: that of the search (search.py, levelwise.py); of order dependencies, columns squared targets.
    """
    run = run or Run(options)
    if isinstance(table, Relation):
        refuse_spark(options, table.name)
        return _discover_in_process(table, options, run)
    from tuplewise.engine.table.spark_encoded import encode_for

    with closing(encode_for("searched", table, table.column_names, run.step)) as encoded:
        if encoded.rows < 2:
            return _discover_in_process(encoded.excerpt(np.arange(encoded.rows)), options, run)
        from tuplewise.engine.od.distributed import discover_on_spark

        return discover_on_spark(encoded, targets_of(options, len(table.column_names)), options, run)


def _discover_in_process(relation: Relation, options: Any, run: Run) -> Discovery:
    """`discover` in a relation."""
    refuse_many_columns(len(relation.columns), options)
    device, clock = pick_device(options.device), Clock()
    algorithm, reason = choose_algorithm(options, len(relation.columns))
    find: Any = {"hybrid": _by_hybrid, "levelwise": _by_levels}[algorithm]
    targets = targets_of(options, len(relation.columns))
    found = find(relation, targets, options, nulls=options.nulls, device=device, run=run, lap=clock.lap)
    return discovery_of(relation, options, found, algorithm, reason, device.described, device.reason, clock)


def refuse_many_columns(columns: int, options: Any) -> None:
    """Raise InputError for a table with so many columns that an unlimited search may never end."""
    algorithm, _ = choose_algorithm(options, columns)
    bounded = options.max_context is not None or options.time_limit is not None
    if columns <= MANY_COLUMNS or bounded or (algorithm == "hybrid" and not isinstance(options, OdDiscoverOptions)):
        return
    text = "Bound the search, {max_context} or {time_limit}, or look at fewer columns: {columns}, {exclude}"
    hint = Wording(text, max_context=2, time_limit=600)
    raise InputError(message("columns of the table", columns, f"{MANY_COLUMNS} without a bound", hint))


def choose_algorithm(options: Any, columns: int) -> tuple[str, str]:
    """The algorithm for a table of so many columns, and the reason for it."""
    if options.algorithm != "auto":
        return options.algorithm, "asked for"
    if options.error > 0 and options.error_measure != "g3":
        return "levelwise", "auto: violating pairs are counted on the classes of each candidate"
    if options.error > 0:
        return "levelwise", "auto: rows to remove are counted on partitions of each candidate"
    if columns > MANY_COLUMNS and isinstance(options, OdDiscoverOptions):
        return "levelwise", "auto: of so many columns small contexts are looked at first"
    return "hybrid", "auto: compares pairs that agree on chosen column sets, validates the rest"


def _by_hybrid(relation: Relation, targets: Targets, options: Any, *, run: Run, **how: Any) -> FoundDependencies:
    """Search all contexts at once; if time runs out, spend the rest of it on small contexts, level by level.

    The first search leaves much undecided until its end. If the limit is too short for it, simple dependencies are the
    most useful result.
    """
    how |= {"max_context": options.max_context, "seed": options.seed}
    columns = len(relation.columns)
    if search.is_wide(targets, columns):
        found = wide_search.find(relation, targets, run=run, **how)
        if columns > wide_search.MOST_LEVELWISE_COLUMNS:
            return found
    else:
        soon = run.part(1 - SHARE_OF_LEVELS)
        found = search.find(relation.codes, targets, relation.column_names, run=soon, **how)
    if found.reached != TIME_LIMIT or run.over():
        return found
    return united(found, levelwise.find(relation.codes, targets, run=run, **how))


def united(found: FoundDependencies, by_level: FoundDependencies) -> FoundDependencies:
    """Merge the results of two limited searches of one table. Each dependency holds and is minimal."""
    said = {**found.search, "by_level": by_level.search}
    if by_level.reached is None:
        return FoundDependencies(by_level.dependencies, 0, {**said, "undecided": 0}, None)
    return replace(wide_search.joined(found, by_level), undecided=found.undecided, search=said)


def _by_levels(
    relation: Relation, targets: Targets, options: Any, *, lap: Callable[[str], None], **how: Any
) -> FoundDependencies:
    allowed, errors = None, None
    if options.error > 0 and options.error_measure == "g3":
        numerator, denominator = options.error.as_integer_ratio()
        allowed = numerator * relation.rows // denominator
    elif options.error > 0:
        given = options.error_measure, options.error
        errors = Errors(relation.codes, how["nulls"], *given, device=how["device"], run=how["run"])
    return levelwise.find(
        relation.codes, targets, max_context=options.most_context, allowed_removals=allowed, errors=errors,
        seed=options.seed, lap=lap, **how,
    )  # fmt: skip
