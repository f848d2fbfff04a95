"""Binning-hash-sort-merge: joins of any comparisons by bitmaps of the right side, 64 rows an instruction.

The right side of each cluster is cut into blocks of 2,048 rows. For each comparison a block keeps its rows sorted by
code and, for every bin of 64 rows, the bitmap B of all rows before the bin. The bitmap of the rows before a place is
B(its bin) XOR at most 63 single bits. With `lower` and `upper` as the first places of codes >= and > the left code,
right codes below it are before(lower), codes up to it before(upper), equal ones before(lower) XOR before(upper). Every
operator is one of these or its complement. Comparisons are combined by AND.

Source: Pena, de Almeida, Naumann (PVLDB 15(4), 2022), section 5.3. Departures: bins have a fixed number of rows, so
that ties and skew don't matter; blocks are small enough for their bitmaps to stay in cache, where compression would
cost more than it saves; bitmaps of non-equalities come from the same tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.arrays import sort
from tuplewise.gpu_kernels.cpu.bits import bits_in
from tuplewise.gpu_kernels.cpu.grouping import cluster_numbers
from tuplewise.gpu_kernels.cpu.joins import COMPARED, Compared, CpuJoin, compared_by
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS

BLOCK = 2048  # rows of a block
WORDS = BLOCK // 64


class Blocks(NamedTuple):
    """Right side in blocks of at most BLOCK rows, each of one cluster.

    Attributes
    ----------
    rows : int32, the right rows
    offsets, firsts : int64 (clusters + 1,), first row and first block of each cluster
    starts : int64 (blocks,), first word of each block's bitmaps
    codes, places : int32, uint16 (comparisons, rows), sorted codes of each block, and their places in the block
    before : uint64 (comparisons, words), for each block and bin the bitmap of the rows before the bin
    """

    rows: NDArray[np.int32]
    offsets: NDArray[np.int64]
    firsts: NDArray[np.int64]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]
    places: NDArray[np.uint16]
    before: NDArray[np.uint64]


BLOCKS = "Blocks(int32[::1], int64[::1], int64[::1], int64[::1], int32[:, ::1], uint16[:, ::1], uint64[:, ::1])"


@kernel("int64[::1], int64[::1]")
def number_blocks(offsets, firsts):
    """Number the blocks: firsts[c] = first block of cluster c. Returns the number of blocks."""
    blocks = 0
    for c in range(len(offsets) - 1):
        firsts[c] = blocks
        blocks += (offsets[c + 1] - offsets[c] + BLOCK - 1) // BLOCK
    firsts[len(offsets) - 1] = blocks
    return blocks


@kernel("int64[::1], int64[::1], int64[::1]")
def place_blocks(offsets, firsts, starts):
    """Place the bitmaps: starts[b] = first word of block b; blocks of at most 64 rows have none. Returns the total
    words."""
    words = 0
    for c in range(len(offsets) - 1):
        for block in range(firsts[c], firsts[c + 1]):
            starts[block] = words
            _, size = span_of(c, block, offsets, firsts)
            if size > 64:
                words += ((size >> 6) + 1) * ((size + 63) >> 6)
    return words


@helper
def span_of(c, block, offsets, firsts):
    """First row of a block of cluster c, and its number of rows."""
    low = offsets[c] + (block - firsts[c]) * BLOCK
    return low, min(offsets[c + 1] - low, BLOCK)


@kernel(f"const int32[:, ::1], int64[::1], {BLOCKS}")
def build_blocks(codes, columns, blocks: Blocks):
    """Fill sorted codes, their places in the block, and the bitmap before each bin, for each comparison."""
    rows, offsets, firsts, starts, sorted_codes, sorted_places, before = blocks
    words = np.empty(WORDS, dtype=np.uint64)
    for d in range(len(columns)):
        for c in range(len(offsets) - 1):
            for block in range(firsts[c], firsts[c + 1]):
                low, size = span_of(c, block, offsets, firsts)
                if size <= 64:
                    continue
                used = (size + 63) >> 6
                keys = np.empty(size, dtype=np.int64)
                for i in range(size):
                    keys[i] = (np.int64(codes[columns[d], rows[low + i]]) << 16) | i
                sort(keys)
                words[:] = np.uint64(0)
                for i in range(size):
                    if i & 63 == 0:
                        for w in range(used):
                            before[d, starts[block] + (i >> 6) * used + w] = words[w]
                    place = keys[i] & 0xFFFF
                    sorted_codes[d, low + i] = np.int32(keys[i] >> 16)
                    sorted_places[d, low + i] = place
                    words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
                if size & 63 == 0:
                    for w in range(used):
                        before[d, starts[block] + (size >> 6) * used + w] = words[w]


@helper
def first_at(sorted_codes, low, high, code, after):
    """First place in sorted_codes[low:high], relative to low, with a code >= `code` (`after`: > `code`)."""
    first = low
    while low < high:
        middle = (low + high) >> 1
        value = sorted_codes[middle]
        if value < code or (after and value == code):
            low = middle + 1
        else:
            high = middle
    return low - first


@helper
def toggle_before(before, start, used, places, low, place, words):
    """XOR the bitmap of all rows before a place of a block into `words`."""
    bin_ = place >> 6
    for w in range(used):
        words[w] ^= before[start + bin_ * used + w]
    for i in range(low + (bin_ << 6), low + place):
        words[places[i] >> 6] ^= np.uint64(1) << np.uint64(places[i] & 63)


@helper
def compare_few(row, low, size, codes, compared, right):
    """Bitmap of at most 64 right rows that are partners of `row`, by comparing each."""
    lcolumns, rcolumns, outcomes = compared
    word = np.uint64(0)
    for i in range(size):
        good = True
        for d in range(len(lcolumns)):
            mine, its = codes[lcolumns[d], row], codes[rcolumns[d], right[low + i]]
            outcome = LESS if mine < its else (EQUAL if mine == its else GREATER)
            good &= outcomes[d] & outcome != 0
        if good:
            word |= np.uint64(1) << np.uint64(i)
    return word


@helper
def satisfied(row, block, low, size, codes, compared, blocks, result, words):
    """Write to `result` the bitmap of the rows of a block that are partners of `row`; returns whether there are any.

    Words of `result` behind the block are set to 0.
    """
    lcolumns, _, outcomes = compared
    right, _, _, starts, sorted_codes, sorted_places, before = blocks
    result[:] = np.uint64(0)
    if size <= 64:
        result[0] = compare_few(row, low, size, codes, compared, right)
        return result[0] != 0
    used = (size + 63) >> 6
    for w in range(used):
        bits = min(64, size - 64 * w)
        result[w] = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
    for d in range(len(lcolumns)):
        code = codes[lcolumns[d], row]
        kind = outcomes[d]
        if kind == LESS | EQUAL | GREATER:
            continue
        words[:] = np.uint64(0)
        # right codes: < code before `lower`, <= code before `upper`; t.A > u.A takes the rows before `lower`, and so on
        both = kind == LESS | GREATER or kind == EQUAL
        after = kind == LESS or kind == GREATER | EQUAL
        place = first_at(sorted_codes[d], low, low + size, code, after)
        toggle_before(before[d], starts[block], used, sorted_places[d], low, place, words)
        if both:
            place = first_at(sorted_codes[d], low, low + size, code, True)
            toggle_before(before[d], starts[block], used, sorted_places[d], low, place, words)
        flip = np.uint64(0xFFFFFFFFFFFFFFFF) if kind & LESS else np.uint64(0)
        some = np.uint64(0)
        for w in range(used):
            result[w] &= words[w] ^ flip
            some |= result[w]
        if some == 0:
            return False
    return True


@kernel(f"int32[::1], int32[::1], const int32[:, ::1], {COMPARED}, {BLOCKS}, int64, int64, int64[::1], int64")
def count_bitmaps(left, clusters, codes, compared: Compared, blocks: Blocks, first, last, counts, sign):
    """Count the pairs of the left places [first, last)."""
    offsets, firsts = blocks.offsets, blocks.firsts
    result = np.empty(WORDS, dtype=np.uint64)
    words = np.empty(WORDS, dtype=np.uint64)
    total = 0
    i = first
    while i < last:
        c = clusters[i]
        stop = i
        while stop < last and clusters[stop] == c:
            stop += 1
        for block in range(firsts[c], firsts[c + 1]):  # a block stays in cache for all left rows of the cluster
            low, size = span_of(c, block, offsets, firsts)
            for k in range(i, stop):
                if satisfied(left[k], block, low, size, codes, compared, blocks, result, words):
                    partners = 0
                    for w in range(WORDS):
                        partners += bits_in(result[w])
                    total += partners
                    if len(counts):
                        counts[left[k]] += sign * partners
        i = stop
    return total


@kernel(f"int32[::1], int32[::1], const int32[:, ::1], {COMPARED}, {BLOCKS}, int64[::1], uint64[::1]")
def list_bitmaps(lefts, clusters, codes, compared: Compared, blocks: Blocks, sizes, keys):
    """Count the partners of left row k into sizes[k + 1] where `keys` is empty, else list them in `keys`."""
    offsets, firsts = blocks.offsets, blocks.firsts
    result = np.empty(WORDS, dtype=np.uint64)
    words = np.empty(WORDS, dtype=np.uint64)
    right = blocks.rows
    for k in range(len(lefts)):
        c = clusters[lefts[k]]
        if c < 0:
            continue
        n = 0
        at = sizes[k] if len(keys) else 0
        for block in range(firsts[c], firsts[c + 1]):
            low, size = span_of(c, block, offsets, firsts)
            if not satisfied(lefts[k], block, low, size, codes, compared, blocks, result, words):
                continue
            if len(keys) == 0:
                for w in range(WORDS):
                    n += bits_in(result[w])
                continue
            for place in range(size):
                if (result[place >> 6] >> np.uint64(place & 63)) & np.uint64(1):
                    keys[at + n] = (np.uint64(k) << np.uint64(32)) | np.uint64(right[low + place])
                    n += 1
        if len(keys) == 0:
            sizes[k + 1] = n


@kernel(f"int32[::1], int32[::1], const int32[:, ::1], {COMPARED}, {BLOCKS}, int32[:, ::1]")
def find_bitmaps(left, clusters, codes, compared: Compared, blocks: Blocks, found):
    """Fill `found` with pairs of different rows; returns their number."""
    offsets, firsts = blocks.offsets, blocks.firsts
    result = np.empty(WORDS, dtype=np.uint64)
    words = np.empty(WORDS, dtype=np.uint64)
    right = blocks.rows
    n = 0
    for i in range(len(left)):
        c = clusters[i]
        for block in range(firsts[c], firsts[c + 1]):
            low, size = span_of(c, block, offsets, firsts)
            if not satisfied(left[i], block, low, size, codes, compared, blocks, result, words):
                continue
            for place in range(size):
                there = (result[place >> 6] >> np.uint64(place & 63)) & np.uint64(1)
                if there and right[low + place] != left[i]:
                    found[n, 0], found[n, 1] = left[i], right[low + place]
                    n += 1
                    if n == len(found):
                        return n
    return n


class BitmapJoin(CpuJoin):
    """Join of any comparisons. Memory for each right row and comparison: 6 bytes, and 4 for the bitmaps of bins."""

    task_rows = 4096

    def prepare(self) -> None:
        pairs, d = self.pairs, len(self.comparisons)
        self._compared, self._clusters = compared_by(self.comparisons), cluster_numbers(pairs.left_offsets)
        n = len(pairs.right)
        firsts = np.empty(pairs.clusters + 1, dtype=np.int64)
        starts = np.empty(int(number_blocks(pairs.right_offsets, firsts)), dtype=np.int64)
        words = int(place_blocks(pairs.right_offsets, firsts, starts))
        self._blocks = Blocks(
            rows=pairs.right,
            offsets=pairs.right_offsets,
            firsts=firsts,
            starts=starts,
            codes=np.empty((d, n), dtype=np.int32),
            places=np.empty((d, n), dtype=np.uint16),
            before=np.empty((d, words), dtype=np.uint64),
        )
        build_blocks(self.codes, self._compared.right, self._blocks)

    def count_part(self, first: int, last: int, counts: NDArray[np.int64], sign: int) -> int:
        return int(count_bitmaps(
            self.pairs.left, self._clusters, self.codes, self._compared, self._blocks, first, last, counts, sign
        ))  # fmt: skip

    def list_partners(self, query: Any, offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        list_bitmaps(*query, self.codes, self._compared, self._blocks, offsets, keys)

    def fill(self, found: NDArray[np.int32]) -> int:
        return int(find_bitmaps(self.pairs.left, self._clusters, self.codes, self._compared, self._blocks, found))
