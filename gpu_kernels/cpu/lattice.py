"""Next level of a lattice of contexts. Two contexts that differ only in their lowest attribute are joined, the other
subsets of the union are looked up, and the targets that are open for all subsets stay open."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.arrays import copy
from tuplewise.gpu_kernels.cpu.bits import clear_bit, lowest_bit
from tuplewise.gpu_kernels.cpu.hashing import hash_words, same_words
from tuplewise.gpu_kernels.cpu.threads import run_tasks

Mask = NDArray[np.uint64]

TASKS_A_THREAD = 8
FIRST_CAPACITY = 256


def run(contexts: Mask, open_: Mask, control: Control) -> tuple[Mask, Mask] | None:
    """Contexts with one attribute more, ascending, and their open targets; None where the deadline passed first.

    `contexts`: uint64 (contexts, words), all of one size above 0, ascending (last word most significant); `open_`:
    uint64 (contexts, target words), no row all zeros.

    Notes
    -----
    Contexts that agree on all but the lowest attribute are adjacent. Joining them in order gives ascending contexts.

    Cost: for each join as many look-ups as its context has attributes, of `target words` words each. Memory: 8 bytes a
    context, and the result.
    Source: apriori-gen of Agrawal, Srikant, "Fast algorithms for mining association rules", VLDB 1994.
    """
    slots = index_rows(contexts)
    starts = _starts_of_groups(contexts)
    sizes = np.diff(starts)
    joins = np.cumsum(sizes * (sizes - 1) // 2)
    total = int(joins[-1]) if len(joins) else 0
    parts = max(1, min(total, TASKS_A_THREAD * control.threads))
    bounds = np.searchsorted(joins, np.arange(1, parts) * (total / parts), side="left")
    edges = np.unique(np.concatenate([[0], bounds, [len(sizes)]])).tolist()
    found: list[tuple[Mask, Mask]] = [(contexts[:0], open_[:0])] * (len(edges) - 1)

    def task(number: int) -> None:
        found[number] = _join(edges[number], edges[number + 1], starts, contexts, open_, slots)

    before = [0, *joins.tolist()]
    costs = [float(before[b] - before[a]) for a, b in pairwise(edges)]
    if not run_tasks(costs, lambda: task, control):
        return None
    return (
        np.concatenate([contexts[:0], *(part[0] for part in found)]),
        np.concatenate([open_[:0], *(part[1] for part in found)]),
    )


@helper
def _lowest(word: np.uint64) -> np.uint64:
    """Lowest set bit of a word, as a word."""
    return word & (~word + np.uint64(1))


@kernel("uint64[:, ::1]")
def _starts_of_groups(contexts: Mask) -> NDArray[np.int64]:
    """Offsets of the runs of contexts that are equal but for their lowest attribute: int64 (groups + 1,)."""
    words = contexts.shape[1]
    starts = np.empty(len(contexts) + 1, dtype=np.int64)
    groups = 0
    for row in range(len(contexts)):
        same = row > 0
        if same:
            mine, other = True, True  # whether the lowest attribute hasn't been met yet
            for w in range(words):
                a, b = contexts[row, w], contexts[row - 1, w]
                if mine and a:
                    a, mine = a ^ _lowest(a), False
                if other and b:
                    b, other = b ^ _lowest(b), False
                if a != b:
                    same = False
                    break
        if not same:
            starts[groups] = row
            groups += 1
    starts[groups] = len(contexts)
    return starts[: groups + 1].copy()


@kernel("uint64[:, ::1]")
def index_rows(contexts: Mask) -> NDArray[np.int32]:
    """Make a hash table of distinct contexts: int32 (a power of two, at least twice as many), entries are rows or
    -1."""
    size = 4
    while size < 2 * len(contexts):
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    last_slot = np.uint64(size - 1)
    for row in range(len(contexts)):
        slot = hash_words(contexts[row]) & last_slot
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last_slot
        slots[slot] = row
    return slots


@helper
def _row_of(context: Mask, contexts: Mask, slots: NDArray[np.int32]) -> int:
    """Row of a context, or -1."""
    last_slot = np.uint64(len(slots) - 1)
    slot = hash_words(context) & last_slot
    while slots[slot] >= 0 and not same_words(contexts[slots[slot]], context):
        slot = (slot + np.uint64(1)) & last_slot
    return slots[slot]


@helper
def _intersect(mine: Mask, other: Mask) -> bool:
    """Intersect `mine` with `other`, in place; returns whether anything is left."""
    left = np.uint64(0)
    for w in range(len(mine)):
        mine[w] &= other[w]
        left |= mine[w]
    return left != np.uint64(0)


@helper
def _open_for_all(union: Mask, still: Mask, contexts: Mask, open_: Mask, slots: NDArray[np.int32]) -> bool:
    """Intersect `still` with the open targets of each subset of `union` that keeps its two lowest attributes."""
    seen = 0
    for w in range(len(union)):
        rest = union[w]
        while rest:
            attribute = _lowest(rest)
            rest ^= attribute
            seen += 1
            if seen <= 2:
                continue
            union[w] ^= attribute
            row = _row_of(union, contexts, slots)
            union[w] ^= attribute
            if row < 0 or not _intersect(still, open_[row]):
                return False
    return True


@kernel("int64, int64, int64[::1], uint64[:, ::1], uint64[:, ::1], int32[::1]")
def _join(
    first: int, last: int, starts: NDArray[np.int64], contexts: Mask, open_: Mask, slots: NDArray[np.int32]
) -> tuple[Mask, Mask]:
    """Join the contexts of some groups: contexts and open targets."""
    words, target_words = contexts.shape[1], open_.shape[1]
    found = np.empty((FIRST_CAPACITY, words), dtype=np.uint64)
    stays = np.empty((FIRST_CAPACITY, target_words), dtype=np.uint64)
    count = 0
    union, still = np.empty(words, dtype=np.uint64), np.empty(target_words, dtype=np.uint64)
    for group in range(first, last):
        for j in range(starts[group] + 1, starts[group + 1]):
            for i in range(starts[group], j):
                copy(open_[j], still)
                if not _intersect(still, open_[i]):
                    continue
                for w in range(words):
                    union[w] = contexts[i, w] | contexts[j, w]
                if not _open_for_all(union, still, contexts, open_, slots):
                    continue
                if count == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                    stays = np.concatenate((stays, np.empty_like(stays)))
                copy(union, found[count])
                copy(still, stays[count])
                count += 1
    return found[:count].copy(), stays[:count].copy()


@kernel("uint64[:, ::1], int64")
def list_bits(bits: Mask, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Row and place of each of `count` set bits, in order: int32 (count,) each."""
    rows, places = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    k = 0
    for row in range(len(bits)):
        for w in range(bits.shape[1]):
            word = bits[row, w]
            while word:
                rows[k], places[k] = row, 64 * w + lowest_bit(word)
                word ^= _lowest(word)
                k += 1
    return rows, places


@kernel("uint64[:, ::1], int32[::1], int32[::1]")
def clear_bits(bits: Mask, rows: NDArray[np.int32], places: NDArray[np.int32]) -> None:
    """Clear one bit for each pair of row and place."""
    for k in range(len(rows)):
        clear_bit(bits[rows[k]], places[k])


@kernel("uint64[:, ::1], int32[::1], uint64[:, ::1], uint64[:, ::1], uint64[:, ::1]")
def clear_masks(contexts: Mask, slots: NDArray[np.int32], bits: Mask, given: Mask, cleared: Mask) -> None:
    """Clear the bits of each mask in the row of its context, if the context exists."""
    for k in range(len(given)):
        row = _row_of(given[k], contexts, slots)
        if row >= 0:
            for w in range(bits.shape[1]):
                bits[row, w] &= ~cleared[k, w]
