"""One body of checks of the evidence by tiles, for the CPU, for the simulator and for a device."""

from __future__ import annotations

import pickle
from functools import reduce
from typing import Literal

import numpy as np
from evidence_between_cases import layout_of
from numpy.typing import NDArray

from tuplewise.gpu_kernels.evidence import ClueSet, collect_clues
from tuplewise.gpu_kernels.evidence_tiles import count_tile, merged, of_all_tiles, pair_triangle
from tuplewise.gpu_kernels.words import ClueLayout


def by_tiles(
    codes: NDArray[np.int32],
    layout: ClueLayout,
    tiles: list[tuple[int, int]] | int,
    device: str,
    nulls: Literal["unknown", "value"] = "unknown",
) -> ClueSet:
    """All pairs, tile by tile in another order than theirs; each other tile as another process would see it."""
    pairs = pair_triangle(codes, layout, nulls=nulls)
    sent = pickle.loads(pickle.dumps(pairs))
    cut = pairs.tiles(tiles) if isinstance(tiles, int) else tiles
    parts = [count_tile((pairs, sent)[i % 2], tile, device=device, threads=1) for i, tile in enumerate(cut)]
    assert all(part[2] for part in parts)
    clues, counts = reduce(merged, [part[:2] for part in reversed(parts)])
    return of_all_tiles(pairs, clues, counts, True)


def check_cut(codes: NDArray[np.int32], layout: ClueLayout, tiles: list[tuple[int, int]] | int, device: str) -> None:
    """Byte for byte what all pairs at once leave."""
    for nulls in ("unknown", "value"):
        whole = collect_clues(codes, layout, nulls=nulls, device="cpu")  # type: ignore[arg-type]
        found = by_tiles(codes, layout, tiles, device, nulls)  # type: ignore[arg-type]
        assert whole.counts is not None
        assert found.counts is not None
        assert found.clues.tobytes() == whole.clues.tobytes()
        assert found.counts.tobytes() == whole.counts.tobytes()
        assert found.ordered_pairs == whole.ordered_pairs == codes.shape[1] * (codes.shape[1] - 1)


def random_table(seed: int, rows: int, columns: int = 4) -> tuple[NDArray[np.int32], ClueLayout]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, rng.integers(1, 9, (columns, 1)), (columns, rows)).astype(np.int32)
    return codes, layout_of(rng, columns)
