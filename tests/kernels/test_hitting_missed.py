"""Which edge a set misses first, against a loop by definition."""

from __future__ import annotations

import numpy as np
import pytest

from tuplewise.gpu_kernels.hitting import first_missed


@pytest.mark.parametrize("words", [1, 2])
def test_the_first_edge_that_is_not_hit(words: int) -> None:
    rng = np.random.default_rng(words)
    sets, edges = (
        np.bitwise_and.reduce(rng.integers(0, 2**20, (parts, count, words)), axis=0).astype(np.uint64)
        for parts, count in ((3, 300), (2, 200))
    )
    by_definition = [next((k for k, e in enumerate(edges) if not (s & e).any()), -1) for s in sets]
    assert first_missed(sets, edges).tolist() == by_definition
    assert first_missed(sets, edges[:0]).tolist() == [-1] * len(sets)
