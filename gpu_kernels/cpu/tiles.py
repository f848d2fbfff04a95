"""Compiled loops over pairs of row blocks: ranks inside a tile, thresholds, plane bytes, counting.

In a tile of up to 248 tuples u, each column's values get 8-bit ranks. A table over the column's codes has the number of
the tile's values below a code. So one look-up a column turns a tuple t into thresholds, and its outcomes with all
tuples of the tile become byte compares (see `planes`). Comparisons whose outcome is the same for all pairs of a block
of t and the tile go into the planes' base. Planes of such comparisons alone are not computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy, sort
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

BLOCK_ROWS = 512  # tuples t of a block, whose thresholds are looked up together
CHUNK_ROWS = 32  # tuples t of a chunk, whose plane bytes are in cache together
HOT_TRIES = 3  # failed guesses after which a block stops guessing its two most frequent clues


class Table(NamedTuple):
    """Table and comparisons, as the loops take them.

    Attributes
    ----------
    codes : int32 (columns, rows), dense; domain : int64 (columns,), the code of an unknown null, above all others
    offsets : int64 (columns + 1,), start of each column's table over its codes; used : int64, columns of u
    row_outcomes : uint8 (any, rows), outcomes of comparisons within a row
    left, right, kind, plane, weight, row_of : int64 (comparisons,), see `plan`
    equal : bool (planes,); multiplier, size : int64 (planes,)
    """

    codes: NDArray[np.int32]
    domain: NDArray[np.int64]
    offsets: NDArray[np.int64]
    used: NDArray[np.int64]
    row_outcomes: NDArray[np.uint8]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    kind: NDArray[np.int64]
    plane: NDArray[np.int64]
    weight: NDArray[np.int64]
    row_of: NDArray[np.int64]
    equal: NDArray[np.bool_]
    multiplier: NDArray[np.int64]
    size: NDArray[np.int64]


class TileScratch(NamedTuple):
    """Working memory that a thread keeps between tiles.

    Attributes
    ----------
    below : uint8, number of the tile's values below each code; distinct : int64 (columns,), number of the tile's values
    ranks : int8 (columns, LANES); u_outcomes : int8 (row outcomes, LANES), of tuples u
    t_ranks, t_thresholds, t_weights : by plane and term; terms : int64 (planes,)
    base : uint8 (planes, BLOCK_ROWS); filled : uint8 (planes, CHUNK_ROWS, LANES), plane bytes
    index : uint16 (pairs of planes, LANES); hot : uint16 (2, 2), the two clues guessed to be frequent
    """

    below: NDArray[np.uint8]
    ranks: NDArray[np.int8]
    u_outcomes: NDArray[np.int8]
    distinct: NDArray[np.int64]
    t_ranks: NDArray[np.int8]
    t_thresholds: NDArray[np.int8]
    t_weights: NDArray[np.uint8]
    base: NDArray[np.uint8]
    terms: NDArray[np.int64]
    filled: NDArray[np.uint8]
    index: NDArray[np.uint16]
    hot: NDArray[np.uint16]


TABLE = (
    "Table(int32[:, ::1], int64[::1], int64[::1], int64[::1], uint8[:, ::1], int64[::1], int64[::1], int64[::1], "
    "int64[::1], int64[::1], int64[::1], boolean[::1], int64[::1], int64[::1])"
)
SCRATCH = (
    "TileScratch(uint8[::1], int8[:, ::1], int8[:, ::1], int64[::1], int8[:, :, ::1], int8[:, :, ::1], uint8[:, ::1], "
    "uint8[:, ::1], int64[::1], uint8[:, :, ::1], uint16[:, ::1], uint16[:, ::1])"
)


@helper
def _rank_tile(codes, offsets, domain, column, first, last, below, ranks):
    """Rank the rows `first` to `last` of a column within this tile, and fill the table of values below each code."""
    table = below[offsets[column] : offsets[column + 1]]
    nulls = domain[column]  # the code of a null under the rule "unknown", and of no value
    values = codes[column, first:last].copy()
    sort(values)
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


@helper
def _equal_terms(row, nulls, first, last, table, distinct, threshold):
    """Write the thresholds of an equality; returns its constant outcome over the block, or -1."""
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


@helper
def _order_terms(row, nulls, first, last, table, distinct, lower, upper):
    """Write the thresholds of an order comparison; returns its constant outcome over the block, or -1."""
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


@helper
def _null_terms(row, nulls, first, last, table, equal, step, base, lower, upper, known):
    """Write the three terms of a comparison with nulls.

    The digit starts as "unknown". The third term subtracts that where both sides are known; the other two add the
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


def make_scratch(table: Table, planes: int) -> TileScratch:
    """Allocate the working memory of one thread."""
    columns = len(table.codes)
    return TileScratch(
        below=np.zeros(int(table.offsets[-1]), dtype=np.uint8),
        ranks=np.zeros((columns, LANES), dtype=np.int8),
        u_outcomes=np.zeros((len(table.row_outcomes), LANES), dtype=np.int8),
        distinct=np.zeros(columns, dtype=np.int64),
        t_ranks=np.zeros((planes, MOST_BELOW, LANES), dtype=np.int8),
        t_thresholds=np.zeros((planes, MOST_BELOW, BLOCK_ROWS), dtype=np.int8),
        t_weights=np.zeros((planes, MOST_BELOW), dtype=np.uint8),
        base=np.zeros((planes, BLOCK_ROWS), dtype=np.uint8),
        terms=np.zeros(planes, dtype=np.int64),
        filled=np.zeros((planes, CHUNK_ROWS, LANES), dtype=np.uint8),
        index=np.zeros((-(-planes // 2), LANES), dtype=np.uint16),
        hot=np.zeros((2, 2), dtype=np.uint16),
    )


@kernel(f"{TABLE}, {SCRATCH}, int64, int64")
def rank_tile(data, scratch, first, last):
    """Prepare the tile of tuples u, rows `first` to `last`."""
    for x in range(len(data.used)):
        c = data.used[x]
        scratch.distinct[c] = _rank_tile(
            data.codes, data.offsets, data.domain, c, first, last, scratch.below, scratch.ranks
        )
    for r in range(data.row_outcomes.shape[0]):
        for j in range(last - first):
            scratch.u_outcomes[r, j] = np.int8(data.row_outcomes[r, first + j])


@helper
def plan_block(data, scratch, first, last):
    """Write the terms of all planes for tuples t in rows `first` to `last` against the prepared tile.

    A comparison adds step x digit to its plane byte, modulo 256 (so -step is 256 - step). Digits, with [x] as 1 where x
    holds:

        equality            [u == t]
        order               [u < t] + [u <= t]
        equality, nulls     2 + [u <= t] - [u < t] - 2 [both known]
        order, nulls        3 + [u < t] + [u <= t] - 3 [both known]
        outcome within t    the outcome
        outcome within u    3 - [outcome < 1] - [outcome < 2] - [outcome < 3]
    """
    codes, domain, offsets, row_outcomes = data.codes, data.domain, data.offsets, data.row_outcomes
    left, right, kind, plane, weight, row_of = data.left, data.right, data.kind, data.plane, data.weight, data.row_of
    below, ranks, u_outcomes, distinct = scratch.below, scratch.ranks, scratch.u_outcomes, scratch.distinct
    t_ranks, t_thresholds, t_weights = scratch.t_ranks, scratch.t_thresholds, scratch.t_weights
    base, terms = scratch.base, scratch.terms
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
                    copy(u_outcomes[outcome], t_ranks[p, k + d])
                    t_thresholds[p, k + d, :rows] = d + 1
                    t_weights[p, k + d] = np.uint8(256 - step)  # -1
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
                copy(ranks[u_column], t_ranks[p, k + d])
                t_weights[p, k + d] = np.uint8(step)
            terms[p] = k + count
            continue
        equal = what == KIND_EQUAL_NULL
        _null_terms(
            row, nulls, first, last, table, equal, step, base[p],
            t_thresholds[p, k], t_thresholds[p, k + 1], t_thresholds[p, k + 2],
        )
        for d in range(3):
            copy(ranks[u_column], t_ranks[p, k + d])
        t_weights[p, k] = np.uint8(256 - step if equal else step)  # -1 or 1
        t_weights[p, k + 1] = np.uint8(step)
        t_weights[p, k + 2] = np.uint8(512 - 2 * step if equal else 768 - 3 * step)  # -2 or -3
        terms[p] = k + 3
    for p in range(len(terms)):
        if terms[p] % 2 == 1:
            t_weights[p, terms[p]] = 0


@helper
def fill_chunk(data, scratch, first, last):
    """Write the plane bytes of tuples `first` to `last` of the block, for the planes that vary."""
    terms = scratch.terms
    for p in range(len(terms)):
        if terms[p] > 0:
            fill_plane(
                data.equal[p], terms[p], scratch.filled[p], first, last, scratch.t_ranks[p], scratch.t_thresholds[p],
                scratch.t_weights[p], scratch.base[p],
            )  # fmt: skip


@helper
def _join_bytes(out, a, scale_a, b, scale_b):
    """Join two planes into a 16-bit index; a scale of 0 leaves a plane out."""
    for j in range(LANES):
        out[j] = np.uint16(np.uint16(np.uint16(a[j]) * scale_a) + np.uint16(np.uint16(b[j]) * scale_b))


@helper
def _count_equal(first, second, lanes, a, b):
    found = np.uint16(0)
    for j in range(LANES):
        found = np.uint16(found + np.uint16((first[j] == a) & (second[j] == b)))
    total = np.int64(found)
    for j in range(lanes, LANES):
        total -= np.int64((first[j] == a) & (second[j] == b))
    return total


@helper
def _count_hot(first, second, step, wide, tail, lanes, hot):
    """Count a row where two clues have 7 in 8 pairs or more; returns whether it was such a row, and else guesses anew.

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


@kernel(f"{TABLE}, {SCRATCH}, uint32[::1], int64, int64, int64, int64")
def count_direct(data, scratch, counts, t_first, t_last, u_first, u_last):
    """Count all pairs t < u of a block and the prepared tile into `counts`, uint32 (combinations,).

    Planes 2q and 2q + 1 make one 16-bit index. A row covered by the two clues guessed from an earlier row is counted by
    vector compares, since increments of one counter wait for each other.
    """
    multiplier, size = data.multiplier, data.size
    base, terms, filled, index, hot = scratch.base, scratch.terms, scratch.filled, scratch.index, scratch.hot
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


@kernel(
    f"{TABLE}, {SCRATCH}, uint64[:, ::1], int64[::1], int64, uint64[:, ::1], uint64[::1], int64, int64, "
    "int64, int64"
)
def count_hashed(data, scratch, keys, counts, used, row_keys, hashes, t_first, t_last, u_first, u_last):
    """Count all pairs t < u of a block and the prepared tile into a hash table of their plane bytes."""
    base, terms, filled = scratch.base, scratch.terms, scratch.filled
    planes = len(terms)
    plan_block(data, scratch, t_first, t_last)
    lanes = u_last - u_first
    varying = False
    for p in range(planes):
        varying |= terms[p] > 0
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
