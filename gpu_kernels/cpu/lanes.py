"""Compiled loops of the CPU twin of clues: one row t against 256 lanes of rows u, term by term, into keys."""

from __future__ import annotations

import numpy as np
from numba import njit

from tuplewise.gpu_kernels.cpu.tally import add_row

LANES = 256  # rows u that a row t is compared with at once
STEP = 32  # lanes are passed over in whole steps: what vector loops leave over would be done one by one
UNROLLED = 4  # terms that one pass over the lanes adds
FEW = 8  # up to so many rows u are compared one by one: setting up a row costs as much as some ten pairs
NEVER = np.int32(-(1 << 31))  # a threshold that no code is below or equal to


@njit(cache=True, nogil=True)
def _threshold(table, t, terms, k):
    code = table[t, terms[k, 0]]
    if terms[k, 4] and code == -1:
        return NEVER
    return np.int32(-1) if terms[k, 5] else np.int32(code + terms[k, 2])


@njit(cache=True, nogil=True)
def _add_below(keys, word, first, last, lanes, a, b, c, d, ta, tb, tc, td, wa, wb, wc, wd):
    zero = np.uint32(0)
    for j in range(np.uint64(first), np.uint64(last)):  # unsigned: no index counts from the end
        keys[word, j] += (
            (wa if lanes[a, j] < ta else zero)
            + (wb if lanes[b, j] < tb else zero)
            + (wc if lanes[c, j] < tc else zero)
            + (wd if lanes[d, j] < td else zero)
        )


@njit(cache=True, nogil=True)
def _add_equal(keys, word, first, last, lanes, a, b, c, d, ta, tb, tc, td, wa, wb, wc, wd):
    zero = np.uint32(0)
    for j in range(np.uint64(first), np.uint64(last)):  # unsigned: no index counts from the end
        keys[word, j] += (
            (wa if lanes[a, j] == ta else zero)
            + (wb if lanes[b, j] == tb else zero)
            + (wc if lanes[c, j] == tc else zero)
            + (wd if lanes[d, j] == td else zero)
        )


@njit(cache=True, nogil=True)
def _mark_constant(table, rows, first, last, constant):
    """constant[c] = whether rows[first:last] agree on column c of the table."""
    for c in range(len(constant)):
        code = table[rows[first], c]
        at = first + 1
        while at < last and table[rows[at], c] == code:
            at += 1
        constant[c] = at >= last


@njit(cache=True, nogil=True)
def _pick_active(terms, constant_left, constant_right, active):
    """Write the numbers of the terms that may vary, in whole passes of one word; returns how many, padding included.

    Terms whose columns are constant over all rows t and all rows u are left out. Padding is the last term, whose
    weight is 0.
    """
    used = 0
    word = -1
    for k in range(len(terms) - 1):
        if constant_left[terms[k, 0]] and constant_right[terms[k, 1]]:
            continue
        if terms[k, 6] != word:
            while used % UNROLLED:
                active[used] = len(terms) - 1
                used += 1
            word = terms[k, 6]
        active[used] = k
        used += 1
    while used % UNROLLED:
        active[used] = len(terms) - 1
        used += 1
    return used


@njit(cache=True, nogil=True)
def _fix(table, t, u, terms, below, constant_left, constant_right, fixed):
    """Add the terms that are constant over a cluster pair, judged by the rows t and u, to `fixed`, uint32 (words,)."""
    for k in range(len(terms) - 1):
        if constant_left[terms[k, 0]] and constant_right[terms[k, 1]]:
            threshold = _threshold(table, t, terms, k)
            code = table[u, terms[k, 1]]
            if (below and code < threshold) or (not below and code == threshold):
                fixed[terms[k, 6]] += np.uint32(terms[k, 3])


@njit(cache=True, nogil=True)
def _fill_keys(table, own, below, equal, unknown, t, lanes, keys, first, last, active_below, active_equal):
    """Keys of row t with the lanes `first` to `last`; `keys` holds what doesn't depend on t."""
    for x in range(len(unknown)):
        if table[t, unknown[x, 0]] == -1:
            word, weight = unknown[x, 1], np.uint32(unknown[x, 2])
            for j in range(np.uint64(first), np.uint64(last)):
                keys[word, j] += weight
    if own.shape[1] > 1:
        for w in range(keys.shape[0]):
            for j in range(np.uint64(first), np.uint64(last)):
                keys[w, j] += own[0, t, w]
    for x in range(0, len(active_below), UNROLLED):
        i, k, m, n = active_below[x], active_below[x + 1], active_below[x + 2], active_below[x + 3]
        _add_below(
            keys, below[i, 6], first, last, lanes, below[i, 1], below[k, 1], below[m, 1], below[n, 1],
            _threshold(table, t, below, i), _threshold(table, t, below, k), _threshold(table, t, below, m),
            _threshold(table, t, below, n), np.uint32(below[i, 3]), np.uint32(below[k, 3]), np.uint32(below[m, 3]),
            np.uint32(below[n, 3]),
        )  # fmt: skip
    for x in range(0, len(active_equal), UNROLLED):
        i, k, m, n = active_equal[x], active_equal[x + 1], active_equal[x + 2], active_equal[x + 3]
        _add_equal(
            keys, equal[i, 6], first, last, lanes, equal[i, 1], equal[k, 1], equal[m, 1], equal[n, 1],
            _threshold(table, t, equal, i), _threshold(table, t, equal, k), _threshold(table, t, equal, m),
            _threshold(table, t, equal, n), np.uint32(equal[i, 3]), np.uint32(equal[k, 3]), np.uint32(equal[m, 3]),
            np.uint32(equal[n, 3]),
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _write_key(table, own, below, equal, unknown, t, u, keys, j):
    """keys[:, j] = key of the pair (t, u), comparison by comparison."""
    for w in range(keys.shape[0]):
        keys[w, j] = own[0, t, w] + own[1, u, w] if own.shape[1] > 1 else np.uint32(0)
    for x in range(len(unknown)):
        if table[t, unknown[x, 0]] == -1:
            keys[unknown[x, 1], j] += np.uint32(unknown[x, 2])
    for k in range(len(below)):
        if table[u, below[k, 1]] < _threshold(table, t, below, k):
            keys[below[k, 6], j] += np.uint32(below[k, 3])
    for k in range(len(equal)):
        if table[u, equal[k, 1]] == _threshold(table, t, equal, k):
            keys[equal[k, 6], j] += np.uint32(equal[k, 3])


@njit(cache=True, nogil=True)
def _gather(table, right, first, last, lanes):
    for j in range(last - first):
        row = right[first + j]
        for c in range(table.shape[1]):
            lanes[c, j] = table[row, c]


@njit(cache=True, nogil=True)
def _start_keys(own, right, first, keys, low, high, fixed):
    """What is fixed for the cluster pair, and what the lanes' rows put into keys as u."""
    for w in range(keys.shape[0]):
        for j in range(np.uint64(low & -STEP), np.uint64((high + STEP - 1) & -STEP)):
            keys[w, j] = fixed[w]
        if own.shape[1] > 1:
            for j in range(low, high):
                keys[w, j] += own[1, right[first + j], w]


@njit(cache=True, nogil=True)
def compare_direct(
    table, own, below, equal, unknown, left, left_offsets, right, right_offsets, reflexive, first_cluster,
    last_cluster, first_block, last_block, lanes, keys, seen, log, logged,
):  # fmt: skip
    """Log the keys of all pairs of some clusters that `seen`, uint8 (keys,), does not have; returns the log.

    Threads share `seen`. Two may log the same key; none is lost.
    """
    constant = np.zeros((2, table.shape[1]), dtype=np.bool_)
    active_below = np.zeros(UNROLLED * len(below), dtype=np.int64)
    active_equal = np.zeros(UNROLLED * len(equal), dtype=np.int64)
    used_below = used_equal = 0
    fixed = np.zeros(keys.shape[0], dtype=np.uint32)
    for c in range(first_cluster, last_cluster):
        begin, end = right_offsets[c], right_offsets[c + 1]
        if end - begin > FEW and left_offsets[c + 1] > left_offsets[c]:
            _mark_constant(table, left, left_offsets[c], left_offsets[c + 1], constant[0])
            if not reflexive:
                _mark_constant(table, right, begin, end, constant[1])
            constant_right = constant[0] if reflexive else constant[1]
            used_below = _pick_active(below, constant[0], constant_right, active_below)
            used_equal = _pick_active(equal, constant[0], constant_right, active_equal)
            fixed[:] = 0
            _fix(table, left[left_offsets[c]], right[begin], below, True, constant[0], constant_right, fixed)
            _fix(table, left[left_offsets[c]], right[begin], equal, False, constant[0], constant_right, fixed)
        blocks = -(-(end - begin) // LANES)
        for block in range(first_block, blocks if last_block < 0 else last_block):
            u_first = begin + block * LANES
            u_last = min(u_first + LANES, end)
            count = u_last - u_first
            few = count <= FEW
            if not few:
                _gather(table, right, u_first, u_last, lanes)
            for i in range(left_offsets[c], u_last - 1 if reflexive else left_offsets[c + 1]):
                t = left[i]
                low = max(0, i + 1 - u_first) if reflexive else 0
                if few:
                    for j in range(low, count):
                        _write_key(table, own, below, equal, unknown, t, right[u_first + j], keys, j)
                else:
                    _start_keys(own, right, u_first, keys, low, count, fixed)
                    _fill_keys(
                        table, own, below, equal, unknown, t, lanes, keys, low & -STEP, (count + STEP - 1) & -STEP,
                        active_below[:used_below], active_equal[:used_equal],
                    )  # fmt: skip
                met = np.uint64(0)
                for j in range(np.uint64(low), np.uint64(count)):
                    met += np.uint64(seen[keys[0, j]])
                if met == np.uint64(count - low):
                    continue
                if logged + LANES > len(log):
                    longer = np.zeros(4 * len(log), dtype=np.uint32)
                    longer[:logged] = log[:logged]
                    log = longer
                for j in range(low, count):
                    k = keys[0, j]
                    if seen[k] == 0 and (reflexive or right[u_first + j] != t):
                        seen[k] = 1
                        log[logged] = k
                        logged += 1
    return log, logged


@njit(cache=True, nogil=True)
def compare_hashed(
    table, own, below, equal, unknown, left, left_offsets, right, right_offsets, reflexive, first_cluster,
    last_cluster, first_block, last_block, lanes, keys, found, counts, used, recent, wide, hashes,
):  # fmt: skip
    """The same into a hash table; keys met a moment ago are not looked up again."""
    mask = np.uint64(len(recent) - 1)
    constant = np.zeros((2, table.shape[1]), dtype=np.bool_)
    active_below = np.zeros(UNROLLED * len(below), dtype=np.int64)
    active_equal = np.zeros(UNROLLED * len(equal), dtype=np.int64)
    used_below = used_equal = 0
    fixed = np.zeros(keys.shape[0], dtype=np.uint32)
    for c in range(first_cluster, last_cluster):
        begin, end = right_offsets[c], right_offsets[c + 1]
        if end - begin > FEW and left_offsets[c + 1] > left_offsets[c]:
            _mark_constant(table, left, left_offsets[c], left_offsets[c + 1], constant[0])
            if not reflexive:
                _mark_constant(table, right, begin, end, constant[1])
            constant_right = constant[0] if reflexive else constant[1]
            used_below = _pick_active(below, constant[0], constant_right, active_below)
            used_equal = _pick_active(equal, constant[0], constant_right, active_equal)
            fixed[:] = 0
            _fix(table, left[left_offsets[c]], right[begin], below, True, constant[0], constant_right, fixed)
            _fix(table, left[left_offsets[c]], right[begin], equal, False, constant[0], constant_right, fixed)
        blocks = -(-(end - begin) // LANES)
        for block in range(first_block, blocks if last_block < 0 else last_block):
            u_first = begin + block * LANES
            u_last = min(u_first + LANES, end)
            count = u_last - u_first
            few = count <= FEW
            if not few:
                _gather(table, right, u_first, u_last, lanes)
            for i in range(left_offsets[c], u_last - 1 if reflexive else left_offsets[c + 1]):
                t = left[i]
                low = max(0, i + 1 - u_first) if reflexive else 0
                if few:
                    for j in range(low, count):
                        _write_key(table, own, below, equal, unknown, t, right[u_first + j], keys, j)
                else:
                    _start_keys(own, right, u_first, keys, low, count, fixed)
                    _fill_keys(
                        table, own, below, equal, unknown, t, lanes, keys, low & -STEP, (count + STEP - 1) & -STEP,
                        active_below[:used_below], active_equal[:used_equal],
                    )  # fmt: skip
                some = 0
                for j in range(low, count):
                    h = np.uint64(0)
                    for w in range(keys.shape[0]):
                        h = (h ^ np.uint64(keys[w, j])) * np.uint64(0x9E3779B97F4A7C15)
                    slot = (h >> np.uint64(40)) & mask
                    same = True
                    for w in range(wide.shape[0]):
                        x = np.uint64(keys[2 * w, j]) << np.uint64(32)
                        if 2 * w + 1 < keys.shape[0]:
                            x |= np.uint64(keys[2 * w + 1, j])
                        wide[w, some] = x
                        same &= recent[slot, w] == x
                    if same or (not reflexive and right[u_first + j] == t):
                        continue
                    for w in range(wide.shape[0]):
                        recent[slot, w] = wide[w, some]
                    some += 1
                if some:
                    found, counts, used = add_row(found, counts, used, wide, hashes, 0, some, 1)
    return found, counts, used


@njit(cache=True, nogil=True)
def add_keys(keys, counts, used, wide, new):
    """Add the keys `wide`, uint64 (words, keys), one by one; marks those that were not there in `new`."""
    lane = np.empty((wide.shape[0], 1), dtype=np.uint64)
    hashes = np.empty(1, dtype=np.uint64)
    for i in range(wide.shape[1]):
        lane[:, 0] = wide[:, i]
        before = used
        keys, counts, used = add_row(keys, counts, used, lane, hashes, 0, 1, 1)
        new[i] = used > before
    return keys, counts, used


@njit(cache=True, nogil=True)
def keys_of_pairs(table, own, below, equal, unknown, t_rows, u_rows, out):
    """out[:, i] = key of the pair (t_rows[i], u_rows[i]); uint32 (words, pairs)."""
    for i in range(len(t_rows)):
        _write_key(table, own, below, equal, unknown, t_rows[i], u_rows[i], out, i)
