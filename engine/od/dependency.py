"""Dependencies with a context, in arrays: keys, functional dependencies and set-based order dependencies alike.

A *context* is a set of attributes; a *target* is what must hold inside every class of rows that are equal on it:

- KEY: no two rows (the context is a key);
- CONSTANT: one value of A (`X: [] -> A`, the functional dependency X -> A);
- ASCENDING, DESCENDING: A and B don't swap (`X: A ~ B`): no two rows that A orders one way and B the other way (for
  DESCENDING: the same way).

Source: Szlichta, Godfrey, Golab, Kargar, Srivastava, "Effective and complete discovery of bidirectional order
dependencies via set-based axioms", VLDB Journal 27(4), 2018; minimality as Li et al., "Efficient Set-based Order
Dependency Discovery with a Level-wise Hybrid Strategy", ICDE 2023, section III.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, DESCENDING, KEY

Mask = NDArray[np.uint64]

_REVERSED_BYTES = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1], axis=1)[:, 0]

__all__ = ["ASCENDING", "CONSTANT", "DESCENDING", "KEY", "Dependencies", "Targets"]


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of a search: one entry for each right side.

    Attributes
    ----------
    kind : int8 (targets,), KEY, CONSTANT, ASCENDING or DESCENDING
    left : int32 (targets,), the attribute of a CONSTANT, the first of an order-compatible pair; -1 of a KEY
    right : int32 (targets,), the second attribute of a pair, left < right; else -1
    """

    kind: NDArray[np.int8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.kind)

    @staticmethod
    def of_orders(attributes: int) -> Targets:
        """Every constancy, then every pair in both directions: the targets of set-based order dependencies."""
        constants = Targets.of_functional(attributes)
        left, right = (np.repeat(side.astype(np.int32), 2) for side in np.triu_indices(attributes, k=1))
        kind = np.tile(np.array([ASCENDING, DESCENDING], dtype=np.int8), len(left) // 2)
        return Targets(
            np.concatenate([constants.kind, kind]),
            np.concatenate([constants.left, left]),
            np.concatenate([constants.right, right]),
        )

    @staticmethod
    def of_functional(attributes: int) -> Targets:
        """Every attribute: the targets of functional dependencies."""
        kind = np.full(attributes, CONSTANT, dtype=np.int8)
        return Targets(kind, np.arange(attributes, dtype=np.int32), np.full(attributes, -1, dtype=np.int32))

    @staticmethod
    def of_keys() -> Targets:
        """The one target of keys."""
        nothing = np.array([-1], dtype=np.int32)
        return Targets(np.array([KEY], dtype=np.int8), nothing, nothing)


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Dependencies as arrays.

    Attributes
    ----------
    contexts : uint64 (dependencies, words), attribute a is bit a % 64 of word a // 64
    kind, left, right : (dependencies,), as in Targets
    """

    contexts: Mask
    kind: NDArray[np.int8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.kind)

    @staticmethod
    def of(contexts: Mask, targets: Targets, target: NDArray[np.int32] | NDArray[np.int64]) -> Dependencies:
        """Combine contexts with targets, given by number."""
        return Dependencies(contexts, targets.kind[target], targets.left[target], targets.right[target])

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Dependencies:
        """These only, in this order."""
        return Dependencies(self.contexts[index], self.kind[index], self.left[index], self.right[index])

    def in_result_order(self) -> Dependencies:
        """Constancies before pairs; by size of the context, then its columns' positions, then the target's."""
        sizes = np.bitwise_count(self.contexts).sum(axis=1, dtype=np.int64)
        # Of two contexts of one size the one that has the lowest column the other lacks comes first
        reversed_words = [~_reversed_bits(word) for word in self.contexts.T]
        ordering = self.kind >= ASCENDING
        order = np.lexsort((self.kind, self.right, self.left, *reversed_words[::-1], sizes, ordering))
        return self.take(order)

    def without_implied(self) -> Dependencies:
        """Remove pairs `X: A ~ B` that a constancy `Y: [] -> A` or `Y: [] -> B` with Y inside X implies.

        Cost: pairs times the constancies of their two attributes.
        """
        pairs = np.flatnonzero(self.kind >= ASCENDING)
        constant = np.flatnonzero(self.kind == CONSTANT)
        kept = np.ones(len(self), dtype=np.bool_)
        if len(pairs) and len(constant):
            constant = constant[np.argsort(self.left[constant], kind="stable")]
            first = np.searchsorted(self.left[constant], np.arange(int(self.right[pairs].max()) + 2))
            kept[pairs] = ~any_inside(
                self.contexts[pairs], self.left[pairs], self.right[pairs], self.contexts[constant], first
            )
        return self.take(kept)


def mask_of(attributes: Sequence[int], words: int) -> Mask:
    """The context of these attributes, uint64 (words,)."""
    context = np.zeros(words, dtype=np.uint64)
    for a in attributes:
        context[a // 64] |= np.uint64(1 << (a % 64))
    return context


def _reversed_bits(words: Mask) -> Mask:
    """Each word with its bits in the opposite order."""
    as_bytes = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), 8)
    return _REVERSED_BYTES[as_bytes].view(">u8").astype(np.uint64).reshape(len(words))


@kernel("uint64[:, ::1], int32[::1], int32[::1], uint64[:, ::1], int64[::1]")
def any_inside(
    contexts: Mask,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    smaller: Mask,
    first: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether each context includes one of smaller[first[a]:first[a + 1]] for a = its left or right attribute."""
    result = np.zeros(len(contexts), dtype=np.bool_)
    for i in range(len(contexts)):
        for a in (left[i], right[i]):
            for j in range(first[a], first[a + 1]):
                inside = True
                for w in range(contexts.shape[1]):
                    if smaller[j, w] & ~contexts[i, w]:
                        inside = False
                        break
                if inside:
                    result[i] = True
                    break
            if result[i]:
                break
    return result
