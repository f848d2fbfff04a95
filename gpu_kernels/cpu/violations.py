"""Violations of keys, constancies and order compatibility inside the classes of a stripped partition.

Each row is the later row of at most one pair a check. The earlier row is the first one of its class (keys,
constancies), or the row with the extreme B among those of strictly smaller A (order compatibility); of equal extremes
it is the first by (A, row). With rows in order of (class, A), row i is a swap where
    ascending    B[i] < max of B over the rows of its class with smaller A
    descending   B[i] > min of B over the rows of its class with smaller A
Rows are sorted once for all partners B of an A. One pass without branches then finds swaps of both directions, and
reads only B.

A check ends at its first violation. Where pairs are wanted, a second pass visits them all, and the few with the
smallest mixed row numbers are compared on all columns. This choice doesn't depend on the order of classes, threads or
devices, nor on the table's values.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy, copy_rows, order_of, sort
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, KEY

SMALL = 24  # rows of a class up to which insertion sort is fastest
ORDER_COST, MEMBER_COST, SMALL_COST, STEP_COST = 2, 9, 25, 6
BLOCK = 4096  # rows after which a check tests whether it is decided
LOWEST, HIGHEST = -2147483648, 2147483647
NEXT, CODE = 0, 1  # columns of cursors: place of the next row of a class, and the class's last code
LAST, LARGEST, LEAST, BEFORE_LARGEST, BEFORE_LEAST = 0, 1, 2, 3, 4  # columns of the states of classes
EVERY_ROW = (1 << 32) - 1  # bound that all mixed rows satisfy


@kernel("int64")
def mixed(row):
    """Mix a row number by a bijection of 32 bits, which gives an order unrelated to the table."""
    x = np.uint64(row)
    x ^= x >> np.uint64(16)
    x = (x * np.uint64(0x7FEB352D)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(15)
    x = (x * np.uint64(0x846CA68B)) & np.uint64(0xFFFFFFFF)
    return x ^ (x >> np.uint64(16))


@helper
def number_classes(rows, bounds, members, total, scratch):
    """Tell whether a pass over the order of all rows sorts classes fastest; if so, numbers[row] = class, -1 for none.

    The pass costs ORDER_COST a row of the table and MEMBER_COST a row of a class. Sorting class by class costs
    SMALL_COST a row of a small class and STEP_COST * log2(size) a row of a large one. Costs are measured, in ns.
    """
    if members == total and len(bounds) == 1:
        return False
    cost = 0.0
    for c in range(len(bounds)):
        size = bounds[c, 1] - bounds[c, 0]
        cost += size * (SMALL_COST if size <= SMALL else STEP_COST * np.log2(size))
    if cost < ORDER_COST * total + members * MEMBER_COST:
        return False
    scratch.numbers[:] = -1
    for c in range(len(bounds)):
        for i in range(bounds[c, 0], bounds[c, 1]):
            scratch.numbers[rows[i]] = c
    return True


@helper
def sort_classes(rows, bounds, members, column, order, marks, by_order, scratch):
    """Sort the rows of classes by (class, code, row), with marks: 2 at the first row of a class, 1 at a new code, else
    0.

    order, marks : those of the column over the whole table; by_order : result of `number_classes` for this partition
    """
    if members == len(order) and len(bounds) == 1:
        return order, marks
    new_rows, new_marks = scratch.sorted[:members], scratch.marks[:members]
    at = 0
    for c in range(len(bounds)):
        low, high = bounds[c, 0], bounds[c, 1]
        end = at + high - low
        if by_order:
            scratch.cursors[c, NEXT], scratch.cursors[c, CODE] = at, -1
        elif high - low <= SMALL:
            insert_sorted(rows[low:high], column, new_rows[at:end], new_marks[at:end])
        else:
            sort_by_keys(rows[low:high], column, scratch.keys, new_rows[at:end], new_marks[at:end])
        at = end
    if by_order:
        scatter_by_order(order, marks, scratch.numbers, scratch.cursors, new_rows, new_marks)
    return new_rows, new_marks


@helper
def insert_sorted(rows, column, new_rows, new_marks):
    """Sort one small class by insertion; rows ascend, so equal codes stay in order of rows."""
    for i in range(len(rows)):
        row = rows[i]
        code = column[row]
        j = i
        while j > 0 and column[new_rows[j - 1]] > code:
            new_rows[j] = new_rows[j - 1]
            j -= 1
        new_rows[j] = row
    mark_codes(new_rows, column, new_marks)


@helper
def sort_by_keys(rows, column, keys, new_rows, new_marks):
    """Sort one large class by keys of code and row."""
    keys = keys[: len(rows)]
    for i in range(len(rows)):
        keys[i] = (np.uint64(column[rows[i]] + 1) << np.uint64(32)) | np.uint64(rows[i])
    sort(keys)
    for i in range(len(rows)):
        new_rows[i] = np.int32(keys[i] & np.uint64(0xFFFFFFFF))
    mark_codes(new_rows, column, new_marks)


@helper
def mark_codes(rows, column, marks):
    """Mark one sorted class."""
    marks[0] = 2
    before = column[rows[0]]
    for i in range(1, len(rows)):
        code = column[rows[i]]
        marks[i] = code != before
        before = code


@helper
def scatter_by_order(order, marks, numbers, cursors, new_rows, new_marks):
    """Scatter numbered rows to their classes in the order of the whole table, which leaves classes sorted.

    cursors : int32 (classes, 2), NEXT, and CODE as the number of the distinct code
    """
    code = 0
    for i in range(len(order)):
        code += marks[i] != 0
        row = order[i]
        c = numbers[row]
        if c >= 0:
            at = cursors[c, NEXT]
            new_rows[at] = row
            last = cursors[c, CODE]
            new_marks[at] = 2 if last < 0 else (1 if last != code else 0)
            cursors[c, NEXT] = at + 1
            cursors[c, CODE] = code


@helper
def any_swaps(rows, marks, column, ascending, descending):
    """Tell for each direction whether there is a swap; only directions asked for are decided."""
    rises = falls = False
    largest, before_largest = np.int32(LOWEST), np.int32(LOWEST)  # of B in the class so far; over strictly smaller A
    least, before_least = np.int32(HIGHEST), np.int32(HIGHEST)
    for begin in range(0, len(rows), BLOCK):
        for i in range(begin, min(begin + BLOCK, len(rows))):
            code = column[rows[i]]
            mark = marks[i]
            largest = np.int32(LOWEST) if mark == 2 else largest
            least = np.int32(HIGHEST) if mark == 2 else least
            before_largest = largest if mark else before_largest
            before_least = least if mark else before_least
            rises |= code < before_largest
            falls |= code > before_least
            largest = max(largest, code)
            least = min(least, code)
        if (rises or not ascending) and (falls or not descending):
            break
    return rises, falls


@helper
def any_swaps_by_order(order, marks, numbers, column, ascending, descending, states):
    """Do the same as `any_swaps` in a pass over the order of the whole table, for a single B and few classes.

    states : int32 (classes, 8), for each class the number of its last distinct A, largest and least B, these two over
        strictly smaller A, three unused
    """
    rises = falls = False
    for c in range(len(states)):
        states[c, LAST] = -1
        states[c, LARGEST] = states[c, BEFORE_LARGEST] = LOWEST
        states[c, LEAST] = states[c, BEFORE_LEAST] = HIGHEST
    left = 0
    for begin in range(0, len(order), BLOCK):
        for i in range(begin, min(begin + BLOCK, len(order))):
            left += marks[i] != 0
            row = order[i]
            c = numbers[row]
            if c >= 0:
                code = column[row]
                new = states[c, LAST] != left
                largest, least = states[c, LARGEST], states[c, LEAST]
                before_largest = largest if new else states[c, BEFORE_LARGEST]
                before_least = least if new else states[c, BEFORE_LEAST]
                states[c, LAST] = left
                states[c, BEFORE_LARGEST], states[c, BEFORE_LEAST] = before_largest, before_least
                rises |= code < before_largest
                falls |= code > before_least
                states[c, LARGEST], states[c, LEAST] = max(largest, code), min(least, code)
        if (rises or not ascending) and (falls or not descending):
            break
    return rises, falls


@helper
def collect_swaps(rows, marks, column, kind, compared, found):
    """Write swaps to found[k] = (row of the extreme, row), at least those of the `compared` smallest mixed rows; return
    how many."""
    sign = np.int64(1) if kind == ASCENDING else np.int64(-1)
    nothing = np.int64(LOWEST) << 32
    half = np.int64(HIGHEST)
    count = 0
    bound = np.uint64(EVERY_ROW)
    extreme = before = nothing  # code << 32 | (HIGHEST - place): of equal codes the first place is largest
    for i in range(len(rows)):
        row = rows[i]
        code = sign * column[row]
        extreme = nothing if marks[i] == 2 else extreme
        before = extreme if marks[i] else before
        if (code < (before >> 32)) & (mixed(np.int64(row)) <= bound):
            count, bound = add_pair(rows[half - (before & half)], row, count, bound, compared, found)
        extreme = max(extreme, (code << 32) | (half - i))
    return count


@helper
def add_pair(t, u, count, bound, compared, found):
    """Add a pair. Where there is no room, only the pairs of the `compared` smallest mixed rows are kept, and their
    largest mixed row becomes the bound for later pairs.

    Returns the number of pairs and the bound on mixed rows.
    """
    if count == len(found):
        count = smallest_mixed(compared, count, found)
        bound = mixed(np.int64(found[count - 1, 1]))
        if mixed(np.int64(u)) > bound:
            return count, bound
    found[count, 0], found[count, 1] = t, u
    return count + 1, bound


@helper
def smallest_mixed(compared, count, found):
    """Keep the pairs of found[:count] with the `compared` smallest mixed rows, ascending; returns how many."""
    keys = np.empty(count, dtype=np.uint64)
    for k in range(count):
        keys[k] = mixed(np.int64(found[k, 1]))
    return keep_first(found, order_of(keys), compared)


@helper
def keep_first(found, order, most):
    """Move the pairs found[order[0]], found[order[1]], ... to the front, at most `most` of them; returns how many."""
    kept = min(len(order), most)
    chosen = np.empty((kept, 2), dtype=np.int32)
    for k in range(kept):
        copy(found[order[k]], chosen[k])
    copy_rows(chosen, found, kept)
    return kept


@helper
def any_different(rows, bounds, column, strict):
    """Tell whether a row has another code than the first of its class; `strict`: nulls differ from nothing."""
    for c in range(len(bounds)):
        low, high = bounds[c, 0], bounds[c, 1]
        code = column[rows[low]]
        while strict and code < 0 and low < high - 1:
            low += 1
            code = column[rows[low]]
        for begin in range(low + 1, high, BLOCK):
            different = False
            for i in range(begin, min(begin + BLOCK, high)):
                other = column[rows[i]]
                different |= (other != code) & ((other >= 0) | (not strict))
            if different:
                return True
    return False


@helper
def collect_different(rows, bounds, column, strict, compared, found):
    """Write found[k] = (first row of the class, row) for rows with another code, as `collect_swaps` does."""
    count = 0
    bound = np.uint64(EVERY_ROW)
    for c in range(len(bounds)):
        low, high = bounds[c, 0], bounds[c, 1]
        code = column[rows[low]]
        while strict and code < 0 and low < high - 1:
            low += 1
            code = column[rows[low]]
        for i in range(low + 1, high):
            other = column[rows[i]]
            if (other != code) & ((other >= 0) | (not strict)) & (mixed(np.int64(rows[i])) <= bound):
                count, bound = add_pair(rows[low], rows[i], count, bound, compared, found)
    return count


@helper
def collect_equal(rows, bounds, compared, found):
    """Write found[k] = (first row of the class, row) for all other rows, as `collect_swaps` does."""
    count = 0
    bound = np.uint64(EVERY_ROW)
    for c in range(len(bounds)):
        for i in range(bounds[c, 0] + 1, bounds[c, 1]):
            if mixed(np.int64(rows[i])) <= bound:
                count, bound = add_pair(rows[bounds[c, 0]], rows[i], count, bound, compared, found)
    return count


@helper
def best_pairs(rows, bounds, marks, column, kind, strict, codes, compared, limit, found):
    """Write the best pairs of a violated check to the front of `found`, best first; returns how many.

    The pairs of the `compared` smallest mixed rows are compared; `found` has room for more. For order compatibility
    `rows` are the sorted rows.
    """
    if kind == KEY:
        count = collect_equal(rows, bounds, compared, found)
    elif kind == CONSTANT:
        count = collect_different(rows, bounds, column, strict, compared, found)
    else:
        count = collect_swaps(rows, marks, column, kind, compared, found)
    return choose_pairs(codes, strict, compared, limit, count, found)


@helper
def choose_pairs(codes, strict, compared, limit, count, found):
    """Compare the pairs of found[:count] with the `compared` smallest mixed rows; move the best to the front; return
    how many."""
    if count > compared:
        count = smallest_mixed(compared, count, found)
    return rank_pairs(codes, strict, limit, count, found)


@helper
def rank_pairs(codes, strict, limit, count, found):
    """Sort found[:count] by descending number of columns that agree, then by the later row."""
    keys = np.empty(count, dtype=np.int64)
    for k in range(count):
        agreeing = 0
        for c in range(len(codes)):
            code = codes[c, found[k, 0]]
            agreeing += code == codes[c, found[k, 1]] and not (strict and code < 0)
        keys[k] = ((len(codes) - agreeing) << 32) | found[k, 1]
    return keep_first(found, order_of(keys), limit)


@kernel("const int32[:, ::1], boolean, int64, int64, int64[::1], int32[:, :, ::1], int64[::1]")
def choose_all(codes, strict, compared, limit, counts, found, numbers):
    """Choose the best of the found pairs of each check: int32 (any, 2), and their number in `numbers`.

    Serves the CUDA twin: `counts` int64 (checks,), `found` int32 (checks, most, 2).
    """
    total = 0
    for k in range(len(counts)):
        if counts[k] > 0:
            numbers[k] = choose_pairs(codes, strict, compared, limit, counts[k], found[k])
        total += numbers[k]
    pairs = np.empty((total, 2), dtype=np.int32)
    at = 0
    for k in range(len(counts)):
        copy_rows(found[k], pairs[at:], numbers[k])
        at += numbers[k]
    return pairs
