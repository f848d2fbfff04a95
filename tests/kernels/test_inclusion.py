"""Intersections of clusters and common values on the CPU, and what the front door refuses."""

from __future__ import annotations

import numpy as np
import pytest
from inclusion_cases import SIZES, check_twin

from tuplewise.gpu_kernels.inclusion import count_common, intersect_clusters


@pytest.mark.parametrize(("clusters", "attributes"), SIZES)
def test_cpu_is_the_definition(clusters: int, attributes: int) -> None:
    check_twin(clusters, attributes, "cpu")


def test_thousands_of_attributes() -> None:
    rng = np.random.default_rng(1)
    flags = rng.random((500, 3000)) < 0.4
    masks = np.zeros((500, 47 * 64), dtype=bool)
    masks[:, :3000] = flags
    words = np.packbits(masks, axis=1, bitorder="little").view(np.uint64)
    inside = intersect_clusters(words, 3000, device="cpu")
    misses = (flags.T.astype(np.float32) @ (~flags).astype(np.float32)) > 0
    assert (inside == ~misses).all()


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"masks: uint64 \(1, 2\); allowed: uint64 \(clusters, 1\)"):
        intersect_clusters(np.zeros((1, 2), dtype=np.uint64), 5, device="cpu")
    with pytest.raises(ValueError, match="values: 0 entries; allowed: one for each of 1 clusters"):
        count_common(np.zeros((1, 1), dtype=np.uint64), np.zeros(0, dtype=np.int64), 5, device="cpu")
