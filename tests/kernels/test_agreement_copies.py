"""Agreement of rows that stand for several equal ones: the figures of the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tuplewise.gpu_kernels.agreement import count_agreement
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows


@pytest.mark.parametrize("seed", range(5))
def test_copies_count_as_so_many_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 4, (2, 30)).astype(np.int32)
    copies = rng.integers(1, 5, 30)
    cuts = np.array([0, 1, 9, 20, 30])  # classes, the first of one row
    rows = np.arange(30, dtype=np.int32)
    found = count_agreement(ClusterPairs(rows, cuts, rows, cuts), codes, [0, 1], copies=copies)
    apart = np.ascontiguousarray(np.repeat(codes, copies, axis=1))
    every, ends = np.arange(apart.shape[1], dtype=np.int32), np.concatenate([[0], np.cumsum(copies)])[cuts]
    wanted = count_agreement(ClusterPairs(every, ends, every, ends), apart, [0, 1])
    for name in ("rows", "classes", "majority", "differing_pairs", "contradictions"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name


def test_copies_are_one_for_each_row() -> None:
    codes = np.zeros((1, 3), dtype=np.int32)
    with pytest.raises(ValueError, match="copies: 2 for 3 rows; allowed: one for each row"):
        count_agreement(all_rows(np.arange(3, dtype=np.int32)), codes, [0], copies=np.ones(2, dtype=np.int64))
