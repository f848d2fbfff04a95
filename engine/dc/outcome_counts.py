"""Numbers of pairs with each outcome of each group, from values instead of pairs: exact, in rows log rows a column.

Replaces `EvidenceSet.outcome_counts` in searches that don't compare all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.words import ACROSS, EQUAL, GREATER, LESS, UNKNOWN

Values = tuple[NDArray[np.int32], NDArray[np.int64]]


def table_outcome_counts(relation: Relation, space: PredicateSpace) -> NDArray[np.int64]:
    """Count ordered pairs of different rows with each outcome of each group of a space.

    Returns
    -------
    int64 (groups, 4)
        Columns LESS (for groups without an order: different), EQUAL, GREATER, UNKNOWN. In groups within a tuple a row
        stands for n - 1 pairs; in a table of one row they count that row, and other groups have no pairs.

    Notes
    -----
    For two columns with counts l(v) and r(v) of each value, `t.left < u.right` holds for the sum of l(v) times the
    number of right values above v. This includes pairs of a row with itself, which are subtracted after comparing both
    columns row by row. Cost: one sort per column, and for each group across columns one search of the distinct left
    values among the right ones.
    """
    unknown = space.options.nulls == "unknown"
    values: dict[int, Values] = {}

    def compare(left: int, right: int) -> NDArray[np.int64]:
        for column in (left, right):
            if column not in values:
                values[column] = _values(relation.codes[column], unknown)
        return compare_values(values[left], values[right], relation.rows)

    own = [np.bincount(row_outcomes(relation, space, g), minlength=4) for g in range(space.groups)]
    return outcome_totals(space, relation.rows, own, compare)


def outcome_totals(
    space: PredicateSpace,
    rows: int,
    own: Sequence[NDArray[np.int64]],
    compare: Callable[[int, int], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """The result of `table_outcome_counts`, independent of where the rows are.

    `own`: outcomes of each group over the pairs of each row with itself, int64 (4,). `compare`: outcomes of a left and
    a right column over all pairs of a left and a right row, including a row with itself, as in `compare_values`.
    """
    totals = np.zeros((space.groups, 4), dtype=np.int64)
    for g in range(space.groups):
        if space.scope[g] != ACROSS:
            totals[g] = own[g] * max(1, rows - 1)
            continue
        if rows < 2:
            continue
        both = compare(int(space.left[g]), int(space.right[g]))
        if not space.ordered[g]:
            both[LESS] += both[GREATER]
            both[GREATER] = 0
        totals[g] = both - own[g]
    return totals


def row_outcomes(relation: Relation, space: PredicateSpace, group: int) -> NDArray[np.uint8]:
    """Outcome of a group in the pair of each row with itself; uint8 (rows,)."""
    left, right = relation.codes[space.left[group]], relation.codes[space.right[group]]
    return pair_outcomes(left, right, bool(space.ordered[group]), space.options.nulls == "unknown")


def pair_outcomes(
    left: NDArray[np.int32], right: NDArray[np.int32], ordered: bool, unknown: bool
) -> NDArray[np.uint8]:
    """Outcome of each left code against the right one; `unknown`: of a null it is UNKNOWN. uint8 (pairs,)."""
    outcome = np.full(len(left), LESS, dtype=np.uint8)
    outcome[left == right] = EQUAL
    if ordered:
        outcome[left > right] = GREATER
    if unknown:
        outcome[(left == NULL_CODE) | (right == NULL_CODE)] = UNKNOWN
    return outcome


def undecided_pairs(relation: Relation, space: PredicateSpace) -> int:
    """Count ordered pairs that compare a null in some group, under the rule "unknown": all pairs minus those without.

    Cost: one read of each code.
    """
    if space.options.nulls != "unknown" or relation.rows < 2:
        return 0
    null = relation.codes == NULL_CODE
    as_t, as_u = operand_columns(space)
    decided_as_t = ~null[as_t].any(axis=0)
    decided_as_u = ~null[as_u].any(axis=0)
    itself = int(np.count_nonzero(decided_as_t & decided_as_u))
    decided = int(np.count_nonzero(decided_as_t)) * int(np.count_nonzero(decided_as_u)) - itself
    return relation.rows * (relation.rows - 1) - decided


def operand_columns(space: PredicateSpace) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Columns of t and columns of u that the groups of a space read, ascending."""
    across = space.scope == ACROSS
    return np.unique(np.concatenate([space.left, space.right[~across]])), np.unique(space.right[across])


def _values(codes: NDArray[np.int32], unknown: bool) -> Values:
    """Distinct codes, ascending, and the number of rows of each; without null if null is unknown."""
    values, counts = np.unique(codes, return_counts=True)
    known = slice(1 if unknown and len(values) and values[0] == NULL_CODE else 0, None)
    return values[known], counts[known].astype(np.int64)


def compare_values(left: Values, right: Values, rows: int) -> NDArray[np.int64]:
    """Outcomes over all pairs of a left and a right row, including a row with itself; int64 (4,)."""
    values, counts = left
    up_to = np.concatenate([np.zeros(1, np.int64), np.cumsum(right[1])])
    below = up_to[np.searchsorted(right[0], values, side="left")]
    not_above = up_to[np.searchsorted(right[0], values, side="right")]
    known = int(counts.sum()) * int(up_to[-1])
    greater, equal = int(counts @ below), int(counts @ (not_above - below))
    found = np.zeros(4, dtype=np.int64)
    found[[LESS, EQUAL, GREATER, UNKNOWN]] = known - greater - equal, equal, greater, rows * rows - known
    return found
