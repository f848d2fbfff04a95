"""Stripped partitions: the classes of equal rows, without classes of one row, refined column by column.

A partition is `rows`, int32, and `bounds`, int32 (classes, 2): class c is rows[bounds[c, 0]:bounds[c, 1]], ascending.
The partitions of single columns come from the columns' orders. Others are refined from the longest kept prefix. Columns
come in descending number of values, so that partitions soon become small.

Source: Huhtala, Karkkainen, Porkka, Toivonen, "TANE: an efficient algorithm for discovering functional and approximate
dependencies", The Computer Journal 42(2), 1999, sections 4 and 5. Departures: a partition is refined by one column at a
time, not multiplied by another partition, so rows outside classes are never read; kept partitions are bounded in bytes,
in two generations, and the older one is dropped when the newer one is full.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return, assignment"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import copy
from tuplewise.gpu_kernels.cpu.hashing import hash_words, same_words

LEAST_SLOTS, MOST_SLOTS = 16, 1 << 16
BYTES_A_SLOT = 1 << 11  # bytes of kept partitions for each slot of their index
FEW_CLASSES = 8192  # classes up to which their states stay in cache beside two columns
LINE_BYTES = 64
PLACE, MEMBERS, CLASSES = 0, 1, 2  # columns of the entries of kept partitions


class Columns(NamedTuple):
    """Table, and the orders of the columns that were needed.

    Attributes
    ----------
    codes : int32 (columns, rows), -1 is null
    order : int32 (columns, rows), the rows by (code, row)
    marks : uint8 (columns, rows), for each place of that order: 2 at the first row, 1 at the first row of a value, else
        0
    bounds : int32 (any, 2), bounds of the classes, column after column
    first : int64 (columns,), first entry of each column in `bounds`
    classes, members : int64 (columns,), number of classes of at least two rows, and of their rows
    """

    codes: NDArray[np.int32]
    order: NDArray[np.int32]
    marks: NDArray[np.uint8]
    bounds: NDArray[np.int32]
    first: NDArray[np.int64]
    classes: NDArray[np.int64]
    members: NDArray[np.int64]


class PartitionScratch(NamedTuple):
    """Working memory of one thread. `counts` is all zeros between calls.

    Attributes
    ----------
    rows : int32 (2, rows); bounds : int32 (2, rows // 2 + 1, 2), two temporary partitions
    counts, starts : int32 (codes + 1,); seen : int32 (rows,), for `refine`
    numbers : int32 (rows,); cursors : int32 (rows // 2 + 1, 2), for sorting classes by a pass over an order
    sorted : int32 (rows,); marks : uint8 (rows,); keys : uint64 (rows,)
    found : int32 (any, 2), violating pairs to choose from
    states : int32 (FEW_CLASSES, 8), states of classes in a pass over an order
    """

    rows: NDArray[np.int32]
    bounds: NDArray[np.int32]
    counts: NDArray[np.int32]
    starts: NDArray[np.int32]
    seen: NDArray[np.int32]
    numbers: NDArray[np.int32]
    cursors: NDArray[np.int32]
    sorted: NDArray[np.int32]
    marks: NDArray[np.uint8]
    keys: NDArray[np.uint64]
    found: NDArray[np.int32]
    states: NDArray[np.int32]


class Kept(NamedTuple):
    """Kept partitions of one thread, in two generations.

    Attributes
    ----------
    arena : int32 (2, numbers), rows and then bounds of one partition after another
    contexts : uint64 (2, slots, words)
    entries : int64 (2, slots, 3), for each context its PLACE in the arena + 1 (0: free), MEMBERS, CLASSES
    filling : int64 (1,), the generation being filled
    used, filled : int64 (2,), used numbers of the arena and used entries of each generation
    """

    arena: NDArray[np.int32]
    contexts: NDArray[np.uint64]
    entries: NDArray[np.int64]
    filling: NDArray[np.int64]
    used: NDArray[np.int64]
    filled: NDArray[np.int64]


COLUMNS = (
    "Columns(const int32[:, ::1], int32[:, ::1], uint8[:, ::1], int32[:, ::1], int64[::1], int64[::1], int64[::1])"
)
SCRATCH = (
    "PartitionScratch(int32[:, ::1], int32[:, :, ::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[:, ::1], "
    "int32[::1], uint8[::1], uint64[::1], int32[:, ::1], int32[:, ::1])"
)
KEPT = "Kept(int32[:, ::1], uint64[:, :, ::1], int64[:, :, ::1], int64[::1], int64[::1], int64[::1])"


def make_scratch(rows: int, codes: int, found: int) -> PartitionScratch:
    """Allocate memory for one thread. It is one piece, so that it gets large pages; pages never written cost
    nothing."""
    half = rows // 2 + 1
    shapes: list[tuple[tuple[int, ...], type[np.generic]]] = [
        ((2, rows), np.int32), ((2, half, 2), np.int32), ((codes + 1,), np.int32), ((codes + 1,), np.int32),
        ((rows,), np.int32), ((rows,), np.int32), ((half, 2), np.int32), ((rows,), np.int32), ((rows,), np.uint8),
        ((rows,), np.uint64), ((found, 2), np.int32), ((FEW_CLASSES, 8), np.int32),
    ]  # fmt: skip
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in shapes]
    begins = np.cumsum([0, *(-(-size // LINE_BYTES) * LINE_BYTES for size in sizes)])
    block = np.empty(int(begins[-1]), dtype=np.uint8)
    parts = (block[begin : begin + size].view(dtype).reshape(shape)
             for begin, size, (shape, dtype) in zip(begins.tolist(), sizes, shapes, strict=False))  # fmt: skip
    scratch = PartitionScratch(*parts)
    scratch.counts[:] = 0
    return scratch


def make_kept(limit_bytes: int, words: int) -> Kept:
    """Allocate room for partitions of about so many bytes."""
    slots = LEAST_SLOTS
    while slots < MOST_SLOTS and slots * BYTES_A_SLOT < limit_bytes:
        slots *= 2
    return Kept(
        np.empty((2, limit_bytes // 8), dtype=np.int32),
        np.empty((2, slots, words), dtype=np.uint64),
        np.zeros((2, slots, 3), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@kernel("const int32[::1], int64, boolean, int32[::1], uint8[::1], int32[:, ::1]")
def order_column(codes, values, strict, order, marks, bounds):
    """Sort rows by (code, row) and find the classes of at least two rows; returns the numbers of classes and of their
    rows.

    `strict`: nulls are in no class. codes, order int32 (rows,); marks uint8 (rows,); bounds int32 (enough, 2); codes
    are below `values`.
    """
    starts = np.zeros(values + 2, dtype=np.int64)
    for row in range(len(codes)):
        starts[codes[row] + 2] += 1
    for code in range(values + 1):
        starts[code + 1] += starts[code]
    for row in range(len(codes)):
        code = codes[row] + 1
        order[starts[code]] = row
        starts[code] += 1
    classes = members = begin = 0
    marks[:] = 0
    for code in range(values + 1):  # the start of each code has advanced to its end
        end = starts[code]
        if end > begin:
            marks[begin] = 1
        if end - begin > 1 and not (strict and code == 0):
            bounds[classes, 0], bounds[classes, 1] = begin, end
            classes += 1
            members += end - begin
        begin = end
    if len(codes) > 0:
        marks[0] = 2
    return classes, members


@helper
def refine(rows, bounds, column, strict, scratch, new_rows, new_bounds):
    """Split each class by a column; returns the numbers of classes and rows. Classes are in order of their first
    rows."""
    counts, starts, seen = scratch.counts, scratch.starts, scratch.seen
    classes = used = 0
    for c in range(len(bounds)):
        low, high = bounds[c, 0], bounds[c, 1]
        if high - low == 2:
            one, two = rows[low], rows[low + 1]
            code = column[one]
            if code == column[two] and not (strict and code < 0):
                new_rows[used], new_rows[used + 1] = one, two
                new_bounds[classes, 0], new_bounds[classes, 1] = used, used + 2
                classes += 1
                used += 2
            continue
        for i in range(low, high):
            code = column[rows[i]] + 1
            seen[i - low] = code
            counts[code] += 1
        if strict:
            counts[0] = 0
        for i in range(low, high):
            code = seen[i - low]
            count = counts[code]
            if count == 1:
                counts[code] = 0
                continue
            if count == 0:
                continue
            if count > 1:
                starts[code] = used
                new_bounds[classes, 0], new_bounds[classes, 1] = used, used + count
                classes += 1
                used += count
                count = -count  # number of rows still to come
            new_rows[starts[code]] = rows[i]
            starts[code] += 1
            counts[code] = count + 1
    return classes, used


@helper
def slot_of(contexts, entries, context):
    """Slot of a context, or the free slot where it would go."""
    mask = np.uint64(len(entries) - 1)
    slot = hash_words(context) & mask
    while entries[slot, PLACE] != 0 and not same_words(contexts[slot], context):
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@helper
def keep(kept, context, rows, bounds, members):
    """Keep a partition (compact, its bounds from 0 on), unless it is larger than a generation."""
    used, filled = kept.used, kept.filled
    needed = members + 2 * len(bounds)
    g = kept.filling[0]
    slots = kept.entries.shape[1]
    if needed > kept.arena.shape[1]:
        return
    if used[g] + needed > kept.arena.shape[1] or 2 * filled[g] >= slots:
        g = kept.filling[0] = 1 - g
        kept.entries[g, :, PLACE] = 0
        used[g] = filled[g] = 0
    slot = slot_of(kept.contexts[g], kept.entries[g], context)
    if kept.entries[g, slot, PLACE] != 0:
        return
    at = used[g]
    copy(rows[:members], kept.arena[g, at:])
    for c in range(len(bounds)):
        kept.arena[g, at + members + 2 * c] = bounds[c, 0]
        kept.arena[g, at + members + 2 * c + 1] = bounds[c, 1]
    copy(context, kept.contexts[g, slot])
    entry = kept.entries[g, slot]
    entry[PLACE], entry[MEMBERS], entry[CLASSES] = at + 1, members, len(bounds)
    used[g] += needed
    filled[g] += 1


@helper
def longest_kept(kept, path, prefixes):
    """Longest kept prefix of at least two columns: its length (0: none), generation and slot."""
    for length in range(len(path), 1, -1):
        for turn in range(2):
            g = kept.filling[0] if turn == 0 else 1 - kept.filling[0]
            slot = slot_of(kept.contexts[g], kept.entries[g], prefixes[length - 1])
            if kept.entries[g, slot, PLACE] != 0:
                return length, g, slot
    return 0, 0, 0


@helper
def path_of(context, by_rank):
    """Columns, by rank, of a context whose bits are ranks; and the contexts of its prefixes."""
    columns = 0
    for r in range(len(by_rank)):
        columns += np.int64((context[r >> 6] >> np.uint64(r & 63)) & np.uint64(1))
    path = np.empty(columns, dtype=np.int64)
    prefixes = np.zeros((columns, len(context)), dtype=np.uint64)
    at = 0
    for r in range(len(by_rank)):
        if (context[r >> 6] >> np.uint64(r & 63)) & np.uint64(1):
            path[at] = by_rank[r]
            if at > 0:
                copy(prefixes[at - 1], prefixes[at])
            prefixes[at, r >> 6] |= np.uint64(1) << np.uint64(r & 63)
            at += 1
    return path, prefixes


@helper
def partition_of(columns, path, prefixes, strict, scratch, kept):
    """Stripped partition of a context of at least one column: rows, bounds, number of rows in classes."""
    length, g, slot = longest_kept(kept, path, prefixes)
    if length:
        entry = kept.entries[g, slot]
        place, members, classes = entry[PLACE] - 1, entry[MEMBERS], entry[CLASSES]
        rows = kept.arena[g][place : place + members]
        bounds = kept.arena[g][place + members : place + members + 2 * classes].reshape(classes, 2)
    else:
        length = 1
        first, classes, members = columns.first[path[0]], columns.classes[path[0]], columns.members[path[0]]
        rows = columns.order[path[0]]
        bounds = columns.bounds[first : first + classes]
    side = 0
    while length < len(path) and members > 0:
        column = columns.codes[path[length]]
        classes, members = refine(rows, bounds, column, strict, scratch, scratch.rows[side], scratch.bounds[side])
        rows, bounds = scratch.rows[side], scratch.bounds[side][:classes]
        length += 1
        keep(kept, prefixes[length - 1], rows, bounds, members)
        side = 1 - side
    return rows, bounds, members
