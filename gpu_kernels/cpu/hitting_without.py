"""Minimal hitting sets after edges were removed: new sets that miss a removed edge, and the given sets that stay
minimal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.bits import bits_in
from tuplewise.gpu_kernels.cpu.hitting_extend import in_common, paths_of
from tuplewise.gpu_kernels.cpu.hitting_search import Node, edge_bitmaps, search_node
from tuplewise.gpu_kernels.cpu.hitting_sets import narrow_candidates
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.hitting_types import WANTED, Wanted


def run(
    edges: NDArray[np.uint64], removed: NDArray[np.uint64], symmetric: NDArray[np.bool_], wanted: Wanted,
    control: Control,
) -> tuple[NDArray[np.uint64], bool]:  # fmt: skip
    """Find the minimal hitting sets of `edges` that miss some edge of `removed`: uint64 (N, words), complete.

    A set is returned once for each removed edge that it misses. `symmetric`: bool (removed,), True where an edge is its
    own mirror and one set of each mirror pair is wanted.

    Notes
    -----
    The minimal hitting sets of `edges` that miss e are exactly the minimal hitting sets of {f - e : f in edges}. Few of
    these differences are minimal, and the search uses only those.

    Cost for each removed edge: at most edges x minimal differences, and the search.
    """
    found: list[NDArray[np.uint64]] = []

    def task(number: int) -> None:
        found.append(_missing(edges, removed[number], symmetric[number], wanted, stop))

    with control.alarm() as stop:
        complete = run_tasks([1.0] * len(removed), lambda: task, control) and not stop[0]
    return np.concatenate([edges[:0], *found]), complete


def still_minimal(
    sets: NDArray[np.uint64], edges: NDArray[np.uint64], removed: NDArray[np.uint64], vertices: int, control: Control
) -> NDArray[np.bool_]:
    """Tell whether sets that were minimal for `edges` and `removed` are minimal for `edges`: bool (sets,).

    Cost: sets x removed edges; for sets that lose a critical edge also edges / 64 words for each vertex in which a set
    differs from the one before it.
    """
    stays = np.ones(len(sets), dtype=np.bool_)
    parts = [part for part in np.array_split(np.arange(len(sets)), 4 * control.threads) if len(part)]
    has = edge_bitmaps(edges, vertices)

    def task(number: int) -> None:
        part = slice(parts[number][0], parts[number][-1] + 1)
        suspects = _losing(sets[part], removed)
        stays[part][suspects] = _minimal(*paths_of(sets[part][suspects], vertices), has)

    run_tasks([1.0] * len(parts), lambda: task, Control(threads=control.threads))
    return stays


@helper
def minimal_differences(edges: NDArray[np.uint64], lost: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Minimal masks among `edges & ~lost`, distinct, small ones first: uint64 (N, words)."""
    words = edges.shape[1]
    sizes = np.zeros(len(edges), dtype=np.int64)
    ends = np.zeros(64 * words + 2, dtype=np.int64)
    for i in range(len(edges)):
        for w in range(words):
            sizes[i] += bits_in(edges[i, w] & ~lost[w])
        ends[sizes[i] + 1] += 1
    for k in range(1, len(ends)):
        ends[k] += ends[k - 1]
    order = np.empty(len(edges), dtype=np.int64)
    for i in range(len(edges)):
        order[ends[sizes[i]]] = i
        ends[sizes[i]] += 1
    kept = np.empty((len(edges), words), dtype=np.uint64)
    end = 0
    for i in order:
        keep = True
        for k in range(end):
            outside = np.uint64(0)
            for w in range(words):
                outside |= kept[k, w] & ~(edges[i, w] & ~lost[w])
            if outside == 0:
                keep = False
                break
        if keep:
            for w in range(words):
                kept[end, w] = edges[i, w] & ~lost[w]
            end += 1
    return kept[:end].copy()


@kernel(f"uint64[:, ::1], uint64[::1], boolean, {WANTED}, boolean[::1]")
def _missing(edges, lost, symmetric, wanted: Wanted, stop):
    """Minimal hitting sets of `edges` that miss `lost`: uint64 (N, words)."""
    words = len(lost)
    found = np.zeros((1, words), dtype=np.uint64)
    if len(edges) == 0:
        return found
    differences = minimal_differences(edges, lost)
    if not differences[0].any():
        return found[:0]
    candidates = np.zeros(words, dtype=np.uint64)
    for mask in differences:
        candidates |= mask
    chosen = np.zeros(words, dtype=np.uint64)
    narrow_candidates(chosen, candidates, wanted.group_masks, wanted.exclusive, wanted.max_groups)
    masks = np.ascontiguousarray(differences.T)
    node = Node(masks, np.array([0, len(differences)]), np.zeros(0, dtype=np.bool_), chosen, candidates)
    found, count = search_node(node, symmetric, wanted, found, 0, stop, np.zeros(1, np.int64))
    return found[:count].copy()


@kernel("const uint64[:, ::1], uint64[:, ::1]")
def _losing(sets, removed):
    """Mark the sets that share exactly one vertex with a removed edge, since only these lose a critical edge: bool
    (sets,)."""
    result = np.zeros(len(sets), dtype=np.bool_)
    for i in range(len(sets)):
        for e in range(len(removed)):
            shared, word = 0, np.uint64(0)
            for w in range(sets.shape[1]):
                both = sets[i, w] & removed[e, w]
                if both:
                    shared += 1
                    word = both
            if shared == 1 and word & (word - np.uint64(1)) == 0:
                result[i] = True
                break
    return result


@kernel("int16[:, ::1], int64[::1], uint64[:, ::1]")
def _minimal(paths, lengths, has):
    """Tell whether each vertex of each set hits an edge that no other of the set hits: bool (sets,)."""
    result = np.empty(len(paths), dtype=np.bool_)
    hit = np.zeros((paths.shape[1] + 1, has.shape[1]), dtype=np.uint64)
    once = np.zeros_like(hit)
    current = np.empty(paths.shape[1], dtype=np.int16)
    depth = 0
    for i in range(len(paths)):
        depth = in_common(paths[i], current, min(depth, lengths[i]))
        while depth < lengths[i]:
            vertex = paths[i, depth]
            for b in range(has.shape[1]):
                once[depth + 1, b] = (once[depth, b] & ~has[vertex, b]) | (has[vertex, b] & ~hit[depth, b])
                hit[depth + 1, b] = hit[depth, b] | has[vertex, b]
            current[depth] = vertex
            depth += 1
        result[i] = True
        for k in range(depth):
            if not _meet(once[depth], has[paths[i, k]]):
                result[i] = False
                break
    return result


@helper
def _meet(once, own):
    """Tell whether two bitmaps share a bit; most that do share an early one."""
    b = 0
    while b < len(once) and once[b] & own[b] == 0:
        b += 1
    return b < len(once)
