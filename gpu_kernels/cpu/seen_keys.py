"""Compiled loops of the CPU twin of clues: which keys of 256 lanes are new, by a table of bytes or of hashes."""

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper
from tuplewise.gpu_kernels.cpu.arrays import copy, copy_rows

LANES = 256  # rows that are compared at once


@helper
def _longer(log_keys, log_rows, logged):
    """The log with room for a row of lanes more."""
    if logged + LANES <= len(log_rows):
        return log_keys, log_rows
    keys = np.zeros((4 * len(log_rows), log_keys.shape[1]), dtype=np.uint64)
    rows = np.zeros((4 * len(log_rows), 2), dtype=np.int32)
    copy_rows(log_keys, keys, logged)
    copy_rows(log_rows, rows, logged)
    return keys, rows


@helper
def all_seen(keys, valid, low, high, seen):
    """Whether `seen`, uint8 (keys,), has the keys of all valid lanes from `low` to `high`: how most rows end.

    `valid`: uint32 (lanes,), all bits where a lane counts, else 0.
    """
    unseen = np.uint32(0)
    for j in range(np.uint64(low), np.uint64(high)):  # an invalid lane looks where a valid one is likely to have looked
        unseen |= np.uint32(seen[keys[0, j] & valid[j]] == 0) & valid[j]
    return unseen == 0


@helper
def _log_new(keys, valid, low, high, t, distance, lane_rows, seen, log_keys, log_rows, logged):
    """Log the valid keys of lanes `low` to `high` that `seen` doesn't have, each with its pair of rows: row t (where
    that is -1, the lane's own) and the row of the lane `distance` ahead. Returns the log."""
    log_keys, log_rows = _longer(log_keys, log_rows, logged)
    for j in range(low, high):
        k = keys[0, j]
        if seen[k] == 0 and valid[j]:
            seen[k] = 1
            log_keys[logged, 0] = np.uint64(k) << np.uint64(32)  # two words of a key in one, the first above
            log_rows[logged, 0] = lane_rows[j] if t < 0 else t
            log_rows[logged, 1] = lane_rows[j + distance]
            logged += 1
    return log_keys, log_rows, logged


@helper
def _hash_lanes(keys, low, high, hashes):
    """hashes[j] = hash of the key of lane j, uint32, never 0; its upper bits are good."""
    for j in range(np.uint64(low), np.uint64(high)):
        hashes[j] = np.uint32(0)
    for w in range(keys.shape[0]):
        for j in range(np.uint64(low), np.uint64(high)):
            hashes[j] = (hashes[j] ^ keys[w, j]) * np.uint32(0x9E3779B1)  # stored, it is cut to 32 bits
        for j in range(np.uint64(low), np.uint64(high)):
            hashes[j] ^= hashes[j] >> np.uint32(15)
    for j in range(np.uint64(low), np.uint64(high)):
        hashes[j] = (hashes[j] * np.uint32(0x85EBCA77)) | np.uint32(1)


@helper
def _shift_of(met):
    """How far hashes are shifted to index a table of a power of two of slots."""
    shift = np.uint32(32)
    slots = len(met)
    while slots > 1:
        slots >>= 1
        shift -= np.uint32(1)
    return shift


@helper
def _with_room(met, used):
    """The same table with four times the slots where lanes of new keys might fill more than half of it."""
    if 2 * (used + LANES) <= len(met):
        return met
    larger = np.zeros((4 * len(met), met.shape[1]), dtype=np.uint32)
    shift = _shift_of(larger)
    mask = np.uint32(len(larger) - 1)
    for i in range(len(met)):
        if met[i, 0] != 0:
            slot = met[i, 0] >> shift
            while larger[slot, 0] != 0:
                slot = (slot + np.uint32(1)) & mask
            copy(met[i], larger[slot])
    return larger


@helper
def _insert_new(keys, valid, low, high, t, distance, lane_rows, met, used, hashes, log_keys, log_rows, logged):
    """The same with a hash table of keys.

    `met`: uint32 (slots, 1 + words), a key's hash and the key; a hash of 0 is a free slot, linear probing.
    """
    met = _with_room(met, used)
    _hash_lanes(keys, low, high, hashes)
    shift = _shift_of(met)
    mask = np.uint32(len(met) - 1)
    words = keys.shape[0]
    log_keys, log_rows = _longer(log_keys, log_rows, logged)
    for j in range(low, high):
        if not valid[j]:
            continue
        h = hashes[j]
        slot = h >> shift
        while met[slot, 0] != 0:
            same = met[slot, 0] == h
            for w in range(words):
                same &= met[slot, w + 1] == keys[w, j]
            if same:
                break
            slot = (slot + np.uint32(1)) & mask
        else:
            met[slot, 0] = h
            used += 1
            for w in range(words):
                met[slot, w + 1] = keys[w, j]
                wide = np.uint64(keys[w, j]) << np.uint64(32 * (1 - w % 2))
                if w % 2 == 0:
                    log_keys[logged, w // 2] = wide
                else:
                    log_keys[logged, w // 2] |= wide
            log_rows[logged, 0] = lane_rows[j] if t < 0 else t
            log_rows[logged, 1] = lane_rows[j + distance]
            logged += 1
    return met, used, log_keys, log_rows, logged


@helper
def keep_new(
    direct, keys, valid, low, high, t, distance, lane_rows, seen, met, used, hashes, log_keys, log_rows, logged,
):  # fmt: skip
    """Log the new keys, by the table of bytes or by the hash table. Returns the hash table and the log."""
    if direct:
        log_keys, log_rows, logged = _log_new(
            keys, valid, low, high, t, distance, lane_rows, seen, log_keys, log_rows, logged
        )
    else:
        met, used, log_keys, log_rows, logged = _insert_new(
            keys, valid, low, high, t, distance, lane_rows, met, used, hashes, log_keys, log_rows, logged
        )
    return met, used, log_keys, log_rows, logged
