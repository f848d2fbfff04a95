"""Hash-sort-merge: the partners of a row are one or two slices of the right side, sorted by code inside clusters.

With [lower, upper) as the places of equal codes in the cluster [start, end), the partners of a left row are
    t.A <  u.A   [upper, end)      t.A >  u.A   [start, lower)     t.A == u.A   [lower, upper)
    t.A <= u.A   [lower, end)      t.A >= u.A   [start, upper)     t.A != u.A   [start, lower) and [upper, end)
and their number is b - a + d - c for the slices [a, b) and [c, d).

Source: Pena, de Almeida, Naumann (PVLDB 15(4), 2022), section 5.3, after VioFinder (CIKM 2020). Departure: the unions
of tuple ids that the published algorithm builds step by step are slices of one sorted array here, which need no union,
no bitmap and no memory of their own; codes are dense, so they serve as hashes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, inlined, kernel
from tuplewise.gpu_kernels.cpu.joins import CpuJoin, ordered_side
from tuplewise.gpu_kernels.join_types import (
    EQUAL,
    FIRST,
    FIRST_END,
    GREATER,
    LESS,
    SECOND,
    SECOND_END,
    Comparison,
)


@inlined
def slices_of(outcomes, start, lower, upper, end):
    """Slices [a, b) and [c, d) of the sorted right side with the partners of a left row.

    [start, end) is the cluster, [lower, upper) are its rows with the left row's code.
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


@helper
def move_to(code, rows, column, lower, upper, end):
    """Advance lower and upper to the first rows whose codes are >= and > `code`; both start at or before these."""
    while lower < end and column[rows[lower]] < code:
        lower += 1
    upper = max(upper, lower)
    while upper < end and column[rows[upper]] == code:
        upper += 1
    return lower, upper


@kernel(
    "int32[::1], int64[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64, int64, "
    "int64, int64[::1], int64"
)
def count_slices(left, loffsets, lcolumn, right, roffsets, rcolumn, outcomes, first, last, counts, sign):
    """Count the pairs of the left places [first, last); both sides are in order of (cluster, code)."""
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
            lower, upper = move_to(lcolumn[left[i]], right, rcolumn, lower, upper, end)
            a, b, e, d = slices_of(outcomes, start, lower, upper, end)
            partners = b - a + d - e
            total += partners
            if len(counts):
                counts[left[i]] += sign * partners
            i += 1
    return total


@kernel(
    "int32[::1], int32[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64, int64[:, ::1]"
)
def partners_of(rows, clusters, lcolumn, right, roffsets, rcolumn, outcomes, slices):
    """Write the slices of the partners of rows[k] to slices[k]."""
    for k in range(len(rows)):
        c = clusters[rows[k]]
        if c < 0:
            slices[k, :] = 0
            continue
        start, end = roffsets[c], roffsets[c + 1]
        if outcomes == LESS | EQUAL | GREATER:
            slices[k, FIRST], slices[k, FIRST_END], slices[k, SECOND], slices[k, SECOND_END] = start, end, end, end
            continue
        code = lcolumn[rows[k]]
        lower = bisect(right, rcolumn, start, end, code, False)
        upper = bisect(right, rcolumn, lower, end, code, True)
        a, b, e, d = slices_of(outcomes, start, lower, upper, end)
        slices[k, FIRST], slices[k, FIRST_END], slices[k, SECOND], slices[k, SECOND_END] = a, b, e, d


@kernel("int64[:, ::1], int32[::1], int64[::1], uint64[::1]")
def write_slices(slices, right, offsets, keys):
    """Write the keys k << 32 | right row of left row k, from offsets[k] on."""
    for k in range(len(slices)):
        at = offsets[k]
        for part in (FIRST, SECOND):
            for place in range(slices[k, part], slices[k, part + 1]):
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
                lower, upper = move_to(lcolumn[left[i]], right, rcolumn, lower, upper, end)
            a, b, e, d = slices_of(outcomes, start, lower, upper, end)
            for k in range(b - a + d - e):
                place = a + k if k < b - a else e + k - (b - a)
                if right[place] != left[i]:
                    found[n, 0], found[n, 1] = left[i], right[place]
                    n += 1
                    if n == len(found):
                        return n
    return n


class SortedJoin(CpuJoin):
    """Join of at most one comparison."""

    def prepare(self) -> None:
        pairs, codes = self.pairs, self.codes
        c = self.comparisons[0] if self.comparisons else Comparison(0, 0, LESS | EQUAL | GREATER)
        self._outcomes, self._lcolumn, self._rcolumn = c.outcomes, codes[c.left], codes[c.right]
        self._left = ordered_side(pairs, codes, c.left, "left") if self.comparisons else pairs.left
        self._right = ordered_side(pairs, codes, c.right, "right") if self.comparisons else pairs.right

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        if self.comparisons:
            return super().count(counts, sign)
        if counts is not None and len(counts):
            partners = np.repeat(np.diff(self.pairs.right_offsets), np.diff(self.pairs.left_offsets))
            counts[self.pairs.left] += sign * partners
        return self.pairs.pairs

    def count_part(self, first: int, last: int, counts: NDArray[np.int64], sign: int) -> int:
        found: int = count_slices(
            self._left, self.pairs.left_offsets, self._lcolumn, self._right, self.pairs.right_offsets, self._rcolumn,
            self._outcomes, first, last, counts, sign,
        )  # fmt: skip
        return found

    def ask(self, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        rows, clusters = super().ask(rows)
        slices = np.empty((len(rows), 4), dtype=np.int64)
        partners_of(
            rows, clusters, self._lcolumn, self._right, self.pairs.right_offsets, self._rcolumn, self._outcomes, slices
        )
        return slices

    def list_partners(self, query: NDArray[np.int64], offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        if len(keys):
            write_slices(query, self._right, offsets, keys)
        else:
            offsets[1:] = query[:, FIRST_END] - query[:, FIRST] + query[:, SECOND_END] - query[:, SECOND]

    def fill(self, found: NDArray[np.int32]) -> int:
        n: int = find_slices(
            self._left, self.pairs.left_offsets, self._lcolumn, self._right, self.pairs.right_offsets, self._rcolumn,
            self._outcomes, found,
        )  # fmt: skip
        return n
