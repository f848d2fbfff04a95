"""Loops of `gpu_kernels.column_set_index`: finding the rows to compare new rows with, and the clues not known yet.

Known clues are in a hash table with open addressing, in both orders of each pair. Each thread enters other clues into a
table of its own, with the first pair of rows that has the clue.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.column_set_types import (
    EQ,
    GT,
    LE,
    LT,
    NE,
    Classes,
    KnownClues,
    Orders,
    Queries,
)
from tuplewise.gpu_kernels.compiled import helper, inlined, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy, copy_rows
from tuplewise.gpu_kernels.cpu.hashing import hash_words, mix_word, same_words
from tuplewise.gpu_kernels.cpu.zones import BLOCK
from tuplewise.gpu_kernels.words import ACROSS, WITHIN_T, Comparisons

NO_VALUE = np.int32(-3)
LANES = 512  # rows that are compared at a time
_RECENT_BITS = 11
_RECENT = 1 << _RECENT_BITS
SPARE = _STEP = 32  # loops take lanes in whole steps, so there is room behind the last row
_STACK = 10 * BLOCK
_TOP = np.int32(2**31 - 1)
SMALL_CLASS = 4 * BLOCK  # rows that are read rather than searched by zones

ORDERS = (
    "Orders(const int32[::1], const int64[::1], const int32[::1], const int64[:, ::1], const int64[:, ::1], "
    "const int64[::1], const int32[::1], const int64[::1])"
)
QUERIES = "Queries(int32[::1], int64[::1], int32[::1], int8[::1], int32[::1])"
CLASSES = "Classes(int32[::1], int64, int32[:, :, ::1])"
COMPARISONS = "Comparisons(int32[::1], int32[::1], int8[::1], boolean[::1], boolean)"
KNOWN = "KnownClues(uint64[:, ::1], int32[::1])"


@helper
def slot_of(clue: NDArray[np.uint64], table: NDArray[np.uint64], numbers: NDArray[np.int32]) -> int:
    """Slot of a clue in a table, or the free slot where it would go (numbers[slot] is -1)."""
    mask = np.uint64(len(numbers) - 1)
    slot = np.int64(hash_words(clue) & mask)
    while numbers[slot] >= 0:
        same = True  # word by word: a view of a row of the table costs as much as the rest of a look-up
        for w in range(len(clue)):
            same &= table[slot, w] == clue[w]
        if same:
            break
        slot = np.int64((np.uint64(slot) + np.uint64(1)) & mask)
    return slot  # type: ignore[return-value]


@kernel("const uint64[:, ::1], uint64[:, ::1], int32[::1], int64")
def fill_table(clues: NDArray[np.uint64], table: NDArray[np.uint64], numbers: NDArray[np.int32], first: int) -> None:
    """Enter clues with their numbers, from clue `first` on; clues already entered keep their number."""
    for i in range(first, len(clues)):
        slot = slot_of(clues[i], table, numbers)
        if numbers[slot] < 0:
            copy(clues[i], table[slot])
            numbers[slot] = i


@kernel("uint64[:, ::1], uint64[:, ::1], int32[::1]")
def numbers_of(
    clues: NDArray[np.uint64], table: NDArray[np.uint64], numbers: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Number of each clue, -1 where it isn't known; int32 (clues,)."""
    found = np.empty(len(clues), dtype=np.int32)
    for i in range(len(clues)):
        found[i] = numbers[slot_of(clues[i], table, numbers)]
    return found


@helper
def _grown(
    table: NDArray[np.uint64], numbers: NDArray[np.int32], clues: NDArray[np.uint64], rows: NDArray[np.int32],
    counts: NDArray[np.int64], used: int,
) -> tuple[
    NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]
]:  # fmt: skip
    """Double the room for a thread's own clues."""
    words = clues.shape[1]
    more_clues = np.zeros((2 * len(clues), words), dtype=np.uint64)
    more_rows = np.zeros((2 * len(clues), 2), dtype=np.int32)
    more_counts = np.zeros(2 * len(clues), dtype=np.int64)
    copy_rows(clues, more_clues, used)
    copy_rows(rows, more_rows, used)
    copy(counts[:used], more_counts)
    table = np.zeros((2 * len(table), words), dtype=np.uint64)
    numbers = np.full(len(table), -1, dtype=np.int32)
    fill_table(more_clues[:used], table, numbers, 0)
    return table, numbers, more_clues, more_rows, more_counts


@inlined
def write_clue(
    codes: NDArray[np.int32], t: int, u: int, left: NDArray[np.int32], right: NDArray[np.int32],
    scope: NDArray[np.int8], ordered: NDArray[np.bool_], unknown: bool, clue: NDArray[np.uint64],
) -> None:  # fmt: skip
    """Write the clue of (t, u)."""
    clue[:] = np.uint64(0)
    for g in range(len(left)):
        a = codes[u, left[g]] if scope[g] != ACROSS and scope[g] != WITHIN_T else codes[t, left[g]]
        b = codes[t, right[g]] if scope[g] == WITHIN_T else codes[u, right[g]]
        outcome = np.uint64(0)
        if unknown and (a < 0 or b < 0):
            outcome = np.uint64(3)
        elif a == b:
            outcome = np.uint64(1)
        elif ordered[g] and a > b:
            outcome = np.uint64(2)
        clue[g >> 5] |= outcome << np.uint64(2 * (g & 31))


@kernel(f"int32[:, ::1], int32[::1], int32[::1], {COMPARISONS}, int64")
def compare_pairs(
    codes: NDArray[np.int32], t: NDArray[np.int32], u: NDArray[np.int32], comparisons: Comparisons, words: int
) -> NDArray[np.uint64]:
    """Clues of pairs (t[i], u[i]): uint64 (pairs, words)."""
    left, right, scope, ordered, unknown = comparisons
    clues = np.zeros((len(t), words), dtype=np.uint64)
    for i in range(len(t)):
        write_clue(codes, t[i], u[i], left, right, scope, ordered, unknown, clues[i])
    return clues


@kernel(
    f"int32[:, ::1], boolean[::1], int64, int64, int64, int64, {ORDERS}, {QUERIES}, {CLASSES}, {COMPARISONS}, {KNOWN}, "
    "int64[::1]"
)
def probe_rows(
    codes: NDArray[np.int32], alive: NDArray[np.bool_], start: int, end: int, first: int, last: int, sorted_: Orders,
    queries: Queries, classes: Classes, comparisons: Comparisons, known: KnownClues, compared: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:  # fmt: skip
    """Compare the rows from `first` on, before `last`, with earlier rows in the boxes of queries.

    `start`, `end`: the orders hold the rows from `start` on, before `end`. A negative entry stands for row -entry - 1,
    of a class of equal rows that aren't all in the order. Where a query has classes, a small one is read from end to
    end, and an empty one ends the query; other boxes are searched for by zones.

    Returns the clues (t is the new row) that aren't in the table, each once, and a pair of rows with each. Adds the
    number of pairs that each query compared to `compared`, int64 (queries,).
    """
    orders, order_offsets, zones, level_starts, level_blocks, levels, columns, column_offsets = sorted_
    query_index, query_offsets, term_slot, term_operator, term_column = queries
    class_of_query, first_of_classes, places = classes
    left, right, scope, ordered, unknown = comparisons
    table, numbers = known
    words = table.shape[1]
    own_table = np.zeros((64, words), dtype=np.uint64)
    own_numbers = np.full(64, -1, dtype=np.int32)
    clues = np.zeros((32, words), dtype=np.uint64)
    rows = np.zeros((32, 2), dtype=np.int32)
    counts = np.zeros(32, dtype=np.int64)
    used = 0
    most = 1
    for i in range(len(column_offsets) - 1):
        most = max(most, column_offsets[i + 1] - column_offsets[i])
    low, high, other = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    stack_level, stack_block = np.empty(_STACK, dtype=np.int64), np.empty(_STACK, dtype=np.int64)
    clue = np.zeros(words, dtype=np.uint64)
    matched = np.empty(64, dtype=np.int32)
    for r in range(first, last):
        for q in range(len(query_index)):
            index = query_index[q]
            small = False
            start_of_class, end_of_class = 0, 0
            if class_of_query[q] >= 0:
                start_of_class = places[class_of_query[q], r - first_of_classes, 0]
                end_of_class = places[class_of_query[q], r - first_of_classes, 1]
                if start_of_class == end_of_class:
                    continue
                small = end_of_class - start_of_class <= SMALL_CLASS
            own_columns = columns[column_offsets[index] : column_offsets[index + 1]]
            d = len(own_columns)
            possible = fill_box(
                codes[r], query_offsets[q], query_offsets[q + 1], term_slot, term_operator, term_column, unknown,
                low[:d], high[:d], other[:d],
            )  # fmt: skip
            if not possible or levels[index] == 0:
                continue
            order = orders[order_offsets[index] : order_offsets[index + 1]]
            many = 0
            cut = False
            depth = 0
            top = levels[index] - 1
            for block in range(0 if small else level_blocks[index, top]):
                stack_level[depth], stack_block[depth] = top, block
                depth += 1
            while depth or small:
                if small:
                    begin, stop = start_of_class, end_of_class
                    small = False
                else:
                    depth -= 1
                    level, block = stack_level[depth], stack_block[depth]
                    at = level_starts[index, level] + 2 * d * block
                    if not may_hold(zones, at, low[:d], high[:d], other[:d]):
                        continue
                    if level:
                        for below in range(block * BLOCK, min((block + 1) * BLOCK, level_blocks[index, level - 1])):
                            stack_level[depth], stack_block[depth] = level - 1, below
                            depth += 1
                        continue
                    begin, stop = block * BLOCK, min((block + 1) * BLOCK, len(order))
                for k in range(begin, stop):
                    entry = order[k]
                    u = entry if entry >= 0 else -entry - 1
                    if (entry >= 0 and u >= r) or not holds(codes[u], own_columns, low[:d], high[:d], other[:d]):
                        continue
                    if entry < 0:
                        cut = True
                        depth = 0
                        break
                    matched[many] = u
                    many += 1
                    if many == len(matched):
                        matched = np.concatenate((matched, np.empty(len(matched), dtype=np.int32)))
            if cut:  # the class of a row in the box has rows that aren't in the order
                many = 0
                for u in range(start, min(end, r)):
                    if holds(codes[u], own_columns, low[:d], high[:d], other[:d]):
                        matched[many] = u
                        many += 1
                        if many == len(matched):
                            matched = np.concatenate((matched, np.empty(len(matched), dtype=np.int32)))
            for place in range(many):
                u = matched[place]
                if not alive[u]:
                    continue
                compared[q] += 1
                write_clue(codes, r, u, left, right, scope, ordered, unknown, clue)
                if numbers[slot_of(clue, table, numbers)] >= 0:
                    continue
                slot = slot_of(clue, own_table, own_numbers)
                if own_numbers[slot] >= 0:
                    continue
                if used == len(clues):
                    own_table, own_numbers, clues, rows, counts = _grown(
                        own_table, own_numbers, clues, rows, counts, used
                    )
                    slot = slot_of(clue, own_table, own_numbers)
                copy(clue, own_table[slot])
                copy(clue, clues[used])
                own_numbers[slot], rows[used, 0], rows[used, 1] = used, r, u
                used += 1
    return clues[:used], rows[:used]


@helper
def fill_box(
    row: NDArray[np.int32], start: int, stop: int, slots: NDArray[np.int32], operators: NDArray[np.int8],
    of_column: NDArray[np.int32], unknown: bool,
    low: NDArray[np.int32], high: NDArray[np.int32], other: NDArray[np.int32],
) -> bool:  # fmt: skip
    """Fill the box of a query for a new row: bounds of each column, and a value that the column must not have. Returns
    False where the box is empty. Where a column must differ from several values, the box may hold more than the query
    asks for."""
    low[:] = np.int32(-1)
    high[:] = _TOP
    other[:] = NO_VALUE
    for k in range(start, stop):
        value = row[of_column[k]]
        s, op = slots[k], operators[k]
        if unknown:
            if value < 0:
                return False
            low[s] = max(low[s], np.int32(0))
        if op == EQ:
            low[s], high[s] = max(low[s], value), min(high[s], value)
        elif op == NE:
            other[s] = value
        elif op == LT:
            high[s] = min(high[s], value - np.int32(1))
        elif op == LE:
            high[s] = min(high[s], value)
        elif op == GT:
            low[s] = max(low[s], value + np.int32(1))
        else:
            low[s] = max(low[s], value)
        if low[s] > high[s]:
            return False
    return True


@inlined
def may_hold(
    zones: NDArray[np.int32], at: int, low: NDArray[np.int32], high: NDArray[np.int32], other: NDArray[np.int32]
) -> bool:
    """Tell whether a block may have a row in a box."""
    for c in range(len(low)):
        least, largest = zones[at + 2 * c], zones[at + 2 * c + 1]
        if largest < low[c] or least > high[c] or (least == largest and least == other[c]):
            return False
    return True


@inlined
def holds(
    row: NDArray[np.int32], columns: NDArray[np.int32], low: NDArray[np.int32], high: NDArray[np.int32],
    other: NDArray[np.int32],
) -> bool:  # fmt: skip
    """Tell whether a row is in a box."""
    for c in range(len(columns)):
        value = row[columns[c]]
        if value < low[c] or value > high[c] or value == other[c]:
            return False
    return True


@kernel(
    "int32[:, ::1], int32[:, ::1], boolean[::1], int32[::1], int64, int64, int64, int64, boolean, "
    f"{COMPARISONS}, {KNOWN}, int64[::1]"
)
def scan_rows(
    codes: NDArray[np.int32], by_column: NDArray[np.int32], alive: NDArray[np.bool_], new: NDArray[np.int32],
    first: int, last: int, start: int, stop: int, only_before: bool, comparisons: Comparisons, known: KnownClues,
    known_counts: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:  # fmt: skip
    """Compare the rows new[first:last] with the live rows from `start` to `stop`: those before each, or all others.

    `by_column`: the rows from `start` on, int32 (columns, rows + SPARE or more). Returns clues (t is the new row) that
    aren't in the table, each once, with a pair of rows and the number of pairs. Adds the pairs of known clues to
    `known_counts`, int64 (known clues,), unless it is empty.
    """
    left, right, scope, ordered, unknown = comparisons
    table, numbers = known
    words = table.shape[1]
    own_table = np.zeros((64, words), dtype=np.uint64)
    own_numbers = np.full(64, -1, dtype=np.int32)
    clues = np.zeros((32, words), dtype=np.uint64)
    rows = np.zeros((32, 2), dtype=np.int32)
    counts = np.zeros(32, dtype=np.int64)
    used = 0
    lanes = np.zeros((2 * words, LANES), dtype=np.uint32)
    clue = np.zeros(words, dtype=np.uint64)
    recent = np.zeros((_RECENT, words), dtype=np.uint64)
    recent_numbers = np.full(_RECENT, -1, dtype=np.int32)  # a few clues belong to most pairs, so the last ones are
    # cached
    for place in range(first, last):
        r = new[place]
        end = r if only_before else stop
        for begin in range(start, end, LANES):
            width = min(LANES, end - begin)
            compare_lanes(codes[r], by_column, begin - start, width, left, right, scope, ordered, unknown, lanes)
            for k in range(width):
                u = begin + k
                if not alive[u] or u == r:
                    continue
                h = np.uint64(0)
                for w in range(words):
                    clue[w] = np.uint64(lanes[2 * w, k]) | np.uint64(lanes[2 * w + 1, k]) << np.uint64(32)
                    h = mix_word(h, clue[w])
                near = np.int64(h >> np.uint64(64 - _RECENT_BITS))
                number = recent_numbers[near]
                for w in range(words):
                    if recent[near, w] != clue[w]:
                        number = -1
                if number < 0:
                    number = numbers[slot_of(clue, table, numbers)]
                    if number >= 0:
                        copy(clue, recent[near])
                        recent_numbers[near] = number
                if number >= 0:
                    if len(known_counts):
                        known_counts[number] += 1
                    continue
                slot = slot_of(clue, own_table, own_numbers)
                if own_numbers[slot] < 0:
                    if used == len(clues):
                        own_table, own_numbers, clues, rows, counts = _grown(
                            own_table, own_numbers, clues, rows, counts, used
                        )
                        slot = slot_of(clue, own_table, own_numbers)
                    copy(clue, own_table[slot])
                    copy(clue, clues[used])
                    own_numbers[slot], rows[used, 0], rows[used, 1] = used, r, u
                    used += 1
                counts[own_numbers[slot]] += 1
    return clues[:used], rows[:used], counts[:used]


@helper
def _add_order(target: NDArray[np.uint32], theirs: NDArray[np.int32], mine: np.int32, one: np.uint32) -> None:
    """Add the outcome EQUAL where a value equals `mine`, GREATER where it is less."""
    zero = np.uint32(0)
    for k in range(np.uint64(len(target))):  # type: ignore[call-overload]  # unsigned: no index counts from the end
        target[k] += (one if theirs[k] <= mine else zero) + (one if theirs[k] < mine else zero)


@helper
def _add_equal(target: NDArray[np.uint32], theirs: NDArray[np.int32], value: np.int32, weight: np.uint32) -> None:
    """Add a weight where a value equals `value`."""
    zero = np.uint32(0)
    for k in range(np.uint64(len(target))):  # type: ignore[call-overload]
        target[k] += weight if theirs[k] == value else zero


@helper
def _add_all(target: NDArray[np.uint32], weight: np.uint32) -> None:
    for k in range(np.uint64(len(target))):  # type: ignore[call-overload]
        target[k] += weight


@helper
def compare_lanes(
    row: NDArray[np.int32], by_column: NDArray[np.int32], begin: int, width: int,
    left: NDArray[np.int32], right: NDArray[np.int32], scope: NDArray[np.int8], ordered: NDArray[np.bool_],
    unknown: bool, lanes: NDArray[np.uint32],
) -> None:  # fmt: skip
    """Write the clues of one row, as t, with `width` adjacent rows: uint32 (halves of words, LANES), 16 comparisons
    each. A null is -1, less than every value, so it gives LESS or GREATER until UNKNOWN replaces that."""
    width = -(-width // _STEP) * _STEP  # whole steps, since the rest of a vector loop would run lane by lane
    lanes[:, :width] = np.uint32(0)
    for g in range(len(left)):
        one = np.uint32(np.uint64(1) << np.uint64(2 * (g & 15)))
        target = lanes[g >> 4, :width]
        if scope[g] == ACROSS:
            mine = row[left[g]]
            theirs = by_column[right[g], begin : begin + width]
            if unknown and mine < 0:
                _add_all(target, np.uint32(3) * one)
            elif ordered[g]:
                _add_order(target, theirs, mine, one)
                if unknown:
                    _add_equal(target, theirs, np.int32(-1), one)
            else:
                _add_equal(target, theirs, mine, one)
                if unknown:
                    _add_equal(target, theirs, np.int32(-1), np.uint32(3) * one)
        elif scope[g] == WITHIN_T:
            _add_all(target, _within(row[left[g]], row[right[g]], ordered[g], unknown) * one)
        else:
            for k in range(width):
                a, b = by_column[left[g], begin + k], by_column[right[g], begin + k]
                target[k] += _within(a, b, ordered[g], unknown) * one


@helper
def _within(a: np.int32, b: np.int32, ordered: bool, unknown: bool) -> np.uint32:
    """Outcome of comparing two values of one row."""
    if unknown and (a < 0 or b < 0):
        return np.uint32(3)
    if a == b:
        return np.uint32(1)
    return np.uint32(2) if ordered and a > b else np.uint32(0)


@kernel(f"int32[:, ::1], boolean[::1], int32[::1], uint64[::1], {ORDERS}, {QUERIES}, {COMPARISONS}, int64")
def seek_pair(
    codes: NDArray[np.int32], alive: NDArray[np.bool_], tried: NDArray[np.int32], wanted: NDArray[np.uint64],
    sorted_: Orders, queries: Queries, comparisons: Comparisons, most: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Find a pair (t, u) of live rows whose clue is `wanted`, t one of `tried`; (-1, -1) where none was met. Third
    result: the number of rows of `tried` that were done; the search ends after `most` comparisons.

    The single query has the conditions on u's values, given t's, that the clue implies.
    """
    orders, order_offsets, zones, all_starts, all_blocks, all_levels, all_columns, column_offsets = sorted_
    _, _, term_slot, term_operator, term_column = queries
    left, right, scope, ordered, unknown = comparisons
    index = queries.order[0]
    order = orders[order_offsets[index] : order_offsets[index + 1]]
    columns = all_columns[column_offsets[index] : column_offsets[index + 1]]
    level_starts, level_blocks, levels = all_starts[index], all_blocks[index], all_levels[index]
    d = len(columns)
    low, high, other = np.empty(d, dtype=np.int32), np.empty(d, dtype=np.int32), np.empty(d, dtype=np.int32)
    stack_level, stack_block = np.empty(_STACK, dtype=np.int64), np.empty(_STACK, dtype=np.int64)
    clue = np.zeros(len(wanted), dtype=np.uint64)
    spent = 0
    for place in range(len(tried)):
        t = tried[place]
        spent += BLOCK
        if spent > most:
            return -1, -1, place
        possible = alive[t] and fill_box(
            codes[t], 0, len(term_slot), term_slot, term_operator, term_column, unknown, low, high, other
        )
        if not possible or levels == 0:
            continue
        depth = 0
        for block in range(level_blocks[levels - 1]):
            stack_level[depth], stack_block[depth] = levels - 1, block
            depth += 1
        while depth:
            depth -= 1
            level, block = stack_level[depth], stack_block[depth]
            spent += 1
            if not may_hold(zones, level_starts[level] + 2 * d * block, low, high, other):
                continue
            if level:
                for below in range(block * BLOCK, min((block + 1) * BLOCK, level_blocks[level - 1])):
                    stack_level[depth], stack_block[depth] = level - 1, below
                    depth += 1
                continue
            if spent > most:
                return -1, -1, place
            for k in range(block * BLOCK, min((block + 1) * BLOCK, len(order))):
                u = order[k]
                spent += 1
                if not alive[u] or u == t or not holds(codes[u], columns, low, high, other):
                    continue
                write_clue(codes, t, u, left, right, scope, ordered, unknown, clue)
                if same_words(clue, wanted):
                    return t, u, place
    return -1, -1, len(tried)
