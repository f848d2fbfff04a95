"""The rows that an order rule has to lose: those outside a longest chain of their class.

Source: Schensted, "Longest increasing and decreasing subsequences", Canadian Journal of Mathematics 13, 1961, by
patience as in `gpu_kernels.cpu.removals`, which counts these rows; here with the members of the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.profile.exceptions import Exceptions
from tuplewise.engine.profile.rows import CountedRelation
from tuplewise.gpu_kernels.compiled import kernel


@dataclass(frozen=True, eq=False)
class OutsideChains:
    """The rows outside the longest chains, and the rows of the chain next to each.

    Attributes
    ----------
    rows : int64 (n,), ascending
    before, after : int64 (n,), the rows of the chain that come before and after it in order of A; -1 if there is none
    against : int64 (n,), the one of these that contradicts it
    """

    rows: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    against: NDArray[np.int64]

    def exceptions(self, limit: int | None) -> Exceptions:
        """At most so many of the rows, each with the one that contradicts it."""
        nothing = np.zeros(len(self.rows), dtype=np.int64)
        return Exceptions(self.rows, self.against, nothing, nothing).first(limit)


def outside_chains(counted: CountedRelation, context: Sequence[int], a: int, b: int, ascending: bool) -> OutsideChains:
    """The fewest rows without which no two rows of a class are ordered by B against their order by A.

    Rows with a null in the columns are left out, unless nulls are values. Cost for n rows: a sort, and n log n steps.
    """
    groups = counted.classes(context, also_filled=(a, b)).groups
    members = groups.left.astype(np.int64)
    if not len(members):
        return OutsideChains(members, members, members, members)
    by_b = counted.codes[b] if ascending else -counted.codes[b]
    sizes = np.diff(groups.left_offsets)
    order = _in_order(np.repeat(np.arange(len(sizes)), sizes), counted.codes[a][members], by_b[members])
    rows = members[order]
    values = np.ascontiguousarray(by_b[rows])
    offsets = groups.left_offsets.astype(np.int64)
    kept = np.zeros(len(values), dtype=np.bool_)
    _keep_longest_runs(values, offsets, kept)
    outside = np.flatnonzero(~kept)
    number = np.searchsorted(offsets, outside, side="right") - 1
    places = np.arange(len(kept))
    before = np.maximum.accumulate(np.where(kept, places, -1))[outside]
    after = np.minimum.accumulate(np.where(kept, places, len(kept))[::-1])[::-1][outside]
    has_before, has_after = before >= offsets[number], after < offsets[number + 1]
    before, after = np.where(has_before, before, 0), np.where(has_after, after, 0)
    too_low = has_before & (values[outside] < values[before])
    against = np.where(too_low, rows[before], rows[after])
    shown = np.argsort(rows[outside], kind="stable")
    found = (rows[outside], np.where(has_before, rows[before], -1), np.where(has_after, rows[after], -1), against)
    return OutsideChains(*(column[shown] for column in found))


def _in_order(number: NDArray[np.int64], a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int64]:
    """The order by class, then A, then B: by one key where it fits into 64 bits."""
    a, b = a - a.min(), b - b.min()
    of_a, of_b = int(a.max()) + 1, int(b.max()) + 1
    if (int(number[-1]) + 1) * of_a * of_b >= 1 << 63:
        return np.lexsort((b, a, number))
    return np.argsort((number * of_a + a) * of_b + b, kind="stable")


@kernel("int32[::1], int64[::1], bool_[::1]")
def _keep_longest_runs(values: NDArray[np.int32], offsets: NDArray[np.int64], kept: NDArray[np.bool_]) -> None:
    """Mark, in each class, a longest subsequence that doesn't fall."""
    tails = np.empty(len(values), dtype=np.int64)
    previous = np.empty(len(values), dtype=np.int64)
    for c in range(len(offsets) - 1):
        length = 0
        for i in range(offsets[c], offsets[c + 1]):
            low, high = 0, length
            if length > 0 and values[tails[length - 1]] <= values[i]:
                low = length
            while low < high:
                middle = (low + high) >> 1
                if values[tails[middle]] <= values[i]:
                    low = middle + 1
                else:
                    high = middle
            previous[i] = tails[low - 1] if low > 0 else -1
            tails[low] = i
            length = max(length, low + 1)
        i = tails[length - 1] if length > 0 else -1
        while i >= 0:
            kept[i] = True
            i = previous[i]
