"""Pairs of rows that agree on nearly all columns of a wide table, sought before anything else.

Where columns are many, two rows that differ on few of them rule out most contexts. A sample of pairs hardly ever has
such rows, and what it leaves are far more contexts than can be listed. So pairs are compared that agree on some columns
drawn at random, enough of them that few pairs do: each column is once the first.

Source: HyFD (Papenbrock, Naumann, "A Hybrid Approach to Functional Dependency Discovery", SIGMOD 2016) compares rows
that are neighbours in the clusters of one column, sorted by another one. Departure: clusters of several columns.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work, agreeing, pieces, start
from tuplewise.engine.local_table import count_agreeing
from tuplewise.engine.od.dependency import KEY, Targets
from tuplewise.engine.run import TIME_LIMIT
from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.near_pairs import nearest_pairs

TIMES_FIRST = 2  # how often each column is the first of a sample
PAIRS_A_ROW = 2.0  # agreeing pairs for each row, at most, if columns can be found for that
GROUP_ROWS = 9  # rows that are compared with each other
ESTIMATE_ROWS = 1 << 12


def pairs_of_near_rows(
    codes: NDArray[np.int32], targets: Targets, *, unknown: bool, seed: int, deadline: float | None
) -> NDArray[np.int32]:
    """Pairs of rows, int32 (pairs, 2). The rows of `codes` are in random order. Raises LimitReached."""
    work = Work(codes, pick_device("cpu"), threads=1, deadline=deadline)
    samples = [partial(_clusters, work, columns, not unknown) for columns in column_sets(codes, unknown, seed)]
    attributes = np.zeros(len(codes), dtype=np.bool_)
    attributes[targets.left[targets.left >= 0]] = True
    keys = bool(np.any(targets.kind == KEY))
    pairs, complete = nearest_pairs(
        codes, samples, unknown=unknown, attributes=attributes, any_attribute=keys, deadline=deadline
    )
    if not complete:
        raise LimitReached(TIME_LIMIT)
    return pairs


def column_sets(codes: NDArray[np.int32], unknown: bool, seed: int) -> list[list[int]]:
    """Column sets on which few pairs of rows agree, but some do, as far as a sample tells."""
    rng = np.random.default_rng(seed)
    by_row = np.ascontiguousarray(codes[:, :ESTIMATE_ROWS].T)
    few = PAIRS_A_ROW * len(by_row) * len(by_row) / max(1, codes.shape[1])  # in the sample

    def count(columns: list[int]) -> int:
        return int(count_agreeing(by_row, np.array(columns, dtype=np.int64), not unknown))

    alone = [count([column]) for column in range(len(codes))]
    repeating = [column for column, pairs in enumerate(alone) if pairs]
    chosen = []
    for first in rng.permutation(TIMES_FIRST * repeating).tolist():
        columns, pairs = [first], alone[first]
        for other in rng.permutation(repeating).tolist():
            if pairs <= few:
                break
            fewer = count([*columns, other])
            if 0 < fewer <= pairs / 2:
                columns, pairs = [*columns, other], fewer
        chosen.append(columns)
    return chosen


def _clusters(work: Work, columns: list[int], keep_nulls: bool) -> ClusterPairs:
    return pieces(agreeing(work, start(work), [(c, c) for c in columns], keep_nulls), GROUP_ROWS)
