"""Dependencies that known pairs of rows refute: bit sets of the pairs that agree on a context, and of the targets that
each pair violates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.bits import lowest_bit
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, DESCENDING, KEY

Mask = NDArray[np.uint64]

TASK_CONTEXTS = 1024


def run(contexts: Mask, still: Mask, agreeing: Mask, violated: Mask, control: Control) -> None:
    """Remove from `still`, uint64 (contexts, target words), the targets violated by a pair that agrees on the
    context."""
    parts = [slice(first, first + TASK_CONTEXTS) for first in range(0, len(contexts), TASK_CONTEXTS)]

    def worker() -> Callable[[int], None]:
        agree = np.empty(agreeing.shape[1], dtype=np.uint64)

        def task(number: int) -> None:
            _refute(contexts[parts[number]], still[parts[number]], agreeing, violated, agree)

        return task

    run_tasks([1.0] * len(parts), worker, control)


@kernel("const int32[:, ::1], int32[:, ::1]")
def count_agreements(codes: NDArray[np.int32], pairs: NDArray[np.int32]) -> NDArray[np.int32]:
    """Count the columns on which the rows of each pair are equal: int32 (pairs,)."""
    found = np.zeros(len(pairs), dtype=np.int32)
    for column in range(len(codes)):
        for p in range(len(pairs)):
            if codes[column, pairs[p, 0]] == codes[column, pairs[p, 1]]:
                found[p] += 1
    return found


@kernel("const int32[:, ::1], int32[:, ::1], int8[::1], int32[::1], int32[::1], boolean, int64")
def mark_pairs(
    codes: NDArray[np.int32],
    pairs: NDArray[np.int32],
    kind: NDArray[np.int8],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    strict: bool,
    target_words: int,
) -> tuple[Mask, Mask]:
    """Bit sets of the pairs that agree on each column, uint64 (columns, ceil(pairs / 64)), and of the targets that each
    pair violates, uint64 (pairs, target words). `strict`: a null neither agrees with nor differs from anything."""
    agreeing = np.zeros((len(codes), (len(pairs) + 63) // 64), dtype=np.uint64)
    violated = np.zeros((len(pairs), target_words), dtype=np.uint64)
    order = np.empty(len(codes), dtype=np.int8)
    for p in range(len(pairs)):
        for column in range(len(codes)):
            a, b = codes[column, pairs[p, 0]], codes[column, pairs[p, 1]]
            order[column] = np.int8(a > b) - np.int8(a < b)
            if strict and (a < 0 or b < 0):
                order[column] = 0
            elif a == b:
                agreeing[column, p // 64] |= np.uint64(1) << np.uint64(p % 64)
        for target in range(len(kind)):
            if kind[target] == KEY:
                violates = True
            elif kind[target] == CONSTANT:
                violates = order[left[target]] != 0
            else:
                product = order[left[target]] * order[right[target]]
                violates = (kind[target] == ASCENDING and product < 0) or (kind[target] == DESCENDING and product > 0)
            if violates:
                violated[p, target // 64] |= np.uint64(1) << np.uint64(target % 64)
    return agreeing, violated


@kernel("uint64[:, ::1], uint64[:, ::1], uint64[:, ::1], uint64[:, ::1], uint64[::1]")
def _refute(contexts: Mask, still: Mask, agreeing: Mask, violated: Mask, agree: Mask) -> None:
    """Find for each context the pairs that agree on it, and remove the targets that they violate."""
    pair_words = len(agree)
    for c in range(len(contexts)):
        for v in range(pair_words):
            agree[v] = ~np.uint64(0)
        for w in range(contexts.shape[1]):
            rest = contexts[c, w]
            while rest:
                column = 64 * w + lowest_bit(rest)
                rest &= rest - np.uint64(1)
                for v in range(pair_words):
                    agree[v] &= agreeing[column, v]
        _take_violated(agree, violated, still[c])


@helper
def _take_violated(agree: Mask, violated: Mask, still: Mask) -> None:
    """Remove from `still` the targets that the pairs of these bits violate, until none is left."""
    for v in range(len(agree)):
        rest = agree[v]
        while rest:
            pair = 64 * v + lowest_bit(rest)
            rest &= rest - np.uint64(1)
            if pair >= len(violated):
                return
            left = np.uint64(0)
            for w in range(len(still)):
                still[w] &= ~violated[pair, w]
                left |= still[w]
            if not left:
                return
