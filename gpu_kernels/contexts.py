"""Front door: the minimal contexts of many targets, from clues, continued as clues come.

A clue says on which attributes two rows differ, and which way. It rules a context out for a target where the two rows
agree on all of the context and break what the target asks for. So the contexts of one target are the minimal hitting
sets of an *edge* for each clue that speaks of it: the attributes that differ, less those of the target.

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
class Extended:
    """Minimal contexts after new clues have come.

    Attributes
    ----------
    contexts : uint64 (N, words), attribute a is bit a % 64 of word a // 64
    target : int32 (N,), ascending
    kept : int64 (N,), which of the contexts before each one is, -1 where it is new
    complete : bool, False where a deadline came first: nothing has changed then
    """

    contexts: Mask
    target: NDArray[np.int32]
    kept: NDArray[np.int64]
    complete: bool


class MinimalContexts:
    """The minimal contexts of targets that the clues seen so far leave. At first each target has the empty one.

    Parameters
    ----------
    kind, left, right : int8, int32, int32 arrays (targets,)
        KEY, CONSTANT, ASCENDING or DESCENDING (order.py), and the attributes; -1 where there is none.
    max_size : contexts of at most so many attributes

    Notes
    -----
    Cost of an extension: for each context that is checked, attributes of the context times clues / 64 words; and the
    search for new ones, over the few edges that some context has missed (no others are ever written out): clues come
    in order of how many attributes differ, so the first one missed is a short edge. Memory: 3 bits a clue and
    attribute.

    Source: notes on order dependencies of this project; the search is that of `extend_hitting_sets`. Edges that are
    taken up only when a candidate misses them are an idea of HPIValid (Birnick et al., PVLDB 13(11), 2020).
    """

    def __init__(
        self,
        attributes: int,
        kind: NDArray[np.int8],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        *,
        max_size: int | None = None,
        threads: int | None = None,
    ) -> None:
        if not len(kind) == len(left) == len(right):
            raise ValueError(f"kind, left, right: {len(kind)}, {len(left)}, {len(right)} entries; allowed: one length")
        self._state = contexts.State(attributes, kind, left, right, max_size)
        self._threads = threads

    def extend(
        self,
        clues: NDArray[np.uint64],
        *,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Extended:
        """Take up clues of both orders of each pair: uint64 (clues, words) over comparisons 0 to attributes - 1, each
        attribute with itself (words.py)."""
        return Extended(*self._state.extend(clues, Control(deadline, progress, self._threads)))

    def violated(self, clues: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether some of these clues, of both orders, rule out each context that was last returned: bool (N,)."""
        return self._state.violated(clues)
