"""Compiled loops of the CPU twin of clues: finding the new keys of 256 lanes, by a table of bytes or of hashes.

Where only attributes are compared with themselves, in order, a key may be kept for what it *tells*: on its difference
set, the attributes that differ, that two of them are ordered alike, or oppositely. Few keys tell something new.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper
from tuplewise.gpu_kernels.cpu.arrays import copy, copy_rows
from tuplewise.gpu_kernels.cpu.bits import lowest_bit

LANES = 256  # rows that are compared at once
PADDING = 16  # keeps the lanes of different columns out of one set of the cache
EQUAL_BITS = np.uint64(0x55555555)  # of an outcome of two bits, the lower one tells that it is EQUAL
ATTRIBUTES_A_WORD = 16
ALL_BITS = np.uint32((1 << 32) - 1)
RECENT_KEYS = 1 << 15
ALL_TOLD = ALL_BITS  # in place of a set's number: any two of its attributes were ordered in both ways


class Lanes(NamedTuple):
    """Rows that a thread compares together, and their keys.

    Attributes
    ----------
    codes : int32 (columns, 2 LANES + PADDING), codes of the rows, with room to read `distance` lanes ahead
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
        With `told`, of difference sets, in place of keys; then the number of the set, or ALL_TOLD.
    used : number of taken slots
    told : uint32 (slots / 2, (1 + attributes) x words), for each difference set; no rows where every key counts
        First the attributes for which not all is told. Then for each attribute those after it that were ordered alike,
        in lower bits, and oppositely, in upper ones.
    recent : uint32 (RECENT_KEYS, words) with `told`, else no rows; the last key of each hash, which tells nothing more
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.int32]
    logged: int
    seen: NDArray[np.uint32]
    used: int
    told: NDArray[np.uint32]
    recent: NDArray[np.uint32]


LANES_TYPE = "Lanes(int32[:, ::1], uint32[:, ::1], uint32[::1], int32[::1], uint32[::1])"
LOG = "Log(uint64[:, ::1], int32[:, ::1], int64, uint32[:, ::1], int64, uint32[:, ::1], uint32[:, ::1])"


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


# It takes arrays one by one: passing the tuples that hold them for each row would count references to all arrays, which
# costs as much as the lanes do.
@helper
def first_unseen(keys, valid, places, low, high, seen):
    """Return the first lane from `low` on whose key `seen` doesn't have; `high` if there is none, as for most rows.

    `seen`: uint8 (keys + 1,), 1 for a key that was met; the last place, always 1, is for lanes that don't count.
    `places`: uint32 (lanes,), working memory.
    """
    known = np.uint32(len(seen) - 1)
    for j in range(np.uint64(low), np.uint64(high)):
        places[j] = (keys[0, j] & valid[j]) | (known & ~valid[j])
    # Eight at a time, left at the first that are new: vectors would take longer to gather single bytes.
    j, last = np.uint64(low), np.uint64(high)
    while j + np.uint64(8) <= last:
        met = seen[places[j]] & seen[places[j + np.uint64(1)]]
        met &= seen[places[j + np.uint64(2)]] & seen[places[j + np.uint64(3)]]
        met &= seen[places[j + np.uint64(4)]] & seen[places[j + np.uint64(5)]]
        met &= seen[places[j + np.uint64(6)]] & seen[places[j + np.uint64(7)]]
        if met == 0:
            break
        j += np.uint64(8)
    while j < last and seen[places[j]]:
        j += np.uint64(1)
    return np.int64(j)


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
    return Log(log_keys, log_rows, logged, log.seen, log.used, log.told, log.recent)


@helper
def _write_wide(keys, j, wide):
    """Write the key of lane j, two words in one: uint64 (words,)."""
    for w in range(keys.shape[0]):
        word = np.uint64(keys[w, j])
        if w % 2 == 0:
            wide[w // 2] = word << np.uint64(32)
        else:
            wide[w // 2] |= word


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
            _write_wide(keys, j, log_keys[logged])
            log_rows[logged, 0] = lane_rows[j] if t < 0 else t
            log_rows[logged, 1] = lane_rows[j + distance]
            logged += 1
    return Log(log_keys, log_rows, logged, seen, used, log.told, log.recent)


@helper
def _attributes_in(attributes, word):
    """Lower bits of the outcomes of the attributes in a key word."""
    here = min(ATTRIBUTES_A_WORD, attributes - ATTRIBUTES_A_WORD * word)
    return EQUAL_BITS & ((np.uint64(1) << np.uint64(2 * here)) - np.uint64(1))


@helper
def _place(word):
    """Pack the difference set of one key word, 16 attributes, into 16 bits."""
    bits = ~word & np.uint32(EQUAL_BITS)
    bits = (bits | (bits >> np.uint32(1))) & np.uint32(0x33333333)
    bits = (bits | (bits >> np.uint32(2))) & np.uint32(0x0F0F0F0F)
    bits = (bits | (bits >> np.uint32(4))) & np.uint32(0x00FF00FF)
    return (bits | (bits >> np.uint32(8))) & np.uint32(0x0000FFFF)


@helper
def _pick_open(lanes, low, high, attributes, seen):
    """Write the valid lanes from `low` to `high` of whose difference set not all is told to `lanes.hashes`; returns
    their number."""
    keys, valid, picked = lanes.keys, lanes.valid, lanes.hashes
    every = np.uint32((1 << attributes) - 1) if len(seen) else np.uint32(0)
    for j in range(np.uint64(low), np.uint64(high)):
        picked[j] = _place(keys[0, j]) & every
    if keys.shape[0] > 1 and len(seen):
        for j in range(np.uint64(low), np.uint64(high)):
            picked[j] |= (_place(keys[1, j]) << np.uint32(ATTRIBUTES_A_WORD)) & every
    count = low
    for j in range(low, high):
        some = valid[j] != 0 and (len(seen) == 0 or seen[picked[j]] == 0)
        picked[count] = np.uint32(j)
        count += np.int64(some)
    return count - low


@helper
def _is_recent(keys, j, recent):
    """Tell whether `recent` has the key of lane j; from now on it has."""
    slot = np.uint32(0)
    for w in range(keys.shape[0]):
        slot = np.uint32((slot ^ keys[w, j]) * np.uint32(0x9E3779B1))
        slot ^= slot >> np.uint32(15)
    slot &= np.uint32(len(recent) - 1)
    same = True
    for w in range(keys.shape[0]):
        same &= recent[slot, w] == keys[w, j]
        recent[slot, w] = keys[w, j]
    return same


@helper
def _tell(differ, above, told, number):
    """Add what a key tells to row `number` of `told`, that of its difference set; returns whether some of it is new.

    `differ`, `above`: uint64 (words,), the lower bits of the outcomes that aren't EQUAL, and of those that are GREATER.
    """
    words = len(differ)
    new = False
    for w in range(words):
        rest = np.uint64(told[number, w])
        while rest:
            lowest = rest & (~rest + np.uint64(1))
            rest ^= lowest
            place = words * (1 + ATTRIBUTES_A_WORD * w + lowest_bit(lowest) // 2)
            flips = np.uint64(0) if above[w] & lowest else ~np.uint64(0)
            after = differ[w] & ~(lowest | (lowest - np.uint64(1)))
            missing = np.uint64(0)
            for v in range(w, words):
                alike = (above[v] ^ flips) & after
                both = after | (after << np.uint64(1))
                now = alike | ((alike ^ after) << np.uint64(1))
                before = np.uint64(told[number, place + v])
                if now & ~before:
                    new = True
                    told[number, place + v] = np.uint32(before | now)
                missing |= both & ~(before | now)
                after = differ[min(v + 1, words - 1)]
            if missing == 0:
                told[number, w] = np.uint32(np.uint64(told[number, w]) & ~lowest)
    return new


@helper
def _insert_telling(lanes, low, high, t, distance, sets, log):
    """Log the keys of valid lanes `low` to `high` that tell something new about their difference sets.

    `sets`: uint8 (2 ** attributes,), 1 for a set of which all is told, as in most lanes; empty for many attributes.
    """
    keys, lane_rows = lanes.keys, lanes.rows
    words, told = keys.shape[0], log.told
    attributes = told.shape[1] // words - 1
    seen = _with_room(log.seen, log.used)
    if len(told) < len(seen) // 2:
        told = np.zeros((len(seen) // 2, told.shape[1]), dtype=np.uint32)
        copy_rows(log.told, told, log.used)
    count = _pick_open(lanes, low, high, attributes, sets)
    if count == 0:
        return log
    differ, above = np.empty(words, dtype=np.uint64), np.empty(words, dtype=np.uint64)
    shift = _shift_of(seen)
    mask = np.uint32(len(seen) - 1)
    log_keys, log_rows = _longer(log.keys, log.rows, log.logged)
    logged, used = log.logged, log.used
    for i in range(low, low + count):
        j = np.int64(lanes.hashes[i])
        if _is_recent(keys, j, log.recent):
            continue
        h = np.uint32(0)
        for w in range(words):
            key = np.uint64(keys[w, j])
            differ[w] = ~key & _attributes_in(attributes, w)
            above[w] = (key >> np.uint64(1)) & differ[w]
            h = np.uint32((h ^ np.uint32(differ[w])) * np.uint32(0x9E3779B1))
            h ^= h >> np.uint32(15)
        h = np.uint32(h * np.uint32(0x85EBCA77)) | np.uint32(1)
        slot = h >> shift
        new = False
        while seen[slot, 0] != 0:
            same = seen[slot, 0] == h
            for w in range(words):
                same &= np.uint64(seen[slot, w + 1]) == differ[w]
            if same:
                break
            slot = (slot + np.uint32(1)) & mask
        else:
            seen[slot, 0] = h
            seen[slot, words + 1] = np.uint32(used)
            for w in range(words):
                seen[slot, w + 1] = np.uint32(differ[w])
                told[used, w] = np.uint32(differ[w])
            used += 1
            new = True
        number = seen[slot, words + 1]
        if number == ALL_TOLD:
            continue
        new |= _tell(differ, above, told, number)
        left = np.uint32(0)
        for w in range(words):
            left |= told[number, w]
        if left == 0:
            seen[slot, words + 1] = ALL_TOLD
            if len(sets):
                place = np.int64(_place(keys[0, j]))
                if words > 1:
                    place |= np.int64(_place(keys[1, j])) << ATTRIBUTES_A_WORD
                sets[place & (len(sets) - 1)] = 1
        if new:
            _write_wide(keys, j, log_keys[logged])
            log_rows[logged, 0] = lane_rows[j] if t < 0 else t
            log_rows[logged, 1] = lane_rows[j + distance]
            logged += 1
    return Log(log_keys, log_rows, logged, seen, used, told, log.recent)


@helper
def keep_new(lanes, low, high, t, distance, seen, log):
    """Log the new keys of lanes `low` to `high`: by the table of bytes `seen`, or by the log's own table where that is
    empty; or those that tell something new, where the log has room for what is told (`seen` is one of sets then).

    The pair of rows of a key is row t (-1: the lane's own row) and the row of the lane `distance` ahead.
    """
    if len(log.told):
        return _insert_telling(lanes, low, high, t, distance, seen, log)
    if len(seen):
        return _log_new(lanes, low, high, t, distance, seen, log)
    return _insert_new(lanes, low, high, t, distance, log)
