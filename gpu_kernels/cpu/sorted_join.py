"""Hash-sort-merge: the partners of a row are one or two slices of the right side, sorted by code inside clusters.

Source: Pena, de Almeida, Naumann (PVLDB 15(4), 2022), section 5.3, after VioFinder (CIKM 2020). Departure: the unions
of tuple ids that the published algorithm builds step by step are slices of one sorted array here, which need no
union, no bitmap and no memory of their own; values hash to themselves, since codes are dense.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.compiled import helper, inlined, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.grouping import cluster_numbers, order_by
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Comparison

TASK_ROWS = 1 << 16  # left rows that one thread takes at a time
NO_COUNTS = np.empty(0, dtype=np.int64)


@inlined
def slices_of(outcomes, start, lower, upper, end):
    """Where the partners stand: [a, b) and [c, d) of the sorted right side.

    [start, end) is the cluster, [lower, upper) its rows that are equal to the left row.
    """
    if outcomes == LESS | GREATER:
        return start, lower, upper, end
    a = start if outcomes & GREATER else (lower if outcomes & EQUAL else upper)
    b = end if outcomes & LESS else (upper if outcomes & EQUAL else lower)
    return a, b, end, end


@helper
def bisect(rows, column, low, high, code, after):
    """First place in rows[low:high], sorted by code, whose code is >= `code` (`after`: > `code`)."""
    while low < high:
        middle = (low + high) >> 1
        value = column[rows[middle]]
        if value < code or (after and value == code):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(
    "int32[::1], int64[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64, int64, "
    "int64, int64[::1], int64"
)
def count_slices(left, loffsets, lcolumn, right, roffsets, rcolumn, outcomes, first, last, counts, sign):
    """Pairs of the left places [first, last); both sides are in order of (cluster, code)."""
    total = 0
    c = np.searchsorted(loffsets, first, side="right") - 1
    i = first
    while i < last:
        while loffsets[c + 1] <= i:
            c += 1
        start, end = roffsets[c], roffsets[c + 1]
        stop = min(last, loffsets[c + 1])
        lower = bisect(right, rcolumn, start, end, lcolumn[left[i]], False)
        upper = lower
        while i < stop:
            code = lcolumn[left[i]]
            while lower < end and rcolumn[right[lower]] < code:
                lower += 1
            upper = max(upper, lower)
            while upper < end and rcolumn[right[upper]] == code:
                upper += 1
            a, b, e, d = slices_of(outcomes, start, lower, upper, end)
            partners = b - a + d - e
            total += partners
            if len(counts):
                counts[left[i]] += sign * partners
            i += 1
    return total


@kernel("int32[::1], int64[::1], int64[::1], int64[::1], int64")
def count_products(left, loffsets, roffsets, counts, sign):
    """Pairs of whole clusters."""
    total = 0
    for c in range(len(loffsets) - 1):
        partners = roffsets[c + 1] - roffsets[c]
        total += partners * (loffsets[c + 1] - loffsets[c])
        if len(counts):
            for i in range(loffsets[c], loffsets[c + 1]):
                counts[left[i]] += sign * partners
    return total


@kernel(
    "int32[::1], int32[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64, int64[:, ::1]"
)
def partners_of(rows, clusters, lcolumn, right, roffsets, rcolumn, outcomes, slices):
    """slices[k] = (a, b, c, d): where the partners of rows[k] stand."""
    for k in range(len(rows)):
        c = clusters[rows[k]]
        if c < 0:
            slices[k, :] = 0
            continue
        start, end = roffsets[c], roffsets[c + 1]
        if outcomes == LESS | EQUAL | GREATER:
            slices[k, 0], slices[k, 1], slices[k, 2], slices[k, 3] = start, end, end, end
            continue
        code = lcolumn[rows[k]]
        lower = bisect(right, rcolumn, start, end, code, False)
        upper = bisect(right, rcolumn, lower, end, code, True)
        a, b, e, d = slices_of(outcomes, start, lower, upper, end)
        slices[k, 0], slices[k, 1], slices[k, 2], slices[k, 3] = a, b, e, d


@kernel("int64[:, ::1], int32[::1], int64[::1], uint64[::1]")
def write_slices(slices, right, offsets, keys):
    """keys = (number of the left row) << 32 | right row, from offsets[k] on for row k."""
    for k in range(len(slices)):
        at = offsets[k]
        for part in range(2):
            for place in range(slices[k, 2 * part], slices[k, 2 * part + 1]):
                keys[at] = (np.uint64(k) << np.uint64(32)) | np.uint64(right[place])
                at += 1


@kernel(
    "int32[::1], int64[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64, int32[:, ::1]"
)
def find_slices(left, loffsets, lcolumn, right, roffsets, rcolumn, outcomes, found):
    """Fill `found` with pairs of different rows, cluster by cluster; returns how many."""
    n = 0
    for c in range(len(loffsets) - 1):
        start, end = roffsets[c], roffsets[c + 1]
        lower, upper = start, end
        if outcomes != LESS | EQUAL | GREATER:
            upper = start
        for i in range(loffsets[c], loffsets[c + 1]):
            if outcomes != LESS | EQUAL | GREATER:
                code = lcolumn[left[i]]
                while lower < end and rcolumn[right[lower]] < code:
                    lower += 1
                upper = max(upper, lower)
                while upper < end and rcolumn[right[upper]] == code:
                    upper += 1
            a, b, e, d = slices_of(outcomes, start, lower, upper, end)
            for place in range(a, b):
                if right[place] != left[i]:
                    found[n, 0], found[n, 1] = left[i], right[place]
                    n += 1
                    if n == len(found):
                        return n
            for place in range(e, d):
                if right[place] != left[i]:
                    found[n, 0], found[n, 1] = left[i], right[place]
                    n += 1
                    if n == len(found):
                        return n
    return n


def ordered_side(pairs: ClusterPairs, codes: NDArray[np.int32], column: int, side: str) -> NDArray[np.int32]:
    """Rows of a side in order of (cluster, code, place); worked out once for a side and column."""
    key = ("order", "both" if pairs.reflexive else side, column)
    if key not in pairs.kept:
        members, offsets = (pairs.left, pairs.left_offsets) if side == "left" else (pairs.right, pairs.right_offsets)
        pairs.kept[key] = order_by(members, offsets, codes[column])
    kept: NDArray[np.int32] = pairs.kept[key]
    return kept


def clusters_of_rows(pairs: ClusterPairs, rows: int) -> NDArray[np.int32]:
    """Cluster of each row as a left row, int32 (rows,); -1 where it is in none."""
    if "clusters" not in pairs.kept:
        numbers = np.empty(len(pairs.left), dtype=np.int32)
        cluster_numbers(pairs.left_offsets, numbers)
        clusters = np.full(rows, -1, dtype=np.int32)
        clusters[pairs.left] = numbers
        pairs.kept["clusters"] = clusters
    kept: NDArray[np.int32] = pairs.kept["clusters"]
    return kept


def sum_over_left(
    left_rows: int, count: Callable[[int, int], int], control: Control, task_rows: int = TASK_ROWS
) -> int:
    """Sum of count(first, last) over stretches of the left side, on all threads.

    Raises TimeoutError where the deadline came first: a part of a count is no count.
    """
    firsts = list(range(0, left_rows, task_rows))
    totals = [0] * len(firsts)

    def worker() -> Callable[[int], None]:
        def work(task: int) -> None:
            totals[task] = int(count(firsts[task], min(left_rows, firsts[task] + task_rows)))

        return work

    if not run_tasks([1.0] * len(firsts), worker, control):
        raise TimeoutError("the deadline came before all pairs were counted")
    return sum(totals)


def unpack(keys: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Right rows of keys that hold (number of the left row) << 32 | right row, sorted."""
    keys.sort()
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.int32)


class SortedJoin:
    """At most one comparison."""

    def __init__(
        self, pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: list[Comparison], control: Control
    ) -> None:
        self._pairs, self._rows, self._control = pairs, codes.shape[1], control
        self._outcomes = comparisons[0].outcomes if comparisons else LESS | EQUAL | GREATER
        self._compares = bool(comparisons)
        left, right = (comparisons[0].left, comparisons[0].right) if comparisons else (0, 0)
        self._lcolumn, self._rcolumn = codes[left], codes[right]
        self._left = ordered_side(pairs, codes, left, "left") if comparisons else pairs.left
        self._right = ordered_side(pairs, codes, right, "right") if comparisons else pairs.right

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        p, counts = self._pairs, NO_COUNTS if counts is None else counts
        if not self._compares:
            return int(count_products(p.left, p.left_offsets, p.right_offsets, counts, sign))

        def part(first: int, last: int) -> int:
            found: int = count_slices(
                self._left, p.left_offsets, self._lcolumn, self._right, p.right_offsets, self._rcolumn,
                self._outcomes, first, last, counts, sign,
            )  # fmt: skip
            return found

        return sum_over_left(len(p.left), part, self._control)

    def emit(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        p = self._pairs
        slices = np.empty((len(rows), 4), dtype=np.int64)
        clusters = clusters_of_rows(p, self._rows)
        partners_of(rows, clusters, self._lcolumn, self._right, p.right_offsets, self._rcolumn, self._outcomes, slices)
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(slices[:, 1] - slices[:, 0] + slices[:, 3] - slices[:, 2], out=offsets[1:])
        keys = np.empty(int(offsets[-1]), dtype=np.uint64)
        write_slices(slices, self._right, offsets, keys)
        return offsets, unpack(keys)

    def find(self, limit: int) -> NDArray[np.int32]:
        p = self._pairs
        found = np.empty((limit, 2), dtype=np.int32)
        n = find_slices(
            self._left,
            p.left_offsets,
            self._lcolumn,
            self._right,
            p.right_offsets,
            self._rcolumn,
            self._outcomes,
            found,
        )
        return found[:n]
