"""Parameters of a search for hitting sets: which sets are wanted, and the weight that they may leave unhit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.words import as_masks


class Wanted(NamedTuple):
    """Choice of the minimal hitting sets that are wanted. Make one with `wanted_sets`.

    Attributes
    ----------
    atoms : int
    mirror : int64 (atoms,), the atom itself where sets have no mirror
    group : int64 (atoms,)
    group_masks : uint64 (groups, words), the atoms of each group
    exclusive : bool
    max_groups : int
    symmetric : bool, whether one set of each mirror pair is enough
    """

    atoms: int
    mirror: NDArray[np.int64]
    group: NDArray[np.int64]
    group_masks: NDArray[np.uint64]
    exclusive: bool
    max_groups: int
    symmetric: bool


WANTED = "Wanted(int64, int64[::1], int64[::1], uint64[:, ::1], boolean, int64, boolean)"


def wanted_sets(
    group: NDArray[np.int32],
    *,
    mirror: NDArray[np.int32] | None = None,
    exclusive: bool = False,
    max_groups: int | None = None,
) -> Wanted:
    """Choose the hitting sets that are wanted.

    Parameters
    ----------
    group : int32 array (atoms,)
        Group (column pair) of each atom. Sets that hold all atoms of a group are left out.
    mirror : int32 array (atoms,) or None
        A permutation that is its own inverse and maps edges (with weights) to edges. Where given, one set of each
        mirror pair is returned.
    exclusive : at most one atom of a group
    max_groups : sets that touch more groups are left out

    Raises
    ------
    ValueError
        Where `mirror` has another length than `group`.
    """
    atoms = len(group)
    if mirror is not None and len(mirror) != atoms:
        raise ValueError(f"mirror: {len(mirror)} entries; allowed: one for each of {atoms} atoms")
    groups = int(group.max(initial=-1)) + 1
    return Wanted(
        atoms=atoms,
        mirror=(np.arange(atoms) if mirror is None else mirror).astype(np.int64),
        group=group.astype(np.int64),
        group_masks=as_masks(group == np.arange(groups)[:, None]),
        exclusive=exclusive,
        max_groups=groups if max_groups is None else max_groups,
        symmetric=mirror is not None,
    )


class Bound(NamedTuple):
    """Weight that a set may leave unhit: `budget`, or with chances `most` x (product of the chances of all groups).

    Attributes
    ----------
    chances : float64 (groups, patterns)
        Chance of a group by its pattern of chosen atoms (bit k: the k-th atom); further atoms never raise it. No rows
        where there are no chances.
    first : int64 (groups,), the first atom of each group; a group's atoms are consecutive
    """

    budget: int
    most: float
    chances: NDArray[np.float64]
    first: NDArray[np.int64]


BOUND = "Bound(int64, float64, float64[:, ::1], int64[::1])"
