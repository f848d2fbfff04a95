"""Pairs of rows that differ on fewest attributes: for each attribute a short list of the best ones so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.bits import bits_in, lowest_bit
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.words import mask_words

NONE = np.iinfo(np.int32).max  # attributes that differ in a pair that isn't there


def run(
    codes: NDArray[np.int32], samples: Sequence[Callable[[], ClusterPairs]], unknown: bool, lists: NDArray[np.bool_],
    kept: int, control: Control,
) -> tuple[NDArray[np.int32], bool]:
    """See `nearest_pairs`. `lists`: bool (attributes + 1,), which lists are kept, the last one of all pairs."""
    table = np.ascontiguousarray(codes.T)
    found: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []

    def make_worker() -> Callable[[int], None]:
        differ = np.zeros((len(lists), kept, mask_words(len(codes))), dtype=np.uint64)
        sizes, pairs = np.full((len(lists), kept), NONE, np.int32), np.zeros((len(lists), kept, 2), np.int32)
        found.append((sizes, pairs))

        def work(task: int) -> None:
            clusters = samples[task]()
            keep_nearest(table, clusters.left, clusters.left_offsets, unknown, lists, differ, sizes, pairs)

        return work

    complete = run_tasks([1.0] * len(samples), make_worker, control)
    best = [pairs[sizes < NONE] for sizes, pairs in found]
    return np.unique(np.concatenate([np.zeros((0, 2), np.int32), *best]), axis=0), complete


@kernel(
    "int32[:, ::1], int32[::1], int64[::1], boolean, boolean[::1], uint64[:, :, ::1], int32[:, ::1], int32[:, :, ::1]"
)
def keep_nearest(table, rows, offsets, unknown, lists, differ, sizes, pairs):
    """Keep the nearest pairs inside the clusters of `rows`.

    table : int32 (rows, attributes)
    differ : uint64 (lists, kept, words), the attributes on which the rows of each pair that is kept do not agree
    sizes : int32 (lists, kept), the number of these
    pairs : int32 (lists, kept, 2), the pairs
    """
    attributes, words = table.shape[1], differ.shape[2]
    apart = np.zeros(words, dtype=np.uint64)  # not alike
    unlike = np.zeros(words, dtype=np.uint64)  # two values
    worst = np.empty(len(lists), dtype=np.int64)
    for a in range(len(lists)):
        worst[a] = sizes[a].max() if lists[a] else 0
    most = worst.max()
    for c in range(len(offsets) - 1):
        for i in range(offsets[c], offsets[c + 1]):
            t = rows[i]
            for j in range(i + 1, offsets[c + 1]):
                u = rows[j]
                size = 0
                for w in range(words):
                    known, any_ = np.uint64(0), np.uint64(0)
                    for k in range(min(64, attributes - 64 * w)):
                        x, y = table[t, 64 * w + k], table[u, 64 * w + k]
                        null = unknown and (x < 0 or y < 0)
                        any_ |= np.uint64(null or x != y) << np.uint64(k)
                        known |= np.uint64(not null and x != y) << np.uint64(k)
                    apart[w], unlike[w] = any_, known
                    size += bits_in(any_)
                    if size >= most:
                        break
                if size >= most:
                    continue
                changed = lists[attributes] and _keep(attributes, apart, size, t, u, differ, sizes, pairs, worst)
                for w in range(words):
                    left = unlike[w]
                    while left:
                        a = 64 * w + lowest_bit(left)
                        left &= left - np.uint64(1)
                        if lists[a] and _keep(a, apart, size, t, u, differ, sizes, pairs, worst):
                            changed = True
                if changed:
                    most = worst.max()


@helper
def _keep(a, apart, size, t, u, differ, sizes, pairs, worst):
    """Put a pair into the list of attribute a, in place of the one that differs on most. Returns whether it is."""
    if size >= worst[a]:
        return False
    place = 0
    for k in range(sizes.shape[1]):
        if sizes[a, k] <= size:
            inside = True
            for w in range(len(apart)):
                if differ[a, k, w] & ~apart[w]:
                    inside = False
                    break
            if inside:
                return False
        if sizes[a, k] > sizes[a, place]:
            place = k
    for w in range(len(apart)):
        differ[a, place, w] = apart[w]
    sizes[a, place] = size
    pairs[a, place, 0], pairs[a, place, 1] = t, u
    worst[a] = sizes[a].max()
    return True
