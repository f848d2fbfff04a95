"""Front door of the enumeration of minimal hitting sets (evidence inversion).

There is no CUDA twin: the search is a tree of small, uneven nodes, which would occupy few lanes of a GPU at a time. The
GPU serves the evidence, whose cost is quadratic in rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control, Watch
from tuplewise.gpu_kernels.cpu import hitting, hitting_extend, hitting_missed, hitting_without
from tuplewise.gpu_kernels.hitting_types import Bound, Wanted
from tuplewise.gpu_kernels.words import mask_words, members

# Removed edges as a share of the remaining ones, from which the search starts from scratch: a set is found once for
# each removed edge that it misses. A sixth to a quarter are equally fast on clues of Tax and on random ones.
MOST_GONE = 0.2


@dataclass(frozen=True, eq=False)
class HittingSets:
    """Minimal hitting sets of some edges.

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
    wanted: Wanted,
    *,
    weights: NDArray[np.int64] | None = None,
    budget: int = 0,
    most: float = 0.0,
    chances: NDArray[np.float64] | None = None,
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    watch: Watch | None = None,
    threads: int | None = None,
) -> HittingSets:
    """All minimal sets X of atoms that leave edges of total weight at most `budget` unhit.

    Parameters
    ----------
    edges : uint64 array (edges, words)
        Atoms of each edge.
    wanted : which sets are wanted, see `wanted_sets`
    weights : int64 array (edges,) or None
        Needed when `budget` is above 0.
    most, chances : float, float64 array (groups, patterns) or None
        Where given, a set X may leave unhit `most` (`budget`, before it was rounded down) times the product over groups
        of chances[g, p]: bit k of p is the k-th atom of the group, in X or not, and the chance of no atom is 1; more
        atoms of a group never have a larger one. X passes then while a larger set may not, and is minimal where none
        of its parts passes.
    deadline : `time.monotonic()` value
    watch : told now and then how many sets were found so far, and the share of the search that is done; where it
        returns True, the search ends as at a deadline

    Raises
    ------
    ValueError
        Where shapes don't fit, or a budget comes without weights.
    """
    words = mask_words(wanted.atoms)
    _check_masks("edges", edges, words)
    if budget < 0 or (budget > 0 and weights is None):
        raise ValueError("budget: must be 0 or more, and needs weights when above 0")
    weight = np.ones(len(edges), dtype=np.int64) if weights is None else weights.astype(np.int64)
    nothing = np.zeros((1, words), dtype=np.uint64)
    total = int(weight.sum())
    if total <= budget:
        return HittingSets(nothing, np.array([total], dtype=np.int64), True)
    if budget == 0 and not edges.any(axis=1).all():
        return HittingSets(np.empty((0, words), np.uint64), np.empty(0, np.int64), True)

    bound = _bound(budget, most, chances, wanted) if budget > 0 else None
    control = Control(deadline, progress, threads)
    found = HittingSets(*hitting.run(np.ascontiguousarray(edges.T), weight, wanted, bound, control, watch))
    return found if chances is None else _without_supersets(found, wanted)


@dataclass(frozen=True, eq=False)
class RevisedSets:
    """Minimal hitting sets after edges were added or removed.

    Attributes
    ----------
    sets : uint64 array (N, words), sorted
    kept : int64 array (N,), the number of each among the given sets, -1 where it is new
    complete : bool, False where a deadline came first (the sets found are right, others may be missing)
    """

    sets: NDArray[np.uint64]
    kept: NDArray[np.int64]
    complete: bool


def extend_hitting_sets(
    sets: NDArray[np.uint64],
    edges: NDArray[np.uint64],
    new_edges: NDArray[np.uint64],
    wanted: Wanted,
    *,
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> RevisedSets:
    """Extend the minimal hitting sets of `edges` to those of `edges` and `new_edges`.

    Given sets that hit all new edges stay. Each new minimal set contains a given set that misses a new edge, so the
    search starts from those. The cost grows with the number of given sets that miss a new edge, and of sets found from
    them.

    Parameters
    ----------
    sets : uint64 array (sets, words)
        Complete result of `minimal_hitting_sets` or of this function, for `edges` and the same `wanted`.
    edges, new_edges : uint64 arrays (edges, words)
        New edges may be equal to others.
    wanted : its mirror maps edges to edges and new edges to new edges. The set of a mirror pair that was given is the
        one that stays.

    Other parameters are those of `minimal_hitting_sets`.

    Raises
    ------
    ValueError
        Where shapes don't fit.
    """
    words = mask_words(wanted.atoms)
    for name, array in (("edges", edges), ("new_edges", new_edges), ("sets", sets)):
        _check_masks(name, array, words)
    if len(edges) == 0 and len(new_edges) > 0:
        found = minimal_hitting_sets(new_edges, wanted, deadline=deadline, progress=progress, threads=threads)
        return RevisedSets(found.sets, np.full(len(found.sets), -1, dtype=np.int64), found.complete)
    if not new_edges.any(axis=1).all():
        return RevisedSets(np.empty((0, words), np.uint64), np.empty(0, np.int64), True)

    missed = misses_some(sets, new_edges, atoms=wanted.atoms, threads=threads)
    starts = sets[missed]
    if wanted.symmetric:
        starts = np.unique(np.concatenate([starts, mirrored(starts, wanted.mirror)]), axis=0)
    control = Control(deadline, progress, threads)
    added, complete = hitting_extend.run(starts, edges, new_edges, wanted, control)
    if wanted.symmetric:
        added = added[_not_after(added, mirrored(added, wanted.mirror))]
    return _together(sets, ~missed, added, complete)


def without_edges(
    sets: NDArray[np.uint64],
    edges: NDArray[np.uint64],
    removed: NDArray[np.uint64],
    wanted: Wanted,
    *,
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> RevisedSets:
    """Reduce the minimal hitting sets of `edges` and `removed` to those of `edges`.

    New sets are those that miss a removed edge. Given sets stay unless they contain a new set. The cost grows with the
    number of removed edges and of sets that miss them; where many edges go, it is that of a search from scratch.

    Parameters
    ----------
    sets : uint64 array (sets, words)
        Complete result of this module's functions, for `edges` with `removed` and the same `wanted`.
    edges, removed : uint64 arrays (edges, words)
        Without order; edges may be there twice. A removed edge that is in `edges` too, or contains one that is, changes
        nothing.
    wanted : its mirror maps edges to edges and removed edges to removed edges. The set of a mirror pair that was given
        is the one that stays.

    Other parameters are those of `minimal_hitting_sets`.

    Raises
    ------
    ValueError
        Where shapes don't fit.
    """
    words = mask_words(wanted.atoms)
    for name, array in (("edges", edges), ("removed", removed), ("sets", sets)):
        _check_masks(name, array, words)

    control = Control(deadline, progress, threads)
    sought = np.unique(removed, axis=0)
    if len(sought) > MOST_GONE * len(edges):
        found = minimal_hitting_sets(edges, wanted, deadline=deadline, progress=progress, threads=threads)
        new = misses_some(found.sets, sought, atoms=wanted.atoms, threads=threads)
        added, complete = found.sets[new], found.complete
    else:
        symmetric = np.zeros(len(sought), dtype=np.bool_)
        if wanted.symmetric:
            # the sets that miss the mirror of an edge are the mirrors of those that miss the edge
            others = mirrored(sought, wanted.mirror)
            first = _not_after(sought, others)
            symmetric = (sought == others).all(axis=1)[first]
            sought = sought[first]
        added, complete = hitting_without.run(edges, sought, symmetric, wanted, control)
    if wanted.symmetric:
        others = mirrored(added, wanted.mirror)
        added = np.where(_not_after(added, others)[:, None], added, others)
    stays = hitting_without.still_minimal(sets, edges, removed, wanted.atoms, control)
    return _together(sets, stays, np.unique(added, axis=0), complete)


def _together(
    sets: NDArray[np.uint64], stays: NDArray[np.bool_], added: NDArray[np.uint64], complete: bool
) -> RevisedSets:
    """Merge the given sets that stay with the new ones, sorted."""
    result = np.concatenate([sets[stays], added])
    kept = np.concatenate([np.flatnonzero(stays), np.full(len(added), -1, dtype=np.int64)])
    order = np.lexsort(result.T[::-1])
    return RevisedSets(result[order], kept[order], complete)


def misses_some(
    sets: NDArray[np.uint64], edges: NDArray[np.uint64], *, atoms: int, threads: int | None = None
) -> NDArray[np.bool_]:
    """Tell whether each set leaves at least one edge unhit: bool (sets,)."""
    return hitting_extend.misses_some(sets, edges, atoms, Control(threads=threads))


def first_missed(sets: NDArray[np.uint64], edges: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The first edge that each set does not hit, -1 where it hits all: int64 (sets,)."""
    return np.asarray(hitting_missed.first_missed(np.ascontiguousarray(sets), np.ascontiguousarray(edges)))


def missed_weights(
    sets: NDArray[np.uint64], edges: NDArray[np.uint64], weights: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Total weight of the edges that each set does not hit: int64 (sets,). Cost: sets times edges times words."""
    arrays = (np.ascontiguousarray(sets), np.ascontiguousarray(edges), np.ascontiguousarray(weights, dtype=np.int64))
    return np.asarray(hitting_missed.missed_weights(*arrays))


def mirrored(sets: NDArray[np.uint64], mirror: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """The sets with each atom replaced by its mirror."""
    result = np.zeros_like(sets)
    for atom, other in enumerate(mirror.tolist()):
        held = (sets[:, atom // 64] >> np.uint64(atom % 64)) & np.uint64(1)
        result[:, other // 64] |= held << np.uint64(other % 64)
    return result


def _not_after(sets: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell for each pair of sets whether the first one isn't after the second in sorted order: bool (sets,)."""
    result = np.ones(len(sets), dtype=np.bool_)
    for mine, other in zip(sets.T[::-1], others.T[::-1], strict=True):
        result = (mine < other) | ((mine == other) & result)
    return result


def _check_masks(name: str, array: NDArray[np.uint64], words: int) -> None:
    if array.ndim != 2 or array.dtype != np.uint64 or array.shape[1] != words:
        raise ValueError(f"{name}: {array.dtype} array of shape {array.shape}; allowed: uint64 (n, {words})")


def _bound(budget: int, most: float, chances: NDArray[np.float64] | None, wanted: Wanted) -> Bound:
    """Bound on the weight that sets may leave unhit."""
    first = np.searchsorted(wanted.group, np.arange(len(wanted.group_masks))).astype(np.int64)
    chances = np.zeros((0, 0)) if chances is None else np.ascontiguousarray(chances, dtype=np.float64)
    return Bound(budget, most, chances, first)


def _without_supersets(found: HittingSets, wanted: Wanted) -> HittingSets:
    """Drop sets that contain another set or the mirror of one. Cost: for each set a look at those whose first atom it
    has."""
    others = np.concatenate([found.sets, mirrored(found.sets, wanted.mirror)]) if wanted.symmetric else found.sets
    by_first: dict[int, list[int]] = {}
    for place, mask in enumerate(others):
        by_first.setdefault(members(mask)[0], []).append(place)
    beginning = {atom: others[places] for atom, places in by_first.items()}
    kept = np.ones(len(found.sets), dtype=np.bool_)
    for place, mask in enumerate(found.sets):
        for parts in (beginning[atom] for atom in members(mask) if atom in beginning):
            inside = np.all(parts & ~mask == 0, axis=1) & np.any(parts != mask, axis=1)
            kept[place] &= not inside.any()
    return HittingSets(found.sets[kept], found.uncovered[kept], found.complete)
