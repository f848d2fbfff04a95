"""Front door: minimal contexts of many targets, from clues, extended as clues come.

A clue tells on which attributes two rows differ, and in which direction. It refutes a context for a target where the
two rows agree on the whole context and violate the target. So each clue that violates a target gives an *edge*: the
attributes on which the rows differ, less those of the target. The contexts of the target are the minimal hitting sets
of its edges.

There is no CUDA twin, as for all minimal hitting sets (hitting.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import contexts

Mask = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ExtendedContexts:
    """Minimal contexts after new clues have come.

    Attributes
    ----------
    contexts : uint64 (N, words), attribute a is bit a % 64 of word a // 64
    target : int32 (N,), ascending
    kept : int64 (N,), the number of each context before the extension, -1 where it is new
    done : bool (targets,), False where the deadline or the bound on contexts came first: such a target has the contexts
        that it had before. The search can't be extended then.
    found : number of contexts found, dropped ones too
    """

    contexts: Mask
    target: NDArray[np.int32]
    kept: NDArray[np.int64]
    done: NDArray[np.bool_]
    found: int

    @property
    def complete(self) -> bool:
        """Whether all targets are done."""
        return bool(self.done.all())


class MinimalContexts:
    """Minimal contexts of targets that no clue so far refutes. At first each target has the empty context.

    Parameters
    ----------
    kind, left, right : int8, int32, int32 arrays (targets,)
        KEY, CONSTANT, ASCENDING or DESCENDING (order.py), and the attributes; -1 where there is none.
    max_size : contexts of at most so many attributes
    most : at about this many contexts, of all targets, the search ends

    Notes
    -----
    Cost of an extension: (attributes of the context) x (clues / 64) words for each checked context, and the search for
    new contexts. The search works on the few edges that some context has missed; no others are ever written out. Clues
    are in order of the number of attributes that differ, so the first one missed is a short edge. Memory: 3 bits for
    each clue and attribute.

    Source: notes on order dependencies of this project; the search is that of `extend_hitting_sets`. HPIValid (Birnick
    et al., PVLDB 13(11), 2020) introduced edges that are written out only when a candidate misses them.
    """

    def __init__(
        self,
        attributes: int,
        kind: NDArray[np.int8],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        *,
        max_size: int | None = None,
        most: int | None = None,
        threads: int | None = None,
    ) -> None:
        if not len(kind) == len(left) == len(right):
            raise ValueError(f"kind, left, right: {len(kind)}, {len(left)}, {len(right)} entries; allowed: one length")
        self._search = contexts.ContextSearch(attributes, kind, left, right, max_size, most)
        self._threads = threads

    def extend(
        self,
        clues: NDArray[np.uint64],
        *,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
        tell: Callable[[int, float], None] | None = None,
    ) -> ExtendedContexts:
        """Add clues, both orders of each pair: uint64 (clues, words) over comparisons 0 to attributes - 1, each
        attribute with itself (words.py). `tell` is called with the share of the targets that are done, and before that
        with the number of their contexts."""
        return ExtendedContexts(*self._search.extend(clues, Control(deadline, progress, self._threads), tell))

    def violated(self, clues: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which of the last returned contexts some of these clues, of both orders, refute: bool (N,)."""
        return self._search.violated(clues)
