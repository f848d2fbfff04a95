"""Front door of known violating pairs: dependencies that they refute need no further check."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import witnesses
from tuplewise.gpu_kernels.words import mask_words

Mask = NDArray[np.uint64]

MOST_PAIRS = 1 << 14
MOST_BYTES = 1 << 26  # bytes of the bit sets of violated targets


class Witnesses:
    """Pairs of rows that violate dependencies: of all pairs added, those that agree on most columns.

    Parameters
    ----------
    codes : int32 (columns, rows), order-preserving ranks, -1 is null
    kind, left, right : int8, int32, int32 (targets,), as in `PartitionedRows.check`
    nulls : "value" or "unknown"
    threads : None: one for each core

    Notes
    -----
    Memory: for each pair one bit for each target and each column.

    Examples
    --------
    >>> codes = np.array([[0, 0, 1], [0, 1, 1], [2, 2, 0]], dtype=np.int32)
    >>> constant = np.ones(3, dtype=np.int8), np.arange(3, dtype=np.int32), np.full(3, -1, dtype=np.int32)
    >>> witnesses = Witnesses(codes, *constant)
    >>> witnesses.add(np.array([[0, 1]], dtype=np.int32))  # column 1 alone differs
    >>> contexts = np.array([[0b101], [0b010]], dtype=np.uint64)
    >>> witnesses.unrefuted(contexts, np.array([[0b111], [0b101]], dtype=np.uint64)).tolist()
    [[5], [5]]
    """

    def __init__(
        self,
        codes: NDArray[np.int32],
        kind: NDArray[np.int8],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        *,
        nulls: Literal["unknown", "value"] = "value",
        threads: int | None = None,
    ) -> None:
        self._codes, self._targets, self._strict = codes, (kind, left, right), nulls == "unknown"
        self._threads = threads
        self._target_words = mask_words(len(kind))
        self._pairs = np.zeros((0, 2), dtype=np.int32)
        self._agreeing: Mask = np.zeros((len(codes), 0), dtype=np.uint64)
        self._violated: Mask = np.zeros((0, self._target_words), dtype=np.uint64)

    def add(self, pairs: NDArray[np.int32]) -> None:
        """Add pairs of rows, int32 (pairs, 2), that violate some targets in some context."""
        if not len(pairs):
            return
        rows = self._codes.shape[1]
        first, second = np.sort(np.concatenate([self._pairs, pairs]), axis=1).T.astype(np.int64)
        known = np.stack(np.divmod(np.unique(first * rows + second), rows), axis=1).astype(np.int32)
        agreements = witnesses.count_agreements(self._codes, known)
        most = max(64, min(MOST_PAIRS, MOST_BYTES // (8 * self._target_words)))
        self._pairs = known[np.argsort(-agreements, kind="stable")[:most]]
        self._agreeing, self._violated = witnesses.mark_pairs(
            self._codes, self._pairs, *self._targets, self._strict, self._target_words
        )

    def unrefuted(self, contexts: Mask, open_: Mask) -> Mask:
        """Targets that no known pair violates: uint64 (contexts, target words).

        Parameters
        ----------
        contexts : uint64 (contexts, words), column c is bit c % 64 of word c // 64
        open_ : uint64 (contexts, target words), the targets in question

        Notes
        -----
        Cost: pairs / 64 words for each column of a context; then the targets of the pairs that agree on it, until no
        target is left.
        """
        still = open_.copy()
        if len(self._pairs):
            witnesses.run(contexts, still, self._agreeing, self._violated, Control(threads=self._threads))
        return still
