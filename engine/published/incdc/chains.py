"""The published index for two inequalities, chains of rows that two columns order alike.

Index(A op1, B op2) cuts a table's rows into the fewest chains in which each row stands in op1 and op2 to those before
it. In a chain the rows that satisfy any inequality on A are its beginning or its end, and so for B: those that satisfy
both are one stretch, found by halving. An index of one column (equality, or a single inequality) is one sorted chain.

There are no CUDA twins: a new row asks for a few stretches by halving, which is over before a kernel is launched, and
making chains is a loop in which each row depends on the one before.

Source: Qian, Li, Tan, Ran, Ma, "Incremental discovery of denial constraints", The VLDB Journal 32, 2023, sections 5
and 6. Departures:

- Algorithm 3 breaks ties on A "on B according to op2". Where op1 is strict, rows with equal A would follow each other
  in a chain though op1 does not hold; here they are taken in the opposite order of B, and never do.
- Algorithm 1 takes the rows before position p for those that the new row stands in op1 to, which is wrong where values
  are equal; here both ends of a stretch are searched for, so each operator is answered exactly, by every index of the
  two columns, strict or not, read forwards or backwards: all of section 6.2 without passing over rows.
- Chains are flat sorted arrays, one behind the other, in place of skip lists (section 6.4). Rows that came last are in
  no chain: they are looked at one by one (the tail) until `absorb` puts them all into chains with one merge. What
  section 6.3 does for each row is done then, in the order of line 1 of Algorithm 3, a row beside an equal one first.
- When an index has become twice as long as OptIndex left it, OptIndex makes it anew, so that its rank stays near the
  least.
- Rows with equal values of both columns stand beside each other in place of a hash map of such rows.
- Rows that are gone stay until the next merge; they are not handed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.published.incdc import chain_loops
from tuplewise.engine.published.incdc.chain_loops import END_CHAIN, FIRST_CHAIN, LIVE, SECOND_SHIFT, SHIFT

_ROOM_ROWS = 4  # as many times the rows are the pairs that are written before they are handed on

Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Rows of pairs, int32 (pairs,) each."""


@dataclass(frozen=True)
class ChainOrder:
    """What an index's chains are ordered by.

    Attributes
    ----------
    first, second : columns; `second` is None for one sorted chain
    descending : of either column, whether values fall along a chain (op is `<` or `<=`)
    strict : of either column, whether equal values of different rows stay out of a chain (op is `<` or `>`)
    """

    first: int
    second: int | None = None
    descending: tuple[bool, bool] = (False, False)
    strict: tuple[bool, bool] = (False, False)

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.first,) if self.second is None else (self.first, self.second)

    def keys(self, codes: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """int32 (1 or 2, rows): codes whose order along a chain is ascending."""
        keys = codes[rows][:, list(self.columns)].T.copy()
        for key, falls in zip(keys, self.descending, strict=False):
            if falls:
                np.negative(key, out=key)
        return keys

    def sorted(self, keys: NDArray[np.int32]) -> NDArray[np.intp]:
        """Line 1 of OptIndex: the order in which rows are put into chains; of equal ones, the order given."""
        if self.second is None:
            return np.argsort(keys[0], kind="stable")
        second = -keys[1] if self.strict[0] else keys[1]
        return np.argsort((keys[0].astype(np.int64) << np.int64(32)) + second, kind="stable")


def optimal_chains(
    keys: NDArray[np.int32], order: ChainOrder
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """OptIndex: the fewest chains of these points.

    Parameters
    ----------
    keys : int32 (1 or 2, points), the result of `ChainOrder.keys`

    Returns
    -------
    order : int64 (points,), the points chain after chain
    offsets : int64 (rank + 1,), where each chain begins

    Notes
    -----
    O(n log n): a sort, then one search among the last rows of chains for each point. The fewest: points that come
    later are comparable with an earlier one exactly when the second key is, so this is patience sorting, and the
    number of chains is the size of the largest set of points no two of which are comparable.

    Examples
    --------
    >>> order, offsets = optimal_chains(np.array([[1, 2, 3], [7, 9, 8]], dtype=np.int32), ChainOrder(0, 1))
    >>> order.tolist(), offsets.tolist()
    ([0, 1, 2], [0, 2, 3])
    """

    points = order.sorted(keys)
    chain_of = np.empty(len(points), dtype=np.int64)
    rank = int(
        chain_loops.assign_chains(
            keys[0][points], keys[-1][points], order.strict[1], chain_of, np.empty(len(points), dtype=np.int32)
        )
    )
    offsets, laid = np.zeros(rank + 1, dtype=np.int64), np.empty(len(points), dtype=np.int64)
    chain_loops.sort_by_chain(chain_of, offsets, laid)
    return points[laid].astype(np.int64), offsets


@dataclass(frozen=True, eq=False)
class _Chains:
    """One index: rows int32 (n,), keys int32 (1 or 2, n), offsets int64 (rank + 1,), rows when OptIndex made it."""

    rows: NDArray[np.int32]
    keys: NDArray[np.int32]
    offsets: NDArray[np.int64]
    made: int


class ChainIndexes:
    """Indexes over the rows of one growing table of codes.

    Attributes
    ----------
    orders : what the indexes are ordered by; index i is orders[i]
    absorbed : rows before this one are in the chains, the others in the tail

    Notes
    -----
    Memory: 12 bytes a row for an index of two columns, 8 for one; the same once more while rows are absorbed.
    """

    def __init__(self, unknown: bool, absorbed: int) -> None:
        """`unknown`: whether a null (code -1) satisfies no condition; else it is a value below all others."""
        self.orders: list[ChainOrder] = []
        self.absorbed = absorbed
        self._unknown = unknown
        self._chains: list[_Chains] = []
        self._join()

    @property
    def ranks(self) -> list[int]:
        """The number of chains of each index."""
        return [len(c.offsets) - 1 for c in self._chains]

    def chains(self, index: int) -> list[list[int]]:
        """The rows of each chain of an index."""
        c = self._chains[index]
        return [part.tolist() for part in np.split(c.rows, c.offsets[1:-1])] if len(c.rows) else []

    def add(self, orders: Sequence[ChainOrder], codes: NDArray[np.int32], flags: NDArray[np.uint8]) -> None:
        """Make indexes with OptIndex, of the rows that are in chains and not gone.

        Parameters
        ----------
        codes : int32 (rows, columns), C order
        flags : uint8 (rows,), LIVE where a row is there
        """
        live = np.flatnonzero(flags[: self.absorbed] & LIVE).astype(np.int32)
        self._chains += [self._make(order, codes, live) for order in orders]
        self.orders += orders
        self._join()

    def fetch(
        self,
        codes: NDArray[np.int32],
        span: tuple[int, int],
        boxes: NDArray[np.int32],
        flags: NDArray[np.uint8],
        marked: NDArray[np.int32],
    ) -> Iterator[Pairs]:
        """Pairs of new rows with earlier ones that are in a box; each once, in portions.

        Parameters
        ----------
        codes : int32 (rows, columns), C order
        span : the first of the new rows and the one to end before. Rows before a new one that are in no chain are
            looked at one by one.
        boxes : int32 (boxes, 5)
            Index, then for its first column: a column of the new row and an operator (LESS to EQUAL); the same for its
            second, or any column and ANY. Earlier rows r with `r.first operator new.column`, and so for the second, are
            in the box.
        flags : uint8 (rows,): LIVE, and MARKED for rows that are in pairs with every other
        marked : int32, the rows with MARKED, ascending

        Yields
        ------
        new, earlier : int32 (pairs,)

        Notes
        -----
        A new row costs two to four searches for each chain of each box, one step for each pair, and one for each row of
        the tail and box. A portion is at most four times as many pairs as there are rows.
        """

        first, end = span
        stamps = np.zeros(end, dtype=np.int32)
        found = np.empty((min(_ROOM_ROWS, end - first) * end, 2), dtype=np.int32)
        at = first
        while at < end:
            at, written = chain_loops.fetch_pairs(
                codes, np.array([at, end, first, self.absorbed]), boxes, self._table, self._rows, self._keys,
                self._offsets, flags, marked, self._unknown, stamps, found,
            )  # fmt: skip
            if written:
                yield found[:written, 0].copy(), found[:written, 1].copy()

    def absorb(self, codes: NDArray[np.int32], flags: NDArray[np.uint8], end: int) -> None:
        """Put the rows of the tail, up to `end`, into chains.

        Notes
        -----
        A row costs four searches for each chain of each index; then every index is merged once, in its length.
        """
        new = (self.absorbed + np.flatnonzero(flags[self.absorbed : end] & LIVE)).astype(np.int32)
        self.absorbed = end
        self._chains = [self._extended(i, codes, flags, new) for i in range(len(self.orders))]
        self._join()

    def _make(self, order: ChainOrder, codes: NDArray[np.int32], rows: NDArray[np.int32]) -> _Chains:
        """An index of these rows, without those that it leaves out for a null."""
        rows = self._with_values(order, codes, rows)
        keys = order.keys(codes, rows)
        places, offsets = optimal_chains(keys, order)
        return _Chains(rows[places], np.ascontiguousarray(keys[:, places]), offsets, len(rows))

    def _with_values(self, order: ChainOrder, codes: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int32]:
        if not self._unknown:
            return rows
        return rows[(codes[rows][:, list(order.columns)] >= 0).all(axis=1)]

    def _extended(
        self, index: int, codes: NDArray[np.int32], flags: NDArray[np.uint8], new: NDArray[np.int32]
    ) -> _Chains:
        """An index with new rows, without those that are gone."""

        order, old = self.orders[index], self._chains[index]
        new = self._with_values(order, codes, new)
        if len(old.rows) + len(new) > 2 * old.made:
            return self._make(order, codes, np.concatenate((old.rows[(flags[old.rows] & LIVE) != 0], new)))
        keys = order.keys(codes, new)
        points = order.sorted(keys)
        new, keys = new[points], np.ascontiguousarray(keys[:, points])
        table = self._table[index]
        offsets = self._offsets[table[FIRST_CHAIN] : table[END_CHAIN] + 1]
        placed = np.zeros((len(offsets) - 1 + len(new), 3), dtype=np.int64)
        chain_of, gap_of = np.empty(len(new), dtype=np.int64), np.empty(len(new), dtype=np.int64)
        shifts = table[[SHIFT, SECOND_SHIFT]]
        chains = chain_loops.place_points(
            keys[0], keys[-1], np.array(order.strict), self._keys, shifts, offsets, len(offsets) - 1, placed,
            chain_of, gap_of,
        )  # fmt: skip
        by_chain = np.argsort(chain_of, kind="stable")
        merged = np.empty(len(old.rows) + len(new), dtype=np.int32)
        merged_keys = np.empty((len(keys), len(merged)), dtype=np.int32)
        ends = np.empty(chains + 1, dtype=np.int64)
        size, chains = chain_loops.merge_chains(
            new[by_chain], np.ascontiguousarray(keys[:, by_chain]), chain_of[by_chain], gap_of[by_chain], self._rows,
            self._keys, shifts, offsets, flags, merged, merged_keys, ends,
        )  # fmt: skip
        return _Chains(merged[:size], merged_keys[:, :size], ends[: chains + 1], old.made)

    def _join(self) -> None:
        """All indexes one behind the other, which is what compiled loops read."""
        nothing = np.empty(0, dtype=np.int32)
        self._rows = np.concatenate([nothing, *(c.rows for c in self._chains)])
        self._keys = np.concatenate([nothing, *(c.keys.reshape(-1) for c in self._chains)])
        self._table = np.zeros((len(self._chains), 8), dtype=np.int64)
        ends = [np.zeros(1, dtype=np.int64)]
        row = key = chain = 0
        for i, (order, c) in enumerate(zip(self.orders, self._chains, strict=True)):
            rows, rank = len(c.rows), len(c.offsets) - 1
            signs = [-1 if falls else 1 for falls in order.descending]
            second = -1 if order.second is None else order.second
            shifts = (key - row, key - row + (rows if order.second is not None else 0))
            self._table[i] = (order.first, signs[0], second, signs[1], chain, chain + rank, *shifts)
            ends.append(row + c.offsets[1:])
            keys = self._keys[key : key + c.keys.size].reshape(c.keys.shape)
            self._chains[i] = _Chains(self._rows[row : row + rows], keys, c.offsets, c.made)
            row, key, chain = row + rows, key + c.keys.size, chain + rank
        self._offsets = np.concatenate(ends)
