"""Discovery of denial constraints of tables beyond one machine: those found in-process, from few pairs (`hybrid`).

Codes stay in Spark, and candidates are validated in its tasks, by rule checking; the rest of the table is common to all
discoveries (`engine.spark_table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc import workload
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.discovery import DcDiscovery, discovery_of, notes_on_nulls
from tuplewise.engine.dc.distributed_figures import SparkFigures
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.hybrid import LISTED_AT_ONCE, find, found_constraints
from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import PredicateSpace, given_space, space_to_search
from tuplewise.engine.dc.ranking import Ranking, rank_counted
from tuplewise.engine.dc.violations.count import count_pairs, count_program, prepared
from tuplewise.engine.dc.violations.distributed import find_witnesses_on_spark, rule_on
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.dc.violations.listing import pairs_in_order
from tuplewise.engine.dc.violations.program import Program, bind
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.local_table import ESTIMATE_ROWS
from tuplewise.engine.loop import Clues
from tuplewise.engine.options import DcDiscoverOptions, Nulls
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.spark import agreeing as pairs_on_spark
from tuplewise.engine.spark import run
from tuplewise.engine.spark.agreeing import LEAST_PAIRS, ClueKernels, TileClues
from tuplewise.engine.spark.resources import devices_of_tasks
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

    def all_violating_clues(self, rules: Sequence[DenialConstraint], most: int) -> list[Clues | None]:
        """Count the pairs of one constraint after the other in tasks, and list them there if there are at most
        `most`."""
        return [self._all_violating(rule, most) for rule in rules]

    def _all_violating(self, rule: DenialConstraint, most: int) -> Clues | None:
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


def discover_on_spark(
    table: EncodedFrame, options: DcDiscoverOptions, *, space: PredicateSpace | None, run: Run
) -> DcDiscovery:
    """Find the minimal denial constraints of a table of two rows or more in Spark; see `discover.discover`.

    Notes
    -----
    The result's relation holds no rows (`table_rows` is their number). Only figures of columns, codes of some rows and
    clues are sent to this process. Cost in addition to that of `hybrid`: a shuffle of all codes to collapse equal rows,
    and a shuffle of the collapsed rows for each column set.
    """
    relation = replace(table.excerpt(np.zeros(0, dtype=np.int64)), table_rows=table.rows)
    clock, figures = Clock(), SparkFigures(table)
    workload.refuse_many_columns(relation, options)
    if space is None:
        space = space_to_search(table.header, options, figures)
    else:
        space = given_space(space, relation, options)
    workload.refuse_many_atoms(relation, space.atoms, options)
    clock.lap("space")
    device, reason = devices_of_tasks(table.frame.sparkSession, options.device)
    found = _find(table, relation, space, run, clock)
    with_null = figures.rows_with_null(space) if options.nulls == "unknown" else 0
    notes = notes_on_nulls(with_null, table.rows, figures.undecided_pairs(space)) if with_null else []
    ranking = Ranking.none()
    if len(found.arrays):
        ranking = rank_counted(found.arrays, space, figures.outcome_counts(space), table.rows)
    found = replace(found, ranking=ranking, notes=notes)
    asked = "asked for" if options.algorithm == "hybrid" else "auto: what Spark's tasks do"
    why = f"{asked}: compares pairs that agree on chosen column sets, validates the rest"
    return discovery_of(relation, options, space, found, "hybrid", why, device, reason, clock)


def _find(table: EncodedFrame, relation: Relation, space: PredicateSpace, run: Run, clock: Clock) -> FoundConstraints:
    try:
        rows = SparkDcTable(table, space, device=space.options.device, deadline=run.deadline)
    except LimitReached as limit:
        return found_constraints(ConstraintArrays.none(False), None, 0, str(limit), space)
    with closing(rows):
        return find(relation, space, device=pick_device("cpu"), run=run, lap=clock.lap, table=rows)
