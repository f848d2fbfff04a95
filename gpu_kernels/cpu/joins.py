"""Common part of all joins on the CPU: counting in stretches of left rows, listing in two passes, finding some pairs.

An algorithm implements four methods. `count_part` counts the partners of a stretch of left rows. `ask` looks up chosen
left rows. `list_partners` counts or lists their partners. `fill` finds the first pairs.

Partners are listed as 64-bit keys, key = k << 32 | right row for left row number k, so k = key >> 32 and right row =
key & (2^32 - 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.grouping import cluster_numbers, order_by
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.join_types import Comparison

NO_COUNTS = np.empty(0, dtype=np.int64)
NO_KEYS = np.empty(0, dtype=np.uint64)


class Compared(NamedTuple):
    """Left column, right column and outcomes of each comparison: int64 (comparisons,)."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    outcomes: NDArray[np.int64]


COMPARED = "Compared(int64[::1], int64[::1], int64[::1])"


def compared_by(comparisons: list[Comparison]) -> Compared:
    """Arrays of the comparisons."""
    terms = np.array([(c.left, c.right, c.outcomes) for c in comparisons], dtype=np.int64).reshape(-1, 3)
    return Compared(*np.ascontiguousarray(terms.T))


class CpuJoin(ABC):
    """Join on the CPU."""

    task_rows = 1 << 16  # left rows of a task

    def __init__(
        self, pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: list[Comparison], control: Control
    ) -> None:
        self.pairs, self.codes, self.comparisons, self.control = pairs, codes, comparisons, control
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Build the algorithm's own structures."""

    @abstractmethod
    def count_part(self, first: int, last: int, counts: NDArray[np.int64], sign: int) -> int:
        """Count the pairs of the left places [first, last); `counts`, unless empty, is as in `PairJoin`."""

    @abstractmethod
    def list_partners(self, query: Any, offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        """Count or list the partners of the left rows of a query.

        Without keys: the number of partners of the k-th row into offsets[k + 1], zeros before. With keys: the partners,
        from offsets[k] on, as k << 32 | right row.
        """

    @abstractmethod
    def fill(self, found: NDArray[np.int32]) -> int:
        """Fill `found` with pairs of different rows; returns how many."""

    def ask(self, rows: NDArray[np.int32]) -> Any:
        """Query of these left rows: the rows themselves, and the clusters of all rows."""
        return rows, clusters_of_rows(self.pairs, self.codes.shape[1])

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        """Count on all threads. Raises TimeoutError where the deadline passed first, since a partial count is
        useless."""
        firsts = range(0, len(self.pairs.left), self.task_rows)
        totals = [0] * len(firsts)
        added = NO_COUNTS if counts is None else counts

        def work(task: int) -> None:
            last = min(len(self.pairs.left), firsts[task] + self.task_rows)
            totals[task] = int(self.count_part(firsts[task], last, added, sign))

        if not run_tasks([1.0] * len(firsts), lambda: work, self.control):
            raise TimeoutError("the deadline came before all pairs were counted")
        return sum(totals)

    def emit(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        query, offsets = self.ask(rows), np.zeros(len(rows) + 1, dtype=np.int64)
        self.list_partners(query, offsets, NO_KEYS)
        np.cumsum(offsets, out=offsets)
        keys = np.empty(int(offsets[-1]), dtype=np.uint64)
        if len(keys):
            self.list_partners(query, offsets, keys)
        keys.sort()
        return offsets, (keys & np.uint64(0xFFFFFFFF)).astype(np.int32)

    def find(self, limit: int) -> NDArray[np.int32]:
        found = np.empty((limit, 2), dtype=np.int32)
        return found[: self.fill(found)]


def ordered_side(pairs: ClusterPairs, codes: NDArray[np.int32], column: int, side: str) -> NDArray[np.int32]:
    """Rows of a side in order of (cluster, code, place); computed once for a side and column."""
    key = ("order", "both" if pairs.reflexive else side, column)
    members, offsets = (pairs.left, pairs.left_offsets) if side == "left" else (pairs.right, pairs.right_offsets)
    return _kept(pairs, key, lambda: order_by(members, offsets, codes[column]))


def clusters_of_rows(pairs: ClusterPairs, rows: int) -> NDArray[np.int32]:
    """Cluster of each row as a left row, int32 (rows,); -1 where it is in none."""

    def made() -> NDArray[np.int32]:
        clusters = np.full(rows, -1, dtype=np.int32)
        clusters[pairs.left] = cluster_numbers(pairs.left_offsets)
        return clusters

    return _kept(pairs, "clusters", made)


def _kept(pairs: ClusterPairs, key: Any, make: Callable[[], NDArray[np.int32]]) -> NDArray[np.int32]:
    """Value kept with cluster pairs; made at the first call."""
    if key not in pairs.kept:
        pairs.kept[key] = make()
    kept: NDArray[np.int32] = pairs.kept[key]
    return kept
