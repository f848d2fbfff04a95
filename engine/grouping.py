"""Rows in cluster pairs by what they agree on: the first step of a check, and of every exhausted column set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.run import past
from tuplewise.engine.table.relation import NULL_CODE
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows, restrict, rows_on_both_sides
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.refine import refine_equal

Equality = tuple[int, int]  # column of t, column of u


@dataclass(frozen=True, eq=False)
class Work:
    """The input of every step: the codes, int32 (columns, rows), and where kernels run.

    `taken` gets the algorithm of each join that is prepared, for the plan in results.
    """

    codes: NDArray[np.int32]
    device: Device
    threads: int | None = None
    deadline: float | None = None
    taken: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])

    def over(self) -> bool:
        """Whether the time is over."""
        return past(self.deadline)


def start(work: Work, left: NDArray[np.int32] | None = None, right: NDArray[np.int32] | None = None) -> ClusterPairs:
    """One pair of sets: all rows with all rows, or the given ones (int32, ascending)."""
    everything = np.arange(work.rows, dtype=np.int32)
    if left is None and right is None:
        return all_rows(everything)
    return all_rows(everything if left is None else left, everything if right is None else right)


def agreeing(work: Work, pairs: ClusterPairs, equalities: Iterable[Equality], keep_nulls: bool) -> ClusterPairs:
    """Cluster pairs that agree on these columns, too. Rows with a null there are left out unless nulls are values."""
    equalities = list(equalities)
    if not equalities or not pairs.clusters:
        return pairs
    if not keep_nulls:
        left = _without_null(work.codes, {a for a, _ in equalities})
        same = {a for a, _ in equalities} == {b for _, b in equalities}
        right = left if same else _without_null(work.codes, {b for _, b in equalities})
        pairs = restrict(pairs, left, right)
    return refine_equal(pairs, work.codes, equalities, device=work.device, threads=work.threads)


def _without_null(codes: NDArray[np.int32], columns: set[int]) -> NDArray[np.bool_] | None:
    passing: NDArray[np.bool_] | None = None
    for column in sorted(columns):
        present = codes[column] != NULL_CODE
        if not present.all():
            passing = present if passing is None else passing & present
    return passing


def pairs_of_rows(pairs: ClusterPairs, rows: int) -> int:
    """Pairs of different rows inside cluster pairs; of reflexive ones each once. `rows`: of the table."""
    both = pairs.pairs - len(rows_on_both_sides(pairs, rows))
    return both // 2 if pairs.reflexive else both


def pieces(pairs: ClusterPairs, rows: int) -> ClusterPairs:
    """Cluster pairs cut into pieces of at most so many rows a side.

    The first piece of a left set is paired with the first of the right set, and so on; the rest of the longer side is
    dropped."""
    if pairs.reflexive:
        offsets = _cut_offsets(pairs.left_offsets, np.diff(pairs.left_offsets), rows)
        return ClusterPairs(pairs.left, offsets, pairs.left, offsets)
    both = np.minimum(np.diff(pairs.left_offsets), np.diff(pairs.right_offsets))
    ends = np.cumsum(both)
    within = np.arange(int(both.sum())) - np.repeat(ends - both, both)
    left = pairs.left[np.repeat(pairs.left_offsets[:-1], both) + within]
    right = pairs.right[np.repeat(pairs.right_offsets[:-1], both) + within]
    offsets = _cut_offsets(np.concatenate([[0], ends]), both, rows)
    return ClusterPairs(left, offsets, right, offsets)


def neighbouring_clusters(pairs: ClusterPairs, first: int, last: int) -> ClusterPairs:
    """The cluster pairs from `first` on, before `last`."""
    offsets = pairs.left_offsets[first : last + 1]
    left = pairs.left[offsets[0] : offsets[-1]]
    if pairs.reflexive:
        return ClusterPairs(left, offsets - offsets[0], left, offsets - offsets[0])
    right_offsets = pairs.right_offsets[first : last + 1]
    right = pairs.right[right_offsets[0] : right_offsets[-1]]
    return ClusterPairs(left, offsets - offsets[0], right, right_offsets - right_offsets[0])


def _cut_offsets(offsets: NDArray[np.int64], sizes: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Offsets of pieces of at most so many rows of each group, as equal as they can be."""
    count = np.maximum(1, -(-sizes // rows))
    number = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    starts = np.repeat(offsets[:-1], count) + np.repeat(sizes, count) * number // np.repeat(count, count)
    return np.append(starts, offsets[-1]).astype(np.int64)


def collapse(
    codes: NDArray[np.int32], columns: Sequence[int], device: Device
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """One row of each class of rows that are equal on `columns`, int32, ascending; and whether its class has others.

    Nulls are equal to each other here.
    """
    place, alone = _places_in_classes(Work(codes, device), columns)
    first = place == 0
    return np.flatnonzero(first).astype(np.int32), ~alone[first]


def collapse_weighted(
    codes: NDArray[np.int32], columns: Sequence[int], device: Device
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """One row of each class of rows that are equal on `columns`, int32, ascending, and how many rows its class has,
    int64. Nulls are equal to each other here."""
    work = Work(codes, device)
    alike = agreeing(work, start(work), [(c, c) for c in columns], keep_nulls=True)
    weights = np.ones(work.rows, dtype=np.int64)
    weights[alike.left] = 0
    weights[alike.left[alike.left_offsets[:-1]]] = np.diff(alike.left_offsets)
    rows = np.flatnonzero(weights).astype(np.int32)
    return rows, weights[rows]


def two_of_each(work: Work, columns: Sequence[int]) -> NDArray[np.int32]:
    """Two rows of each class of rows that are equal on `columns`, or the only one: int32, ascending.

    Whatever pair of rows satisfies predicates over these columns, a pair of these does.
    """
    place, _ = _places_in_classes(work, columns)
    return np.flatnonzero(place < 2).astype(np.int32)


def _places_in_classes(work: Work, columns: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """How many earlier rows are equal to each on `columns`, int32 (rows,), and whether no other row is; nulls are equal
    to each other."""
    place, alone = np.zeros(work.rows, dtype=np.int32), np.ones(work.rows, dtype=np.bool_)
    if columns:
        alike = agreeing(work, start(work), [(c, c) for c in columns], keep_nulls=True)
        sizes = np.diff(alike.left_offsets)
        place[alike.left] = np.arange(len(alike.left)) - np.repeat(alike.left_offsets[:-1], sizes)
        alone[alike.left] = False
    return place, alone
