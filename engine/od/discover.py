"""Discovery of order dependencies: one call from a table to the minimal ones. FDs and keys share all but targets."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from tuplewise.engine.od.dependency import Targets
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.local_discover import discover_here
from tuplewise.engine.options import DependencyOptions, Nulls, OdDiscoverOptions
from tuplewise.engine.placement import most_bytes_unless, refuse_spark
from tuplewise.engine.run import Run
from tuplewise.engine.table.in_spark import Table
from tuplewise.engine.table.relation import Relation


def discover_orders(
    table: Table,
    options: OdDiscoverOptions | None = None,
    run: Run | None = None,
) -> Discovery:
    """The minimal set-based order dependencies of a table (semantics.md, "Set-based OD").

    Parameters
    ----------
    table : Relation or TableInSpark
        All columns take part; nulls come first and are equal to each other.
    options : OdDiscoverOptions or None
    run : Run or None
        None: one that begins now, with the options' limits.

    Raises
    ------
    DeviceError
        For a device that was asked for and can't be had.

    Notes
    -----
    Cost: that of the search (search.py, levelwise.py); columns squared targets.
    """
    targets = Targets.of_orders(len(table.column_names))
    return discover(table, targets, options or OdDiscoverOptions(), "value", run)


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


def discover(table: Table, targets: Targets, options: Any, nulls: Nulls, run: Run | None = None) -> Discovery:
    """The minimal dependencies with these targets.

    Parameters
    ----------
    options : OdDiscoverOptions, FdDiscoverOptions or KeyDiscoverOptions
    """
    run = run or Run(options)
    if isinstance(table, Relation):
        refuse_spark(options, table.name)
        return discover_here(table, targets, options, nulls, run)
    from tuplewise.engine.table.spark_encoded import encode_for

    with closing(encode_for("searched", table, table.column_names, run.step)) as encoded:
        if encoded.rows < 2:
            return discover_here(encoded.excerpt(np.arange(encoded.rows)), targets, options, nulls, run)
        from tuplewise.engine.od.distributed_discover import discover_on_spark

        return discover_on_spark(encoded, targets, options, nulls, run)
