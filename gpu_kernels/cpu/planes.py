"""Fused compare loops: outcomes of one tuple with 256 others, several comparisons packed into one byte.

A *plane* is a group of comparisons whose outcomes, as digits of a mixed-radix number, fit one byte: up to 8 unordered
comparisons (radix 2) or 5 ordered ones (radix 3). The digit of an ordered comparison is the number of its two *terms*
`rank < threshold` that hold. So a plane byte is a sum of weighted terms, and 32 pairs take three instructions a term
(compare, mask, add). There is a loop for each even number of terms, so no table needs compiling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper

LANES = 256  # tuples of a padded tile: a multiple of the widest vector
TILE_ROWS = 248  # tuples in a tile; 8-bit ranks 0..247 leave values for "absent" and for null
ABSENT = np.int8(126)  # an equality threshold that no rank has
NEVER = np.int8(-128)  # a threshold that no rank is below
NULL_RANK = np.int8(127)  # rank of a null under the rule "unknown"
MOST_BELOW = 12  # terms `rank < threshold` in a plane
MOST_EQUAL = 8  # terms `rank == threshold` in a plane


def _make_plane(terms: int, equal: bool) -> Any:
    @helper
    def plane(out, first, last, ranks, thresholds, weights, base):
        for i in range(first, last):
            start = base[i]
            for j in range(LANES):
                byte = start
                for k in range(terms):
                    counts = ranks[k, j] == thresholds[k, i] if equal else ranks[k, j] < thresholds[k, i]
                    byte = np.uint8(byte + np.uint8(counts * weights[k]))
                out[i - first, j] = byte

    return plane


_below_2, _below_4, _below_6, _below_8, _below_10, _below_12 = (_make_plane(k, False) for k in (2, 4, 6, 8, 10, 12))
_equal_2, _equal_4, _equal_6, _equal_8 = (_make_plane(k, True) for k in (2, 4, 6, 8))


@helper
def fill_plane(
    equal: bool,
    terms: int,
    out: NDArray[np.uint8],
    first: int,
    last: int,
    ranks: NDArray[np.int8],
    thresholds: NDArray[np.int8],
    weights: NDArray[np.uint8],
    base: NDArray[np.uint8],
) -> None:
    """Write the plane bytes of tuples `first` to `last` against the 256 lanes of a tile.

    out[i - first, j] = base[i] + sum over terms k of weights[k] * [ranks[k, j] < thresholds[k, i]] (`equal`: ==),
    modulo 256.

    `out`: uint8 (chunk, 256). `ranks`: int8 (terms, 256), the tile's ranks, one row a term. `thresholds`: int8 (terms,
    tuples). `weights`: uint8 (terms,). `base`: uint8 (tuples,). `terms` is rounded up to even; the extra term must have
    weight 0.
    """
    if equal:
        if terms <= 2:
            _equal_2(out, first, last, ranks, thresholds, weights, base)
        elif terms <= 4:
            _equal_4(out, first, last, ranks, thresholds, weights, base)
        elif terms <= 6:
            _equal_6(out, first, last, ranks, thresholds, weights, base)
        else:
            _equal_8(out, first, last, ranks, thresholds, weights, base)
    elif terms <= 2:
        _below_2(out, first, last, ranks, thresholds, weights, base)
    elif terms <= 4:
        _below_4(out, first, last, ranks, thresholds, weights, base)
    elif terms <= 6:
        _below_6(out, first, last, ranks, thresholds, weights, base)
    elif terms <= 8:
        _below_8(out, first, last, ranks, thresholds, weights, base)
    elif terms <= 10:
        _below_10(out, first, last, ranks, thresholds, weights, base)
    else:
        _below_12(out, first, last, ranks, thresholds, weights, base)
