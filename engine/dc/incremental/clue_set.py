"""The clues that a state has seen, each with a pair of living rows that leaves it, or with how many pairs do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.column_set_index import ClueTable, Met
from tuplewise.gpu_kernels.words import ClueLayout, mirror_clues


@dataclass(frozen=True, eq=False)
class WitnessedClues:
    """Distinct clues, both orders of every pair; a clue and its mirror have one pair of rows.

    Attributes
    ----------
    clues : uint64 (clues, words)
    witnesses : int32 (clues, 2)
        Row numbers of a pair (t, u) that left each. Where pairs are counted it may have gone since.
    counts : int64 (clues,), ordered pairs that leave each; empty where they are not counted
    """

    layout: ClueLayout
    clues: NDArray[np.uint64]
    witnesses: NDArray[np.int32]
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.clues)

    def lookup(self) -> ClueTable:
        """The clues by number."""
        return ClueTable(self.clues)

    def with_met(self, met: Met, table: ClueTable) -> WitnessedClues:
        """The set with clues that were met and their mirrors, which are added to the table too."""
        if not len(met.clues):
            return self
        mirrors = mirror_clues(met.clues, self.layout)
        exchanged = _before(mirrors, met.clues)
        first_of_pair = np.where(exchanged[:, None], mirrors, met.clues)
        order = np.lexsort(first_of_pair.T[::-1])
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = np.any(first_of_pair[order][1:] != first_of_pair[order][:-1], axis=1)
        chosen = order[first]
        chosen = chosen[table.numbers_of(first_of_pair[chosen]) < 0]
        added, others = first_of_pair[chosen], mirror_clues(first_of_pair[chosen], self.layout)
        rows = np.where(exchanged[chosen, None], met.rows[chosen][:, ::-1], met.rows[chosen])
        two = np.any(added != others, axis=1)
        clues = np.concatenate([self.clues, added, others[two]])
        table.add(clues)
        result = replace(self, clues=clues, witnesses=np.concatenate([self.witnesses, rows, rows[two][:, ::-1]]))
        if not len(met.counts):
            return result
        totals = np.concatenate([self.counts, np.zeros(len(clues) - len(self.clues), dtype=np.int64)])
        for left in (met.clues, mirrors):
            np.add.at(totals, table.numbers_of(left), met.counts)
        return replace(result, counts=totals)

    def recounted(self, clues: NDArray[np.uint64], by: NDArray[np.int64], table: ClueTable) -> WitnessedClues:
        """With ordered pairs that were counted for some clues, of both orders; those that are new have no witnesses.

        `by`: int64 (clues,), less than 0 where pairs went. The table is told of new clues.
        """
        new = table.numbers_of(clues) < 0
        every = np.concatenate([self.clues, clues[new]])
        table.add(every)
        added = len(every) - len(self.clues)
        totals = np.concatenate([self.counts, np.zeros(added, dtype=np.int64)])
        totals[table.numbers_of(clues)] += by
        unknown = np.full((added, 2), -1, dtype=np.int32)
        return replace(self, clues=every, witnesses=np.concatenate([self.witnesses, unknown]), counts=totals)

    def counted(self, by: NDArray[np.int64], sign: int, table: ClueTable) -> WitnessedClues:
        """With pairs (t, u) that were counted for the first clues, int64 (some,), and as many exchanged pairs."""
        changed = np.flatnonzero(by)
        if not len(changed):
            return self
        totals = self.counts.copy()
        totals[changed] += sign * by[changed]
        mirrors = table.numbers_of(mirror_clues(self.clues[changed], self.layout))
        np.add.at(totals, mirrors, sign * by[changed])
        return replace(self, counts=totals)

    def without(self, gone: NDArray[np.bool_]) -> WitnessedClues:
        """Without some clues, bool (clues,)."""
        counts = self.counts[~gone] if len(self.counts) else self.counts
        return replace(self, clues=self.clues[~gone], witnesses=self.witnesses[~gone], counts=counts)

    def one_of_each_pair(self, numbers: NDArray[np.int64], table: ClueTable) -> NDArray[np.int64]:
        """Of clues with their mirrors the ones whose mirror has no smaller number."""
        mirrors = table.numbers_of(mirror_clues(self.clues[numbers], self.layout))
        return numbers[numbers <= mirrors]


def _before(clues: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool (clues,): where one comes before the other in sorted order."""
    result = np.zeros(len(clues), dtype=np.bool_)
    for mine, other in zip(clues.T[::-1], others.T[::-1], strict=True):
        result = (mine < other) | ((mine == other) & result)
    return result
