"""Search for the pair of rows that broke a constraint no longer listed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.dictionaries import Additions, Dictionaries
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
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

    def pairs(self, lost: NDArray[np.int32]) -> list[Any]:
        """Row names [t, u] for each constraint violated now, u None if it is about one row; None for the others.

        `lost`: predicate numbers of the constraints, int32 (lost, width) padded with -1.
        """
        if not len(lost):
            return []
        masks = self._vertices.of_each(lost)
        one_row = self._vertices.about_one_row(masks)
        edges = self._vertices.edge_of_each(self._known.clues.clues[self._fresh :])
        missed = first_missed(masks, edges)
        rows = np.full((len(masks), 2), -1, dtype=np.int64)
        if len(edges):
            rows[missed >= 0] = self._witnesses(missed)[missed[missed >= 0]]
        sought = one_row | (self._fixed.options.discover.error > 0)
        for i in np.flatnonzero(sought).tolist():
            alone, pair = bool(one_row[i]), None
            if alone or self._violations(masks[i]) > self._allowed():
                pair = self._search(masks[i], alone)
            rows[i] = (-1, -1) if pair is None else pair
        rows[one_row, 1] = -1
        names = (self._names(rows[:, side]) for side in (0, 1))
        return [None if t is None else [t, u] for t, u in zip(*names, strict=True)]

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

    def _names(self, rows: NDArray[np.int64]) -> list[Any]:
        """The ids of rows, or their keys; None for -1."""
        held = self._held
        if not len(held.key_columns):
            ids = held.ids[rows].astype(object)
            ids[rows < 0] = None
            return list(ids)
        columns: list[KeptColumn] = [self._fixed.columns[c] for c in held.key_columns.tolist()]
        return [
            None if row < 0 else key_of_row(columns, held.codes[row, held.key_columns], self._dictionaries,
                                            self._additions)
            for row in rows.tolist()
        ]  # fmt: skip
