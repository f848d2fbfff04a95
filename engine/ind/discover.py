"""Discovery of inclusion dependencies: from tables to all unary dependencies that hold."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached, Wording
from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import unary
from tuplewise.engine.ind.found import FoundInd, FoundInds
from tuplewise.engine.ind.nary import with_several_columns
from tuplewise.engine.ind.places import open_tables, place_for
from tuplewise.engine.ind.tables import options_of_tables
from tuplewise.engine.ind.unary import cluster_tables
from tuplewise.engine.options import IndDiscoverOptions, LoadOptions
from tuplewise.engine.run import Clock, Run
from tuplewise.gpu_kernels.device import Device, pick_device

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTED_COLUMNS = 5  # named in a note


def discover(
    tables: Mapping[str, Any],
    options: IndDiscoverOptions | None = None,
    load_options: LoadOptions | None = None,
    *,
    spark: SparkSession | None = None,
    run: Run | None = None,
) -> FoundInds:
    """Discover inclusion dependencies between columns of tables, up to a maximum arity (docs/concepts/rules.md).

    Parameters
    ----------
    tables : paths, frames or Relations by name, see `name_tables`
    load_options : how the tables are read; columns are named as in `options_of_tables`
    run : None: a run that begins now, with the options' limits

    Raises
    ------
    InputError
        If a table can't be read, or Spark is requested for a table held in this process.
    DeviceError
        If the requested device is not available.

    Notes
    -----
    If a limit is reached, nothing is listed: what holds for some values need not hold for all.
    """
    options = options or IndDiscoverOptions()
    run = run or Run(options)
    device = pick_device(options.device)
    clock = Clock()
    each = options_of_tables(tables, load_options)
    place = place_for(tables, options, load_options or LoadOptions(), spark)
    how: dict[str, Any] = {
        "options": options, "work": "spark" if place.on_spark else "driver", "work_reason": place.reason,
        "device": device.described, "device_reason": device.reason,
    }  # fmt: skip
    try:
        if place.on_spark:
            from tuplewise.engine.ind.distributed import cluster_on_spark

            clustered = cluster_on_spark(open_tables(tables, each, spark), as_text=options.as_text, run=run)
        else:
            clustered = cluster_tables(tables, each, as_text=options.as_text, spark=spark, run=run)
    except LimitReached as limit:
        clock.lap("reading")
        what = "no dependency is listed, since one that holds of some may fail of all"
        notes = (f"{limit} before all values were read: {what}",)
        return FoundInds(timings_seconds=clock.seconds, partial=True, notes=notes, **how)
    clock = Clock()
    inds, trivial = unary_inds(clustered.clustering, Fraction(options.error), device)
    clock.lap("intersecting")
    found = FoundInds(
        tables=clustered.tables,
        attributes=clustered.clustering.attributes,
        inds=tuple(inds),
        trivial=trivial,
        timings_seconds={**clustered.timings_seconds, **clock.seconds},
        notes=(*clustered.notes, *_not_compared(clustered.clustering)),
        spark=clustered.spark,
        search=clustered.search,
        **how,
    )
    if options.max_arity == 1:
        return found
    return with_several_columns(found, tables, options, each, run)


def _not_compared(clustering: AttributeClustering) -> list[str]:
    """A note for tables with both doubles and whole numbers or decimals. In pandas a column of whole numbers with
    nulls becomes one of doubles, and then no foreign key is found."""
    doubles = [str(a) for a, f in zip(clustering.attributes, clustering.families, strict=True) if f == "double"]
    if not doubles or "number" not in clustering.families:
        return []
    shown = ", ".join(doubles[:NOTED_COLUMNS]) + (" and others" if len(doubles) > NOTED_COLUMNS else "")
    text = (
        "doubles ({}) are compared with doubles only, not with whole numbers and decimals: where they hold whole "
        "numbers, {types} compares them, too"
    )
    return [Wording(text, shown, types={"COLUMN": "integer"})]


def unary_inds(
    clustering: AttributeClustering, error: Fraction = Fraction(0), device: Device | str = "cpu"
) -> tuple[list[FoundInd], int]:
    """The inclusions A <= B, A not B, in result order, and the number of those whose A has no values.

    `error`: the share of A's distinct values that B may lack.
    """
    distinct = clustering.distinct
    missing: NDArray[np.int64] | None = None
    if error == 0:
        holds = clustering.included(device)
    else:
        missing = distinct[:, None] - clustering.common(device)
        allowed = np.array([error.numerator * int(d) // error.denominator for d in distinct], dtype=np.int64)
        holds = (missing <= allowed[:, None]) & clustering.compared
    np.fill_diagonal(holds, False)
    empty = distinct == 0
    trivial = int(empty.sum()) * max(0, len(empty) - 1)
    holds[empty] = False
    attributes = clustering.attributes
    inds = [
        FoundInd(
            unary(attributes[a], attributes[b]), int(distinct[a]), int(distinct[b]),
            0 if missing is None else int(missing[a, b]),
        )
        for a, b in np.argwhere(holds).tolist()
    ]  # fmt: skip
    return inds, trivial
