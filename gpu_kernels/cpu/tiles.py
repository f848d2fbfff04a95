"""Compiled loops over pairs of row blocks: ranks inside a tile, thresholds, plane bytes, counting.

For a tile of up to 248 tuples u, each column's values get 8-bit ranks. A table over the column's codes tells how many
of the tile's values lie below a code, so a tuple t turns into thresholds by one look-up a column, and its outcomes with
all tuples of the tile into byte compares (see `planes`). Comparisons whose outcome is the same for all pairs of a block
of t and the tile go into the planes' base; planes that consist of such comparisons are not computed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tuplewise.gpu_kernels.cpu.plan import (
    KIND_EQUAL,
    KIND_EQUAL_NULL,
    KIND_ORDER,
    KIND_ROW_T,
)
from tuplewise.gpu_kernels.cpu.planes import (
    ABSENT,
    LANES,
    MOST_BELOW,
    NEVER,
    NULL_RANK,
    fill_plane,
)
from tuplewise.gpu_kernels.cpu.tally import add_row

BLOCK_ROWS = 512  # tuples t whose thresholds are looked up together
CHUNK_ROWS = 32  # tuples t whose plane bytes are in the cache together
HOT_TRIES = 3  # rows after which a block gives up guessing its two most frequent clues


@njit(cache=True, nogil=True)
def _rank_tile(codes, offsets, domain, column, first, last, below, ranks):
    """Ranks of rows `first` to `last` of a column inside this tile, and the table of values below each code."""
    table = below[offsets[column] : offsets[column + 1]]
    nulls = domain[column]  # the code of a null under the rule "unknown"; no value has it otherwise
    values = np.sort(codes[column, first:last])
    distinct = 0
    start = 0
    for i in range(len(values)):
        value = values[i]
        if value == nulls or (i > 0 and value == values[i - 1]):
            continue
        table[start : value + 1] = distinct
        start = value + 1
        distinct += 1
    table[start:] = distinct
    for j in range(last - first):
        code = codes[column, first + j]
        ranks[column, j] = NULL_RANK if code == nulls else np.int8(np.int64(table[code]) - 128)
    ranks[column, last - first :] = 0
    return distinct


@njit(cache=True, nogil=True)
def _equal_terms(row, nulls, first, last, table, distinct, threshold):
    """Thresholds of an equality; returns its constant outcome over the block, or -1."""
    some = False
    every = distinct == 1
    for i in range(last - first):
        code = row[first + i]
        low = table[code]
        here = low != table[code + 1]
        threshold[i] = np.int8(np.int64(low) - 128) if here else ABSENT
        some |= here
        every &= here
    return 0 if not some else (1 if every else -1)


@njit(cache=True, nogil=True)
def _order_terms(row, nulls, first, last, table, distinct, lower, upper):
    """Thresholds of an order comparison; returns its constant outcome over the block, or -1."""
    least_low, most_low, least_high, most_high = 255, 0, 255, 0
    for i in range(last - first):
        code = row[first + i]
        low = np.int64(table[code])
        high = np.int64(table[code + 1])
        lower[i] = np.int8(low - 128)
        upper[i] = np.int8(high - 128)
        least_low = min(least_low, low)
        most_low = max(most_low, low)
        least_high = min(least_high, high)
        most_high = max(most_high, high)
    if most_high == 0:
        return 0
    if least_low == distinct:
        return 2
    if most_low == 0 and least_high == distinct:
        return 1
    return -1


@njit(cache=True, nogil=True)
def _null_terms(row, nulls, first, last, table, equal, step, base, lower, upper, known):
    """Three terms of a comparison with nulls.

    The digit starts as "unknown"; the third term takes that away where both sides are known; the others add the
    outcome.
    """
    unknown = np.uint8(step * (2 if equal else 3))
    for i in range(last - first):
        code = row[first + i]
        base[i] = np.uint8(base[i] + unknown)
        if code == nulls:
            lower[i] = NEVER
            upper[i] = NEVER
            known[i] = NEVER
        else:
            lower[i] = np.int8(np.int64(table[code]) - 128)
            upper[i] = np.int8(np.int64(table[code + 1]) - 128)
            known[i] = NULL_RANK


@njit(cache=True, nogil=True)
def make_scratch(columns, planes, table_codes, row_outcomes):
    """Arrays that a thread keeps between tiles."""
    return (
        np.zeros(table_codes, dtype=np.uint8),  # below
        np.zeros((columns, LANES), dtype=np.int8),  # ranks
        np.zeros((row_outcomes, LANES), dtype=np.int8),  # outcomes within u
        np.zeros(columns, dtype=np.int64),  # distinct values in the tile
        np.zeros((planes, MOST_BELOW, LANES), dtype=np.int8),  # ranks by term
        np.zeros((planes, MOST_BELOW, BLOCK_ROWS), dtype=np.int8),  # thresholds by term
        np.zeros((planes, MOST_BELOW), dtype=np.uint8),  # weights by term
        np.zeros((planes, BLOCK_ROWS), dtype=np.uint8),  # base by plane and t
        np.zeros(planes, dtype=np.int64),  # terms
        np.zeros((planes, CHUNK_ROWS, LANES), dtype=np.uint8),  # plane bytes
        np.zeros((-(-planes // 2), LANES), dtype=np.uint16),  # indexes by pair of planes
        np.zeros((2, 2), dtype=np.uint16),  # the two clues guessed to be frequent
    )


@njit(cache=True, nogil=True)
def rank_tile(data, scratch, first, last):
    """Prepare the tile of tuples u, rows `first` to `last`."""
    codes, domain, offsets, used, row_outcomes = data[0], data[1], data[2], data[3], data[4]
    below, ranks, u_outcomes, distinct = scratch[0], scratch[1], scratch[2], scratch[3]
    for x in range(len(used)):
        c = used[x]
        distinct[c] = _rank_tile(codes, offsets, domain, c, first, last, below, ranks)
    for r in range(row_outcomes.shape[0]):
        for j in range(last - first):
            u_outcomes[r, j] = np.int8(row_outcomes[r, first + j])


@njit(cache=True, nogil=True)
def plan_block(data, scratch, first, last):
    """Terms of all planes for tuples t in rows `first` to `last` against the prepared tile."""
    codes, domain, offsets, _, row_outcomes, left, right, kind, plane, weight, row_of = data[:11]
    below, ranks, u_outcomes, distinct, t_ranks, t_thresholds, t_weights, base, terms = scratch[:9]
    rows = last - first
    terms[:] = 0
    base[:, :rows] = 0
    for g in range(len(left)):
        p, step, what = plane[g], weight[g], kind[g]
        k = terms[p]
        if what >= KIND_ROW_T:
            outcome = row_of[g]
            if what == KIND_ROW_T:
                for i in range(rows):
                    base[p, i] = np.uint8(base[p, i] + step * row_outcomes[outcome, first + i])
            else:
                for i in range(rows):
                    base[p, i] = np.uint8(base[p, i] + 3 * step)
                for d in range(3):
                    t_ranks[p, k + d, :] = u_outcomes[outcome]
                    t_thresholds[p, k + d, :rows] = d + 1
                    t_weights[p, k + d] = np.uint8(256 - step)
                terms[p] = k + 3
            continue
        u_column = right[g]
        row = codes[left[g]]
        nulls = domain[left[g]]
        table = below[offsets[u_column] : offsets[u_column + 1]]
        if what in (KIND_EQUAL, KIND_ORDER):
            if what == KIND_EQUAL:
                constant = _equal_terms(row, nulls, first, last, table, distinct[u_column], t_thresholds[p, k])
                count = 1
            else:
                constant = _order_terms(
                    row, nulls, first, last, table, distinct[u_column], t_thresholds[p, k], t_thresholds[p, k + 1]
                )
                count = 2
            if constant >= 0:
                for i in range(rows):
                    base[p, i] = np.uint8(base[p, i] + constant * step)
                continue
            for d in range(count):
                t_ranks[p, k + d, :] = ranks[u_column]
                t_weights[p, k + d] = np.uint8(step)
            terms[p] = k + count
            continue
        equal = what == KIND_EQUAL_NULL
        _null_terms(
            row, nulls, first, last, table, equal, step, base[p],
            t_thresholds[p, k], t_thresholds[p, k + 1], t_thresholds[p, k + 2],
        )
        for d in range(3):
            t_ranks[p, k + d, :] = ranks[u_column]
        if equal:  # [u <= t] - [u < t]
            t_weights[p, k] = np.uint8(256 - step)
            t_weights[p, k + 1] = np.uint8(step)
            t_weights[p, k + 2] = np.uint8(512 - 2 * step)
        else:
            t_weights[p, k] = np.uint8(step)
            t_weights[p, k + 1] = np.uint8(step)
            t_weights[p, k + 2] = np.uint8(768 - 3 * step)
        terms[p] = k + 3
    for p in range(len(terms)):
        if terms[p] % 2 == 1:
            t_weights[p, terms[p]] = 0


@njit(cache=True, nogil=True)
def fill_chunk(data, scratch, first, last):
    """Plane bytes of tuples `first` to `last` of the block, of the planes that vary."""
    equal = data[11]
    t_ranks, t_thresholds, t_weights, base, terms, filled = scratch[4:10]
    for p in range(len(terms)):
        if terms[p] > 0:
            fill_plane(equal[p], terms[p], filled[p], first, last, t_ranks[p], t_thresholds[p], t_weights[p], base[p])


@njit(cache=True, nogil=True)
def _join_bytes(out, a, scale_a, b, scale_b):
    """16-bit index of two planes; a scale of 0 leaves a plane out."""
    for j in range(LANES):
        out[j] = np.uint16(np.uint16(np.uint16(a[j]) * scale_a) + np.uint16(np.uint16(b[j]) * scale_b))


@njit(cache=True, nogil=True)
def _count_equal(first, second, lanes, a, b):
    found = np.uint16(0)
    for j in range(LANES):
        found = np.uint16(found + np.uint16((first[j] == a) & (second[j] == b)))
    total = np.int64(found)
    for j in range(lanes, LANES):
        total -= np.int64((first[j] == a) & (second[j] == b))
    return total


@njit(cache=True, nogil=True)
def _count_hot(first, second, step, wide, tail, lanes, hot):
    """Count a row whose clues are nearly all one of two; returns whether it was such a row. Guesses the next two.

    `hot`: uint16 (2, 2), the parts of the two clues in `first` and in `second`.
    """
    found_a = _count_equal(first, second, lanes, hot[0, 0], hot[0, 1])
    same = hot[0, 0] == hot[1, 0] and hot[0, 1] == hot[1, 1]
    found_b = np.int64(0) if same else _count_equal(first, second, lanes, hot[1, 0], hot[1, 1])
    if 8 * (found_a + found_b) >= 7 * lanes:
        place_a = step * np.uint32(hot[0, 0]) + wide * np.uint32(hot[0, 1])
        place_b = step * np.uint32(hot[1, 0]) + wide * np.uint32(hot[1, 1])
        tail[place_a] += np.uint32(found_a)
        tail[place_b] += np.uint32(found_b)
        if found_a + found_b < lanes:
            for j in range(lanes):
                place = step * np.uint32(first[j]) + wide * np.uint32(second[j])
                if place != place_a and place != place_b:
                    tail[place] += np.uint32(1)
        return True
    hot[:, 0] = first[0]
    hot[:, 1] = second[0]
    for j in range(lanes):
        if first[j] != first[0] or second[j] != second[0]:
            hot[1, 0] = first[j]
            hot[1, 1] = second[j]
            break
    return False


@njit(cache=True, nogil=True)
def count_direct(data, scratch, counts, t_first, t_last, u_first, u_last):
    """Count all pairs t < u of a block and the prepared tile into `counts`, uint32 (combinations,).

    Planes 2q and 2q + 1 make one 16-bit index. Where the two clues guessed from an earlier row cover a row, it is
    counted by vector compares (increments of one counter wait for each other).
    """
    multiplier, size = data[12], data[13]
    base, terms, filled, index, hot = scratch[7], scratch[8], scratch[9], scratch[10], scratch[11]
    planes = len(terms)
    active = np.empty(planes, dtype=np.int64)
    plan_block(data, scratch, t_first, t_last)
    used = 0
    for p in range(0, planes, 2):
        if terms[p] > 0 or (p + 1 < planes and terms[p + 1] > 0):
            active[used] = p
            used += 1
    lanes = u_last - u_first
    misses = 0
    for c_first in range(0, t_last - t_first, CHUNK_ROWS):
        c_last = min(c_first + CHUNK_ROWS, t_last - t_first)
        fill_chunk(data, scratch, c_first, c_last)
        for i in range(c_first, c_last):
            j_first = max(0, t_first + i + 1 - u_first)
            if j_first >= lanes:
                continue
            start = np.int64(0)
            for p in range(planes):
                if terms[p] == 0:
                    start += multiplier[p] * np.int64(base[p, i])
            if used == 0:
                counts[start] += np.uint32(lanes - j_first)
                continue
            tail = counts[start:]
            at = i - c_first
            for x in range(used):
                p = active[x]
                other = min(p + 1, planes - 1)
                scale_a = np.uint16(1 if terms[p] > 0 else 0)
                scale_b = np.uint16(size[p] if other > p and terms[other] > 0 else 0)
                _join_bytes(index[x], filled[p, at], scale_a, filled[other, at], scale_b)
            first = index[0]
            second = index[min(1, used - 1)]
            step = np.uint32(multiplier[active[0]])
            wide = np.uint32(multiplier[active[1]]) if used > 1 else np.uint32(0)
            if used <= 2 and j_first == 0 and misses < HOT_TRIES:
                if _count_hot(first, second, step, wide, tail, lanes, hot):
                    continue
                misses += 1
            if used == 1 and step == 1:
                for j in range(j_first, lanes):
                    tail[first[j]] += np.uint32(1)
            elif used <= 2:
                for j in range(j_first, lanes):
                    tail[step * np.uint32(first[j]) + wide * np.uint32(second[j])] += np.uint32(1)
            else:
                for j in range(j_first, lanes):
                    place = np.uint32(0)
                    for x in range(used):
                        place += np.uint32(multiplier[active[x]]) * np.uint32(index[x, j])
                    tail[place] += np.uint32(1)


@njit(cache=True, nogil=True)
def count_hashed(data, scratch, keys, counts, used, row_keys, hashes, t_first, t_last, u_first, u_last):
    """Count all pairs t < u of a block and the prepared tile into a hash table of their plane bytes."""
    base, terms, filled = scratch[7], scratch[8], scratch[9]
    planes = len(terms)
    plan_block(data, scratch, t_first, t_last)
    lanes = u_last - u_first
    varying = terms.any()
    for c_first in range(0, t_last - t_first, CHUNK_ROWS):
        c_last = min(c_first + CHUNK_ROWS, t_last - t_first)
        fill_chunk(data, scratch, c_first, c_last)
        for i in range(c_first, c_last):
            j_first = max(0, t_first + i + 1 - u_first)
            if j_first >= lanes:
                continue
            for w in range(row_keys.shape[0]):
                constant = np.uint64(0)
                for p in range(8 * w, min(8 * w + 8, planes)):
                    if terms[p] == 0:
                        constant |= np.uint64(base[p, i]) << np.uint64(8 * (p - 8 * w))
                row_keys[w, :] = constant
                for p in range(8 * w, min(8 * w + 8, planes)):
                    if terms[p] > 0:
                        shift = np.uint64(8 * (p - 8 * w))
                        for j in range(LANES):
                            row_keys[w, j] |= np.uint64(filled[p, i - c_first, j]) << shift
            if varying:
                keys, counts, used = add_row(keys, counts, used, row_keys, hashes, j_first, lanes, 1)
            else:
                keys, counts, used = add_row(keys, counts, used, row_keys, hashes, 0, 1, lanes - j_first)
    return keys, counts, used
