"""Tables that are hard on kernels: sizes at the edges of blocks, nulls, ties, constants, codes far apart or large."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu_records import simulated

Codes = NDArray[np.int32]
LARGEST = np.iinfo(np.int32).max
EDGES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025)
LARGE_EDGES = ((1 << 16) - 1, 1 << 16, (1 << 16) + 1)


def ties(rng: np.random.Generator, columns: int, rows: int) -> Codes:
    """Few values and nulls."""
    return rng.integers(-1, 5, (columns, rows)).astype(np.int32)


def sorted_once(rng: np.random.Generator, columns: int, rows: int) -> Codes:
    """Columns that rise, fall and rise in steps: every pair has the clue of its neighbours."""
    up = np.arange(rows, dtype=np.int32)
    return np.stack([(up, up[::-1], up // 7)[c % 3] for c in range(columns)]).astype(np.int32)


def ranked(codes: Codes) -> Codes:
    """Dense ranks over all columns together, nulls stay -1: what is compared gives the same outcome."""
    values, places = np.unique(codes, return_inverse=True)
    return (places.reshape(codes.shape) - np.count_nonzero(values < 0)).astype(np.int32)


def far_apart(rng: np.random.Generator, columns: int, rows: int) -> Codes:
    """Codes with wide gaps, nulls among them."""
    codes = rng.integers(0, 40, (columns, rows)) * 50_000_000
    codes[rng.random((columns, rows)) < 0.1] = -1
    return codes.astype(np.int32)


def near_the_largest(rng: np.random.Generator, columns: int, rows: int) -> Codes:
    """Codes up to the largest int32, and nulls (the simulator can't subtract -1 from it; a GPU's integers wrap)."""
    codes = LARGEST - int(simulated()) - rng.integers(0, 6, (columns, rows))
    codes[rng.random((columns, rows)) < 0.1] = -1
    return codes.astype(np.int32)


def constants(rng: np.random.Generator, columns: int, rows: int) -> Codes:
    return np.zeros((columns, rows), dtype=np.int32)


def nulls_only(rng: np.random.Generator, columns: int, rows: int) -> Codes:
    return np.full((columns, rows), -1, dtype=np.int32)


def keys(rng: np.random.Generator, columns: int, rows: int) -> Codes:
    """Every value once in each column."""
    return np.stack([rng.permutation(rows) for _ in range(columns)]).astype(np.int32)


KINDS: dict[str, Callable[[np.random.Generator, int, int], Codes]] = {
    "ties and nulls": ties, "sorted": sorted_once, "codes far apart": far_apart,
    "codes up to the largest": near_the_largest, "constants": constants, "nulls only": nulls_only, "keys": keys,
}  # fmt: skip


def hard_tables(smoke: bool, columns: int, large: bool = True) -> Iterator[tuple[str, Codes]]:
    """Each kind in some sizes, and ties in all sizes around the edges of blocks: names and codes.

    `large` : with sizes around 2^16, too.
    """
    rng = np.random.default_rng(40)
    usual = (3,) if simulated() else (33, 300) if smoke else (129, 3000)
    for name, make in KINDS.items():
        for rows in usual:
            yield f"{name}, {rows} rows", make(rng, columns, rows)
    edges = EDGES[:2] if simulated() else EDGES[:8] if smoke else EDGES
    for rows in (*edges, *(LARGE_EDGES if large and not smoke else ())):
        yield f"ties, {rows} rows", ties(rng, columns, rows)
