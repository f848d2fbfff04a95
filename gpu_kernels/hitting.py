"""Front door of the enumeration of minimal hitting sets (evidence inversion).

There is no CUDA twin: the search is a tree of small, uneven nodes, of which a GPU would run a few lanes at a time. What
is quadratic in rows, the evidence, is what the GPU is for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control

if TYPE_CHECKING:
    from tuplewise.gpu_kernels.cpu.hitting import Problem
    from tuplewise.gpu_kernels.cpu.hitting_weighted import Bound

# Removed edges, as a share of those left, from which new sets are sought from nothing: a set that misses many removed
# edges would be found as often. Equally fast at a sixth to a quarter on clues of Tax and on random ones.
MOST_GONE = 0.2


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
    most: float = 0.0,
    chances: NDArray[np.float64] | None = None,
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
    most, chances : float, float64 array (groups, patterns) or None
        Where given, a set X may leave unhit `most` (`budget`, before it was rounded down) times the product over groups
        of chances[g, p]: bit k of p is the k-th atom of the group, in X or not, and the chance of no atom is 1; more
        atoms of a group never have a larger one. X passes then while a larger set may not, and is minimal where none
        of its parts passes.
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
    words = _check(edges, atoms, group, mirror)
    if budget < 0 or (budget > 0 and weights is None):
        raise ValueError("budget: must be 0 or more, and needs weights when above 0")
    weight = np.ones(len(edges), dtype=np.int64) if weights is None else weights.astype(np.int64)
    nothing = np.zeros((1, words), dtype=np.uint64)
    total = int(weight.sum())
    if total <= budget:
        return HittingSets(nothing, np.array([total], dtype=np.int64), True)
    if budget == 0 and not edges.any(axis=1).all():
        return HittingSets(np.empty((0, words), np.uint64), np.empty(0, np.int64), True)
    from tuplewise.gpu_kernels.cpu import hitting

    problem = _problem(atoms, group, mirror, exclusive, max_groups, budget, most, chances)
    masks = np.ascontiguousarray(edges.T)
    found = HittingSets(
        *hitting.run(masks, weight, mirror is not None, problem, _control(deadline, progress, threads))
    )
    return found if chances is None else _without_supersets(found, mirror)


@dataclass(frozen=True, eq=False)
class Extended:
    """Minimal hitting sets after new edges have come.

    Attributes
    ----------
    sets : uint64 array (N, words), sorted
    kept : int64 array (N,), which of the given sets each one is, -1 where it is new
    complete : bool, False where a deadline came first (the sets found are right, others may be missing)
    """

    sets: NDArray[np.uint64]
    kept: NDArray[np.int64]
    complete: bool


def extend_hitting_sets(
    sets: NDArray[np.uint64],
    edges: NDArray[np.uint64],
    new_edges: NDArray[np.uint64],
    *,
    atoms: int,
    group: NDArray[np.int32],
    mirror: NDArray[np.int32] | None = None,
    exclusive: bool = False,
    max_groups: int | None = None,
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> Extended:
    """The minimal hitting sets of `edges` and `new_edges`, from those of `edges`.

    Sets that hit all new edges stay as they are. Each other minimal set contains one that doesn't, and is searched from
    there. So the cost goes with the sets that the new edges miss and with what becomes of them.

    Parameters
    ----------
    sets : uint64 array (sets, words)
        What `minimal_hitting_sets` or this function returned for `edges`, complete, with the same options.
    edges, new_edges : uint64 arrays (edges, words)
        New edges may be equal to others.
    mirror : int32 array (atoms,) or None
        Maps edges to edges and new edges to new edges. The set of a mirror pair that was given is the one that stays.

    Other parameters are those of `minimal_hitting_sets`.

    Raises
    ------
    ValueError
        Where shapes don't fit.
    """
    words = _check(edges, atoms, group, mirror)
    for name, array in (("new_edges", new_edges), ("sets", sets)):
        _check_masks(name, array, words)
    if len(edges) == 0 and len(new_edges) > 0:
        found = minimal_hitting_sets(
            new_edges, atoms=atoms, group=group, mirror=mirror, exclusive=exclusive, max_groups=max_groups,
            deadline=deadline, progress=progress, threads=threads,
        )  # fmt: skip
        return Extended(found.sets, np.full(len(found.sets), -1, dtype=np.int64), found.complete)
    if not new_edges.any(axis=1).all():
        return Extended(np.empty((0, words), np.uint64), np.empty(0, np.int64), True)
    from tuplewise.gpu_kernels.cpu import hitting_extend

    missed = misses_some(sets, new_edges, atoms=atoms, threads=threads)
    starts = sets[missed]
    if mirror is not None:
        starts = np.unique(np.concatenate([starts, mirrored(starts, mirror)]), axis=0)
    problem = _problem(atoms, group, mirror, exclusive, max_groups, 0)
    added, complete = hitting_extend.run(starts, edges, new_edges, problem, _control(deadline, progress, threads))
    if mirror is not None:
        added = added[_not_after(added, mirrored(added, mirror))]
    result = np.concatenate([sets[~missed], added])
    kept = np.concatenate([np.flatnonzero(~missed), np.full(len(added), -1, dtype=np.int64)])
    order = np.lexsort(result.T[::-1])
    return Extended(result[order], kept[order], complete)


def without_edges(
    sets: NDArray[np.uint64],
    edges: NDArray[np.uint64],
    removed: NDArray[np.uint64],
    *,
    atoms: int,
    group: NDArray[np.int32],
    mirror: NDArray[np.int32] | None = None,
    exclusive: bool = False,
    max_groups: int | None = None,
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> Extended:
    """The minimal hitting sets of `edges`, from those of `edges` and `removed` together.

    New sets are those that miss a removed edge; of the given sets those stay that contain no new one. So the cost goes
    with the number of removed edges, and with the sets that miss them; where many go, it is that of a search from
    nothing.

    Parameters
    ----------
    sets : uint64 array (sets, words)
        What this module's functions returned for `edges` and `removed`, complete, with the same options.
    edges, removed : uint64 arrays (edges, words)
        Without order; edges may be there twice. A removed edge that is in `edges` too, or contains one that is, changes
        nothing.
    mirror : int32 array (atoms,) or None
        Maps edges to edges and removed edges to removed edges. The set of a mirror pair that was given is the one that
        stays.

    Other parameters are those of `minimal_hitting_sets`.

    Raises
    ------
    ValueError
        Where shapes don't fit.
    """
    words = _check(edges, atoms, group, mirror)
    for name, array in (("removed", removed), ("sets", sets)):
        _check_masks(name, array, words)
    from tuplewise.gpu_kernels.cpu import hitting_without

    control = _control(deadline, progress, threads)
    sought = np.unique(removed, axis=0)
    if len(sought) > MOST_GONE * len(edges):
        found = minimal_hitting_sets(
            edges, atoms=atoms, group=group, mirror=mirror, exclusive=exclusive, max_groups=max_groups,
            deadline=deadline, progress=progress, threads=threads,
        )  # fmt: skip
        added, complete = found.sets[misses_some(found.sets, sought, atoms=atoms, threads=threads)], found.complete
    else:
        symmetric = np.zeros(len(sought), dtype=np.bool_)
        if mirror is not None:
            # the sets that miss the mirror of an edge are the mirrors of those that miss the edge
            others = mirrored(sought, mirror)
            first = _not_after(sought, others)
            symmetric = (sought == others).all(axis=1)[first]
            sought = sought[first]
        problem = _problem(atoms, group, mirror, exclusive, max_groups, 0)
        added, complete = hitting_without.run(edges, sought, symmetric, problem, control)
    if mirror is not None:
        others = mirrored(added, mirror)
        added = np.where(_not_after(added, others)[:, None], added, others)
    added = np.unique(added, axis=0)
    stays = hitting_without.still_minimal(sets, edges, removed, atoms, control)
    result = np.concatenate([sets[stays], added])
    kept = np.concatenate([np.flatnonzero(stays), np.full(len(added), -1, dtype=np.int64)])
    order = np.lexsort(result.T[::-1])
    return Extended(result[order], kept[order], complete)


def misses_some(
    sets: NDArray[np.uint64], edges: NDArray[np.uint64], *, atoms: int, threads: int | None = None
) -> NDArray[np.bool_]:
    """Whether each set leaves at least one edge unhit: bool (sets,)."""
    from tuplewise.gpu_kernels.cpu import hitting_extend

    return hitting_extend.misses_some(sets, edges, atoms, _control(None, None, threads))


def first_missed(sets: NDArray[np.uint64], edges: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The first edge that each set does not hit, -1 where it hits all: int64 (sets,)."""
    from tuplewise.gpu_kernels.cpu import hitting_missed

    return np.asarray(hitting_missed.first_missed(np.ascontiguousarray(sets), np.ascontiguousarray(edges)))


def mirrored(sets: NDArray[np.uint64], mirror: NDArray[np.int32]) -> NDArray[np.uint64]:
    """The sets with each atom replaced by its mirror."""
    result = np.zeros_like(sets)
    for atom, other in enumerate(mirror.tolist()):
        held = (sets[:, atom // 64] >> np.uint64(atom % 64)) & np.uint64(1)
        result[:, other // 64] |= held << np.uint64(other % 64)
    return result


def _not_after(sets: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Where a set comes before the other one in sorted order, or is the same."""
    result = np.ones(len(sets), dtype=np.bool_)
    for mine, other in zip(sets.T[::-1], others.T[::-1], strict=True):
        result = (mine < other) | ((mine == other) & result)
    return result


def _check(
    edges: NDArray[np.uint64], atoms: int, group: NDArray[np.int32], mirror: NDArray[np.int32] | None
) -> int:
    """Words of a set; ValueError where shapes don't fit."""
    words = max(1, -(-atoms // 64))
    if edges.ndim != 2 or edges.dtype != np.uint64 or edges.shape[1] != words:
        raise ValueError(f"edges: {edges.dtype} array of shape {edges.shape}; allowed: uint64 (edges, {words})")
    if len(group) != atoms or (mirror is not None and len(mirror) != atoms):
        raise ValueError(f"group and mirror: need one entry for each of {atoms} atoms")
    return words


def _check_masks(name: str, array: NDArray[np.uint64], words: int) -> None:
    if array.ndim != 2 or array.dtype != np.uint64 or array.shape[1] != words:
        raise ValueError(f"{name}: {array.dtype} array of shape {array.shape}; allowed: uint64 (n, {words})")


def _control(deadline: float | None, progress: Callable[[float], None] | None, threads: int | None) -> Control:
    control = Control(deadline=deadline, progress=progress)
    if threads is not None:
        control.threads = threads
    return control


def _problem(
    atoms: int,
    group: NDArray[np.int32],
    mirror: NDArray[np.int32] | None,
    exclusive: bool,
    max_groups: int | None,
    budget: int,
    most: float = 0.0,
    chances: NDArray[np.float64] | None = None,
) -> Problem:
    """The options as the search wants them."""
    from tuplewise.gpu_kernels.cpu import hitting

    groups = int(group.max(initial=-1)) + 1
    group_masks = np.zeros((groups, max(1, -(-atoms // 64))), dtype=np.uint64)
    for atom, g in enumerate(group):
        group_masks[g, atom // 64] |= np.uint64(1) << np.uint64(atom % 64)
    return hitting.Problem(
        vertices=atoms,
        mirror=(np.arange(atoms) if mirror is None else mirror).astype(np.int64),
        group=group.astype(np.int64),
        group_masks=group_masks,
        exclusive=exclusive,
        max_groups=groups if max_groups is None else max_groups,
        bound=_bound(budget, most, chances, group) if budget > 0 else None,
    )


def _bound(budget: int, most: float, chances: NDArray[np.float64] | None, group: NDArray[np.int32]) -> Bound:
    """What sets may leave unhit."""
    from tuplewise.gpu_kernels.cpu.hitting_weighted import Bound

    first = np.searchsorted(group, np.arange(int(group.max(initial=-1)) + 1)).astype(np.int64)
    chances = np.zeros((0, 0)) if chances is None else np.ascontiguousarray(chances, dtype=np.float64)
    return Bound(budget, most, chances, first)


def _without_supersets(found: HittingSets, mirror: NDArray[np.int32] | None) -> HittingSets:
    """Without sets a part of which is there, too, or its mirror. Cost: for each set a look at those whose first atom it
    has."""
    others = found.sets if mirror is None else np.concatenate([found.sets, mirrored(found.sets, mirror)])
    by_first: dict[int, list[int]] = {}
    for place, mask in enumerate(others):
        by_first.setdefault(_atoms(mask)[0], []).append(place)
    beginning = {atom: others[places] for atom, places in by_first.items()}
    kept = np.ones(len(found.sets), dtype=np.bool_)
    for place, mask in enumerate(found.sets):
        for parts in (beginning[atom] for atom in _atoms(mask) if atom in beginning):
            inside = np.all(parts & ~mask == 0, axis=1) & np.any(parts != mask, axis=1)
            kept[place] &= not inside.any()
    return HittingSets(found.sets[kept], found.uncovered[kept], found.complete)


def _atoms(mask: NDArray[np.uint64]) -> list[int]:
    """The atoms of a set, ascending."""
    return [64 * w + bit for w, word in enumerate(mask.tolist()) for bit in range(word.bit_length()) if word >> bit & 1]
