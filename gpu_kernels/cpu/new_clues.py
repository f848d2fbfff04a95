"""Compiled loop of the CPU twin of clues: turning logged keys into clues not met before."""

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy
from tuplewise.gpu_kernels.cpu.tally import add_row
from tuplewise.gpu_kernels.words import COMPARISONS_PER_WORD

PER_WORD = np.uint64(COMPARISONS_PER_WORD)
KEY_WORD, SHIFT, BITS = range(3)  # columns of `places`: place of a comparison's outcome in a key


@helper
def _outcome(key, places, g):
    return (key[places[g, KEY_WORD], 0] >> np.uint64(places[g, SHIFT])) & np.uint64(places[g, BITS])


@helper
def _write_clue(key, places, clue):
    clue[:] = np.uint64(0)
    for g in range(len(places)):
        at = np.uint64(2) * (np.uint64(g) % PER_WORD)
        clue[np.uint64(g) // PER_WORD] |= _outcome(key, places, g) << at


@helper
def _write_mirror(key, places, mirror, flips, other):
    """Write the key of the exchanged pair. `flips`: whether a comparison's LESS and GREATER are exchanged there."""
    other[:] = np.uint64(0)
    for g in range(len(places)):
        outcome = _outcome(key, places, mirror[g])
        if flips[g] and (outcome == np.uint64(0) or outcome == np.uint64(2)):
            outcome ^= np.uint64(2)
        other[places[g, KEY_WORD], 0] |= outcome << np.uint64(places[g, SHIFT])


@helper
def _take(seen, taken, found, counts, used, key, hashes):
    """Take a key; returns the hash table, and whether the key is new."""
    if len(taken):
        at = key[0, 0] >> np.uint64(32)
        bit = np.uint8(1 << (at & np.uint64(7)))
        fresh = taken[at >> np.uint64(3)] & bit == 0
        taken[at >> np.uint64(3)] |= bit
        seen[at] = 1
    else:
        before = used
        found, counts, used = add_row(found, counts, used, key, hashes, 0, 1, 1)
        fresh = used > before
    return found, counts, used, fresh


@kernel(
    "uint8[::1], uint8[::1], uint64[:, ::1], int64[::1], int64, uint64[:, ::1], int32[:, ::1], "
    "int64[:, ::1], int32[::1], boolean[::1], uint64[:, ::1], int32[:, ::1]"
)
def take_new(
    seen, taken, found, counts, used, keys, rows, places, mirror, flips, clues, clue_rows
):  # fmt: skip
    """Write the clues of keys that no earlier call took, and of their mirrors, with their pairs of rows.

    `taken`: uint8 (any,), one bit for each key, used by this thread alone. (The shared `seen`, one byte for each key,
    only saves logging keys again.) Where `taken` is empty, `found`, `counts`, `used` are a hash table of keys. `keys`:
    uint64 (keys, words), `rows`: int32 (keys, 2); `places`: int64 (comparisons, 3), key word, shift and bits of each
    outcome. `clues`, `clue_rows`: room for two for each key. Returns the hash table and the number of clues.
    """
    key = np.empty((keys.shape[1], 1), dtype=np.uint64)
    other = np.empty((keys.shape[1], 1), dtype=np.uint64)
    hashes = np.empty(1, dtype=np.uint64)
    own = np.empty(len(keys), dtype=np.int64)  # places of the new keys
    new = 0
    for i in range(len(keys)):
        copy(keys[i], key[:, 0])
        found, counts, used, fresh = _take(seen, taken, found, counts, used, key, hashes)
        if fresh:
            _write_clue(key, places, clues[new])
            copy(rows[i], clue_rows[new])
            own[new] = i
            new += 1
    # a mirror that was logged too has already given its own pair of rows: two rare pairs, not one pair twice
    for n in range(new):
        copy(keys[own[n]], key[:, 0])
        _write_mirror(key, places, mirror, flips, other)
        found, counts, used, fresh = _take(seen, taken, found, counts, used, other, hashes)
        if fresh:
            _write_clue(other, places, clues[new])
            clue_rows[new, 0] = rows[own[n], 1]
            clue_rows[new, 1] = rows[own[n], 0]
            new += 1
    return found, counts, used, new
