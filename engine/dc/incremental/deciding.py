"""Deletions: search again for clues whose pair of rows was deleted, and decide new hitting sets on the table.

If no other pair leaves such a clue, its edge is removed, and hitting sets that miss it may be new. If the search ended
early, the clue may still exist, and probes whose predicates it satisfies promise nothing any more. A new hitting set
that contains a promised probe holds. Any other is checked on the table, and the clues of its violations are learnt.

Source: the conditions for deletions in this project's notes; no published tool of its kind handles them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.clue_set import WitnessedClues
from tuplewise.engine.dc.incremental.column_set_index import ColumnSetIndex, contains_some, unprobed
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.initial import search
from tuplewise.engine.dc.incremental.revision import Known, among
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.column_set_index import ClueTable, Comparing, Met, terms_of_clue
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.hitting import RevisedSets, extend_hitting_sets, without_edges
from tuplewise.gpu_kernels.words import mirror_clues

MOST_SOUGHT = 256  # most lost clues to search for one by one; with more, everything is recomputed
MOST_DECIDED = 64  # most new hitting sets to decide one by one
WITNESSES = 16  # violating pairs returned for a violated set
SEEK_COMPARISONS = 2_000_000  # for one clue
SEEK_COMPARISONS_A_ROW = 400  # for tables so small that this is fast: the search is then complete
SMALL_ROWS = 1 << 16
MOST_TAIL = 2048  # most rows since the checkpoint to compare with each other in a search for clues


class Deciding:
    """Decisions on the held rows that are alive. `relation` returns these rows as a Relation."""

    def __init__(
        self, held: HeldRows, fixed: Fixed, vertices: Vertices, relation: Callable[[], Relation], device: Device,
        comparing: Comparing,
    ) -> None:  # fmt: skip
        self._held, self._fixed, self._vertices = held, fixed, vertices
        self._relation, self._device, self._comparing = relation, device, comparing

    def extend(self, sets: Sets, edges: Sets, new_edges: Sets) -> RevisedSets | None:
        """Hitting sets after adding edges; None if they don't change."""
        if not len(new_edges):
            return None
        found = extend_hitting_sets(sets, edges, new_edges, self._vertices.wanted)
        return None if len(found.sets) == len(sets) and (found.kept >= 0).all() else found

    def after_loss(
        self, before: Known, edges: Sets, gone: NDArray[np.bool_], clues: WitnessedClues, old_table: ClueTable,
        table: ClueTable,
    ) -> tuple[Known, NDArray[np.bool_]]:  # fmt: skip
        """Knowledge after some clues lost their pairs of rows, and the removed clues, bool (old clues,).

        Parameters
        ----------
        before, edges : the old knowledge, and the edges of its clues
        gone : bool (old clues,), the lost clues
        clues : the other clues, and clues met with inserted rows
        old_table, table : the old clues and `clues`, by number
        """
        old = before.clues
        lost = np.flatnonzero(gone)
        lost = old.one_of_each_pair(lost, old_table)
        lost = lost[table.numbers_of(old.clues[lost]) < 0]
        if len(lost) > MOST_SOUGHT:
            return self._anew(before)
        promised = before.index.promised.copy()
        for number in lost.tolist():
            t, u, complete = self._seek(old.clues[number])
            if t >= 0:
                rows = np.array([[t, u]], dtype=np.int32)
                clues = clues.with_met(Met(old.clues[number][None, :], rows, np.zeros(0, np.int64)), table)
            elif not complete:
                both = np.stack([old.clues[number], mirror_clues(old.clues[number][None, :], old.layout)[0]])
                for edge in self._vertices.edge_of_each(both):
                    promised &= np.any(before.index.probes & edge, axis=1)
        removed = old.clues[gone][table.numbers_of(old.clues[gone]) < 0]
        fresh = clues.clues[len(old) - int(gone.sum()) :]
        fresh = fresh[old_table.numbers_of(fresh) < 0]
        extended = self.extend(before.sets, edges, self._vertices.edges_of(fresh))
        sets = before.sets if extended is None else extended.sets
        index = before.index
        if not (promised == index.promised).all():
            index = replace(index, promised=promised)
        if len(removed):
            edges = self._vertices.edges_of(clues.clues)
            found = without_edges(sets, edges, self._vertices.edges_of(removed), self._vertices.wanted)
            open_ = found.kept < 0
            open_ &= ~index.promise(found.sets)
            if int(open_.sum()) > MOST_DECIDED:
                return self._anew(before)
            decided = self._decide(found.sets, open_, clues, table, edges, index)
            if decided is None:
                return self._anew(before)
            sets, clues, index = decided
        return Known(clues, sets, np.zeros(len(sets), dtype=np.int64), index), gone

    def _seek(self, clue: NDArray[np.uint64]) -> tuple[int, int, bool]:
        """Find a living pair of rows that leaves a clue, or -1; and whether all pairs were examined."""
        held, comparing = self._held, self._comparing
        living = np.flatnonzero(held.alive[: held.used]).astype(np.int32)
        most = SEEK_COMPARISONS
        if len(living) <= SMALL_ROWS:
            most = max(most, SEEK_COMPARISONS_A_ROW * len(living))
        complete = True
        if held.base:
            if self._index_for(clue) < 0:
                return -1, -1, False
            tried = np.random.default_rng(len(living)).permutation(living)
            tail = living[living >= held.base]
            both = (clue, mirror_clues(clue[None, :], self._fixed.space.layout)[0])
            for wanted, rows, swapped in ((both[0], tried, False), (both[1], tail, True)):
                index = self._index_for(wanted)
                t, u, whole = comparing.seek(
                    held.codes, held.alive, rows, wanted, held.sorted_rows, index, most
                )
                if t >= 0:
                    return (u, t, True) if swapped else (t, u, True)
                complete &= whole
        tail = living[living >= held.base]
        if len(tail) > MOST_TAIL:
            return -1, -1, False
        nothing = ClueTable(np.zeros((0, len(clue)), dtype=np.uint64))
        met, _ = comparing.scan(
            held.codes, held.alive, tail, held.base, held.used, held.scanned, nothing, only_before=False
        )
        at = np.flatnonzero(np.all(met.clues == clue, axis=1))
        if len(at):
            return int(met.rows[at[0], 0]), int(met.rows[at[0], 1]), True
        return -1, -1, complete

    def _index_for(self, clue: NDArray[np.uint64]) -> int:
        """The order of all rows that puts the partners of a given row for a clue closest together; -1 if there is
        none."""
        fixed = {old for old, operator, _ in terms_of_clue(clue, self._fixed.space.layout) if operator == 0}
        rows = self._held.sorted_rows
        best, most = -1, -1.0
        for i in np.flatnonzero(rows.whole).tolist():
            columns = rows.columns_of(i).tolist()
            leading = next((k for k, c in enumerate(columns) if c not in fixed), len(columns))
            if leading + len(columns) / 1000 > most:
                best, most = i, leading + len(columns) / 1000
        return best

    def _decide(
        self,
        sets: Sets,
        open_: NDArray[np.bool_],
        clues: WitnessedClues,
        table: ClueTable,
        edges: Sets,
        index: ColumnSetIndex,
    ) -> tuple[Sets, WitnessedClues, ColumnSetIndex] | None:
        """Check open hitting sets on the table until none is violated, and return hitting sets that all hold.

        None if there are too many to check.
        """
        proven: list[NDArray[np.uint64]] = []
        relation, numbers = None, self._held.living_rows
        while open_.any():
            if int(open_.sum()) > MOST_DECIDED:
                return None
            if relation is None:
                relation = self._relation()
            candidates = np.flatnonzero(open_)
            found = find_witnesses(
                relation, self._vertices.rules(sets[candidates]), nulls=self._fixed.options.discover.nulls,
                limit=WITNESSES, device=self._device,
            )  # fmt: skip
            pairs = []
            for candidate, rows in zip(candidates.tolist(), found, strict=True):
                if not sets[candidate].any() and len(numbers) > 1:  # no predicates: every pair violates it
                    rows = np.array([[0, 1]], dtype=np.int64)
                if not len(rows):
                    proven.append(sets[candidate])
                    open_[candidate] = False
                    continue
                rows = rows.copy()
                alone = rows[:, 1] < 0  # a rule about one row: any other row will do
                rows[alone, 1] = np.where(rows[alone, 0] == 0, min(1, len(numbers) - 1), 0)
                pairs.append(numbers[rows])
            if not pairs:
                break
            violating = np.concatenate(pairs).astype(np.int32)
            t, u = (np.ascontiguousarray(violating[:, side]) for side in (0, 1))
            before = len(clues)
            met = Met(self._comparing.of_pairs(self._held.codes, t, u), violating, np.zeros(0, np.int64))
            clues = clues.with_met(met, table)
            new_edges = self._vertices.edges_of(clues.clues[before:])
            still = sets[open_]
            extended = self.extend(sets, edges, new_edges)
            assert extended is not None  # a pair that violates a set leaves an edge that the set misses
            edges = np.concatenate([edges, new_edges])
            sets = extended.sets
            open_ = (extended.kept < 0) | among(sets, still)
            open_ &= ~index.promise(sets)
            if proven:
                open_ &= ~contains_some(sets, np.array(proven))
        if proven:
            masks = np.array(proven)
            index = index.with_own(masks[unprobed(masks, index.probes, self._vertices)])
        return sets, clues, index

    def _anew(self, before: Known) -> tuple[Known, NDArray[np.bool_]]:
        """Recompute the knowledge from all rows."""
        relation, numbers = self._relation(), self._held.living_rows
        clues, sets, exhausted, _ = search(relation, self._fixed.space, self._vertices)
        clues = replace(clues, witnesses=numbers[clues.witnesses].astype(np.int32))
        masks = before.index.probes
        promised = contains_some(masks, exhausted) | contains_some(masks, sets)
        index = replace(before.index, promised=promised).with_own(sets[unprobed(sets, masks, self._vertices)])
        known = Known(clues, sets, np.zeros(len(sets), dtype=np.int64), index)
        return known, np.ones(len(before.clues), dtype=np.bool_)
