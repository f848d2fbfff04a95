"""Clusters of any size, and what follows from them by definition: both twins are held against it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.inclusion import count_common, count_distinct, intersect_clusters
from tuplewise.gpu_kernels.words import mask_words

SIZES = [(0, 0), (0, 3), (1, 1), (5, 4), (40, 64), (40, 65), (300, 130)]  # clusters, attributes


def random_clusters(clusters: int, attributes: int, seed: int) -> tuple[list[set[int]], NDArray[np.int64]]:
    """Sets of attributes, some of them small and some nearly all, and how many values each has."""
    rng = np.random.default_rng(seed)
    shares = rng.choice([0.02, 0.3, 0.97], size=clusters)
    sets = [set(np.flatnonzero(rng.random(attributes) < share).tolist()) for share in shares]
    return sets, rng.integers(1, 1 << 40, size=clusters)


def packed(sets: list[set[int]], attributes: int) -> NDArray[np.uint64]:
    """uint64 (sets, words)."""
    masks = np.zeros((len(sets), mask_words(attributes)), dtype=np.uint64)
    for i, members in enumerate(sets):
        for a in members:
            masks[i, a // 64] |= np.uint64(1 << (a % 64))
    return masks


def check_twin(clusters: int, attributes: int, device: str) -> None:
    """Hold a twin against the definitions."""
    sets, values = random_clusters(clusters, attributes, seed=clusters + attributes)
    masks = packed(sets, attributes)
    inside = intersect_clusters(masks, attributes, device=device)
    common = count_common(masks, values, attributes, device=device)
    assert inside.shape == common.shape == (attributes, attributes)
    for a in range(attributes):
        own = [members for members in sets if a in members]
        assert set(np.flatnonzero(inside[a]).tolist()) == set(range(attributes)).intersection(*own)
    flags = np.array([[a in members for a in range(attributes)] for members in sets], dtype=bool)
    flags = flags.reshape(clusters, attributes)
    weighted = flags * values[:, None]
    assert (common == weighted.T @ flags.astype(np.int64)).all()
    assert (count_distinct(masks, values, attributes) == weighted.sum(axis=0)).all()
