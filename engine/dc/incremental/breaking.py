"""Which pair of rows broke a constraint that is no longer listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.columns import KeptColumn
from tuplewise.engine.dc.incremental.dictionaries import Additions, Dictionaries
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.listing import Numbers
from tuplewise.engine.dc.incremental.revision import Known
from tuplewise.engine.dc.incremental.row_names import key_of_row
from tuplewise.engine.dc.predicate import allowed_violations
from tuplewise.engine.dc.vertices import Vertices
from tuplewise.gpu_kernels.hitting import first_missed
from tuplewise.gpu_kernels.probes import Comparing


class Breaking:
    """Looks for the pairs.

    Parameters
    ----------
    dictionaries, additions : values that are known, and that came with the revision
    fresh, first : clues from the one number on and rows from the other are new
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
        """Names [t, u] for each constraint that is violated now, u None where it is about one row; None for others."""
        if not lost:
            return []
        masks = self._vertices.of_each(lost)
        one_row = self._vertices.about_one_row(masks)
        edges = self._vertices.edge_of_each(self._known.clues.clues[self._fresh :])
        missed = first_missed(masks, edges).tolist()
        found: list[Any] = []
        for mask, alone, edge in zip(masks, one_row.tolist(), missed, strict=True):
            pair: list[int] | None = None
            if alone or self._fixed.options.discover.error > 0:
                if alone or self._violations(mask) > self._allowed():
                    pair = self._search(mask, alone)
            elif edge >= 0:
                pair = self._known.clues.witnesses[self._fresh + edge].tolist()
                if min(pair) < 0:  # a GPU does not tell which rows left a clue
                    pair = self._search(mask, alone)
            found.append(None if pair is None else [self._name(pair[0]), None if alone else self._name(pair[1])])
        return found

    def _violations(self, mask: NDArray[np.uint64]) -> int:
        """How many ordered pairs violate a constraint, where pairs are counted."""
        clues = self._known.clues
        edges = self._vertices.edge_of_each(clues.clues)
        return int(clues.counts[~np.any(edges & mask, axis=1)].sum())

    def _allowed(self) -> int:
        rows = self._held.living
        return allowed_violations(self._fixed.options.discover.error, rows * (rows - 1))

    def _search(self, mask: NDArray[np.uint64], one_row: bool) -> list[int] | None:
        """Rows (t, u) that violate a constraint, one of them new."""
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
