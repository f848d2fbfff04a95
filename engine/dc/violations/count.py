"""Counts of violating pairs, in all and for each row, without listing the pairs.

Inequalities are counted by the join of the plan. Non-equalities are counted by inclusion and exclusion over equality
counts: the pairs that differ on A and B are all pairs, minus those that agree on A, minus those that agree on B, plus
those that agree on both. Terms share their groups. They end early: if no two rows agree on some columns, none agree on
more columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.violations.cardinalities import Cardinalities
from tuplewise.engine.dc.violations.planner import NODE_SECONDS, CheckPlan, plan
from tuplewise.engine.dc.violations.program import Program, exchange, satisfied_with_itself, without_unfit
from tuplewise.engine.grouping import Work, agreeing, start
from tuplewise.gpu_kernels.clusters import ClusterPairs, exchanged, rows_on_both_sides
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.join_types import Algorithm, Comparison, KdTreePairJoin, PairJoin
from tuplewise.gpu_kernels.refine import join

SAMPLED_ROWS = 256  # left rows sampled to estimate the cost of a k-d tree
WORTH_SAMPLING_SECONDS = 0.2


def count_pairs(
    work: Work, plan: CheckPlan, pairs: ClusterPairs, keep_nulls: bool, counts: NDArray[np.int64] | None = None
) -> int:
    """Count violating ordered pairs of different rows, inside cluster pairs that agree on the plan's equalities.

    Adds the number of partners of each left row to `counts`, int64 (rows,). Raises TimeoutError at the deadline.
    """
    total = 0
    for sign, term in _terms(work, pairs, plan.excluded, keep_nulls):
        total += sign * prepare(work, plan, term).count(counts, sign)
        alone = _with_themselves(work.codes, plan.compared, term)
        total -= sign * len(alone)
        if counts is not None:
            counts[alone] -= sign
    return total


def prepare(
    work: Work,
    made: CheckPlan,
    pairs: ClusterPairs,
    compared: Sequence[Comparison] | None = None,
    *,
    listing: bool = False,
) -> PairJoin:
    """The join of a plan, or of other comparisons instead of the planned ones (at most one).

    A k-d tree replaces a range tree if it costs less on a sample of rows (few pairs near the boundary; no estimate
    predicts this), and always for listing, which a range tree can't do.
    """
    chosen = made.compared if compared is None else compared

    def make(algorithm: Algorithm) -> PairJoin:
        work.taken.append(algorithm)
        return join(
            pairs, work.codes, chosen, algorithm, device=work.device, threads=work.threads, deadline=work.deadline
        )

    if len(chosen) <= 1:
        return make("hsm")
    if made.algorithm != "rangetree":
        return make(made.algorithm)
    if listing:
        return make("kdtree")
    left_rows = len(pairs.left)
    if left_rows * made.tree_row_seconds > WORTH_SAMPLING_SECONDS:
        tree = make("kdtree")
        if NODE_SECONDS * cast(KdTreePairJoin, tree).nodes_for(SAMPLED_ROWS) < made.tree_row_seconds:
            return tree
        work.taken.pop()
    return make("rangetree")


def _terms(
    work: Work, pairs: ClusterPairs, excluded: Sequence[Comparison], keep_nulls: bool
) -> Iterator[tuple[int, ClusterPairs]]:
    """(sign, cluster pairs that agree on a subset of `excluded`, too), depth first."""
    yield 1, pairs
    for place, c in enumerate(excluded):
        fewer = agreeing(work, pairs, [(c.left, c.right)], keep_nulls)
        if fewer.clusters:
            for sign, term in _terms(work, fewer, excluded[place + 1 :], keep_nulls):
                yield -sign, term


def _with_themselves(
    codes: NDArray[np.int32], compared: Sequence[Comparison], pairs: ClusterPairs
) -> NDArray[np.int32]:
    """Rows for which the join counts the pair with itself."""
    satisfied = satisfied_with_itself(codes, compared)
    if satisfied is None or not pairs.clusters:
        return np.empty(0, dtype=np.int32)
    rows = rows_on_both_sides(pairs, codes.shape[1])
    return rows[satisfied[rows]]


def mirrored(plan: CheckPlan) -> CheckPlan:
    """The plan of the rule with t and u exchanged, for exchanged cluster pairs."""
    return replace(
        plan,
        equalities=tuple((b, a) for a, b in plan.equalities),
        compared=tuple(map(exchange, plan.compared)),
        excluded=tuple(map(exchange, plan.excluded)),
    )


def both_counts(
    work: Work, plan: CheckPlan, pairs: ClusterPairs, keep_nulls: bool, symmetric: bool
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Number of violating pairs, and each row's number of pairs as t and as u, int64 (rows,) each."""
    as_left = np.zeros(work.rows, dtype=np.int64)
    total = count_pairs(work, plan, pairs, keep_nulls, as_left)
    if symmetric or not total:
        return total, as_left, as_left
    as_right = np.zeros(work.rows, dtype=np.int64)
    count_pairs(work, mirrored(plan), exchanged(pairs), keep_nulls, as_right)
    return total, as_left, as_right


def count_program(
    codes: NDArray[np.int32],
    program: Program,
    left: NDArray[np.int32] | None = None,
    right: NDArray[np.int32] | None = None,
    device: Device | str = "auto",
    *,
    threads: int | None = None,
) -> int:
    """Count ordered pairs (t in left, u in right) of different rows that violate a program. Additive over tiles.

    Parameters
    ----------
    codes : int32 (columns, rows), C order
    left, right : int32 rows, ascending, or None for all
    threads : threads of a CPU kernel, or None for all cores
    """
    work, made, pairs = prepared(codes, program, left, right, device, threads)
    return 0 if pairs is None else count_pairs(work, made, pairs, program.keep_nulls)


def row_counts(
    codes: NDArray[np.int32],
    program: Program,
    left: NDArray[np.int32] | None = None,
    right: NDArray[np.int32] | None = None,
    device: Device | str = "auto",
    *,
    threads: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of violating pairs of each row as t and as u, int64 (rows,) each; parameters as for `count_program`."""
    work, made, pairs = prepared(codes, program, left, right, device, threads)
    if pairs is None:
        return np.zeros(work.rows, dtype=np.int64), np.zeros(work.rows, dtype=np.int64)
    symmetric = program.symmetric and left is None and right is None
    _, as_left, as_right = both_counts(work, made, pairs, program.keep_nulls, symmetric)
    return as_left, as_right


def prepared(
    codes: NDArray[np.int32],
    program: Program,
    left: NDArray[np.int32] | None,
    right: NDArray[np.int32] | None,
    device: Device | str,
    threads: int | None = None,
) -> tuple[Work, CheckPlan, ClusterPairs | None]:
    """Plan a program from the codes alone and refine it up to its join; no cluster pairs if no pair can violate it."""
    picked = pick_device(device) if isinstance(device, str) else device
    work = Work(codes, picked, threads)
    sizes = Cardinalities.of_codes(codes)
    made = plan(program, sizes, [str(c) for c in range(len(codes))])
    if program.never:
        return work, made, None
    pairs = without_unfit(work, program, start(work, left, right))
    return work, made, agreeing(work, pairs, made.equalities, program.keep_nulls)
