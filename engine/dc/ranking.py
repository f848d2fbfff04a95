"""Interestingness of constraints: succinctness and coverage (X. Chu, I. Ilyas, P. Papotti, Discovering Denial
Constraints, PVLDB 2013, section 5), and g1.

Interpretations: The length of a constraint is its number of distinct symbols: tuple variables, columns and operators.
`not(t.a == u.a)` has four, and none can have fewer. So succinctness is 4 / length and does not depend on the other
constraints. Coverage is averaged over the pairs that don't violate the constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import PredicateSpace, satisfied_pairs
from tuplewise.gpu_kernels.words import mask_words

SHORTEST_LENGTH = 4
Figure = Literal["succinctness", "coverage", "g1"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Figures of constraints, float64 (constraints,) each; coverage is NaN if every pair violates.

    `chance`: the share of pairs that would violate the constraint if its predicates were independent.
    """

    succinctness: NDArray[np.float64]
    coverage: NDArray[np.float64]
    g1: NDArray[np.float64]
    chance: NDArray[np.float64]

    @staticmethod
    def none() -> Ranking:
        """Figures of no constraints."""
        empty = np.zeros(0, dtype=np.float64)
        return Ranking(empty, empty, empty, empty)


def order_by(ranking: Ranking, by: Figure) -> NDArray[np.int64]:
    """Indexes from best to worst: most succinct, most covering, or fewest violations; ties keep their order."""
    figure = {"succinctness": -ranking.succinctness, "coverage": -ranking.coverage, "g1": ranking.g1}[by]
    return np.argsort(figure, kind="stable")


def rank_counted(
    arrays: ConstraintArrays,
    space: PredicateSpace,
    outcome_counts: NDArray[np.int64],
    rows: int,
    g1: NDArray[np.float64] | None = None,
) -> Ranking:
    """Compute succinctness, coverage and g1 of constraints from counts of single predicates.

    Parameters
    ----------
    outcome_counts : int64 (groups, 4)
        Ordered pairs of the whole table with each outcome of each group, from an evidence set or outcome_counts.py.
    rows : n
    g1 : float64 (constraints,) or None
        Estimated g1; None: computed from the violations.

    Notes
    -----
    Coverage weighs each pair that satisfies k of the m predicates, k < m, with (k + 1) / m. Let S_p be the number of
    pairs that satisfy predicate p, T that of all pairs and V that of pairs that satisfy all m. The sum of k over all
    pairs is the sum of S_p over the predicates; violating pairs contribute V m. So the sum of k + 1 over the others is
    sum S_p - V m + (T - V), and

        coverage = (sum S_p + T - V (m + 1)) / (m (T - V)),

    which needs one count per predicate and no pass over the evidence for each constraint. For V = 0 it is
    (1 + sum of shares S_p / T) / m. For a constraint about one row, pairs are rows (each stands for n - 1 pairs).
    """
    if len(arrays) == 0:
        return Ranking.none()
    satisfied = satisfied_pairs(space, outcome_counts)
    total = np.where(arrays.one_row, rows, rows * (rows - 1) if rows > 1 else rows).astype(np.float64)
    sums = np.where(arrays.predicates >= 0, satisfied[arrays.predicates], 0).sum(axis=1)
    sums = np.where(arrays.one_row, sums // max(1, rows - 1), sums).astype(np.float64)
    violated = arrays.violations.astype(np.float64) if g1 is None else g1 * total
    size = arrays.sizes.astype(np.float64)
    counted = size * (total - violated)
    coverage = np.full(len(arrays), np.nan)
    np.divide(sums + total - violated * (size + 1), counted, out=coverage, where=counted > 0)
    shares = satisfied / max(1, rows * (rows - 1) if rows > 1 else rows)
    chance = np.where(arrays.predicates >= 0, shares[arrays.predicates], 1.0).prod(axis=1)
    return Ranking(SHORTEST_LENGTH / lengths(arrays, space), coverage, violated / total if g1 is None else g1, chance)


def operator_groups(arrays: ConstraintArrays, space: PredicateSpace) -> NDArray[np.int64]:
    """Group numbers, equal for constraints that differ only in operators; int64 (constraints,)."""
    numbers = np.zeros(len(arrays), dtype=np.int64)
    group = np.where(arrays.predicates >= 0, space.predicate_group[arrays.predicates].astype(np.int64) + 1, 0)
    for column in group.T:
        numbers = np.unique(numbers * (space.groups + 1) + column, return_inverse=True)[1].ravel()
    return numbers


def lengths(arrays: ConstraintArrays, space: PredicateSpace) -> NDArray[np.int64]:
    """Number of distinct tuple variables, columns and operators of each constraint; int64 (constraints,)."""
    symbols = np.zeros((space.predicates + 1, mask_words(len(space.names) + 6)), dtype=np.uint64)  # the last: of none
    group, operator = space.predicate_group, space.predicate_operator.astype(np.int32) + len(space.names)
    for symbol in (space.left[group], space.right[group], operator):
        symbols[np.arange(space.predicates), symbol // 64] |= np.uint64(1) << (symbol % 64).astype(np.uint64)
    used = np.zeros((len(arrays), symbols.shape[1]), dtype=np.uint64)
    for column in arrays.predicates.T:
        used |= symbols[column]
    counts: NDArray[np.int64] = np.bitwise_count(used).sum(axis=1, dtype=np.int64)
    return counts + np.where(arrays.one_row, 1, 2)
