"""Cutting pairs into tiles: each pair that may violate lies in one tile, and sums over tiles are what the whole has."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from dc.check_tables import Rules, as_rule, random_table, rows_of
from dc.dc_tables import encode
from numpy.typing import NDArray
from oracles.check import violations

from tuplewise.engine.dc.violations.count import row_counts
from tuplewise.engine.dc.violations.program import Program, bind, passing_rows
from tuplewise.engine.spark.layout import PairShape
from tuplewise.engine.spark.tiles import (
    LEFT,
    RIGHT,
    BlockFigures,
    Blocks,
    TileSizes,
    block_keys,
    choose_blocks,
    destinations,
    local_rows,
    pack,
    partition_keys,
    plan_tiles,
    spark_hash,
)
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS

SMALL = TileSizes(rows=40, slots=2, tile_rows=9, least_rows=3)


def mask(codes: NDArray[np.int32], tests: Any, needed: Any) -> NDArray[np.bool_]:
    found = passing_rows(codes, tests, needed)
    return np.ones(codes.shape[1], dtype=np.bool_) if found is None else found


def figures(
    blocks: Blocks, of: NDArray[np.int64], fits: NDArray[np.bool_], read: list[NDArray[np.int32]]
) -> BlockFigures:
    count = len(blocks.group)
    rows = np.bincount(of[fits], minlength=count)
    low, high = np.zeros((2, len(read), count), dtype=np.int32)
    for i, column in enumerate(read):
        for b in np.flatnonzero(rows):
            low[i, b], high[i, b] = column[fits & (of == b)].min(), column[fits & (of == b)].max()
    return BlockFigures(rows, low, high)


def counted_by_tiles(codes: NDArray[np.int32], program: Program, *, full: bool) -> NDArray[np.int64]:
    """Pairs of each row as t and as u, int64 (2, rows): the way of Spark, all rows as one heavy group."""
    shape = PairShape.of(program)
    n = codes.shape[1]
    positions = np.arange(n, dtype=np.int64)
    fits = [
        mask(codes, program.left_tests, program.left_needed),
        mask(codes, program.right_tests, program.right_needed),
    ]
    split = [np.zeros(n, np.int32)] * 2
    if shape.split is not None:
        split = [codes[shape.split.left], codes[shape.split.right]]
    group = np.zeros(n, dtype=np.int64)
    keys = [block_keys(group, column) for column in split]
    blocks = choose_blocks(np.array([n]), np.concatenate(keys), SMALL)
    of = [blocks.of(k, positions) for k in keys]
    # all comparisons count as others here: the group is not one of equal keys
    others = program.comparisons
    sides = [figures(blocks, of[s], fits[s], [codes[(c.left, c.right)[s]] for c in others]) for s in range(2)]
    alike, mirrored = of[0] is of[1] or bool((of[0] == of[1]).all()), False
    mirrored = alike and program.symmetric
    tiles = plan_tiles(blocks.group, *sides, [c.outcomes for c in others], mirrored=mirrored, full=full)
    found = np.zeros((2, n), dtype=np.int64)
    block, tile, side = destinations(tiles, alike)
    for number in range(len(tiles)):
        mine = tile == number
        came: list[NDArray[np.int64]] = []
        sent: list[NDArray[np.int8]] = []
        for b, s in zip(block[mine].tolist(), side[mine].tolist(), strict=True):
            for which in (LEFT, RIGHT):
                if s & which:
                    rows = np.flatnonzero(fits[which - 1] & (of[which - 1] == b))
                    came.append(rows)
                    sent.append(np.full(len(rows), which, dtype=np.int8))
        order, left, right = local_rows(np.concatenate(came), np.concatenate(sent))
        here = np.concatenate(came)[order]
        local = np.ascontiguousarray(codes[:, here])
        as_t, as_u = row_counts(local, program, left=left, right=right, device="cpu")
        if mirrored and tiles.left[number] != tiles.right[number]:
            as_t = as_u = as_t + as_u
        found[0, here] += as_t
        found[1, here] += as_u
    for i, j in zip(tiles.full_left.tolist(), tiles.full_right.tolist(), strict=True):
        for a, b in {(i, j), (j, i)} if mirrored else {(i, j)}:
            in_left, in_right = fits[0] & (of[0] == a), fits[1] & (of[1] == b)
            found[0, in_left] += in_right.sum()
            found[1, in_right] += in_left.sum()
            found[:, in_left & in_right] -= 1
    full_pairs = tiles.full_pairs(*sides)
    assert full or not full_pairs
    return found


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_tiles_add_up_to_the_whole(seed: int, full: bool) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        table = random_table(rng, 40)
        relation, rows = encode(table), rows_of(table)
        for kind, rule in Rules(rng, table).each():
            program = bind(as_rule(table, rule), relation, rng.choice(["unknown", "value"]))
            if program.one_row or program.never:
                continue
            found = counted_by_tiles(relation.codes, program, full=full)
            truth = violations(rows, rule, "value" if program.keep_nulls else "unknown")
            wanted = np.zeros((2, 40), dtype=np.int64)
            for t, u in truth.pairs:
                wanted[0, t] += 1
                wanted[1, u] += 1
            assert np.array_equal(found, wanted), (kind, rule, table)


def test_blocks_are_about_equal_and_values_stay_together() -> None:
    rng = np.random.default_rng(3)
    sizes = TileSizes(rows=100_000, slots=8, tile_rows=10_000, least_rows=1_000)
    codes = rng.zipf(1.3, 100_000).clip(0, 10**6).astype(np.int32)
    group = (np.arange(100_000) % 2).astype(np.int64)
    keys = block_keys(group, codes)
    rows = np.bincount(group)
    sample = rng.random(100_000) < 0.1
    blocks = choose_blocks(rows, keys[sample], sizes)
    positions = rng.permutation(100_000)
    of = blocks.of(keys, positions)
    assert (blocks.group[of] == group).all()
    assert np.bincount(of).max() <= 1.6 * 10_000
    within = np.searchsorted(blocks.bounds, keys, side="right") - 1
    assert (blocks.first[within] <= of).all()
    assert (of < blocks.first[within] + blocks.parts[within]).all()
    alone = choose_blocks(np.array([100_000]), np.zeros(0, np.int64), sizes)
    for step in range(1, 20):  # a value that comes back in every so many rows
        cut = alone.of(np.zeros(10_000, np.int64), step * np.arange(10_000))
        assert np.bincount(cut, minlength=alone.parts[0]).max() < 1.2 * 10_000 / alone.parts[0]
    assert len(alone.bounds) == 1
    assert alone.parts.tolist() == [sizes.blocks(100_000)]


def test_extremes_tell_what_need_not_be_looked_at() -> None:
    group = np.zeros(3, dtype=np.int64)
    low, high = np.array([[0, 10, 20]], np.int32), np.array([[9, 19, 20]], np.int32)
    side = BlockFigures(np.array([4, 5, 6]), low, high)

    def planned(outcomes: int, *, mirrored: bool = False) -> tuple[Any, Any]:
        t = plan_tiles(group, side, side, [outcomes], mirrored=mirrored)
        return (
            list(zip(t.left.tolist(), t.right.tolist(), strict=True)),
            list(zip(t.full_left.tolist(), t.full_right.tolist(), strict=True)),
        )

    assert planned(LESS) == ([(0, 0), (1, 1)], [(0, 1), (0, 2), (1, 2)])  # block 2 holds one value
    assert planned(GREATER | EQUAL) == ([(0, 0), (1, 1)], [(1, 0), (2, 0), (2, 1), (2, 2)])
    assert planned(LESS | GREATER, mirrored=True) == ([(0, 0), (1, 1)], [(0, 1), (0, 2), (1, 2)])
    tiles = plan_tiles(group, side, side, [LESS | GREATER], mirrored=True)
    assert tiles.full_pairs(side, side) == 2 * (4 * 5 + 4 * 6 + 5 * 6)
    huge = BlockFigures(np.array([2**33, 2**33, 1]), low, high)
    assert plan_tiles(group, huge, huge, [LESS], mirrored=False).full_pairs(huge, huge) == 2**66 + 2 * 2**33


def test_groups_never_meet() -> None:
    group = np.array([0, 0, 1, 2, 2])
    some = BlockFigures(np.array([1, 2, 3, 0, 4]), np.zeros((0, 5), np.int32), np.zeros((0, 5), np.int32))
    tiles = plan_tiles(group, some, some, [], mirrored=False, full=False)
    assert list(zip(tiles.left.tolist(), tiles.right.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (4, 4),
    ]  # fmt: skip


def test_what_numbers_decide() -> None:
    few = TileSizes(rows=1_000, slots=16, tile_rows=1_000_000)
    assert (few.heavy_rows, few.light_tiles(1_000), few.blocks(1_000)) == (50_000, 1, 1)
    many = TileSizes(rows=10**9, slots=64, tile_rows=10**6)
    assert many.heavy_rows == 10**6
    assert many.light_tiles(10**9) == 1_000
    assert many.blocks(10**9) == 1_000
    assert many.blocks(3 * 10**6) == 3


def test_tiles_are_packed_evenly() -> None:
    costs = np.array([100, 1, 1, 1, 50, 50, 99, 2])
    chosen = pack(costs, 3)
    loads = np.bincount(chosen, weights=costs, minlength=3)
    assert loads.max() <= 110
    assert pack(np.zeros(0, np.int64), 3).tolist() == []


def test_rows_that_came_for_both_sides_are_one() -> None:
    positions = np.array([50, 7, 50, 9, 7], dtype=np.int64)
    sides = np.array([LEFT, LEFT, RIGHT, RIGHT, LEFT], dtype=np.int8)
    order, left, right = local_rows(positions, sides)
    assert positions[order].tolist() == [7, 9, 50]
    assert (left.tolist(), right.tolist()) == ([0, 2], [1, 2])
    assert [len(x) for x in local_rows(np.zeros(0, np.int64), np.zeros(0, np.int8))] == [0, 0, 0]


def test_hashes_are_sparks() -> None:
    known = {0: 933211791, 1: -559580957, 2: 1765031574, 42: 29417773, -1: -1604776387}  # select hash(...) of Spark 4.1
    assert spark_hash(np.array(list(known), dtype=np.int32)).tolist() == list(known.values())
    for partitions in (1, 2, 7, 200, 1000):
        keys = partition_keys(partitions)
        assert (spark_hash(keys).astype(np.int64) % partitions).tolist() == list(range(partitions))
