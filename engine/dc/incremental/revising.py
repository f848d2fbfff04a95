"""Working out a revision: what rows that come and go make of clues, minimal hitting sets and probes.

Inserting. A new row is compared with the rows that probes point to (or, where pairs are counted, with all). So the
clues of all new pairs that violate a constraint come to light, and continuing the hitting sets with their edges gives
those of all pairs: what takes the place of a violated one contains it.

Deleting. A clue whose pair of rows has gone is looked for anew. Where it is found nowhere, its edge goes, and hitting
sets that miss it may be new; where the search had to end before, the clue may still be there, and probes whose
predicates it satisfies promise no more. A new hitting set that contains a promised probe holds; any other is decided
on the table, and what violates it is learnt.

Source: IncDC (Qian et al., VLDB Journal 2023, section 8) for insertions; deletions are this project's, under the
conditions of its notes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.clue_set import ClueSet
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.initial import counted_sets, search
from tuplewise.engine.dc.incremental.probes import Probes, contains_some, lay_queries, terms_of, unprobed
from tuplewise.engine.dc.incremental.published import PublishedIndexes
from tuplewise.engine.dc.incremental.revision import Known, among
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.relation.relation import Relation
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.hitting import Extended, extend_hitting_sets, without_edges
from tuplewise.gpu_kernels.probes import SPARE, ClueTable, Comparing, Met, SortedRows, terms_of_clue
from tuplewise.gpu_kernels.words import ACROSS, mirror_clues

MOST_SOUGHT = 256  # lost clues that are looked for one by one; of more, all is found out anew
MOST_DECIDED = 64  # new hitting sets that are decided one by one
WITNESSES = 16  # violating pairs that a violated one gives back
SEEK_COMPARISONS = 2_000_000  # for one clue
SEEK_COMPARISONS_A_ROW = 400  # of tables so small that this is no time: the search is then complete
SMALL_ROWS = 1 << 16
FEW_ROWS = 512  # that come: they are compared with the whole tail; of more the tail is sorted
MOST_TAIL = 2048  # rows since the checkpoint that are compared with each other to look for clues


class Revising:
    """What a state knows, and how it changes.

    Attributes
    ----------
    known : after the last revision that was worked out
    """

    def __init__(
        self, held: HeldRows, known: Known, fixed: Fixed, vertices: Vertices, relation: Callable[[], Relation],
        device: Device,
    ) -> None:  # fmt: skip
        self._held, self.known, self._fixed, self._vertices = held, known, fixed, vertices
        self._relation, self._device = relation, device
        self._comparing = Comparing(fixed.space.layout, fixed.options.discover.nulls)
        self._lookup: tuple[ClueSet, ClueTable] | None = None  # whose it is, too
        self._edges: tuple[ClueSet, Sets] | None = None
        self._published: PublishedIndexes | None = None
        self._within = bool((fixed.space.scope != ACROSS).any())
        self._lay()

    def _lay(self) -> None:
        """Lay the queries of the probes."""
        asked = terms_of(self.known.probes.masks, self._vertices)
        self._queries = None
        if asked:
            self._queries, _ = lay_queries(asked, self._held.sorted_rows)

    @property
    def _table(self) -> ClueTable:
        """The clues that are known."""
        if self._lookup is None or self._lookup[0] is not self.known.clues:
            self._lookup = self.known.clues, self.known.clues.lookup()
        return self._lookup[1]

    @property
    def edges(self) -> Sets:
        """The edges of what is known, some of them more than once."""
        if self._edges is None or self._edges[0] is not self.known.clues:
            self._edges = self.known.clues, self._vertices.edges_of(self.known.clues.clues)
        return self._edges[1]

    def take(self, known: Known) -> None:
        """Know this from now on."""
        masks = self.known.probes.masks
        self.known = known
        if known.probes.masks is not masks:
            self._lay()

    def revise(
        self, codes: NDArray[np.int32], ids: NDArray[np.int64], killed: NDArray[np.int64]
    ) -> tuple[Known, NDArray[np.bool_] | None]:
        """What is known after rows went and others came; and which clues went, bool (clues before,), None: none.

        The held rows are changed; `known` is not yet.
        """
        self._held.kill(killed)
        first = self._held.used
        before, table, published = self.known, self._table, self._published
        self._lookup = self._published = None  # what is worked out here may be broken off
        if self._fixed.counting:
            return self._count(before, codes, ids, killed, first, table)
        gone = None
        clues, old_table = before.clues, table
        if len(killed) and len(clues):
            alive = self._held.alive
            gone = ~alive[clues.witnesses[:, 0]] | ~alive[clues.witnesses[:, 1]]
            if gone.any():
                clues = clues.without(gone)
                table = clues.lookup()
            else:
                gone = None
        if published is not None:
            published.remove(killed)
        if len(ids):
            self._held.append(codes, ids)
            if self._fixed.options.index == "published":
                published = published or self._make_published(first)
                before = self._with_fewer_promises(before)
                met = self._meet_published(published, first, table)
            else:
                met = self._meet(first, table)
            clues = clues.with_met(met, table)
        if gone is not None:
            known, gone = self._after_loss(before, gone, clues, old_table, table)
        else:
            known = before if clues is before.clues else self._extended(before, clues)
            self._lookup = clues, table
        if published is not None:
            published.cover(self._predicates(known.sets[~among(known.sets, before.sets)]))
            self._published = published
        return known, gone

    def _with_fewer_promises(self, known: Known) -> Known:
        """Without the promises of probes that the published indexes don't ask for: they serve constraints that hold."""
        probes = known.probes
        promised = probes.promised & contains_some(probes.masks, known.sets)
        if (promised == probes.promised).all():
            return known
        return replace(known, probes=replace(probes, promised=promised))

    def _predicates(self, sets: Sets) -> list[list[int]]:
        """The predicates of constraints by their numbers."""
        predicates, sizes = self._vertices.predicates_of(sets)
        return [row[:size] for row, size in zip(predicates.tolist(), sizes.tolist(), strict=True)]

    def _make_published(self, rows: int) -> PublishedIndexes:
        """The published indexes of the first rows that are alive."""
        held, options = self._held, self._fixed.options.discover
        constraints = self._predicates(self.known.sets)
        made = PublishedIndexes(
            held.codes[:rows], self._fixed.space, constraints, nulls=options.nulls, seed=options.seed
        )
        made.remove(np.flatnonzero(~held.alive[:rows]))
        return made

    def _meet_published(self, indexes: PublishedIndexes, first: int, table: ClueTable) -> Met:
        """What the rows from number `first` on meet that is not known, found by the published indexes."""
        held = self._held
        found = [Met(np.zeros((0, table.table.shape[1]), np.uint64), np.zeros((0, 2), np.int32), np.zeros(0, np.int64))]
        for t, u in indexes.portions(first, held.codes[: held.used]):
            clues = self._comparing.of_pairs(held.codes, t, u)
            unknown = table.numbers_of(clues) < 0
            distinct, places = np.unique(clues[unknown], axis=0, return_index=True)
            rows = np.stack([t[unknown], u[unknown]], axis=1)[places]
            found.append(Met(distinct, rows, np.zeros(0, np.int64)))
        clues, rows = (np.concatenate([getattr(met, name) for met in found]) for name in ("clues", "rows"))
        return Met(clues, rows, np.zeros(0, dtype=np.int64))

    def _extended(self, before: Known, clues: ClueSet) -> Known:
        """What is known when the clues after those before are new."""
        new_edges = self._vertices.edges_of(clues.clues[len(before.clues) :])
        found = self._extend(before.sets, self.edges, new_edges)
        sets = before.sets if found is None else found.sets
        self._edges = clues, np.concatenate([self.edges, new_edges])
        return Known(clues, sets, np.zeros(len(sets), dtype=np.int64), before.probes)

    def _extend(self, sets: Sets, edges: Sets, new_edges: Sets) -> Extended | None:
        """The hitting sets of more edges; None where they stay as they are."""
        v = self._vertices
        if not len(new_edges):
            return None
        found = extend_hitting_sets(
            sets, edges, new_edges, atoms=v.count, group=v.group, mirror=v.mirror, exclusive=not v.by_atom,
            max_groups=self._fixed.options.discover.max_predicates,
        )  # fmt: skip
        return None if len(found.sets) == len(sets) and (found.kept >= 0).all() else found

    def _without(self, sets: Sets, edges: Sets, removed: Sets) -> Extended:
        v = self._vertices
        return without_edges(
            sets, edges, removed, atoms=v.count, group=v.group, mirror=v.mirror, exclusive=not v.by_atom,
            max_groups=self._fixed.options.discover.max_predicates,
        )  # fmt: skip

    def _meet(self, first: int, table: ClueTable) -> Met:
        """What the rows from number `first` on meet that is not known."""
        held, comparing = self._held, self._comparing
        found = [Met(np.zeros((0, table.table.shape[1]), np.uint64), np.zeros((0, 2), np.int32), np.zeros(0, np.int64))]
        if self._queries is not None:
            met, _ = comparing.probe(
                held.codes, held.alive, first, held.used, held.sorted_rows, self._queries, table
            )
            found.append(met)
        new = np.arange(first, held.used, dtype=np.int32)
        if len(new) > FEW_ROWS and self._queries is not None:
            base = held.sorted_rows
            tail = SortedRows.build(held.codes, base.lists, base.whole.tolist(), (held.base, held.used))
            met, _ = comparing.probe(held.codes, held.alive, first, held.used, tail, self._queries, table)
            found.append(met)
        elif held.used - held.base > 1:
            met, _ = comparing.scan(
                held.codes, held.alive, new, held.base, held.scanned, table, only_before=True
            )
            found.append(met)
        if self._within:
            found.append(self._meet_anyone(new, table))
        clues, rows = (np.concatenate([getattr(met, name) for met in found]) for name in ("clues", "rows"))
        return Met(clues, rows, np.zeros(0, dtype=np.int64))  # they are not counted

    def _meet_anyone(self, new: NDArray[np.int32], table: ClueTable) -> Met:
        """Each new row with one other: what is said of one row shows in any pair of it."""
        alive = np.flatnonzero(self._held.alive[: self._held.used])[:2].astype(np.int32)
        if len(alive) < 2:
            new = new[:0]
        partner = np.where(new == alive[0], alive[-1], alive[0]) if len(alive) else new
        clues = self._comparing.of_pairs(self._held.codes, new, partner)
        unknown = table.numbers_of(clues) < 0
        rows = np.stack([new, partner], axis=1)[unknown]
        return Met(clues[unknown], rows, np.zeros(0, dtype=np.int64))

    def _count(
        self, before: Known, codes: NDArray[np.int32], ids: NDArray[np.int64], killed: NDArray[np.int64], first: int,
        table: ClueTable,
    ) -> tuple[Known, NDArray[np.bool_] | None]:  # fmt: skip
        """The same where all pairs are counted."""
        held, clues = self._held, before.clues
        if len(killed):
            pairs = self._scan(killed.astype(np.int32), table, len(clues))
            own = np.ascontiguousarray(held.codes[killed])
            everyone = np.ones(len(killed), dtype=np.bool_)
            _, among_them = self._comparing.scan(
                own, everyone, np.arange(len(own), dtype=np.int32), 0, np.pad(own.T, ((0, 0), (0, SPARE))), table,
                only_before=True, counting=len(clues),
            )  # fmt: skip
            clues = clues.counted(pairs[1] + among_them, -1, table)
        if len(ids):
            held.append(codes, ids)
            new = np.arange(first, held.used, dtype=np.int32)
            met, counts = self._comparing.scan(
                held.codes, held.alive, new, 0, held.scanned, table, only_before=True, counting=len(clues)
            )
            clues = clues.counted(counts, 1, table).with_met(met, table)
        gone = clues.counts == 0
        stay = clues.without(gone) if gone.any() else clues
        known = self._of_counts(before, clues, stay, gone)
        if stay is clues:
            self._lookup = clues, table
        if not gone.any():
            return known, None
        return known, gone[: len(before.clues)]

    def _scan(self, rows: NDArray[np.int32], table: ClueTable, counting: int) -> tuple[Met, NDArray[np.int64]]:
        held = self._held
        return self._comparing.scan(
            held.codes, held.alive, rows, held.scanned_from, held.scanned, table, only_before=False, counting=counting
        )

    def _of_counts(self, before: Known, clues: ClueSet, stay: ClueSet, gone: NDArray[np.bool_]) -> Known:
        """What counts mean: `clues` with those that are new, `stay` without those that no pair leaves any more."""
        rows = self._held.living
        if self._fixed.options.discover.error > 0:
            found = counted_sets(stay, self._vertices, rows)
            return Known(stay, found.sets, found.uncovered, before.probes)
        sets = before.sets
        if len(clues) > len(before.clues):
            extended = self._extend(sets, self.edges, self._vertices.edges_of(clues.clues[len(before.clues) :]))
            sets = sets if extended is None else extended.sets
        if gone.any():
            edges = self._vertices.edges_of(stay.clues)
            self._edges = stay, edges
            sets = self._without(sets, edges, self._vertices.edges_of(clues.clues[gone])).sets
        elif len(clues) == len(before.clues):
            self._edges = stay, self.edges  # other counts, the same clues
        return Known(stay, sets, np.zeros(len(sets), dtype=np.int64), before.probes)

    def _after_loss(
        self, before: Known, gone: NDArray[np.bool_], clues: ClueSet, old_table: ClueTable, table: ClueTable
    ) -> tuple[Known, NDArray[np.bool_]]:
        """What is known when some clues have lost their pairs of rows, and which clues went.

        `clues`: the others, and those that were met; the tables are those of the clues before and of these.
        """
        old = before.clues
        lost = np.flatnonzero(gone)
        lost = old.one_of_each_pair(lost, old_table)
        lost = lost[table.numbers_of(old.clues[lost]) < 0]
        if len(lost) > MOST_SOUGHT:
            return self._anew(before)
        promised = before.probes.promised.copy()
        for number in lost.tolist():
            t, u, complete = self._seek(old.clues[number])
            if t >= 0:
                rows = np.array([[t, u]], dtype=np.int32)
                clues = clues.with_met(Met(old.clues[number][None, :], rows, np.zeros(0, np.int64)), table)
            elif not complete:
                both = np.stack([old.clues[number], mirror_clues(old.clues[number][None, :], old.layout)[0]])
                for edge in self._vertices.edge_of_each(both):
                    promised &= np.any(before.probes.masks & edge, axis=1)
        removed = old.clues[gone][table.numbers_of(old.clues[gone]) < 0]
        fresh = clues.clues[len(old) - int(gone.sum()) :]
        fresh = fresh[old_table.numbers_of(fresh) < 0]
        edges = np.concatenate([self.edges, self._vertices.edges_of(fresh)])
        extended = self._extend(before.sets, self.edges, self._vertices.edges_of(fresh))
        sets = before.sets if extended is None else extended.sets
        probes = before.probes
        if not (promised == probes.promised).all():
            probes = replace(probes, promised=promised)
        if len(removed):
            edges = self._vertices.edges_of(clues.clues)
            found = self._without(sets, edges, self._vertices.edges_of(removed))
            open_ = found.kept < 0
            open_ &= ~probes.promise(found.sets)
            if int(open_.sum()) > MOST_DECIDED:
                return self._anew(before)
            decided = self._decide(found.sets, open_, clues, table, edges, probes)
            if decided is None:
                return self._anew(before)
            sets, clues, edges, probes = decided
        self._lookup = clues, table
        return Known(clues, sets, np.zeros(len(sets), dtype=np.int64), probes), gone

    def _seek(self, clue: NDArray[np.uint64]) -> tuple[int, int, bool]:
        """A living pair of rows that leaves a clue, or -1; and whether all pairs were looked at."""
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
        met, _ = comparing.scan(held.codes, held.alive, tail, held.base, held.scanned, nothing, only_before=False)
        at = np.flatnonzero(np.all(met.clues == clue, axis=1))
        if len(at):
            return int(met.rows[at[0], 0]), int(met.rows[at[0], 1]), True
        return -1, -1, complete

    def _index_for(self, clue: NDArray[np.uint64]) -> int:
        """The order of all rows in which those that leave a clue with a given one lie nearest to each other, -1 where
        there is none."""
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
        self, sets: Sets, open_: NDArray[np.bool_], clues: ClueSet, table: ClueTable, edges: Sets, probes: Probes
    ) -> tuple[Sets, ClueSet, Sets, Probes] | None:
        """Hitting sets all of which hold: those that are open are checked on the table, until none is violated.

        None where there are too many to be checked.
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
                if not sets[candidate].any() and len(numbers) > 1:  # no predicates: any pair violates it
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
            extended = self._extend(sets, edges, new_edges)
            assert extended is not None  # what violates a set leaves an edge that it misses
            edges = np.concatenate([edges, new_edges])
            sets = extended.sets
            open_ = (extended.kept < 0) | among(sets, still)
            open_ &= ~probes.promise(sets)
            if proven:
                open_ &= ~contains_some(sets, np.array(proven))
        if proven:
            masks = np.array(proven)
            masks = masks[unprobed(masks, probes.masks, self._vertices)]
            if len(masks):
                promised = np.concatenate([probes.promised, np.ones(len(masks), dtype=np.bool_)])
                own = np.concatenate([probes.own, np.ones(len(masks), dtype=np.bool_)])
                probes = Probes(np.concatenate([probes.masks, masks]), promised, own)
        return sets, clues, edges, probes

    def _anew(self, before: Known) -> tuple[Known, NDArray[np.bool_]]:
        """All of it, from the rows that are there."""
        relation, numbers = self._relation(), self._held.living_rows
        searched, _ = search(relation, self._fixed.space, self._vertices)
        clues = replace(searched.clues, witnesses=numbers[searched.clues.witnesses].astype(np.int32))
        masks, sets = before.probes.masks, searched.sets
        own = sets[unprobed(sets, masks, self._vertices)]
        masks = np.concatenate([masks, own])
        promised = contains_some(masks, searched.promised) | contains_some(masks, sets)
        all_own = np.concatenate([before.probes.own, np.ones(len(own), dtype=np.bool_)])
        known = Known(clues, sets, np.zeros(len(sets), dtype=np.int64), Probes(masks, promised, all_own))
        return known, np.ones(len(before.clues), dtype=np.bool_)
