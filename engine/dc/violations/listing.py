"""Lists of violating pairs in order of (t, u): the first pairs, or all of them as a stream.

Only rows with a partner are looked up (the number of partners is known from counting), so the cost grows with the
length of the list. Non-equalities counted by inclusion and exclusion filter the pairs left by the other predicates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.violations.cardinalities import cardinalities
from tuplewise.engine.dc.violations.count import count_pairs, prepare
from tuplewise.engine.dc.violations.planner import CheckPlan, plan
from tuplewise.engine.dc.violations.program import Program, bind, passing_rows, satisfied, without_unfit
from tuplewise.engine.grouping import Work, agreeing, start
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.join_types import Comparison, PairJoin

FIRST_CHUNK_PAIRS = 1 << 12
CHUNK_PAIRS = 1 << 20


def iterate_pairs(
    relation: Relation,
    rule: DenialConstraint,
    *,
    nulls: str = "unknown",
    device: Device | str = "auto",
    deadline: float | None = None,
    chunk_pairs: int = CHUNK_PAIRS,
) -> Iterator[NDArray[np.int64]]:
    """Iterate over all violating pairs of a rule, in order.

    Yields
    ------
    int64 array (m, 2), C order, at most about `chunk_pairs` rows (more if one row has more partners)
        Row indexes t, u, ascending by (t, u). A rule that is its own mirror lists each pair once, t < u. A rule about
        one row lists its rows, u = -1.

    Raises
    ------
    TimeoutError
        If the deadline (`time.monotonic()`) comes first.
    """
    program = bind(rule, relation, nulls)
    work = Work(relation.codes, pick_device(device) if isinstance(device, str) else device, deadline=deadline)
    if program.one_row:
        rows = violating_rows(work, program)
        for at in range(0, len(rows), chunk_pairs):
            part = rows[at : at + chunk_pairs].astype(np.int64)
            yield np.stack([part, np.full(len(part), -1)], axis=1)
        return
    if program.never or relation.rows < 2:
        return
    made = plan(program, cardinalities(relation), relation.column_names)
    pairs = agreeing(work, without_unfit(work, program, start(work)), made.equalities, program.keep_nulls)
    as_left = np.zeros(work.rows, dtype=np.int64)
    if count_pairs(work, made, pairs, program.keep_nulls, as_left):
        for chunk in pairs_in_order(work, made, pairs, as_left, program.symmetric, chunk_pairs, chunk_pairs):
            if work.over():
                raise TimeoutError("the deadline came before all pairs were listed")
            if len(chunk):
                yield chunk


def violating_rows(work: Work, program: Program) -> NDArray[np.int32]:
    """Rows that violate a rule about one row, ascending."""
    if program.never:
        return np.empty(0, dtype=np.int32)
    passing = passing_rows(work.codes, program.left_tests, program.left_needed)
    return np.flatnonzero(np.ones(work.rows, dtype=np.bool_) if passing is None else passing).astype(np.int32)


def first_pairs(
    work: Work, made: CheckPlan, pairs: ClusterPairs, as_left: NDArray[np.int64], symmetric: bool, limit: int
) -> NDArray[np.int64]:
    """The first `limit` pairs, int64 (at most limit, 2)."""
    found = [np.empty((0, 2), dtype=np.int64)]
    listed = 0
    if limit > 0:
        for chunk in pairs_in_order(work, made, pairs, as_left, symmetric, FIRST_CHUNK_PAIRS, CHUNK_PAIRS):
            found.append(chunk)
            listed += len(chunk)
            if listed >= limit:
                break
    return np.concatenate(found)[:limit]


def pairs_in_order(
    work: Work,
    made: CheckPlan,
    pairs: ClusterPairs,
    as_left: NDArray[np.int64],
    symmetric: bool,
    first_chunk: int,
    chunk_pairs: int,
) -> Iterator[NDArray[np.int64]]:
    """Chunks of the pairs inside cluster pairs, some empty. `as_left`, int64 (rows,), counts each row's pairs as t."""
    rows = np.flatnonzero(as_left).astype(np.int32)
    if made.excluded:
        join, candidates, filtered = _fewest_candidates(work, made, pairs)
    else:
        join, filtered = prepare(work, made, pairs, listing=True), ()
        candidates = as_left + 1  # the pair with itself may be among the candidates
    ends = np.cumsum(candidates[rows])
    at, room = 0, first_chunk
    while at < len(rows):
        before = int(ends[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(ends, before + room, side="right")))
        offsets, partners = join.emit(rows[at:stop])
        lefts = np.repeat(rows[at:stop], np.diff(offsets))
        kept = lefts < partners if symmetric else lefts != partners
        for c in filtered:
            kept &= satisfied(work.codes[c.left][lefts], work.codes[c.right][partners], c.outcomes)
        at, room = stop, min(chunk_pairs, 4 * room)
        yield np.stack([lefts[kept], partners[kept]], axis=1).astype(np.int64)


def _fewest_candidates(
    work: Work, made: CheckPlan, pairs: ClusterPairs
) -> tuple[PairJoin, NDArray[np.int64], tuple[Comparison, ...]]:
    """Choose the join for listing if not all comparisons fit one: the planned join or a non-equality, by candidates.

    Returns the join, the number of candidates of each row as t, int64 (rows,), and the comparisons left to filter by.
    """
    choices = [(made.compared, made.excluded)] if made.compared else []
    choices += [((c,), tuple(o for o in (*made.compared, *made.excluded) if o != c)) for c in made.excluded]
    best: tuple[int, PairJoin, NDArray[np.int64], tuple[Comparison, ...]] | None = None
    for compared, others in choices:
        join = prepare(work, made, pairs, compared, listing=True)
        candidates = np.zeros(work.rows, dtype=np.int64)
        total = join.count(candidates, 1)
        if best is None or total < best[0]:
            best = total, join, candidates, others
    assert best is not None
    return best[1:]
