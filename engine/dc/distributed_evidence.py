"""Discovery by all pairs with the comparing in Spark's tasks: the table comes to this process, its codes go out.

The evidence is that of `evidence.collect_evidence`, byte for byte; inverting it and ranking are done here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.local_discover import discover_here
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.run import Run
from tuplewise.engine.spark.pair_tiles import count_pairs
from tuplewise.engine.spark.resources import devices_of_tasks, kernel_resources
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.spark_load import bring_here
from tuplewise.gpu_kernels.evidence import ClueSet
from tuplewise.gpu_kernels.evidence_tiles import pair_triangle
from tuplewise.gpu_kernels.words import ClueLayout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(eq=False)
class PairsInSpark:
    """Compares all pairs as `gpu_kernels.evidence.collect_clues` does, in tasks.

    Attributes
    ----------
    ran : the devices that did it, and why; empty before
    """

    spark: SparkSession
    device: str
    ran: list[tuple[str, str]] = field(default_factory=list)

    @property
    def slots(self) -> int:
        """Tasks that run at the same time."""
        return int(self.spark.sparkContext.defaultParallelism)

    def __call__(
        self,
        codes: NDArray[np.int32],
        layout: ClueLayout,
        *,
        nulls: Literal["unknown", "value"],
        deadline: float | None,
        progress: Callable[[float], None] | None,
    ) -> ClueSet:
        pairs = pair_triangle(codes, layout, nulls=nulls)
        try:
            counted = count_pairs(self.spark, pairs, device=self.device, deadline=deadline, progress=progress)
        except TimeoutError:
            nothing = np.zeros((0, layout.words), dtype=np.uint64)
            return ClueSet(nothing, np.zeros(0, dtype=np.int64), 0, False)
        self.ran.append((counted.device, counted.device_reason))
        return counted.clues


def discover_by_all_pairs(
    opened: TableInSpark,
    options: DcDiscoverOptions,
    *,
    space: PredicateSpace | None = None,
    run: Run,
) -> DcDiscovery:
    """The minimal denial constraints of a table that was only opened; see `discover.discover`.

    Raises DeviceError, before anything is read, where tasks can't use a GPU that was asked for.
    """
    spark = opened.session.spark
    device, reason = devices_of_tasks(spark, options.device, kernel_resources(spark))
    comparing = PairsInSpark(spark, options.device)
    relation = bring_here(opened, run.step, device="cpu" if options.device == "cpu" else "auto")
    run.step("comparing")
    found = discover_here(relation, options, space=space, run=run, comparing=comparing)
    for ran in comparing.ran:
        device, reason = ran
    return replace(found, device=device, device_reason=reason)
