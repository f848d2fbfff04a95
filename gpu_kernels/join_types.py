"""Types of joins: comparisons, algorithms, and the methods of a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

LESS = 1
EQUAL = 2
GREATER = 4

Algorithm = Literal["hsm", "iejoin", "bhsm", "kdtree", "rangetree"]
ALGORITHMS: tuple[Algorithm, ...] = ("hsm", "iejoin", "bhsm", "kdtree", "rangetree")

# Columns of slices, int64 (rows, 4): the partners of a left row are one or two slices of the sorted right side
FIRST, FIRST_END, SECOND, SECOND_END = 0, 1, 2, 3


@dataclass(frozen=True, slots=True, order=True)
class Comparison:
    """A predicate over a pair (t, u): the outcome of t's column `left` against u's column `right` is in `outcomes`.

    `outcomes` has the bits LESS, EQUAL, GREATER: `t.A < u.B` is LESS, `!=` is LESS | GREATER.
    """

    left: int
    right: int
    outcomes: int


class PairJoin(Protocol):
    """Pairs of rows inside cluster pairs that satisfy some comparisons. Pairs of a row with itself count like any
    other."""

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        """Number of pairs. Adds `sign` x (partners of a left row) to `counts`, int64 (rows,), at that row."""

    def emit(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Partners of these left rows: offsets int64 (len(rows) + 1,), right rows int32, ascending for each."""

    def find(self, limit: int) -> NDArray[np.int32]:
        """At most `limit` pairs of different rows, int32 (found, 2); stops as soon as it has them."""


class KdTreePairJoin(PairJoin, Protocol):
    """Join of the algorithm "kdtree", which can estimate the cost of counting."""

    def nodes_for(self, sample_rows: int) -> float:
        """Estimate from a sample of the left rows the average number of tree nodes that a left row visits."""
