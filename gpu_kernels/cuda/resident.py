"""Cluster pairs and columns on the device, kept there for all later steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.cuda.grouping import cluster_numbers, gathered, order_by, scatter_clusters_kernel
from tuplewise.gpu_kernels.cuda.primitives import device_index, filled, launch, to_device


@dataclass(frozen=True, eq=False)
class Ordered:
    """Side in order of (cluster, code, place): its rows, and their codes in the column, int32 (rows of the side,)."""

    rows: Any
    codes: Any


class Side:
    """Side of cluster pairs on the device, with at least one row.

    Attributes
    ----------
    rows : int32 device array, as in ClusterPairs
    offsets : int64 device array (clusters + 1,)
    numbers : int32 device array, the cluster of each row
    """

    def __init__(self, rows: Any, offsets: Any, clusters: int) -> None:
        self.rows, self.offsets, self.clusters = rows, offsets, clusters
        self.numbers = cluster_numbers(offsets, rows.shape[0])
        self._ordered: dict[int, Ordered] = {}
        self._by_row: Any = None

    def ordered(self, column: int, codes: Any) -> Ordered:
        """Order the side by a column, whose codes are on the device; computed once."""
        if column not in self._ordered:
            order = order_by(self.numbers, self.clusters, gathered(codes, self.rows))
            rows = gathered(self.rows, order)
            self._ordered[column] = Ordered(rows, gathered(codes, rows))
        return self._ordered[column]

    def by_row(self, rows: int) -> Any:
        """Cluster of each row of the table, int32 (rows,); -1 for rows in none."""
        if self._by_row is None:
            self._by_row = filled(rows, -1, np.int32)
            launch(scatter_clusters_kernel, self.rows.shape[0], self.rows, self.numbers, self._by_row)
        return self._by_row


class Resident:
    """Cluster pairs on the current device, and the columns of their table that were needed."""

    def __init__(self, codes: NDArray[np.int32], columns: dict[int, Any], left: Side, right: Side) -> None:
        self.codes, self.columns, self.left, self.right = codes, columns, left, right

    def column(self, number: int) -> Any:
        """Codes of a column, int32 (rows,), copied to the device once for cluster pairs and all refined from them."""
        if number not in self.columns:
            self.columns[number] = to_device(self.codes[number])
        return self.columns[number]


def resident(pairs: ClusterPairs, codes: NDArray[np.int32]) -> Resident:
    """Copies of cluster pairs on the current device, made at the first call; both sides must have rows."""
    key = place_of_device()
    found = pairs.kept.get(key)
    if found is None or found.codes is not codes:
        left = Side(to_device(pairs.left), to_device(pairs.left_offsets), pairs.clusters)
        if pairs.reflexive:
            right = left
        else:
            right = Side(to_device(pairs.right), to_device(pairs.right_offsets), pairs.clusters)
        found = pairs.kept[key] = Resident(codes, {}, left, right)
    kept: Resident = found
    return kept


def place_of_device() -> tuple[str, int]:
    """Key under which cluster pairs keep the current device's copies."""
    return "cuda", device_index()
