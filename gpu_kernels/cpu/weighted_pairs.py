"""Compiled loop of the CPU twin of clues: counts of keys of all pairs of rows that stand for several rows each."""

# mypy: disable-error-code="no-untyped-def, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.cpu.arrays import copy
from tuplewise.gpu_kernels.cpu.cluster_pairs import (
    EQUALS,
    ORDERS,
    ROWS,
    STEP,
    Rows,  # noqa: F401
    _fill_keys,
    _fix,
    _gather_rows,
    _mark_constant,
    _pick_active,
    _start_keys,
)
from tuplewise.gpu_kernels.cpu.hashing import mix_word
from tuplewise.gpu_kernels.cpu.seen_keys import LANES, LANES_TYPE, Lanes  # noqa: F401
from tuplewise.gpu_kernels.cpu.tally import grown
from tuplewise.gpu_kernels.word_hash import SPREAD


@kernel(f"{ROWS}, int64[::1], int64, int64, {LANES_TYPE}, uint64[:, ::1], int64[::1], int64")
def count_blocks(data, weights, first_block, last_block, lanes, found, counts, used):
    """Add the product of the weights of each pair of rows (t, u), t < u and u in some blocks of lanes, to the count of
    its key.

    `found`, `counts`: uint64 (slots, words), int64 (slots,), a hash table with linear probing, two words of a key in
    one; `used` of its slots are taken. Returns the table.
    """
    table, own, order, equal, unknown = data
    codes, keys, lane_rows = lanes.codes, lanes.keys, lanes.rows
    rows = np.arange(len(weights)).astype(np.int32)
    constant = np.zeros(table.shape[1], dtype=np.bool_)
    active_order = np.zeros(ORDERS * len(order), dtype=np.int64)
    active_equal = np.zeros(EQUALS * len(equal), dtype=np.int64)
    fixed = np.zeros(keys.shape[0], dtype=np.uint32)
    words = found.shape[1]
    wide = np.zeros(words, dtype=np.uint64)
    _mark_constant(table, rows, 0, len(rows), constant)
    used_order = _pick_active(order, ORDERS, constant, constant, True, active_order)
    used_equal = _pick_active(equal, EQUALS, constant, constant, True, active_equal)
    _fix(table, rows[0], rows[0], order, True, constant, constant, fixed)
    _fix(table, rows[0], rows[0], equal, False, constant, constant, fixed)
    for block in range(first_block, last_block):
        u_first = block * LANES
        count = min(LANES, len(rows) - u_first)
        copy(rows[u_first : u_first + count], lane_rows)
        _gather_rows(table, lane_rows, count, codes)
        for t in range(u_first + count - 1):
            low = max(0, t + 1 - u_first)
            _start_keys(own, lane_rows, keys, low, count, fixed)
            _fill_keys(
                table, own, order, equal, unknown, t, codes, keys, low & -STEP, (count + STEP - 1) & -STEP,
                active_order[:used_order], active_equal[:used_equal],
            )  # fmt: skip
            if 2 * (used + LANES) > len(counts):
                found, counts = grown(found, counts)
            mask = np.uint64(len(counts) - 1)
            weight = weights[t]
            for j in range(low, count):  # words one by one: views of rows of the table would count references
                mixed = np.uint64(0)
                for w in range(words):
                    wide[w] = np.uint64(keys[2 * w, j]) << np.uint64(32)
                    if 2 * w + 1 < keys.shape[0]:
                        wide[w] |= np.uint64(keys[2 * w + 1, j])
                    mixed = mix_word(mixed, wide[w])
                slot = ((mixed * SPREAD) >> np.uint64(24)) & mask  # as in `tally`
                while counts[slot]:
                    differ = np.uint64(0)
                    for w in range(words):
                        differ |= found[slot, w] ^ wide[w]
                    if differ == 0:
                        break
                    slot = (slot + np.uint64(1)) & mask
                if counts[slot] == 0:
                    for w in range(words):
                        found[slot, w] = wide[w]
                    used += 1
                counts[slot] += weight * weights[u_first + j]
    return found, counts, used
