"""Constraints from evidence: minimal hitting sets, read as predicates, reduced and put into result order.

A set of atoms (outcomes excluded by its predicates) is a constraint. The constraint holds if the set hits every
evidence, up to the weight that the error allows. A smaller set of atoms is a stronger constraint, so the minimal
hitting sets are the constraints that are minimal under implication between operators of one group. Three steps remain:
keep one of each mirror pair; drop constraints that no values could violate; and, if columns are compared with each
other, drop constraints that follow from others through transitivity (implication.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.bounded_search import search, what_shortens
from tuplewise.engine.dc.evidence import EvidenceSet
from tuplewise.engine.dc.implication import keep_strongest
from tuplewise.engine.dc.predicate import (
    EXCLUDED_ORDERED,
    EXCLUDED_UNORDERED,
    PredicateSpace,
    allowed_violations,
    satisfied_pairs,
)
from tuplewise.engine.run import Run
from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.cpu.bits import lowest_bit
from tuplewise.gpu_kernels.hitting import minimal_hitting_sets
from tuplewise.gpu_kernels.hitting_types import Wanted, wanted_sets
from tuplewise.gpu_kernels.words import WITHIN_T

# Operator of each set of excluded outcomes; -1 if no operator excludes exactly that set.
_OF_ORDERED = np.full(8, -1, dtype=np.int8)
_OF_ORDERED[list(EXCLUDED_ORDERED)] = np.arange(6, dtype=np.int8)
_OF_UNORDERED = np.full(8, -1, dtype=np.int8)
_OF_UNORDERED[list(EXCLUDED_UNORDERED)] = np.arange(2, dtype=np.int8)
# == != < <= > >= with t and u exchanged.
_EXCHANGED = np.array([0, 1, 4, 5, 2, 3], dtype=np.int8)
REDUCTION_SHARE = 0.5  # of the time that is left: ranking and writing need the rest


@dataclass(frozen=True, eq=False)
class ConstraintArrays:
    """Constraints in result order (size, column positions, operators).

    Attributes
    ----------
    predicates : int32 (constraints, width), padded with -1
        Predicate numbers of the space, ascending.
    sizes : int32 (constraints,)
    violations : int64 (constraints,)
        Number of violating ordered pairs; for a constraint about one row, of violating rows.
    one_row : bool (constraints,)
        Whether the constraint names t only.
    complete : False if a deadline ended the search before all constraints were found
    all_of : size up to which all constraints are there in that case
    """

    predicates: NDArray[np.int32]
    sizes: NDArray[np.int32]
    violations: NDArray[np.int64]
    one_row: NDArray[np.bool_]
    complete: bool = True
    all_of: int = 0

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> ConstraintArrays:
        """Select constraints by index or mask, in this order."""
        parts = (self.predicates[index], self.sizes[index], self.violations[index], self.one_row[index])
        return ConstraintArrays(*parts, complete=self.complete, all_of=self.all_of)

    @staticmethod
    def none(complete: bool = True) -> ConstraintArrays:
        """No constraints."""
        return ConstraintArrays(
            np.zeros((0, 0), np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_), complete
        )


def invert(evidence: EvidenceSet, run: Run | None = None, *, threads: int | None = None) -> ConstraintArrays:
    """Find the constraints that hold on the pairs that left this evidence.

    Parameters
    ----------
    evidence : complete. The options of its space set error, max_predicates and minimality.
    run : at its deadline, the shortest constraints that were found

    Notes
    -----
    With `max_predicates` K, only constraints of at most K predicates are compared: one that is implied only by a longer
    one (possible across columns) is kept. Set-minimal output takes at most one predicate of a group; two of one group
    are equivalent to one, or contradict each other.
    """
    run = run or Run()
    space = evidence.space
    if len(evidence) == 0:
        return ConstraintArrays.none()
    options = space.options
    by_atom = options.minimality == "implication"
    total = evidence.ordered_pairs if evidence.rows > 1 else evidence.rows
    budget = allowed_violations(options.error, total)
    chances = _chances(evidence, total, by_atom) if budget and options.error_measure == "lift" else None
    weights = evidence.counts if budget else None
    find = partial(
        minimal_hitting_sets,
        weights=weights,
        budget=budget,
        most=float(options.error * total),
        chances=chances,
        progress=run.stage("inversion"),
        threads=threads,
    )
    edges = evidence.atom_edges() if by_atom else evidence.predicate_edges()
    found = search(edges, wanted_of(space), run, hint=what_shortens(space), weights=weights, find=find)
    arrays = constraints_of(found.sets, found.uncovered, found.complete, space, evidence.rows, run)
    return arrays if arrays.complete else replace(arrays, all_of=min(arrays.all_of, found.all_of))


def wanted_of(space: PredicateSpace) -> Wanted:
    """Conditions on hitting sets that are constraints of a space: over atoms, or over predicates if set-minimal."""
    by_atom = space.options.minimality == "implication"
    first = space.first_atom if by_atom else space.first_predicate
    return wanted_sets(
        np.repeat(np.arange(space.groups, dtype=np.int32), np.diff(first)),
        mirror=mirror_of_bits(space, by_atom) if space.closed else None,
        exclusive=not by_atom,
        max_groups=space.options.max_predicates,
    )


def _chances(evidence: EvidenceSet, total: int, by_atom: bool) -> NDArray[np.float64]:
    """Share of pairs that satisfy each pattern of vertices of a group, float64 (groups, patterns), for
    `minimal_hitting_sets`. Atoms: the outcome is known and not one of them. Predicates: the predicate has it."""
    space, counts = evidence.space, evidence.outcome_counts
    chances = np.ones((space.groups, 64))
    if by_atom:
        for pattern in range(1, 8):
            left = [outcome for outcome in range(3) if not pattern >> outcome & 1]
            chances[:, pattern] = counts[:, left].sum(axis=1) / total
        return chances
    satisfied = satisfied_pairs(space, counts) / total
    within = np.arange(space.predicates) - space.first_predicate[space.predicate_group]
    chances[space.predicate_group, 1 << within] = satisfied
    return chances


def constraints_of(
    sets: NDArray[np.uint64],
    uncovered: NDArray[np.int64],
    complete: bool,
    space: PredicateSpace,
    rows: int,
    run: Run | None = None,
    *,
    strongest: ConstraintArrays | None = None,
) -> ConstraintArrays:
    """Constraints of minimal hitting sets: in result order, one of each mirror pair, the strongest only.

    Parameters
    ----------
    sets : uint64 (sets, words), of atoms, or of predicates if the space's options request set-minimal output
    uncovered : int64 (sets,), number of violating ordered pairs
    complete : whether these are all minimal hitting sets
    rows : number of rows of the table
    run : where its deadline comes first, the first constraints only
    strongest : constraints of which none is implied by another one of these sets

    Returns
    -------
    ConstraintArrays, whose `all_of` is the size up to which no set was left out
    """
    if len(sets) == 0:
        return ConstraintArrays.none(complete)
    predicates, sizes = read_sets(sets, space, space.options.minimality == "implication")
    first_of_pair(predicates, space)
    order = result_order(predicates, sizes, space)
    predicates, violations = predicates[order], uncovered[order].astype(np.int64)
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = np.any(predicates[1:] != predicates[:-1], axis=1)
    predicates, sizes, violations = predicates[first], sizes[order][first], violations[first]
    one_row = np.all((predicates < 0) | (space.scope[space.predicate_group[predicates]] == WITHIN_T), axis=1)
    if rows > 1:
        violations = np.where(one_row, violations // (rows - 1), violations)
    arrays = ConstraintArrays(predicates, sizes, violations, one_row, complete, int(sizes[-1]))
    if space.closed:
        return arrays
    implication = space.options.minimality == "implication"
    deadline = None if run is None else run.part(REDUCTION_SHARE).deadline
    known = None if strongest is None else common_constraints(arrays, strongest, space)[0]
    stays = keep_strongest(predicates, sizes, space, implication=implication, strongest=known, deadline=deadline)
    kept = arrays.take(np.flatnonzero(stays))
    if len(stays) == len(sizes):
        return kept
    return replace(kept, complete=False, all_of=int(sizes[len(stays)]) - 1)


def mirror_of_bits(space: PredicateSpace, by_atom: bool) -> NDArray[np.int32]:
    """The permutation of atoms (or predicates) from exchanging t and u, in a space of same-column groups."""
    if by_atom:
        group = np.repeat(np.arange(space.groups), np.diff(space.first_atom))
        within = np.arange(space.atoms) - space.first_atom[group]
        mirrored = np.where(space.ordered[group], 2 - within, within)
        return (space.first_atom[group] + mirrored).astype(np.int32)
    exchanged = _EXCHANGED[space.predicate_operator]
    return (space.first_predicate[space.predicate_group] + exchanged).astype(np.int32)


def read_sets(
    sets: NDArray[np.uint64], space: PredicateSpace, by_atom: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Predicate numbers of each set, int32 (sets, width) padded with -1, and their count, int32 (sets,)."""
    first = (space.first_atom if by_atom else space.first_predicate).astype(np.int64)
    group = np.repeat(np.arange(space.groups, dtype=np.int64), np.diff(first))
    operator = np.where(space.ordered[:, None], _OF_ORDERED, _OF_UNORDERED)
    number = (space.first_predicate[:-1, None] + operator).astype(np.int32)
    most_bits = int(np.bitwise_count(sets).sum(axis=1, dtype=np.int64).max(initial=0))
    predicates, sizes = _read_bits(sets, group, first, number, by_atom, most_bits)
    return np.ascontiguousarray(predicates[:, : int(sizes.max(initial=0))]), sizes


@kernel("const uint64[:, ::1], int64[::1], int64[::1], int32[:, ::1], boolean, int64")
def _read_bits(
    sets: NDArray[np.uint64],
    group: NDArray[np.int64],
    first: NDArray[np.int64],
    number: NDArray[np.int32],
    by_atom: bool,
    most_bits: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Predicates of each set: the bits themselves, or number[g, excluded outcomes of g] if bits are atoms."""
    predicates = np.full((len(sets), most_bits), -1, dtype=np.int32)
    sizes = np.zeros(len(sets), dtype=np.int32)
    for i in range(len(sets)):
        at, current, excluded = -1, -1, 0
        for w in range(sets.shape[1]):
            rest = sets[i, w]
            while rest:
                bit = rest & (~rest + np.uint64(1))
                rest ^= bit
                a = 64 * w + lowest_bit(bit)
                if group[a] != current:
                    at, current, excluded = at + 1, group[a], 0
                excluded |= 1 << (a - first[current])
                predicates[i, at] = number[current, excluded] if by_atom else a
        sizes[i] = at + 1
    return predicates, sizes


def first_of_pair(predicates: NDArray[np.int32], space: PredicateSpace) -> None:
    """Replace each constraint by the first, in result order, of itself and its mirror; in place.

    Only constraints of same-column predicates have a mirror in the space. Both have the same groups, so the first
    order operator decides: `<` and `<=` come before `>` and `>=`.
    """
    operator = np.where(predicates >= 0, space.predicate_operator[predicates], np.int8(0))
    first = np.zeros(len(predicates), dtype=np.int8)
    for column in operator.T:
        first = np.where((first < 2) & (column >= 2), column, first)
    turned = (first >= 4) & np.all((predicates < 0) | space.same_column[space.predicate_group[predicates]], axis=1)
    predicates[turned] += _EXCHANGED[operator[turned]] - operator[turned]


def common_constraints(
    mine: ConstraintArrays, theirs: ConstraintArrays, space: PredicateSpace
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which constraints of each of two lists are in the other, too: bool (mine,), bool (theirs,)."""
    bits = max(1, int(space.predicates).bit_length())
    words = -(-max(1, mine.predicates.shape[1], theirs.predicates.shape[1]) * bits // (64 // bits * bits))
    keys = np.concatenate([_packed(arrays.predicates, bits, words) for arrays in (mine, theirs)], axis=1)
    order = np.lexsort(keys)
    twice = np.flatnonzero(np.all(keys[:, order[1:]] == keys[:, order[:-1]], axis=0))
    common = np.zeros(len(order), dtype=np.bool_)
    common[order[twice]] = common[order[twice + 1]] = True
    return common[: len(mine)], common[len(mine) :]


def _packed(predicates: NDArray[np.int32], bits: int, words: int) -> NDArray[np.uint64]:
    """Predicate numbers as words, uint64 (words, constraints), so many bits a number."""
    packed = np.zeros((words, len(predicates)), dtype=np.uint64)
    for place, column in enumerate(predicates.T):
        word, shift = divmod(place, 64 // bits)
        packed[word] |= (column + 1).astype(np.uint64) << np.uint64(shift * bits)
    return packed


def result_order(predicates: NDArray[np.int32], sizes: NDArray[np.int32], space: PredicateSpace) -> NDArray[np.int64]:
    """Order by size, then column positions, then operators; int64 (constraints,). Keys are packed in 64-bit words."""
    count, width = predicates.shape
    present = predicates >= 0
    group = np.where(present, space.predicate_group[predicates] + 1, 0).astype(np.uint64)
    operator = np.where(present, space.predicate_operator[predicates] + 1, 0).astype(np.uint64)
    keys = [sizes.astype(np.uint64)]
    for digits, bits in ((group, max(1, int(space.groups).bit_length())), (operator, 3)):
        per_word = 64 // bits
        for start in range(0, width, per_word):
            key = np.zeros(count, dtype=np.uint64)
            for k in range(start, min(start + per_word, width)):
                key = key << np.uint64(bits) | digits[:, k]
            keys.append(key)
    return np.lexsort(keys[::-1])
