"""Cluster pairs: pairs of sets of rows, which refinements split and joins search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClusterPairs:
    """Pairs of sets of rows: pair k is `left[left_offsets[k]:left_offsets[k + 1]]` and the like slice of `right`.

    Each row is in at most one left set and at most one right set. Pairs are in order of the values that their rows
    agree on; rows ascend within a set.

    Attributes
    ----------
    left, right : int32 arrays, C order. One object where every pair is reflexive (both sides the same set).
    left_offsets, right_offsets : int64 arrays (clusters + 1,)
    kept : results of a twin that it may use again (rows ordered by a column, on the device or the host)
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
        """Number of ordered pairs of rows, pairs of a row with itself included."""
        return int(np.dot(np.diff(self.left_offsets), np.diff(self.right_offsets)))


def all_rows(left: NDArray[np.int32], right: NDArray[np.int32] | None = None) -> ClusterPairs:
    """A single cluster pair. `left`, `right`: int32 rows, ascending; without `right` the pair is reflexive.

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
    """Cluster pairs with only the rows that the masks keep. Masks: bool (rows,), None keeps all. One object passed as
    both masks keeps reflexive pairs reflexive. Clusters may be empty afterwards."""
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
    """Cluster pairs with left and right exchanged; reflexive ones are unchanged."""
    if pairs.reflexive:
        return pairs
    return ClusterPairs(pairs.right, pairs.right_offsets, pairs.left, pairs.left_offsets)


def rows_on_both_sides(pairs: ClusterPairs, rows: int) -> NDArray[np.int32]:
    """Rows in both the left and the right set of one cluster pair, int32: each makes a pair with itself.

    `rows`: rows of the table.
    """
    if pairs.reflexive:
        return pairs.left
    clusters = np.full(rows, -1, dtype=np.int32)
    clusters[pairs.left] = np.repeat(np.arange(pairs.clusters, dtype=np.int32), np.diff(pairs.left_offsets))
    of_right = np.repeat(np.arange(pairs.clusters, dtype=np.int32), np.diff(pairs.right_offsets))
    both: NDArray[np.int32] = pairs.right[clusters[pairs.right] == of_right]
    return both
