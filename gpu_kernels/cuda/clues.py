"""CUDA twin: distinct clues of chosen pairs of rows, as tiles of the evidence kernel.

Cluster pairs become groups of rows, whose pairs the evidence kernel compares. The host remembers which clues were
returned, since distinct clues are few. Scattered pairs (samples, witnesses) are compared on the host.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import clues as cpu
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.evidence import collect_clues
from tuplewise.gpu_kernels.words import ClueLayout

FAR_APART = 4  # codes for each cell up to which a table over the codes is used


class ComparableRows(cpu.ComparableRows):
    """Rows of a table laid out for comparing. The rows of a clue are not returned.

    Notes
    -----
    Floor of `within`: that of `evidence.run` for the pairs of the groups. `of_pairs` doesn't use the device.
    """

    def __init__(self, codes: NDArray[np.int32], layout: ClueLayout, nullable: bool, device: Device) -> None:
        super().__init__(codes, layout, nullable)
        self._codes, self._nullable, self._device = as_ranks(codes), nullable, device

    def within(
        self, pairs: ClusterPairs, control: Control
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], bool]:
        members, offsets = groups_of(pairs)
        found = collect_clues(
            self._codes,
            self._layout,
            nulls="unknown" if self._nullable else "value",
            members=members,
            group_offsets=offsets,
            counting=False,
            device=self._device,
            deadline=control.deadline,
            progress=control.progress,
            threads=control.threads,
        )
        keys = cpu.encode(found.clues, self._terms)
        clues, _ = self._new(keys, np.zeros((len(keys), 2), dtype=np.int32))
        return clues, np.zeros((0, 2), dtype=np.int32), found.complete


def as_ranks(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the codes, or where they lie far apart dense ranks over all columns together, which keep every
    comparison."""
    if int(codes.max(initial=0)) < FAR_APART * max(1, codes.size):
        return codes
    values, places = np.unique(codes, return_inverse=True)
    return (places.reshape(codes.shape) - np.count_nonzero(values < 0)).astype(np.int32)


def groups_of(pairs: ClusterPairs) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Groups of rows that contain every pair of the cluster pairs: members int32, offsets int64 (groups + 1,).

    Where the sides differ, a group has the rows of both. It then has more pairs than were asked for; their clues are
    valid.
    """
    if pairs.reflexive:
        return pairs.left, pairs.left_offsets
    sides = [
        np.repeat(np.arange(pairs.clusters, dtype=np.int64), np.diff(offsets))
        for offsets in (pairs.left_offsets, pairs.right_offsets)
    ]
    both = np.unique(
        np.stack([np.concatenate(sides), np.concatenate([pairs.left, pairs.right]).astype(np.int64)], axis=1), axis=0
    )
    offsets = np.searchsorted(both[:, 0], np.arange(pairs.clusters + 1)).astype(np.int64)
    return both[:, 1].astype(np.int32), offsets
