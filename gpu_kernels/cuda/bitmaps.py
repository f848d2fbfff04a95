"""Binning-hash-sort-merge on the device: joins of any comparisons by bitmaps of blocks of the right side.

As in the CPU twin, for each comparison a block keeps its rows sorted by code and, for every bin of rows, the bitmap of
the rows before the bin. Departures: blocks and bins are smaller, so that a thread's bitmap is small; each left row has
one thread, which goes through the blocks of its cluster.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from tuplewise.gpu_kernels.cuda.grouping import cluster_numbers, first_above, gathered, order_by
from tuplewise.gpu_kernels.cuda.joins import DeviceJoin
from tuplewise.gpu_kernels.cuda.primitives import empty, kernel, launch, output, to_device
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS

WORDS = 16  # 64-bit words of a block's bitmap
BLOCK = 64 * WORDS  # rows of a block at most
BIN = 32  # rows of a bin; a power of two
LOW, SIZE, START = 0, 1, 2  # columns of blocks: first row, number of rows, start of the bitmaps
FEW = 64  # rows of a block without bitmaps, at most: each row is compared


@kernel("int32[::1], int64[:,::1], int32[::1], int32[::1]")
def place_in_blocks_kernel(order, blocks, numbers, places):
    """places[i] = place in its block of the i-th row by (block, code), int32. One thread a row.

    blocks : int64 (blocks, 3), LOW, SIZE, START
    numbers : int32, the block of each row

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: a block's rows stay together in `order`.
    """
    for i in range(cuda.grid(1), order.shape[0], cuda.gridsize(1)):
        places[i] = order[i] - blocks[numbers[i], LOW]


@kernel("int64[:,::1], int32[::1], uint64[::1]")
def fill_bitmaps_kernel(blocks, places, before):
    """before = bitmap of the rows before each bin of each block, for one comparison, uint64.

    One thread a block and word: it goes through the sorted rows of the block and writes its word of all bins. Bitmap b
    of a block of w words is before[start + b w : start + b w + w].

    Grid: any size. Races: own word of each bitmap. Shared memory: 0 bytes. Assumes unchecked: blocks don't overlap.
    """
    for item in range(cuda.grid(1), blocks.shape[0] * WORDS, cuda.gridsize(1)):
        block, w = item // WORDS, item % WORDS
        low, size, start = blocks[block, LOW], blocks[block, SIZE], blocks[block, START]
        used = (size + 63) >> 6
        if size > FEW and w < used:
            word = np.uint64(0)
            for i in range(size + 1):
                if i % BIN == 0:
                    before[start + (i // BIN) * used + w] = word
                if i < size and places[low + i] >> 6 == w:
                    word |= np.uint64(1) << np.uint64(places[low + i] & 63)


@cuda.jit(device=True)
def join_before(before, start, used, places, low, place, words):
    """XOR the bitmap of all rows before a place of a block into `words`."""
    bin_ = place // BIN
    for w in range(used):
        words[w] ^= before[start + bin_ * used + w]
    for i in range(low + bin_ * BIN, low + place):
        words[places[i] >> 6] ^= np.uint64(1) << np.uint64(places[i] & 63)


@cuda.jit(device=True)
def match_block(k, block, codes, outcomes, right_codes, blocks, sorted_codes, places, before, result, words):
    """Write to result[:used] the bitmap of the rows of a block that are partners of left row k; returns `used`, its
    words.

    `words` is room for as many words.
    """
    low, size, start = blocks[block, LOW], blocks[block, SIZE], blocks[block, START]
    used = (size + 63) >> 6
    for w in range(used):
        result[w] = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - min(64, size - 64 * w))
    for d in range(codes.shape[0]):
        code, kind = codes[d, k], outcomes[d]
        for w in range(used):
            words[w] = np.uint64(0)
        if size <= FEW:
            for i in range(size):
                its = right_codes[d, low + i]
                outcome = LESS if code < its else (EQUAL if code == its else GREATER)
                if kind & outcome:
                    words[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            for w in range(used):
                result[w] &= words[w]
            continue
        # right codes: < code before `lower`, <= code before `upper`; t.A > u.A takes the rows before `lower`, and so on
        lower = first_above(sorted_codes[d], low, low + size, np.int64(code) - 1) - low
        upper = first_above(sorted_codes[d], low + lower, low + size, code) - low
        if kind == LESS | GREATER or kind == EQUAL:
            join_before(before[d], start, used, places[d], low, lower, words)
            join_before(before[d], start, used, places[d], low, upper, words)
        elif kind == LESS or kind == GREATER | EQUAL:
            join_before(before[d], start, used, places[d], low, upper, words)
        elif kind != LESS | EQUAL | GREATER:
            join_before(before[d], start, used, places[d], low, lower, words)
        flip = np.uint64(0xFFFFFFFFFFFFFFFF) if kind & LESS else np.uint64(0)
        for w in range(used):
            result[w] &= words[w] ^ flip
    return used


@kernel(
    "int32[::1], int32[:,::1], int64[::1], int64[::1], int64[:,::1], int32[:,::1], int32[:,::1], int32[:,::1], "
    "uint64[:,::1], int64, int64[::1]"
)
def count_bitmaps_kernel(
    clusters, codes, outcomes, firsts, blocks, right_codes, sorted_codes, places, before, limit, sizes
):
    """sizes[k] = partners of left row k, int64 (it stops soon beyond `limit`).

    One thread a left row; it goes through the blocks of its cluster (-1: none). Local memory: two bitmaps of a block.

    codes : int32 (comparisons, n), of the left rows; outcomes : int64 (comparisons,)
    firsts : int64 (clusters + 1,), first block of each cluster; blocks : see `place_in_blocks_kernel`
    right_codes, sorted_codes, places : int32 (comparisons, right rows), in their order, and by (block, code)
    before : uint64 (comparisons, words), see `fill_bitmaps_kernel`

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: blocks of BLOCK rows at most.
    """
    result = cuda.local.array(WORDS, np.uint64)
    words = cuda.local.array(WORDS, np.uint64)
    for k in range(cuda.grid(1), clusters.shape[0], cuda.gridsize(1)):
        found = np.int64(0)
        block = end = np.int64(0)
        if clusters[k] >= 0:
            block, end = firsts[clusters[k]], firsts[clusters[k] + 1]
        while block < end and found < limit:
            used = match_block(
                k, block, codes, outcomes, right_codes, blocks, sorted_codes, places, before, result, words
            )
            for w in range(used):
                found += cuda.popc(result[w])
            block += 1
        sizes[k] = found


@kernel(
    "int32[::1], int32[:,::1], int64[::1], int64[::1], int64[:,::1], int32[:,::1], int32[:,::1], int32[:,::1], "
    "uint64[:,::1], int32[::1], int64[::1], uint64[::1]"
)
def emit_bitmaps_kernel(
    clusters, codes, outcomes, firsts, blocks, right_codes, sorted_codes, places, before, right, offsets, keys
):
    """keys[offsets[k] : offsets[k + 1]] = k << 32 | right row: the first partners of left row k, by their places.

    One thread a left row. right: int32, the right rows. Other arrays and local memory as `count_bitmaps_kernel`.

    Grid: any size. Races: own stretch of keys, between its offsets. Shared memory: 0 bytes. Assumes unchecked: offsets
    ascend.
    """
    result = cuda.local.array(WORDS, np.uint64)
    words = cuda.local.array(WORDS, np.uint64)
    for k in range(cuda.grid(1), clusters.shape[0], cuda.gridsize(1)):
        at, room = offsets[k], offsets[k + 1]
        block = end = np.int64(0)
        if clusters[k] >= 0:
            block, end = firsts[clusters[k]], firsts[clusters[k] + 1]
        while block < end and at < room:
            match_block(k, block, codes, outcomes, right_codes, blocks, sorted_codes, places, before, result, words)
            for place in range(blocks[block, SIZE]):
                if at < room and (result[place >> 6] >> np.uint64(place & 63)) & np.uint64(1):
                    keys[at] = (np.uint64(k) << np.uint64(32)) | np.uint64(right[blocks[block, LOW] + place])
                    at += 1
            block += 1


def cut_blocks(offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Cut clusters into blocks: firsts, int64 (clusters + 1,), blocks, int64 (blocks, 3), and total words; see the
    kernels."""
    sizes = np.diff(offsets)
    firsts = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum(-(-sizes // BLOCK), out=firsts[1:])
    of_block = np.repeat(np.arange(len(sizes), dtype=np.int64), np.diff(firsts))
    blocks = np.empty((len(of_block), 3), dtype=np.int64)
    blocks[:, LOW] = offsets[of_block] + (np.arange(len(of_block)) - firsts[of_block]) * BLOCK
    blocks[:, SIZE] = np.minimum(offsets[of_block + 1] - blocks[:, LOW], BLOCK)
    words = np.where(blocks[:, SIZE] > FEW, (blocks[:, SIZE] // BIN + 1) * ((blocks[:, SIZE] + 63) // 64), 0)
    blocks[:, START] = np.cumsum(words) - words
    return firsts, blocks, int(words.sum())


class Tables(NamedTuple):
    """Blocks on the device, as `count_bitmaps_kernel` takes them."""

    outcomes: Any
    firsts: Any
    blocks: Any
    right_codes: Any
    sorted_codes: Any
    places: Any
    before: Any


class BitmapJoin(DeviceJoin):
    """Join of any comparisons. Memory on the device: 16 bytes for each right row and comparison.

    Notes
    -----
    Floor: for each left row, block of 1,024 right rows and comparison, two binary searches of 10 steps, 16 words to
    combine and up to 31 rows behind a bin, about 200 operations. 100,000 rows and three comparisons take 6e9
    operations, 0.35 ms on an H200. Recorded there, with the columns on the device: 24 ms. The loads of a search, and of
    the rows behind a bin, depend on each other, and 168 registers a thread leave room for 384 threads on a
    multiprocessor.
    """

    first_rows = 1 << 16

    @cached_property
    def _tables(self) -> Tables:
        right, n, d = self.there.right, len(self.pairs.right), len(self.comparisons)
        firsts, cut, words = cut_blocks(self.pairs.right_offsets)
        blocks = to_device(cut)
        numbers = cluster_numbers(to_device(np.append(cut[:, LOW], n)), n)
        right_codes, sorted_codes, places = (empty((d, n), np.int32) for _ in range(3))
        before = empty((d, words), np.uint64)
        for k, c in enumerate(self.comparisons):
            codes = gathered(self.there.column(c.right), right.rows)
            order = order_by(numbers, len(cut), codes)
            right_codes[k].copy_to_device(codes)
            sorted_codes[k].copy_to_device(gathered(codes, order))
            launch(place_in_blocks_kernel, n, order, blocks, numbers, places[k])
            if words:
                launch(fill_bitmaps_kernel, len(cut) * WORDS, blocks, places[k], before[k])
        outcomes = to_device(np.array([c.outcomes for c in self.comparisons], dtype=np.int64))
        return Tables(outcomes, to_device(firsts), blocks, right_codes, sorted_codes, places, before)

    def ask(self, rows: Any, clusters: Any) -> tuple[Any, Any]:
        codes = empty((len(self.comparisons), rows.shape[0]), np.int32)
        for d, c in enumerate(self.comparisons):
            codes[d].copy_to_device(gathered(self.there.column(c.left), rows))
        return clusters, codes

    def sizes(self, query: tuple[Any, Any], limit: int) -> Any:
        return output(count_bitmaps_kernel, query[0].shape[0], np.int64, *query, *self._tables, limit)

    def write(self, query: tuple[Any, Any], offsets: Any, keys: Any) -> None:
        launch(emit_bitmaps_kernel, query[0].shape[0], *query, *self._tables, self.there.right.rows, offsets, keys)
