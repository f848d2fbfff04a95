"""Discovery of denial constraints: one call from a table, in this process or in Spark, to its minimal constraints."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np

from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.local_discover import discover_here
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.placement import most_bytes_unless, refuse_spark
from tuplewise.engine.run import Run
from tuplewise.engine.table.in_spark import Table, TableInSpark
from tuplewise.engine.table.relation import Relation


def most_bytes_to_search(options: DcDiscoverOptions) -> int | None:
    """Most bytes that the codes of a table may take for a discovery in this process; None: no limit. See `load`.

    Raises InputError if Spark is requested for an option that only works in this process.
    """
    only_here: tuple[str, str, str] | None = None
    if options.algorithm == "hydra":
        only_here = ("algorithm", "hydra", "'auto', 'evidence' or 'hybrid'")
    elif options.algorithm == "hybrid" and options.error > 0:
        only_here = ("algorithm with error above 0", "hybrid", "'auto' or 'evidence': all pairs are compared in tasks")
    elif options.sample_pairs is not None:
        only_here = ("sample_pairs", str(options.sample_pairs), "none: samples are drawn in one process")
    if only_here is None and by_all_pairs(options) and options.run_on == "auto":
        return None  # these codes come to this process in any case
    return most_bytes_unless(only_here, options)


def by_all_pairs(options: DcDiscoverOptions) -> bool:
    """Whether a discovery in Spark compares all pairs: on request, or if approximate (which needs their counts)."""
    return options.algorithm == "evidence" or (options.algorithm == "auto" and options.error > 0)


def discover(
    table: Table,
    options: DcDiscoverOptions | None = None,
    *,
    space: PredicateSpace | None = None,
    run: Run | None = None,
) -> DcDiscovery:
    """Find the minimal denial constraints of a table (docs/concepts/minimality.md).

    Parameters
    ----------
    table : rows of a TableInSpark stay in Spark, unless all pairs are compared
    space : the space of another table with the same columns and types; None: the table's own
    run : Run or None
        Reports the stages (for evidence: "evidence", "inversion"); None: one that begins now, with the options' limits.

    Raises
    ------
    InputError
        If the work would not end or not fit; the message says what to do.
    DeviceError
        If a requested device is not available.

    Notes
    -----
    Cost: that of the algorithm (chosen by workload.choose_algorithm): rows squared times comparisons for the evidence
    of all pairs, or the cost given in hybrid.py or hydra; plus the minimal hitting sets of distinct evidences, whose
    number is not bounded by the size of the table.
    """
    options = options or DcDiscoverOptions()
    run = run or Run(options)
    if isinstance(table, Relation):
        refuse_spark(options, table.name)
        return discover_here(table, options, space=space, run=run)
    if space is not None:
        table = table.ordered(space.names)
    if by_all_pairs(options):
        return _discover_by_all_pairs(table, options, space, run)
    from tuplewise.engine.table.spark_encoded import encode_for

    with closing(encode_for("searched", table, table.column_names, run.step)) as encoded:
        if encoded.rows < 2:
            return discover_here(encoded.excerpt(np.arange(encoded.rows)), options, space=space, run=run)
        from tuplewise.engine.dc.distributed import discover_on_spark

        return discover_on_spark(encoded, options, space=space, run=run)


def _discover_by_all_pairs(
    opened: TableInSpark, options: DcDiscoverOptions, space: PredicateSpace | None, run: Run
) -> DcDiscovery:
    """Read the table into this process and compare its pairs in Spark tasks.

    Raises DeviceError, before anything is read, if tasks can't use a requested GPU.
    """
    from tuplewise.engine.spark.pair_tiles import PairsInSpark
    from tuplewise.engine.table.spark_load import bring_here

    comparing = PairsInSpark(opened.session.spark, options.device)
    relation = bring_here(opened, run.step, device="cpu" if options.device == "cpu" else "auto")
    run.step("comparing")
    found = discover_here(relation, options, space=space, run=run, comparing=comparing)
    device, reason = comparing.ran
    return replace(found, device=device, device_reason=reason)
