"""Joins of two inequalities: slices of the side sorted by one column, counted by a wavelet matrix of the other column.

Counting takes one step for each bit of the second column's dense ranks, whatever the number of pairs. Existence takes
one pass with running extremes. Listing descends a tree of extremes only where there are partners.

The matrix has one row of bits for each bit of the ranks, highest first. With ones(p) as the ones of a level before
place p, and Z as the zeros of the level, place p goes on to place p - ones(p) of the next level where its bit is 0, and
to Z + ones(p) where it is 1. To count the ranks below r in [low, high), go down the levels: where r has bit 1, the
places with bit 0, (high - ones(high)) - (low - ones(low)), are below r and those with bit 1 go on; where r has bit 0,
only the places with bit 0 go on.

Source: IEJoin (Khayyat et al., "Lightning Fast and Space Efficient Inequality Joins", PVLDB 8(13), 2015) sorts by both
columns and scans a bit array for each row. Departures: the wavelet matrix (Claude, Navarro, Ordonez, "The wavelet
matrix", Information Systems 47, 2015) counts set bits of that array without scanning it, so that counting 10^12 pairs
costs no more than counting none; pairs are listed by priority search over extremes, in time that grows with their
number.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, inlined, kernel
from tuplewise.gpu_kernels.cpu.extremes import build_tree, find_extreme, report_partners
from tuplewise.gpu_kernels.cpu.grouping import bits_for, extremes_of, mark_values
from tuplewise.gpu_kernels.cpu.joins import CpuJoin, ordered_side
from tuplewise.gpu_kernels.cpu.sorted_join import bisect, move_to, partners_of, slices_of
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS

WIDTHS = ("uint8", "uint16", "uint32")  # dtypes of ranks


class Second(NamedTuple):
    """Second inequality: its left column and outcomes, and a wavelet matrix of the right side.

    Attributes
    ----------
    column : int32 (rows,)
    below : int32, below[k] = number of distinct right codes less than lowest + k
    words, ones, zeros : see `build_levels`
    """

    column: NDArray[np.int32]
    outcomes: int
    below: NDArray[np.int32]
    lowest: int
    words: NDArray[np.uint64]
    ones: NDArray[np.int32]
    zeros: NDArray[np.int64]


SECOND = "Second(const int32[::1], int64, int32[::1], int64, uint64[:, ::1], int32[:, ::1], int64[::1])"


@kernel(*(f"int32[::1], const int32[::1], int64, int32[::1], {width}[::1]" for width in WIDTHS))
def write_ranks(rows, column, lowest, below, ranks):
    """Write ranks[i] = dense rank of row i's code."""
    for i in range(len(rows)):
        ranks[i] = below[column[rows[i]] - lowest]


@kernel(*(f"{width}[::1], {width}[::1], int64, uint64[:, ::1], int32[:, ::1], int64[::1]" for width in WIDTHS))
def build_levels(ranks, other, levels, words, ones, zeros):
    """Build the wavelet matrix of `ranks` (destroyed; `other` is room of the same shape).

    Bit i % 64 of words[level, i // 64] is the bit of place i, highest bit of the ranks first; ones[level, w] counts the
    ones before word w; zeros[level] counts the zeros of the level. Each level is partitioned stably for the next,
    places with bit 0 first.
    """
    n = len(ranks)
    for level in range(levels):
        bit = np.uint32(levels - 1 - level)
        nothing = 0
        for i in range(n):
            nothing += 1 - ((ranks[i] >> bit) & np.uint32(1))
        zeros[level] = nothing
        z = 0
        o = nothing
        word = np.uint64(0)
        for i in range(n):
            if i & 63 == 0:
                ones[level, i >> 6] = o - nothing
            if (ranks[i] >> bit) & np.uint32(1):
                word |= np.uint64(1) << np.uint64(i & 63)
                other[o] = ranks[i]
                o += 1
            else:
                other[z] = ranks[i]
                z += 1
            if i & 63 == 63 or i == n - 1:
                words[level, i >> 6] = word
                word = np.uint64(0)
        if n & 63 == 0:
            ones[level, n >> 6] = o - nothing
            words[level, n >> 6] = np.uint64(0)
        ranks, other = other, ranks


@inlined
def ones_before(words, ones, level, place):
    """Count the ones of a level before a place: ones[level, place // 64] + popcount(lower place % 64 bits of the
    word)."""
    word = place >> 6
    bits = words[level, word] & ((np.uint64(1) << np.uint64(place & 63)) - np.uint64(1))
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(ones[level, word]) + np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@helper
def count_below(words, ones, zeros, low, high, rank):
    """Count the places in [low, high) whose rank is below `rank`."""
    levels = len(zeros)
    if rank >= np.int64(1) << levels:
        return high - low
    found = 0
    for level in range(levels):
        if low >= high:
            return found
        before_low = ones_before(words, ones, level, low)
        before_high = ones_before(words, ones, level, high)
        if (rank >> (levels - 1 - level)) & 1:
            found += (high - before_high) - (low - before_low)
            low = zeros[level] + before_low
            high = zeros[level] + before_high
        else:
            low -= before_low
            high -= before_high
    return found


@helper
def threshold_of(below, lowest, code, outcomes):
    """Threshold of dense ranks: partners have ranks below it (GREATER), or at least it (LESS)."""
    # rank of the first code >= code for u < t and u >= t, of the first code > code for u <= t and u > t
    place = np.int64(code) - lowest + (1 if outcomes == LESS or outcomes == GREATER | EQUAL else 0)
    return np.int64(below[min(max(place, 0), len(below) - 1)])


@kernel(
    "int32[::1], int64[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64, "
    f"{SECOND}, int64, int64, int64[::1], int64"
)
def count_dominated(
    left, loffsets, lcolumn, right, roffsets, rcolumn, outcomes, second: Second, first, last, counts, sign
):
    """Count pairs of the left places [first, last) that satisfy both inequalities; the right side is sorted by the
    first."""
    lsecond, second_outcomes, below, lowest, words, ones, zeros = second
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
            row = left[i]
            lower, upper = move_to(lcolumn[row], right, rcolumn, lower, upper, end)
            a, b, _, _ = slices_of(outcomes, start, lower, upper, end)
            if a < b:
                partners = count_below(
                    words, ones, zeros, a, b, threshold_of(below, lowest, lsecond[row], second_outcomes)
                )
                if second_outcomes & LESS:
                    partners = b - a - partners
                total += partners
                if len(counts):
                    counts[row] += sign * partners
            i += 1
    return total


class WaveletJoin(CpuJoin):
    """Join of two inequalities. The structures for counting and listing are built when first needed."""

    def prepare(self) -> None:
        pairs, codes = self.pairs, self.codes
        first, second = self.comparisons
        self._outcomes, self._second_outcomes = first.outcomes, second.outcomes
        self._lcolumn, self._rcolumn = codes[first.left], codes[first.right]
        self._lsecond, self._rsecond = codes[second.left], codes[second.right]
        self._largest = bool(second.outcomes & LESS)
        self._left = ordered_side(pairs, codes, first.left, "left")
        self._right = ordered_side(pairs, codes, first.right, "right")

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        if not len(self.pairs.left) or not len(self.pairs.right):
            return 0
        _ = self._second  # computed before threads need it
        return super().count(counts, sign)

    def count_part(self, first: int, last: int, counts: NDArray[np.int64], sign: int) -> int:
        found: int = count_dominated(
            self._left, self.pairs.left_offsets, self._lcolumn, self._right, self.pairs.right_offsets, self._rcolumn,
            self._outcomes, self._second, first, last, counts, sign,
        )  # fmt: skip
        return found

    @cached_property
    def _second(self) -> Second:
        column, n = self._rsecond, len(self._right)
        lowest, highest = (int(x) for x in extremes_of(self._right, column))
        seen = np.zeros(highest - lowest + 2, dtype=np.bool_)
        mark_values(self._right, column, lowest, seen)
        below = np.zeros(highest - lowest + 2, dtype=np.int32)  # below[k]: number of distinct codes less than lowest +
        # k
        np.cumsum(seen[:-1], out=below[1:])
        levels = bits_for(int(below[-1]))
        words = np.zeros((levels, n // 64 + 1), dtype=np.uint64)
        ones = np.zeros((levels, n // 64 + 1), dtype=np.int32)
        zeros = np.zeros(levels, dtype=np.int64)
        kind = np.uint8 if levels <= 8 else np.uint16 if levels <= 16 else np.uint32
        ranks = np.empty(n, dtype=kind)
        write_ranks(self._right, column, lowest, below, ranks)
        build_levels(ranks, np.empty_like(ranks), levels, words, ones, zeros)
        return Second(self._lsecond, self._second_outcomes, below, lowest, words, ones, zeros)

    @cached_property
    def _tree(self) -> NDArray[np.int32]:
        return build_tree(self._right, self._rsecond, self._largest)

    def ask(self, rows: NDArray[np.int32]) -> tuple[Any, ...]:
        """Arguments of the kernels that report partners."""
        slices = np.empty((len(rows), 4), dtype=np.int64)
        rows, clusters = super().ask(rows)
        partners_of(
            rows, clusters, self._lcolumn, self._right, self.pairs.right_offsets, self._rcolumn, self._outcomes, slices
        )
        thresholds = self._lsecond[rows]
        if not self._second_outcomes & EQUAL:
            thresholds = thresholds + np.int32(1 if self._largest else -1)
        return self._tree, self._right, self._rsecond, slices, thresholds, self._largest

    def list_partners(self, query: tuple[Any, ...], offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        report_partners(*query, offsets, keys)

    def fill(self, found: NDArray[np.int32]) -> int:
        n: int = find_extreme(
            self._left, self.pairs.left_offsets, self._lcolumn, self._right, self.pairs.right_offsets, self._rcolumn,
            self._outcomes, self._lsecond, self._rsecond, self._second_outcomes, found,
        )  # fmt: skip
        return n
