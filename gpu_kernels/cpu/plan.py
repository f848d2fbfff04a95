"""Layout of the comparisons of a clue as digits of plane bytes, and decoding of plane bytes into clues."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.cpu.planes import COMBINATIONS
from tuplewise.gpu_kernels.words import (
    ACROSS,
    COMPARISONS_PER_WORD,
    DIFFERENT,
    EQUAL,
    GREATER,
    LESS,
    UNKNOWN,
    WITHIN_T,
    WITHIN_U,
    Comparisons,
    clue_words,
)

# Meaning of a comparison's digit. The numbers are shared with the compiled code.
KIND_EQUAL = 0  # unordered, no null: [equal]
KIND_ORDER = 1  # ordered, no null: [u < t] + [u <= t]
KIND_ORDER_NULL = 2  # ordered, nulls unknown: the same, 3 where a side is null
KIND_EQUAL_NULL = 3  # unordered, nulls unknown: [equal], 2 where a side is null
KIND_ROW_T = 4  # outcome within t, given per tuple
KIND_ROW_U = 5  # outcome within u, given per tuple

_RADIX = {KIND_EQUAL: 2, KIND_ORDER: 3, KIND_ORDER_NULL: 4, KIND_EQUAL_NULL: 3, KIND_ROW_T: 4, KIND_ROW_U: 4}
_OUTCOMES = {
    KIND_EQUAL: [DIFFERENT, EQUAL],
    KIND_ORDER: [LESS, EQUAL, GREATER],
    KIND_ORDER_NULL: [LESS, EQUAL, GREATER, UNKNOWN],
    KIND_EQUAL_NULL: [DIFFERENT, EQUAL, UNKNOWN],
    KIND_ROW_T: [LESS, EQUAL, GREATER, UNKNOWN],
    KIND_ROW_U: [LESS, EQUAL, GREATER, UNKNOWN],
}


@dataclass(frozen=True, eq=False)
class Plan:
    """Place of each comparison's digit: plane byte = sum of digit x weight over the plane's comparisons.

    Attributes
    ----------
    kind : int64 array (comparisons,)
        KIND_* of each comparison.
    plane, weight : int64 arrays (comparisons,)
        Plane of each comparison, and the weight of its digit in the plane's byte.
    order : int64 array (comparisons,)
        The comparisons by plane and weight.
    size : int64 array (planes,)
        Number of byte values that the plane's comparisons can make.
    """

    kind: NDArray[np.int64]
    plane: NDArray[np.int64]
    weight: NDArray[np.int64]
    order: NDArray[np.int64]
    size: NDArray[np.int64]

    @property
    def planes(self) -> int:
        return len(self.size)

    @property
    def key_words(self) -> int:
        """Number of 64-bit words for all plane bytes of a pair."""
        return -(-self.planes // 8)

    @property
    def combinations(self) -> int:
        """Number of entries of the direct table: the product of all sizes (a Python integer, so of any size)."""
        return math.prod(self.size.tolist())

    def multipliers(self) -> NDArray[np.int64]:
        """Weight of each plane's byte in the index of the direct table: index = sum of byte x multiplier."""
        return np.concatenate([[1], np.cumprod(self.size)[:-1]]).astype(np.int64)


def make_plan(
    comparisons: Comparisons, has_null: NDArray[np.bool_], distinct: NDArray[np.int64]
) -> Plan:
    """Lay out the comparisons. `has_null`: bool (columns,), columns with nulls that are UNKNOWN; `distinct`: values per
    column.

    Comparisons of columns with many values come first. Rows are sorted by the columns with few values, which are
    therefore constant over most pairs of tiles; the rest, side by side, fill few planes.
    """
    left, right, scope, ordered, _ = comparisons
    count = len(left)
    kind = np.empty(count, dtype=np.int64)
    for g in range(count):
        null = bool(has_null[left[g]] or has_null[right[g]])
        if scope[g] == ACROSS:
            kind[g] = (KIND_ORDER_NULL if null else KIND_ORDER) if ordered[g] else (
                KIND_EQUAL_NULL if null else KIND_EQUAL
            )
        else:
            kind[g] = KIND_ROW_T if scope[g] == WITHIN_T else KIND_ROW_U
            assert scope[g] in (WITHIN_T, WITHIN_U)
    plane = np.empty(count, dtype=np.int64)
    weight = np.empty(count, dtype=np.int64)
    size: list[int] = []
    order = np.argsort(-np.maximum(distinct[left], distinct[right]), kind="stable")
    for g in order:
        radix = _RADIX[int(kind[g])]
        if not size or size[-1] * radix > COMBINATIONS:
            size.append(1)
        plane[g], weight[g] = len(size) - 1, size[-1]
        size[-1] *= radix
    return Plan(kind, plane, weight, order.astype(np.int64), np.array(size, dtype=np.int64))


def clues_of_planes(planes: NDArray[np.uint8], plan: Plan) -> NDArray[np.uint64]:
    """Decode plane bytes. `planes`: uint8 (distinct, planes); returns clue words, uint64 (distinct, words)."""
    comparisons = len(plan.kind)
    clues = np.zeros((len(planes), clue_words(comparisons)), dtype=np.uint64)
    for g in range(comparisons):
        kind = int(plan.kind[g])
        digits = planes[:, plan.plane[g]].astype(np.int64) // plan.weight[g] % _RADIX[kind]
        outcome = np.array(_OUTCOMES[kind], dtype=np.uint64)[digits]
        clues[:, g // COMPARISONS_PER_WORD] |= outcome << np.uint64(2 * (g % COMPARISONS_PER_WORD))
    return clues
