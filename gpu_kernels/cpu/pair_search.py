"""Loop of `gpu_kernels.pair_search`: blocks of right rows that are compared with one left row each."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.joins import COMPARED, Compared
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS

BLOCK = 128  # right rows that are compared at a time
LOWEST, HIGHEST = -2147483648, 2147483647


@kernel(f"int32[::1], int64[::1], int32[::1], int64[::1], const int32[:, ::1], {COMPARED}, int64, int32[:, ::1]")
def find_in_clusters(left, loffsets, right, roffsets, codes, compared: Compared, share, found):
    """Fill `found` with satisfying pairs of different rows, one for each left row, `share` for each cluster at most;
    returns how many."""
    lcolumns, rcolumns, outcomes = compared
    most = 0
    for c in range(len(roffsets) - 1):
        most = max(most, roffsets[c + 1] - roffsets[c])
    theirs = np.empty((len(outcomes), most), dtype=np.int32)
    good = np.empty(BLOCK, dtype=np.uint32)
    n = 0
    for c in range(len(roffsets) - 1):
        before = n
        start, width = roffsets[c], roffsets[c + 1] - roffsets[c]
        if loffsets[c] < loffsets[c + 1]:
            for d in range(len(outcomes)):
                for k in range(width):
                    theirs[d, k] = codes[rcolumns[d], right[start + k]]
        for i in range(loffsets[c], loffsets[c + 1]):
            t = left[i]
            partner = -1
            for begin in range(0, width, BLOCK):
                size = min(BLOCK, width - begin)
                good[:size] = np.uint32(1)
                some = True
                for d in range(len(outcomes)):
                    mine, values = np.int64(codes[lcolumns[d], t]), theirs[d, begin : begin + size]
                    if outcomes[d] == LESS | GREATER:
                        some = _differing(values, np.int32(mine), good)
                    else:
                        low = LOWEST if outcomes[d] & GREATER else (mine if outcomes[d] & EQUAL else mine + 1)
                        high = HIGHEST if outcomes[d] & LESS else (mine if outcomes[d] & EQUAL else mine - 1)
                        some = _between(values, low, high, good)
                    if not some:
                        break
                if not some:
                    continue
                for k in range(size):
                    if good[k] and right[start + begin + k] != t:
                        partner = right[start + begin + k]
                        break
                if partner >= 0:
                    break
            if partner >= 0:
                found[n, 0], found[n, 1] = t, partner
                n += 1
                if n == len(found):
                    return n
                if n - before == share:
                    break
    return n


@helper
def _differing(values, mine, good):
    """Clear `good` where a value equals `mine`; tells whether any is left."""
    some = np.uint32(0)
    for k in range(np.uint64(len(values))):
        good[k] &= np.uint32(values[k] != mine)
        some |= good[k]
    return some != 0


@helper
def _between(values, low, high, good):
    """Clear `good` where a value is outside [low, high]; tells whether any is left."""
    least, most = np.int32(max(low, LOWEST)), np.int32(min(high, HIGHEST))
    some = np.uint32(0)
    if low > high:
        return False
    for k in range(np.uint64(len(values))):
        good[k] &= np.uint32(values[k] >= least) & np.uint32(values[k] <= most)
        some |= good[k]
    return some != 0
