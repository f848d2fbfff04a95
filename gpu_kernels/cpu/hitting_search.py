"""Depth-first search for minimal hitting sets inside a node whose lists are short, on vertical bitmaps."""

from __future__ import annotations

import numpy as np
from numba import njit

from tuplewise.gpu_kernels.cpu.hitting_sets import (
    NOT_MINIMAL,
    OK,
    add_vertex,
    bits_in,
    branches,
    lowest_bit,
    narrow_candidates,
    pair_allowed,
    smallest_edge,
)

BITMAP_EDGES = 512  # nodes with at most this many masks are searched on bitmaps
SAMPLED_EDGES = 48  # uncovered edges looked at for the smallest one


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _append(found, count, chosen):  # type: ignore[no-untyped-def]
    if count == found.shape[0]:
        larger = np.empty((2 * found.shape[0], found.shape[1]), dtype=np.uint64)
        larger[:count] = found
        found = larger
    found[count] = chosen
    return found, count + 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pick(masks, open_edges, candidates, edge):  # type: ignore[no-untyped-def]
    """Write the smallest of some uncovered edges, restricted to the candidates, to `edge`; returns its size."""
    best = 1 << 30
    seen = 0
    for b in range(len(open_edges)):
        rest = open_edges[b]
        while rest:
            i = 64 * b + lowest_bit(rest)
            rest &= rest - np.uint64(1)
            size = 0
            for w in range(len(candidates)):
                size += bits_in(masks[w, i] & candidates[w])
            if size < best:
                best = size
                for w in range(len(candidates)):
                    edge[w] = masks[w, i] & candidates[w]
                if best <= 1:
                    return best
            seen += 1
            if seen >= SAMPLED_EDGES:
                return best
    return best


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def search_bitmaps(
    masks, offsets, safe, chosen, candidates, symmetric, vertices, mirror, group, group_masks, exclusive, max_groups,
    found, count, stop,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """All minimal hitting sets below a node, appended to `found`; returns (found, count).

    Levels are kept in arrays: uncovered edges and critical edges as bitmaps over the node's masks.
    """
    words, total = masks.shape
    blocks = max(1, -(-total // 64))
    has = np.zeros((vertices, blocks), dtype=np.uint64)
    for i in range(total):
        bit = np.uint64(1) << np.uint64(i % 64)
        for w in range(words):
            rest = masks[w, i]
            while rest:
                has[64 * w + lowest_bit(rest), i // 64] |= bit
                rest &= rest - np.uint64(1)
    start = 0
    for x in range(len(safe)):
        start += not safe[x]
    depth_limit = min(vertices, offsets[1]) + 2  # each vertex that is added takes a critical edge of its own
    crit_limit = start + min(vertices, 2 * offsets[1]) + 2
    uncovered = np.empty((depth_limit, blocks), dtype=np.uint64)
    critical = np.empty((depth_limit, crit_limit, blocks), dtype=np.uint64)
    held = np.zeros(depth_limit, dtype=np.int64)
    sets = np.empty((depth_limit, words), dtype=np.uint64)
    open_ = np.empty((depth_limit, words), dtype=np.uint64)
    first = np.empty((depth_limit, vertices), dtype=np.int64)
    second = np.empty((depth_limit, vertices), dtype=np.int64)
    branch_count = np.zeros(depth_limit, dtype=np.int64)
    branch_at = np.zeros(depth_limit, dtype=np.int64)
    stage = np.zeros(depth_limit, dtype=np.int64)
    closed = np.zeros(depth_limit, dtype=np.bool_)
    edge = np.zeros(words, dtype=np.uint64)
    uncovered[0] = 0
    critical[0] = 0
    for i in range(offsets[1]):
        uncovered[0, i // 64] |= np.uint64(1) << np.uint64(i % 64)
    x_at = 0
    for x in range(len(safe)):
        if not safe[x]:
            for i in range(offsets[x + 1], offsets[x + 2]):
                critical[0, x_at, i // 64] |= np.uint64(1) << np.uint64(i % 64)
            x_at += 1
    held[0] = start
    sets[0] = chosen
    open_[0] = candidates
    closed[0] = symmetric
    _pick(masks, uncovered[0], candidates, edge)
    branch_count[0] = branches(edge, mirror, symmetric, first[0], second[0])
    _close_branches(open_[0], first[0], second[0], branch_count[0])
    depth = 0
    steps = 0
    while depth >= 0:
        steps += 1
        if steps % 4096 == 0 and stop[0]:
            break
        if branch_at[depth] == branch_count[depth]:
            depth -= 1
            if depth >= 0:
                _finish_stage(open_, first, second, branch_at, stage, depth, True)
            continue
        vertex = first[depth, branch_at[depth]]
        partner = second[depth, branch_at[depth]]
        both = stage[depth] == 1
        child = depth + 1
        ok = _descend(uncovered, critical, held, has, depth, child, vertex)
        minimal = ok
        if ok and both:
            ok = pair_allowed(sets[depth], vertex, partner, group, group_masks, exclusive) and _descend_again(
                uncovered, critical, held, has, child, partner
            )
        if not ok:
            _finish_stage(open_, first, second, branch_at, stage, depth, minimal)
            continue
        sets[child] = sets[depth]
        sets[child, vertex // 64] |= np.uint64(1) << np.uint64(vertex % 64)
        if both:
            sets[child, partner // 64] |= np.uint64(1) << np.uint64(partner % 64)
        some = np.uint64(0)
        for b in range(blocks):
            some |= uncovered[child, b]
        if some == 0:
            found, count = _append(found, count, sets[child])
            _finish_stage(open_, first, second, branch_at, stage, depth, True)
            continue
        open_[child] = open_[depth]
        narrow_candidates(sets[child], open_[child], group_masks, exclusive, max_groups)
        if _pick(masks, uncovered[child], open_[child], edge) == 0:
            _finish_stage(open_, first, second, branch_at, stage, depth, True)
            continue
        closed[child] = closed[depth] and (partner < 0 or both)
        branch_count[child] = branches(edge, mirror, closed[child], first[child], second[child])
        branch_at[child] = 0
        stage[child] = 0
        _close_branches(open_[child], first[child], second[child], branch_count[child])
        depth = child
    return found, count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _close_branches(open_, first, second, count):  # type: ignore[no-untyped-def]
    """No vertex of a branch is open before its turn is over: so each set is found once."""
    for k in range(count):
        open_[first[k] // 64] &= ~(np.uint64(1) << np.uint64(first[k] % 64))
        if second[k] >= 0:
            open_[second[k] // 64] &= ~(np.uint64(1) << np.uint64(second[k] % 64))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _finish_stage(open_, first, second, branch_at, stage, depth, reopen):  # type: ignore[no-untyped-def]
    """Go on to the branch with both mirrored vertices, or to the next vertex.

    `reopen` is False where the vertex left another without a critical edge: it will below, too, so it stays closed.
    """
    vertex, partner = first[depth, branch_at[depth]], second[depth, branch_at[depth]]
    if partner >= 0 and stage[depth] == 0 and reopen:
        stage[depth] = 1
        return
    if reopen or stage[depth] == 1:
        open_[depth, vertex // 64] |= np.uint64(1) << np.uint64(vertex % 64)
        if partner >= 0:
            open_[depth, partner // 64] |= np.uint64(1) << np.uint64(partner % 64)
    stage[depth] = 0
    branch_at[depth] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _descend(uncovered, critical, held, has, depth, child, vertex):  # type: ignore[no-untyped-def]
    """Bitmaps of the level below with one more vertex; returns whether every vertex keeps a critical edge."""
    blocks = uncovered.shape[1]
    for x in range(held[depth]):
        some = np.uint64(0)
        for b in range(blocks):
            rest = critical[depth, x, b] & ~has[vertex, b]
            critical[child, x, b] = rest
            some |= rest
        if some == 0:
            return False
    x = held[depth]
    some = np.uint64(0)
    for b in range(blocks):
        hit = uncovered[depth, b] & has[vertex, b]
        critical[child, x, b] = hit
        uncovered[child, b] = uncovered[depth, b] & ~has[vertex, b]
        some |= hit
    held[child] = x + 1
    return some != 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _descend_again(uncovered, critical, held, has, child, vertex):  # type: ignore[no-untyped-def]
    """The same, in place: the mirrored vertex joins in the same step."""
    return _descend(uncovered, critical, held, has, child, child, vertex)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def search_node(
    masks, offsets, safe, chosen, candidates, symmetric, vertices, mirror, group, group_masks, exclusive, max_groups,
    found, count, stop,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """All minimal hitting sets below a node with at least one uncovered edge, appended to `found`."""
    if masks.shape[1] <= BITMAP_EDGES:
        return search_bitmaps(
            masks, offsets, safe, chosen, candidates, symmetric, vertices, mirror, group, group_masks, exclusive,
            max_groups, found, count, stop,
        )  # fmt: skip
    first = np.zeros(vertices, dtype=np.int64)
    second = np.zeros(vertices, dtype=np.int64)
    edge = masks[:, smallest_edge(masks, offsets[1])].copy()
    number = branches(edge, mirror, symmetric, first, second)
    open_ = candidates.copy()
    _close_branches(open_, first, second, number)
    for k in range(number):
        reopen = True
        for both in range(2 if second[k] >= 0 else 1):
            if stop[0]:
                return found, count
            status, new_masks, new_offsets, new_safe, new_chosen, new_open = child_node(
                masks, offsets, safe, chosen, open_, first[k], second[k] if both else -1, group, group_masks,
                exclusive, max_groups,
            )  # fmt: skip
            if both == 0 and status == NOT_MINIMAL:
                reopen = False
                break
            if status != OK:
                continue
            if new_offsets[1] == 0:
                found, count = _append(found, count, new_chosen)
            else:
                found, count = search_node(
                    new_masks, new_offsets, new_safe, new_chosen, new_open,
                    symmetric and (second[k] < 0 or both == 1), vertices, mirror, group, group_masks, exclusive,
                    max_groups, found, count, stop,
                )  # fmt: skip
        if reopen:
            open_[first[k] // 64] |= np.uint64(1) << np.uint64(first[k] % 64)
            if second[k] >= 0:
                open_[second[k] // 64] |= np.uint64(1) << np.uint64(second[k] % 64)
    return found, count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def child_node(masks, offsets, safe, chosen, open_, vertex, partner, group, group_masks, exclusive, max_groups):  # type: ignore[no-untyped-def]
    """The node with `vertex` (and `partner`, unless -1) added: (status, masks, offsets, safe, chosen, candidates)."""
    new_chosen = chosen.copy()
    new_chosen[vertex // 64] |= np.uint64(1) << np.uint64(vertex % 64)
    candidates = open_.copy()
    if partner >= 0:
        new_chosen[partner // 64] |= np.uint64(1) << np.uint64(partner % 64)
    narrow_candidates(new_chosen, candidates, group_masks, exclusive, max_groups)
    if partner < 0:
        status, new_masks, new_offsets, new_safe = add_vertex(masks, offsets, safe, vertex, candidates)
        return status, new_masks, new_offsets, new_safe, new_chosen, candidates
    if not pair_allowed(chosen, vertex, partner, group, group_masks, exclusive):
        return NOT_MINIMAL, masks, offsets, safe, new_chosen, candidates
    between = candidates.copy()
    between[partner // 64] |= np.uint64(1) << np.uint64(partner % 64)
    status, new_masks, new_offsets, new_safe = add_vertex(masks, offsets, safe, vertex, between)
    if status == OK:
        status, new_masks, new_offsets, new_safe = add_vertex(new_masks, new_offsets, new_safe, partner, candidates)
    return status, new_masks, new_offsets, new_safe, new_chosen, candidates
