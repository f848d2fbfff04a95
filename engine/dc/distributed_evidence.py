"""Discovery by all pairs compared in Spark tasks: this process reads the table and sends its codes to the tasks.

The evidence equals that of `evidence.collect_evidence`, byte for byte; inversion and ranking happen in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.spark.pair_tiles import count_pairs
from tuplewise.engine.spark.resources import devices_of_tasks, kernel_resources
from tuplewise.gpu_kernels.evidence import ClueSet
from tuplewise.gpu_kernels.evidence_tiles import pair_triangle
from tuplewise.gpu_kernels.words import ClueLayout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(eq=False)
class PairsInSpark:
    """Comparison of all pairs in Spark tasks, as in `gpu_kernels.evidence.collect_clues`.

    Attributes
    ----------
    ran : the devices that compare, and why

    Raises
    ------
    DeviceError
        If tasks can't use a requested GPU.
    """

    spark: SparkSession
    device: str
    ran: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.ran = devices_of_tasks(self.spark, self.device, kernel_resources(self.spark))

    @property
    def slots(self) -> int:
        """Number of tasks that run at the same time."""
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
        self.ran = counted.device, counted.device_reason
        return counted.clues
