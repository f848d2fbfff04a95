"""CPU twin of the refinements: equality refinement, and the choice of the join."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import grouping
from tuplewise.gpu_kernels.cpu.bitmaps import BitmapJoin
from tuplewise.gpu_kernels.cpu.kd_tree import KdTreeJoin
from tuplewise.gpu_kernels.cpu.sorted_join import SortedJoin
from tuplewise.gpu_kernels.cpu.wavelet import WaveletJoin
from tuplewise.gpu_kernels.join_types import Comparison, PairJoin

JOINS: dict[str, Callable[..., PairJoin]] = {
    "hsm": SortedJoin,
    "iejoin": WaveletJoin,
    "kdtree": KdTreeJoin,
    "bhsm": BitmapJoin,
}


def make_join(
    pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: list[Comparison], algorithm: str, control: Control
) -> PairJoin:
    """Make the join of one algorithm; see the front door."""
    return JOINS[algorithm](pairs, codes, comparisons, control)


def refine_equal(
    pairs: ClusterPairs, codes: NDArray[np.int32], equalities: list[tuple[int, int]], control: Control
) -> ClusterPairs:
    """Refine cluster pairs by equalities; see the front door."""
    while equalities:
        columns = [left for left, right in equalities if left == right] if pairs.reflexive else []
        if columns:
            columns = columns[: _that_fit(pairs, codes, columns)]
            pairs = _refine_reflexive(pairs, codes, columns)
            equalities = [(left, right) for left, right in equalities if left != right or left not in columns]
        else:
            for left, right in equalities[1:]:  # rows without a partner in a later equality needn't be sorted for this
            # one
                pairs = ClusterPairs(*_with_partners(pairs, codes[left], codes[right]))
            left, right = equalities[0]
            pairs = _refine_sides(pairs, codes[left], codes[right])
            equalities = equalities[1:]
    return pairs


def _that_fit(pairs: ClusterPairs, codes: NDArray[np.int32], columns: list[int]) -> int:
    """Number of these columns that one key can hold beside cluster and place; at least 1."""
    used = grouping.bits_for(pairs.clusters) + grouping.bits_for(len(pairs.left))
    for number, column in enumerate(columns):
        lowest, highest = grouping.extremes_of(pairs.left, codes[column])
        used += grouping.bits_for(int(highest) - int(lowest) + 1)
        if used > grouping.KEY_BITS:
            return max(1, number)
    return len(columns)


def _refine_reflexive(pairs: ClusterPairs, codes: NDArray[np.int32], columns: list[int]) -> ClusterPairs:
    """Refine reflexive pairs, which stay reflexive."""
    members, offsets = pairs.left, pairs.left_offsets
    n = len(members)
    ordered = np.empty(n, dtype=np.int32)
    new_offsets = np.empty(n // 2 + 1, dtype=np.int64)
    spans = [grouping.extremes_of(members, codes[c]) for c in columns]
    bits = [grouping.bits_for(int(high) - int(low) + 1) for low, high in spans]
    index_bits = grouping.bits_for(n)
    if len(columns) == 1 and pairs.clusters == 1 and int(spans[0][1]) - int(spans[0][0]) < grouping.TABLE_SHARE * n:
        lowest = spans[0][0]
        table = np.zeros(int(spans[0][1]) - int(lowest) + 1, dtype=np.int64)
        grouping.count_table(members, codes[columns[0]], lowest, table)
        starts = np.empty(len(table), dtype=np.int64)
        clusters, rows = grouping.table_offsets(table, 2, starts, new_offsets)
        grouping.scatter_table(members, codes[columns[0]], lowest, starts, ordered)
    elif len(columns) > 1 or grouping.bits_for(pairs.clusters) + bits[0] + index_bits <= grouping.KEY_BITS:
        keys = np.empty(n, dtype=np.uint64)
        lows = np.array([low for low, _ in spans], dtype=np.int32)
        shifts = np.array(bits, dtype=np.int64)
        grouping.write_keys(offsets, members, codes, np.array(columns, dtype=np.int64), shifts, index_bits, lows, keys)
        keys.sort()
        clusters, rows = grouping.runs_to_clusters(keys, index_bits, members, ordered, new_offsets)
    else:
        sorted_rows = grouping.order_by(members, offsets, codes[columns[0]])
        clusters, rows = grouping.split_runs(sorted_rows, offsets, codes[columns[0]], ordered, new_offsets)
    kept, kept_offsets = _cut(ordered, rows), new_offsets[: clusters + 1].copy()
    return ClusterPairs(kept, kept_offsets, kept, kept_offsets)


def _cut(rows: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    """First rows; a copy where keeping the rest would waste memory."""
    return rows[:length] if 4 * length >= 3 * len(rows) else rows[:length].copy()


def _refine_sides(pairs: ClusterPairs, lcolumn: NDArray[np.int32], rcolumn: NDArray[np.int32]) -> ClusterPairs:
    """Refine pairs whose sides are different sets, or are compared on different columns."""
    left, loffsets, right, roffsets = _with_partners(pairs, lcolumn, rcolumn)
    left = grouping.order_by(left, loffsets, lcolumn)
    right = grouping.order_by(right, roffsets, rcolumn)
    lrows, rrows = np.empty(len(left), dtype=np.int32), np.empty(len(right), dtype=np.int32)
    most = min(len(left), len(right)) + 1
    lnew, rnew = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    clusters, ln, rn = grouping.match_runs(left, loffsets, lcolumn, right, roffsets, rcolumn, lrows, lnew, rrows, rnew)
    return ClusterPairs(_cut(lrows, ln), lnew[: clusters + 1].copy(), _cut(rrows, rn), rnew[: clusters + 1].copy())


def _with_partners(
    pairs: ClusterPairs, lcolumn: NDArray[np.int32], rcolumn: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Both sides, with offsets, without rows whose value never occurs on the other side in any cluster: less to sort.

    Keeps all rows where a table over the values would be large.
    """
    left, right = (pairs.left, pairs.left_offsets, lcolumn), (pairs.right, pairs.right_offsets, rcolumn)
    spans = [grouping.extremes_of(rows, column) for rows, _, column in (left, right)]
    lowest, highest = max(int(low) for low, _ in spans), min(int(high) for _, high in spans)
    if highest - lowest >= grouping.TABLE_SHARE * (len(pairs.left) + len(pairs.right)):
        return pairs.left, pairs.left_offsets, pairs.right, pairs.right_offsets
    seen = np.ones(max(0, highest - lowest + 1), dtype=np.bool_)
    for rows, _, column in (left, right):
        there = np.zeros_like(seen)
        grouping.mark_values(rows, column, lowest, there)
        seen &= there
    kept = []
    for rows, offsets, column in (left, right):
        remaining, new_offsets = np.empty(len(rows), dtype=np.int32), np.empty(len(offsets), dtype=np.int64)
        count = grouping.keep_seen(rows, offsets, column, lowest, seen, remaining, new_offsets)
        kept.append((_cut(remaining, count), new_offsets))
    return *kept[0], *kept[1]
