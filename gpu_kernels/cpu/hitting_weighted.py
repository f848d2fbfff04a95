"""Minimal sets that leave edges of at most a given total weight unhit: the approximate form of the enumeration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy, copy_rows
from tuplewise.gpu_kernels.cpu.bits import bits_in, set_bit
from tuplewise.gpu_kernels.cpu.hitting_sets import (
    DEAD,
    NOT_MINIMAL,
    OK,
    branches,
    close_branches,
    merge_equal,
    narrow_candidates,
    pair_allowed,
)
from tuplewise.gpu_kernels.hitting_types import BOUND, WANTED, Bound, Wanted

HASH_FROM = 16
ROUNDING = 1.0 + 1e-12  # tolerance for products of chances


class WeightedNode(NamedTuple):
    """Node of the weighted search, see `hitting_sets`.

    Attributes
    ----------
    masks : uint64 (words, edges), with `offsets`: the uncovered edges, then the critical edges of each vertex
    weights : int64 (edges,)
    lost : int, weight of the edges that can't be hit any more
    kept : int64 (chosen vertices,), weight of each vertex's critical edges that no addition can hit
    path : int64 (chosen vertices,), the chosen vertices in order
    chosen, candidates : uint64 (words,), the set, and the vertices that may still be added
    """

    masks: NDArray[np.uint64]
    weights: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lost: int
    kept: NDArray[np.int64]
    path: NDArray[np.int64]
    chosen: NDArray[np.uint64]
    candidates: NDArray[np.uint64]


NODE = (
    "WeightedNode(uint64[:, ::1], int64[::1], int64[::1], int64, int64[::1], int64[::1], uint64[::1], uint64[::1])"
)


@helper
def _allowed(path, without, bound, group):
    """Weight that the vertices of a path, without the one at a place, may leave unhit."""
    if len(bound.chances) == 0:
        return bound.budget
    patterns = np.zeros(len(bound.chances), dtype=np.int64)
    for i in range(len(path)):
        if i != without:
            g = group[path[i]]
            patterns[g] |= np.int64(1) << (path[i] - bound.first[g])
    product = bound.most
    for i in range(len(path)):
        g = group[path[i]]
        product *= bound.chances[g, patterns[g]]
        patterns[g] = 0
    return np.int64(product * ROUNDING)


@kernel(f"int64[::1], int64[::1], {BOUND}")
def budgets_of(path, group, bound: Bound):
    """Weights that a path of vertices may leave unhit: with all of them, then without each; int64 (vertices + 1,)."""
    budgets = np.empty(len(path) + 1, dtype=np.int64)
    for i in range(len(path) + 1):
        budgets[i] = _allowed(path, i - 1, bound, group)
    return budgets


@kernel(f"{NODE}, int64[::1], int64, uint64[::1]")
def restrict_weighted(node: WeightedNode, budgets, vertex, candidates):
    """Add `vertex` (unless -1) to a node and restrict its lists to `candidates`.

    `budgets` belong to the path with `vertex`, see `budgets_of`. They fall as vertices are added, so weight lost here
    stays lost below, and a vertex needed here stays needed. Edges that can't be hit any more are added to `lost` and
    `kept`, and leave the lists.

    Returns (status, masks, weights, offsets, lost, kept, weight of the uncovered edges).
    """
    masks, weights, offsets, lost, kept = node.masks, node.weights, node.offsets, node.lost, node.kept
    words, total = masks.shape
    lists = len(offsets) - 1
    adding = vertex >= 0
    word = max(vertex, 0) // 64
    bit = np.uint64(1) << np.uint64(max(vertex, 0) % 64)
    out = np.empty((words, total), dtype=np.uint64)
    out_weights = np.empty(total, dtype=np.int64)
    new_lists = lists + 1 if adding else lists
    new_offsets = np.zeros(new_lists + 1, dtype=np.int64)
    new_kept = np.zeros(new_lists - 1, dtype=np.int64)
    end = 0
    open_weight = np.int64(0)
    for i in range(offsets[1]):
        if adding and masks[word, i] & bit:
            continue
        some = np.uint64(0)
        for w in range(words):
            rest = masks[w, i] & candidates[w]
            out[w, end] = rest
            some |= rest
        if some == 0:
            lost += weights[i]
        else:
            out_weights[end] = weights[i]
            open_weight += weights[i]
            end += 1
    if lost > budgets[0]:
        return DEAD, out, out_weights, new_offsets, lost, new_kept, open_weight
    if end >= HASH_FROM:
        end = merge_equal(out, out_weights, 0, end)
    new_offsets[1] = end
    for x in range(1, new_lists):
        new = x == lists
        begin = end
        sure = np.int64(0) if new else kept[x - 1]
        loose = np.int64(0)
        first, last = (0, offsets[1]) if new else (offsets[x], offsets[x + 1])
        for i in range(first, last):
            if adding and ((masks[word, i] & bit) != 0) != new:
                continue
            some = np.uint64(0)
            for w in range(words):
                rest = masks[w, i] & candidates[w]
                out[w, end] = rest
                some |= rest
            if some == 0:
                sure += weights[i]
            else:
                out_weights[end] = weights[i]
                loose += weights[i]
                end += 1
        if lost + open_weight + sure + loose <= budgets[x]:
            return NOT_MINIMAL, out, out_weights, new_offsets, lost, new_kept, open_weight
        if lost + sure > budgets[x]:
            end = begin  # this vertex stays needed whatever is added
        elif end - begin >= HASH_FROM:
            end = merge_equal(out, out_weights, begin, end)
        new_kept[x - 1] = sure
        new_offsets[x + 1] = end
    return OK, out[:, :end].copy(), out_weights[:end].copy(), new_offsets, lost, new_kept, open_weight


@kernel("uint64[:, ::1], int64[::1], int64, int64")
def pick_weighted(masks, weights, edges, spare):
    """Pick the edge to branch on: of the edges too heavy to stay unhit the one with fewest vertices, else the heaviest
    edge."""
    best, best_size, heavy = 0, 1 << 30, False
    for i in range(edges):
        must = weights[i] > spare
        if heavy and not must:
            continue
        size = 0
        for w in range(masks.shape[0]):
            size += bits_in(masks[w, i])
        if must and not heavy:
            best, best_size, heavy = i, size, True
        elif must:
            if size < best_size:
                best, best_size = i, size
        elif weights[i] > weights[best] or (weights[i] == weights[best] and size < best_size):
            best, best_size = i, size
    return best


@helper
def _append(found, unhit, count, chosen, weight):
    if count == found.shape[0]:
        larger = np.empty((2 * found.shape[0], found.shape[1]), dtype=np.uint64)
        copy_rows(found, larger, count)
        heavier = np.empty(2 * found.shape[0], dtype=np.int64)
        copy(unhit, heavier)
        found, unhit = larger, heavier
    copy(chosen, found[count])
    unhit[count] = weight
    return found, unhit, count + 1


@kernel(f"{NODE}, boolean, {WANTED}, {BOUND}, uint64[:, ::1], int64[::1], int64, boolean[::1], int64[::1]")
def search_weighted(node: WeightedNode, symmetric, wanted: Wanted, bound: Bound, found, unhit, count, stop, told):
    """Append all wanted sets below a node to `found` and `unhit`; the node's unhit edges weigh more than the bound.

    `told[0]` follows the count.
    """
    told[0] = count
    first = np.zeros(wanted.atoms, dtype=np.int64)
    second = np.zeros(wanted.atoms, dtype=np.int64)
    budgets = budgets_of(node.path, wanted.group, bound)
    edge = node.masks[:, pick_weighted(node.masks, node.weights, node.offsets[1], budgets[0] - node.lost)].copy()
    number = branches(edge, wanted.mirror, symmetric, first, second)
    open_ = node.candidates.copy()
    close_branches(open_, first, second, number)
    if stop[0]:
        return found, unhit, count
    status, masks, weights, offsets, lost, kept, _ = restrict_weighted(node, budgets, -1, open_)
    if status == OK:
        child = WeightedNode(masks, weights, offsets, lost, kept, node.path, node.chosen, open_)
        found, unhit, count = search_weighted(child, symmetric, wanted, bound, found, unhit, count, stop, told)
    for k in range(number):
        reopen = True
        for both in range(2 if second[k] >= 0 else 1):
            if stop[0]:
                return found, unhit, count
            status, child, left, most = weighted_child(
                node, open_, first[k], second[k] if both else -1, wanted, bound
            )
            if both == 0 and status == NOT_MINIMAL:
                reopen = False
                break
            if status != OK:
                continue
            if left <= most:
                found, unhit, count = _append(found, unhit, count, child.chosen, left)
            else:
                closed = symmetric and (second[k] < 0 or both == 1)
                found, unhit, count = search_weighted(child, closed, wanted, bound, found, unhit, count, stop, told)
        if reopen:
            set_bit(open_, first[k])
            if second[k] >= 0:
                set_bit(open_, second[k])
    return found, unhit, count


@kernel(f"{NODE}, uint64[::1], int64, int64, {WANTED}, {BOUND}")
def weighted_child(node: WeightedNode, open_, vertex, partner, wanted: Wanted, bound: Bound):
    """Add `vertex` (and `partner`, unless -1) to a node; returns the status, the new node, the weight that it leaves
    unhit, and the weight that it may leave unhit."""
    chosen = node.chosen.copy()
    set_bit(chosen, vertex)
    candidates = open_.copy()
    if partner >= 0:
        set_bit(chosen, partner)
    narrow_candidates(chosen, candidates, wanted.group_masks, wanted.exclusive, wanted.max_groups)
    between = candidates.copy()
    path = _with(node.path, vertex)
    budgets = budgets_of(path, wanted.group, bound)
    if partner >= 0:
        if not pair_allowed(node.chosen, vertex, partner, wanted):
            return NOT_MINIMAL, node, np.int64(0), budgets[0]
        set_bit(between, partner)
    status, masks, weights, offsets, lost, kept, weight = restrict_weighted(node, budgets, vertex, between)
    if status == OK and partner >= 0:
        if lost + weight <= budgets[0]:  # one of the two is enough, so the set with both isn't minimal
            return NOT_MINIMAL, node, lost + weight, budgets[0]
        between_node = WeightedNode(masks, weights, offsets, lost, kept, path, chosen, between)
        path = _with(path, partner)
        budgets = budgets_of(path, wanted.group, bound)
        status, masks, weights, offsets, lost, kept, weight = restrict_weighted(
            between_node, budgets, partner, candidates
        )
    child = WeightedNode(masks, weights, offsets, lost, kept, path, chosen, candidates)
    return status, child, lost + weight, budgets[0]


@helper
def _with(path, vertex):
    """Path with one more vertex."""
    longer = np.empty(len(path) + 1, dtype=np.int64)
    copy(path, longer)
    longer[len(path)] = vertex
    return longer
