"""K-d tree over the right rows of each cluster. The partners of a row are the right rows in a box, with one dimension
for each inequality.

A box is a closed interval [low, high] of right codes for each comparison of the left code t:
    t.A <  u.A   [t + 1, highest]        t.A >  u.A   [lowest, t - 1]
    t.A <= u.A   [t,     highest]        t.A >= u.A   [lowest, t]
A node with the bounds [l, h] is apart from the box where h < low or l > high in some dimension, and inside it where low
<= l and h <= high in all.

Source: Bentley, "Multidimensional binary search trees used for associative searching", CACM 18(9), 1975; its use for
denial constraints is that of Rapidash (Liu et al., PVLDB 17(8), 2024). Departures: the tree is built at once and
balanced (medians of one column after the other, bounds as tight as the rows in them), so sorted input does no harm;
nodes inside the box are counted without descending; all operators become closed intervals of integer codes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import sort
from tuplewise.gpu_kernels.cpu.grouping import cluster_numbers
from tuplewise.gpu_kernels.cpu.joins import COMPARED, NO_COUNTS, Compared, CpuJoin, compared_by
from tuplewise.gpu_kernels.join_types import EQUAL, LESS

LEAF = 16  # most rows of a leaf
DEEPEST = 128  # nodes on the stack at most: one a level beside the current one
LOWEST, HIGHEST = -2147483648, 2147483647


class Trees(NamedTuple):
    """Trees of all clusters.

    Node k has the rows rows[starts[k]:ends[k]], with codes within lows[k] .. highs[k]. Its children are children[k] and
    children[k] + 1; a leaf has 0.

    Attributes
    ----------
    rows : int32, the right rows, in the trees' order
    roots : int64 (clusters,)
    starts, ends, children : int64 (nodes,)
    lows, highs : int32 (nodes, comparisons)
    """

    rows: NDArray[np.int32]
    roots: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    children: NDArray[np.int64]
    lows: NDArray[np.int32]
    highs: NDArray[np.int32]


TREES = "Trees(int32[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[:, ::1], int32[:, ::1])"


@helper
def split_at_median(rows, column, low, high):
    """Partition rows[low:high] by its median in order of (code, row), as quickselect does; returns the median's place.

    Ties are broken by row, so the rows of a node don't depend on the order of the input.
    """
    wanted = (low + high) >> 1
    last = high - 1
    first = low
    while first < last:
        row = rows[(first + last) >> 1]
        pivot = column[row]
        i, j = first, last
        while i <= j:
            while column[rows[i]] < pivot or (column[rows[i]] == pivot and rows[i] < row):
                i += 1
            while column[rows[j]] > pivot or (column[rows[j]] == pivot and rows[j] > row):
                j -= 1
            if i <= j:
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if wanted <= j:
            last = j
        elif wanted >= i:
            first = i
        else:
            break
    return wanted


@kernel("int64[::1]")
def nodes_needed(offsets):
    """Upper bound of the number of nodes of all trees: each has at most 2 x (least power of two >= rows / LEAF)."""
    total = 0
    for c in range(len(offsets) - 1):
        leaves = 1
        while leaves * LEAF < offsets[c + 1] - offsets[c]:
            leaves *= 2
        total += 2 * leaves
    return total


@kernel(f"int64[::1], const int32[:, ::1], int64[::1], {TREES}")
def build_trees(offsets, codes, columns, trees: Trees):
    """Build the trees: rows are permuted into the trees' order, ascending within a leaf."""
    rows, roots, starts, ends, children, lows, highs = trees
    nodes = 0
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    for c in range(len(offsets) - 1):
        roots[c] = nodes
        starts[nodes], ends[nodes] = offsets[c], offsets[c + 1]
        stack[0, 0], stack[0, 1] = nodes, 0
        nodes += 1
        depth = 1
        while depth:
            depth -= 1
            node, axis = stack[depth, 0], stack[depth, 1]
            low, high = starts[node], ends[node]
            for d in range(len(columns)):
                small, large = np.int32(HIGHEST), np.int32(LOWEST)
                for i in range(low, high):
                    code = codes[columns[d], rows[i]]
                    small = min(small, code)
                    large = max(large, code)
                lows[node, d], highs[node, d] = small, large
            children[node] = 0
            if high - low <= LEAF:
                sort(rows[low:high])
                continue
            middle = split_at_median(rows, codes[columns[axis]], low, high)
            children[node] = nodes
            starts[nodes], ends[nodes] = low, middle
            starts[nodes + 1], ends[nodes + 1] = middle, high
            axis = (axis + 1) % len(columns)
            stack[depth, 0], stack[depth, 1] = nodes + 1, axis
            stack[depth + 1, 0], stack[depth + 1, 1] = nodes, axis
            depth += 2
            nodes += 2


@helper
def set_box(row, codes, lcolumns, outcomes, box):
    """Set the closed interval of right codes that each comparison allows."""
    for d in range(len(lcolumns)):
        code = np.int64(codes[lcolumns[d], row])
        box[d, 0], box[d, 1] = LOWEST, HIGHEST
        if outcomes[d] & LESS:
            box[d, 0] = code if outcomes[d] & EQUAL else code + 1
        else:
            box[d, 1] = code if outcomes[d] & EQUAL else code - 1


@helper
def search_box(root, box, codes, rcolumns, trees, skip, limit, number, at, keys):
    """Find the right rows in the box, at most `limit` (negative: all), without row `skip`; returns how many.

    Rows are written to `keys` from `at` on, as `number` << 32 | row; where `keys` is empty they are only counted.
    Second result: number of nodes visited.
    """
    rows, _, starts, ends, children, lows, highs = trees
    stack = np.empty(DEEPEST, dtype=np.int64)
    stack[0] = root
    depth = 1
    found = 0
    seen = 0
    writes = len(keys) > 0
    while depth:
        depth -= 1
        node = stack[depth]
        seen += 1
        apart = starts[node] == ends[node]
        inside = True
        for d in range(len(rcolumns)):
            apart |= highs[node, d] < box[d, 0] or lows[node, d] > box[d, 1]
            inside &= lows[node, d] >= box[d, 0] and highs[node, d] <= box[d, 1]
        if apart:
            continue
        if inside and not writes and skip < 0:
            found += ends[node] - starts[node]
            continue
        if children[node] and not inside:
            stack[depth] = children[node] + 1
            stack[depth + 1] = children[node]
            depth += 2
            continue
        for i in range(starts[node], ends[node]):
            row = rows[i]
            good = row != skip
            if not inside:
                for d in range(len(rcolumns)):
                    code = codes[rcolumns[d], row]
                    good &= box[d, 0] <= code <= box[d, 1]
            if good:
                if writes:
                    keys[at + found] = (np.uint64(number) << np.uint64(32)) | np.uint64(row)
                found += 1
                if found == limit:
                    return found, seen
    return found, seen


@kernel(
    f"int32[::1], int32[::1], const int32[:, ::1], {COMPARED}, {TREES}, int64, int64, int64, int64[::1], int64"
)
def count_boxes(left, clusters, codes, compared: Compared, trees: Trees, first, last, step, counts, sign):
    """Count the pairs of every `step`-th left row of [first, last). Second result: number of nodes visited."""
    lcolumns, rcolumns, outcomes = compared
    roots = trees.roots
    box = np.empty((len(lcolumns), 2), dtype=np.int64)
    nothing = np.empty(0, dtype=np.uint64)
    total = 0
    nodes = 0
    for i in range(first, last, step):
        row = left[i]
        set_box(row, codes, lcolumns, outcomes, box)
        found, seen = search_box(roots[clusters[i]], box, codes, rcolumns, trees, -1, -1, 0, 0, nothing)
        total += found
        nodes += seen
        if len(counts):
            counts[row] += sign * found
    return total, nodes


@kernel(f"int32[::1], int32[::1], const int32[:, ::1], {COMPARED}, {TREES}, int64[::1], uint64[::1]")
def list_boxes(lefts, clusters, codes, compared: Compared, trees: Trees, offsets, keys):
    """Count the partners of left row k into offsets[k + 1] where `keys` is empty, else list them in `keys`."""
    lcolumns, rcolumns, outcomes = compared
    roots = trees.roots
    box = np.empty((len(lcolumns), 2), dtype=np.int64)
    for k in range(len(lefts)):
        cluster = clusters[lefts[k]]
        if cluster < 0 or (len(keys) > 0 and offsets[k] == offsets[k + 1]):
            continue
        set_box(lefts[k], codes, lcolumns, outcomes, box)
        at = offsets[k] if len(keys) else 0
        found, _ = search_box(roots[cluster], box, codes, rcolumns, trees, -1, -1, k, at, keys)
        if len(keys) == 0:
            offsets[k + 1] = found


@kernel(f"int32[::1], int32[::1], const int32[:, ::1], {COMPARED}, {TREES}, int32[:, ::1]")
def find_boxes(left, clusters, codes, compared: Compared, trees: Trees, found):
    """Fill `found` with pairs of different rows; returns how many."""
    lcolumns, rcolumns, outcomes = compared
    roots = trees.roots
    box = np.empty((len(lcolumns), 2), dtype=np.int64)
    keys = np.empty(len(found), dtype=np.uint64)
    n = 0
    for i in range(len(left)):
        set_box(left[i], codes, lcolumns, outcomes, box)
        hits, _ = search_box(roots[clusters[i]], box, codes, rcolumns, trees, left[i], len(found) - n, 0, 0, keys)
        for k in range(hits):
            found[n, 0], found[n, 1] = left[i], np.int32(keys[k] & np.uint64(0xFFFFFFFF))
            n += 1
        if n == len(found):
            break
    return n


class KdTreeJoin(CpuJoin):
    """Join of one or more inequalities."""

    task_rows = 4096

    def prepare(self) -> None:
        pairs = self.pairs
        self._compared, self._clusters = compared_by(self.comparisons), cluster_numbers(pairs.left_offsets)
        nodes, columns = int(nodes_needed(pairs.right_offsets)), len(self.comparisons)
        self._trees = Trees(
            rows=pairs.right.copy(),
            roots=np.empty(pairs.clusters, dtype=np.int64),
            starts=np.empty(nodes, dtype=np.int64),
            ends=np.empty(nodes, dtype=np.int64),
            children=np.empty(nodes, dtype=np.int64),
            lows=np.empty((nodes, columns), dtype=np.int32),
            highs=np.empty((nodes, columns), dtype=np.int32),
        )
        build_trees(pairs.right_offsets, self.codes, self._compared.right, self._trees)

    def nodes_for(self, sample_rows: int) -> float:
        """Estimate the cost of counting: average number of nodes that a left row visits, from a sample of left rows."""
        n = len(self.pairs.left)
        step = max(1, n // max(1, sample_rows))
        _, nodes = self._count(0, n, step, NO_COUNTS, 1)
        return nodes / max(1, -(-n // step))

    def _count(self, first: int, last: int, step: int, counts: NDArray[np.int64], sign: int) -> tuple[int, int]:
        found: tuple[int, int] = count_boxes(
            self.pairs.left, self._clusters, self.codes, self._compared, self._trees, first, last, step, counts, sign
        )
        return found

    def count_part(self, first: int, last: int, counts: NDArray[np.int64], sign: int) -> int:
        return self._count(first, last, 1, counts, sign)[0]

    def list_partners(self, query: Any, offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        list_boxes(*query, self.codes, self._compared, self._trees, offsets, keys)

    def fill(self, found: NDArray[np.int32]) -> int:
        return int(find_boxes(self.pairs.left, self._clusters, self.codes, self._compared, self._trees, found))
