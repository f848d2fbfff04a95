"""Compiled loops that count the pairs of a block of tuples t and a prepared tile, see `tiles`.

Where the varying comparisons of a block fit two planes, pairs are counted in a *local table*, indexed by both plane
bytes: its part that is used stays in the processor's caches. Its counters are then added to the table of all clues.
(The many entries of a large local table count a few pairs each; adding them to a direct table would cost more than it
saves.)
Where one plane is enough, one comparison at most varies for most tuples t. Their pairs are counted all at once, from
the numbers of the tile's ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.planes import ABSENT, COMBINATIONS, LANES
from tuplewise.gpu_kernels.cpu.tally import add_row, add_weighted
from tuplewise.gpu_kernels.cpu.tiles import (
    BELOW,
    BLOCK_ROWS,
    BY_EQUALITY,
    BY_ORDER,
    CHUNK_ROWS,
    COLUMN,
    EQUAL_TO,
    SCRATCH,
    SIZE,
    TABLE,
    TERM,
    WAY,
    WEIGHT,
    WORD,
    Table,  # noqa: F401
    TileScratch,  # noqa: F401
    fill_chunk,
    plan_block,
)

LOCAL_PLANES = 2  # planes that index a local table
NEAR_VALUES = 64  # values of the second plane up to which a local table beats a direct one: 32 KiB a copy
COPIES = 2  # copies of the local table, for pairs in turn: increments of one counter wait for each other
SCAN = 32  # counters that are looked at together


class LocalCounts(NamedTuple):
    """Local table of one thread.

    Attributes
    ----------
    counts : uint16 (COPIES, COMBINATIONS ** 2), zeros between blocks. A block has at most 512 x 248 pairs, and each
        copy takes half of a tuple's, so that no counter overflows.
    index : uint32 (LANES,), entries of the pairs of one tuple t
    fixed : uint8 (BLOCK_ROWS,), sum of the digits that are constant for a tuple t
    varying : uint8 (BLOCK_ROWS,), number of its other comparisons; only : int64 (BLOCK_ROWS,), one of them
    pairs : int64 (LANES,), counters on their way to the hash table
    """

    counts: NDArray[np.uint16]
    index: NDArray[np.uint32]
    fixed: NDArray[np.uint8]
    varying: NDArray[np.uint8]
    only: NDArray[np.int64]
    pairs: NDArray[np.int64]


LOCAL = "LocalCounts(uint16[:, ::1], uint32[::1], uint8[::1], uint8[::1], int64[::1], int64[::1])"


def make_local() -> LocalCounts:
    """Allocate the local table of one thread."""
    return LocalCounts(
        counts=np.zeros((COPIES, COMBINATIONS**LOCAL_PLANES), dtype=np.uint16),
        index=np.zeros(LANES, dtype=np.uint32),
        fixed=np.zeros(BLOCK_ROWS, dtype=np.uint8),
        varying=np.zeros(BLOCK_ROWS, dtype=np.uint8),
        only=np.zeros(BLOCK_ROWS, dtype=np.int64),
        pairs=np.zeros(LANES, dtype=np.int64),
    )


@helper
def _summarise(scratch, local, varying, planes, rows):
    """Find how many comparisons vary for each tuple t of a block of at most one plane."""
    fixed, number, only = local.fixed, local.varying, local.only
    for i in range(rows):
        fixed[i] = scratch.base[0, i] if planes > 0 else np.uint8(0)
        number[i] = 0
    for v in range(varying):
        column, term = scratch.varying[v, COLUMN], scratch.varying[v, TERM]
        weight = np.uint8(scratch.varying[v, WEIGHT])
        distinct = scratch.distinct[column]
        if scratch.varying[v, WAY] == BY_EQUALITY:
            threshold = scratch.thresholds[EQUAL_TO, term]
            for i in range(rows):
                if threshold[i] != ABSENT:
                    if distinct == 1:
                        fixed[i] = np.uint8(fixed[i] + weight)
                    else:
                        number[i] += np.uint8(1)
                        only[i] = v
        elif scratch.varying[v, WAY] == BY_ORDER:
            lower, upper = scratch.thresholds[BELOW, term], scratch.thresholds[BELOW, term + 1]
            for i in range(rows):
                low, high = np.int64(lower[i]) + 128, np.int64(upper[i]) + 128
                if low == distinct:
                    fixed[i] = np.uint8(fixed[i] + 2 * weight)
                elif high > 0:
                    if low == 0 and high == distinct:
                        fixed[i] = np.uint8(fixed[i] + weight)
                    else:
                        number[i] += np.uint8(1)
                        only[i] = v
        else:
            for i in range(rows):
                number[i] = 2


@helper
def _add_split(counts, place, pairs):
    """Add to a counter of the local table, half in each copy."""
    half = pairs >> 1
    counts[0, place] += np.uint16(half)
    counts[1, place] += np.uint16(pairs - half)


@helper
def _count_at_once(scratch, local, i, lanes):
    """Count the pairs of a tuple t for which one comparison varies, from the tile's numbers of ranks."""
    v = local.only[i]
    term, place = scratch.varying[v, TERM], np.int64(local.fixed[i])
    before = scratch.before[scratch.varying[v, COLUMN]]
    weight = scratch.varying[v, WEIGHT]
    if scratch.varying[v, WAY] == BY_EQUALITY:
        rank = np.int64(scratch.thresholds[EQUAL_TO, term, i]) + 128
        equal = before[rank + 1] - before[rank]
        less = lanes - equal
    else:
        low = before[np.int64(scratch.thresholds[BELOW, term, i]) + 128]
        high = before[np.int64(scratch.thresholds[BELOW, term + 1, i]) + 128]
        equal = high - low
        less = lanes - high
        _add_split(local.counts, place + 2 * weight, low)
    _add_split(local.counts, place + weight, equal)
    _add_split(local.counts, place, less)


@helper
def _join_planes(scratch, planes, at, index):
    """Write the entries of the pairs of one tuple t in the local table, from its plane bytes."""
    first = scratch.filled[0, at]
    if planes == 1:
        for j in range(LANES):
            index[j] = np.uint32(first[j])
    else:
        second = scratch.filled[1, at]
        for j in range(LANES):
            index[j] = np.uint32(first[j]) | (np.uint32(second[j]) << np.uint32(8))


@helper
def _count_locally(scratch, local, planes, varying, t_first, t_last, u_first, u_last):
    """Count the pairs t < u of a planned block into the local table."""
    rows, lanes = t_last - t_first, u_last - u_first
    few = planes <= 1
    if few:
        _summarise(scratch, local, varying, planes, rows)
    one, other = local.counts[0], local.counts[1]
    index = local.index
    for c_first in range(0, rows, CHUNK_ROWS):
        c_last = min(c_first + CHUNK_ROWS, rows)
        filled = False
        for i in range(c_first, c_last):
            j_first = max(0, t_first + i + 1 - u_first)
            if j_first >= lanes:
                continue
            if few and local.varying[i] == 0:
                _add_split(local.counts, np.int64(local.fixed[i]), lanes - j_first)
                continue
            if few and local.varying[i] == 1 and j_first == 0:
                _count_at_once(scratch, local, i, lanes)
                continue
            if not filled:
                fill_chunk(scratch, planes, c_first, c_last)
                filled = True
            _join_planes(scratch, planes, i - c_first, index)
            for j in range(j_first, lanes - 1, 2):
                one[index[j]] += np.uint16(1)
                other[index[j + 1]] += np.uint16(1)
            if (lanes - j_first) & 1:
                one[index[lanes - 1]] += np.uint16(1)


@helper
def _any_in(one, other, first):
    """Tell whether any of SCAN counters of two copies is not 0."""
    some = np.uint16(0)
    for x in range(SCAN):
        some |= one[first + x] | other[first + x]
    return some != 0


@helper
def _move_to_direct(scratch, local, planes, counts):
    """Add the local table to the direct table, and empty it."""
    one, other = local.counts[0], local.counts[1]
    sizes, keys = scratch.sizes, scratch.keys
    for high in range(sizes[1, SIZE] if planes > 1 else 1):
        place = scratch.constant[0] + (keys[1, high] if planes > 1 else np.uint64(0))
        begin = high * COMBINATIONS
        for first in range(begin, begin + (sizes[0, SIZE] if planes > 0 else 1), SCAN):
            if _any_in(one, other, first):
                for x in range(first, first + SCAN):
                    pairs = np.uint32(one[x]) + np.uint32(other[x])
                    if pairs != 0:
                        counts[place + (keys[0, x - begin] if planes > 0 else np.uint64(0))] += pairs
                        one[x] = 0
                        other[x] = 0


@helper
def _count_wide(scratch, planes, index, counts, t_first, t_last, u_first, u_last):
    """Count the pairs t < u of a planned block of two planes or more into the direct table."""
    rows, lanes = t_last - t_first, u_last - u_first
    first_keys, second_keys = scratch.keys[0], scratch.keys[1]
    for c_first in range(0, rows, CHUNK_ROWS):
        c_last = min(c_first + CHUNK_ROWS, rows)
        fill_chunk(scratch, planes, c_first, c_last)
        for i in range(c_first, c_last):
            j_first = max(0, t_first + i + 1 - u_first)
            if j_first >= lanes:
                continue
            at = i - c_first
            index[:] = np.uint32(scratch.constant[0])
            for p in range(2, planes):
                keys, filled = scratch.keys[p], scratch.filled[p, at]
                for j in range(lanes):
                    index[j] += np.uint32(keys[filled[j]])
            first, second = scratch.filled[0, at], scratch.filled[1, at]
            for j in range(j_first, lanes):
                place = first_keys[first[j]] + second_keys[second[j]] + np.uint64(index[j])
                counts[place] += np.uint32(1)


@kernel(f"{TABLE}, {SCRATCH}, {LOCAL}, uint32[::1], int64, int64, int64, int64")
def count_direct(data, scratch, local, counts, t_first, t_last, u_first, u_last):
    """Count all pairs t < u of some tuples t and the prepared tile into `counts`, uint32 (combinations,)."""
    for first in range(t_first, t_last, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, t_last)
        planes, varying = plan_block(data, scratch, first, last, u_last - u_first)
        if planes <= 1 or (planes == LOCAL_PLANES and scratch.sizes[1, SIZE] <= NEAR_VALUES):
            _count_locally(scratch, local, planes, varying, first, last, u_first, u_last)
            _move_to_direct(scratch, local, planes, counts)
        else:
            _count_wide(scratch, planes, local.index, counts, first, last, u_first, u_last)


@helper
def _move_to_hashed(scratch, local, planes, keys, counts, used, row_keys, hashes):
    """Add the local table to the hash table, and empty it."""
    one, other = local.counts[0], local.counts[1]
    sizes = scratch.sizes
    waiting = 0
    for high in range(sizes[1, SIZE] if planes > 1 else 1):
        begin = high * COMBINATIONS
        for first in range(begin, begin + (sizes[0, SIZE] if planes > 0 else 1), SCAN):
            if _any_in(one, other, first):
                for x in range(first, first + SCAN):
                    pairs = np.int64(one[x]) + np.int64(other[x])
                    if pairs != 0:
                        for w in range(row_keys.shape[0]):
                            row_keys[w, waiting] = scratch.constant[w]
                        if planes > 0:
                            row_keys[sizes[0, WORD], waiting] += scratch.keys[0, x - begin]
                        if planes > 1:
                            row_keys[sizes[1, WORD], waiting] += scratch.keys[1, high]
                        local.pairs[waiting] = pairs
                        waiting += 1
                        one[x] = 0
                        other[x] = 0
                if waiting > LANES - SCAN:
                    keys, counts, used = add_weighted(keys, counts, used, row_keys, hashes, local.pairs, waiting)
                    waiting = 0
    return add_weighted(keys, counts, used, row_keys, hashes, local.pairs, waiting)


@helper
def _write_keys(scratch, planes, at, lanes, row_keys):
    """Write the keys of the pairs of one tuple t."""
    for w in range(row_keys.shape[0]):
        row_keys[w, :] = scratch.constant[w]
    for p in range(planes):
        keys, filled, row = scratch.keys[p], scratch.filled[p, at], row_keys[scratch.sizes[p, WORD]]
        for j in range(lanes):
            row[j] += keys[filled[j]]


@kernel(
    f"{TABLE}, {SCRATCH}, {LOCAL}, uint64[:, ::1], int64[::1], int64, uint64[:, ::1], uint64[::1], int64, int64, "
    "int64, int64"
)
def count_hashed(data, scratch, local, keys, counts, used, row_keys, hashes, t_first, t_last, u_first, u_last):
    """Count all pairs t < u of some tuples t and the prepared tile into a hash table of their keys."""
    lanes = u_last - u_first
    for first in range(t_first, t_last, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, t_last)
        planes, varying = plan_block(data, scratch, first, last, lanes)
        if planes <= LOCAL_PLANES:
            _count_locally(scratch, local, planes, varying, first, last, u_first, u_last)
            keys, counts, used = _move_to_hashed(scratch, local, planes, keys, counts, used, row_keys, hashes)
            continue
        for c_first in range(0, last - first, CHUNK_ROWS):
            c_last = min(c_first + CHUNK_ROWS, last - first)
            fill_chunk(scratch, planes, c_first, c_last)
            for i in range(c_first, c_last):
                j_first = max(0, first + i + 1 - u_first)
                if j_first < lanes:
                    _write_keys(scratch, planes, i - c_first, lanes, row_keys)
                    keys, counts, used = add_row(keys, counts, used, row_keys, hashes, j_first, lanes, 1)
    return keys, counts, used
