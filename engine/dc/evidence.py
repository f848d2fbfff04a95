"""Evidence: the outcomes of the groups of a predicate space on every pair of tuples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.outcome_counts import row_outcomes
from tuplewise.engine.dc.predicate import EXCLUDED_ORDERED, EXCLUDED_UNORDERED, PredicateSpace
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.evidence import ClueSet, collect_clues
from tuplewise.gpu_kernels.words import (
    ACROSS,
    COMPARISONS_PER_WORD,
    EQUAL,
    GREATER,
    LESS,
    UNKNOWN,
    WITHIN_T,
    ClueLayout,
    clue_words,
    mask_words,
    merge_clues,
    outcomes,
)


class ComparePairs(Protocol):
    """Comparison of all pairs of rows: `gpu_kernels.evidence.collect_clues`, in this process or elsewhere."""

    @property
    def slots(self) -> int:
        """Number of cores or devices that compare at the same time."""

    def __call__(
        self,
        codes: NDArray[np.int32],
        layout: ClueLayout,
        *,
        nulls: Literal["unknown", "value"],
        deadline: float | None,
        progress: Callable[[float], None] | None,
    ) -> ClueSet: ...

COMPARING_SHARE = 0.8  # of the time that is left: merging the clues, and any search in them, need the rest


@dataclass(frozen=True, eq=False)
class EvidenceSet:
    """Distinct evidences of a table over a predicate space.

    Attributes
    ----------
    clues : uint64 (evidences, words), sorted
        Outcomes of the groups of the space (group g in bits 2 * (g % 32) of word g // 32).
    counts : int64 (evidences,)
        Number of ordered pairs that left each evidence; for a table of one row, of rows.
    ordered_pairs : n (n - 1)
    rows : n
    complete : False if a deadline ended the collection: then nothing follows from the evidence
    """

    space: PredicateSpace
    clues: NDArray[np.uint64]
    counts: NDArray[np.int64]
    ordered_pairs: int
    rows: int
    complete: bool

    def __len__(self) -> int:
        return len(self.clues)

    @cached_property
    def outcome_counts(self) -> NDArray[np.int64]:
        """Number of ordered pairs with each outcome of each group, int64 (groups, 4); column 3 is UNKNOWN."""
        totals = np.zeros((self.space.groups, 4), dtype=np.int64)
        for g in range(self.space.groups):
            outcome = outcomes(self.clues, g)
            for o in (LESS, EQUAL, GREATER, UNKNOWN):
                totals[g, o] = self.counts[outcome == o].sum()
        return totals

    def atom_edges(self) -> NDArray[np.uint64]:
        """The outcomes of each evidence as atoms; uint64 (evidences, words), atom a is bit a % 64 of word a // 64.

        A set of atoms (outcomes excluded by predicates) is violated by exactly the evidences it doesn't hit. A group
        with an unknown outcome satisfies no predicate, so all of its atoms are in the edge.
        """
        space = self.space
        masks = [[0b001, 0b010, 0b100, 0b111] if o else [0b01, 0b10, 0b01, 0b11] for o in space.ordered]
        return self._edges(masks, space.first_atom)

    def predicate_edges(self) -> NDArray[np.uint64]:
        """Predicates that each evidence does not satisfy, as bits; uint64 (evidences, words)."""
        space = self.space
        masks = []
        for ordered in space.ordered:
            excluded = EXCLUDED_ORDERED if ordered else EXCLUDED_UNORDERED
            by_outcome = [sum(1 << i for i, e in enumerate(excluded) if e >> o & 1) for o in (LESS, EQUAL, GREATER)]
            masks.append([*by_outcome, (1 << len(excluded)) - 1])
        return self._edges(masks, space.first_predicate)

    def _edges(self, masks: list[list[int]], first: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Bits masks[g][outcome of g], shifted to first[g], for every group; of a single row, those within a tuple."""
        words = mask_words(int(first[-1]))
        edges = np.zeros((len(self), words), dtype=np.uint64)
        for g, group_masks in enumerate(masks):
            if self.rows != 1 or self.space.scope[g] == WITHIN_T:
                word, shift = divmod(int(first[g]), 64)
                outcome = outcomes(self.clues, g)
                low = np.array([(m << shift) & (2**64 - 1) for m in group_masks], dtype=np.uint64)
                edges[:, word] |= low[outcome]
                high = np.array([(m << shift) >> 64 for m in group_masks], dtype=np.uint64)
                if high.any():
                    edges[:, word + 1] |= high[outcome]
        return edges


def collect_evidence(
    relation: Relation,
    space: PredicateSpace,
    *,
    device: Device | str = "auto",
    run: Run | None = None,
    stage: str = "evidence",
    comparing: ComparePairs | None = None,
) -> EvidenceSet:
    """Collect the evidences of all ordered pairs of a relation.

    Clues hold both directions of each column pair, so that the clue of (u, t) follows from that of (t, u). Comparisons
    outside the space are cut off, and clues that become equal are merged. A table of one row has no pairs; the row
    itself then leaves one evidence, which covers only groups within a tuple.

    The run reports `stage`. `comparing` compares pairs elsewhere; if None, the kernels compare here, on the device.

    Notes
    -----
    Cost: the kernel's pairs times comparisons, then distinct clues times groups.
    """
    run, rows = run or Run(), relation.rows
    if rows < 2 or space.groups == 0:
        clues = _single_row(relation, space)
        return EvidenceSet(space, clues, np.ones(len(clues), dtype=np.int64), rows * (rows - 1), rows, True)
    compare = comparing or partial(collect_clues, device=device)
    found = compare(
        relation.codes,
        space.layout,
        nulls=space.options.nulls,
        deadline=run.part(COMPARING_SHARE).deadline,
        progress=run.stage(stage),
    )
    clues, counts = found.clues, found.counts
    assert counts is not None
    if not space.closed:
        clues, counts = merge_clues(cut_clues(clues, space.groups), counts)
    return EvidenceSet(space, clues, counts, rows * (rows - 1), rows, found.complete)


def cut_clues(clues: NDArray[np.uint64], groups: int) -> NDArray[np.uint64]:
    """The first `groups` comparisons of each clue."""
    kept = clues[:, : clue_words(groups)].copy()
    used = groups % COMPARISONS_PER_WORD
    if used:
        kept[:, -1] &= np.uint64(4**used - 1)
    return kept


def _single_row(relation: Relation, space: PredicateSpace) -> NDArray[np.uint64]:
    """The clue of the one row with itself; empty if there is no row or no group within a tuple."""
    if relation.rows != 1 or not (space.scope != ACROSS).any():
        return np.zeros((0, clue_words(space.groups)), dtype=np.uint64)
    clue = np.zeros((1, clue_words(space.groups)), dtype=np.uint64)
    for g in range(space.groups):
        outcome = int(row_outcomes(relation, space, g)[0])
        clue[0, g // COMPARISONS_PER_WORD] |= np.uint64(outcome << (2 * (g % COMPARISONS_PER_WORD)))
    return clue
