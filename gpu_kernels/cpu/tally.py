"""Hash table of multi-word keys with 64-bit counts, for clues that a direct table can't index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper
from tuplewise.gpu_kernels.cpu.arrays import copy
from tuplewise.gpu_kernels.cpu.hashing import mix_word
from tuplewise.gpu_kernels.word_hash import SPREAD


@helper
def _hash_keys(row_keys: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> None:
    """Hash of each lane's key. `row_keys`: uint64 (words, lanes)."""
    for j in range(len(hashes)):
        hashes[j] = mix_word(np.uint64(0), row_keys[0, j])
    for w in range(1, row_keys.shape[0]):
        for j in range(len(hashes)):
            hashes[j] = mix_word(hashes[j], row_keys[w, j])
    for j in range(len(hashes)):
        hashes[j] = (hashes[j] * SPREAD) >> np.uint64(24)


@helper
def grown(
    keys: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Copy with four times the slots."""
    words = keys.shape[1]
    mask = np.uint64(4 * keys.shape[0] - 1)
    new_keys = np.zeros((4 * keys.shape[0], words), dtype=np.uint64)
    new_counts = np.zeros(4 * keys.shape[0], dtype=np.int64)
    lane = np.empty((words, 1), dtype=np.uint64)
    hashed = np.empty(1, dtype=np.uint64)
    for s in range(len(counts)):
        if counts[s] != 0:
            copy(keys[s], lane[:, 0])
            _hash_keys(lane, hashed)
            slot = hashed[0] & mask
            while new_counts[slot] != 0:
                slot = (slot + np.uint64(1)) & mask
            copy(keys[s], new_keys[slot])
            new_counts[slot] = counts[s]
    return new_keys, new_counts


@helper
def _slot_of(
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    row_keys: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    j: int,
) -> np.uint64:
    """Slot of the key of lane j, which is written where it is new."""
    words = row_keys.shape[0]
    mask = np.uint64(len(counts) - 1)
    slot = hashes[j] & mask
    while True:
        if counts[slot] == 0:
            for w in range(words):
                keys[slot, w] = row_keys[w, j]
            return slot
        same = keys[slot, 0] == row_keys[0, j]
        for w in range(1, words):
            same &= keys[slot, w] == row_keys[w, j]
        if same:
            return slot
        slot = (slot + np.uint64(1)) & mask


@helper
def add_row(
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    used: int,
    row_keys: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    first: int,
    last: int,
    weight: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], int]:
    """Count each key of `row_keys[:, first:last]`, uint64 (words, lanes), `weight` times; returns the table.

    Linear probing; slots are a power of two; a free slot has count 0. At most half of the slots are taken, even after
    one more row of keys.
    """
    if 2 * (used + last - first) > len(counts):
        keys, counts = grown(keys, counts)
    _hash_keys(row_keys, hashes)
    for j in range(first, last):
        slot = _slot_of(keys, counts, row_keys, hashes, j)
        used += counts[slot] == 0
        counts[slot] += weight
    return keys, counts, used


@helper
def add_weighted(
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    used: int,
    row_keys: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    weights: NDArray[np.int64],
    last: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], int]:
    """Count key j of `row_keys[:, :last]` weights[j] times, as `add_row` does."""
    if 2 * (used + last) > len(counts):
        keys, counts = grown(keys, counts)
    _hash_keys(row_keys, hashes)
    for j in range(last):
        slot = _slot_of(keys, counts, row_keys, hashes, j)
        used += counts[slot] == 0
        counts[slot] += weights[j]
    return keys, counts, used
