"""Records that the loops of the index of sets of columns take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EQ, NE, LT, LE, GT, GE = range(6)  # how an old row's value stands to that of the new row
Term = tuple[int, int, int]  # column of the old row, operator, column of the new row


class Orders(NamedTuple):
    """Rows sorted by some lists of columns, with zones: see `column_set_index.SortedRows`."""

    orders: NDArray[np.int32]
    order_offsets: NDArray[np.int64]
    zones: NDArray[np.int32]
    level_starts: NDArray[np.int64]
    level_blocks: NDArray[np.int64]
    levels: NDArray[np.int64]
    columns: NDArray[np.int32]
    column_offsets: NDArray[np.int64]


class Queries(NamedTuple):
    """Queries for old rows, each a box whose bounds come from a new row.

    Attributes
    ----------
    order : int32 (queries,), the order that each query searches
    offsets : int64 (queries + 1,), the terms of query q are offsets[q] to offsets[q + 1]
    slot, operator, column : int32, int8, int32 (terms,): (old row's value in the order's column number `slot`)
        `operator` (new row's value in `column`)
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
        """Make queries, each a list of terms, for orders that have their columns. `lists`: the columns of each
        order."""
        flat = [(lists[i].index(old), operator, new) for i, own in zip(indexes, terms, strict=True)
                for old, operator, new in own]  # fmt: skip
        return cls(
            order=np.array(indexes, dtype=np.int32),
            offsets=offsets_of([len(own) for own in terms]),
            slot=np.array([slot for slot, _, _ in flat], dtype=np.int32),
            operator=np.array([operator for _, operator, _ in flat], dtype=np.int8),
            column=np.array([new for _, _, new in flat], dtype=np.int32),
        )


class Classes(NamedTuple):
    """Where an order has the rows that hold what a new row holds, in columns that the order begins with.

    Attributes
    ----------
    of_query : int32 (queries,), which places answer a query, -1: none
    first : the new row that the first place is of
    places : int32 (kinds, new rows, 2), first place in the order and the place behind the last
    """

    of_query: NDArray[np.int32]
    first: int
    places: NDArray[np.int32]


class KnownClues(NamedTuple):
    """Hash table of clues with open addressing: uint64 (slots, words), and their numbers, int32 (slots,), -1 in free
    slots."""

    table: NDArray[np.uint64]
    numbers: NDArray[np.int32]


def offsets_of(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Offsets of parts of these sizes, int64 (parts + 1,)."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
