"""Small sets of column pairs as packed numbers: 16 bits for each member, its number plus 1, ascending from the top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel


def packed(numbers: Sequence[int]) -> int:
    """A set of numbers, ascending, as `list_subsets` packs it."""
    code = 0
    for number in numbers:
        code = code << 16 | (number + 1)
    return code


def unpacked(code: int) -> tuple[int, ...]:
    """Numbers of a set that `list_subsets` packed."""
    numbers = []
    while code:
        numbers.append((code & 0xFFFF) - 1)
        code >>= 16
    return tuple(reversed(numbers))


def best_set(
    codes: NDArray[np.uint64],
    savings: NDArray[np.float64],
    pairs: NDArray[np.float64],
    price: Callable[[Any], Any],
    estimate: Callable[[int], float],
) -> int | None:
    """The place of the set with the greatest savings / price, where that is above 1; None where there is none.

    Parameters
    ----------
    codes : the sets, packed
    savings : seconds that each saves
    pairs : pairs of rows that agree on each, NaN where unknown; filled in where it could matter
    price : seconds for so many pairs, ascending
    estimate : about how many pairs agree on a packed set
    """
    least_price = price(0.0)
    ratios = savings / price(pairs)
    known = np.flatnonzero(ratios > 1.0)
    best = int(known[np.argmax(ratios[known])]) if len(known) else None
    best_ratio = 1.0 if best is None else float(ratios[best])
    unknown = np.flatnonzero(np.isnan(pairs) & (savings > best_ratio * least_price))
    for at in unknown[np.argsort(-savings[unknown], kind="stable")].tolist():
        if savings[at] <= best_ratio * least_price:  # so it is with all that save less
            break
        pairs[at] = estimate(int(codes[at]))
        ratio = float(savings[at]) / float(price(pairs[at]))
        if ratio > best_ratio:
            best, best_ratio = at, ratio
    return best


@kernel("boolean[:, ::1], int64")
def list_subsets(has: NDArray[np.bool_], most: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """All subsets of at most `most` (<= 4) members of each row, the empty one too, each as a packed 64-bit number, and
    whose subset each is.

    `has`: bool (sets, members). 16 bits for each member, its number plus 1, ascending from the top.
    """
    sets, members = has.shape
    total = 0
    for i in range(sets):
        m = 0
        for j in range(members):
            m += has[i, j]
        ways, all_ways = 1, 1
        for k in range(1, most + 1):
            ways = ways * (m - k + 1) // k
            all_ways += ways
        total += all_ways
    out = np.empty(total, dtype=np.uint64)
    owners = np.empty(total, dtype=np.int64)
    own = np.empty(members, dtype=np.uint64)
    stack = np.empty(most + 1, dtype=np.int64)
    prefix = np.zeros(most + 1, dtype=np.uint64)
    at = 0
    for i in range(sets):
        m = 0
        for j in range(members):
            if has[i, j]:
                own[m] = np.uint64(j + 1)
                m += 1
        out[at] = np.uint64(0)
        owners[at] = i
        at += 1
        depth = 0
        stack[0] = 0
        while depth >= 0:
            if depth == most or stack[depth] == m:
                depth -= 1
                continue
            prefix[depth + 1] = (prefix[depth] << np.uint64(16)) | own[stack[depth]]
            out[at] = prefix[depth + 1]
            owners[at] = i
            at += 1
            stack[depth + 1] = stack[depth] + 1
            stack[depth] += 1
            depth += 1
    return out[:at], owners[:at]
