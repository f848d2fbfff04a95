"""Compiled loops of the CPU twin of clues: rows against 256 lanes of other rows, term by term, into keys.

Two ways to fill the lanes. Large clusters: one row t against 256 rows u. Small clusters: many of them lie in the lanes
one after the other, and each row is compared with the one `distance` places later, so that setting up a pass is paid
for many clusters at once; lanes that reach into the next cluster don't count.
"""

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy
from tuplewise.gpu_kernels.cpu.seen_keys import LANES, all_seen, keep_new

STEP = 32  # lanes are passed over in whole steps: what vector loops leave over would be done one by one
ORDERS, EQUALS = 2, 4  # terms that one pass over the lanes adds
SMALL_ROWS = LANES  # clusters up to this size share lanes
EVERY_BIT = np.uint32((1 << 32) - 1)
NEVER = np.int32(-(1 << 31))  # a threshold that no code is order or equal to


@helper
def _threshold(table, t, terms, k):
    code = table[t, terms[k, 0]]
    if terms[k, 3] and code == -1:
        return NEVER
    return np.int32(-1) if terms[k, 4] else code


@helper
def _add_order(keys, word, first, last, lanes, a, b, ta, tb, wa, wb):
    zero = np.uint32(0)
    for j in range(np.uint64(first), np.uint64(last)):  # unsigned: no index counts from the end
        x, y = lanes[a, j], lanes[b, j]
        keys[word, j] += (
            (wa if x < ta else zero) + (wa if x <= ta else zero) + (wb if y < tb else zero) + (wb if y <= tb else zero)
        )


@helper
def _add_equal(keys, word, first, last, lanes, a, b, c, d, ta, tb, tc, td, wa, wb, wc, wd):
    zero = np.uint32(0)
    for j in range(np.uint64(first), np.uint64(last)):
        keys[word, j] += (
            (wa if lanes[a, j] == ta else zero)
            + (wb if lanes[b, j] == tb else zero)
            + (wc if lanes[c, j] == tc else zero)
            + (wd if lanes[d, j] == td else zero)
        )


@helper
def _add_order_at(keys, word, last, distance, lanes, ta, a, wa, tb, b, wb):
    zero = np.uint32(0)
    far = np.uint64(distance)
    for j in range(np.uint64(0), np.uint64(last)):
        t, u, v, w = lanes[ta, j], lanes[a, j + far], lanes[tb, j], lanes[b, j + far]
        keys[word, j] += (
            (wa if u < t else zero) + (wa if u <= t else zero) + (wb if w < v else zero) + (wb if w <= v else zero)
        )


@helper
def _add_equal_at(keys, word, last, distance, lanes, ta, a, wa, tb, b, wb, tc, c, wc, td, d, wd):
    zero = np.uint32(0)
    far = np.uint64(distance)
    for j in range(np.uint64(0), np.uint64(last)):
        keys[word, j] += (
            (wa if lanes[a, j + far] == lanes[ta, j] else zero)
            + (wb if lanes[b, j + far] == lanes[tb, j] else zero)
            + (wc if lanes[c, j + far] == lanes[tc, j] else zero)
            + (wd if lanes[d, j + far] == lanes[td, j] else zero)
        )


@helper
def _mark_constant(table, rows, first, last, constant):
    """constant[c] = whether rows[first:last] agree on column c of the table."""
    for c in range(len(constant)):
        code = table[rows[first], c]
        at = first + 1
        while at < last and table[rows[at], c] == code:
            at += 1
        constant[c] = at >= last


@helper
def _pick_active(terms, a_pass, constant_left, constant_right, nulls, active):
    """Write the numbers of the terms that may vary, in whole passes of one word; returns how many, padding included.

    Terms whose columns are constant are left out, and without `nulls` those that look for one. Padding is the last
    term, whose weight is 0.
    """
    used = 0
    word = -1
    for k in range(len(terms) - 1):
        if (constant_left[terms[k, 0]] and constant_right[terms[k, 1]]) or (terms[k, 4] and not nulls):
            continue
        if terms[k, 5] != word:
            while used % a_pass:
                active[used] = len(terms) - 1
                used += 1
            word = terms[k, 5]
        active[used] = k
        used += 1
    while used % a_pass:
        active[used] = len(terms) - 1
        used += 1
    return used


@helper
def _fix(table, t, u, terms, by_order, constant_left, constant_right, fixed):
    """Add the terms that are constant, judged by the rows t and u, to `fixed`, uint32 (words,)."""
    for k in range(len(terms) - 1):
        if constant_left[terms[k, 0]] and constant_right[terms[k, 1]]:
            threshold = _threshold(table, t, terms, k)
            code = table[u, terms[k, 1]]
            if by_order and code < threshold:
                fixed[terms[k, 5]] += np.uint32(2 * terms[k, 2])
            elif code == threshold:
                fixed[terms[k, 5]] += np.uint32(terms[k, 2])


@helper
def _fill_keys(table, own, order, equal, unknown, t, lanes, keys, first, last, active_order, active_equal):
    """Keys of row t with the lanes `first` to `last`; `keys` holds what doesn't depend on t."""
    for x in range(len(unknown)):
        if table[t, unknown[x, 0]] == -1:
            word, weight = unknown[x, 1], np.uint32(unknown[x, 2])
            for j in range(np.uint64(first), np.uint64(last)):
                keys[word, j] += weight
    if own.shape[1] > 0:
        for w in range(keys.shape[0]):
            for j in range(np.uint64(first), np.uint64(last)):
                keys[w, j] += own[0, t, w]
    for x in range(0, len(active_order), ORDERS):
        i, k = active_order[x], active_order[x + 1]
        _add_order(
            keys, order[i, 5], first, last, lanes, order[i, 1], order[k, 1], _threshold(table, t, order, i),
            _threshold(table, t, order, k), np.uint32(order[i, 2]), np.uint32(order[k, 2]),
        )  # fmt: skip
    for x in range(0, len(active_equal), EQUALS):
        i, k, m, n = active_equal[x], active_equal[x + 1], active_equal[x + 2], active_equal[x + 3]
        _add_equal(
            keys, equal[i, 5], first, last, lanes, equal[i, 1], equal[k, 1], equal[m, 1], equal[n, 1],
            _threshold(table, t, equal, i), _threshold(table, t, equal, k), _threshold(table, t, equal, m),
            _threshold(table, t, equal, n), np.uint32(equal[i, 2]), np.uint32(equal[k, 2]), np.uint32(equal[m, 2]),
            np.uint32(equal[n, 2]),
        )  # fmt: skip


@helper
def _fill_keys_at(own, rows, at, order, equal, distance, lanes, keys, last, active_order, active_equal, fixed):
    """Keys of the lanes j with the lanes j + distance, j < last. No code that a nullable term compares is null."""
    padded = (last + STEP - 1) & -STEP
    for w in range(keys.shape[0]):
        for j in range(np.uint64(0), np.uint64(padded)):
            keys[w, j] = fixed[w]
        if own.shape[1] > 0:
            for j in range(last):
                keys[w, j] += own[0, rows[at[j]], w] + own[1, rows[at[j + distance]], w]
    for x in range(0, len(active_order), ORDERS):
        i, k = active_order[x], active_order[x + 1]
        _add_order_at(
            keys, order[i, 5], padded, distance, lanes, order[i, 0], order[i, 1], np.uint32(order[i, 2]), order[k, 0],
            order[k, 1], np.uint32(order[k, 2]),
        )  # fmt: skip
    for x in range(0, len(active_equal), EQUALS):
        i, k, m, n = active_equal[x], active_equal[x + 1], active_equal[x + 2], active_equal[x + 3]
        _add_equal_at(
            keys, equal[i, 5], padded, distance, lanes, equal[i, 0], equal[i, 1], np.uint32(equal[i, 2]),
            equal[k, 0], equal[k, 1], np.uint32(equal[k, 2]), equal[m, 0], equal[m, 1], np.uint32(equal[m, 2]),
            equal[n, 0], equal[n, 1], np.uint32(equal[n, 2]),
        )  # fmt: skip


@helper
def _start_keys(own, right, first, keys, low, high, fixed):
    """What is fixed for the cluster pair, and what the lanes' rows put into keys as u."""
    for w in range(keys.shape[0]):
        for j in range(np.uint64(low & -STEP), np.uint64((high + STEP - 1) & -STEP)):
            keys[w, j] = fixed[w]
        if own.shape[1] > 0:
            for j in range(low, high):
                keys[w, j] += own[1, right[first + j], w]


@kernel(
    "int32[:, ::1], uint32[:, :, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int32[::1], int64[::1], "
    "int32[::1], int64[::1], boolean, int64, int64, int64, int32[:, ::1], uint32[:, ::1], uint32[::1], "
    "int32[::1], boolean, uint8[::1], uint32[:, ::1], int64, uint32[::1], uint64[:, ::1], int32[:, ::1], "
    "int64"
)
def compare(
    table, own, order, equal, unknown, left, left_offsets, right, right_offsets, reflexive, cluster, first_block,
    last_block, lanes, keys, valid, lane_rows, direct, seen, met, used, hashes, log_keys, log_rows, logged,
):  # fmt: skip
    """Log the new keys of all pairs of some blocks of a cluster pair; returns the hash table and the log.

    With `direct`, keys are looked up in `seen`, which threads share: two may log the same key, none is lost. Else each
    thread has a hash table of its own.
    """
    constant = np.zeros((2, table.shape[1]), dtype=np.bool_)
    active_order = np.zeros(ORDERS * len(order), dtype=np.int64)
    active_equal = np.zeros(EQUALS * len(equal), dtype=np.int64)
    fixed = np.zeros(keys.shape[0], dtype=np.uint32)
    begin, end = right_offsets[cluster], right_offsets[cluster + 1]
    t_first, t_end = left_offsets[cluster], left_offsets[cluster + 1]
    if t_first == t_end or begin == end:
        return met, used, log_keys, log_rows, logged
    _mark_constant(table, left, t_first, t_end, constant[0])
    if not reflexive:
        _mark_constant(table, right, begin, end, constant[1])
    constant_right = constant[0] if reflexive else constant[1]
    used_order = _pick_active(order, ORDERS, constant[0], constant_right, True, active_order)
    used_equal = _pick_active(equal, EQUALS, constant[0], constant_right, True, active_equal)
    _fix(table, left[t_first], right[begin], order, True, constant[0], constant_right, fixed)
    _fix(table, left[t_first], right[begin], equal, False, constant[0], constant_right, fixed)
    valid[:] = EVERY_BIT
    for block in range(first_block, last_block):
        u_first = begin + block * LANES
        u_last = min(u_first + LANES, end)
        count = u_last - u_first
        copy(right[u_first:u_last], lane_rows)
        _gather_rows(table, lane_rows, count, lanes)
        for i in range(t_first, u_last - 1 if reflexive else t_end):
            t = left[i]
            low = max(0, i + 1 - u_first) if reflexive else 0
            _start_keys(own, right, u_first, keys, low, count, fixed)
            _fill_keys(
                table, own, order, equal, unknown, t, lanes, keys, low & -STEP, (count + STEP - 1) & -STEP,
                active_order[:used_order], active_equal[:used_equal],
            )  # fmt: skip
            if not reflexive:
                for j in range(count):
                    valid[j] = EVERY_BIT if right[u_first + j] != t else np.uint32(0)
            if direct and all_seen(keys, valid, low, count, seen):
                continue
            met, used, log_keys, log_rows, logged = keep_new(
                direct, keys, valid, low, count, t, 0, lane_rows, seen, met, used, hashes,
                log_keys, log_rows, logged,
            )  # fmt: skip
    return met, used, log_keys, log_rows, logged


@helper
def _gather_rows(table, rows, count, lanes):
    """Rows into lanes. First one look at each row's ends: these wait for memory together, not one after the other."""
    touched = np.int32(0)
    for j in range(count):
        touched |= table[rows[j], 0] | table[rows[j], table.shape[1] - 1]
    lanes[0, 0] = touched  # so that the looks are not left out
    for j in range(count):
        for c in range(table.shape[1]):
            lanes[c, j] = table[rows[j], c]


@helper
def _mark_varying(lanes, ends, count, valid, varies):
    """varies[c] = whether the rows of any cluster differ on column c; lane j's cluster ends before lane ends[j].

    Writes `valid`: where a lane and the next are of one cluster.
    """
    for j in range(np.uint64(0), np.uint64(count)):
        valid[j] = EVERY_BIT if ends[j] > np.int32(j) + np.int32(1) else np.uint32(0)
    for c in range(len(varies)):
        differ = np.uint32(0)
        for j in range(np.uint64(0), np.uint64(count - 1)):
            differ |= np.uint32(lanes[c, j] ^ lanes[c, j + np.uint64(1)]) & valid[j]
        varies[c] = differ != 0


@helper
def _start_keys_at(own, rows, at, keys, low, high, fixed):
    """`_start_keys` for lanes whose rows are rows[at[j]]."""
    for w in range(keys.shape[0]):
        for j in range(np.uint64(low & -STEP), np.uint64((high + STEP - 1) & -STEP)):
            keys[w, j] = fixed[w]
        if own.shape[1] > 0:
            for j in range(low, high):
                keys[w, j] += own[1, rows[at[j]], w]


@kernel(
    "int32[:, ::1], uint32[:, :, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int32[::1], int64[::1], "
    "int64[::1], int64, int64, int32[:, ::1], uint32[:, ::1], uint32[::1], int32[::1], boolean, uint8[::1], "
    "uint32[:, ::1], int64, uint32[::1], uint64[:, ::1], int32[:, ::1], int64"
)
def compare_small(
    table, own, order, equal, unknown, rows, offsets, sequence, first, last, lanes, keys, valid,
    lane_rows, direct, seen, met, used, hashes, log_keys, log_rows, logged,
):  # fmt: skip
    """The same for the reflexive clusters sequence[first:last], each of at most LANES rows.

    They should be in order of size: as many passes are made as the largest in the lanes needs.
    """
    varies = np.zeros(table.shape[1], dtype=np.bool_)
    constant = np.zeros(table.shape[1], dtype=np.bool_)
    active_order = np.zeros(ORDERS * len(order), dtype=np.int64)
    active_equal = np.zeros(EQUALS * len(equal), dtype=np.int64)
    fixed = np.zeros(keys.shape[0], dtype=np.uint32)
    at = np.empty(LANES, dtype=np.int64)
    ends = np.empty(LANES, dtype=np.int32)
    x = first
    while x < last:
        count = 0
        widest = 0
        while x < last:
            begin, end = offsets[sequence[x]], offsets[sequence[x] + 1]
            if count + end - begin > LANES:
                break
            widest = max(widest, end - begin)
            for i in range(begin, end):
                at[count] = i
                lane_rows[count] = rows[i]
                ends[count] = np.int32(count + end - i)
                count += 1
            x += 1
        if widest < 2:
            continue
        _gather_rows(table, lane_rows, count, lanes)
        _mark_varying(lanes, ends, count, valid, varies)
        # A null is unknown to what it is compared with: where there is one, rows are taken one by one.
        nulls = False
        for k in range(len(unknown)):
            for j in range(count):
                nulls |= lanes[unknown[k, 0], j] == -1
        for k in range(len(equal) - 1):
            if equal[k, 4]:
                for j in range(count):
                    nulls |= lanes[equal[k, 1], j] == -1
        for c in range(len(varies)):
            constant[c] = not varies[c]
        for k in range(len(order) - 1):  # constant within clusters says nothing of two columns
            if order[k, 0] != order[k, 1]:
                constant[order[k, 0]] = False
        for k in range(len(equal) - 1):
            if equal[k, 0] != equal[k, 1]:
                constant[equal[k, 0]] = False
        if nulls:
            constant[:] = False
        used_order = _pick_active(order, ORDERS, constant, constant, nulls, active_order)
        used_equal = _pick_active(equal, EQUALS, constant, constant, nulls, active_equal)
        fixed[:] = 0
        if not nulls:
            _fix(table, rows[at[0]], rows[at[0]], order, True, constant, constant, fixed)
            _fix(table, rows[at[0]], rows[at[0]], equal, False, constant, constant, fixed)
            for distance in range(1, widest):
                high = count - distance
                far = np.int32(distance)
                _fill_keys_at(
                    own, rows, at, order, equal, distance, lanes, keys, high, active_order[:used_order],
                    active_equal[:used_equal], fixed,
                )  # fmt: skip
                for j in range(np.uint64(0), np.uint64(high)):
                    valid[j] = EVERY_BIT if ends[j] > np.int32(j) + far else np.uint32(0)
                if direct and all_seen(keys, valid, 0, high, seen):
                    continue
                met, used, log_keys, log_rows, logged = keep_new(
                    direct, keys, valid, 0, high, -1, distance, lane_rows, seen, met, used, hashes,
                    log_keys, log_rows, logged,
                )  # fmt: skip
            continue
        valid[:] = EVERY_BIT
        for i in range(count - 1):
            low, high = i + 1, ends[i]
            if low == high:
                continue
            _start_keys_at(own, rows, at, keys, low, high, fixed)
            _fill_keys(
                table, own, order, equal, unknown, rows[at[i]], lanes, keys, low & -STEP, (high + STEP - 1) & -STEP,
                active_order[:used_order], active_equal[:used_equal],
            )  # fmt: skip
            if direct and all_seen(keys, valid, low, high, seen):
                continue
            met, used, log_keys, log_rows, logged = keep_new(
                direct, keys, valid, low, high, rows[at[i]], 0, lane_rows, seen, met, used, hashes,
                log_keys, log_rows, logged,
            )  # fmt: skip
    return met, used, log_keys, log_rows, logged


@kernel(
    "int32[:, ::1], uint32[:, :, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], "
    "uint32[:, ::1]"
)
def keys_of_pairs(table, own, order, equal, unknown, t_rows, u_rows, out):
    """out[:, i] = key of the pair (t_rows[i], u_rows[i]), comparison by comparison; uint32 (words, pairs)."""
    for i in range(len(t_rows)):
        t, u = t_rows[i], u_rows[i]
        if own.shape[1] > 0:
            for w in range(out.shape[0]):
                out[w, i] = own[0, t, w] + own[1, u, w]
        for x in range(len(unknown)):
            if table[t, unknown[x, 0]] == -1:
                out[unknown[x, 1], i] += np.uint32(unknown[x, 2])
        for k in range(len(order)):
            code, threshold = table[u, order[k, 1]], _threshold(table, t, order, k)
            if code <= threshold:
                out[order[k, 5], i] += np.uint32(2 * order[k, 2] if code < threshold else order[k, 2])
        for k in range(len(equal)):
            if table[u, equal[k, 1]] == _threshold(table, t, equal, k):
                out[equal[k, 5], i] += np.uint32(equal[k, 2])
