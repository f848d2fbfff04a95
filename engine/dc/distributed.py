"""Discovery of denial constraints on a table whose codes stay in Spark: candidates are validated in Spark tasks.

Validation uses rule checking in Spark; the rest of the table is common to all discoveries (`engine.spark_table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.hybrid import LISTED_AT_ONCE
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.dc.violations.count import count_pairs, count_program, prepared
from tuplewise.engine.dc.violations.distributed import find_witnesses_on_spark, rule_on
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.dc.violations.listing import pairs_in_order
from tuplewise.engine.dc.violations.program import Program, bind
from tuplewise.engine.local_table import ESTIMATE_ROWS
from tuplewise.engine.loop import Clues
from tuplewise.engine.options import Nulls
from tuplewise.engine.spark import agreeing as pairs_on_spark
from tuplewise.engine.spark import run
from tuplewise.engine.spark.agreeing import LEAST_PAIRS, ClueKernels, TileClues
from tuplewise.engine.spark.tasks import RowChoice
from tuplewise.engine.spark_table import NO_ROWS, SparkTable, sample_rows
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.words import ClueLayout


@dataclass(frozen=True, eq=False)
class ViolatingPairs:
    """Violating pairs of a rule to compare in Spark tasks, with the clue layout and the null rule."""

    layout: ClueLayout
    nulls: Nulls
    program: Program


def compare_violating(
    codes: NDArray[np.int32], wanted: ViolatingPairs, left: RowChoice, right: RowChoice, device: Device | str
) -> TileClues:
    """Clues of the violating pairs of a tile; see `engine.spark.agreeing.ClueKernels`. Uses one thread a task."""
    picked = pick_device(device)
    work, made, pairs = prepared(codes, wanted.program, left, right, picked, threads=1)
    clues, listed = [np.zeros((0, wanted.layout.words), dtype=np.uint64)], 0
    as_left = np.zeros(work.rows, dtype=np.int64)
    if pairs is not None and count_pairs(work, made, pairs, wanted.program.keep_nulls, as_left):
        rows = lay_out(codes, wanted.layout, nulls=wanted.nulls, device=picked, threads=1)
        for found in pairs_in_order(work, made, pairs, as_left, False, LISTED_AT_ONCE, LISTED_AT_ONCE):
            clues.append(rows.of_pairs(*np.ascontiguousarray(found.T, dtype=np.int32)).clues)
            listed += len(found)
    return TileClues(np.concatenate(clues), NO_ROWS, listed)


KERNELS = ClueKernels(compare_violating, sample_rows)


class SparkDcTable(SparkTable):
    """A table in Spark that validates by rule checking (`hybrid.ValidatingTable`). Close it after use."""

    def __init__(
        self,
        table: EncodedFrame,
        space: PredicateSpace,
        *,
        device: str = "auto",
        deadline: float | None = None,
        estimate_rows: int = ESTIMATE_ROWS,
        least_pairs: int = LEAST_PAIRS,
    ) -> None:
        options = space.options
        super().__init__(
            table, space.layout, nulls=options.nulls, seed=options.seed, device=device, deadline=deadline,
            estimate_rows=estimate_rows, least_pairs=least_pairs,
        )  # fmt: skip

    def violating_clues(
        self, rules: Sequence[DenialConstraint], limit: int
    ) -> tuple[list[Clues], NDArray[np.int32]]:
        """Clues of at most `limit` violating pairs of each rule (about two rows) and of the exchanged pairs; and the
        first of these pairs if it was found in Spark.

        Notes
        -----
        A sample of rows in this process refutes most violated rules. The others are checked in Spark, which returns
        witnesses by position; one more job fetches the codes of those rows.
        """
        rows = NO_ROWS
        with self._within_time():
            witnesses = find_witnesses(
                self._here, rules, nulls=self._nulls, limit=limit, device="cpu", deadline=self._deadline
            )
            clues = [self._clues_of(self._sample_codes, *pairs.T) for pairs in witnesses]
            open_ = [i for i, pairs in enumerate(witnesses) if not len(pairs)]
            if open_ and len(self._sample_codes.T) < self.rows:
                found, rows = self._violating_in_spark([rules[i] for i in open_], limit)
                for i, own in zip(open_, found, strict=True):
                    clues[i] = own
        return clues, rows

    def estimate_violations(self, rule: DenialConstraint) -> float:
        """Estimated number of violating ordered pairs, from the sample of rows."""
        sampled = self._sample_codes.shape[1]
        found = count_program(self._sample_codes, bind(rule, self._here, self._nulls), device="cpu")
        scale: float = self.rows * (self.rows - 1) / max(1, sampled * (sampled - 1))
        return found * scale

    def all_violating_clues(self, rule: DenialConstraint, most: int) -> Clues | None:
        """Count the pairs in tasks, and list them there if there are at most `most`."""
        program = bind(rule, self._distinct.header, self._nulls)
        with self._within_time():
            if run.count_pairs(rule_on(self._distinct, program, self._device)) > most:
                return None
            job = replace(
                self._job(), kernels=KERNELS, wanted=ViolatingPairs(self._layout, self._nulls, program)
            )
            found = pairs_on_spark.compare_violating(job, program, self._cut)
        return found.clues[self._new(found.clues)]

    def _violating_in_spark(
        self, rules: Sequence[DenialConstraint], limit: int
    ) -> tuple[list[Clues], NDArray[np.int32]]:
        found = find_witnesses_on_spark(
            self._distinct, rules, nulls=self._nulls, limit=limit, device=self._device, deadline=self._deadline
        )
        every = np.concatenate(found)
        if not len(every):
            return [self._clues_of(self._sample_codes, *pairs.T) for pairs in found], NO_ROWS
        positions, codes = self._codes_at(every.ravel())
        clues = [self._clues_of(codes, *np.searchsorted(positions, pairs).T) for pairs in found]
        return clues, self._numbers_of(np.concatenate([pairs[:1] for pairs in found]))

    @property
    def _here(self) -> Relation:
        """The sample of rows for estimates."""
        return replace(self._distinct.header, codes=self._sample_codes, positions=None)
