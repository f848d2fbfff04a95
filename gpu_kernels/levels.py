"""Joins of three or more inequalities: the order of one column is split bit by bit into joins with one inequality less.

For ranks a < b, the highest bit in which they differ is 0 in a and 1 in b. So the pairs with `t.A < u.A` fall into one
set of cluster pairs for each bit: rows that agree on all higher bits, left rows with 0, right rows with 1. Where the
operator includes equality, equal ranks make one more set. Each set is a join of the other inequalities, down to two,
which a wavelet matrix counts. This module only calls joins, so it serves every device.

Source: the range tree (Bentley, "Decomposable searching problems", Information Processing Letters 8(5), 1979), which
Rapidash (Liu et al., PVLDB 17(8), 2024) uses for denial constraints. Departures: laid out by the bits of ranks and
processed level by level, one level in memory at a time, so memory doesn't grow with the number of inequalities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.join_types import EQUAL, LESS, Algorithm, Comparison, PairJoin

FAR_APART = 4  # range of codes for each row up to which a table over the codes gives ranks

MakeJoin = Callable[[ClusterPairs, list[Comparison], Algorithm], PairJoin]


class LevelJoin:
    """Join of three or more inequalities. `make` makes a join of fewer comparisons, or a k-d tree for listing."""

    def __init__(
        self, pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: list[Comparison], make: MakeJoin
    ) -> None:
        self._pairs, self._codes, self._comparisons, self._make = pairs, codes, comparisons, make
        self._listing: PairJoin | None = None

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        return sum(join.count(counts, sign) for join in self._levels())

    def find(self, limit: int) -> NDArray[np.int32]:
        found = [np.empty((0, 2), dtype=np.int32)]
        for join in self._levels():
            found.append(join.find(limit - sum(map(len, found))))
            if sum(map(len, found)) >= limit:
                break
        return np.concatenate(found)

    def emit(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        if self._listing is None:
            self._listing = self._make(self._pairs, self._comparisons, "kdtree")
        return self._listing.emit(rows)

    def _levels(self) -> Iterator[PairJoin]:
        """Joins of the other inequalities: one for each bit of the first, and one for equal ranks where they count."""
        if not len(self._pairs.left) or not len(self._pairs.right):
            return
        ranked = [_ranks(self._pairs, self._codes, c) for c in self._comparisons]
        axis = int(np.argmin([distinct for _, _, distinct in ranked]))
        c, others = self._comparisons[axis], self._comparisons[:axis] + self._comparisons[axis + 1 :]
        left = _Side(self._pairs.left, self._pairs.left_offsets, ranked[axis][0])
        right = _Side(self._pairs.right, self._pairs.right_offsets, ranked[axis][1])
        del ranked[:]
        algorithm: Algorithm = "iejoin" if len(others) == 2 else "rangetree"
        bits = max(left.highest, right.highest).bit_length()
        for bit in range(bits - 1, -1, -1):
            low = 0 if c.outcomes & LESS else 1
            level = _paired(left.with_bit(bit, low), right.with_bit(bit, 1 - low), bit + 1, bits)
            if level.clusters:
                yield self._make(level, others, algorithm)
        if c.outcomes & EQUAL:
            level = _paired(left, right, 0, bits)
            if level.clusters:
                yield self._make(level, others, algorithm)


class _Side:
    """Rows of one side in order of (cluster, rank), with cluster and rank. All arrays (rows of the side,)."""

    def __init__(self, rows: NDArray[np.int32], offsets: NDArray[np.int64], ranks: NDArray[np.int64]) -> None:
        clusters = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
        order = np.argsort((clusters << np.int64(32)) | ranks, kind="stable")
        self.rows, self.clusters, self.ranks = rows[order], clusters[order], ranks[order]

    @property
    def highest(self) -> int:
        return int(self.ranks.max(initial=0))

    def with_bit(self, bit: int, value: int) -> _Side:
        """Rows whose rank has this bit set or clear, in the same order."""
        chosen = (self.ranks >> bit) & 1 == value
        side = object.__new__(_Side)
        side.rows, side.clusters, side.ranks = self.rows[chosen], self.clusters[chosen], self.ranks[chosen]
        return side

    def groups(self, shift: int, bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Runs of equal (cluster, rank >> shift): keys, starts and ends."""
        keys = (self.clusters << np.int64(max(0, bits - shift))) | (self.ranks >> shift)
        starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(keys)), dtype=np.bool_), keys[1:] != keys[:-1]]))
        return keys[starts], starts, np.append(starts[1:], len(keys)).astype(np.int64)


def _paired(left: _Side, right: _Side, shift: int, bits: int) -> ClusterPairs:
    """Cluster pairs of the runs with equal keys on both sides."""
    left_keys, left_starts, left_ends = left.groups(shift, bits)
    right_keys, right_starts, right_ends = right.groups(shift, bits)
    _, in_left, in_right = np.intersect1d(left_keys, right_keys, assume_unique=True, return_indices=True)
    left_rows, left_offsets = _runs(left.rows, left_starts[in_left], left_ends[in_left])
    right_rows, right_offsets = _runs(right.rows, right_starts[in_right], right_ends[in_right])
    return ClusterPairs(left_rows, left_offsets, right_rows, right_offsets)


def _runs(
    rows: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Concatenate stretches of `rows` (ascending, disjoint); with the offsets of each."""
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    if int(offsets[-1]) == len(rows):
        return rows, offsets
    edges = np.zeros(len(rows) + 1, dtype=np.int8)
    np.add.at(edges, starts, 1)
    np.add.at(edges, ends, -1)
    return rows[np.cumsum(edges[:-1], dtype=np.int8).astype(np.bool_)], offsets


def _ranks(
    pairs: ClusterPairs, codes: NDArray[np.int32], c: Comparison
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Dense ranks of both sides' codes, int64, and the number of distinct codes."""
    left, right = codes[c.left][pairs.left], codes[c.right][pairs.right]
    lowest, highest = min(int(left.min()), int(right.min())), max(int(left.max()), int(right.max()))
    if highest - lowest > FAR_APART * (len(left) + len(right)):
        values, ranks = np.unique(np.concatenate([left, right]), return_inverse=True)
        return ranks[: len(left)], ranks[len(left) :], len(values)
    present = np.zeros(highest - lowest + 1, dtype=np.bool_)
    present[left - lowest] = True
    present[right - lowest] = True
    rank = np.cumsum(present) - 1
    return rank[left - lowest], rank[right - lowest], int(rank[-1]) + 1
