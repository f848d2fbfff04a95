"""The counting mode: the state counts the pairs that leave each clue. New and deleted rows meet all others.

A few rows are compared by the loop that also returns the pair of a new clue. More rows, and all rows on a GPU, are
compared by the kernel of evidence, which doesn't return pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.clue_set import WitnessedClues
from tuplewise.engine.dc.incremental.deciding import Deciding
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.initial import counted_sets
from tuplewise.engine.dc.incremental.revision import Known
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.gpu_kernels.column_set_index import SPARE, ClueTable, Comparing
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.evidence import collect_clues, collect_clues_between
from tuplewise.gpu_kernels.hitting import without_edges

FEW_ROWS = {"cpu": 64, "cuda": 0}  # most rows for the loop, by kind of device


class Counting:
    """Counts of pairs of held rows."""

    def __init__(
        self, held: HeldRows, fixed: Fixed, vertices: Vertices, device: Device, comparing: Comparing, deciding: Deciding
    ) -> None:
        self._held, self._fixed, self._vertices, self._device = held, fixed, vertices, device
        self._comparing, self._deciding = comparing, deciding

    def revise(
        self, before: Known, edges: Sets, codes: NDArray[np.int32], ids: NDArray[np.int64], killed: NDArray[np.int64],
        table: ClueTable,
    ) -> tuple[Known, NDArray[np.bool_] | None, ClueTable]:  # fmt: skip
        """Knowledge after rows were deleted and inserted, with a mask of the lost clues, and the clues by number.

        `edges`: edges of the old knowledge; `table`: its clues, to which new clues are added.
        """
        held, clues = self._held, before.clues
        few = FEW_ROWS[self._device.kind]
        if len(killed):
            many = len(killed) > few
            clues = self._by_kernel(clues, killed, -1, table) if many else self._subtract(clues, killed, table)
        if len(ids):
            first = held.used
            held.append(codes, ids)
            new = np.arange(first, held.used, dtype=np.int64)
            clues = self._by_kernel(clues, new, 1, table) if len(ids) > few else self._add(clues, new, table)
        gone = clues.counts == 0
        if not gone.any():
            return self._known(before, edges, clues, clues, gone), None, table
        stay = clues.without(gone)
        return self._known(before, edges, clues, stay, gone), gone[: len(before.clues)], stay.lookup()

    def _subtract(self, clues: WitnessedClues, killed: NDArray[np.int64], table: ClueTable) -> WitnessedClues:
        """Subtract the pairs of deleted rows from the clues."""
        held, own = self._held, np.ascontiguousarray(self._held.codes[killed])
        _, with_others = self._comparing.scan(
            held.codes, held.alive, killed.astype(np.int32), 0, held.used, held.scanned, table, only_before=False,
            counting=len(clues),
        )  # fmt: skip
        _, among_them = self._comparing.scan(
            own, np.ones(len(own), dtype=np.bool_), np.arange(len(own), dtype=np.int32), 0, len(own),
            np.pad(own.T, ((0, 0), (0, SPARE))), table, only_before=True, counting=len(clues),
        )  # fmt: skip
        return clues.counted(with_others + among_them, -1, table)

    def _add(self, clues: WitnessedClues, new: NDArray[np.int64], table: ClueTable) -> WitnessedClues:
        """Add the pairs of the last rows to the clues."""
        held = self._held
        met, counts = self._comparing.scan(
            held.codes, held.alive, new.astype(np.int32), 0, held.used, held.scanned, table, only_before=True,
            counting=len(clues),
        )  # fmt: skip
        return clues.counted(counts, 1, table).with_met(met, table)

    def _by_kernel(self, clues: WitnessedClues, rows: NDArray[np.int64], sign: int, table: ClueTable) -> WitnessedClues:
        """Add (sign 1) or subtract (-1) the pairs of some rows, with other living rows and among themselves."""
        held, layout = self._held, self._fixed.space.layout
        columns = np.ascontiguousarray(held.scanned[:, : held.used])
        others = np.setdiff1d(np.flatnonzero(held.alive[: held.used]), rows)
        nulls = self._fixed.options.discover.nulls
        found = collect_clues_between(columns, layout, rows, others, nulls=nulls, device=self._device)
        own = np.unique(held.codes[rows], return_inverse=True)[1].reshape(len(rows), -1)  # densest ranks
        own = (own - int((held.codes[rows] < 0).any())).astype(np.int32)
        among_them = collect_clues(np.ascontiguousarray(own.T), layout, nulls=nulls, device=self._device)
        for part in (found, among_them):
            assert part.counts is not None
            clues = clues.recounted(part.clues, sign * part.counts, table)
        return clues

    def _known(
        self, before: Known, edges: Sets, clues: WitnessedClues, stay: WitnessedClues, gone: NDArray[np.bool_]
    ) -> Known:
        """Knowledge from counts. `clues`: with new clues; `stay`: without clues that no pair leaves any more."""
        if self._fixed.options.discover.error > 0:
            found = counted_sets(stay, self._vertices, self._held.living)
            return Known(stay, found.sets, found.uncovered, before.index)
        sets = before.sets
        if len(clues) > len(before.clues):
            new_edges = self._vertices.edges_of(clues.clues[len(before.clues) :])
            extended = self._deciding.extend(sets, edges, new_edges)
            sets = sets if extended is None else extended.sets
        if gone.any():
            removed = self._vertices.edges_of(clues.clues[gone])
            sets = without_edges(sets, self._vertices.edges_of(stay.clues), removed, self._vertices.wanted).sets
        return Known(stay, sets, np.zeros(len(sets), dtype=np.int64), before.index)
