"""Candidates as sets of vertices: the predicates of a hitting set, and the edge of a clue.

For constraints minimal under implication, vertices are atoms (outcomes that predicates exclude). For constraints
minimal as sets of predicates, vertices are predicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.dc.evidence import EvidenceSet, cut_clues
from tuplewise.engine.dc.inversion import read_sets, wanted_of
from tuplewise.engine.dc.predicate import EXCLUDED_ORDERED, EXCLUDED_UNORDERED, PredicateSpace
from tuplewise.gpu_kernels.words import ACROSS, mask_words, merge_clues

Sets = NDArray[np.uint64]  # (sets, words): vertex v is bit v % 64 of word v // 64
TREE_LEVELS = 8.0  # factor of the third and each further inequality of a check: half of the bits of a rank


class Vertices:
    """The vertices of a predicate space.

    Attributes
    ----------
    count, words : number of vertices, and of 64-bit words of a set of vertices
    wanted : conditions on hitting sets that are constraints: the group of each vertex, its mirror, and so on
    column_pairs : column pairs of the space's equalities of t with u, in order
    equality : uint64 (column pairs, words), the vertices of each equality
    every : uint64 (words,), all vertices
    """

    def __init__(self, space: PredicateSpace) -> None:
        self.space = space
        self.by_atom = space.options.minimality == "implication"
        first = space.first_atom if self.by_atom else space.first_predicate
        self._first = first
        self.wanted = wanted_of(space)
        self.count = self.wanted.atoms
        self.words = mask_words(self.count)
        across = np.flatnonzero(space.scope == ACROSS)
        self.every = self._mask(list(range(self.count)))
        self.column_pairs = [(int(space.left[g]), int(space.right[g])) for g in across]
        # Vertices of each equality: all outcomes but EQUAL of its group, or its predicate `==`.
        self.equality = np.zeros((len(across), self.words), dtype=np.uint64)
        for place, g in enumerate(across.tolist()):
            wanted = ((0, 2) if space.ordered[g] else (0,)) if self.by_atom else (0,)
            self.equality[place] = self._mask([int(first[g]) + bit for bit in wanted])
        self._across = self._mask(np.flatnonzero(space.scope[self.wanted.group] == ACROSS).tolist())

    def _mask(self, vertices: list[int]) -> NDArray[np.uint64]:
        mask = np.zeros(self.words, dtype=np.uint64)
        for vertex in vertices:
            mask[vertex // 64] |= np.uint64(1 << (vertex % 64))
        return mask

    def edges_of(self, clues: NDArray[np.uint64]) -> Sets:
        """Edges of clues in both orders; if the space is not closed, distinct edges in sorted order."""
        return self.weighted_edges_of(clues, np.ones(len(clues), dtype=np.int64))[0]

    def edges_of_evidence(self, clues: NDArray[np.uint64]) -> Sets:
        """The edge of each clue; clues cover groups of the space only (evidence.cut_clues)."""
        evidence = EvidenceSet(self.space, clues, np.ones(len(clues), dtype=np.int64), 0, 2, False)
        return evidence.atom_edges() if self.by_atom else evidence.predicate_edges()

    def weighted_edges_of(
        self, clues: NDArray[np.uint64], counts: NDArray[np.int64]
    ) -> tuple[Sets, NDArray[np.int64]]:
        """Edges of clues with the number of pairs that left them, int64 (edges,)."""
        if not self.space.closed:
            clues, counts = merge_clues(cut_clues(clues, self.space.groups), counts)
        return self.edges_of_evidence(clues), counts

    def edge_of_each(self, clues: NDArray[np.uint64]) -> Sets:
        """The edge of each clue, in their order."""
        return self.edges_of_evidence(clues if self.space.closed else cut_clues(clues, self.space.groups))

    def agreements(self, sets: Sets) -> NDArray[np.bool_]:
        """Equalities contained in each set, bool (sets, column pairs)."""
        has = np.ones((len(sets), len(self.equality)), dtype=np.bool_)
        for place, needed in enumerate(self.equality):
            for word in np.flatnonzero(needed):
                has[:, place] &= sets[:, word] & needed[word] == needed[word]
        return has

    def about_one_row(self, sets: Sets) -> NDArray[np.bool_]:
        """Sets that are about one row, bool (sets,)."""
        alone: NDArray[np.bool_] = ~np.any(sets & self._across, axis=1)
        return alone

    def about(self, columns: Sequence[int]) -> NDArray[np.uint64]:
        """Vertices of the groups that compare some columns only, uint64 (words,)."""
        groups = np.isin(self.space.left, columns) & np.isin(self.space.right, columns)
        return self._mask(np.flatnonzero(groups[self.wanted.group]).tolist())

    def equalities(self, places: list[int]) -> NDArray[np.uint64]:
        """Vertices of the equalities of some column pairs, uint64 (words,)."""
        return np.asarray(np.bitwise_or.reduce(self.equality[places], axis=0, initial=np.uint64(0)))

    def of_numbers(self, numbers: Iterable[int]) -> NDArray[np.uint64]:
        """Vertices of predicates given by number, uint64 (words,)."""
        return self._mask([vertex for number in numbers for vertex in self._vertices_of[number]])

    def of_each(self, predicates: NDArray[np.int32]) -> Sets:
        """Vertices of each set of predicates given by number, int32 (sets, width) padded with -1."""
        every = np.zeros((self.space.predicates + 1, self.words), dtype=np.uint64)  # the last stands for none
        for number in range(self.space.predicates):
            every[number] = self.of_numbers([number])
        found = np.zeros((len(predicates), self.words), dtype=np.uint64)
        for column in predicates.T:
            found |= every[column]
        return found

    def of_predicates(self, predicates: tuple[Predicate, ...]) -> NDArray[np.uint64]:
        """Vertices of predicates of the space, uint64 (words,)."""
        return self.of_numbers(self._numbers[p] for p in predicates)

    @cached_property
    def _vertices_of(self) -> list[list[int]]:
        """Vertices of each predicate."""
        if not self.by_atom:
            return [[number] for number in range(self.space.predicates)]
        found = []
        for group, operator in zip(self.space.predicate_group, self.space.predicate_operator, strict=True):
            excluded = EXCLUDED_ORDERED if self.space.ordered[group] else EXCLUDED_UNORDERED
            mask = excluded[int(operator)]
            found.append([int(self._first[group]) + bit for bit in range(3) if mask >> bit & 1])
        return found

    @cached_property
    def _numbers(self) -> dict[Predicate, int]:
        return {self.space.predicate(i): i for i in range(self.space.predicates)}

    def predicates_of(self, sets: Sets) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Predicate numbers of each set, int32 (sets, width) padded with -1, and their count, int32 (sets,)."""
        return read_sets(sets, self.space, self.by_atom)

    def effort(self, sets: Sets) -> NDArray[np.float64]:
        """Cost of checking each set, in checks of at most two inequalities: float64 (sets,).

        effort = TREE_LEVELS ** max(0, i - 2) * 2 ** max(0, min(n, n + i - 1)) with i inequalities and n non-equalities.
        Each inequality beyond two is a range tree, with levels for the bits of a rank. Each non-equality doubles the
        terms of inclusion and exclusion; without inequalities, one non-equality is free.
        """
        predicates, _ = self.predicates_of(sets)
        operators = np.where(predicates >= 0, self.space.predicate_operator[predicates], 0)
        inequalities = np.count_nonzero(operators >= 2, axis=1)
        unequals = np.count_nonzero(operators == 1, axis=1)
        terms = np.maximum(0, np.minimum(unequals, unequals + inequalities - 1))
        return np.asarray(TREE_LEVELS ** np.maximum(0, inequalities - 2.0) * 2.0**terms)

    def rules(self, sets: Sets) -> list[DenialConstraint]:
        """Constraints of sets of vertices."""
        predicates, sizes = self.predicates_of(sets)
        return [self.space.constraint(p[:n].tolist()) for p, n in zip(predicates, sizes, strict=True)]
