"""Consequences of a conjunction of predicates: entailment over all operands of both tuples, in an unbounded order.

A conjunction of comparisons is a graph over its operands (column of t, column of u) with edges `<=`, `<` and `!=`.
Its consequences are found by closing the graph:

1. `<=` is transitive; `<` holds along every path of `<=` with a strict edge. An operand below itself: unsatisfiable.
2. Operands with `<=` both ways are equal; `!=` extends to all operands equal to its ends. `!=` within one class of
   equals: unsatisfiable.
3. s != t with v <= s, v <= t, s <= w, t <= w gives v < w: the case that path consistency misses.

Closing finds every consequence `x op y` of a satisfiable conjunction (for 3: P. van Beek, R. Cohen, Exact and
approximate reasoning about temporal relations, Computational Intelligence 1990; tests compare it with an enumeration
of models).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel

EQUALS, DIFFERS, BELOW, AT_MOST, ABOVE, AT_LEAST = range(6)


@kernel("int64, int64[::1], int64[::1], int64[::1], boolean[:, ::1], boolean[:, ::1], boolean[:, ::1]")
def close(
    operands: int,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    operator: NDArray[np.int64],
    at_most: NDArray[np.bool_],
    below: NDArray[np.bool_],
    differ: NDArray[np.bool_],
) -> bool:
    """Close predicates left[i] operator[i] right[i] over operands numbered from 0; returns False if unsatisfiable.

    Fills the bool squares `at_most`, `below` and `differ`. Cost: the cube of the number of operands.
    """
    n = operands
    at_most[:n, :n] = False
    below[:n, :n] = False
    differ[:n, :n] = False
    for i in range(n):
        at_most[i, i] = True
    for k in range(len(left)):
        x, y, op = left[k], right[k], operator[k]
        if op in (EQUALS, AT_MOST, BELOW):
            at_most[x, y] = True
        if op in (EQUALS, AT_LEAST, ABOVE):
            at_most[y, x] = True
        if op == BELOW:
            below[x, y] = True
        if op == ABOVE:
            below[y, x] = True
        if op == DIFFERS:
            differ[x, y] = True
            differ[y, x] = True
    for k in range(n):
        for i in range(n):
            if at_most[i, k]:
                for j in range(n):
                    if at_most[k, j]:
                        at_most[i, j] = True
    for k in range(len(left)):  # for every strict edge x < y: all below x are below all above y
        op = operator[k]
        x, y = (left[k], right[k]) if op == BELOW else (right[k], left[k])
        if op in (BELOW, ABOVE):
            for i in range(n):
                if at_most[i, x]:
                    for j in range(n):
                        if at_most[y, j]:
                            below[i, j] = True
        elif op == DIFFERS:
            if at_most[x, y] and at_most[y, x]:
                return False
            for i in range(n):
                for j in range(n):
                    if at_most[i, x] and at_most[x, i] and at_most[j, y] and at_most[y, j]:
                        differ[i, j] = True
                        differ[j, i] = True
                    if at_most[i, x] and at_most[i, y] and at_most[x, j] and at_most[y, j]:
                        below[i, j] = True
    for i in range(n):
        if below[i, i]:
            return False
        for j in range(n):
            if below[i, j]:
                differ[i, j] = True
                differ[j, i] = True
    return True
