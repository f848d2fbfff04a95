"""Depth-first search for minimal hitting sets below a node, on vertical bitmaps and witnesses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy, joined
from tuplewise.gpu_kernels.cpu.bits import bits_in, lowest_bit, set_bit
from tuplewise.gpu_kernels.cpu.hitting_sets import (
    NOT_MINIMAL,
    OK,
    add_vertex,
    branches,
    close_branches,
    narrow_candidates,
    pair_allowed,
)
from tuplewise.gpu_kernels.hitting_types import WANTED, Wanted

SAMPLED_EDGES = 48  # uncovered edges among which the smallest is sought
POLLED_STEPS = 4096  # steps between two looks at the stop flag


class Node(NamedTuple):
    """Node of the search, see `hitting_sets`.

    Attributes
    ----------
    masks : uint64 (words, edges), with `offsets`: the uncovered edges, then the critical edges of each vertex
    safe : bool (chosen vertices,), whether a vertex keeps a critical edge whatever is added
    chosen, candidates : uint64 (words,), the set, and the vertices that may still be added
    """

    masks: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    safe: NDArray[np.bool_]
    chosen: NDArray[np.uint64]
    candidates: NDArray[np.uint64]


NODE = "Node(uint64[:, ::1], int64[::1], boolean[::1], uint64[::1], uint64[::1])"


@helper
def _append(found, count, chosen):
    if count == found.shape[0]:
        found = joined(found, np.empty_like(found))
    copy(chosen, found[count])
    return found, count + 1


@helper
def _pick(masks, uncovered, first_block, candidates, edge):
    """Write the smallest of some uncovered edges, restricted to the candidates, to `edge`; returns its size."""
    best = 1 << 30
    seen = 0
    for b in range(first_block, len(uncovered)):
        rest = uncovered[b]
        while rest:
            i = 64 * b + lowest_bit(rest)
            rest &= rest - np.uint64(1)
            size = 0
            for w in range(len(candidates)):
                size += bits_in(masks[i, w] & candidates[w])
            if size < best:
                best = size
                for w in range(len(candidates)):
                    edge[w] = masks[i, w] & candidates[w]
                if best <= 1:
                    return best
            seen += 1
            if seen >= SAMPLED_EDGES:
                return best
    return best


@kernel("uint64[:, ::1], int64")
def edge_bitmaps(masks, vertices):
    """Bitmap of the edges with each vertex: uint64 (vertices, blocks of 64 edges). `masks`: uint64 (edges, words)."""
    has = np.zeros((vertices, max(1, -(-masks.shape[0] // 64))), dtype=np.uint64)
    for i in range(masks.shape[0]):
        bit = np.uint64(1) << np.uint64(i % 64)
        for w in range(masks.shape[1]):
            rest = masks[i, w]
            while rest:
                has[64 * w + lowest_bit(rest), i // 64] |= bit
                rest &= rest - np.uint64(1)
    return has


@helper
def _next_witness(has, start, last, added, number, own):
    """First edge, from `start` on and before `last`, whose only added vertex is `own`; -1 where there is none.

    With `own` -1: first edge without added vertices.
    """
    b = start // 64
    low = ~((np.uint64(1) << np.uint64(start % 64)) - np.uint64(1))
    while 64 * b < last:
        word = low if own < 0 else low & has[own, b]
        if 64 * b + 64 > last:
            word &= (np.uint64(1) << np.uint64(last - 64 * b)) - np.uint64(1)
        for k in range(number):
            if word == 0:
                break
            if added[k] != own:
                word &= ~has[added[k], b]
        if word:
            return 64 * b + lowest_bit(word)
        low = ~np.uint64(0)
        b += 1
    return -1


@helper
def _still_minimal(has, first, last, added, number, witness, child_witness, held, vertex):
    """Tell whether each vertex keeps a critical edge when `vertex`, the last of `added`, joins; moves the witnesses on.

    The critical edges of vertices chosen above this search are at `first[x]` to `last[x]`. Those of `added` vertices
    are among the edges uncovered at the start of the search, before `last[-1]`.
    """
    outer = len(first) - 1  # the last range is that of the uncovered edges
    for x in range(held):
        edge = witness[x]
        if (has[vertex, edge // 64] >> np.uint64(edge % 64)) & np.uint64(1):
            own = -1 if x < outer else added[x - outer]
            end = last[x] if x < outer else last[outer]
            edge = _next_witness(has, edge + 1, end, added, number, own)
            if edge < 0:
                return False
        child_witness[x] = edge
    return True


@helper
def _cover(uncovered, out, hits, first_block):
    """Remove the edges that the new vertex hits from the uncovered ones; returns (first hit or -1, first block
    left)."""
    hit = np.int64(-1)
    blocks = len(out)
    for b in range(first_block, blocks):
        both = uncovered[b] & hits[b]
        if both:
            hit = 64 * b + lowest_bit(both)
            break
    for b in range(first_block, blocks):
        out[b] = uncovered[b] & ~hits[b]
    while first_block < blocks and out[first_block] == 0:
        first_block += 1
    return hit, first_block


@kernel(f"{NODE}, boolean, {WANTED}, uint64[:, ::1], int64, boolean[::1], int64[::1]")
def search_node(node: Node, symmetric, wanted: Wanted, found, count, stop, told):
    """Append all minimal hitting sets below a node with an uncovered edge to `found`; returns (found, count).

    `told[0]` follows the count.

    Each level has a bitmap of uncovered edges. One critical edge of each vertex is kept as its witness. When a new
    vertex hits the witness, the next one is sought behind it, since earlier edges stay lost in the whole subtree.
    """
    vertices, offsets, safe = wanted.atoms, node.offsets, node.safe
    mirror, group_masks, exclusive, max_groups = wanted.mirror, wanted.group_masks, wanted.exclusive, wanted.max_groups
    words = node.masks.shape[0]
    masks = np.ascontiguousarray(node.masks.T)
    has = edge_bitmaps(masks, vertices)
    outer = 0
    for x in range(len(safe)):
        outer += not safe[x]
    first_edge = np.zeros(outer + 1, dtype=np.int64)
    last_edge = np.zeros(outer + 1, dtype=np.int64)
    at = 0
    for x in range(len(safe)):
        if not safe[x]:
            first_edge[at], last_edge[at] = offsets[x + 1], offsets[x + 2]
            at += 1
    last_edge[outer] = offsets[1]
    edges = offsets[1]
    blocks = -(-edges // 64)
    depths = min(vertices, edges) + 2  # each added vertex needs a critical edge of its own
    uncovered = np.empty((depths, blocks), dtype=np.uint64)
    first_block = np.zeros(depths, dtype=np.int64)
    witness = np.empty((depths, outer + vertices + 1), dtype=np.int64)
    added = np.empty(vertices + 1, dtype=np.int64)
    number = np.zeros(depths, dtype=np.int64)
    sets = np.empty((depths, words), dtype=np.uint64)
    open_ = np.empty((depths, words), dtype=np.uint64)
    first = np.empty((depths, vertices), dtype=np.int64)
    second = np.empty((depths, vertices), dtype=np.int64)
    branch_count = np.zeros(depths, dtype=np.int64)
    branch_at = np.zeros(depths, dtype=np.int64)
    stage = np.zeros(depths, dtype=np.int64)
    closed = np.zeros(depths, dtype=np.bool_)
    edge = np.zeros(words, dtype=np.uint64)
    uncovered[0] = 0
    for i in range(edges):
        set_bit(uncovered[0], i)
    copy(first_edge[:outer], witness[0])
    copy(node.chosen, sets[0])
    copy(node.candidates, open_[0])
    closed[0] = symmetric
    if _pick(masks, uncovered[0], 0, node.candidates, edge) == 0:
        return found, count
    branch_count[0] = branches(edge, mirror, symmetric, first[0], second[0])
    close_branches(open_[0], first[0], second[0], branch_count[0])
    depth = 0
    steps = 0
    while depth >= 0:
        steps += 1
        if steps % POLLED_STEPS == 0:
            told[0] = count
            if stop[0]:
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
        n = number[depth]
        minimal = True
        ok = not both or pair_allowed(sets[depth], vertex, partner, wanted)
        if ok:
            added[n] = vertex
            ok = minimal = _still_minimal(
                has, first_edge, last_edge, added, n + 1, witness[depth], witness[child], outer + n, vertex
            )
        if ok:
            hit, first_block[child] = _cover(uncovered[depth], uncovered[child], has[vertex], first_block[depth])
            witness[child, outer + n] = hit
            n += 1
            ok = hit >= 0
        if ok and both:
            added[n] = partner
            ok = _still_minimal(
                has, first_edge, last_edge, added, n + 1, witness[child], witness[child], outer + n, partner
            )
            if ok:
                hit, first_block[child] = _cover(uncovered[child], uncovered[child], has[partner], first_block[child])
                witness[child, outer + n] = hit
                n += 1
                ok = hit >= 0
        if not ok:
            _finish_stage(open_, first, second, branch_at, stage, depth, minimal)
            continue
        number[child] = n
        copy(sets[depth], sets[child])
        set_bit(sets[child], vertex)
        if both:
            set_bit(sets[child], partner)
        if first_block[child] == blocks:
            found, count = _append(found, count, sets[child])
            _finish_stage(open_, first, second, branch_at, stage, depth, True)
            continue
        copy(open_[depth], open_[child])
        narrow_candidates(sets[child], open_[child], group_masks, exclusive, max_groups)
        if _pick(masks, uncovered[child], first_block[child], open_[child], edge) == 0:
            _finish_stage(open_, first, second, branch_at, stage, depth, True)
            continue
        closed[child] = closed[depth] and (partner < 0 or both)
        branch_count[child] = branches(edge, mirror, closed[child], first[child], second[child])
        branch_at[child] = 0
        stage[child] = 0
        close_branches(open_[child], first[child], second[child], branch_count[child])
        depth = child
    return found, count


@helper
def _finish_stage(open_, first, second, branch_at, stage, depth, reopen):
    """Go on to the branch with both mirrored vertices, or to the next vertex.

    `reopen` is False where the vertex left another one without a critical edge. It would do so further below too, so it
    stays closed.
    """
    vertex, partner = first[depth, branch_at[depth]], second[depth, branch_at[depth]]
    if partner >= 0 and stage[depth] == 0 and reopen:
        stage[depth] = 1
        return
    if reopen or stage[depth] == 1:
        set_bit(open_[depth], vertex)
        if partner >= 0:
            set_bit(open_[depth], partner)
    stage[depth] = 0
    branch_at[depth] += 1


@kernel(f"{NODE}, uint64[::1], int64, int64, {WANTED}")
def child_node(node: Node, open_, vertex, partner, wanted: Wanted):
    """Add `vertex` (and `partner`, unless -1) to a node; returns the status and the new node."""
    chosen = node.chosen.copy()
    set_bit(chosen, vertex)
    candidates = open_.copy()
    if partner >= 0:
        set_bit(chosen, partner)
    narrow_candidates(chosen, candidates, wanted.group_masks, wanted.exclusive, wanted.max_groups)
    if partner < 0:
        status, masks, offsets, safe = add_vertex(node.masks, node.offsets, node.safe, vertex, candidates)
        return status, Node(masks, offsets, safe, chosen, candidates)
    if not pair_allowed(node.chosen, vertex, partner, wanted):
        return NOT_MINIMAL, node
    between = candidates.copy()
    set_bit(between, partner)
    status, masks, offsets, safe = add_vertex(node.masks, node.offsets, node.safe, vertex, between)
    if status == OK:
        status, masks, offsets, safe = add_vertex(masks, offsets, safe, partner, candidates)
    return status, Node(masks, offsets, safe, chosen, candidates)
