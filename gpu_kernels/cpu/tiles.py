"""Compiled loops over pairs of row blocks: ranks inside a tile, thresholds, plane bytes.

In a tile of up to 248 tuples u, each column's values get 8-bit ranks. A table over the column's codes has the number of
the tile's values below a code. So one look-up a column turns a tuple t into thresholds, and its outcomes with all
tuples of the tile become byte compares (see `planes`).

A block of tuples t and the tile have a *block plan*: comparisons whose outcome is the same for all their pairs go into
one constant part of the key, the others into as few planes as hold them.
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
    KIND_ORDER_NULL,
    KIND_ROW_T,
    KIND_ROW_U,
)
from tuplewise.gpu_kernels.cpu.planes import (
    ABSENT,
    COMBINATIONS,
    LANES,
    NEVER,
    NULL_RANK,
    add_equal,
    fill_below,
)

BLOCK_ROWS = 512  # tuples t of a block, whose thresholds are looked up together
CHUNK_ROWS = 32  # tuples t of a chunk, whose plane bytes are in cache together
BELOW, EQUAL_TO = 0, 1  # the two kinds of terms


class Table(NamedTuple):
    """Table and comparisons, as the loops take them.

    Attributes
    ----------
    codes : int32 (columns, rows), dense; domain : int64 (columns,), the code of an unknown null, above all others
    offsets : int64 (columns + 1,), start of each column's table over its codes; used : int64, columns of u
    row_outcomes : uint8 (any, rows), outcomes of comparisons within a row
    left, right, kind, plane, weight, row_of : int64 (comparisons,), see `plan`
    order : int64 (comparisons,), the order in which a block plan takes the comparisons
    word : int64 (comparisons,), step : uint64 (comparisons,): a digit d adds step x d to that word of a pair's key
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
    order: NDArray[np.int64]
    word: NDArray[np.int64]
    step: NDArray[np.uint64]


class TileScratch(NamedTuple):
    """Working memory that a thread keeps between tiles.

    Attributes
    ----------
    below : uint8, number of the tile's values below each code
    ranks : int8 (columns, LANES), of tuples u; u_outcomes : uint8 (row outcomes, LANES)
    distinct, nulls : int64 (columns,), number of the tile's values and of its nulls
    before : int64 (columns, LANES + 1), number of tuples u with a rank below each
    found : int8 (2, BLOCK_ROWS), thresholds of one comparison
    ranked, thresholds, weights : by kind of term and term, see `planes`
    base : uint8 (planes, BLOCK_ROWS), lane_base : uint8 (planes, LANES)
    keys : uint64 (planes, COMBINATIONS), what each plane byte adds to the key; constant : uint64 (words,), what all add
    sizes : int64 (planes, SIZES), see `plan_block`; varying : int64 (comparisons, VARYING)
    filled : uint8 (planes, CHUNK_ROWS, LANES), plane bytes
    """

    below: NDArray[np.uint8]
    ranks: NDArray[np.int8]
    u_outcomes: NDArray[np.uint8]
    distinct: NDArray[np.int64]
    nulls: NDArray[np.int64]
    before: NDArray[np.int64]
    found: NDArray[np.int8]
    ranked: NDArray[np.int8]
    thresholds: NDArray[np.int8]
    weights: NDArray[np.uint8]
    base: NDArray[np.uint8]
    lane_base: NDArray[np.uint8]
    keys: NDArray[np.uint64]
    constant: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    varying: NDArray[np.int64]
    filled: NDArray[np.uint8]


TABLE = (
    "Table(int32[:, ::1], int64[::1], int64[::1], int64[::1], uint8[:, ::1], int64[::1], int64[::1], int64[::1], "
    "int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint64[::1])"
)
SCRATCH = (
    "TileScratch(uint8[::1], int8[:, ::1], uint8[:, ::1], int64[::1], int64[::1], int64[:, ::1], int8[:, ::1], "
    "int8[:, :, ::1], int8[:, :, ::1], uint8[:, ::1], uint8[:, ::1], uint8[:, ::1], uint64[:, ::1], uint64[::1], "
    "int64[:, ::1], int64[:, ::1], uint8[:, :, ::1])"
)
# columns of `sizes`: byte values, word of the key, first term and number of terms, of orders and of equalities
SIZE, WORD, FIRST, TERMS, SIZES = 0, 1, 2, 4, 6
# columns of `varying`: how the outcomes of a tuple t may be counted without pairs, column of u, first term, weight
WAY, COLUMN, TERM, WEIGHT, VARYING = range(5)
BY_EQUALITY, BY_ORDER, BY_PAIRS = range(3)


def make_scratch(table: Table, planes: int, words: int) -> TileScratch:
    """Allocate the working memory of one thread, for at most so many planes and words of a key."""
    columns, comparisons = len(table.codes), len(table.left)
    terms = 2 * comparisons + planes + 1
    return TileScratch(
        below=np.zeros(int(table.offsets[-1]), dtype=np.uint8),
        ranks=np.zeros((columns, LANES), dtype=np.int8),
        u_outcomes=np.zeros((len(table.row_outcomes), LANES), dtype=np.uint8),
        distinct=np.zeros(columns, dtype=np.int64),
        nulls=np.zeros(columns, dtype=np.int64),
        before=np.zeros((columns, LANES + 1), dtype=np.int64),
        found=np.zeros((2, BLOCK_ROWS), dtype=np.int8),
        ranked=np.zeros((2, terms, LANES), dtype=np.int8),
        thresholds=np.zeros((2, terms, BLOCK_ROWS), dtype=np.int8),
        weights=np.zeros((2, terms), dtype=np.uint8),
        base=np.zeros((planes, BLOCK_ROWS), dtype=np.uint8),
        lane_base=np.zeros((planes, LANES), dtype=np.uint8),
        keys=np.zeros((planes, COMBINATIONS), dtype=np.uint64),
        constant=np.zeros(words, dtype=np.uint64),
        sizes=np.zeros((planes, SIZES), dtype=np.int64),
        varying=np.zeros((comparisons, VARYING), dtype=np.int64),
        filled=np.zeros((planes, CHUNK_ROWS, LANES), dtype=np.uint8),
    )


@helper
def _rank_column(data, scratch, column, first, last):
    """Rank the rows `first` to `last` of a column within this tile, and fill the table of values below each code."""
    table = scratch.below[data.offsets[column] : data.offsets[column + 1]]
    nulls = data.domain[column]  # the code of a null under the rule "unknown", and of no value
    ranks, before = scratch.ranks[column], scratch.before[column]
    values = data.codes[column, first:last].copy()
    sort(values)
    distinct = 0
    start = 0
    known = 0
    for i in range(len(values)):
        value = values[i]
        if value == nulls:
            continue
        if known == 0 or value != values[i - 1]:
            table[start : value + 1] = distinct
            start = value + 1
            before[distinct] = known
            distinct += 1
        known += 1
    table[start:] = distinct
    before[distinct] = known
    scratch.distinct[column] = distinct
    scratch.nulls[column] = last - first - known
    for j in range(last - first):
        code = data.codes[column, first + j]
        ranks[j] = NULL_RANK if code == nulls else np.int8(np.int64(table[code]) - 128)
    ranks[last - first :] = 0


@kernel(f"{TABLE}, {SCRATCH}, int64, int64")
def rank_tile(data, scratch, first, last):
    """Prepare the tile of tuples u, rows `first` to `last`."""
    for x in range(len(data.used)):
        _rank_column(data, scratch, data.used[x], first, last)
    for r in range(data.row_outcomes.shape[0]):
        for j in range(last - first):
            scratch.u_outcomes[r, j] = data.row_outcomes[r, first + j]


@helper
def _bounds(row, first, last):
    """Least and greatest code of some rows."""
    least, most = row[first], row[first]
    for i in range(first, last):
        least = min(least, row[i])
        most = max(most, row[i])
    return least, most


@helper
def _outcome_between(least, most, table, distinct, equal):
    """The outcome of all codes from `least` to `most` with all values of the tile, or -1."""
    if equal:
        if table[least] == table[most + 1]:
            return 0  # no value of the tile is between them
        return 1 if least == most and distinct == 1 else -1
    if table[most + 1] == 0:
        return 0
    if table[least] == distinct:
        return 2
    return 1 if table[most] == 0 and table[least + 1] == distinct else -1


@helper
def _equal_thresholds(row, first, last, table, threshold):
    """Write the thresholds of an equality; returns whether any is a rank of the tile."""
    some = np.uint8(0)
    for i in range(last - first):
        code = np.uint32(row[first + i])
        low = table[code]
        here = low ^ table[code + np.uint32(1)]
        threshold[i] = np.int8(low ^ np.uint8(128)) if here else ABSENT
        some |= here
    return some != 0


@helper
def _order_thresholds(row, first, last, table, lower, upper):
    """Write the thresholds of an order comparison."""
    for i in range(last - first):
        code = np.uint32(row[first + i])
        lower[i] = np.int8(table[code] ^ np.uint8(128))
        upper[i] = np.int8(table[code + np.uint32(1)] ^ np.uint8(128))


@helper
def _common(outcomes, first, last):
    """The outcome that all rows have, or -1."""
    for i in range(first + 1, last):
        if outcomes[i] != outcomes[first]:
            return -1
    return np.int64(outcomes[first])


@helper
def _nulls_in(row, nulls, first, last):
    """Number of rows with an unknown null."""
    found = 0
    for i in range(first, last):
        found += row[i] == nulls
    return found


@helper
def _add_term(scratch, p, kind, column, thresholds, rows, weight):
    """Append a term to plane p, the last one."""
    term = scratch.sizes[p, FIRST + kind] + scratch.sizes[p, TERMS + kind]
    copy(scratch.ranks[column], scratch.ranked[kind, term])
    copy(thresholds[:rows], scratch.thresholds[kind, term])
    scratch.weights[kind, term] = np.uint8(weight)
    scratch.weights[kind, term + 1] = 0  # the term that makes an odd number even
    scratch.sizes[p, TERMS + kind] += 1
    return term


@helper
def _make_room(scratch, planes, radix, word, rows):
    """Begin a plane unless the last one has room for another digit; returns the number of planes."""
    sizes = scratch.sizes
    p = planes - 1
    if planes > 0 and sizes[p, SIZE] * radix <= COMBINATIONS and sizes[p, WORD] == word:
        return planes
    for kind in range(2):
        terms = sizes[p, FIRST + kind] + sizes[p, TERMS + kind] if planes > 0 else 0
        sizes[planes, FIRST + kind] = terms + terms % 2
        sizes[planes, TERMS + kind] = 0
    sizes[planes, SIZE] = 1
    sizes[planes, WORD] = word
    scratch.keys[planes, 0] = 0
    scratch.base[planes, :rows] = 0
    scratch.lane_base[planes, :] = 0
    return planes + 1


@helper
def _add_digit(scratch, p, radix, step):
    """Append a digit to plane p; returns its weight."""
    weight = scratch.sizes[p, SIZE]
    keys = scratch.keys[p]
    for digit in range(1, radix):
        for byte in range(weight):
            keys[digit * weight + byte] = keys[byte] + np.uint64(digit) * step
    scratch.sizes[p, SIZE] = weight * radix
    return weight


@helper
def plan_block(data, scratch, first, last, lanes):
    """Plan the block of tuples t, rows `first` to `last`, against the prepared tile of `lanes` tuples u.

    Digits, with [x] as 1 where x holds:

        equality            [u == t]
        order               [u < t] + [u <= t]
        equality, nulls     the same, and 2 where a side is null
        order, nulls        the same, and 3 where a side is null
        outcome within t    the outcome, in `base`
        outcome within u    the outcome, in `lane_base`

    Returns the number of planes and of comparisons that vary. Where neither the block nor the tile has a null, digits
    are those without nulls.
    """
    found, varying, rows = scratch.found, scratch.varying, last - first
    planes = 0
    count = 0
    scratch.constant[:] = 0
    for x in range(len(data.order)):
        g = data.order[x]
        what, word, step, column = data.kind[g], data.word[g], data.step[g], data.right[g]
        row = data.codes[data.left[g]]
        nulls = data.domain[data.left[g]]
        distinct = scratch.distinct[column]
        missing = 0
        constant = -1
        if what == KIND_ROW_T:
            constant = _common(data.row_outcomes[data.row_of[g]], first, last)
        elif what == KIND_ROW_U:
            constant = _common(scratch.u_outcomes[data.row_of[g]], 0, lanes)
        else:
            if what in (KIND_EQUAL_NULL, KIND_ORDER_NULL):
                missing = _nulls_in(row, nulls, first, last)
            equal = what in (KIND_EQUAL, KIND_EQUAL_NULL)
            table = scratch.below[data.offsets[column] : data.offsets[column + 1]]
            if missing == rows or scratch.nulls[column] == lanes:
                constant = 2 if equal else 3
            elif missing == 0 and scratch.nulls[column] == 0:
                what = KIND_EQUAL if equal else KIND_ORDER
                least, most = _bounds(row, first, last)
                constant = _outcome_between(least, most, table, distinct, equal)
            if constant == -1:
                if not equal:
                    _order_thresholds(row, first, last, table, found[0], found[1])
                elif not _equal_thresholds(row, first, last, table, found[0]) and what == KIND_EQUAL:
                    constant = 0
        if constant >= 0:
            scratch.constant[word] += np.uint64(constant) * step
            continue
        radix = 2 if what == KIND_EQUAL else (3 if what in (KIND_ORDER, KIND_EQUAL_NULL) else 4)
        planes = _make_room(scratch, planes, radix, word, rows)
        p = planes - 1
        weight = _add_digit(scratch, p, radix, step)
        base, lane_base = scratch.base[p], scratch.lane_base[p]
        term = 0
        if what == KIND_ROW_T:
            outcomes = data.row_outcomes[data.row_of[g]]
            for i in range(rows):
                base[i] = np.uint8(base[i] + weight * outcomes[first + i])
        elif what == KIND_ROW_U:
            outcomes = scratch.u_outcomes[data.row_of[g]]
            for j in range(lanes):
                lane_base[j] = np.uint8(lane_base[j] + weight * outcomes[j])
        else:
            if missing > 0:  # a null of t: no outcome is added, and "unknown" is in the base
                unknown = 2 * weight if what == KIND_EQUAL_NULL else 3 * weight
                for i in range(rows):
                    if row[first + i] == nulls:
                        base[i] = np.uint8(base[i] + unknown)
                        found[0, i] = ABSENT if what == KIND_EQUAL_NULL else NEVER
                        found[1, i] = NEVER
            if what in (KIND_EQUAL, KIND_EQUAL_NULL):
                term = _add_term(scratch, p, EQUAL_TO, column, found[0], rows, weight)
            else:
                term = _add_term(scratch, p, BELOW, column, found[0], rows, weight)
                _add_term(scratch, p, BELOW, column, found[1], rows, weight)
            if what in (KIND_EQUAL_NULL, KIND_ORDER_NULL):
                for i in range(rows):
                    found[0, i] = ABSENT if row[first + i] == nulls else NULL_RANK
                unknown = 2 * weight if what == KIND_EQUAL_NULL else 3 * weight
                _add_term(scratch, p, EQUAL_TO, column, found[0], rows, unknown)
        varying[count, WAY] = BY_EQUALITY if what == KIND_EQUAL else (BY_ORDER if what == KIND_ORDER else BY_PAIRS)
        varying[count, COLUMN], varying[count, TERM], varying[count, WEIGHT] = column, term, weight
        count += 1
    return planes, count


@helper
def fill_chunk(scratch, planes, first, last):
    """Write the plane bytes of tuples `first` to `last` of the block."""
    ranked, thresholds, weights = scratch.ranked, scratch.thresholds, scratch.weights
    for p in range(planes):
        sizes = scratch.sizes[p]
        begin, end = sizes[FIRST + BELOW], sizes[FIRST + BELOW] + sizes[TERMS + BELOW]
        fill_below(
            sizes[TERMS + BELOW], scratch.filled[p], first, last, ranked[BELOW, begin:end],
            thresholds[BELOW, begin:end], weights[BELOW, begin:end], scratch.base[p], scratch.lane_base[p],
        )  # fmt: skip
        begin, end = sizes[FIRST + EQUAL_TO], sizes[FIRST + EQUAL_TO] + sizes[TERMS + EQUAL_TO] + 1
        add_equal(
            sizes[TERMS + EQUAL_TO], scratch.filled[p], first, last, ranked[EQUAL_TO, begin:end],
            thresholds[EQUAL_TO, begin:end], weights[EQUAL_TO, begin:end],
        )  # fmt: skip
