"""Clues as the CUDA kernel writes them: assignment of comparisons to digits, and decoding into clue words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.cuda.clue_table import (
    EQUALITY,
    EQUALITY_NULLS,
    ORDERED,
    ORDERED_NULLS,
    PER_DIGIT,
    SEGMENTS,
)
from tuplewise.gpu_kernels.words import (
    ACROSS,
    COMPARISONS_PER_WORD,
    DIFFERENT,
    EQUAL,
    GREATER,
    LESS,
    UNKNOWN,
    WITHIN_T,
    Comparisons,
    clue_words,
    outcomes_within,
)

_WIDTH = {ORDERED: 2, ORDERED_NULLS: 2, EQUALITY: 1, EQUALITY_NULLS: 2}
# outcome by the bits (below, above), (equal) or (null, equal)
_OUTCOME = {
    ORDERED: (EQUAL, GREATER, LESS, UNKNOWN),
    ORDERED_NULLS: (EQUAL, GREATER, LESS, UNKNOWN),
    EQUALITY: (DIFFERENT, EQUAL),
    EQUALITY_NULLS: (DIFFERENT, EQUAL, UNKNOWN, UNKNOWN),
}
LARGEST_CODE = np.iinfo(np.int32).max
_HERE = 1  # code of the constant operand, with which outcomes within a row are compared


@dataclass(frozen=True, eq=False)
class DigitPlan:
    """Plan of operands and digits of a layout over one table.

    Attributes
    ----------
    operands : int32 array (operands, rows), C order
        Codes to compare; -1 is null, only where a comparison can be UNKNOWN; else 0 or more.
    left, right : int32 arrays (comparisons,)
        Operand of the earlier and of the later row, in digit order.
    bounds : int32 array (digits, 5)
        Positions in digit order: starts of the four kinds of comparison of each digit, and the end.
    order : int64 array (comparisons,)
        Number in the layout of the comparison at each position.
    kinds : int64 array (comparisons,)
        Kind of the comparison at each position.
    """

    operands: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    bounds: NDArray[np.int32]
    order: NDArray[np.int64]
    kinds: NDArray[np.int64]

    @property
    def digits(self) -> int:
        return len(self.bounds)


def make_plan(
    codes: NDArray[np.int32], comparisons: Comparisons
) -> DigitPlan:
    """Plan a layout over one table. Cost: rows x (columns + comparisons within rows).

    A comparison within one row becomes one across rows: its outcome is an operand, compared with a constant. Where a
    null is an ordinary value all codes are raised by one, so that none is negative; codes that would overflow are
    ranked first.
    """
    left, right, scope, ordered, nullable = comparisons
    columns, rows = codes.shape
    if not nullable and codes.size and int(codes.min()) < 0:
        if int(codes.max()) == LARGEST_CODE:  # can't be raised by one
            codes = np.unique(codes, return_inverse=True)[1].reshape(codes.shape).astype(np.int32)
        else:
            codes = codes + np.int32(1)
    derived: list[NDArray[np.int32]] = []
    left_operand = left.astype(np.int32)
    right_operand = right.astype(np.int32)
    for g in np.flatnonzero(scope != ACROSS):
        if not derived:
            derived.append(np.full(rows, _HERE, dtype=np.int32))
        outcome = outcomes_within(codes, left[g], right[g], bool(ordered[g]), nullable).astype(np.int32)
        outcome[outcome == UNKNOWN] = -1
        operand = columns + len(derived)
        if scope[g] == WITHIN_T:
            left_operand[g], right_operand[g] = operand, columns
        else:
            if ordered[g]:
                outcome = np.where(outcome < 0, outcome, np.int32(2) - outcome)
            left_operand[g], right_operand[g] = columns, operand
        derived.append(outcome)
    operands = np.concatenate([codes, np.stack(derived)]) if derived else codes
    if nullable and rows:
        has_null = operands.min(axis=1) < 0
        unknown = has_null[left_operand] | has_null[right_operand]
    else:
        unknown = np.zeros(len(left), dtype=np.bool_)
    kind = np.where(ordered, np.where(unknown, ORDERED_NULLS, ORDERED), np.where(unknown, EQUALITY_NULLS, EQUALITY))
    order = np.argsort(kind, kind="stable")
    kinds = kind[order]
    digits = max(1, -(-len(order) // PER_DIGIT))
    bounds = np.zeros((digits, SEGMENTS), dtype=np.int32)
    for d in range(digits):
        start, stop = d * PER_DIGIT, min((d + 1) * PER_DIGIT, len(order))
        bounds[d] = start + np.searchsorted(kinds[start:stop], np.arange(SEGMENTS))
    return DigitPlan(
        operands=np.ascontiguousarray(operands, dtype=np.int32),
        left=np.ascontiguousarray(left_operand[order]),
        right=np.ascontiguousarray(right_operand[order]),
        bounds=bounds,
        order=order.astype(np.int64),
        kinds=kinds.astype(np.int64),
    )


def to_clue_words(keys: NDArray[np.uint32], plan: DigitPlan) -> NDArray[np.uint64]:
    """Decode kernel keys, uint32 (distinct, digits), into clue words, uint64 (distinct, words), in the same order."""
    words = np.zeros((len(keys), clue_words(len(plan.order))), dtype=np.uint64)
    for d in range(plan.digits):
        stop = min((d + 1) * PER_DIGIT, len(plan.order))
        shift = 0
        for position in range(stop - 1, d * PER_DIGIT - 1, -1):
            kind = int(plan.kinds[position])
            comparison = int(plan.order[position])
            width = _WIDTH[kind]
            bits = (keys[:, d] >> np.uint32(shift)) & np.uint32((1 << width) - 1)
            outcome = np.array(_OUTCOME[kind], dtype=np.uint64)[bits]
            words[:, comparison // COMPARISONS_PER_WORD] |= outcome << np.uint64(
                2 * (comparison % COMPARISONS_PER_WORD)
            )
            shift += width
    return words
