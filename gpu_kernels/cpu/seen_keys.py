"""Compiled loops of the CPU twin of clues: finding the new keys of 256 lanes, by a table of bytes or of hashes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper
from tuplewise.gpu_kernels.cpu.arrays import copy, copy_rows

LANES = 256  # rows that are compared at once


class Lanes(NamedTuple):
    """Rows that a thread compares together, and their keys.

    Attributes
    ----------
    codes : int32 (columns, 2 LANES), codes of the rows, with room to read `distance` lanes ahead
    keys : uint32 (words, LANES)
    valid : uint32 (LANES,), all bits where a lane counts, else 0
    rows : int32 (2 LANES,), number of each row
    hashes : uint32 (LANES,), working memory
    """

    codes: NDArray[np.int32]
    keys: NDArray[np.uint32]
    valid: NDArray[np.uint32]
    rows: NDArray[np.int32]
    hashes: NDArray[np.uint32]


class Log(NamedTuple):
    """New keys that a thread met.

    Attributes
    ----------
    keys : uint64 (room, words), two words of a key in one, the first in the upper half
    rows : int32 (room, 2), a pair of rows with each key
    logged : number of logged keys
    seen : uint32 (slots, 1 + words), hash table of keys with linear probing: a hash, then the key; hash 0: free slot
    used : number of taken slots
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.int32]
    logged: int
    seen: NDArray[np.uint32]
    used: int


LANES_TYPE = "Lanes(int32[:, ::1], uint32[:, ::1], uint32[::1], int32[::1], uint32[::1])"
LOG = "Log(uint64[:, ::1], int32[:, ::1], int64, uint32[:, ::1], int64)"


@helper
def _longer(log_keys, log_rows, logged):
    """Return the log with room for the keys of all lanes."""
    if logged + LANES <= len(log_rows):
        return log_keys, log_rows
    keys = np.zeros((4 * len(log_rows), log_keys.shape[1]), dtype=np.uint64)
    rows = np.zeros((4 * len(log_rows), 2), dtype=np.int32)
    copy_rows(log_keys, keys, logged)
    copy_rows(log_rows, rows, logged)
    return keys, rows


@helper
def all_seen(keys, valid, low, high, seen):
    """Tell whether `seen`, uint8 (keys,), has the keys of all valid lanes from `low` to `high`, as for most rows.

    `valid`: uint32 (lanes,), all bits where a lane counts, else 0.
    """
    unseen = np.uint32(0)
    for j in range(np.uint64(low), np.uint64(high)):  # an invalid lane reads a place that a valid one has probably read
        unseen |= np.uint32(seen[keys[0, j] & valid[j]] == 0) & valid[j]
    return unseen == 0


@helper
def _log_new(lanes, low, high, t, distance, seen, log):
    """Log the keys of valid lanes `low` to `high` that `seen` doesn't have."""
    keys, valid, lane_rows = lanes.keys, lanes.valid, lanes.rows
    log_keys, log_rows = _longer(log.keys, log.rows, log.logged)
    logged = log.logged
    for j in range(low, high):
        k = keys[0, j]
        if seen[k] == 0 and valid[j]:
            seen[k] = 1
            log_keys[logged, 0] = np.uint64(k) << np.uint64(32)
            log_rows[logged, 0] = lane_rows[j] if t < 0 else t
            log_rows[logged, 1] = lane_rows[j + distance]
            logged += 1
    return Log(log_keys, log_rows, logged, log.seen, log.used)


@helper
def _hash_lanes(keys, low, high, hashes):
    """Write hashes[j] = hash of the key of lane j, uint32, never 0; its upper bits are well mixed."""
    for j in range(np.uint64(low), np.uint64(high)):
        hashes[j] = np.uint32(0)
    for w in range(keys.shape[0]):
        for j in range(np.uint64(low), np.uint64(high)):
            hashes[j] = (hashes[j] ^ keys[w, j]) * np.uint32(0x9E3779B1)  # storing it truncates to 32 bits
        for j in range(np.uint64(low), np.uint64(high)):
            hashes[j] ^= hashes[j] >> np.uint32(15)
    for j in range(np.uint64(low), np.uint64(high)):
        hashes[j] = (hashes[j] * np.uint32(0x85EBCA77)) | np.uint32(1)


@helper
def _shift_of(seen):
    """Shift of 32-bit hashes that gives the slot of a table; the number of slots is a power of two."""
    shift = np.uint32(32)
    slots = len(seen)
    while slots > 1:
        slots >>= 1
        shift -= np.uint32(1)
    return shift


@helper
def _with_room(seen, used):
    """Return the log with a fourfold table where new keys of all lanes might fill more than half of it."""
    if 2 * (used + LANES) <= len(seen):
        return seen
    larger = np.zeros((4 * len(seen), seen.shape[1]), dtype=np.uint32)
    shift = _shift_of(larger)
    mask = np.uint32(len(larger) - 1)
    for i in range(len(seen)):
        if seen[i, 0] != 0:
            slot = seen[i, 0] >> shift
            while larger[slot, 0] != 0:
                slot = (slot + np.uint32(1)) & mask
            copy(seen[i], larger[slot])
    return larger


@helper
def _insert_new(lanes, low, high, t, distance, log):
    """Log the keys of valid lanes `low` to `high` that the log's own table doesn't have."""
    keys, valid, lane_rows, hashes = lanes.keys, lanes.valid, lanes.rows, lanes.hashes
    seen = _with_room(log.seen, log.used)
    _hash_lanes(keys, low, high, hashes)
    shift = _shift_of(seen)
    mask = np.uint32(len(seen) - 1)
    words = keys.shape[0]
    log_keys, log_rows = _longer(log.keys, log.rows, log.logged)
    logged, used = log.logged, log.used
    for j in range(low, high):
        if not valid[j]:
            continue
        h = hashes[j]
        slot = h >> shift
        while seen[slot, 0] != 0:
            same = seen[slot, 0] == h
            for w in range(words):
                same &= seen[slot, w + 1] == keys[w, j]
            if same:
                break
            slot = (slot + np.uint32(1)) & mask
        else:
            seen[slot, 0] = h
            used += 1
            for w in range(words):
                seen[slot, w + 1] = keys[w, j]
                wide = np.uint64(keys[w, j]) << np.uint64(32 * (1 - w % 2))
                if w % 2 == 0:
                    log_keys[logged, w // 2] = wide
                else:
                    log_keys[logged, w // 2] |= wide
            log_rows[logged, 0] = lane_rows[j] if t < 0 else t
            log_rows[logged, 1] = lane_rows[j + distance]
            logged += 1
    return Log(log_keys, log_rows, logged, seen, used)


@helper
def keep_new(lanes, low, high, t, distance, seen, log):
    """Log the new keys of lanes `low` to `high`, by the table of bytes `seen`, or by the log's own table where that is
    empty.

    The pair of rows of a key is row t (-1: the lane's own row) and the row of the lane `distance` ahead.
    """
    if len(seen):
        return _log_new(lanes, low, high, t, distance, seen, log)
    return _insert_new(lanes, low, high, t, distance, log)
