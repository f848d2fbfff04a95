"""Evidence by tiles of the triangle of pairs on the CPU: put together, they are what all pairs at once leave."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from evidence_tiles_cases import check_cut, random_table
from oracles import clues as oracle

from tuplewise.gpu_kernels.cpu import evidence as counting
from tuplewise.gpu_kernels.evidence_tiles import count_tile, of_all_tiles, pair_triangle
from tuplewise.gpu_kernels.words import make_layout


@pytest.mark.parametrize("combinations", [1 << 23, 0], ids=["direct", "hashed"])
@pytest.mark.parametrize("seed", range(20))
def test_any_cut_is_the_whole(seed: int, combinations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "DIRECT_COMBINATIONS", combinations)
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 60))
    codes, layout = random_table(seed, rows)
    inner = np.unique(rng.integers(1, rows, rng.integers(0, 6)))
    bounds = [0, *inner.tolist(), rows]
    check_cut(codes, layout, list(itertools.pairwise(bounds)), "cpu")
    check_cut(codes, layout, int(rng.integers(1, 2 * rows)), "cpu")


@pytest.mark.parametrize("rows", [247, 248, 249, 497, 1023, 1024, 1300])
def test_rows_around_every_block_edge(rows: int) -> None:
    codes, layout = random_table(rows, rows, 3)
    check_cut(codes, layout, [(0, 1), (1, 248), (248, rows)] if rows > 248 else [(0, rows)], "cpu")
    check_cut(codes, layout, 7, "cpu")


def test_equals_definition() -> None:
    codes, layout = random_table(3, 12, 3)
    pairs = pair_triangle(codes, layout)
    arrays = (layout.left, layout.right, layout.scope, layout.ordered)
    comparisons = [(int(a), int(b), int(s), bool(o)) for a, b, s, o in zip(*arrays, strict=True)]
    clues, counts, _ = count_tile(pairs, (5, 9), device="cpu")
    found = of_all_tiles(pairs, clues, counts, True)
    rows = pairs.codes.T  # in the triangle's order, and of the columns that are compared: here all
    in_tile = [pair for u in range(5, 9) for t in range(u) for pair in ([t, u], [u, t])]
    expected = oracle.count_clues(rows.T.tolist(), comparisons, in_tile, True)
    assert found.counts is not None
    assert {tuple(c): n for c, n in zip(found.clues.tolist(), found.counts.tolist(), strict=True)} == expected


def test_tiles_hold_about_as_many_pairs_each() -> None:
    pairs = pair_triangle(np.zeros((1, 10_000), dtype=np.int32), make_layout([(0, 0, 0, False)]))
    for count in (1, 2, 7, 64):
        tiles = pairs.tiles(count)
        sizes = [(b * (b - 1) - a * (a - 1)) // 2 for a, b in tiles]
        assert len(tiles) == count
        assert sum(sizes) == 10_000 * 9_999 // 2
        assert max(sizes) < 1.1 * min(sizes)
    assert pair_triangle(np.zeros((1, 3), dtype=np.int32), pairs.layout).tiles(50) == [(0, 1), (1, 2), (2, 3)]


def test_a_time_limit_and_bad_tiles() -> None:
    codes, layout = random_table(1, 2000)
    pairs = pair_triangle(codes, layout)
    assert not count_tile(pairs, (0, 2000), device="cpu", deadline=time.monotonic() - 1)[2]
    for tile in ((0, 2001), (5, 5), (-1, 3)):
        with pytest.raises(ValueError, match="allowed: ranges in 0 to 2000"):
            count_tile(pairs, tile, device="cpu")
    with pytest.raises(ValueError, match="int32"):
        pair_triangle(codes.astype(np.int64), layout)  # type: ignore[arg-type]
