"""Records of the index of sets of columns: what its loops are handed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EQ, NE, LT, LE, GT, GE = range(6)  # how an old row's value stands to that of the new row
Term = tuple[int, int, int]  # column of the old row, operator, column of the new row


class Orders(NamedTuple):
    """Rows in the orders of some lists of columns, with zones: see `column_set_index.SortedRows`."""

    orders: NDArray[np.int32]
    order_offsets: NDArray[np.int64]
    zones: NDArray[np.int32]
    level_starts: NDArray[np.int64]
    level_blocks: NDArray[np.int64]
    levels: NDArray[np.int64]
    columns: NDArray[np.int32]
    column_offsets: NDArray[np.int64]


class Queries(NamedTuple):
    """Boxes that old rows are looked for in, given a new row.

    Attributes
    ----------
    order : int32 (queries,), the order that each is asked of
    offsets : int64 (queries + 1,), terms of each
    slot, operator, column : int32, int8, int32 (terms,): the value of the order's column number `slot` stands in this
        relation to the new row's value of `column`
    """

    order: NDArray[np.int32]
    offsets: NDArray[np.int64]
    slot: NDArray[np.int32]
    operator: NDArray[np.int8]
    column: NDArray[np.int32]

    @classmethod
    def of_terms(
        cls, lists: Sequence[Sequence[int]], indexes: Sequence[int], terms: Sequence[Sequence[Term]]
    ) -> Queries:
        """Queries, each a list of terms, asked of an order that has their columns. `lists`: the columns of each."""
        flat = [(lists[i].index(old), operator, new) for i, own in zip(indexes, terms, strict=True)
                for old, operator, new in own]  # fmt: skip
        return cls(
            order=np.array(indexes, dtype=np.int32),
            offsets=offsets_of([len(own) for own in terms]),
            slot=np.array([slot for slot, _, _ in flat], dtype=np.int32),
            operator=np.array([operator for _, operator, _ in flat], dtype=np.int8),
            column=np.array([new for _, _, new in flat], dtype=np.int32),
        )


class KnownClues(NamedTuple):
    """A table of clues with open addressing: uint64 (slots, words), and int32 (slots,), the number of each or -1."""

    table: NDArray[np.uint64]
    numbers: NDArray[np.int32]


def offsets_of(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Where parts of these sizes begin and end, int64 (parts + 1,)."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
