"""Front door: searches for a few satisfying pairs that compare rows pair by pair: some at random, or all of few.

There is no CUDA twin: both searches end early where there is much to be found, and are for so few pairs that sending
the rows to a device would take longer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.cpu.joins import compared_by
from tuplewise.gpu_kernels.cpu.pair_search import find_in_clusters
from tuplewise.gpu_kernels.join_types import Comparison

SIDE = 256  # rows of each side of a block


def find_sampled(
    pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: Sequence[Comparison], *, blocks: int, limit: int
) -> NDArray[np.int32]:
    """Find at most `limit` pairs of different rows that satisfy all comparisons, in blocks of pairs drawn at random.

    A block is up to 256 left rows of a cluster, one after the other, with as many right rows. One pair of a block is
    taken at most, so that pairs are not alike.

    Parameters
    ----------
    pairs : cluster pairs; every pair of rows inside them is as likely to begin a block as another
    codes : int32 (columns, rows), C order

    Returns
    -------
    int32 (found, 2), distinct; none found says nothing of other pairs. The same in each run

    Notes
    -----
    Cost: as `find_by_comparing`. Single pairs at random would take ten times as long, for their rows lie far apart.
    """
    first_pair = np.concatenate(([0], np.cumsum(np.diff(pairs.left_offsets) * np.diff(pairs.right_offsets))))
    total = int(first_pair[-1])
    if not total:
        return np.empty((0, 2), dtype=np.int32)
    drawn = np.unique(np.random.default_rng(total).integers(0, total, blocks))
    clusters = np.searchsorted(first_pair, drawn, side="right") - 1
    width = np.diff(pairs.right_offsets)[clusters]
    begins = np.divmod(drawn - first_pair[clusters], width)
    sides = []
    for rows, offsets, begin in zip(
        (pairs.left, pairs.right), (pairs.left_offsets, pairs.right_offsets), begins, strict=True
    ):
        sizes = np.diff(offsets)[clusters]
        parts = [
            rows[low + (first + np.arange(min(SIDE, size))) % size]
            for low, first, size in zip(offsets[clusters].tolist(), begin.tolist(), sizes.tolist(), strict=True)
        ]
        sides += [np.concatenate(parts), np.concatenate(([0], np.cumsum(np.minimum(SIDE, sizes))))]
    found = np.empty((limit, 2), dtype=np.int32)
    count = find_in_clusters(*sides, codes, compared_by(list(comparisons)), 1, found)
    return np.unique(found[:count], axis=0)


def find_by_comparing(
    pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: Sequence[Comparison], *, limit: int
) -> NDArray[np.int32]:
    """Find at most `limit` pairs of different rows that satisfy all comparisons, at most one for each left row.

    Parameters
    ----------
    codes : int32 (columns, rows), C order

    Returns
    -------
    int32 (found, 2), in order of the clusters; none found means that there are none

    Notes
    -----
    Cost: pairs times the comparisons until a block of right rows has no partner left, one to two nanoseconds a
    pair; and about 200 for each left row.
    """
    found = np.empty((limit, 2), dtype=np.int32)
    count = find_in_clusters(
        pairs.left, pairs.left_offsets, pairs.right, pairs.right_offsets, codes, compared_by(list(comparisons)), -1,
        found,
    )  # fmt: skip
    return found[:count]
