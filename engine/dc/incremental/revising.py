"""Working out a revision: how new and deleted rows change clues, minimal hitting sets and the column-set index.

Inserting. A new row is compared with the rows that probes point to (or, where pairs are counted, with all). So the
clues of all new pairs that violate a constraint come to light, and continuing the hitting sets with their edges gives
those of all pairs: what takes the place of a violated one contains it, and its probe.

Deleting is what deciding.py is about.

Source: IncDC (Qian et al., VLDB Journal 2023, section 8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.clue_set import WitnessedClues
from tuplewise.engine.dc.incremental.column_set_index import contains_some, lay_queries, terms_of, unprobed
from tuplewise.engine.dc.incremental.counting import Counting
from tuplewise.engine.dc.incremental.deciding import Deciding
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.revision import Known, among
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.column_set_index import ClueTable, Comparing, Met, SortedRows
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.hitting import first_missed
from tuplewise.gpu_kernels.words import ACROSS

if TYPE_CHECKING:
    from tuplewise.engine.published.incdc.indexes import PublishedIndexes

FEW_ROWS = 512  # that come: they are compared with the whole tail; of more the tail is sorted


class Revising:
    """The knowledge of a state, and how revisions change it.

    Attributes
    ----------
    known : after the last revision that was worked out
    """

    def __init__(
        self, held: HeldRows, known: Known, fixed: Fixed, vertices: Vertices, relation: Callable[..., Relation],
        device: Device,
    ) -> None:  # fmt: skip
        self._held, self.known, self._fixed, self._vertices = held, known, fixed, vertices
        self._comparing = Comparing(fixed.space.layout, fixed.options.discover.nulls)
        self._lookup: tuple[WitnessedClues, ClueTable] | None = None  # whose it is, too
        self._edges: tuple[WitnessedClues, Sets] | None = None
        self._published: PublishedIndexes | None = None
        self._deciding = Deciding(held, fixed, vertices, relation, device, self._comparing)
        self._counting = Counting(held, fixed, vertices, device, self._comparing, self._deciding)
        self._within = bool((fixed.space.scope != ACROSS).any())
        self._lay()

    def _lay(self) -> None:
        """Lay the queries of the probes."""
        asked = terms_of(self.known.index.probes, self._vertices)
        self._queries = lay_queries(asked, self._held.sorted_rows) if asked else None

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
        """Replace the knowledge."""
        masks = self.known.index.probes
        self.known = known
        if known.index.probes is not masks:
            self._lay()

    def revise(
        self, codes: NDArray[np.int32], ids: NDArray[np.int64], killed: NDArray[np.int64]
    ) -> tuple[Known, NDArray[np.bool_] | None]:
        """The knowledge after a revision; and which clues went, bool (clues before,), None: none.

        The held rows are changed; `known` is not yet.
        """
        self._held.kill(killed)
        first = self._held.used
        before, table, published = self.known, self._table, self._published
        self._lookup = self._published = None  # what is worked out here may be broken off
        if self._fixed.counting:
            known, gone, table = self._counting.revise(before, self.edges, codes, ids, killed, table)
            self._lookup = known.clues, table
            return known, gone
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
            known, gone = self._deciding.after_loss(before, self.edges, gone, clues, old_table, table)
        else:
            known = before if clues is before.clues else self._extended(before, clues)
            self._lookup = clues, table
        if self._within:
            known = self._probed(known)
        if published is not None:
            published.cover(self._predicates(known.sets[~among(known.sets, before.sets)]))
            self._published = published
        return known, gone

    def _with_fewer_promises(self, known: Known) -> Known:
        """The knowledge without promises of probes without a constraint: the published indexes serve no others."""
        index = known.index
        promised = index.promised & contains_some(index.probes, known.sets)
        if (promised == index.promised).all():
            return known
        return replace(known, index=replace(index, promised=promised))

    def _probed(self, known: Known) -> Known:
        """The knowledge with a probe in each hitting set: what replaces a constraint about one row may contain none."""
        own = known.sets[unprobed(known.sets, known.index.probes, self._vertices)]
        return replace(known, index=known.index.with_own(own)) if len(own) else known

    def _predicates(self, sets: Sets) -> list[list[int]]:
        """The predicates of constraints by their numbers."""
        predicates, sizes = self._vertices.predicates_of(sets)
        return [row[:size] for row, size in zip(predicates.tolist(), sizes.tolist(), strict=True)]

    def _make_published(self, rows: int) -> PublishedIndexes:
        """The published indexes of the first rows that are alive."""
        from tuplewise.engine.published.incdc.indexes import PublishedIndexes

        held, options = self._held, self._fixed.options.discover
        constraints = self._predicates(self.known.sets)
        made = PublishedIndexes(
            held.codes[:rows], self._fixed.space, constraints, nulls=options.nulls, seed=options.seed
        )
        made.remove(np.flatnonzero(~held.alive[:rows]))
        return made

    def _meet_published(self, indexes: PublishedIndexes, first: int, table: ClueTable) -> Met:
        """New clues of the rows from number `first` on, found by the published indexes."""
        held = self._held
        found = []
        for t, u in indexes.portions(first, held.codes[: held.used]):
            clues = self._comparing.of_pairs(held.codes, t, u)
            unknown = table.numbers_of(clues) < 0
            distinct, places = np.unique(clues[unknown], axis=0, return_index=True)
            rows = np.stack([t[unknown], u[unknown]], axis=1)[places]
            found.append(Met(distinct, rows, np.zeros(0, np.int64)))
        return _uncounted(found, table)

    def _extended(self, before: Known, clues: WitnessedClues) -> Known:
        """The knowledge when the clues after those before are new."""
        new_edges = self._vertices.edges_of(clues.clues[len(before.clues) :])
        found = self._deciding.extend(before.sets, self.edges, new_edges)
        sets = before.sets if found is None else found.sets
        self._edges = clues, np.concatenate([self.edges, new_edges])
        return Known(clues, sets, np.zeros(len(sets), dtype=np.int64), before.index)

    def _meet(self, first: int, table: ClueTable) -> Met:
        """New clues of the rows from number `first` on."""
        held, comparing = self._held, self._comparing
        found = []
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
                held.codes, held.alive, new, held.base, held.used, held.scanned, table, only_before=True
            )
            found.append(met)
        if self._within:
            found.append(self._meet_anyone(new, table))
        return _uncounted(found, table)

    def _meet_anyone(self, new: NDArray[np.int32], table: ClueTable) -> Met:
        """New clues of each new row with one other: predicates about one row show in any of its pairs.

        A row that violates a constraint about one row is compared with all others: no probe asks for the pairs that
        decide what takes that constraint's place.
        """
        held, sets = self._held, self.known.sets
        alive = np.flatnonzero(held.alive[: held.used]).astype(np.int32)
        if len(alive) < 2:
            new = new[:0]
            alive = np.zeros(1, dtype=np.int32)  # nobody to compare with
        partner = np.where(new == alive[0], alive[-1], alive[0])
        clues = self._comparing.of_pairs(held.codes, new, partner)
        rows = np.stack([new, partner], axis=1)
        rules = sets[self._vertices.about_one_row(sets)]
        violating = first_missed(self._vertices.edge_of_each(clues), rules) >= 0
        for row in new[violating].tolist():
            others = alive[alive != row]
            t = np.full(len(others), row, dtype=np.int32)
            clues = np.concatenate([clues, self._comparing.of_pairs(held.codes, t, others)])
            rows = np.concatenate([rows, np.stack([t, others], axis=1)])
        unknown = table.numbers_of(clues) < 0
        return Met(clues[unknown], rows[unknown], np.zeros(0, dtype=np.int64))


def _uncounted(found: Sequence[Met], table: ClueTable) -> Met:
    """What was met in several ways, with no counts. `table`: says how wide clues are."""
    none = np.zeros((0, table.table.shape[1]), dtype=np.uint64), np.zeros((0, 2), dtype=np.int32)
    clues = np.concatenate([none[0], *(met.clues for met in found)])
    rows = np.concatenate([none[1], *(met.rows for met in found)])
    return Met(clues, rows, np.zeros(0, dtype=np.int64))
