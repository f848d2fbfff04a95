"""Violations between partitions of rows that are sorted by context and left column, found from the partitions' edges.

A class may span many partitions, and so may rows with one value of its left column. Each partition returns the edges of
its first and last class. Running extremes are then carried from one partition to the next on the driver, so that each
row is read only once.

Source: order-compatibility by running extremes as in Li, Zhang, Tan, "Efficient set-based order dependency discovery
with a level-wise hybrid strategy", ICDE 2023, algorithm 4; cutting a class is this project's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
FIGURES = 4  # of a column in a set of rows
Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Extremes:
    """The lowest and highest code of some columns in a set of rows, and the position of a row with each: int64
    (columns,) each. For no rows: HIGHEST, LOWEST, and -1."""

    low: NDArray[np.int64]
    low_at: Positions
    high: NDArray[np.int64]
    high_at: Positions

    @classmethod
    def of(cls, codes: NDArray[np.int32], positions: Positions) -> Extremes:
        """The extremes of some rows. `codes`: (columns, rows); of equal codes the first row counts."""
        columns = len(codes)
        if not len(positions):
            ends = np.full(columns, HIGHEST), np.full(columns, LOWEST)
            nowhere = np.full(columns, -1, dtype=np.int64)
            return cls(ends[0], nowhere, ends[1], nowhere)
        low, high = codes.argmin(axis=1), codes.argmax(axis=1)
        each = np.arange(columns)
        least, greatest = (codes[each, at].astype(np.int64) for at in (low, high))
        return cls(least, positions[low], greatest, positions[high])

    def with_those_of(self, other: Extremes) -> Extremes:
        """The extremes of both sets of rows together."""
        lower, higher = other.low < self.low, other.high > self.high
        return Extremes(
            np.where(lower, other.low, self.low),
            np.where(lower, other.low_at, self.low_at),
            np.where(higher, other.high, self.high),
            np.where(higher, other.high_at, self.high_at),
        )

    def as_numbers(self) -> NDArray[np.int64]:
        return np.concatenate([self.low, self.low_at, self.high, self.high_at])

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.int64]) -> Extremes:
        return cls(*numbers.reshape(FIGURES, -1))


@dataclass(frozen=True, eq=False)
class Edge:
    """The part of a class that is at the start or the end of a partition.

    Attributes
    ----------
    key : the class: codes of its context
    value : the lowest (at the start) or highest (at the end) code of the left column; 0 if there is none
    at : position of the first row with it
    tie, rest : extremes of the right columns among the rows that have it, and among the others
    """

    key: tuple[int, ...]
    value: int
    at: int
    tie: Extremes
    rest: Extremes

    def as_numbers(self) -> NDArray[np.int64]:
        own = np.array([*self.key, self.value, self.at], dtype=np.int64)
        return np.concatenate([own, self.tie.as_numbers(), self.rest.as_numbers()])

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.int64], context: int) -> Edge:
        """`context`: columns of it."""
        own, figures = numbers[: context + 2].tolist(), numbers[context + 2 :]
        half = len(figures) // 2
        halves = Extremes.of_numbers(figures[:half]), Extremes.of_numbers(figures[half:])
        return cls(tuple(own[:context]), own[-2], own[-1], *halves)


class Edges(NamedTuple):
    """Both edges of a partition: one class may be both its first and its last."""

    first: Edge
    last: Edge


def edges_of(
    context: NDArray[np.int32], left: NDArray[np.int32], right: NDArray[np.int32], positions: Positions
) -> Edges:
    """The edges of the rows of a partition: at least one row, ascending in position.

    Parameters
    ----------
    context, right : int32 (columns, rows)
    left : int32 (rows,); zeros if there is no left column
    """
    found = []
    for extreme in (np.min, np.max):
        rows = np.arange(len(positions))
        key = []
        for column in context:
            key.append(int(extreme(column[rows])))
            rows = rows[column[rows] == key[-1]]
        value = int(extreme(left[rows]))
        tie = left[rows] == value
        own, others = rows[tie], rows[~tie]
        of_rows = [Extremes.of(right[:, some], positions[some]) for some in (own, others)]
        found.append(Edge(tuple(key), value, int(positions[own[0]]), *of_rows))
    return Edges(*found)


class Crossing(NamedTuple):
    """A class that continues from one partition to the next.

    Attributes
    ----------
    t, u : a row on each side
    constant : whether both have the same left value
    falling, rising : int64 (right columns, 2), for each right column two rows with ascending left values and
        descending (ascending) right ones, the second one in the later partition; -1 if there are none
    """

    t: int
    u: int
    constant: bool
    falling: NDArray[np.int64]
    rising: NDArray[np.int64]


def crossings(partitions: Sequence[Edges]) -> Iterator[Crossing]:
    """The crossings between partitions, given in any order. Partitions are ranges of (context, left, position)."""
    carried: Edge | None = None  # `tie`, `rest`: of all rows of its class so far
    for first, last in sorted(partitions, key=lambda e: (e.first.key, e.first.value, e.first.at)):
        if carried is None or carried.key != first.key:
            carried = last
            continue
        whole = carried.tie.with_those_of(carried.rest)
        same = carried.value == first.value
        yield _between(carried, first, carried.rest if same else whole, whole)
        if last.key != first.key:
            carried = last
        elif last.value == carried.value:  # a tie goes on
            carried = Edge(last.key, last.value, last.at, carried.tie.with_those_of(last.tie), carried.rest)
        else:
            carried = Edge(last.key, last.value, last.at, last.tie, whole.with_those_of(last.rest))


def _between(before: Edge, after: Edge, less: Extremes, whole: Extremes) -> Crossing:
    """The crossing between two parts of a class. `less`: extremes of the earlier rows whose left value is below the
    lowest later one; `whole`: of all earlier rows."""
    falling, rising = (np.full((len(whole.low), 2), -1, dtype=np.int64) for _ in range(2))
    for earlier, later in ((whole, after.rest), (less, after.tie)):
        falls = earlier.high > later.low
        rises = earlier.low < later.high
        falling[falls] = np.stack([earlier.high_at, later.low_at], axis=1)[falls]
        rising[rises] = np.stack([earlier.low_at, later.high_at], axis=1)[rises]
    return Crossing(before.at, after.at, before.value == after.value, falling, rising)
