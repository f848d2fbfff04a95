"""Compiled loops of the CPU twin of clues: keys of rows against 256 lanes of other rows, term by term.

There are two ways to fill the lanes. Large clusters: one row t against 256 rows u. Small clusters: many clusters share
the lanes, one after the other, and row j is compared with row j + `distance`. One pass then serves many clusters; lanes
whose partner is in the next cluster don't count.

With [x] as 1 where x holds, the key word w of a pair (t, u) is the sum over the terms k of word w of
    order     weight_k * ([u_k < threshold_k] + [u_k <= threshold_k])
    equality  weight_k * [u_k == threshold_k]
    unknown   weight_k * [t_k is null]
plus own[0, t, w] + own[1, u, w], the outcomes within one row. threshold_k is the code of t, or -1 (null) for a term
that looks for a null of u. Where t is null in a nullable term, it is NEVER, so the term is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, inlined, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy
from tuplewise.gpu_kernels.cpu.seen_keys import LANES, LANES_TYPE, LOG, Lanes, Log, first_unseen, keep_new  # noqa: F401

STEP = 32  # lanes of one step: loops take whole steps, since the rest of a vector loop would run lane by lane
ORDERS, EQUALS = 2, 4  # terms that one pass over the lanes adds
SMALL_ROWS = LANES  # largest clusters that share lanes
EVERY_BIT = np.uint32((1 << 32) - 1)
NEVER = np.int32(-(1 << 31))  # a threshold that no code is below or equal to

# Columns of a term, see `clues.Terms`.
T_COLUMN, U_COLUMN, WEIGHT, NULLABLE, OF_NULL, WORD = range(6)


class Rows(NamedTuple):
    """Rows of a table, and the terms that turn outcomes into keys.

    Attributes
    ----------
    table : int32 (rows, columns)
    own : uint32 (2, rows, words), contribution of the comparisons within a row to keys, as t and as u; no rows where
        there are no such comparisons
    order, equal, unknown : int64 (terms, 6), see `clues.Terms`
    """

    table: NDArray[np.int32]
    own: NDArray[np.uint32]
    order: NDArray[np.int64]
    equal: NDArray[np.int64]
    unknown: NDArray[np.int64]


ROWS = "Rows(int32[:, ::1], uint32[:, :, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1])"


class Term(NamedTuple):
    """Term for one row t. It has numbers only: passing arrays to a helper for each row would count references to
    them."""

    u_column: int
    threshold: np.int32
    weight: np.uint32


class TermAt(NamedTuple):
    """Term whose threshold is the code of a lane."""

    t_column: int
    u_column: int
    weight: np.uint32


@helper
def _threshold(table, t, terms, k):
    code = table[t, terms[k, T_COLUMN]]
    if terms[k, NULLABLE] and code == -1:
        return NEVER
    return np.int32(-1) if terms[k, OF_NULL] else code


@inlined
def _term(table, t, terms, k):
    return Term(terms[k, U_COLUMN], _threshold(table, t, terms, k), np.uint32(terms[k, WEIGHT]))


@inlined
def _term_at(terms, k):
    return TermAt(terms[k, T_COLUMN], terms[k, U_COLUMN], np.uint32(terms[k, WEIGHT]))


# An order term adds weight * ([u < threshold] + [u <= threshold]): 2 where u is less, 1 where equal.


@helper
def _add_order(keys, word, first, last, codes, a, b):
    zero = np.uint32(0)
    for j in range(np.uint64(first), np.uint64(last)):  # unsigned, so that no index counts from the end
        x, y = codes[a.u_column, j], codes[b.u_column, j]
        keys[word, j] += (
            (a.weight if x < a.threshold else zero)
            + (a.weight if x <= a.threshold else zero)
            + (b.weight if y < b.threshold else zero)
            + (b.weight if y <= b.threshold else zero)
        )


@helper
def _add_equal(keys, word, first, last, codes, a, b, c, d):
    zero = np.uint32(0)
    for j in range(np.uint64(first), np.uint64(last)):
        keys[word, j] += (
            (a.weight if codes[a.u_column, j] == a.threshold else zero)
            + (b.weight if codes[b.u_column, j] == b.threshold else zero)
            + (c.weight if codes[c.u_column, j] == c.threshold else zero)
            + (d.weight if codes[d.u_column, j] == d.threshold else zero)
        )


@helper
def _add_order_at(keys, word, last, distance, codes, a, b):
    zero = np.uint32(0)
    far = np.uint64(distance)
    for j in range(np.uint64(0), np.uint64(last)):
        t, u = codes[a.t_column, j], codes[a.u_column, j + far]
        v, w = codes[b.t_column, j], codes[b.u_column, j + far]
        keys[word, j] += (
            (a.weight if u < t else zero)
            + (a.weight if u <= t else zero)
            + (b.weight if w < v else zero)
            + (b.weight if w <= v else zero)
        )


@helper
def _add_equal_at(keys, word, last, distance, codes, a, b, c, d):
    zero = np.uint32(0)
    far = np.uint64(distance)
    for j in range(np.uint64(0), np.uint64(last)):
        keys[word, j] += (
            (a.weight if codes[a.u_column, j + far] == codes[a.t_column, j] else zero)
            + (b.weight if codes[b.u_column, j + far] == codes[b.t_column, j] else zero)
            + (c.weight if codes[c.u_column, j + far] == codes[c.t_column, j] else zero)
            + (d.weight if codes[d.u_column, j + far] == codes[d.t_column, j] else zero)
        )


@helper
def _mark_constant(table, rows, first, last, constant):
    """Set constant[c] where rows[first:last] agree on column c of the table."""
    for c in range(len(constant)):
        code = table[rows[first], c]
        at = first + 1
        while at < last and table[rows[at], c] == code:
            at += 1
        constant[c] = at >= last


@helper
def _pick_active(terms, a_pass, constant_left, constant_right, nulls, active):
    """Write the numbers of the terms that may vary, padded to whole passes of one word; returns their number with
    padding.

    Terms whose columns are constant are left out, and without `nulls` also terms that look for a null. Padding is the
    last term, whose weight is 0.
    """
    used = 0
    word = -1
    for k in range(len(terms) - 1):
        constant = constant_left[terms[k, T_COLUMN]] and constant_right[terms[k, U_COLUMN]]
        if constant or (terms[k, OF_NULL] and not nulls):
            continue
        if terms[k, WORD] != word:
            while used % a_pass:
                active[used] = len(terms) - 1
                used += 1
            word = terms[k, WORD]
        active[used] = k
        used += 1
    while used % a_pass:
        active[used] = len(terms) - 1
        used += 1
    return used


@helper
def _fix(table, t, u, terms, by_order, constant_left, constant_right, fixed):
    """Add the constant terms, evaluated on the rows t and u, to `fixed`, uint32 (words,)."""
    for k in range(len(terms) - 1):
        if constant_left[terms[k, T_COLUMN]] and constant_right[terms[k, U_COLUMN]]:
            threshold = _threshold(table, t, terms, k)
            code = table[u, terms[k, U_COLUMN]]
            if by_order and code < threshold:
                fixed[terms[k, WORD]] += np.uint32(2 * terms[k, WEIGHT])
            elif code == threshold:
                fixed[terms[k, WORD]] += np.uint32(terms[k, WEIGHT])


@helper
def _fill_keys(table, own, order, equal, unknown, t, codes, keys, first, last, active_order, active_equal):
    """Complete the keys of row t with lanes `first` to `last`; `keys` already has the part that doesn't depend on t."""
    # Arrays are passed one by one: unpacking `Rows` for each row would cost as much as the lanes do.
    for x in range(len(unknown)):
        if table[t, unknown[x, T_COLUMN]] == -1:
            word, weight = unknown[x, WORD], np.uint32(unknown[x, WEIGHT])
            for j in range(np.uint64(first), np.uint64(last)):
                keys[word, j] += weight
    if own.shape[1] > 0:
        for w in range(keys.shape[0]):
            for j in range(np.uint64(first), np.uint64(last)):
                keys[w, j] += own[0, t, w]
    for x in range(0, len(active_order), ORDERS):
        i, k = active_order[x], active_order[x + 1]
        _add_order(
            keys, order[i, WORD], first, last, codes, _term(table, t, order, i), _term(table, t, order, k)
        )
    for x in range(0, len(active_equal), EQUALS):
        i, k, m, n = active_equal[x], active_equal[x + 1], active_equal[x + 2], active_equal[x + 3]
        _add_equal(
            keys, equal[i, WORD], first, last, codes, _term(table, t, equal, i), _term(table, t, equal, k),
            _term(table, t, equal, m), _term(table, t, equal, n),
        )  # fmt: skip


@helper
def _fill_keys_at(own, lane_rows, order, equal, distance, codes, keys, last, active_order, active_equal, fixed):
    """Write the keys of lanes j and j + distance, j < last. Assumes that nullable terms meet no null."""
    padded = (last + STEP - 1) & -STEP
    for w in range(keys.shape[0]):
        for j in range(np.uint64(0), np.uint64(padded)):
            keys[w, j] = fixed[w]
        if own.shape[1] > 0:
            for j in range(last):
                keys[w, j] += own[0, lane_rows[j], w] + own[1, lane_rows[j + distance], w]
    for x in range(0, len(active_order), ORDERS):
        i, k = active_order[x], active_order[x + 1]
        _add_order_at(keys, order[i, WORD], padded, distance, codes, _term_at(order, i), _term_at(order, k))
    for x in range(0, len(active_equal), EQUALS):
        i, k, m, n = active_equal[x], active_equal[x + 1], active_equal[x + 2], active_equal[x + 3]
        _add_equal_at(
            keys, equal[i, WORD], padded, distance, codes, _term_at(equal, i), _term_at(equal, k), _term_at(equal, m),
            _term_at(equal, n),
        )  # fmt: skip


@helper
def _start_keys(own, lane_rows, keys, low, high, fixed):
    """Start keys with the constant terms and the lanes' own contribution as u."""
    for w in range(keys.shape[0]):
        for j in range(np.uint64(low & -STEP), np.uint64((high + STEP - 1) & -STEP)):
            keys[w, j] = fixed[w]
        if own.shape[1] > 0:
            for j in range(low, high):
                keys[w, j] += own[1, lane_rows[j], w]


@kernel(
    f"{ROWS}, int32[::1], int64[::1], int32[::1], int64[::1], boolean, int64, int64, int64, {LANES_TYPE}, "
    f"uint8[::1], {LOG}"
)
def compare(
    data, left, left_offsets, right, right_offsets, reflexive, cluster, first_block, last_block, lanes, seen, log
):
    """Log the new keys of all pairs of some blocks of a cluster pair; returns the log.

    Threads share `seen`, uint8 (keys,): two threads may log the same key, but no key is lost. Where it is empty, each
    thread has a hash table of its own.
    """
    table, own, order, equal, unknown = data
    codes, keys, valid, lane_rows, hashes = lanes.codes, lanes.keys, lanes.valid, lanes.rows, lanes.hashes
    direct = len(seen) > 0 and len(log.told) == 0
    constant = np.zeros((2, table.shape[1]), dtype=np.bool_)
    active_order = np.zeros(ORDERS * len(order), dtype=np.int64)
    active_equal = np.zeros(EQUALS * len(equal), dtype=np.int64)
    fixed = np.zeros(keys.shape[0], dtype=np.uint32)
    begin, end = right_offsets[cluster], right_offsets[cluster + 1]
    t_first, t_end = left_offsets[cluster], left_offsets[cluster + 1]
    if t_first == t_end or begin == end:
        return log
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
        _gather_rows(table, lane_rows, count, codes)
        for i in range(t_first, u_last - 1 if reflexive else t_end):
            t = left[i]
            low = max(0, i + 1 - u_first) if reflexive else 0
            _start_keys(own, lane_rows, keys, low, count, fixed)
            _fill_keys(
                table, own, order, equal, unknown, t, codes, keys, low & -STEP, (count + STEP - 1) & -STEP,
                active_order[:used_order], active_equal[:used_equal],
            )  # fmt: skip
            if not reflexive:
                for j in range(np.uint64(0), np.uint64(count)):
                    valid[j] = EVERY_BIT if lane_rows[j] != t else np.uint32(0)
            new = first_unseen(keys, valid, hashes, low, count, seen) if direct else low
            if new == count:
                continue
            log = keep_new(lanes, new, count, t, 0, seen, log)
    return log


@helper
def _gather_rows(table, rows, count, codes):
    """Copy rows into lanes. Touching the ends of all rows first lets their cache misses overlap."""
    touched = np.int32(0)
    last = np.uint64(table.shape[1] - 1)
    for j in range(np.uint64(0), np.uint64(count)):
        row = np.uint64(rows[j])
        touched |= table[row, 0] | table[row, last]
    codes[0, 0] = touched  # so that the compiler keeps the loop
    for c in range(np.uint64(0), np.uint64(table.shape[1])):
        for j in range(np.uint64(0), np.uint64(count)):
            codes[c, j] = table[np.uint64(rows[j]), c]


@helper
def _mark_varying(codes, ends, count, valid, varies):
    """Set varies[c] where the rows of any cluster differ on column c; lane j's cluster ends before lane ends[j].

    Writes `valid`: all bits where a lane and the next one are of one cluster, else 0.
    """
    for j in range(np.uint64(0), np.uint64(count)):
        valid[j] = EVERY_BIT if ends[j] > np.int32(j) + np.int32(1) else np.uint32(0)
    for c in range(len(varies)):
        differ = np.uint32(0)
        for j in range(np.uint64(0), np.uint64(count - 1)):
            differ |= np.uint32(codes[c, j] ^ codes[c, j + np.uint64(1)]) & valid[j]
        varies[c] = differ != 0


@kernel(f"{ROWS}, int32[::1], int64[::1], int64[::1], int64, int64, {LANES_TYPE}, uint8[::1], {LOG}")
def compare_small(data, rows, offsets, sequence, first, last, lanes, seen, log):
    """Log the new keys of the reflexive clusters sequence[first:last], each of at most LANES rows; returns the log.

    Clusters should be in order of size, since the largest one in the lanes decides the number of passes.
    """
    table, own, order, equal, unknown = data
    codes, keys, valid, lane_rows, hashes = lanes.codes, lanes.keys, lanes.valid, lanes.rows, lanes.hashes
    direct = len(seen) > 0 and len(log.told) == 0
    varies = np.zeros(table.shape[1], dtype=np.bool_)
    constant = np.zeros(table.shape[1], dtype=np.bool_)
    active_order = np.zeros(ORDERS * len(order), dtype=np.int64)
    active_equal = np.zeros(EQUALS * len(equal), dtype=np.int64)
    fixed = np.zeros(keys.shape[0], dtype=np.uint32)
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
                lane_rows[count] = rows[i]
                ends[count] = np.int32(count + end - i)
                count += 1
            x += 1
        if widest < 2:
            continue
        _gather_rows(table, lane_rows, count, codes)
        _mark_varying(codes, ends, count, valid, varies)
        # A null makes outcomes unknown: where the lanes have one, rows are taken one by one.
        nulls = False
        for k in range(len(unknown)):
            for j in range(count):
                nulls |= codes[unknown[k, T_COLUMN], j] == -1
        for k in range(len(equal) - 1):
            if equal[k, OF_NULL]:
                for j in range(count):
                    nulls |= codes[equal[k, U_COLUMN], j] == -1
        for c in range(len(varies)):
            constant[c] = not varies[c]
        for k in range(len(order) - 1):  # the outcome of two columns may vary between clusters
            if order[k, T_COLUMN] != order[k, U_COLUMN]:
                constant[order[k, T_COLUMN]] = False
        for k in range(len(equal) - 1):
            if equal[k, T_COLUMN] != equal[k, U_COLUMN]:
                constant[equal[k, T_COLUMN]] = False
        if nulls:
            constant[:] = False
        used_order = _pick_active(order, ORDERS, constant, constant, nulls, active_order)
        used_equal = _pick_active(equal, EQUALS, constant, constant, nulls, active_equal)
        fixed[:] = 0
        if not nulls:
            _fix(table, lane_rows[0], lane_rows[0], order, True, constant, constant, fixed)
            _fix(table, lane_rows[0], lane_rows[0], equal, False, constant, constant, fixed)
            for distance in range(1, widest):
                high = count - distance
                far = np.int32(distance)
                _fill_keys_at(
                    own, lane_rows, order, equal, distance, codes, keys, high, active_order[:used_order],
                    active_equal[:used_equal], fixed,
                )  # fmt: skip
                for j in range(np.uint64(0), np.uint64(high)):
                    valid[j] = EVERY_BIT if ends[j] > np.int32(j) + far else np.uint32(0)
                new = first_unseen(keys, valid, hashes, 0, high, seen) if direct else 0
                if new == high:
                    continue
                log = keep_new(lanes, new, high, -1, distance, seen, log)
            continue
        valid[:] = EVERY_BIT
        for i in range(count - 1):
            low, high = i + 1, ends[i]
            if low == high:
                continue
            _start_keys(own, lane_rows, keys, low, high, fixed)
            _fill_keys(
                table, own, order, equal, unknown, lane_rows[i], codes, keys, low & -STEP, (high + STEP - 1) & -STEP,
                active_order[:used_order], active_equal[:used_equal],
            )  # fmt: skip
            new = first_unseen(keys, valid, hashes, low, high, seen) if direct else low
            if new == high:
                continue
            log = keep_new(lanes, new, high, lane_rows[i], 0, seen, log)
    return log


@kernel(f"{ROWS}, int32[::1], int32[::1], uint32[:, ::1]")
def keys_of_pairs(data, t_rows, u_rows, out):
    """Write keys term by term: out[:, i] = key of the pair (t_rows[i], u_rows[i]); uint32 (words, pairs)."""
    table, own, order, equal, unknown = data
    for i in range(len(t_rows)):
        t, u = t_rows[i], u_rows[i]
        if own.shape[1] > 0:
            for w in range(out.shape[0]):
                out[w, i] = own[0, t, w] + own[1, u, w]
        for x in range(len(unknown)):
            if table[t, unknown[x, T_COLUMN]] == -1:
                out[unknown[x, WORD], i] += np.uint32(unknown[x, WEIGHT])
        for k in range(len(order)):
            code, threshold = table[u, order[k, U_COLUMN]], _threshold(table, t, order, k)
            if code <= threshold:
                out[order[k, WORD], i] += np.uint32(2 * order[k, WEIGHT] if code < threshold else order[k, WEIGHT])
        for k in range(len(equal)):
            if table[u, equal[k, U_COLUMN]] == _threshold(table, t, equal, k):
                out[equal[k, WORD], i] += np.uint32(equal[k, WEIGHT])
