"""Front door of the lattice of contexts: the candidate contexts of each target, level by level.

There is no CUDA twin: generating a level takes a hundredth of the time that checking it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import lattice
from tuplewise.gpu_kernels.words import as_masks, mask_words

Mask = NDArray[np.uint64]


class Lattice:
    """Contexts of one size, each with the targets that are *open* for it. Starts with the empty context.

    A target is open for a context while it still has to be checked there, and stays open where the check fails. `grow`
    moves on to the next size. A target is open for a new context where it is open for all of the context's subsets with
    one attribute less.

    Parameters
    ----------
    own : uint64 (attributes, target words)
        The targets whose contexts never have an attribute: target t is bit t % 64 of word t // 64.
    threads : those that `grow` uses; None: one for each core

    Attributes
    ----------
    contexts : uint64 (contexts, words), attribute a is bit a % 64 of word a // 64; ascending, last word most
        significant
    open : uint64 (contexts, target words), changed in place
    size : int, number of attributes of each context

    Raises
    ------
    ValueError
        Where shapes don't fit.

    Notes
    -----
    Memory: (attributes + targets) / 8 bytes a context.
    Source: the candidate sets C+ of Huhtala, Kärkkäinen, Porkka, Toivonen, "TANE", The Computer Journal 42(2), 1999,
    and of Li et al., "Efficient Set-based Order Dependency Discovery with a Level-wise Hybrid Strategy", ICDE 2023,
    algorithms 2 and 3. Departure: C+ of a context is a bit set over all targets, not a set for each context and target,
    so intersecting those of the subsets takes one operation for 64 targets.

    Examples
    --------
    >>> own = np.array([[0b01], [0b10], [0]], dtype=np.uint64)  # of 3 attributes, the first two are targets
    >>> lattice = Lattice(own, 2)
    >>> lattice.grow()
    True
    >>> [a.tolist() for a in lattice.candidates(0, 3)]
    [[0, 1, 2, 2], [1, 0, 0, 1]]
    """

    def __init__(self, own: Mask, targets: int, *, threads: int | None = None) -> None:
        target_words = mask_words(targets)
        if own.ndim != 2 or own.dtype != np.uint64 or own.shape[1] != target_words:
            allowed = f"allowed: uint64 (attributes, {target_words})"
            raise ValueError(f"own: {own.dtype} array of shape {own.shape}; {allowed}")
        self._own, self._threads = own, threads
        self.size = 0
        self.contexts: Mask = np.zeros((1, mask_words(len(own))), dtype=np.uint64)
        self.open: Mask = as_masks(np.ones((1, targets), dtype=np.bool_))
        self._drop_closed()

    def __len__(self) -> int:
        return len(self.contexts)

    def counts(self) -> NDArray[np.int64]:
        """Number of open targets of each context: int64 (contexts,)."""
        counts: NDArray[np.int64] = np.bitwise_count(self.open).sum(axis=1, dtype=np.int64)
        return counts

    def blocks(self, most: int) -> list[tuple[int, int]]:
        """Ranges (first, last) of contexts with about `most` open targets each, and at least one context."""
        total = np.cumsum(self.counts())
        edges = np.searchsorted(total, np.arange(most, total[-1] if len(total) else 0, most), side="left") + 1
        bounds = np.unique(np.concatenate([[0], edges, [len(total)]])).tolist()
        return list(pairwise(bounds))

    def candidates(
        self, first: int, last: int, among: Mask | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Numbers of context and target, int32 (candidates,) each, for each open target of a range of contexts.

        `among`: targets to list in place of the open ones, uint64 (last - first, target words).
        """
        bits = self.open[first:last] if among is None else among
        rows, targets = lattice.list_bits(bits, int(np.bitwise_count(bits).sum(dtype=np.int64)))
        rows += np.int32(first)
        return rows, targets

    def close(self, rows: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Close targets, each for one context: int32 (n,) both."""
        lattice.clear_bits(self.open, rows, targets)

    def strike(self, contexts: Mask, closed: Mask) -> None:
        """Close targets, uint64 (n, target words), for contexts, uint64 (n, words). Contexts not in the lattice are
        ignored."""
        if len(contexts) and len(self):
            lattice.clear_masks(self.contexts, lattice.index_rows(self.contexts), self.open, contexts, closed)
            self._drop_closed()

    def end(self) -> None:
        """Drop all contexts."""
        self.contexts, self.open = self.contexts[:0], self.open[:0]

    def grow(
        self, *, deadline: float | None = None, progress: Callable[[float], None] | None = None
    ) -> bool:
        """Move on to contexts with one attribute more. Returns False, with nothing changed, where the deadline passed
        first."""
        self._drop_closed()
        if self.size == 0:
            attributes = len(self._own) if len(self) else 0
            self.contexts = as_masks(np.eye(attributes, len(self._own), dtype=np.bool_))
            self.open = self.open[:1] & ~self._own[:attributes]
        else:
            grown = lattice.run(self.contexts, self.open, Control(deadline, progress, self._threads))
            if grown is None:
                return False
            self.contexts, self.open = grown
        self.size += 1
        self._drop_closed()
        return True

    def _drop_closed(self) -> None:
        """Drop contexts without open targets."""
        kept = self.open.any(axis=1)
        if not kept.all():
            self.contexts, self.open = self.contexts[kept], self.open[kept]
