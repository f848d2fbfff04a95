"""Refinement of cluster pairs by an order predicate, into few cluster pairs.

Two ranks are in order exactly when, at the highest bit in which they differ, the one has 0 and the other 1. So the
pairs that satisfy `t.A < u.B` fall into one set of cluster pairs for each bit: rows that agree on the bits above, left
rows with 0, right rows with 1; `<=` has one set more, of equal ranks, and `!=` is `<` and `>`.

Source: the range tree (Bentley, "Decomposable searching problems", Information Processing Letters 8(5), 1979). It takes
the place of the sort-merge inequality join, the IEJoin for cluster pairs and the anti-join of Hydra (section 6.3),
which make up to one cluster pair for each value: n rows become n log n at most here, not n times values, and each row
is in at most one left and one right set of a level.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.cpu.joins import ordered_side
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Comparison


def refine_by_order(pairs: ClusterPairs, codes: NDArray[np.int32], c: Comparison) -> Iterator[ClusterPairs]:
    """Cluster pairs, level by level, that hold exactly the pairs of `pairs` that satisfy a comparison.

    Parameters
    ----------
    codes : int32 (columns, rows)
        Null (-1) is lower than all values; rows that it leaves out are not in `pairs`.

    Notes
    -----
    Cost: a sort of both sides by cluster and code, and a pass over them for each bit of the most values that a cluster
    has. Memory: 12 bytes a row, and one level.
    """
    left, right = ordered_side(pairs, codes, c.left, "left"), ordered_side(pairs, codes, c.right, "right")
    left_keys, right_keys = np.empty(len(left), dtype=np.int64), np.empty(len(right), dtype=np.int64)
    left_column, right_column = codes[c.left], codes[c.right]
    highest = _rank(
        left, pairs.left_offsets, left_column, right, pairs.right_offsets, right_column, left_keys, right_keys
    )
    for bit in range(int(highest).bit_length() - 1, -1, -1):
        for outcome, low in ((LESS, 0), (GREATER, 1)):
            if c.outcomes & outcome:
                yield _level(left, left_keys, right, right_keys, bit, low)
    if c.outcomes & EQUAL:
        yield _level(left, left_keys, right, right_keys, -1, 0)


def _level(
    left: NDArray[np.int32], left_keys: NDArray[np.int64], right: NDArray[np.int32], right_keys: NDArray[np.int64],
    bit: int, low: int,
) -> ClusterPairs:  # fmt: skip
    lrows, rrows = np.empty(len(left), dtype=np.int32), np.empty(len(right), dtype=np.int32)
    most = min(len(left), len(right)) + 1
    loffsets, roffsets = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    clusters, ln, rn = _match(left, left_keys, right, right_keys, bit, low, lrows, loffsets, rrows, roffsets)
    sides = (lrows[:ln].copy(), loffsets[: clusters + 1].copy(), rrows[:rn].copy(), roffsets[: clusters + 1].copy())
    return ClusterPairs(*sides)


@kernel("int32[::1], int64[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64[::1], int64[::1]")
def _rank(
    left: NDArray[np.int32],
    loffsets: NDArray[np.int64],
    lcolumn: NDArray[np.int32],
    right: NDArray[np.int32],
    roffsets: NDArray[np.int64],
    rcolumn: NDArray[np.int32],
    lkeys: NDArray[np.int64],
    rkeys: NDArray[np.int64],
) -> int:
    """Keys cluster << 32 | rank of the code in its cluster pair; returns the highest rank. Sides are sorted so."""
    highest = 0
    for c in range(len(loffsets) - 1):
        i, iend, j, jend = loffsets[c], loffsets[c + 1], roffsets[c], roffsets[c + 1]
        rank = 0
        while i < iend or j < jend:
            if j == jend or (i < iend and lcolumn[left[i]] <= rcolumn[right[j]]):
                code = lcolumn[left[i]]
            else:
                code = rcolumn[right[j]]
            while i < iend and lcolumn[left[i]] == code:
                lkeys[i] = c << 32 | rank
                i += 1
            while j < jend and rcolumn[right[j]] == code:
                rkeys[j] = c << 32 | rank
                j += 1
            highest = max(highest, rank)
            rank += 1
    return highest


@kernel(
    "int32[::1], int64[::1], int32[::1], int64[::1], int64, int64, int32[::1], int64[::1], int32[::1], "
    "int64[::1]"
)
def _match(
    left: NDArray[np.int32],
    lkeys: NDArray[np.int64],
    right: NDArray[np.int32],
    rkeys: NDArray[np.int64],
    bit: int,
    low: int,
    lrows: NDArray[np.int32],
    loffsets: NDArray[np.int64],
    rrows: NDArray[np.int32],
    roffsets: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Clusters of the keys that agree above a bit, left rows with `low` there, right rows with the other (bit -1: all).

    Keys are ascending. Returns clusters, left and right rows. Clusters of one row on both sides are left out.
    """
    clusters = ln = rn = i = j = 0
    shift = bit + 1
    loffsets[0] = roffsets[0] = 0
    while i < len(left) and j < len(right):
        a, b = lkeys[i] >> shift, rkeys[j] >> shift
        if a < b:
            i += 1
            continue
        if b < a:
            j += 1
            continue
        lfirst, rfirst = ln, rn
        while i < len(left) and lkeys[i] >> shift == a:
            if bit < 0 or (lkeys[i] >> bit) & 1 == low:
                lrows[ln] = left[i]
                ln += 1
            i += 1
        while j < len(right) and rkeys[j] >> shift == a:
            if bit < 0 or (rkeys[j] >> bit) & 1 != low:
                rrows[rn] = right[j]
                rn += 1
            j += 1
        alone = ln - lfirst == 1 and rn - rfirst == 1 and lrows[lfirst] == rrows[rfirst]
        if ln > lfirst and rn > rfirst and not alone:
            clusters += 1
            loffsets[clusters] = ln
            roffsets[clusters] = rn
        else:
            ln, rn = lfirst, rfirst
    return clusters, ln, rn
