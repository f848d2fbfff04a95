"""Minimal hitting sets extended by new edges: the search starts from the given sets, not from scratch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.arrays import copy, joined
from tuplewise.gpu_kernels.cpu.bits import bits_in, lowest_bit, set_bit
from tuplewise.gpu_kernels.cpu.hitting_search import edge_bitmaps
from tuplewise.gpu_kernels.cpu.hitting_sets import narrow_candidates
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.hitting_types import Wanted

TASK_SETS = 512  # sets of a task at most
TASK_WORDS = 1 << 21  # bitmap words that a task reads before it returns the part not searched yet
TESTED_WORDS = 64  # words of bitmaps tested at once; with unsigned indexes these become vector instructions
STARTS_AT_ONCE = 1 << 14  # sets whose vertices are written out to search below them
STRIP_WORDS = 256  # words of a strip, which all sets are tested against before the next strip
FIRST_WORDS = 4  # words tested one by one first: most critical edges are found there


def misses_some(
    sets: NDArray[np.uint64], edges: NDArray[np.uint64], vertices: int, control: Control
) -> NDArray[np.bool_]:
    """Tell whether each set misses at least one edge: bool (sets,).

    Cost: edges / 64 words for each vertex in which a set differs from the one before it.
    """
    has = edge_bitmaps(edges, vertices)
    paths, lengths = paths_of(sets, vertices)
    missed = np.zeros(len(sets), dtype=np.bool_)
    parts = _parts(len(sets), control.threads)

    def task(number: int) -> None:
        part = parts[number]
        _mark_missing(paths[part], lengths[part], has, len(edges), missed[part])

    run_tasks([1.0] * len(parts), lambda: task, Control(threads=control.threads))
    return missed


def run(
    starts: NDArray[np.uint64],
    edges: NDArray[np.uint64],
    new_edges: NDArray[np.uint64],
    wanted: Wanted,
    control: Control,
) -> tuple[NDArray[np.uint64], bool]:
    """Find the minimal hitting sets of old and new edges that contain one of `starts`: uint64 (N, words), complete.

    `starts`: uint64 (N, words), minimal hitting sets of `edges` that each miss some of `new_edges`.

    Notes
    -----
    Edges are ordered, old ones first. A node is a set that is minimal for the edges before the first edge that it
    misses. It branches on that edge, and a vertex joins only where each vertex of the set keeps a critical edge before
    it. So every node has one parent, and a set is found once however many starts it contains. This is algorithm RS of
    Murakami, Uno, "Efficient algorithms for dualizing large-scale hypergraphs", Discrete Applied Mathematics 170, 2014.
    (MMCS, which the search from scratch follows, would find a set once for each start in it.) Departures: the search
    begins at given sets; bitmaps, not lists, tell which edges a node hits, and which it hits exactly once; the next
    node shares them up to the first vertex in which it differs.

    Cost: edges / 64 words for each node and each vertex tried. Memory: two bitmaps for each level and thread.
    """
    masks = np.concatenate([edges, new_edges[_order(new_edges, wanted.atoms)]])
    has = edge_bitmaps(masks, wanted.atoms)
    most_nodes = max(16, TASK_WORDS // has.shape[1])
    found: list[NDArray[np.uint64]] = []

    def wave(
        paths: NDArray[np.int16], lengths: NDArray[np.int64], progress: Callable[[float], None]
    ) -> tuple[NDArray[np.int16], NDArray[np.int64], bool]:
        parts = _parts(len(paths), control.threads)
        left = [(paths[:0], lengths[:0])] * len(parts)

        def worker() -> Callable[[int], None]:
            state = [np.empty((wanted.atoms + 1, has.shape[1]), dtype=np.uint64) for _ in range(2)]

            def task(number: int) -> None:
                part = parts[number]
                sets, count, *rest = _search(
                    paths[part], lengths[part], masks, has, len(edges), wanted.group_masks, wanted.exclusive,
                    wanted.max_groups, most_nodes, *state,
                )  # fmt: skip
                found.append(sets[:count].copy())
                left[number] = (rest[0], rest[1])

            return task

        complete = run_tasks([1.0] * len(parts), worker, control.telling(progress))
        return np.concatenate([p for p, _ in left]), np.concatenate([n for _, n in left]), complete

    paths, lengths = paths_of(starts, wanted.atoms)
    complete, done = True, 0.0
    while len(paths) and complete:
        # how much a wave of tasks leaves is known only at its end: each counts as half of the rest
        def progress(share: float, before: float = done) -> None:
            if control.progress is not None:
                control.progress(before + share * (1 - before) / 2)

        paths, lengths, complete = wave(paths, lengths, progress)
        done += (1 - done) / 2
    return np.concatenate(found) if found else starts[:0].copy(), complete


def _order(edges: NDArray[np.uint64], vertices: int) -> NDArray[np.int64]:
    """Order of edges: those of frequent vertices first.

    On evidence of real tables, with many new edges of which nearly every set misses some, it takes half the time of the
    given order and 40 % of the time of the reverse order; elsewhere it makes no difference.
    """
    has = edge_bitmaps(edges, vertices)
    frequency = np.bitwise_count(has).sum(axis=1, dtype=np.int64)
    weight = np.zeros(len(edges), dtype=np.int64)
    for v, count in enumerate(frequency.tolist()):
        weight += count * ((edges[:, v // 64] >> np.uint64(v % 64)) & np.uint64(1)).astype(np.int64)
    return np.argsort(-weight, kind="stable")


def _parts(count: int, threads: int) -> list[slice]:
    """Slices of at most TASK_SETS sets, several for each thread."""
    size = max(1, min(TASK_SETS, -(-count // (8 * threads))))
    return [slice(i, min(count, i + size)) for i in range(0, count, size)]


@kernel("const uint64[:, ::1], int64")
def paths_of(sets: NDArray[np.uint64], most: int) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """Vertices of each set, int16 (sets, most), and their number, int64 (sets,), which is `most` or less.

    Vertices are listed by ascending word and descending bit, so that neighbours among sorted sets share their first
    ones.
    """
    paths = np.empty((len(sets), most), dtype=np.int16)
    lengths = np.zeros(len(sets), dtype=np.int64)
    for i in range(len(sets)):
        for w in range(sets.shape[1]):
            for b in range(63, -1, -1):
                if (sets[i, w] >> np.uint64(b)) & np.uint64(1):
                    paths[i, lengths[i]] = 64 * w + b
                    lengths[i] += 1
    return paths, lengths


@helper
def in_common(path, current, length):
    """Number of leading vertices in common, `length` at most."""
    common = 0
    while common < length and path[common] == current[common]:
        common += 1
    return common


@helper
def _nothing_hit(has, edges):
    """Bitmap (blocks,) of hit edges before any vertex is chosen: only the places behind the last edge are set."""
    hit = np.zeros(has.shape[1], dtype=np.uint64)
    if edges % 64:
        hit[edges // 64] = ~((np.uint64(1) << np.uint64(edges % 64)) - np.uint64(1))
    if edges == 0:
        hit[0] = ~np.uint64(0)
    return hit


@helper
def _some_missed(hit, joined, first, last):
    some = np.uint64(0)
    for b in range(np.uint64(first), np.uint64(last)):
        some |= ~(hit[b] | joined[b])
    return some != 0


@helper
def _next_missed(hit, joined, first_block):
    """First edge, from a block on, in neither `hit` nor `joined`; -1 where there is none."""
    blocks = len(hit)
    while first_block < blocks:
        last = min(first_block + TESTED_WORDS, blocks)
        if _some_missed(hit, joined, first_block, last):
            for b in range(first_block, last):
                missed = ~(hit[b] | joined[b])
                if missed:
                    return 64 * b + lowest_bit(missed)
        first_block = last
    return -1


@kernel("int16[:, ::1], int64[::1], uint64[:, ::1], int64, boolean[::1]")
def _mark_missing(paths, lengths, has, edges, missed):
    """Set `missed` (sets,) for sets that miss an edge; these are skipped in later strips."""
    nothing = _nothing_hit(has, edges)
    hit = np.empty((paths.shape[1] + 1, STRIP_WORDS), dtype=np.uint64)
    current = np.empty(paths.shape[1], dtype=np.int16)
    for first in range(0, len(nothing), STRIP_WORDS):
        strip = nothing[first : first + STRIP_WORDS]
        copy(strip, hit[0])
        depth = 0
        for i in range(len(paths)):
            if missed[i]:
                continue
            depth = in_common(paths[i], current, min(depth, lengths[i]))
            while depth < lengths[i]:
                vertex = paths[i, depth]
                for b in range(len(strip)):
                    hit[depth + 1, b] = hit[depth, b] | has[vertex, first + b]
                current[depth] = vertex
                depth += 1
            missed[i] = _some_missed(hit[depth], hit[depth], 0, len(strip))


@helper
def _some_critical(once, own, joined, first, last):
    some = np.uint64(0)
    for b in range(np.uint64(first), np.uint64(last)):
        some |= once[b] & own[b] & ~joined[b]
    return some != 0


@helper
def _stays_critical(once, own, joined, last):
    """Tell whether `own` alone hits some edge before `last` that the joining vertex doesn't hit."""
    whole = last // 64
    b = 0
    while b < min(whole, FIRST_WORDS):
        if once[b] & own[b] & ~joined[b]:
            return True
        b += 1
    while b < whole:
        end = min(b + TESTED_WORDS, whole)
        if _some_critical(once, own, joined, b, end):
            return True
        b = end
    below = (np.uint64(1) << np.uint64(last % 64)) - np.uint64(1)
    return (once[whole] & own[whole] & ~joined[whole] & below) != 0


@kernel(
    "int16[:, ::1], int64[::1], uint64[:, ::1], uint64[:, ::1], int64, uint64[:, ::1], boolean, int64, "
    "int64, uint64[:, ::1], uint64[:, ::1]"
)
def _search(
    paths, lengths, masks, has, old, group_masks, exclusive, max_groups, most_nodes, hit, once,
):  # fmt: skip
    """Search below some sets: (sets found, their number, paths and lengths of the nodes not searched yet).

    `masks`: uint64 (edges, words), each set hits the first `old`; `has`: their bitmaps; `hit`, `once`: room for the
    bitmaps of each level of a path. Without groups, `max_groups` bounds the vertices of a set.
    """
    words = masks.shape[1]
    top = len(paths)
    stack, height = paths[::-1].copy(), lengths[::-1].copy()
    found = np.empty((1024, words), dtype=np.uint64)
    count = 0
    chosen = np.zeros((hit.shape[0], words), dtype=np.uint64)
    current = np.empty(paths.shape[1], dtype=np.int16)
    edge = np.empty(words, dtype=np.uint64)
    copy(_nothing_hit(has, len(masks)), hit[0])
    once[0] = 0
    depth = 0
    nodes = 0
    while top > 0 and nodes < most_nodes:
        nodes += 1
        top -= 1
        length = height[top]
        depth = in_common(stack[top], current, min(depth, length))
        while depth < length:
            vertex = stack[top, depth]
            for b in range(has.shape[1]):
                once[depth + 1, b] = (once[depth, b] & ~has[vertex, b]) | (has[vertex, b] & ~hit[depth, b])
                hit[depth + 1, b] = hit[depth, b] | has[vertex, b]
            copy(chosen[depth], chosen[depth + 1])
            set_bit(chosen[depth + 1], vertex)
            current[depth] = vertex
            depth += 1
        ungrouped = len(group_masks) == 0
        if ungrouped and depth >= max_groups:
            continue
        first = _next_missed(hit[depth], hit[depth], old // 64)
        copy(masks[first], edge)
        narrow_candidates(chosen[depth], edge, group_masks, exclusive, max_groups)
        while top + paths.shape[1] > len(stack):
            stack, height = _larger(stack, height)
        for w in range(words):
            while edge[w]:
                vertex = 64 * w + lowest_bit(edge[w])
                edge[w] &= edge[w] - np.uint64(1)
                minimal = True
                for x in range(depth):
                    if not _stays_critical(once[depth], has[current[x]], has[vertex], first):
                        minimal = False
                        break
                if not minimal:
                    continue
                if _next_missed(hit[depth], has[vertex], first // 64) >= 0:
                    if ungrouped and depth + 1 >= max_groups:
                        continue
                    copy(current[:depth], stack[top])
                    stack[top, depth] = vertex
                    height[top] = depth + 1
                    top += 1
                    continue
                if count == len(found):
                    found = joined(found, np.empty_like(found))
                copy(chosen[depth], found[count])
                set_bit(found[count], vertex)
                count += 1
    return found, count, stack[:top][::-1].copy(), height[:top][::-1].copy()


@helper
def largest_set(sets):
    """Number of vertices of the largest set."""
    most = 0
    for i in range(len(sets)):
        size = 0
        for w in range(sets.shape[1]):
            size += bits_in(sets[i, w])
        if size > most:
            most = size
    return most


@helper
def search_below(starts, masks, has, old, group_masks, exclusive, max_groups, most_nodes, stop, told):
    """Search on this thread: (sets, whether all were found).

    `masks`: uint64 (edges, words), each of `starts` hits the first `old`; `has`: their bitmaps. `stop`: bool (1,), ends
    the search when set. `told`: int64 (2,), the number of sets found by all threads, and that which ends the search.
    """
    hit = np.empty((has.shape[0] + 1, has.shape[1]), dtype=np.uint64)
    once = np.empty_like(hit)
    found = starts[:0].copy()
    first = 0
    while first < len(starts):
        paths, lengths = paths_of(starts[first : first + STARTS_AT_ONCE], has.shape[0])
        first += STARTS_AT_ONCE
        while len(paths):
            if stop[0] or told[0] > told[1]:
                return found, False
            sets, count, paths, lengths = _search(
                paths, lengths, masks, has, old, group_masks, exclusive, max_groups, most_nodes, hit, once
            )
            told[0] += count
            found = joined(found, sets[:count])
    return found, True


@helper
def _larger(stack, height):
    """Copy with twice the room."""
    heights = np.empty(2 * len(height), dtype=np.int64)
    copy(height, heights)
    return joined(stack, np.empty_like(stack)), heights
