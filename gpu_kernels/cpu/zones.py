"""Sorted arrays with zones: rows sorted by some columns, with the least and largest value of every column for each
block of rows, for each block of blocks, and so on. To find a box of values, the search descends into blocks whose zones
overlap the box.

Neighbours are alike in the first columns of the order, so a box that fixes these is in a few blocks. Where other
columns rise or fall with them, as in a table in which a rule of order holds, their zones are narrow too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel

BLOCK = 16  # rows of a block, and blocks of a block above
MOST_LEVELS = 8  # 16 ** 8 is more than rows may be


def zone_levels(rows: int) -> list[int]:
    """Number of blocks of each level, lowest first; the last level has at most BLOCK of them."""
    levels: list[int] = []
    count = rows
    while rows and (not levels or count > BLOCK):
        count = -(-count // BLOCK)
        levels.append(count)
    return levels


@kernel("int32[:, ::1], int32[::1], int32[::1], int64[::1], int32[:, ::1]")
def fill_zones(
    codes: NDArray[np.int32],
    columns: NDArray[np.int32],
    order: NDArray[np.int32],
    levels: NDArray[np.int64],
    zones: NDArray[np.int32],
) -> None:
    """Write the zones of `order`: int32 (blocks of all levels, 2 x columns), least and largest value of each column.

    `codes`: int32 (rows, all columns); `levels`: int64, blocks of each level, lowest first.
    """
    d = len(columns)
    at = 0
    for block in range(levels[0]):
        first = block * BLOCK
        last = min(first + BLOCK, len(order))
        for c in range(d):
            low = high = codes[order[first], columns[c]]
            for k in range(first + 1, last):
                value = codes[order[k], columns[c]]
                low, high = min(low, value), max(high, value)
            zones[at, 2 * c], zones[at, 2 * c + 1] = low, high
        at += 1
    below = 0
    for level in range(1, len(levels)):
        for block in range(levels[level]):
            first = block * BLOCK
            last = min(first + BLOCK, levels[level - 1])
            for c in range(d):
                low, high = zones[below + first, 2 * c], zones[below + first, 2 * c + 1]
                for k in range(first + 1, last):
                    low = min(low, zones[below + k, 2 * c])
                    high = max(high, zones[below + k, 2 * c + 1])
                zones[at, 2 * c], zones[at, 2 * c + 1] = low, high
            at += 1
        below += levels[level - 1]


@kernel("int32[:, ::1], const int32[::1], const int32[::1], int32[::1], int32[::1], int32[::1]")
def merge_orders(
    codes: NDArray[np.int32],
    columns: NDArray[np.int32],
    order: NDArray[np.int32],
    added: NDArray[np.int32],
    number: NDArray[np.int32],
    merged: NDArray[np.int32],
) -> int:
    """Merge two sorted orders into one of the remaining rows, by their new numbers; returns how many.

    `number`: int32 (rows,), the new number of each row, -1 for removed rows.
    """
    i, j, at = 0, 0, 0
    while i < len(order) or j < len(added):
        if i < len(order) and number[order[i]] < 0:
            i += 1
            continue
        if j < len(added) and number[added[j]] < 0:
            j += 1
            continue
        first = j == len(added)
        if i < len(order) and j < len(added):
            first = True
            for c in columns:
                a, b = codes[order[i], c], codes[added[j], c]
                if a != b:
                    first = a < b
                    break
        if first and i < len(order):
            merged[at] = number[order[i]]
            i += 1
            at += 1
        elif j < len(added):
            merged[at] = number[added[j]]
            j += 1
            at += 1
    return at


@kernel("int32[:, ::1], boolean[::1], const int32[::1], const int32[::1], int32[:, ::1]")
def find_rows(
    codes: NDArray[np.int32],
    alive: NDArray[np.bool_],
    columns: NDArray[np.int32],
    order: NDArray[np.int32],
    wanted: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Find live rows by their values in the columns that `order` is sorted by: int32 (k,), -1 where there is none.

    `wanted`: int32 (k, columns).
    """
    found = np.full(len(wanted), -1, dtype=np.int32)
    for k in range(len(wanted)):
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            less = False
            for c in range(len(columns)):
                value = codes[order[middle], columns[c]]
                if value != wanted[k, c]:
                    less = value < wanted[k, c]
                    break
            low, high = (middle + 1, high) if less else (low, middle)
        while low < len(order):
            row = order[low]
            same = True
            for c in range(len(columns)):
                same &= codes[row, columns[c]] == wanted[k, c]
            if not same:
                break
            if alive[row]:
                found[k] = row
                break
            low += 1
    return found


@kernel("int32[:, ::1], const int32[::1], const int32[::1], int32[::1], int32[::1], int32[:, ::1]")
def find_classes(
    codes: NDArray[np.int32],
    columns: NDArray[np.int32],
    order: NDArray[np.int32],
    of_columns: NDArray[np.int32],
    rows: NDArray[np.int32],
    places: NDArray[np.int32],
) -> None:
    """Write for each row where `order` has those that hold in `columns` what it holds in `of_columns`.

    columns : int32 (k,), the first columns that `order` is sorted by; entry -u - 1 stands for row u
    rows : int32 (rows,), sorted by `of_columns`, int32 (k,)
    places : int32 (rows, 2), first place and the place behind the last, written at the rows' positions in `rows`

    Cost: for each row a search in steps that double, from the place of the row before.
    """
    at = 0
    for i in range(len(rows)):
        for side in range(2):  # the first place that isn't below the row; then the first one above it
            step, low, high = 1, at, at
            while high < len(order) and precedes(codes, columns, order[high], of_columns, rows[i], side == 1):
                low = high + 1
                high += step
                step *= 2
            high = min(high, len(order))
            while low < high:
                middle = (low + high) >> 1
                if precedes(codes, columns, order[middle], of_columns, rows[i], side == 1):
                    low = middle + 1
                else:
                    high = middle
            places[i, side] = low
            if side == 0:
                at = low


@helper
def precedes(
    codes: NDArray[np.int32], columns: NDArray[np.int32], entry: int, of_columns: NDArray[np.int32], row: int,
    equal: bool,
) -> bool:  # fmt: skip
    """Tell whether an entry's row comes before `row`, or (`equal`) holds the same."""
    u = entry if entry >= 0 else -entry - 1
    for c in range(len(columns)):
        a, b = codes[u, columns[c]], codes[row, of_columns[c]]
        if a != b:
            return bool(a < b)
    return equal


def sort_rows(ranks: Any, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sort rows by columns, the first column first.

    Parameters
    ----------
    ranks : int64 (columns, rows), number of values below each one, as dense as possible
    rows : int32 (rows,), the row of each place
    """
    keys: list[NDArray[np.uint64]] = []
    used = 64
    for column in ranks:
        bits = max(1, int(column.max(initial=0)).bit_length())
        if used + bits > 64:
            keys.append(np.zeros(len(rows), dtype=np.uint64))
            used = 0
        keys[-1] = keys[-1] << np.uint64(bits) | column.astype(np.uint64)
        used += bits
    if not keys:
        return rows.copy()
    order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    return rows[order].astype(np.int32)


@kernel("int32[:, ::1], int32[::1], int32[::1], int64")
def cut_classes(codes: NDArray[np.int32], columns: NDArray[np.int32], order: NDArray[np.int32], most: int) -> int:
    """Keep at most so many rows of each class of rows that are equal in these columns, at the front of `order`, which
    is sorted by them. Rows of shortened classes are written as -row - 1. Returns the number of rows kept."""
    at, start = 0, 0
    while start < len(order):
        end = start + 1
        while end < len(order):
            same = True
            for c in columns:
                same &= codes[order[end], c] == codes[order[start], c]
            if not same:
                break
            end += 1
        for k in range(start, min(end, start + most)):
            order[at] = order[k] if end - start <= most else -order[k] - 1
            at += 1
        start = end
    return at
