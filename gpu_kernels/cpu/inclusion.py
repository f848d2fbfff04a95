"""Intersections of clusters and counts of common values on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.bits import lowest_bit
from tuplewise.gpu_kernels.cpu.threads import run_tasks


@kernel("uint64[:, ::1], int64, uint64[:, ::1]")
def intersect_word(masks, w, common):
    """Intersect clusters: common[a] &= each mask with attribute a, for the attributes of word w."""
    for c in range(masks.shape[0]):
        word = masks[c, w]
        while word != 0:
            a = 64 * w + lowest_bit(word)
            word &= word - np.uint64(1)
            for k in range(masks.shape[1]):
                common[a, k] &= masks[c, k]


@kernel("uint64[:, ::1], int64[::1], int64, int64[::1], int64[:, ::1]")
def count_word(masks, values, w, members, counts):
    """Count common values: counts[a, b] += values of each cluster with a and b, for the attributes a of word w.

    `members`, int64 (attributes,), is room for the attributes of a cluster.
    """
    for c in range(masks.shape[0]):
        word = masks[c, w]
        if word == 0:
            continue
        size = 0
        for k in range(masks.shape[1]):
            left = masks[c, k]
            while left != 0:
                members[size] = 64 * k + lowest_bit(left)
                left &= left - np.uint64(1)
                size += 1
        while word != 0:
            a = 64 * w + lowest_bit(word)
            word &= word - np.uint64(1)
            for i in range(size):
                counts[a, members[i]] += values[c]


def intersect(masks: NDArray[np.uint64], common: NDArray[np.uint64], control: Control) -> None:
    """Write common[a] = intersection of the clusters with a: uint64 (attributes, words), all ones before."""

    def work(w: int) -> None:
        intersect_word(masks, w, common)

    run_tasks([1.0] * masks.shape[1], lambda: work, control)


def count(
    masks: NDArray[np.uint64], values: NDArray[np.int64], counts: NDArray[np.int64], control: Control
) -> None:
    """Write counts[a, b] = values of the clusters with both: int64 (attributes, attributes), zeros before."""

    def make_worker() -> Callable[[int], None]:
        members = np.empty(len(counts), dtype=np.int64)
        return lambda w: count_word(masks, values, w, members, counts)

    run_tasks([1.0] * masks.shape[1], make_worker, control)
