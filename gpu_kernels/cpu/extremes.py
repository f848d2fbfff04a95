"""The second of two inequalities: running extremes decide existence, a tree of extremes lists partners.

Source: the pass with a running extreme is that of Rapidash (Liu et al., "Rapidash: Efficient Detection of Constraint
Violations", PVLDB 17(8), 2024) for the existence of one inequality, extended to two columns by sorting; the tree is a
priority search tree stored as a heap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.join_types import EQUAL, FIRST, FIRST_END, GREATER, LESS

LEAF = 16  # rows under one leaf of the tree
DEEPEST = 64  # nodes on the stack at most: two a level


@kernel("int32[::1], const int32[::1], boolean, int32[::1]")
def fill_tree(rows, column, largest, tree):
    """Fill a heap of extremes: leaf k, at len(tree) // 2 + k, is the extreme code of rows[16 k : 16 k + 16], and node i
    the extreme of nodes 2 i and 2 i + 1."""
    half = len(tree) // 2
    for k in range(half):
        low = min(len(rows), k * LEAF)
        high = min(len(rows), low + LEAF)
        extreme = np.int32(-2147483648) if largest else np.int32(2147483647)
        for i in range(low, high):
            code = column[rows[i]]
            extreme = max(extreme, code) if largest else min(extreme, code)
        tree[half + k] = extreme
    for node in range(half - 1, 0, -1):
        a, b = tree[2 * node], tree[2 * node + 1]
        tree[node] = max(a, b) if largest else min(a, b)


def build_tree(rows: NDArray[np.int32], column: NDArray[np.int32], largest: bool) -> NDArray[np.int32]:
    """Build the heap over rows in their order: int32 (2 x leaves,), leaves a power of two."""
    leaves = 1
    while leaves * LEAF < len(rows):
        leaves *= 2
    tree = np.empty(2 * leaves, dtype=np.int32)
    fill_tree(rows, column, largest, tree)
    return tree


@helper
def report(tree, rows, column, low, high, threshold, largest, number, at, keys):
    """Report rows at places [low, high) with a code of at least (not `largest`: at most) `threshold`; returns how many.

    Rows are written to `keys` from `at` on, as `number` << 32 | row; where `keys` is empty they are only counted.
    """
    found = 0
    if low >= high:
        return found
    half = len(tree) // 2
    stack = np.empty(DEEPEST, dtype=np.int64)
    stack[0] = 1
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if (tree[node] < threshold) if largest else (tree[node] > threshold):
            continue
        level_first = node
        span = 1
        while level_first < half:
            level_first *= 2
            span *= 2
        first = (level_first - half) * LEAF
        last = first + span * LEAF
        if last <= low or first >= high:
            continue
        if node < half:
            stack[depth] = 2 * node + 1
            stack[depth + 1] = 2 * node
            depth += 2
            continue
        for i in range(max(low, first), min(high, last)):
            code = column[rows[i]]
            if (code >= threshold) if largest else (code <= threshold):
                if len(keys):
                    keys[at + found] = (np.uint64(number) << np.uint64(32)) | np.uint64(rows[i])
                found += 1
    return found


@kernel(
    "int32[::1], int32[::1], const int32[::1], int64[:, ::1], int32[::1], boolean, int64[::1], uint64[::1]"
)
def report_partners(tree, rows, column, slices, thresholds, largest, offsets, keys):
    """Count the partners of left row k into offsets[k + 1] where `keys` is empty, else list them in `keys`."""
    for k in range(len(slices)):
        low, high = slices[k, FIRST], slices[k, FIRST_END]
        if len(keys) == 0:
            offsets[k + 1] = report(tree, rows, column, low, high, thresholds[k], largest, k, 0, keys)
        elif offsets[k] < offsets[k + 1]:
            report(tree, rows, column, low, high, thresholds[k], largest, k, offsets[k], keys)


@kernel(
    "int32[::1], int64[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int64, "
    "const int32[::1], const int32[::1], int64, int32[:, ::1]"
)
def find_extreme(left, loffsets, lcolumn, right, roffsets, rcolumn, outcomes, lsecond, rsecond, second_outcomes, found):
    """Fill `found` with pairs of different rows that satisfy both inequalities, one for a left row; returns how many.

    Both sides are sorted by the first column. Walking the left side (upwards for `>`, downwards for `<`), the set of
    right rows that satisfy the first inequality only grows. The two rows of it with the extreme codes in the second
    column are kept: two, since a row is no partner of itself.
    """
    n = 0
    upwards = outcomes & GREATER != 0
    with_equal = outcomes & EQUAL != 0
    largest = second_outcomes & LESS != 0
    for c in range(len(loffsets) - 1):
        start, end = roffsets[c], roffsets[c + 1]
        place = start if upwards else end - 1
        best = np.int64(-1)
        next_best = np.int64(-1)
        for k in range(loffsets[c + 1] - loffsets[c]):
            row = np.int64(left[loffsets[c] + k]) if upwards else np.int64(left[loffsets[c + 1] - 1 - k])
            code = lcolumn[row]
            while start <= place < end:
                other = rcolumn[right[place]]
                reached = (other == code and with_equal) or ((other < code) if upwards else (other > code))
                if not reached:
                    break
                new = np.int64(right[place])
                if best < 0 or ((rsecond[new] > rsecond[best]) if largest else (rsecond[new] < rsecond[best])):
                    next_best = best
                    best = new
                elif next_best < 0 or (
                    (rsecond[new] > rsecond[next_best]) if largest else (rsecond[new] < rsecond[next_best])
                ):
                    next_best = new
                place += 1 if upwards else -1
            partner = next_best if best == row else best
            if partner >= 0:
                mine, its = lsecond[row], rsecond[partner]
                good = (second_outcomes & EQUAL != 0 and mine == its) or ((mine < its) if largest else (mine > its))
                if good:
                    found[n, 0], found[n, 1] = row, partner
                    n += 1
                    if n == len(found):
                        return n
    return n
