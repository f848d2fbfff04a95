"""What a join compares, the algorithms that there are, and what each can be asked."""

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

# Columns of slices, int64 (rows, 4): the partners of a left row are one or two slices of a sorted right side
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
    """What satisfies some comparisons inside cluster pairs. Pairs of a row with itself count like any other."""

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        """Number of pairs; `counts`, int64 (rows,) by row of the left side, gets `sign` times its partners added."""

    def emit(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Partners of these left rows: offsets int64 (len(rows) + 1,), right rows int32, ascending for each."""

    def find(self, limit: int) -> NDArray[np.int32]:
        """At most `limit` pairs of different rows, int32 (found, 2), stopping as soon as they are found."""


class KdTreePairJoin(PairJoin, Protocol):
    """What "kdtree" makes: it can say beforehand what counting will cost."""

    def nodes_for(self, sample_rows: int) -> float:
        """Nodes of the tree that a left row meets on average, by a sample of the left rows."""
