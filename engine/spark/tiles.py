"""Division of a table's pairs into tiles: a block of left rows with a block of right rows, each tile for one task.

Every ordered pair that could satisfy a rule lies in exactly one tile. The plan is made from numbers only (rows, sampled
codes, lowest and highest code of each block), without Spark; `run.py` sends the rows to their tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS
from tuplewise.gpu_kernels.word_hash import SPREAD

LEFT = 1
RIGHT = 2
LEAST_ROWS = 50_000
"""Rows that a task works on for about as long as it takes to start: fewer are not worth a task of their own."""
MOST_PARTITIONS = 20_000
WAVES = 3
"""Tasks for each slot: the last ones to end are then short."""
SAMPLES = 200
"""Sampled rows for each block: its size is then off by a tenth or so."""
LARGER = 0.25
"""How much larger than it should be a block may be before it is halved."""


@dataclass(frozen=True, slots=True)
class TileSizes:
    """Sizes for cutting groups into blocks.

    Attributes
    ----------
    rows : rows of the table
    slots : tasks that run at the same time
    tile_rows : rows of one side of a tile that fit the memory of a task
    least_rows : rows that are worth a task
    most_partitions : limit that keeps the load of the scheduler low; further tiles share partitions

    Examples
    --------
    >>> sizes = TileSizes(rows=10_000_000, slots=16, tile_rows=1_000_000)
    >>> sizes.heavy_rows, sizes.light_tiles(8_000_000), sizes.blocks(10_000_000)
    (625000, 48, 10)
    """

    rows: int
    slots: int
    tile_rows: int
    least_rows: int = LEAST_ROWS
    most_partitions: int = MOST_PARTITIONS

    @property
    def heavy_rows(self) -> int:
        """The size from which a group is cut into blocks: more than a task's share, or than its memory."""
        return min(self.tile_rows, max(self.least_rows, self.rows // self.slots))

    def light_tiles(self, rows: int) -> int:
        """The number of tiles for so many rows of groups that are not cut."""
        return max(1, _parts(rows, self.tile_rows), min(WAVES * self.slots, _parts(rows, self.least_rows)))

    def blocks(self, group_rows: int) -> int:
        """The number of blocks of a group that is cut: enough for memory, and for tiles in all slots."""
        share = group_rows / max(1, self.rows)
        for_slots = int(np.ceil(np.sqrt(2 * self.slots * share)))
        return max(1, _parts(group_rows, self.tile_rows), min(for_slots, _parts(group_rows, self.least_rows)))


def _parts(rows: int, size: int) -> int:
    return -(-rows // size)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Groups, cut into ranges of codes; ranges with too many rows of few values are cut into blocks by position.

    Attributes
    ----------
    bounds : int64 (ranges,), ascending: first key (`block_keys`) of each range; each group starts a range
    first : int64 (ranges,), number of the first block of each range
    parts : int64 (ranges,), blocks of each range; a row is in block `first + mixed(position) % parts`
    group : int64 (blocks,), group of each block
    """

    bounds: NDArray[np.int64]
    first: NDArray[np.int64]
    parts: NDArray[np.int64]
    group: NDArray[np.int64]

    def of(self, keys: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Blocks of rows."""
        within = np.searchsorted(self.bounds, keys, side="right") - 1
        return np.asarray(self.first[within] + mixed(positions) % self.parts[within], dtype=np.int64)


def mixed(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hash positions to 31 bits, since values in a table may follow a pattern of positions (every third row, say)."""
    spread = positions.astype(np.uint64) * SPREAD
    return np.asarray(spread >> np.uint64(33), dtype=np.int64)


def block_keys(groups: NDArray[np.int64], codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """One number for a group and a code, ordered by both; null (-1) comes first."""
    return (groups << 32) + codes + 1


def choose_blocks(group_rows: NDArray[np.int64], sampled_keys: NDArray[np.int64], sizes: TileSizes) -> Blocks:
    """Choose blocks of about equal size.

    Parameters
    ----------
    group_rows : int64 (groups,)
    sampled_keys : int64, keys of sampled rows, of both sides together
    """
    keys = np.sort(sampled_keys)
    ends = np.searchsorted(keys, np.arange(len(group_rows) + 1, dtype=np.int64) << 32)
    bounds, parts = [], []
    for g, rows in enumerate(group_rows.tolist()):
        own = keys[ends[g] : ends[g + 1]]
        wanted = sizes.blocks(rows)
        cuts = np.unique(own[np.arange(1, wanted) * len(own) // wanted]) if len(own) else own
        cuts = cuts[cuts > own[0]] if len(own) else cuts
        starts = np.concatenate([[np.int64(g) << 32], cuts])
        counts = np.diff(np.concatenate([[0], np.searchsorted(own, cuts), [len(own)]]))
        share = counts / len(own) if len(own) else np.ones(1)
        bounds.append(starts)
        parts.append(np.maximum(1, np.ceil(share * wanted - LARGER)).astype(np.int64))
    made = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    all_bounds = np.concatenate(bounds) if bounds else np.zeros(0, dtype=np.int64)
    return Blocks(all_bounds, np.cumsum(made) - made, made, np.repeat(all_bounds >> 32, made))


@dataclass(frozen=True, eq=False)
class BlockFigures:
    """Figures of the rows of one side, block by block.

    Attributes
    ----------
    rows : int64 (blocks,)
    low, high : int32 (comparisons, blocks), extremes of the column that each comparison reads on this side
    """

    rows: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles by the numbers of their blocks, int64 each. Pairs of blocks in neither list hold no satisfying pair.

    Attributes
    ----------
    left, right : tiles whose pairs have to be checked
    full_left, full_right : tiles all of whose pairs satisfy all comparisons (a row with itself included)
    mirrored : whether a tile of two blocks stands for its mirror as well
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    full_left: NDArray[np.int64]
    full_right: NDArray[np.int64]
    mirrored: bool

    def __len__(self) -> int:
        return len(self.left)

    def full_pairs(self, left: BlockFigures, right: BlockFigures) -> int:
        """Ordered pairs in the full tiles, a row with itself included."""
        products = left.rows[self.full_left].astype(object) * right.rows[self.full_right].astype(object)
        twice = products[self.full_left != self.full_right].sum() if self.mirrored else 0
        return int(products.sum() + twice)


def plan_tiles(
    group: NDArray[np.int64],
    left: BlockFigures,
    right: BlockFigures,
    outcomes: Sequence[int],
    *,
    mirrored: bool,
    full: bool = True,
) -> Tiles:
    """The tiles of all groups.

    Parameters
    ----------
    group : int64 (blocks,), ascending
    outcomes : bits LESS, EQUAL, GREATER of each comparison
    mirrored : keep only tiles with left <= right (for a rule that is its own mirror, over the same blocks)
    full : list full tiles separately; otherwise they are checked like the others

    Notes
    -----
    One test of two extremes for each pair of blocks of one group and each comparison.
    """
    edges = np.flatnonzero(np.diff(group)) + 1
    looked: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    filled: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for begin, end in zip([0, *edges], [*edges, len(group)], strict=True):
        members = np.arange(begin, end)
        possible = np.outer(left.rows[members] > 0, right.rows[members] > 0)
        if mirrored:
            possible &= members[:, None] <= members[None, :]
        certain = np.full(possible.shape, full)
        for c, allowed in enumerate(outcomes):
            can = _possible_outcomes(left, right, c, members)
            possible &= (can & allowed) != 0
            certain &= (can & ~allowed) == 0
        for chosen, into in ((possible & ~certain, looked), (possible & certain, filled)):
            i, j = np.nonzero(chosen)
            into.append((members[i], members[j]))
    parts = [np.concatenate([pair[side] for pair in found]) for found in (looked, filled) for side in (0, 1)]
    return Tiles(parts[0], parts[1], parts[2], parts[3], mirrored)


def _possible_outcomes(
    left: BlockFigures, right: BlockFigures, comparison: int, members: NDArray[np.int64]
) -> NDArray[np.int8]:
    """The possible outcomes for a pair of rows of two blocks: int8 (blocks, blocks) of bits."""
    left_low, left_high = (x[comparison][members][:, None] for x in (left.low, left.high))
    right_low, right_high = (x[comparison][members][None, :] for x in (right.low, right.high))
    less = (left_low < right_high) * np.int8(LESS)
    equal = ((left_low <= right_high) & (right_low <= left_high)) * np.int8(EQUAL)
    greater = (left_high > right_low) * np.int8(GREATER)
    return np.asarray(less | equal | greater, dtype=np.int8)


def destinations(tiles: Tiles, same_blocks: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """The destinations of the rows of each block: block, tile, and side (LEFT, RIGHT, or both bits).

    `same_blocks`: both sides have the same blocks, so a tile of a block with itself gets each row once, for both sides.
    """
    tile = np.arange(len(tiles), dtype=np.int64)
    once = (tiles.left == tiles.right) if same_blocks else np.zeros(len(tiles), dtype=np.bool_)
    left_side = np.where(once, LEFT | RIGHT, LEFT).astype(np.int8)
    two = ~once
    return (
        np.concatenate([tiles.left, tiles.right[two]]),
        np.concatenate([tile, tile[two]]),
        np.concatenate([left_side, np.full(int(two.sum()), RIGHT, dtype=np.int8)]),
    )


def pack(costs: NDArray[np.int64], partitions: int) -> NDArray[np.int64]:
    """Assign tiles to partitions, the most costly ones first, back and forth. `costs`: int64 (tiles,)."""
    order = np.argsort(-costs, kind="stable")
    turn = np.arange(len(costs)) % (2 * partitions)
    chosen = np.empty(len(costs), dtype=np.int64)
    chosen[order] = np.minimum(turn, 2 * partitions - 1 - turn)
    return chosen


def partition_keys(partitions: int) -> NDArray[np.int32]:
    """For each partition the lowest number that Spark's hash partitioning sends there.

    Spark's exchange by explicit partition number does not run on the GPU.
    """
    keys = np.full(partitions, -1, dtype=np.int32)
    begin, step = 0, max(64, 4 * partitions)
    while (keys < 0).any():
        numbers = np.arange(begin, begin + step, dtype=np.int32)
        places, first = np.unique(spark_hash(numbers).astype(np.int64) % partitions, return_index=True)
        new = keys[places] < 0
        keys[places[new]] = numbers[first[new]]
        begin += step
    return keys


def spark_hash(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Spark's hash of one column of 32-bit integers: Murmur3 with seed 42."""
    with np.errstate(over="ignore"):
        k = numbers.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = _rotated(k, 15) * np.uint32(0x1B873593)
        h = _rotated(np.uint32(42) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return np.asarray(h ^ (h >> np.uint32(16)), dtype=np.uint32).view(np.int32)


def _rotated(bits: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return np.asarray((bits << np.uint32(by)) | (bits >> np.uint32(32 - by)), dtype=np.uint32)


def local_rows(
    positions: NDArray[np.int64], sides: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The rows of a tile in order of position. A row that was sent for both sides appears once.

    Returns
    -------
    order : int64 (rows,), place of each row among the received ones
    left, right : int32, the rows (by their place in `order`) of each side, ascending
    """
    order = np.argsort(positions, kind="stable")
    sorted_positions = positions[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = sorted_positions[1:] != sorted_positions[:-1]
    side = sides[order]
    if not begins.all():
        side = np.bitwise_or.reduceat(side, np.flatnonzero(begins))
        order = order[begins]
    left, right = (np.flatnonzero(side & which).astype(np.int32) for which in (LEFT, RIGHT))
    return order, left, right
