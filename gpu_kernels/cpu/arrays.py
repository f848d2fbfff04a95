"""Loops for what NumPy's functions do where Numba takes longer to compile those than the rest of a kernel.

The assignment of an array to a slice brings the text of a shape error along, 42 functions; a sort brings all of
NumPy's cases.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper

RUN = 16  # values that are put in order by insertion before runs are merged


@helper
def copy(source, target):
    """target[i] = source[i], one-dimensional; the target may be longer."""
    for i in range(len(source)):
        target[i] = source[i]


@helper
def copy_rows(source, target, count):
    """The first `count` rows of `source` become those of `target`, of as many columns."""
    for i in range(count):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@helper
def joined(first, second):
    """The rows of two arrays of as many columns, one after the other."""
    rows = np.empty((len(first) + len(second), first.shape[1]), dtype=first.dtype)
    copy_rows(first, rows, len(first))
    copy_rows(second, rows[len(first) :], len(second))
    return rows


@helper
def sort(values):
    """Put values in ascending order, in place: insertion into short runs, then merges from below. Memory: a copy."""
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
    """int64 places of the keys in ascending order; equal keys stay in the order that they have."""
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
