"""Discovery of inclusion dependencies: from tables to all unary ones that hold."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import unary
from tuplewise.engine.ind.found import FoundInd, FoundInds
from tuplewise.engine.ind.unary import Clustered, cluster_tables
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.watch import Clock, Progress
from tuplewise.gpu_kernels.device import Device, pick_device

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def discover(
    tables: Mapping[str, Any],
    options: Any,
    load_options: LoadOptions | None = None,
    *,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
    deadline: float | None = None,
) -> FoundInds:
    """All unary inclusion dependencies between the columns of tables (semantics.md, "Unary IND").

    Parameters
    ----------
    tables : paths, frames or Relations by name, see `name_tables`
    options : IndDiscoverOptions
    deadline : on the clock of time.monotonic; None: now and options.time_limit
    """
    if deadline is None and options.time_limit is not None:
        deadline = time.monotonic() + options.time_limit
    device = pick_device(options.device)
    clock = Clock()
    clustered = cluster_tables(
        tables, load_options, as_text=options.as_text, spark=spark, progress=progress, deadline=deadline,
        memory_limit=options.memory_limit,
    )  # fmt: skip
    clock.lap("clustering")
    return found_in(clustered, options, device, clock, work_reason="tables were read in this process")


def found_in(
    clustered: Clustered, options: Any, device: Device, clock: Clock, *, work: Any = "driver", work_reason: str
) -> FoundInds:
    """What a clustering says, with what there is to say of the work."""
    inds, trivial = unary_inds(clustered.clustering, Fraction(options.error), device)
    clock.lap("intersecting")
    return FoundInds(
        tables=clustered.tables,
        attributes=clustered.clustering.attributes,
        inds=tuple(inds),
        trivial=trivial,
        options=options,
        work=work,
        work_reason=work_reason,
        device=device.described,
        device_reason=device.reason,
        timings_seconds={**clustered.timings_seconds, **clock.seconds},
        partial=clustered.reached is not None,
        notes=clustered.notes,
        spark=clustered.spark,
        search=clustered.search,
    )


def unary_inds(
    clustering: AttributeClustering, error: Fraction = Fraction(0), device: Device | str = "cpu"
) -> tuple[list[FoundInd], int]:
    """The inclusions A <= B, A not B, in result order, and how many there are of attributes without values.

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
