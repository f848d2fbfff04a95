"""Edges that sets don't hit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel


@kernel("uint64[:, ::1], uint64[:, ::1]")
def first_missed(sets: NDArray[np.uint64], edges: NDArray[np.uint64]) -> NDArray[np.int64]:
    """First edge that each set doesn't hit, -1 where it hits all."""
    found = np.full(len(sets), -1, dtype=np.int64)
    for i in range(len(sets)):
        for e in range(len(edges)):
            hit = False
            for w in range(sets.shape[1]):
                hit |= sets[i, w] & edges[e, w] != 0
            if not hit:
                found[i] = e
                break
    return found


@kernel("uint64[:, ::1], uint64[:, ::1], int64[::1]")
def missed_weights(
    sets: NDArray[np.uint64], edges: NDArray[np.uint64], weights: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Total weight of the edges that each set doesn't hit."""
    found = np.zeros(len(sets), dtype=np.int64)
    for i in range(len(sets)):
        for e in range(len(edges)):
            hit = np.uint64(0)
            for w in range(sets.shape[1]):
                hit |= sets[i, w] & edges[e, w]
            if hit == 0:
                found[i] += weights[e]
    return found
