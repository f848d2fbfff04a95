"""A hash table of multi-word keys with 64-bit counts, for clues that a direct table can't index."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def slot_of(keys: NDArray[np.uint64], counts: NDArray[np.int64], key: NDArray[np.uint64]) -> int:
    """Slot that holds `key`, or the free slot (count 0) where it belongs. Linear probing; the table is never full."""
    mask = np.uint64(len(counts) - 1)
    h = np.uint64(0x9E3779B97F4A7C15)
    for w in range(len(key)):
        h = (h ^ key[w]) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(31)
    slot = h & mask
    while counts[slot] != 0:
        same = True
        for w in range(len(key)):
            if keys[slot, w] != key[w]:
                same = False
                break
        if same:
            break
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def grown(
    keys: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The same table with four times the slots."""
    new_keys = np.zeros((4 * keys.shape[0], keys.shape[1]), dtype=np.uint64)
    new_counts = np.zeros(4 * keys.shape[0], dtype=np.int64)
    for s in range(len(counts)):
        if counts[s] != 0:
            to = slot_of(new_keys, new_counts, keys[s])
            new_keys[to, :] = keys[s]
            new_counts[to] = counts[s]
    return new_keys, new_counts


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_row(
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    used: int,
    row_keys: NDArray[np.uint64],
    first: int,
    last: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], int]:
    """Count the keys `row_keys[:, first:last]`, uint64 (words, lanes), into the table; returns it, perhaps grown."""
    words = row_keys.shape[0]
    key = np.empty(words, dtype=np.uint64)
    previous = np.int64(-1)
    for j in range(first, last):
        same = previous >= 0
        for w in range(words):
            if row_keys[w, j] != key[w]:
                same = False
                key[w] = row_keys[w, j]
        if not same:
            previous = slot_of(keys, counts, key)
            if counts[previous] == 0:
                if 2 * (used + 1) > len(counts):
                    keys, counts = grown(keys, counts)
                    previous = slot_of(keys, counts, key)
                used += 1
                for w in range(words):
                    keys[previous, w] = key[w]
        counts[previous] += 1
    return keys, counts, used
