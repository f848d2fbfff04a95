"""Cluster pairs: pairs of sets of rows that refinements make smaller and joins work in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClusterPairs:
    """Pairs of sets of rows: pair k is `left[left_offsets[k]:left_offsets[k + 1]]` with the same of `right`.

    Each row is in at most one left set and in at most one right set; sets are in order of the values that they
    agree on, rows ascending inside.

    Attributes
    ----------
    left, right : int32 arrays, C order. One object where every pair is reflexive (both sides the same set).
    left_offsets, right_offsets : int64 arrays (clusters + 1,)
    kept : what a twin worked out about these sets and may use again (orders by a column, on the device or here)
    """

    left: NDArray[np.int32]
    left_offsets: NDArray[np.int64]
    right: NDArray[np.int32]
    right_offsets: NDArray[np.int64]
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def reflexive(self) -> bool:
        return self.right is self.left

    @property
    def clusters(self) -> int:
        return len(self.left_offsets) - 1

    @property
    def pairs(self) -> int:
        """Ordered pairs of rows, those of a row with itself included."""
        return int(np.dot(np.diff(self.left_offsets), np.diff(self.right_offsets)))


def all_rows(left: NDArray[np.int32], right: NDArray[np.int32] | None = None) -> ClusterPairs:
    """One pair of sets. `left`, `right`: int32 rows, ascending; without `right` the pair is reflexive.

    Examples
    --------
    >>> all_rows(np.arange(3, dtype=np.int32)).pairs
    9
    """
    offsets = np.array([0, len(left)], dtype=np.int64)
    if right is None:
        return ClusterPairs(left, offsets, left, offsets)
    return ClusterPairs(left, offsets, right, np.array([0, len(right)], dtype=np.int64))


def restrict(
    pairs: ClusterPairs, left_mask: NDArray[np.bool_] | None, right_mask: NDArray[np.bool_] | None
) -> ClusterPairs:
    """Cluster pairs without some rows. Masks: bool (rows,) by row, None for all; one object for both keeps a pair of
    sets reflexive. Clusters may be empty afterwards."""
    if left_mask is None and right_mask is None:
        return pairs
    left, left_offsets = _masked(pairs.left, pairs.left_offsets, left_mask)
    if pairs.reflexive and left_mask is right_mask:
        return ClusterPairs(left, left_offsets, left, left_offsets)
    right, right_offsets = _masked(pairs.right, pairs.right_offsets, right_mask)
    if right is left:  # the side that is not cut is no longer the same set
        right = right.copy()
    return ClusterPairs(left, left_offsets, right, right_offsets)


def _masked(
    rows: NDArray[np.int32], offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    if mask is None:
        return rows, offsets
    kept = mask[rows]
    before = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(kept, out=before[1:])
    return rows[kept], before[offsets]


def exchanged(pairs: ClusterPairs) -> ClusterPairs:
    """The cluster pairs with left and right exchanged; reflexive ones are as they were."""
    if pairs.reflexive:
        return pairs
    return ClusterPairs(pairs.right, pairs.right_offsets, pairs.left, pairs.left_offsets)


def rows_on_both_sides(pairs: ClusterPairs, rows: int) -> NDArray[np.int32]:
    """Rows that are in the left and the right set of one cluster pair, int32: each is a pair with itself.

    `rows`: rows of the table.
    """
    if pairs.reflexive:
        return pairs.left
    clusters = np.full(rows, -1, dtype=np.int32)
    clusters[pairs.left] = np.repeat(np.arange(pairs.clusters, dtype=np.int32), np.diff(pairs.left_offsets))
    of_right = np.repeat(np.arange(pairs.clusters, dtype=np.int32), np.diff(pairs.right_offsets))
    both: NDArray[np.int32] = pairs.right[clusters[pairs.right] == of_right]
    return both
