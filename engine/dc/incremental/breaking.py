"""Search for the pair of rows that broke a constraint no longer listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.dictionaries import Additions, Dictionaries
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.listing import Numbers
from tuplewise.engine.dc.incremental.revision import Known
from tuplewise.engine.dc.incremental.row_names import key_of_row
from tuplewise.engine.dc.predicate import allowed_violations
from tuplewise.engine.dc.vertices import Vertices
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.clusters import all_rows
from tuplewise.gpu_kernels.column_set_index import ClueTable, Comparing
from tuplewise.gpu_kernels.hitting import first_missed


class Breaking:
    """Search for the pairs that broke constraints.

    Parameters
    ----------
    dictionaries, additions : known values, and new values of the revision
    fresh, first : numbers of the first new clue and of the first new row
    """

    def __init__(
        self, fixed: Fixed, vertices: Vertices, held: HeldRows, known: Known, dictionaries: Dictionaries,
        additions: Additions, *, fresh: int, first: int,
    ) -> None:  # fmt: skip
        self._fixed, self._vertices, self._held, self._known = fixed, vertices, held, known
        self._dictionaries, self._additions = dictionaries, additions
        self._fresh, self._first = fresh, first
        self._comparing = Comparing(fixed.space.layout, fixed.options.discover.nulls)

    def pairs(self, lost: Sequence[Numbers]) -> list[Any]:
        """Row names [t, u] for each constraint violated now, u None if it is about one row; None for the others."""
        if not lost:
            return []
        masks = self._vertices.of_each(lost)
        one_row = self._vertices.about_one_row(masks)
        edges = self._vertices.edge_of_each(self._known.clues.clues[self._fresh :])
        missed = first_missed(masks, edges)
        pairs = self._witnesses(missed)[missed].tolist() if len(edges) else [None] * len(missed)
        found: list[Any] = []
        for mask, alone, edge, witness in zip(masks, one_row.tolist(), missed.tolist(), pairs, strict=True):
            pair: list[int] | None = None
            if alone or self._fixed.options.discover.error > 0:
                if alone or self._violations(mask) > self._allowed():
                    pair = self._search(mask, alone)
            elif edge >= 0:
                pair = witness
            found.append(None if pair is None else [self._name(pair[0]), None if alone else self._name(pair[1])])
        return found

    def _witnesses(self, wanted: NDArray[np.int64]) -> NDArray[np.int32]:
        """A pair of rows for each wanted new clue (-1: none), int32 (new clues, 2).

        The kernel of evidence doesn't return pairs; after it, the new rows are compared once more.
        """
        witnesses = self._known.clues.witnesses[self._fresh :]
        chosen = np.unique(wanted[wanted >= 0])
        chosen = chosen[witnesses[chosen, 0] < 0]
        if not len(chosen):
            return witnesses
        held, layout = self._held, self._fixed.space.layout
        everyone = held.living_rows.astype(np.int32)
        rows = lay_out(
            np.ascontiguousarray(held.codes[: held.used].T), layout, nulls=self._fixed.options.discover.nulls,
            device="cpu",
        )  # fmt: skip
        met = rows.within(all_rows(np.arange(self._first, held.used, dtype=np.int32), np.sort(everyone)))
        at = ClueTable(met.clues).numbers_of(self._known.clues.clues[self._fresh + chosen])
        witnesses = witnesses.copy()
        witnesses[chosen] = met.rows[at]
        return witnesses

    def _violations(self, mask: NDArray[np.uint64]) -> int:
        """Number of ordered pairs that violate a constraint, if the state counts pairs."""
        clues = self._known.clues
        edges = self._vertices.edge_of_each(clues.clues)
        return int(clues.counts[~np.any(edges & mask, axis=1)].sum())

    def _allowed(self) -> int:
        rows = self._held.living
        return allowed_violations(self._fixed.options.discover.error, rows * (rows - 1))

    def _search(self, mask: NDArray[np.uint64], one_row: bool) -> list[int] | None:
        """Find rows (t, u) that violate a constraint, one of them new."""
        held = self._held
        everyone = held.living_rows.astype(np.int32)
        for row in range(self._first, held.used):
            others = np.array([row], dtype=np.int32) if one_row else everyone[everyone != row]
            new = np.full(len(others), row, dtype=np.int32)
            for t, u in ((new, others), (others, new)):
                edges = self._vertices.edge_of_each(self._comparing.of_pairs(held.codes, t, u))
                satisfied = np.flatnonzero(~np.any(edges & mask, axis=1))
                if len(satisfied):
                    return [int(t[satisfied[0]]), int(u[satisfied[0]])]
        return None

    def _name(self, row: int) -> Any:
        """The id of a row, or its key."""
        held = self._held
        if not len(held.key_columns):
            return int(held.ids[row])
        columns: list[KeptColumn] = [self._fixed.columns[c] for c in held.key_columns.tolist()]
        return key_of_row(columns, held.codes[row, held.key_columns], self._dictionaries, self._additions)
