"""The fewest rows to remove so that a check holds: class by class, from a stripped partition.

Source: Schensted, "Longest increasing and decreasing subsequences", Canadian Journal of Mathematics 13, 1961, by
patience as Fredman, "On computing the length of longest increasing subsequences", Discrete Mathematics 11, 1975; its
use for approximate order compatibility: Karegar, Godfrey, Golab, Kargar, Srivastava, Szlichta, "Efficient discovery of
approximate order dependencies", EDBT 2021. Constancy: Huhtala et al. (TANE), 1999, section 2.3.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

import numpy as np
from numba import njit

from tuplewise.gpu_kernels.order import ASCENDING, CONSTANT, KEY

CODES = 1 << 32
LOW_HALF = np.uint64(CODES - 1)


@njit(cache=True, nogil=True)
def removals_of(rows, bounds, members, left, right, kind, strict, most, scratch):
    """Rows to remove for one check: `most` + 1 as soon as it is more than that."""
    if kind == KEY:
        return min(members - len(bounds), most + 1)
    removed = np.int64(0)
    for c in range(len(bounds)):
        members_of_class = rows[bounds[c, 0] : bounds[c, 1]]
        if kind == CONSTANT:
            removed += outside_majority(members_of_class, left, strict, scratch.counts)
        else:
            removed += outside_longest_run(members_of_class, left, right, kind == ASCENDING, scratch)
        if removed > most:
            return most + 1
    return removed


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def outside_longest_run(rows, left, right, ascending, scratch):
    """Rows outside the longest subsequence without a swap: by (A, B), where B doesn't fall.

    Descending is ascending with B the other way round, in which ties of A are ordered as well.
    """
    keys, tails = scratch.keys[: len(rows)], scratch.seen
    for i in range(len(rows)):
        code = np.int64(right[rows[i]]) + 1
        if not ascending:
            code = CODES - 1 - code
        keys[i] = (np.uint64(left[rows[i]] + 1) << np.uint64(32)) | np.uint64(code)
    keys.sort()
    length = 0
    for i in range(len(rows)):
        low_half = np.int64(keys[i] & LOW_HALF)
        code = low_half - 1 if ascending else CODES - 2 - low_half
        tail = np.int32(code if ascending else -code)
        low, high = 0, length
        if length > 0 and tails[length - 1] <= tail:
            low = length
        while low < high:
            middle = (low + high) >> 1
            if tails[middle] <= tail:
                low = middle + 1
            else:
                high = middle
        tails[low] = tail
        length = max(length, low + 1)
    return len(rows) - length
