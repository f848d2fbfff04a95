"""Compiled loops over pairs of few rows, compared code by code: making ranks, as `tiles` does, would cost more."""

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.plan import KIND_EQUAL, KIND_ORDER, KIND_ORDER_NULL, KIND_ROW_T
from tuplewise.gpu_kernels.cpu.planes import LANES
from tuplewise.gpu_kernels.cpu.tally import add_row
from tuplewise.gpu_kernels.cpu.tiles import TABLE, Table  # noqa: F401


@helper
def _compare_row(data, t, u_first, u_last, row_keys):
    """Write the plane bytes of row t with rows `u_first` to `u_last`, at most 256, compared code by code."""
    codes, domain, row_outcomes = data.codes, data.domain, data.row_outcomes
    left, right, kind, plane, weight, row_of = data.left, data.right, data.kind, data.plane, data.weight, data.row_of
    row_keys[:, :] = 0
    for g in range(len(left)):
        word = plane[g] // 8
        step = np.uint64(weight[g]) << np.uint64(8 * (plane[g] - 8 * word))
        what = kind[g]
        out = row_keys[word]
        if what == KIND_ROW_T:
            digit = np.uint64(row_outcomes[row_of[g], t])
            for j in range(u_last - u_first):
                out[j] += step * digit
        elif what > KIND_ROW_T:
            for j in range(u_last - u_first):
                out[j] += step * np.uint64(row_outcomes[row_of[g], u_first + j])
        else:
            _add_digits(codes[left[g], t], domain[left[g]], codes[right[g], u_first:u_last], what, step, out)


@helper
def _add_small_group(data, keys, counts, used, row_keys, hashes, first, last):
    """Count all pairs t < u of one small group of rows in the hash table, compared code by code."""
    for t in range(first, last - 1):
        for u_first in range(t + 1, last, LANES):
            u_last = min(u_first + LANES, last)
            _compare_row(data, t, u_first, u_last, row_keys)
            keys, counts, used = add_row(keys, counts, used, row_keys, hashes, 0, u_last - u_first, 1)
    return keys, counts, used


@kernel(f"{TABLE}, uint64[:, ::1], int64[::1], int64, uint64[:, ::1], uint64[::1], int64")
def add_few(data, keys, counts, used, row_keys, hashes, few):
    """Count all pairs of the last `few` rows, as t, with the rows before them in the hash table, compared code by
    code."""
    many = data.codes.shape[1] - few
    for u_first in range(0, many, LANES):
        u_last = min(u_first + LANES, many)
        for t in range(many, many + few):
            _compare_row(data, t, u_first, u_last, row_keys)
            keys, counts, used = add_row(keys, counts, used, row_keys, hashes, 0, u_last - u_first, 1)
    return keys, counts, used


@helper
def _add_digits(code, nulls, row, what, step, out):
    """Add the digits of one comparison of a code with those of `row`. Lanes are unsigned, so no index counts from the
    end."""
    lanes, zero = np.uint64(len(row)), np.uint64(0)
    if what == KIND_EQUAL:
        for j in range(np.uint64(0), lanes):
            out[j] += step if row[j] == code else zero
    elif what == KIND_ORDER:
        for j in range(np.uint64(0), lanes):
            out[j] += (step if row[j] < code else zero) + (step if row[j] <= code else zero)
    else:
        twice = step + step
        unknown = twice + step if what == KIND_ORDER_NULL else twice
        if code == nulls:
            for j in range(np.uint64(0), lanes):
                out[j] += unknown
        elif what == KIND_ORDER_NULL:
            for j in range(np.uint64(0), lanes):
                known = (step if row[j] < code else zero) + (step if row[j] <= code else zero)
                out[j] += unknown if row[j] == nulls else known
        else:
            for j in range(np.uint64(0), lanes):
                known = step if row[j] == code else zero
                out[j] += unknown if row[j] == nulls else known


@kernel(
    f"{TABLE}, uint64[:, ::1], int64[::1], int64, uint64[:, ::1], uint64[::1], int64[::1], int64, int64, int64"
)
def add_small_groups(data, keys, counts, used, row_keys, hashes, offsets, first, last, limit):
    """Count the pairs of the groups `first` to `last` with fewer than `limit` rows."""
    for g in range(first, last):
        if offsets[g + 1] - offsets[g] < limit:
            keys, counts, used = _add_small_group(
                data, keys, counts, used, row_keys, hashes, offsets[g], offsets[g + 1]
            )
    return keys, counts, used
