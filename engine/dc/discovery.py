"""The result of a discovery of denial constraints, with its notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.estimate import Estimate
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.outcome_counts import table_outcome_counts, undecided_pairs
from tuplewise.engine.dc.predicate import PredicateSpace, allowed_violations
from tuplewise.engine.dc.ranking import Figure, Ranking, order_by, rank_counted
from tuplewise.engine.errors import number_of
from tuplewise.engine.made_on_access import MadeOnAccess
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.run import Clock
from tuplewise.engine.table.relation import NULL_CODE, Relation, idle_columns, note_on_idle
from tuplewise.gpu_kernels.words import ACROSS

NAMES_SHOWN = 10


class ConstraintList(MadeOnAccess[DenialConstraint]):
    """Constraints as objects, made from the arrays on access."""

    def __init__(self, space: PredicateSpace, arrays: ConstraintArrays) -> None:
        self._space, self._arrays = space, arrays

    def __len__(self) -> int:
        return len(self._arrays)

    @overload
    def __getitem__(self, index: int) -> DenialConstraint: ...

    @overload
    def __getitem__(self, index: slice) -> ConstraintList: ...

    def __getitem__(self, index: int | slice) -> DenialConstraint | ConstraintList:
        if isinstance(index, slice):
            return ConstraintList(self._space, self._arrays.take(np.arange(len(self))[index]))
        row = range(len(self))[index]
        return self._space.constraint(self._arrays.predicates[row, : self._arrays.sizes[row]].tolist())


@dataclass(frozen=True, eq=False)
class DcDiscovery:
    """Result of a discovery, and how it was found.

    Attributes
    ----------
    arrays : predicate numbers, sizes, violations and whether a constraint is about one row; in result order
    ranking : succinctness, coverage and g1, in the same order
    distinct_evidences : None if the evidence was not completed
    partial : whether a limit ended the work; `notes` explain the consequences
    search : statistics of a search that doesn't compare all pairs (result.search in JSON); None for evidence
    estimate : confidence of the figures if pairs were sampled; None if all figures are exact
    """

    relation: Relation
    options: DcDiscoverOptions
    space: PredicateSpace
    arrays: ConstraintArrays
    ranking: Ranking
    distinct_evidences: int | None
    ordered_pairs: int
    algorithm: str
    algorithm_reason: str
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: list[str]
    search: Mapping[str, Any] | None = None
    estimate: Estimate | None = None

    @cached_property
    def constraints(self) -> ConstraintList:
        """The constraints as objects, in result order."""
        return ConstraintList(self.space, self.arrays)

    def first(self, count: int, note: str) -> DcDiscovery:
        """The first constraints in result order only, and a note on why there are no others."""
        part = slice(count)
        estimate = self.estimate
        if estimate is not None:
            low, high, estimated = estimate.low[part], estimate.high[part], estimate.estimated[part]
            estimate = replace(estimate, low=low, high=high, estimated=estimated)
        return replace(
            self,
            arrays=self.arrays.take(np.arange(count)),
            ranking=Ranking(*(getattr(self.ranking, field.name)[part] for field in fields(Ranking))),
            estimate=estimate,
            partial=True,
            notes=[*self.notes, note],
        )

    def best(self, rank_by: Figure, limit: int | None = None) -> NDArray[np.int64]:
        """Indexes of the constraints from best to worst by one figure; ties stay in result order."""
        return order_by(self.ranking, rank_by)[:limit]


def discovery_of(
    relation: Relation,
    options: DcDiscoverOptions,
    space: PredicateSpace,
    found: FoundConstraints,
    algorithm: str,
    reason: str,
    device: str,
    device_reason: str,
    clock: Clock,
) -> DcDiscovery:
    """Make a discovery from the result of a search: constraints ranked, with notes."""
    ranking = found.ranking
    if ranking is None:
        counts = found.outcome_counts
        if counts is None and len(found.arrays):
            counts = table_outcome_counts(relation, space)
        ranking = Ranking.none() if counts is None else rank_counted(found.arrays, space, counts, relation.rows)
    notes = _notes_on_table(relation, options, space) + ([] if found.reached is None else [found.reached])
    clock.lap("ranking")
    return DcDiscovery(
        relation=relation,
        options=options,
        space=space,
        arrays=found.arrays,
        ranking=ranking,
        distinct_evidences=found.evidences,
        ordered_pairs=relation.all_rows * (relation.all_rows - 1),
        algorithm=algorithm,
        algorithm_reason=reason,
        device=device,
        device_reason=device_reason,
        timings_seconds=clock.seconds,
        partial=found.reached is not None,
        notes=[*notes, *_notes_on_nulls(relation, options, space), *found.notes],
        search=found.search,
        estimate=found.estimate,
    )


def _names(relation: Relation, columns: NDArray[np.int64] | list[int]) -> str:
    shown = ", ".join(repr(relation.columns[int(i)].name) for i in columns[:NAMES_SHOWN])
    return shown if len(columns) <= NAMES_SHOWN else f"{shown} and {len(columns) - NAMES_SHOWN} more"


def _notes_on_table(relation: Relation, options: DcDiscoverOptions, space: PredicateSpace) -> list[str]:
    """Notes on properties of the table that make results empty or options ineffective."""
    notes = []
    if options.single_tuple and not options.cross_columns:
        notes.append("single_tuple compares the column pairs that cross_columns=False leaves out: it has no effect")
    if not relation.columns:
        notes.append("the table has no columns: nothing to learn")
    if relation.all_rows < 2:
        about = "nothing to learn"
        if relation.all_rows == 1 and (space.scope != ACROSS).any():
            about = "only rules about one row are learnt, from that row"
        notes.append(f"{number_of(relation.all_rows, 'row')}, so there are no pairs of rows: {about}")
        return notes
    empty = [i for i, c in enumerate(relation.columns) if c.distinct == 0]
    constant = [i for i, c in enumerate(relation.columns) if c.distinct == 1 and c.nulls == 0]
    idle = idle_columns(relation, options.nulls)
    if idle.any() and not idle[space.left].any():
        notes += note_on_idle(relation, options.nulls)
    elif empty:
        notes.append(f"{number_of(len(empty), 'column')} with nulls only: {_names(relation, empty)}")
    if constant:
        whole = ", that is all columns: all rows are equal" if len(constant) == len(relation.columns) else ""
        notes.append(f"{number_of(len(constant), 'column')} with one value only: {_names(relation, constant)}{whole}")
    pairs = relation.all_rows * (relation.all_rows - 1)
    if options.error > 0 and allowed_violations(options.error, pairs) == 0:
        notes.append(f"error {options.error} of {pairs:,} pairs allows no violating pair: the result is exact")
    return notes


def _notes_on_nulls(relation: Relation, options: DcDiscoverOptions, space: PredicateSpace) -> list[str]:
    """Notes on how much the rule "unknown" leaves out."""
    if options.nulls != "unknown" or relation.rows < 2:
        return []
    with_null = int(np.count_nonzero(np.any(relation.codes[space.columns] == NULL_CODE, axis=0)))
    return notes_on_nulls(with_null, relation.rows, undecided_pairs(relation, space)) if with_null else []


def notes_on_nulls(with_null: int, rows: int, undecided_pairs: int) -> list[str]:
    """Notes on how much the rule "unknown" leaves out: rows with a null, and ordered pairs that compare a null."""
    return [
        f"nulls (rule unknown): {with_null:,} of {rows:,} rows have a null in a used column; {undecided_pairs:,} of "
        f"{rows * (rows - 1):,} pairs compare a null somewhere, and satisfy no predicate there"
    ]
