"""Candidate pairs of new rows as published: each new row is looked up in the indexes that serve the constraints.

Source: Qian, Li, Tan, Ran, Ma, "Incremental discovery of denial constraints", The VLDB Journal 32, 2023: step 1 of
Algorithm 5 over the indexes of section 7. Departures are named in `selection.py` and `chains.py`, and:

- All indexes answer for one new row at a time, so that a pair that several hold is handed out once; what is wanted of
  an index is kept once for all constraints, and not at all where something weaker is wanted too.
- An equality index is sorted, in place of hashed.
- Rows may be deleted, which the paper leaves open.
- What constraints that no longer hold want is still fetched, until the indexes are made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.published.incdc.chain_loops import (
    ANY,
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LIVE,
    MARKED,
)
from tuplewise.engine.published.incdc.chains import ChainIndexes, ChainOrder, Pairs
from tuplewise.engine.published.incdc.selection import DIFFERS, Columns, IndexScores, Serving, select_indexes

_TAIL_ROWS, _TAIL_SHARE = 256, 512  # rows that wait for their chains: so many, and a row for so many of the table
_OF_OPERATOR = (EQUAL, -1, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL)
_EXCHANGED = (0, 1, 4, 5, 2, 3)  # == != < <= > >= with the sides exchanged
_HALVES = (2, 4)  # != is < or >
_COMPARE = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
# The operators that hold wherever one does.
_WEAKER = {
    LESS: {LESS, LESS_EQUAL, ANY},
    LESS_EQUAL: {LESS_EQUAL, ANY},
    GREATER: {GREATER, GREATER_EQUAL, ANY},
    GREATER_EQUAL: {GREATER_EQUAL, ANY},
    EQUAL: {EQUAL, LESS_EQUAL, GREATER_EQUAL, ANY},
    ANY: {ANY},
}

Box = tuple[Columns, int, int, int, int]
"""Columns of an index; for its first a column of the new row and an operator (`chain_loops`), and so for its second."""


class PublishedIndexes:
    """The indexes of a table and of the constraints that hold on it.

    Parameters
    ----------
    codes : int32 (rows, columns), C order
        Codes that keep the order of values, -1 for null; a grown array with these rows first is given later.
    constraints : the numbers of each one's predicates; one without predicates is violated by every pair
    nulls : "unknown" or "value"
    seed : of the sample that correlations are taken from

    Attributes
    ----------
    described : list of dict
        Of each index its kind ("equality", "sorted" or "chains"), columns, directions, rank and what is asked of it.

    Notes
    -----
    Cost to make: rows log rows for each index. A new row costs a few searches in each chain of each index, and one step
    for each pair and each waiting row.
    """

    def __init__(
        self,
        codes: NDArray[np.int32],
        space: PredicateSpace,
        constraints: Iterable[Sequence[int]],
        *,
        nulls: str,
        seed: int = 0,
    ) -> None:
        self._codes, self._space, self._seed = codes, space, seed
        self._unknown = nulls == "unknown"
        self._rows = len(codes)
        self._flags = np.full(self._rows, LIVE, dtype=np.uint8)
        self._boxes: set[Box] = set()
        self._one_row: set[tuple[int, ...]] = set()
        self._marked = np.empty(0, dtype=np.int32)
        self._indexes = ChainIndexes(self._unknown, self._rows)
        self.cover(constraints)

    @property
    def rows(self) -> int:
        """How many rows are known."""
        return self._rows

    @property
    def described(self) -> list[dict[str, Any]]:
        listed = []
        for order, rank in zip(self._indexes.orders, self._indexes.ranks, strict=True):
            boxes = [b for b in self._boxes if b[0] == order.columns]
            kind = "chains"
            if order.second is None:
                kind = "equality" if any(b[2] == EQUAL for b in boxes) else "sorted"
            directions = ["falls" if falls else "rises" for falls in order.descending[: len(order.columns)]]
            names = [self._space.names[c] for c in order.columns]
            listed.append({"kind": kind, "columns": names, "along": directions, "rank": rank, "boxes": len(boxes)})
        return listed

    def portions(self, first: int, codes: NDArray[np.int32]) -> Iterator[Pairs]:
        """Pairs with a new row, among them all that violate a covered constraint, in either order.

        Parameters
        ----------
        first : rows from here on are new; all before are known
        codes : int32 (rows, columns), C order, the known rows and the new ones

        Returns
        -------
        iterator of (t, u), int32 (pairs,)
            A new row and one before it, new ones among them; each pair once, at most four times as many in a portion as
            there are rows. The new rows are in the indexes at the end, to which it has to be followed.

        Raises
        ------
        ValueError
            Where `first` is not the number of rows known.
        """
        if first != self._rows or len(codes) < first:
            raise ValueError(f"first {first!r} must be the number of rows known, {self._rows}, of {len(codes)} given")
        self._grow(codes)
        return self._found(first, codes)

    def remove(self, rows: NDArray[np.integer[Any]] | Sequence[int]) -> None:
        """Remove rows: they are in no pair any more."""
        self._flags[np.asarray(rows, dtype=np.int64)] &= np.uint8(255 - LIVE)

    def cover(self, constraints: Iterable[Sequence[int]]) -> None:
        """Serve these constraints too, by existing indexes and new ones."""
        live = np.flatnonzero(self._flags[: self._rows] & LIVE).astype(np.int32)
        scores = IndexScores(self._codes, live, self._unknown, self._seed)
        built = [order.columns for order in self._indexes.orders]
        choice = select_indexes(self._space, constraints, scores, built)
        orders = [
            ChainOrder(columns[0], columns[1] if len(columns) > 1 else None, (False, falls))
            for columns, falls in choice.indexes.items()
        ]
        self._indexes.add(orders, self._codes, self._flags)
        for serving in choice.servings:
            self._boxes.update(_boxes_of(serving, self._space))
        self._boxes = _without_inner(self._boxes)
        if not self._one_row.issuperset(choice.one_row):
            self._one_row.update(choice.one_row)
            self._mark(0)

    def _found(self, first: int, codes: NDArray[np.int32]) -> Iterator[Pairs]:
        """The pairs of the rows from `first` on, which go into chains whenever the tail is long."""
        boxes, rows, at = self._box_table(), len(codes), first
        while at < rows:
            end = min(rows, self._indexes.absorbed + _TAIL_ROWS + rows // _TAIL_SHARE)
            if end > at:
                yield from self._indexes.fetch(codes, (at, end), boxes, self._flags, self._marked)
                at = end
            else:
                self._indexes.absorb(codes, self._flags, at)

    def _grow(self, codes: NDArray[np.int32]) -> None:
        """Make room for the flags of new rows, and mark these as living."""
        first, rows = self._rows, len(codes)
        if rows > len(self._flags):
            flags = np.zeros(2 * rows, dtype=np.uint8)
            flags[:first] = self._flags[:first]
            self._flags = flags
        self._flags[first:rows] = LIVE
        self._codes, self._rows = codes, rows
        self._mark(first)

    def _mark(self, first: int) -> None:
        """Mark rows, from `first` on, that violate a constraint about one row."""
        if not self._one_row:
            return
        codes = self._codes[first : self._rows]
        marked = np.zeros(len(codes), dtype=np.bool_)
        for numbers in self._one_row:
            satisfied = np.ones(len(codes), dtype=np.bool_)
            for p in numbers:
                group = self._space.predicate_group[p]
                left, right = codes[:, self._space.left[group]], codes[:, self._space.right[group]]
                satisfied &= _COMPARE[self._space.predicate_operator[p]](left, right)
                if self._unknown:
                    satisfied &= (left >= 0) & (right >= 0)
            marked |= satisfied
        rows = (first + np.flatnonzero(marked)).astype(np.int32)
        self._flags[rows] |= np.uint8(MARKED)
        self._marked = rows if first == 0 else np.concatenate((self._marked, rows))

    def _box_table(self) -> NDArray[np.int32]:
        """The boxes with the numbers of their indexes, in a fixed order."""
        number = {order.columns: i for i, order in enumerate(self._indexes.orders)}
        listed = [[number[b[0]], *b[1:]] for b in sorted(self._boxes)]
        return np.array(listed, dtype=np.int32).reshape(-1, 5)


def _boxes_of(serving: Serving, space: PredicateSpace) -> set[Box]:
    """The boxes that a constraint needs of its indexes, for the new row as u and as t."""
    groups = space.predicate_group[list(serving.predicates)]
    left, right = space.left[groups].tolist(), space.right[groups].tolist()
    operators = [int(space.predicate_operator[p]) for p in serving.predicates]
    boxes = set()
    for chosen in product(*(_HALVES if o == DIFFERS else (o,) for o in operators)):
        as_u = zip(left, right, chosen, strict=True)
        as_t = zip(right, left, (_EXCHANGED[o] for o in chosen), strict=True)
        for conditions in (sorted(as_u), sorted(as_t)):
            columns = tuple(c for c, _, _ in conditions)
            asked = [(own, _OF_OPERATOR[o]) for _, own, o in conditions]
            if len(asked) == 1:
                asked.append((0, ANY))
            boxes.add((columns, *asked[0], *asked[1]))
    return boxes


def _without_inner(boxes: set[Box]) -> set[Box]:
    """The boxes that lie within no other."""
    operators: dict[tuple[Columns, int, int], list[tuple[int, int]]] = {}
    for columns, own, operator, second_own, second_operator in boxes:
        operators.setdefault((columns, own, second_own), []).append((operator, second_operator))
    return {
        (columns, own, a, second_own, b)
        for (columns, own, second_own), alike in operators.items()
        for a, b in alike
        if not any((c, d) != (a, b) and c in _WEAKER[a] and d in _WEAKER[b] for c, d in alike)
    }
