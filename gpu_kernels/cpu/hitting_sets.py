"""Compiled parts of the enumeration of minimal hitting sets, with sub-problems as lists of edge masks.

A *node* is a partial hitting set X with lists of edges: those that X doesn't hit, and for every vertex of X those that
only this vertex hits (its critical edges). Edges are restricted to the vertices that may still be added. Lists are
arrays of masks, word-major: uint64 (words, edges), first the uncovered edges, then the critical edges of each vertex;
`offsets`, int64 (lists + 1,), has the start of each list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy, order_of
from tuplewise.gpu_kernels.cpu.bits import bits_in, clear_bit, lowest_bit
from tuplewise.gpu_kernels.cpu.hashing import mix_word

OK = 0
NOT_MINIMAL = 1  # a vertex has lost its last critical edge, and so it has in every extension
DEAD = 2  # an edge can't be hit any more

HASH_FROM = 24  # masks of a list below which equal ones are found pairwise, not by hashes
PAIRWISE_TO = 200  # masks of a list above which only equal ones are dropped, not supersets


@helper
def narrow_candidates(chosen, candidates, group_masks, exclusive, max_groups):
    """Remove from `candidates` the vertices that no wanted set can add to `chosen`.

    These are: the last open vertex of a group (excluding all outcomes of a column pair makes a trivial rule); with
    `exclusive`, the other vertices of a touched group; and all other groups, once `max_groups` are touched.
    """
    words, groups = candidates.shape[0], group_masks.shape[0]
    touched = 0
    for g in range(groups):
        inside = 0
        open_ = 0
        for w in range(words):
            inside += bits_in(group_masks[g, w] & chosen[w])
            open_ += bits_in(group_masks[g, w] & ~chosen[w])
        if inside > 0:
            touched += 1
        if inside > 0 and (exclusive or open_ <= 1):
            for w in range(words):
                candidates[w] &= ~group_masks[g, w]
    if touched >= max_groups:
        for g in range(groups):
            inside = 0
            for w in range(words):
                inside += bits_in(group_masks[g, w] & chosen[w])
            if inside == 0:
                for w in range(words):
                    candidates[w] &= ~group_masks[g, w]


@helper
def pair_allowed(chosen, vertex, partner, wanted):
    """Tell whether a vertex and its mirror may be added together: no where that makes their group trivial or shared."""
    g = wanted.group[vertex]
    if wanted.group[partner] != g:
        return True
    if wanted.exclusive:
        return False
    open_ = 0
    for w in range(len(chosen)):
        open_ += bits_in(wanted.group_masks[g, w] & ~chosen[w])
    return open_ > 2


@helper
def merge_equal(masks, weights, first, last):
    """Keep one of equal masks in `masks[:, first:last]`, in place, with the sum of their weights; returns the new end.

    `weights`: int64, weight of each mask; empty where masks have no weights.
    """
    words = masks.shape[0]
    weighted = len(weights) > 0
    capacity = 1
    while capacity < 2 * (last - first):
        capacity *= 2
    table = np.full(capacity, -1, dtype=np.int32)
    end = first
    for i in range(first, last):
        mixed = np.uint64(0)
        for w in range(words):
            mixed = mix_word(mixed, masks[w, i])
        slot = np.int64(mixed & np.uint64(capacity - 1))
        while table[slot] >= 0:
            w = 0
            while w < words and masks[w, table[slot]] == masks[w, i]:
                w += 1
            if w == words:
                break
            slot = (slot + 1) & (capacity - 1)
        if table[slot] < 0:
            for w in range(words):
                masks[w, end] = masks[w, i]
            if weighted:
                weights[end] = weights[i]
            table[slot] = end
            end += 1
        elif weighted:
            weights[table[slot]] += weights[i]
    return end


@helper
def _without_supersets(masks: NDArray[np.uint64], first: int, last: int) -> int:
    """Keep only the minimal masks of `masks[:, first:last]`, in place; returns the new end."""
    words = masks.shape[0]
    count = last - first
    sizes = np.empty(count, dtype=np.int64)
    for i in range(count):
        size = 0
        for w in range(words):
            size += bits_in(masks[w, first + i])
        sizes[i] = size
    order = order_of(sizes)
    kept = np.empty((words, count), dtype=np.uint64)
    end = 0
    for x in range(count):
        i = first + order[x]
        keep = True
        for k in range(end):
            inside = True
            for w in range(words):
                if kept[w, k] & ~masks[w, i]:
                    inside = False
                    break
            if inside:
                keep = False
                break
        if keep:
            for w in range(words):
                kept[w, end] = masks[w, i]
            end += 1
    for w in range(words):
        copy(kept[w, :end], masks[w, first:])
    return first + end


@helper
def minimal_masks(masks: NDArray[np.uint64], first: int, last: int) -> int:
    """Drop redundant masks (equal ones and, in short lists, supersets); returns the new end."""
    if last - first >= HASH_FROM:
        last = merge_equal(masks, np.empty(0, dtype=np.int64), first, last)
    if 1 < last - first <= PAIRWISE_TO:
        last = _without_supersets(masks, first, last)
    return last


@helper
def add_vertex(masks, offsets, safe, vertex, candidates):
    """Add `vertex` to X and restrict the lists to `candidates`.

    Returns (status, masks, offsets, safe). `safe` marks the vertices of X that keep a critical edge whatever is added;
    their lists are empty.
    """
    words, total = masks.shape
    lists = len(offsets) - 1
    word = vertex // 64
    bit = np.uint64(1) << np.uint64(vertex % 64)
    out = np.empty((words, total), dtype=np.uint64)
    new_offsets = np.empty(lists + 2, dtype=np.int64)
    new_safe = np.zeros(lists, dtype=np.bool_)  # one for each vertex of X, the new one last
    end = 0
    new_offsets[0] = 0
    for i in range(offsets[1]):
        if masks[word, i] & bit:
            continue
        some = np.uint64(0)
        for w in range(words):
            rest = masks[w, i] & candidates[w]
            out[w, end] = rest
            some |= rest
        if some == 0:
            return DEAD, out, new_offsets, new_safe
        end += 1
    end = minimal_masks(out, 0, end)
    new_offsets[1] = end
    for x in range(1, lists + 1):
        new = x == lists
        if not new and safe[x - 1]:
            new_safe[x - 1] = True
            new_offsets[x + 1] = end
            continue
        begin = end
        first, last = (0, offsets[1]) if new else (offsets[x], offsets[x + 1])
        for i in range(first, last):
            if ((masks[word, i] & bit) != 0) != new:
                continue
            some = np.uint64(0)
            for w in range(words):
                rest = masks[w, i] & candidates[w]
                out[w, end] = rest
                some |= rest
            end += 1
            if some == 0:
                new_safe[x - 1] = True
                break
        if end == begin:
            return NOT_MINIMAL, out, new_offsets, new_safe
        end = begin if new_safe[x - 1] else minimal_masks(out, begin, end)
        new_offsets[x + 1] = end
    return OK, out[:, :end].copy(), new_offsets, new_safe


@kernel("uint64[:, ::1], int64")
def smallest_edge(masks: NDArray[np.uint64], edges: int) -> int:
    """Index of the mask with the fewest vertices among the first `edges`."""
    best, best_size = 0, 1 << 30
    for i in range(edges):
        size = 0
        for w in range(masks.shape[0]):
            size += bits_in(masks[w, i])
        if size < best_size:
            best, best_size = i, size
    return best


@kernel("uint64[::1], int64[::1], boolean, int64[::1], int64[::1]")
def branches(edge, mirror, symmetric, first, second):
    """Write the branches of an edge, pairs (vertex, partner), and return their number.

    In a symmetric node (closed under the exchange of t and u), the partner of a vertex is its mirror, or -1 where it is
    its own mirror; an orbit that the edge touches twice is listed once. In other nodes the partner is -1.
    """
    words = len(edge)
    count = 0
    left = edge.copy()
    for w in range(words):
        while left[w]:
            vertex = 64 * w + lowest_bit(left[w])
            left[w] &= left[w] - np.uint64(1)
            partner = mirror[vertex] if symmetric else vertex
            first[count] = vertex
            second[count] = -1
            if partner != vertex:
                second[count] = partner
                clear_bit(left, partner)
            count += 1
    return count


@helper
def close_branches(open_, first, second, count):
    """Close the vertices of all branches; each opens when its turn is over, so that each set is found once."""
    for k in range(count):
        clear_bit(open_, first[k])
        if second[k] >= 0:
            clear_bit(open_, second[k])
