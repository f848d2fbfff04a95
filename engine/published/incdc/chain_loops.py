"""Loops of chain indexes: chains are made, searched, and rows put in. `chains.py` says what they are.

Source: Qian, Li, Tan, Ran, Ma, "Incremental discovery of denial constraints", The VLDB Journal 32, 2023, sections 5 and
6; `chains.py` names the departures.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper, kernel

LIVE, MARKED = 1, 2
LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, ANY = 0, 1, 2, 3, 4, 5

# Columns of `indexes`: of the first and of the second key (column -1: there is none) the table's column, its sign, and
# what is added to a place in `rows` for its place in `keys`; the first chain, and the one after the last.
COLUMN, SIGN, SECOND_COLUMN, SECOND_SIGN, FIRST_CHAIN, END_CHAIN, SHIFT, SECOND_SHIFT = range(8)
# Columns of `boxes`: the index; for either key a column of the new row, and an operator.
INDEX, OWN, OPERATOR, SECOND_OWN, SECOND_OPERATOR = range(5)
# Bounds of a box: the least and the greatest of each key.
LEAST, GREATEST, SECOND_LEAST, SECOND_GREATEST = range(4)
# Numbers of `span`: rows.
BEGIN, END, FIRST_NEW, FIRST_LOOSE = range(4)

_LOWEST, _HIGHEST = -(1 << 40), 1 << 40  # beyond every key


@kernel("int32[::1], int32[::1], boolean, int64[::1], int32[::1]")
def assign_chains(first, second, strict_second, chain_of, tails):
    """OptIndex (Algorithm 3): a chain for each point, the fewest that there can be; returns how many.

    first, second : in order of the first key, ties as `chains` breaks them; equal points stand together
    tails : room for as many keys; the last second key of every chain, never rising, so the best chain (the one with
        the least difference) is found by halving.
    """
    rank = 0
    for i in range(len(first)):
        if i > 0 and first[i] == first[i - 1] and second[i] == second[i - 1]:
            chain_of[i] = chain_of[i - 1]
            continue
        low, high = 0, rank
        while low < high:
            middle = (low + high) >> 1
            if tails[middle] < second[i] or (tails[middle] == second[i] and not strict_second):
                high = middle
            else:
                low = middle + 1
        if low == rank:
            rank += 1
        tails[low] = second[i]
        chain_of[i] = low
    return rank


@kernel("int64[::1], int64[::1], int64[::1]")
def sort_by_chain(chain_of, offsets, order):
    """order : the points chain after chain, each in the given order; offsets int64 (chains + 1,), zeros before."""
    for i in range(len(chain_of)):
        offsets[chain_of[i] + 1] += 1
    for c in range(len(offsets) - 1):
        offsets[c + 1] += offsets[c]
    place = offsets[:-1].copy()
    for i in range(len(chain_of)):
        order[place[chain_of[i]]] = i
        place[chain_of[i]] += 1


@helper
def first_not_below(keys, low, high, key):
    """First of places low to high whose key is `key` or greater."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def set_bounds(own, sign, operator, bounds, at):
    """bounds[at], bounds[at + 1] : the least and the greatest key that stands in `operator` to this row's code."""
    bounds[at], bounds[at + 1] = _LOWEST, _HIGHEST
    key = np.int64(sign) * np.int64(own)
    turned = sign < 0 and operator < EQUAL
    kind = operator ^ 2 if turned else operator
    if kind == LESS:
        bounds[at + 1] = key - 1
    elif kind == LESS_EQUAL:
        bounds[at + 1] = key
    elif kind == GREATER:
        bounds[at] = key + 1
    elif kind == GREATER_EQUAL:
        bounds[at] = key
    elif kind == EQUAL:
        bounds[at] = bounds[at + 1] = key


@kernel(
    "int32[:, ::1], int64[::1], int32[:, ::1], int64[:, ::1], int32[::1], int32[::1], int64[::1], "
    "uint8[::1], int32[::1], boolean, int32[::1], int32[:, ::1]"
)
def fetch_pairs(codes, span, boxes, indexes, rows, keys, offsets, flags, marked, unknown, stamps, found):
    """Fetch and Fetch+ (Algorithms 1 and 2) for new rows: found[k] = (new row, earlier row), each pair once.

    span : int64 (4,), the new row to begin with, the one to end before, the first new row of all (for stamps), and the
        first row that is in no chain yet: rows from there on are looked at one by one.
    boxes : int32 (boxes, 5), columns as named above. The index's rows r with `r.key operator new.column` are
        wanted; ANY: no condition.
    indexes : int64 (indexes, 8), columns as named above
    marked : int32, ascending: rows that are in pairs with every other
    stamps : int32 (rows,): the last new row that met a row, counted from 1
    found : int32 (room, 2)

    Returns the row to go on with and how many pairs were written; stops before a row whose pairs may find no room.
    """
    written = 0
    bounds = np.empty((len(boxes), 4), dtype=np.int64)
    asked = np.empty(len(boxes), dtype=np.bool_)
    for s in range(span[BEGIN], span[END]):
        if len(found) - written < s:
            return s, written
        stamp = np.int32(s - span[FIRST_NEW] + 1)
        if flags[s] & MARKED:
            for u in range(s):
                if flags[u] & LIVE:
                    found[written, 0], found[written, 1] = s, u
                    written += 1
            continue
        for m in range(len(marked)):
            u = marked[m]
            if u >= s:
                break
            if flags[u] & LIVE:
                stamps[u] = stamp
                found[written, 0], found[written, 1] = s, u
                written += 1
        for b in range(len(boxes)):
            i = boxes[b, INDEX]
            mine = codes[s, boxes[b, OWN]]
            its = codes[s, boxes[b, SECOND_OWN]]
            asked[b] = not unknown or (mine >= 0 and (its >= 0 or boxes[b, SECOND_OPERATOR] == ANY))
            if not asked[b]:
                continue
            set_bounds(mine, indexes[i, SIGN], boxes[b, OPERATOR], bounds[b], LEAST)
            set_bounds(its, indexes[i, SECOND_SIGN], boxes[b, SECOND_OPERATOR], bounds[b], SECOND_LEAST)
            for c in range(indexes[i, FIRST_CHAIN], indexes[i, END_CHAIN]):
                shift = indexes[i, SHIFT]
                low = first_not_below(keys, offsets[c] + shift, offsets[c + 1] + shift, bounds[b, LEAST])
                high = first_not_below(keys, low, offsets[c + 1] + shift, bounds[b, GREATEST] + 1)
                if boxes[b, SECOND_OPERATOR] != ANY and low < high:
                    step = indexes[i, SECOND_SHIFT] - shift
                    shift = indexes[i, SECOND_SHIFT]
                    high = first_not_below(keys, low + step, high + step, bounds[b, SECOND_GREATEST] + 1)
                    low = first_not_below(keys, low + step, high, bounds[b, SECOND_LEAST])
                for p in range(low - shift, high - shift):
                    u = rows[p]
                    if stamps[u] != stamp and flags[u] & LIVE:
                        stamps[u] = stamp
                        found[written, 0], found[written, 1] = s, u
                        written += 1
        for u in range(span[FIRST_LOOSE], s):
            if stamps[u] == stamp or not flags[u] & LIVE:
                continue
            for b in range(len(boxes)):
                both = boxes[b, SECOND_OPERATOR] != ANY
                if asked[b] and inside(codes, u, both, indexes[boxes[b, INDEX]], bounds[b], unknown):
                    found[written, 0], found[written, 1] = s, u
                    written += 1
                    break
    return np.int64(span[END]), written


@helper
def inside(codes, row, with_second, index, bounds, unknown):
    """Whether a row that is in no chain yet is in a box."""
    code = np.int64(codes[row, index[COLUMN]])
    key = code * index[SIGN]
    if key < bounds[LEAST] or key > bounds[GREATEST] or (unknown and code < 0):
        return False
    if index[SECOND_COLUMN] >= 0:
        code = np.int64(codes[row, index[SECOND_COLUMN]])
        if unknown and code < 0:
            return False
        key = code * index[SECOND_SIGN]
        if with_second and (key < bounds[SECOND_LEAST] or key > bounds[SECOND_GREATEST]):
            return False
    return True


@helper
def gap_of_point(keys, offset, end, shift, other, key, other_key, strict, other_strict):
    """Where a point fits into a chain: (gap, last possible gap); (gap, -1) beside an equal point; (1, 0): nowhere."""
    low = first_not_below(keys, offset + shift, end + shift, key) - shift
    high = first_not_below(keys, low + shift, end + shift, key + 1) - shift
    other_low = first_not_below(keys, offset + other, end + other, other_key) - other
    other_high = first_not_below(keys, other_low + other, end + other, other_key + 1) - other
    from_, to = max(low, other_low), min(high, other_high)
    if from_ < to:
        return to - offset, np.int64(-1)
    if (strict and low < high) or (other_strict and other_low < other_high) or from_ > to:
        return np.int64(1), np.int64(0)
    return from_ - offset, to - offset


@kernel(
    "int32[::1], int32[::1], boolean[::1], int32[::1], int64[::1], int64[::1], int64, int64[:, ::1], "
    "int64[::1], int64[::1]"
)
def place_points(first, second, strict, keys, shifts, offsets, chains, placed, chain_of, gap_of):
    """Section 6.3: new points, in the order of OptIndex, get the largest chain that takes them, or a new one.

    strict : bool (2,); shifts : int64 (2,), of the first and second key as `fetch_pairs` has them
    offsets : of the index's chains, `chains` + 1; placed : int64 (chains + points, 3), zeros: how many points a chain
        got, the last gap and the last second key
    chain_of, gap_of : int64 (points,), written. Returns how many chains there are then.
    """
    given = chains
    for i in range(len(first)):
        if i > 0 and first[i] == first[i - 1] and second[i] == second[i - 1]:
            chain_of[i], gap_of[i] = chain_of[i - 1], gap_of[i - 1]
            placed[chain_of[i], 0] += 1
            continue
        best = best_size = best_gap = np.int64(-1)
        for c in range(chains):
            gap = last = size = np.int64(0)
            if c < given:
                size = offsets[c + 1] - offsets[c]
                gap, last = gap_of_point(
                    keys, offsets[c], offsets[c + 1], shifts[0], shifts[1], first[i], second[i], strict[0], strict[1]
                )
            if last < 0:
                best, best_gap = np.int64(c), gap
                break
            if placed[c, 0] > 0:
                gap = max(gap, placed[c, 1])
                after = second[i] > placed[c, 2] or (second[i] == placed[c, 2] and not strict[1])
                if gap == placed[c, 1] and not after:
                    continue
            size += placed[c, 0]
            if gap <= last and size > best_size:
                best, best_size, best_gap = np.int64(c), size, gap
        if best < 0:
            best, best_gap = np.int64(chains), np.int64(0)
            chains += 1
        chain_of[i], gap_of[i] = best, best_gap
        placed[best, 0] += 1
        placed[best, 1], placed[best, 2] = best_gap, second[i]
    return chains


@kernel(
    "int32[::1], int32[:, ::1], int64[::1], int64[::1], int32[::1], int32[::1], int64[::1], int64[::1], "
    "uint8[::1], int32[::1], int32[:, ::1], int64[::1]"
)
def merge_chains(new, new_keys, chain_of, gap_of, rows, keys, shifts, offsets, flags, merged, merged_keys, ends):
    """The chains with new rows in their gaps and without rows that are gone; returns how many rows and chains.

    new, new_keys : int32 (points,) and (1 or 2, points), in order of (chain, gap), with `chain_of` and `gap_of`
    rows, keys, shifts, offsets : the index's, as in `place_points`
    merged, merged_keys, ends : room for all rows, and for chains + 1. A chain without rows is left out.
    """
    at = n = chains = chain = 0
    ends[0] = 0
    while chain + 1 < len(offsets) or at < len(new):
        start = end = np.int64(0)
        if chain + 1 < len(offsets):
            start, end = offsets[chain], offsets[chain + 1]
        before = n
        for p in range(start, end + 1):
            while at < len(new) and chain_of[at] == chain and gap_of[at] == p - start:
                merged[n] = new[at]
                for k in range(len(merged_keys)):
                    merged_keys[k, n] = new_keys[k, at]
                n += 1
                at += 1
            if p < end and flags[rows[p]] & LIVE:
                merged[n] = rows[p]
                for k in range(len(merged_keys)):
                    merged_keys[k, n] = keys[p + shifts[k]]
                n += 1
        if n > before:
            chains += 1
            ends[chains] = n
        chain += 1
    return n, chains
