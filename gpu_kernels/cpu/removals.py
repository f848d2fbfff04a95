"""The fewest rows to remove so that a check holds: class by class, from a stripped partition.

Source: Schensted, "Longest increasing and decreasing subsequences", Canadian Journal of Mathematics 13, 1961, by
patience as Fredman, "On computing the length of longest increasing subsequences", Discrete Mathematics 11, 1975; its
use for approximate order compatibility: Karegar, Godfrey, Golab, Kargar, Srivastava, Szlichta, "Efficient discovery of
approximate order dependencies", EDBT 2021. Constancy: Huhtala et al. (TANE), 1999, section 2.3.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper
from tuplewise.gpu_kernels.cpu.arrays import sort


@helper
def outside_majorities(rows, bounds, column, strict, most, counts):
    """Rows outside their class's most frequent code: `most` + 1 as soon as they are more than that."""
    removed = 0
    for c in range(len(bounds)):
        removed += outside_majority(rows[bounds[c, 0] : bounds[c, 1]], column, strict, counts)
        if removed > most:
            return most + 1
    return removed


@helper
def outside_majority(rows, column, strict, counts):
    """Rows that don't have the class's most frequent code; `strict`: of those with a value. `counts` stays zeros."""
    most = rows_with_value = 0
    for i in range(len(rows)):
        code = column[rows[i]] + 1
        if strict and code == 0:
            continue
        counts[code] += 1
        rows_with_value += 1
        most = max(most, counts[code])
    for i in range(len(rows)):
        counts[column[rows[i]] + 1] = 0
    return rows_with_value - most


@helper
def outside_longest_runs(rows, marks, column, ascending, most, tails, run):
    """Rows outside the longest subsequence of their class in which B doesn't fall: at most `most` + 1.

    rows, marks : in order of (class, A), as `violations.sort_classes` leaves them; of equal A, B is put in order here.
    Descending is ascending with -B. `tails`, `run` : int32, room for as many rows.
    """
    sign = np.int32(1) if ascending else np.int32(-1)
    removed = length = size = i = 0
    while i < len(rows):
        if marks[i] == 2:
            removed += size - length
            length = size = 0
        end = i + 1
        while end < len(rows) and marks[end] == 0:
            end += 1
        for j in range(i, end):
            run[j - i] = sign * column[rows[j]]
        if end - i > 1:
            sort(run[: end - i])
        for j in range(end - i):
            length = lengthen(run[j], length, tails)
        size += end - i
        if removed + size - length > most:  # what is outside so far stays outside
            return most + 1
        i = end
    return removed + size - length


@helper
def lengthen(code, length, tails):
    """Patience: put a code on the first tail above it, or after all; returns how many tails there are."""
    low, high = 0, length
    if length > 0 and tails[length - 1] <= code:
        low = length
    while low < high:
        middle = (low + high) >> 1
        if tails[middle] <= code:
            low = middle + 1
        else:
            high = middle
    tails[low] = code
    return max(length, low + 1)
