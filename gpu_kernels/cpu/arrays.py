"""Loops in place of NumPy functions that take Numba longer to compile than the rest of a kernel.

Assigning an array to a slice compiles the text of a shape error too, 42 functions; a sort compiles all of NumPy's
cases.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper

RUN = 16  # values that insertion sorts before runs are merged


@helper
def copy(source, target):
    """Copy a one-dimensional array: target[i] = source[i]; the target may be longer."""
    for i in range(len(source)):
        target[i] = source[i]


@helper
def copy_rows(source, target, count):
    """Copy the first `count` rows of `source` to `target`, which has as many columns."""
    for i in range(count):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@helper
def joined(first, second):
    """Concatenate the rows of two arrays with as many columns."""
    rows = np.empty((len(first) + len(second), first.shape[1]), dtype=first.dtype)
    copy_rows(first, rows, len(first))
    copy_rows(second, rows[len(first) :], len(second))
    return rows


@helper
def sort(values):
    """Sort values in place, ascending: insertion sort of short runs, then bottom-up merges. Memory: a copy."""
    n = len(values)
    for begin in range(0, n, RUN):
        for i in range(begin + 1, min(begin + RUN, n)):
            value = values[i]
            j = i
            while j > begin and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
    if n <= RUN:
        return
    other = np.empty(n, dtype=values.dtype)
    width = RUN
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, end):
                if j == end or (i < middle and values[i] <= values[j]):
                    other[k] = values[i]
                    i += 1
                else:
                    other[k] = values[j]
                    j += 1
        copy(other, values)
        width *= 2


@helper
def order_of(keys):
    """Places of the keys in ascending order, int64; stable."""
    n = len(keys)
    order, other = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, end):
                if j == end or (i < middle and keys[order[i]] <= keys[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        copy(other, order)
        width *= 2
    return order
