"""Existence of violating pairs: a few witnesses, found by passes that stop early. Discovery validates with these.

Equalities alone, with one inequality, or with one non-equality stop at the first group with a violation. Two
inequalities take one pass with running extremes after sorting; three or more descend a k-d tree. Other combinations
with non-equalities are counted (in near-linear time), and listed only if the count is not zero. Who expects violations
may have some random blocks looked at first, where that search would cost more; and all pairs, where few agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.violations.cardinalities import Cardinalities, cardinalities
from tuplewise.engine.dc.violations.count import count_pairs, prepare
from tuplewise.engine.dc.violations.listing import first_pairs, violating_rows
from tuplewise.engine.dc.violations.planner import CheckPlan, plan
from tuplewise.engine.dc.violations.program import Program, bind, without_unfit
from tuplewise.engine.grouping import Work, agreeing, start
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.pair_search import find_by_comparing, find_sampled

MOST_COMPARED = 1 << 28  # pairs: less than half a second


def find_witnesses(
    relation: Relation,
    rules: Sequence[DenialConstraint],
    *,
    nulls: str = "unknown",
    limit: int = 1,
    sampled: int = 0,
    device: Device | str = "auto",
    deadline: float | None = None,
) -> list[NDArray[np.int64]]:
    """Find at most `limit` violating pairs of each rule. An empty array means that the rule holds.

    Parameters
    ----------
    sampled : random blocks of pairs to look at before a search that is costly; where some pairs violate the rule, these
        are returned. Where there are no more than MOST_COMPARED pairs, all are compared

    Returns
    -------
    list of int64 arrays (found, 2)
        Row indexes t, u; u = -1 for rules about one row. The algorithm decides which pairs it finds: the same in each
        run, but not in general the first ones.

    Raises
    ------
    ValueError
        If `limit` is below 1.
    TimeoutError
        At the deadline.

    Notes
    -----
    Cost: n log n for rules with at most two inequalities, for any number of violating pairs.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
    >>> table = tw.load(pd.DataFrame({"zip": [1, 2, 1]}))
    >>> find_witnesses(table, [DenialConstraint((Predicate("t", "zip", "==", "u", "zip"),))])[0].tolist()
    [[0, 2]]
    """
    if limit < 1:
        raise ValueError(f"limit: {limit}; allowed: 1 or more")
    picked = pick_device(device) if isinstance(device, str) else device
    sizes = cardinalities(relation)
    work = Work(relation.codes, picked, deadline=deadline)
    programs = [bind(rule, relation, nulls) for rule in rules]
    return [_witnesses(work, program, sizes, relation.column_names, limit, sampled) for program in programs]


def _witnesses(
    work: Work, program: Program, sizes: Cardinalities, names: Sequence[str], limit: int, sampled: int
) -> NDArray[np.int64]:
    if program.one_row:
        rows = violating_rows(work, program)[:limit].astype(np.int64)
        return np.stack([rows, np.full(len(rows), -1)], axis=1)
    if program.never or work.rows < 2:
        return np.empty((0, 2), dtype=np.int64)
    made = plan(program, sizes, names)
    pairs = agreeing(work, without_unfit(work, program, start(work)), made.equalities, program.keep_nulls)
    if sampled and len(made.compared) + len(made.excluded) > 2:
        found = _find_quickly(work, made, pairs, limit, sampled)
        if found is not None:
            return found.astype(np.int64)
    return find_pairs(work, made, pairs, program.keep_nulls, limit)


def _find_quickly(
    work: Work, made: CheckPlan, pairs: ClusterPairs, limit: int, blocks: int
) -> NDArray[np.int32] | None:
    """Some violating pairs, from random blocks or from all pairs; None where neither tells."""
    comparisons = (*made.compared, *made.excluded)
    found = find_sampled(pairs, work.codes, comparisons, blocks=blocks, limit=limit)
    if len(found):
        return found
    if pairs.pairs <= MOST_COMPARED:
        return find_by_comparing(pairs, work.codes, comparisons, limit=limit)
    return None


def find_pairs(work: Work, made: CheckPlan, pairs: ClusterPairs, keep_nulls: bool, limit: int) -> NDArray[np.int64]:
    """Find at most `limit` violating pairs inside cluster pairs, int64 (found, 2)."""
    if not pairs.clusters:
        return np.empty((0, 2), dtype=np.int64)
    compared, excluded = made.compared, made.excluded
    if not compared and len(excluded) == 1:
        compared, excluded = excluded, ()
    if not excluded:
        return prepare(work, made, pairs, compared).find(limit).astype(np.int64)
    as_left = np.zeros(work.rows, dtype=np.int64)
    if not count_pairs(work, made, pairs, keep_nulls, as_left):
        return np.empty((0, 2), dtype=np.int64)
    return first_pairs(work, made, pairs, as_left, False, limit)
