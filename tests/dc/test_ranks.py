"""Ranks by the places that a checkpoint has counted stand to each other as the codes do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.initial import packed_columns
from tuplewise.engine.dc.incremental.ranks import rank_codes, ranks_by_places
from tuplewise.engine.table.rows import KeptColumn

COLUMNS = [KeptColumn("a", "integer", ""), KeptColumn("b", "text", ""), KeptColumn("c", "integer", "")]


def codes_of(rng: np.random.Generator, rows: int) -> NDArray[np.int32]:
    codes = (rng.integers(-1, 9, (rows, 3)) * 100_000_000).astype(np.int32)
    codes[codes < 0] = -1
    return codes


@pytest.mark.parametrize("seed", range(25))
def test_ranks_by_places_keep_order_and_nulls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, tail = codes_of(rng, int(rng.integers(0, 40))), codes_of(rng, int(rng.integers(0, 9)))
    codes = np.concatenate([base, tail])
    rows = rng.permutation(len(codes))[: int(rng.integers(0, len(codes) + 1))]
    packed = packed_columns(base)
    kept = [(packed[f"column/{c}/codes"], packed[f"column/{c}/places"]) for c in range(3)]
    ranks, described = ranks_by_places(COLUMNS, kept, tail, rows)
    exact, counted, _ = rank_codes(COLUMNS, codes[rows])
    np.testing.assert_array_equal(ranks < 0, codes[rows].T < 0)
    for a, b in ((0, 0), (1, 1), (2, 2), (0, 2)):  # columns of one domain
        np.testing.assert_array_equal(
            np.sign(ranks[a][:, None] - ranks[b][None, :]), np.sign(exact[a][:, None] - exact[b][None, :])
        )
    assert [(c.name, c.type, c.nulls) for c in described] == [(c.name, c.type, c.nulls) for c in counted]
    assert all(mine.distinct >= theirs.distinct for mine, theirs in zip(described, counted, strict=True))
    assert ranks.max(initial=-1) < len(np.unique(codes))
    if len(rows) == len(codes):
        np.testing.assert_array_equal(ranks, exact)
        assert [c.distinct for c in described] == [c.distinct for c in counted]
