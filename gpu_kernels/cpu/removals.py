"""Fewest rows to remove so that a check holds, class by class of a stripped partition.

Source: Schensted, "Longest increasing and decreasing subsequences", Canadian Journal of Mathematics 13, 1961, computed
by patience sorting as in Fredman, "On computing the length of longest increasing subsequences", Discrete Mathematics
11, 1975. Its use for approximate order compatibility: Karegar, Godfrey, Golab, Kargar, Srivastava, Szlichta, "Efficient
discovery of approximate order dependencies", EDBT 2021. Constancy: Huhtala et al. (TANE), 1999, section 2.3.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper
from tuplewise.gpu_kernels.cpu.arrays import sort


@helper
def outside_majorities(rows, bounds, column, strict, most, counts):
    """Count rows without the most frequent code of their class; returns `most` + 1 as soon as there are more than
    `most`."""
    removed = 0
    for c in range(len(bounds)):
        removed += outside_majority(rows[bounds[c, 0] : bounds[c, 1]], column, strict, counts)
        if removed > most:
            return most + 1
    return removed


@helper
def outside_majority(rows, column, strict, counts):
    """Count rows without the class's most frequent code; `strict`: only rows with a value. `counts` is zeros again at
    the end."""
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
    """Count rows outside the longest subsequence of their class in which B doesn't fall, at most `most` + 1.

    rows, marks : in order of (class, A), as `violations.sort_classes` writes them. Rows of equal A are sorted by B
        here.
    Descending order uses -B. `tails`, `run`: int32, room for as many rows.
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
        if removed + size - length > most:  # rows outside so far stay outside
            return most + 1
        i = end
    return removed + size - length


@helper
def lengthen(code, length, tails):
    """Add a code by patience sorting: replace the first larger tail, or append the code; returns the number of
    tails."""
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
