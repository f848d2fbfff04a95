"""Checks of keys, constancy and order compatibility, in the order of work of the twins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.words import as_flags, as_masks

KEY, CONSTANT, ASCENDING, DESCENDING = 0, 1, 2, 3


class Checks(NamedTuple):
    """Checks in order of (context, kind of work, left, right).

    Attributes
    ----------
    contexts : uint64 (contexts, words), bits are ranks of columns
    by_rank : int64 (columns,), the column of each rank
    which : int64 (checks,), the number of each check's context
    kind, left, right : int8, int32, int32 (checks,)
    """

    contexts: NDArray[np.uint64]
    by_rank: NDArray[np.int64]
    which: NDArray[np.int64]
    kind: NDArray[np.int8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]


CHECKS = "Checks(uint64[:, ::1], int64[::1], int64[::1], int8[::1], int32[::1], int32[::1])"


def sorted_checks(
    contexts: NDArray[np.uint64],
    by_rank: NDArray[np.int64],
    which: NDArray[np.int32],
    kind: NDArray[np.int8],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
) -> tuple[Checks, NDArray[np.int64]]:
    """Sort checks into the order of work; with the original number of each."""
    ranked, order = ranked_contexts(contexts, by_rank)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    work = np.minimum(kind, ASCENDING)
    asked = np.lexsort((kind, right, left, work, place[which]))
    return Checks(ranked[order], by_rank, place[which][asked], kind[asked], left[asked], right[asked]), asked


def ranked_contexts(contexts: NDArray[np.uint64], by_rank: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rewrite contexts with ranks of columns as bits, uint64 (contexts, words); with the order of contexts, int64, in
    which those with a common prefix are together."""
    ranked = np.zeros((len(contexts), 64 * contexts.shape[1]), dtype=np.bool_)
    ranked[:, : len(by_rank)] = as_flags(contexts, len(by_rank))[:, by_rank]
    first_high = np.packbits(ranked, axis=1, bitorder="big").view(">u8")
    return as_masks(ranked), np.lexsort([~first_high[:, w] for w in range(contexts.shape[1])][::-1])
