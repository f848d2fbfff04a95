"""Minimal sets that leave edges of at most a given total weight unhit: the approximate form of the enumeration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy, copy_rows
from tuplewise.gpu_kernels.cpu.hitting_sets import (
    DEAD,
    NOT_MINIMAL,
    OK,
    bits_in,
    branches,
    narrow_candidates,
    pair_allowed,
)

HASH_FROM = 16
ROUNDING = 1.0 + 1e-12  # of products of chances


class Bound(NamedTuple):
    """What a set may leave unhit: `budget`, or, where there are chances, `most` times the chance of each group.

    Attributes
    ----------
    chances : float64 (groups, patterns)
        By which vertices of a group are chosen, bit k its k-th; never more where more are. None of them: no rows.
    first : int64 (groups,), the first vertex of each group, whose vertices follow each other
    """

    budget: int
    most: float
    chances: NDArray[np.float64]
    first: NDArray[np.int64]


@helper
def _allowed(path, without, bound, group):
    """What the vertices of a path may leave unhit, but for the one at a place."""
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


@kernel("int64[::1], int64[::1], Bound(int64, float64, float64[:, ::1], int64[::1])")
def budgets_of(path, group, bound):
    """What a path of vertices may leave unhit, and what it may without each of them; int64 (vertices + 1,)."""
    budgets = np.empty(len(path) + 1, dtype=np.int64)
    for i in range(len(path) + 1):
        budgets[i] = _allowed(path, i - 1, bound, group)
    return budgets


@helper
def _merge_equal(masks, weights, first, last):
    """Merge equal masks of a list and add their weights, in place; returns the new end."""
    words = masks.shape[0]
    capacity = 1
    while capacity < 2 * (last - first):
        capacity *= 2
    table = np.full(capacity, -1, dtype=np.int32)
    end = first
    for i in range(first, last):
        h = np.uint64(0)
        for w in range(words):
            h = (h ^ masks[w, i]) * np.uint64(0xBF58476D1CE4E5B9)
            h ^= h >> np.uint64(29)
        slot = np.int64(h & np.uint64(capacity - 1))
        found = False
        while table[slot] >= 0:
            at = table[slot]
            found = True
            for w in range(words):
                if masks[w, at] != masks[w, i]:
                    found = False
                    break
            if found:
                weights[at] += weights[i]
                break
            slot = (slot + 1) & (capacity - 1)
        if not found:
            for w in range(words):
                masks[w, end] = masks[w, i]
            weights[end] = weights[i]
            table[slot] = end
            end += 1
    return end


@kernel("uint64[:, ::1], int64[::1], int64[::1], int64, int64[::1], int64[::1], int64, uint64[::1]")
def restrict_weighted(masks, weights, offsets, lost, kept, budgets, vertex, candidates):
    """The node with `vertex` added (none where it is -1), its lists restricted to `candidates`.

    `budgets` are of the path with `vertex`, see `budgets_of`; they fall as vertices are added. So what is lost for the
    node is lost for all below it, and a vertex that is needed here stays needed.
    `lost` is the weight of edges that can't be hit any more, `kept[x]` the weight of critical edges of the x-th vertex
    that nothing can take from it; such edges are counted there and leave the lists. Returns
    (status, masks, weights, offsets, lost, kept, open weight).
    """
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
        end = _merge_equal(out, out_weights, 0, end)
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
            end = begin  # whatever is added, this vertex stays needed
        elif end - begin >= HASH_FROM:
            end = _merge_equal(out, out_weights, begin, end)
        new_kept[x - 1] = sure
        new_offsets[x + 1] = end
    return OK, out[:, :end].copy(), out_weights[:end].copy(), new_offsets, lost, new_kept, open_weight


@kernel("uint64[:, ::1], int64[::1], int64, int64")
def pick_weighted(masks, weights, edges, spare):
    """The edge to branch on: of those too heavy to leave unhit the one with fewest vertices, else the heaviest."""
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


@kernel(
    "uint64[:, ::1], int64[::1], int64[::1], int64, int64[::1], "
    "Bound(int64, float64, float64[:, ::1], int64[::1]), int64[::1], uint64[::1], uint64[::1], boolean, "
    "int64, int64[::1], int64[::1], uint64[:, ::1], boolean, int64, uint64[:, ::1], int64[::1], int64, "
    "boolean[::1]"
)
def search_weighted(
    masks, weights, offsets, lost, kept, bound, path, chosen, candidates, symmetric, vertices, mirror, group,
    group_masks, exclusive, max_groups, found, unhit, count, stop,
):  # fmt: skip
    """All wanted sets below a node whose unhit edges weigh more than the bound, appended to `found` and `unhit`."""
    first = np.zeros(vertices, dtype=np.int64)
    second = np.zeros(vertices, dtype=np.int64)
    budgets = budgets_of(path, group, bound)
    edge = masks[:, pick_weighted(masks, weights, offsets[1], budgets[0] - lost)].copy()
    number = branches(edge, mirror, symmetric, first, second)
    open_ = candidates.copy()
    for k in range(number):
        open_[first[k] // 64] &= ~(np.uint64(1) << np.uint64(first[k] % 64))
        if second[k] >= 0:
            open_[second[k] // 64] &= ~(np.uint64(1) << np.uint64(second[k] % 64))
    if stop[0]:
        return found, unhit, count
    status, m, w, o, new_lost, new_kept, _ = restrict_weighted(masks, weights, offsets, lost, kept, budgets, -1, open_)
    if status == OK:
        found, unhit, count = search_weighted(
            m, w, o, new_lost, new_kept, bound, path, chosen, open_, symmetric, vertices, mirror, group, group_masks,
            exclusive, max_groups, found, unhit, count, stop,
        )  # fmt: skip
    for k in range(number):
        reopen = True
        for both in range(2 if second[k] >= 0 else 1):
            if stop[0]:
                return found, unhit, count
            status, m, w, o, new_lost, new_kept, new_path, new_chosen, new_open, weight, most = weighted_child(
                masks, weights, offsets, lost, kept, bound, path, chosen, open_, first[k], second[k] if both else -1,
                group, group_masks, exclusive, max_groups,
            )  # fmt: skip
            if both == 0 and status == NOT_MINIMAL:
                reopen = False
                break
            if status != OK:
                continue
            if new_lost + weight <= most:
                found, unhit, count = _append(found, unhit, count, new_chosen, new_lost + weight)
            else:
                found, unhit, count = search_weighted(
                    m, w, o, new_lost, new_kept, bound, new_path, new_chosen, new_open,
                    symmetric and (second[k] < 0 or both == 1), vertices, mirror, group, group_masks, exclusive,
                    max_groups, found, unhit, count, stop,
                )  # fmt: skip
        if reopen:
            open_[first[k] // 64] |= np.uint64(1) << np.uint64(first[k] % 64)
            if second[k] >= 0:
                open_[second[k] // 64] |= np.uint64(1) << np.uint64(second[k] % 64)
    return found, unhit, count


@kernel(
    "uint64[:, ::1], int64[::1], int64[::1], int64, int64[::1], "
    "Bound(int64, float64, float64[:, ::1], int64[::1]), int64[::1], uint64[::1], uint64[::1], int64, "
    "int64, int64[::1], uint64[:, ::1], boolean, int64"
)
def weighted_child(
    masks, weights, offsets, lost, kept, bound, path, chosen, open_, vertex, partner, group, group_masks, exclusive,
    max_groups,
):  # fmt: skip
    """The node with `vertex` (and `partner`, unless -1) added, and what it may leave unhit."""
    new_chosen = chosen.copy()
    new_chosen[vertex // 64] |= np.uint64(1) << np.uint64(vertex % 64)
    new_path = _with(path, vertex)
    candidates = open_.copy()
    if partner >= 0:
        new_chosen[partner // 64] |= np.uint64(1) << np.uint64(partner % 64)
    narrow_candidates(new_chosen, candidates, group_masks, exclusive, max_groups)
    between = candidates.copy()
    budgets = budgets_of(new_path, group, bound)
    if partner >= 0:
        if not pair_allowed(chosen, vertex, partner, group, group_masks, exclusive):
            return (
                NOT_MINIMAL, masks, weights, offsets, lost, kept, new_path, new_chosen, candidates, np.int64(0),
                budgets[0],
            )  # fmt: skip
        between[partner // 64] |= np.uint64(1) << np.uint64(partner % 64)
    status, m, w, o, new_lost, new_kept, weight = restrict_weighted(
        masks, weights, offsets, lost, kept, budgets, vertex, between
    )
    if status == OK and partner >= 0:
        if new_lost + weight <= budgets[0]:  # one of the two is enough, so both are not minimal
            return NOT_MINIMAL, m, w, o, new_lost, new_kept, new_path, new_chosen, candidates, weight, budgets[0]
        new_path = _with(new_path, partner)
        budgets = budgets_of(new_path, group, bound)
        status, m, w, o, new_lost, new_kept, weight = restrict_weighted(
            m, w, o, new_lost, new_kept, budgets, partner, candidates
        )
    return status, m, w, o, new_lost, new_kept, new_path, new_chosen, candidates, weight, budgets[0]


@helper
def _with(path, vertex):
    """A path with one more vertex."""
    longer = np.empty(len(path) + 1, dtype=np.int64)
    for i in range(len(path)):
        longer[i] = path[i]
    longer[len(path)] = vertex
    return longer
