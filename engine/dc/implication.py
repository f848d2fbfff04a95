"""Implication within a list of constraints: closure of each one's predicates, then a search for subsets.

closure.py finds the consequences of one conjunction; this module handles whole lists, in arrays of bits.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.closure import close
from tuplewise.engine.dc.predicate import EXCLUDED_ORDERED, EXCLUDED_UNORDERED, PredicateSpace
from tuplewise.engine.run import past
from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.words import ACROSS, WITHIN_U

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Bits = NDArray[np.uint64]

AT_ONCE = 1 << 13  # constraints between two looks at the clock


@kernel(
    "int32[:, ::1], int32[::1], int64[::1], int64[::1], int64[::1], int64[::1], boolean[::1], int64[::1], "
    "int64[::1], int64[::1]"
)
def _closures(
    predicates: Numbers,
    sizes: Numbers,
    group_of: Ints,
    operator_of: Ints,
    node_left: Ints,
    node_right: Ints,
    ordered: Flags,
    first_atom: Ints,
    starts: Ints,
    comparisons: Ints,
) -> tuple[Bits, Flags]:
    """Closure of the atoms that each constraint excludes, as bits; and whether the constraint is satisfiable.

    Comparisons that start at node x: comparisons[starts[x] : starts[x + 1]].
    """
    count, width = predicates.shape
    words = (first_atom[-1] + 63) // 64
    closed = np.zeros((count, words), dtype=np.uint64)
    satisfiable = np.ones(count, dtype=np.bool_)
    side = 2 * max(width, 1)
    at_most = np.zeros((side, side), dtype=np.bool_)
    below = np.zeros((side, side), dtype=np.bool_)
    differ = np.zeros((side, side), dtype=np.bool_)
    local = np.full(len(starts) - 1, -1, dtype=np.int64)
    used = np.zeros(side, dtype=np.int64)
    left, right, operator = np.zeros(width, np.int64), np.zeros(width, np.int64), np.zeros(width, np.int64)
    for c in range(count):
        n = 0
        for k in range(sizes[c]):
            group = group_of[predicates[c, k]]
            for node in (node_left[group], node_right[group]):
                if local[node] < 0:
                    local[node] = n
                    used[n] = node
                    n += 1
            left[k], right[k] = local[node_left[group]], local[node_right[group]]
            operator[k] = operator_of[predicates[c, k]]
        size = sizes[c]
        satisfiable[c] = close(n, left[:size], right[:size], operator[:size], at_most, below, differ)
        for i in range(n):
            for at in range(starts[used[i]], starts[used[i] + 1]):
                comparison = comparisons[at]
                j = local[node_right[comparison]]
                if j < 0:
                    continue
                for outcome in range(3):
                    if outcome == 1:
                        excluded = differ[i, j]
                    elif outcome == 0:  # less, or different if there is no order
                        excluded = at_most[j, i] and (ordered[comparison] or at_most[i, j])
                    else:
                        excluded = ordered[comparison] and at_most[i, j]
                    if excluded:
                        atom = first_atom[comparison] + outcome
                        closed[c, atom >> 6] |= np.uint64(1) << np.uint64(63 - (atom & 63))
        for i in range(n):
            local[used[i]] = -1
    return closed, satisfiable


def _atoms(predicates: Numbers, space: PredicateSpace, plan: dict[str, Any], mirrored: bool) -> Bits:
    """Atoms that each constraint's predicates (with `mirrored`, its mirror's) exclude without closure, as bits."""
    first_atom, mirror, flips = (plan[name].tolist() for name in ("first_atom", "mirror", "flips"))
    excluded = np.zeros((space.predicates + 1, (first_atom[-1] + 63) // 64), dtype=np.uint64)  # the last: of none
    for p, (g, operator) in enumerate(zip(space.predicate_group, space.predicate_operator, strict=True)):
        outcomes = (EXCLUDED_ORDERED if space.ordered[g] else EXCLUDED_UNORDERED)[operator]
        for outcome in (o for o in range(3) if outcomes >> o & 1):
            turned = 2 - outcome if mirrored and flips[g] else outcome
            atom = first_atom[mirror[g] if mirrored else g] + turned
            excluded[p, atom >> 6] |= np.uint64(1 << (63 - (atom & 63)))
    bits = np.zeros((len(predicates), excluded.shape[1]), dtype=np.uint64)
    for column in predicates.T:
        bits |= excluded[column]
    return bits


@helper
def _within(part: Bits, whole: Bits) -> bool:
    outside = np.uint64(0)
    for w in range(len(part)):
        outside |= part[w] & ~whole[w]
    return bool(outside == 0)


@kernel("uint64[:, ::1]")
def _build_trie(forms: Bits) -> tuple[Numbers, Ints, Ints, Ints]:
    """Build a trie of sets in preorder. forms: bits, atom 0 highest, rows sorted.

    Node i holds atom[i]; its subtree ends before skip[i]; the sets that end at it are rows first[i] to last[i].
    """
    count, words = forms.shape
    total = 1
    depth_limit = 1
    for f in range(count):
        size = 0
        for w in range(words):
            x = forms[f, w]
            while x:
                x &= x - np.uint64(1)
                size += 1
        total += size
        depth_limit = max(depth_limit, size + 1)
    atom = np.zeros(total, dtype=np.int32)
    skip = np.zeros(total, dtype=np.int64)
    first = np.zeros(total, dtype=np.int64)
    last = np.zeros(total, dtype=np.int64)
    path = np.zeros(depth_limit, dtype=np.int64)
    listed = np.zeros(depth_limit, dtype=np.int32)
    depth = 0
    made = 0
    for f in range(count):
        size = 0
        for w in range(words):
            for b in range(64):
                if forms[f, w] >> np.uint64(63 - b) & np.uint64(1):
                    listed[size] = w * 64 + b
                    size += 1
        same = 0
        while same < depth and same < size and atom[path[same]] == listed[same]:
            same += 1
        for d in range(same, depth):
            skip[path[d]] = made
        for d in range(same, size):
            atom[made] = listed[d]
            path[d] = made
            made += 1
        depth = size
        if size:
            end = path[size - 1]
            if first[end] == last[end]:
                first[end] = f
            last[end] = f + 1
    for d in range(depth):
        skip[path[d]] = made
    return atom[:made], skip[:made], first[:made], last[:made]


@kernel(
    "uint64[:, ::1], uint64[:, ::1], uint64[:, ::1], boolean[::1], boolean[::1], int64[::1], int32[::1], int64[::1], "
    "int64[::1], int64[::1], int64, int64"
)
def _mark_implied(
    own: Bits,
    mirrored: Bits,
    closed: Bits,
    satisfiable: Flags,
    strongest: Flags,
    owner: Ints,
    atom: Numbers,
    skip: Ints,
    first: Ints,
    last: Ints,
    start: int,
    stop: int,
) -> Flags:
    """Whether each constraint from `start` on, before `stop`, stays: satisfiable, not implied by a stronger one, and
    first of its equivalents: bool (stop - start,). `strongest`: known to stay."""
    words = own.shape[1]
    stays = satisfiable[start:stop].copy()
    for g in range(start, stop):
        if not satisfiable[g] or strongest[g]:
            continue
        adds = False
        for w in range(words):
            adds = adds or closed[g, w] != own[g, w]
        node = 0
        while adds and stays[g - start] and node < len(atom):
            a = atom[node]
            if not closed[g, a >> 6] >> np.uint64(63 - (a & 63)) & np.uint64(1):
                node = skip[node]
                continue
            for row in range(first[node], last[node]):
                f = owner[row]
                if f != g and (f < g or not (_within(own[g], closed[f]) or _within(mirrored[g], closed[f]))):
                    stays[g - start] = False
            node += 1
    return stays


def _plan(space: PredicateSpace) -> dict[str, Any]:
    """Arrays for the compiled loops, over the comparisons of a space's layout (closed under exchange)."""
    layout = space.layout
    left = 2 * layout.left.astype(np.int64) + (layout.scope == WITHIN_U)
    right = 2 * layout.right.astype(np.int64) + np.where(layout.scope == ACROSS, 1, layout.scope == WITHIN_U)
    nodes = 2 * len(space.names)
    by_left = np.argsort(left, kind="stable")
    sizes = np.where(layout.ordered, 3, 2)
    return {
        "node_left": left,
        "node_right": right,
        "starts": np.searchsorted(left[by_left], np.arange(nodes + 1)),
        "comparisons": by_left,
        "ordered": layout.ordered,
        "first_atom": np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        "mirror": layout.mirror.astype(np.int64),
        "flips": (layout.scope == ACROSS) & layout.ordered,
    }


def keep_strongest(
    predicates: NDArray[np.int32],
    sizes: NDArray[np.int32],
    space: PredicateSpace,
    *,
    implication: bool = True,
    strongest: NDArray[np.bool_] | None = None,
    deadline: float | None = None,
) -> NDArray[np.bool_]:
    """Select the constraints that are non-trivial and not implied by another constraint of the list.

    Parameters
    ----------
    predicates : int32 (constraints, width), in result order, padded with -1
        Predicate numbers. No constraint's excluded outcomes may contain those of another, or those of the mirror of
        another with same-column predicates only (true of minimal hitting sets).
    sizes : int32 (constraints,)
    implication : False: drop only the trivial constraints
    strongest : bool (constraints,), those that are known to be selected
    deadline : value of time.monotonic at which to be done, with a part of the list if need be

    Returns
    -------
    bool (constraints,); of fewer, the first ones, if the deadline came: these were compared with each other only

    Notes
    -----
    f implies g if the atoms of f, or of f's mirror, lie within the closure of g. The atom sets of the list are an
    antichain, so g can be implied only if its closure adds atoms. For each such g, a trie of all constraints and
    mirrors is walked along the atoms of the closure. Cost: constraints times (operands cubed + nodes in a closure).
    """
    if len(sizes) == 0:
        return np.zeros(0, dtype=np.bool_)
    plan = _plan(space)
    group_of, operator_of = space.predicate_group.astype(np.int64), space.predicate_operator.astype(np.int64)
    graph = [plan[k] for k in ("node_left", "node_right", "ordered", "first_atom", "starts", "comparisons")]
    halfway = None if deadline is None else (time.monotonic() + deadline) / 2
    parts = []
    for start in range(0, len(sizes), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        parts.append(_closures(predicates[part], sizes[part], group_of, operator_of, *graph))
        if past(halfway if implication else deadline):
            break
    closed, satisfiable = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if not implication:
        return np.asarray(satisfiable)
    predicates, sizes = predicates[: len(closed)], sizes[: len(closed)]
    own, mirrored = (_atoms(predicates, space, plan, mirrored) for mirrored in (False, True))
    forms = np.concatenate((own, mirrored))
    owner = np.tile(np.arange(len(sizes)), 2)
    order = np.lexsort(forms.T[::-1])
    forms, owner = np.ascontiguousarray(forms[order]), owner[order]
    trie = _build_trie(forms)
    given = np.zeros(len(sizes), dtype=np.bool_) if strongest is None else strongest[: len(sizes)]
    stays = []
    for start in range(0, len(sizes), AT_ONCE):
        stop = min(start + AT_ONCE, len(sizes))
        stays.append(_mark_implied(own, mirrored, closed, satisfiable, given, owner, *trie, start, stop))
        if past(deadline):
            break
    return np.concatenate(stays)
