"""Pairs of rows that differ on fewest attributes: for each attribute a short list of the best ones so far."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.bits import bits_in, clear_bit, lowest_bit
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.words import as_masks, mask_words

SAMPLES_A_ROUND = 16
LEAST_GAIN = 0.01  # pairs that a round puts on lists, as a share of those of the first: with fewer, the search ends


class _Lists(NamedTuple):
    """Lists of the nearest pairs, one for each attribute that differs, and a last one for any pair.

    Attributes
    ----------
    differ : uint64 (lists, kept, words), the attributes on which the rows of each pair do not agree
    sizes : int32 (lists, kept), the number of these; one more than there are attributes: no pair
    pairs : int32 (lists, kept, 2), the pairs
    open_ : uint64 (attributes + 2, words of the lists), the lists that a pair of each size may go to
    gained : int64 (1,), how many times a pair was put on a list
    """

    differ: NDArray[np.uint64]
    sizes: NDArray[np.int32]
    pairs: NDArray[np.int32]
    open_: NDArray[np.uint64]
    gained: NDArray[np.int64]

    @staticmethod
    def none(lists: NDArray[np.bool_], kept: int) -> _Lists:
        """Empty lists. `lists`: bool (attributes + 1,), which of them are kept."""
        attributes, shape = len(lists) - 1, (len(lists), kept)
        open_ = np.repeat(as_masks(lists[None, :]), attributes + 2, axis=0)
        open_[-1] = 0
        differ = np.zeros((*shape, mask_words(attributes)), dtype=np.uint64)
        sizes, pairs = np.full(shape, attributes + 1, np.int32), np.zeros((*shape, 2), np.int32)
        return _Lists(differ, sizes, pairs, open_, np.zeros(1, np.int64))


_LISTS = "_Lists(uint64[:, :, ::1], int32[:, ::1], int32[:, :, ::1], uint64[:, ::1], int64[::1])"


def run(
    codes: NDArray[np.int32], samples: Sequence[Callable[[], ClusterPairs]], unknown: bool, lists: NDArray[np.bool_],
    kept: int, control: Control,
) -> tuple[NDArray[np.int32], bool]:
    """See `nearest_pairs`. `lists`: see `_Lists.none`."""
    table = np.ascontiguousarray(codes.T)
    states: list[_Lists] = []  # of all threads; those of threads that have ended are idle
    idle: list[_Lists] = []
    taking = threading.Lock()

    def make_worker() -> Callable[[int], None]:
        with taking:
            if not idle:
                idle.append(_Lists.none(lists, kept))
                states.append(idle[-1])
            mine = idle.pop()

        def work(task: int) -> None:
            clusters = samples[first + task]()
            keep_nearest(table, clusters.left, clusters.left_offsets, unknown, mine)

        return work

    most, complete = 0, True
    for first in range(0, len(samples), SAMPLES_A_ROUND):
        idle[:] = states
        complete = run_tasks([1.0] * len(samples[first : first + SAMPLES_A_ROUND]), make_worker, control)
        gained = sum(int(mine.gained[0]) for mine in states)
        for mine in states:
            mine.gained[0] = 0
        most = max(most, gained)
        if not complete or gained <= LEAST_GAIN * most:
            break
    best = [mine.pairs[mine.sizes <= len(codes)] for mine in states]
    return np.unique(np.concatenate([np.zeros((0, 2), np.int32), *best]), axis=0), complete


@kernel(f"int32[:, ::1], int32[::1], int64[::1], boolean, {_LISTS}")
def keep_nearest(table, rows, offsets, unknown, lists):
    """Keep the nearest pairs inside the clusters of `rows`. `table`: int32 (rows, attributes)."""
    attributes, words = table.shape[1], lists.differ.shape[2]
    apart = np.zeros(words, dtype=np.uint64)  # not alike
    unlike = np.zeros(lists.open_.shape[1], dtype=np.uint64)  # two values; and the last list
    most = _most(lists.open_)
    for c in range(len(offsets) - 1):
        for i in range(offsets[c], offsets[c + 1]):
            for j in range(i + 1, offsets[c + 1]):
                size = _compare(table, rows[i], rows[j], unknown, most, apart, unlike)
                if size > most:
                    continue
                unlike[attributes // 64] |= np.uint64(1) << np.uint64(attributes % 64)
                for w in range(len(unlike)):
                    left = unlike[w] & lists.open_[size, w]
                    while left:
                        a = 64 * w + lowest_bit(left)
                        left &= left - np.uint64(1)
                        _keep(a, apart, size, rows[i], rows[j], lists)
                most = _most(lists.open_) if size == most else most


@helper
def _most(open_):
    """Size of the largest pairs that go to a list; -1: none do."""
    for size in range(len(open_) - 1, -1, -1):
        for w in range(open_.shape[1]):
            if open_[size, w]:
                return size
    return -1


@helper
def _compare(table, t, u, unknown, most, apart, unlike):
    """Write on which attributes two rows do not agree, and have two values; returns the number of the first, or more
    than `most`."""
    attributes = table.shape[1]
    size = 0
    for w in range(len(apart)):
        any_, known = np.uint64(0), np.uint64(0)
        for k in range(np.uint64(min(64, attributes - 64 * w))):
            x, y = table[t, np.uint64(64 * w) + k], table[u, np.uint64(64 * w) + k]
            any_ |= np.uint64(x != y) << k
        known = any_
        if unknown:
            for k in range(np.uint64(min(64, attributes - 64 * w))):
                null = table[t, np.uint64(64 * w) + k] < 0 or table[u, np.uint64(64 * w) + k] < 0
                any_ |= np.uint64(null) << k
                known &= ~(np.uint64(null) << k)
        apart[w], unlike[w] = any_, known
        size += bits_in(any_)
        if size > most:
            break
    return size


@helper
def _keep(a, apart, size, t, u, lists):
    """Put a pair into a list, in place of the one of most attributes, unless one in it has a part of its attributes."""
    sizes, differ = lists.sizes, lists.differ
    place = 0
    for k in range(sizes.shape[1]):
        if sizes[a, k] <= size:
            inside = True
            for w in range(len(apart)):
                if differ[a, k, w] & ~apart[w]:
                    inside = False
                    break
            if inside:
                return
        if sizes[a, k] > sizes[a, place]:
            place = k
    before = sizes[a, place]
    for w in range(len(apart)):
        differ[a, place, w] = apart[w]
    sizes[a, place] = size
    lists.pairs[a, place, 0], lists.pairs[a, place, 1] = t, u
    for too_large in range(sizes[a].max(), before):
        clear_bit(lists.open_[too_large], a)
    lists.gained[0] += 1
