"""Constraints listed by a state, and the differences between two lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.evidence import collect_evidence
from tuplewise.engine.dc.inversion import (
    ConstraintArrays,
    common_constraints,
    constraints_of,
    invert,
    result_order,
)
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.dc.vertices import Sets
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.words import WITHIN_T

Numbers = tuple[int, ...]  # predicate numbers of a constraint in its space


@dataclass(frozen=True, eq=False)
class RuleListing:
    """Constraints in result order."""

    arrays: ConstraintArrays

    @cached_property
    def numbers(self) -> list[Numbers]:
        """Predicate numbers of each constraint."""
        rows = zip(self.arrays.predicates.tolist(), self.arrays.sizes.tolist(), strict=True)
        return [tuple(row[:size]) for row, size in rows]

    def against(self, before: RuleListing, space: PredicateSpace) -> tuple[RuleListing, RuleListing]:
        """Constraints listed here but not before, and those listed before but not here; both in result order."""
        stay, stayed = common_constraints(self.arrays, before.arrays, space)
        return RuleListing(self.arrays.take(~stay)), RuleListing(before.arrays.take(~stayed))


NOTHING_LISTED = RuleListing(ConstraintArrays.none())


def listing_of(
    sets: Sets, violations: NDArray[np.int64], space: PredicateSpace, rows: int, relation: Callable[[], Relation],
    only_lost: RuleListing | None = None,
) -> RuleListing:  # fmt: skip
    """List the constraints of minimal hitting sets for a table of `rows` rows; without pairs, those of the one row.

    `only_lost`: the list before, where pairs have only been added since. Which of it still hold are listed still: what
    implied one of them now would contain a constraint that held before and implied it then.
    """
    if rows < 2:
        return RuleListing(invert(collect_evidence(relation(), space, device="cpu")))
    before = None if only_lost is None else only_lost.arrays
    return RuleListing(constraints_of(sets, violations, True, space, rows, strongest=before))


def listing_of_numbers(numbers: Sequence[Numbers], space: PredicateSpace) -> RuleListing:
    """List constraints given by predicate numbers, in result order; their violations are not counted."""
    if not numbers:
        return RuleListing(ConstraintArrays.none())
    width = max(map(len, numbers))
    predicates = np.full((len(numbers), width), -1, dtype=np.int32)
    for i, own in enumerate(numbers):
        predicates[i, : len(own)] = own
    sizes = np.array([len(own) for own in numbers], dtype=np.int32)
    one_row = np.all((predicates < 0) | (space.scope[space.predicate_group[predicates]] == WITHIN_T), axis=1)
    arrays = ConstraintArrays(predicates, sizes, np.zeros(len(numbers), dtype=np.int64), one_row)
    return RuleListing(arrays.take(result_order(predicates, sizes, space)))
