"""Discovery of functional dependencies and keys: order dependency discovery with other targets."""

from __future__ import annotations

from tuplewise.engine.od.dependency import Targets
from tuplewise.engine.od.discover import discover
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.options import FdDiscoverOptions, KeyDiscoverOptions
from tuplewise.engine.run import Run
from tuplewise.engine.table.in_spark import Table


def discover_functional(
    table: Table,
    options: FdDiscoverOptions | None = None,
    run: Run | None = None,
) -> Discovery:
    """Discover the minimal functional dependencies X -> A, A not in X (semantics.md, "FD and key").

    Parameters and errors are those of `od.discover.discover_orders`; `options.nulls` is the null rule. Under
    "unknown", a null neither agrees nor differs with anything.
    """
    options = options or FdDiscoverOptions()
    targets = Targets.of_functional(len(table.column_names))
    return discover(table, targets, options, options.nulls, run)


def discover_keys(
    table: Table,
    options: KeyDiscoverOptions | None = None,
    run: Run | None = None,
) -> Discovery:
    """Discover the minimal keys: column sets on which no two rows agree (semantics.md, "FD and key").

    Parameters and errors are those of `discover_functional`. Under "unknown", a key may hold rows with nulls.
    """
    options = options or KeyDiscoverOptions()
    return discover(table, Targets.of_keys(), options, options.nulls, run)
