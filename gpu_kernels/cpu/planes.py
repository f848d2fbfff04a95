"""Fused compare loops: outcomes of one tuple with 256 others, several comparisons packed into one byte.

A *plane* is a group of comparisons whose outcomes, as digits of a mixed-radix number, fit one byte: up to 8 unordered
comparisons (radix 2) or 5 ordered ones (radix 3). A digit is a sum of weighted *terms*, each 1 where `rank < threshold`
or `rank == threshold` holds. So a plane byte is a sum of weighted terms, and 32 pairs take three instructions a term
(compare, mask, add). There is a loop for each even number of terms, so no table needs compiling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper

LANES = 256  # tuples of a padded tile: a multiple of the widest vector
TILE_ROWS = 248  # tuples in a tile; 8-bit ranks 0..247 leave values for "absent" and for null
COMBINATIONS = 256  # values of a plane byte
ABSENT = np.int8(126)  # an equality threshold that no rank has
NEVER = np.int8(-128)  # a threshold that no rank is below
NULL_RANK = np.int8(127)  # rank of a null under the rule "unknown"


def _make_below(terms: int) -> Any:
    @helper
    def plane(out, first, last, ranks, thresholds, weights, base, lane_base):
        for i in range(first, last):
            start = base[i]
            for j in range(LANES):
                byte = np.uint8(start + lane_base[j])
                for k in range(terms):
                    byte = np.uint8(byte + np.uint8((ranks[k, j] < thresholds[k, i]) * weights[k]))
                out[i - first, j] = byte

    return plane


def _make_equal(terms: int) -> Any:
    @helper
    def plane(out, first, last, ranks, thresholds, weights):
        for i in range(first, last):
            for j in range(LANES):
                byte = out[i - first, j]
                for k in range(terms):
                    byte = np.uint8(byte + np.uint8((ranks[k, j] == thresholds[k, i]) * weights[k]))
                out[i - first, j] = byte

    return plane


_below_0, _below_2, _below_4, _below_6, _below_8, _below_10 = (_make_below(k) for k in (0, 2, 4, 6, 8, 10))
_equal_2, _equal_4, _equal_6, _equal_8, _equal_10 = (_make_equal(k) for k in (2, 4, 6, 8, 10))


@helper
def fill_below(
    terms: int,
    out: NDArray[np.uint8],
    first: int,
    last: int,
    ranks: NDArray[np.int8],
    thresholds: NDArray[np.int8],
    weights: NDArray[np.uint8],
    base: NDArray[np.uint8],
    lane_base: NDArray[np.uint8],
) -> None:
    """Write the plane bytes of tuples `first` to `last` against the 256 lanes of a tile, from terms of orders.

    out[i - first, j] = base[i] + lane_base[j] + sum over terms k of weights[k] * [ranks[k, j] < thresholds[k, i]],
    modulo 256.

    `out`: uint8 (chunk, 256). `ranks`: int8 (terms, 256), the tile's ranks, one row a term. `thresholds`: int8 (terms,
    tuples). `weights`: uint8 (terms,). `base`: uint8 (tuples,). `lane_base`: uint8 (256,). `terms` is even, at most 10.
    """
    if terms == 0:
        _below_0(out, first, last, ranks, thresholds, weights, base, lane_base)
    elif terms == 2:
        _below_2(out, first, last, ranks, thresholds, weights, base, lane_base)
    elif terms == 4:
        _below_4(out, first, last, ranks, thresholds, weights, base, lane_base)
    elif terms == 6:
        _below_6(out, first, last, ranks, thresholds, weights, base, lane_base)
    elif terms == 8:
        _below_8(out, first, last, ranks, thresholds, weights, base, lane_base)
    else:
        _below_10(out, first, last, ranks, thresholds, weights, base, lane_base)


@helper
def add_equal(
    terms: int,
    out: NDArray[np.uint8],
    first: int,
    last: int,
    ranks: NDArray[np.int8],
    thresholds: NDArray[np.int8],
    weights: NDArray[np.uint8],
) -> None:
    """Add terms of equalities to plane bytes: weights[k] * [ranks[k, j] == thresholds[k, i]] over all k.

    Arrays are those of `fill_below`. `terms` is at most 10 and rounded up to even; the extra term must have weight 0.
    """
    if terms == 0:
        return
    if terms <= 2:
        _equal_2(out, first, last, ranks, thresholds, weights)
    elif terms <= 4:
        _equal_4(out, first, last, ranks, thresholds, weights)
    elif terms <= 6:
        _equal_6(out, first, last, ranks, thresholds, weights)
    elif terms <= 8:
        _equal_8(out, first, last, ranks, thresholds, weights)
    else:
        _equal_10(out, first, last, ranks, thresholds, weights)
