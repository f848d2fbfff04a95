"""Tree of extremes over the right side, to find the rows of a slice that satisfy the second inequality.

The tree is the heap of the CPU twin: leaf k, at leaves + k, is the extreme code of 16 rows, and node i the extreme of
nodes 2 i and 2 i + 1. Each left row has one thread, which walks the tree without a stack: the node after i and all
below it is i + 1, halved while it is even.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from tuplewise.gpu_kernels.cuda.grouping import HIGHEST_CODE, LOWEST_CODE
from tuplewise.gpu_kernels.cuda.primitives import empty, kernel, launch, output
from tuplewise.gpu_kernels.join_types import FIRST, FIRST_END

LEAF = 16  # rows under one leaf of the tree
FIND_ROWS = 1 << 16  # left rows of the first search for partners


@kernel("int32[::1], int64, int32[::1]")
def fill_leaves_kernel(codes, largest, tree):
    """tree[leaves + k] = extreme of codes[16 k : 16 k + 16], int32. One thread a leaf.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: leaves are enough for the codes.
    """
    leaves = tree.shape[0] // 2
    for k in range(cuda.grid(1), leaves, cuda.gridsize(1)):
        extreme = np.int32(LOWEST_CODE if largest else HIGHEST_CODE)
        for i in range(LEAF * k, min(codes.shape[0], LEAF * k + LEAF)):
            extreme = max(extreme, codes[i]) if largest else min(extreme, codes[i])
        tree[leaves + k] = extreme


@kernel("int64, int64, int32[::1]")
def fill_nodes_kernel(first, largest, tree):
    """tree[first : 2 * first] from the level below it, int32. One thread a node.

    Grid: any size. Races: own item; what it reads, an earlier launch wrote. Shared memory: 0 bytes. Assumes unchecked:
    that.
    """
    for node in range(first + cuda.grid(1), 2 * first, cuda.gridsize(1)):
        a, b = tree[2 * node], tree[2 * node + 1]
        tree[node] = max(a, b) if largest else min(a, b)


def build_tree(codes: Any, largest: int) -> Any:
    """Build the heap over codes: int32 (2 x leaves,), leaves a power of two."""
    leaves = 1
    while leaves * LEAF < codes.shape[0]:
        leaves *= 2
    tree = empty(2 * leaves, np.int32)
    launch(fill_leaves_kernel, leaves, codes, largest, tree)
    while leaves > 1:
        leaves //= 2
        launch(fill_nodes_kernel, leaves, leaves, largest, tree)
    return tree


@kernel("int32[::1], int64, int64[::1]")
def shift_codes_kernel(codes, step, shifted):
    """shifted[k] = codes[k] + step, int64, so that the largest code has one above it. One thread a code.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: nothing.
    """
    for k in range(cuda.grid(1), codes.shape[0], cuda.gridsize(1)):
        shifted[k] = np.int64(codes[k]) + step


@cuda.jit(device=True)
def satisfies(code, limit, largest):
    """Tell whether a code is at least (not `largest`: at most) the limit."""
    return code >= limit if largest else code <= limit


@kernel("int64[:,::1], int64[::1], int32[::1], int32[::1], int32[::1], int64, int64[::1], uint64[::1]")
def emit_join_kernel(slices, limits, tree, right, right_codes, largest, offsets, keys):
    """keys[offsets[k] : offsets[k + 1]] = k << 32 | right row: the pairs of left row k that satisfy both inequalities.

    One thread a left row; it descends where extremes say that there are partners.

    slices : int64 (n, 4), the first two: where partners by the first inequality stand
    limits : int64 (n,), the code that a partner has at least (not `largest`: at most)
    tree : int32, over right_codes
    right, right_codes : int32, the right side in its order
    offsets : int64 (n + 1,)

    Grid: any size. Races: own stretch of keys, between its offsets. Shared memory: 0 bytes. Assumes unchecked: counting
    has left that room.
    """
    leaves = tree.shape[0] // 2
    for k in range(cuda.grid(1), limits.shape[0], cuda.gridsize(1)):
        low, high, limit = slices[k, FIRST], slices[k, FIRST_END], limits[k]
        at, end = offsets[k], offsets[k + 1]
        node = np.int64(1)
        first_of_level = np.int64(1)
        span = np.int64(leaves * LEAF)
        while at < end:
            first = (node - first_of_level) * span
            if first < high and first + span > low and satisfies(tree[node], limit, largest):
                if node < leaves:
                    node *= 2
                    first_of_level *= 2
                    span >>= 1
                    continue
                for place in range(max(low, first), min(high, first + span)):
                    if satisfies(right_codes[place], limit, largest):
                        keys[at] = (np.uint64(k) << np.uint64(32)) | np.uint64(right[place])
                        at += 1
            node += 1
            while node & 1 == 0:
                node >>= 1
                first_of_level >>= 1
                span <<= 1
            if node == 1:
                break


@kernel("int32[::1], int64[:,::1], int64[::1], int32[::1], int32[::1], int32[::1], int64, int8[::1]")
def flag_partners_kernel(rows, slices, limits, tree, right, right_codes, largest, flags):
    """flags[k] = 1 where another row than rows[k] itself satisfies both inequalities with it, int8.

    One thread a left row; it stops at the first partner. Other arrays as `emit_join_kernel`.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: the tree is of right_codes.
    """
    leaves = tree.shape[0] // 2
    for k in range(cuda.grid(1), flags.shape[0], cuda.gridsize(1)):
        low, high, limit = slices[k, FIRST], slices[k, FIRST_END], limits[k]
        node = np.int64(1)
        first_of_level = np.int64(1)
        span = np.int64(leaves * LEAF)
        found = 0
        while low < high and not found:
            first = (node - first_of_level) * span
            if first < high and first + span > low and satisfies(tree[node], limit, largest):
                if node < leaves:
                    node *= 2
                    first_of_level *= 2
                    span >>= 1
                    continue
                for place in range(max(low, first), min(high, first + span)):
                    if satisfies(right_codes[place], limit, largest) and right[place] != rows[k]:
                        found = 1
            node += 1
            while node & 1 == 0:
                node >>= 1
                first_of_level >>= 1
                span <<= 1
            if node == 1:
                break
        flags[k] = found


@kernel("int32[::1], int32[::1], int64[:,::1], int32[::1], int32[::1], int32[::1], int64, int64, int32[::1]")
def pick_extremes_kernel(places, rows, slices, tree, right, right_codes, largest, upwards, partners):
    """partners[i] = the right row of the extreme code in the slice of left row k = places[i], int32.

    Not the left row itself; of equal codes the first (not `upwards`: the last) in the order of the right side.

    One thread a chosen left row: it walks the tree in that order and goes down where a node is better than the best so
    far.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: there is such a row.
    """
    leaves = tree.shape[0] // 2
    for i in range(cuda.grid(1), places.shape[0], cuda.gridsize(1)):
        k = places[i]
        low, high = slices[k, FIRST], slices[k, FIRST_END]
        best = np.int64(LOWEST_CODE - 1 if largest else HIGHEST_CODE + 1)
        partner = np.int32(-1)
        node = np.int64(1)  # counted from the side where the walk begins
        first_of_level = np.int64(1)
        span = np.int64(leaves * LEAF)
        while True:
            there = node if upwards else 3 * first_of_level - 1 - node
            first = (there - first_of_level) * span
            code = np.int64(tree[there])
            better = code > best if largest else code < best
            if first < high and first + span > low and better:
                if node < leaves:
                    node *= 2
                    first_of_level *= 2
                    span >>= 1
                    continue
                begin, end = max(low, first), min(high, first + span)
                for step in range(end - begin):
                    place = begin + step if upwards else end - 1 - step
                    code = np.int64(right_codes[place])
                    better = code > best if largest else code < best
                    if better and right[place] != rows[k]:
                        best, partner = code, right[place]
            node += 1
            while node & 1 == 0:
                node >>= 1
                first_of_level >>= 1
                span <<= 1
            if node == 1:
                break
        partners[i] = partner


@kernel("int32[::1], int64[::1], int32[::1], int32[::1]")
def reverse_clusters_kernel(rows, offsets, numbers, reversed_rows):
    """reversed_rows = the rows of each cluster from the last to the first, int32. One thread a row.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: numbers are the rows' clusters.
    """
    for i in range(cuda.grid(1), rows.shape[0], cuda.gridsize(1)):
        c = numbers[i]
        reversed_rows[i] = rows[offsets[c] + offsets[c + 1] - 1 - i]


def backwards(rows: Any, offsets: Any, numbers: Any) -> Any:
    """Reverse the rows of each cluster."""
    return output(reverse_clusters_kernel, rows.shape[0], np.int32, rows, offsets, numbers)
