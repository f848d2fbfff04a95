"""Front door of the enumeration of minimal hitting sets (evidence inversion).

There is no CUDA twin: the search is a tree of small, uneven nodes, of which a GPU would run a few lanes at a time. What
is quadratic in rows, the evidence, is what the GPU is for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control


@dataclass(frozen=True, eq=False)
class HittingSets:
    """Minimal hitting sets.

    Attributes
    ----------
    sets : uint64 array (N, words), sorted; atom a is bit a % 64 of word a // 64
    uncovered : int64 array (N,), total weight of the edges that each set does not hit
    complete : bool, False where a deadline came first (the sets found are right, others may be missing)
    """

    sets: NDArray[np.uint64]
    uncovered: NDArray[np.int64]
    complete: bool


def minimal_hitting_sets(
    edges: NDArray[np.uint64],
    *,
    atoms: int,
    group: NDArray[np.int32],
    weights: NDArray[np.int64] | None = None,
    budget: int = 0,
    mirror: NDArray[np.int32] | None = None,
    exclusive: bool = False,
    max_groups: int | None = None,
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> HittingSets:
    """All minimal sets X of atoms such that the edges X does not hit weigh at most `budget` together.

    Parameters
    ----------
    edges : uint64 array (edges, words)
        Atoms of each edge.
    atoms : int
    group : int32 array (atoms,)
        Group (column pair) of each atom. Sets that hold all atoms of a group are left out.
    weights : int64 array (edges,) or None
        Needed when `budget` is above 0.
    mirror : int32 array (atoms,) or None
        A permutation that is its own inverse and maps edges (with weights) to edges. Where given, one set of each
        mirror pair is returned.
    exclusive : bool
        At most one atom of a group.
    max_groups : int or None
        Sets that touch more groups are left out.
    deadline : float or None
        `time.monotonic()` value.

    Raises
    ------
    ValueError
        Where shapes don't fit, or a budget comes without weights.
    """
    words = max(1, -(-atoms // 64))
    if edges.ndim != 2 or edges.dtype != np.uint64 or edges.shape[1] != words:
        raise ValueError(f"edges: {edges.dtype} array of shape {edges.shape}; allowed: uint64 (edges, {words})")
    if len(group) != atoms or (mirror is not None and len(mirror) != atoms):
        raise ValueError(f"group and mirror: need one entry for each of {atoms} atoms")
    if budget < 0 or (budget > 0 and weights is None):
        raise ValueError("budget: must be 0 or more, and needs weights when above 0")
    weight = np.ones(len(edges), dtype=np.int64) if weights is None else weights.astype(np.int64)
    nothing = np.zeros((1, words), dtype=np.uint64)
    total = int(weight.sum())
    if total <= budget:
        return HittingSets(nothing, np.array([total], dtype=np.int64), True)
    if budget == 0 and not edges.any(axis=1).all():
        return HittingSets(np.empty((0, words), np.uint64), np.empty(0, np.int64), True)
    control = Control(deadline=deadline, progress=progress)
    if threads is not None:
        control.threads = threads
    from tuplewise.gpu_kernels.cpu import hitting

    groups = int(group.max(initial=-1)) + 1
    group_masks = np.zeros((groups, words), dtype=np.uint64)
    for atom, g in enumerate(group):
        group_masks[g, atom // 64] |= np.uint64(1) << np.uint64(atom % 64)
    problem = hitting.Problem(
        vertices=atoms,
        mirror=(np.arange(atoms) if mirror is None else mirror).astype(np.int64),
        group=group.astype(np.int64),
        group_masks=group_masks,
        exclusive=exclusive,
        max_groups=groups if max_groups is None else max_groups,
        budget=budget if budget > 0 else -1,
    )
    masks = np.ascontiguousarray(edges.T)
    return HittingSets(*hitting.run(masks, weight, mirror is not None, problem, control))
