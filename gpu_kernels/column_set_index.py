"""Front door: comparing new rows of a table with the relevant old rows, found in sorted arrays.

There is no CUDA twin: a new row needs a few hundred scattered old rows, too little work for a device. To compare new
rows with all old ones, on either device, there is `evidence.collect_clues_between`.

Source: the index in place of skip lists in "Incremental discovery of denial constraints" (Qian, Li, Tan, Ran, Ma, VLDB
Journal 2023), sections 5 to 7. Departures: one kind of index serves any number of predicates of any operator, since it
keeps zones of every column; it is never changed in place: new rows are appended to a tail, which is compared in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.column_set_types import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Classes,
    KnownClues,
    Orders,
    Queries,
    Term,
    offsets_of,
)
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import column_set_index as kernels
from tuplewise.gpu_kernels.cpu import zones as zoned
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.words import ACROSS, EQUAL, GREATER, UNKNOWN, ClueLayout, outcomes

SPARE = kernels.SPARE
LEAST_OF_A_ROW = zoned.BLOCK  # comparisons that are counted for each row that a search tries, at least
ROWS_A_TASK = 64  # new rows that a thread takes at a time
FEW_PROBING = 512  # new rows that are looked up one by one; of more, classes of equal rows are merged with the orders
EXCHANGED = (EQ, NE, GT, GE, LT, LE)  # each operator with both sides exchanged
MOST_OF_A_CLASS = 2  # rows of each class of equal rows in an order that need not be whole


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows sorted by some lists of columns, with zones.

    Attributes
    ----------
    orders, order_offsets : int32 (entries,), int64 (orders + 1,): the rows, order after order
    whole : bool (orders,), whether an order has all rows. Otherwise it has only some rows of each class of rows equal
        in its columns; rows of a shortened class are written as -row - 1.
    zones : int32 (values,), least and largest value of each column in each block
    level_starts, level_blocks : int64 (orders, 8): start of each level's zones, and its number of blocks; lowest first
    levels : int64 (orders,)
    columns, column_offsets : int32, int64 (orders + 1,): the columns that each order is sorted by
    bounds : int64 (2,), the first row and the row behind the last
    """

    orders: NDArray[np.int32]
    whole: NDArray[np.bool_]
    order_offsets: NDArray[np.int64]
    zones: NDArray[np.int32]
    level_starts: NDArray[np.int64]
    level_blocks: NDArray[np.int64]
    levels: NDArray[np.int64]
    columns: NDArray[np.int32]
    column_offsets: NDArray[np.int64]
    bounds: NDArray[np.int64]

    @property
    def span(self) -> tuple[int, int]:
        """First row, and the row behind the last."""
        return int(self.bounds[0]), int(self.bounds[1])

    @property
    def for_loops(self) -> Orders:
        """Arguments of compiled loops."""
        return Orders(*(getattr(self, name) for name in Orders._fields))

    def __post_init__(self) -> None:
        for name, array in vars(self).items():  # as those that are mapped from a file: kernels are compiled for that
            array = array.view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of_orders(
        cls, codes: NDArray[np.int32], column_lists: Sequence[Sequence[int]], orders: Sequence[NDArray[np.int32]],
        whole: Sequence[bool], span: tuple[int, int],
    ) -> SortedRows:  # fmt: skip
        """Add zones to sorted orders of the rows of a span. `codes`: int32 (rows, columns)."""
        count = len(column_lists)
        starts, blocks = (np.zeros((count, zoned.MOST_LEVELS), dtype=np.int64) for _ in range(2))
        levels = np.zeros(count, dtype=np.int64)
        parts: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)]
        at = 0
        for i, (columns, order) in enumerate(zip(column_lists, orders, strict=True)):
            sizes = zoned.zone_levels(len(order))
            levels[i] = len(sizes)
            for level, size in enumerate(sizes):
                starts[i, level], blocks[i, level] = at, size
                at += 2 * len(columns) * size
            if sizes:
                zones = np.empty((sum(sizes), 2 * len(columns)), dtype=np.int32)
                chosen = np.array(columns, dtype=np.int32)
                rows = np.where(order < 0, -order - 1, order)
                zoned.fill_zones(codes, chosen, rows.astype(np.int32), np.array(sizes, dtype=np.int64), zones)
                parts.append(zones.ravel())
        return cls(
            orders=np.concatenate([np.zeros(0, np.int32), *orders]),
            whole=np.array(whole, dtype=np.bool_),
            order_offsets=offsets_of([len(order) for order in orders]),
            zones=np.concatenate(parts),
            level_starts=starts,
            level_blocks=blocks,
            levels=levels,
            columns=np.array([c for columns in column_lists for c in columns], dtype=np.int32),
            column_offsets=offsets_of([len(columns) for columns in column_lists]),
            bounds=np.array(span, dtype=np.int64),
        )

    @classmethod
    def build(
        cls, codes: NDArray[np.int32], column_lists: Sequence[Sequence[int]], whole: Sequence[bool],
        span: tuple[int, int] | None = None,
    ) -> SortedRows:  # fmt: skip
        """Sort the rows of a span of `codes`, int32 (rows, columns), or all rows. Cost: a sort of the rows for each
        list."""
        ranks: dict[int, NDArray[np.int64]] = {}
        start, end = span or (0, len(codes))
        rows = np.arange(start, end, dtype=np.int32)
        orders = []
        for columns, all_rows in zip(column_lists, whole, strict=True):
            for c in columns:
                if c not in ranks:
                    ranks[c] = np.unique(codes[start:end, c], return_inverse=True)[1].ravel()
            order = zoned.sort_rows([ranks[c] for c in columns], rows)
            if not all_rows:
                chosen = np.array(columns, dtype=np.int32)
                order = order[: zoned.cut_classes(codes, chosen, order, MOST_OF_A_CLASS)].copy()
            orders.append(order)
        return cls.of_orders(codes, column_lists, orders, whole, (start, end))

    def renewed(
        self, codes: NDArray[np.int32], added: NDArray[np.int32], number: NDArray[np.int32], kept: NDArray[np.int32],
        column_lists: Sequence[Sequence[int]], whole: Sequence[bool],
    ) -> SortedRows:  # fmt: skip
        """Rows after additions and removals, possibly in other orders. Orders that existed before are merged, not
        sorted.

        Parameters
        ----------
        codes : int32 (rows, columns), of all rows before and of the added ones
        added : int32, the added rows
        number : int32 (rows,), the new number of each row, -1 for removed rows
        kept : int32 (new rows, columns), codes by the new numbers
        """
        have = {tuple(self.columns_of(i).tolist()): i for i in range(len(self)) if self.whole[i]}
        missing = [(c, w) for c, w in zip(column_lists, whole, strict=True) if not w or tuple(c) not in have]
        built = SortedRows.build(kept, [c for c, _ in missing], [w for _, w in missing])
        orders, at = [], 0
        for columns, all_rows in zip(column_lists, whole, strict=True):
            i = have.get(tuple(columns), -1) if all_rows else -1
            if i < 0:
                orders.append(built.order(at))
                at += 1
                continue
            ranks = [np.unique(codes[added, c], return_inverse=True)[1].ravel() for c in columns]
            fresh = zoned.sort_rows(ranks, added)
            merged = np.empty(len(self.order(i)) + len(added), dtype=np.int32)
            size = zoned.merge_orders(codes, self.columns_of(i), self.order(i), fresh, number, merged)
            orders.append(merged[:size])
        return SortedRows.of_orders(kept, column_lists, orders, whole, (0, len(kept)))

    def __len__(self) -> int:
        return len(self.levels)

    def order(self, i: int) -> NDArray[np.int32]:
        """Rows in one order."""
        return self.orders[self.order_offsets[i] : self.order_offsets[i + 1]]

    @property
    def lists(self) -> list[list[int]]:
        """The columns of each order."""
        return [self.columns_of(i).tolist() for i in range(len(self))]

    def columns_of(self, i: int) -> NDArray[np.int32]:
        """The columns of one order."""
        return self.columns[self.column_offsets[i] : self.column_offsets[i + 1]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to store."""
        return dict(vars(self))

    @classmethod
    def of_arrays(cls, array: Callable[[str], NDArray[Any]]) -> SortedRows:
        """Restore from stored arrays."""
        return cls(**{field.name: array(field.name) for field in fields(cls)})

    def find(
        self, i: int, codes: NDArray[np.int32], alive: NDArray[np.bool_], wanted: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """A live row with these values in the columns of an order, int32 (k,), -1 where there is none."""
        columns, order = self.columns_of(i), self.order(i)
        return np.asarray(zoned.find_rows(codes, alive, columns, order, np.ascontiguousarray(wanted)))


@dataclass(frozen=True, eq=False)
class Met:
    """New clues, in the order of the pair that was met.

    clues : uint64 (new, words), distinct
    rows : int32 (new, 2), a pair (t, u) that has each clue
    counts : int64 (new,) or empty, how many of the compared pairs have it
    """

    clues: NDArray[np.uint64]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]


class ClueTable:
    """Table that finds the number of a clue. Both orders of every pair are entered."""

    def __init__(self, clues: NDArray[np.uint64]) -> None:
        slots = 64
        while slots < 3 * len(clues):
            slots *= 2
        self.table = np.zeros((slots, clues.shape[1]), dtype=np.uint64)
        self.numbers = np.full(slots, -1, dtype=np.int32)
        self.entered = 0
        self.add(clues)

    def add(self, clues: NDArray[np.uint64]) -> None:
        """Enter the clues not yet entered. `clues`: all of them, entered ones first."""
        if 2 * len(clues) > len(self.numbers):
            self.__init__(clues)  # type: ignore[misc]
        else:
            kernels.fill_table(clues, self.table, self.numbers, self.entered)
            self.entered = len(clues)

    @property
    def given(self) -> KnownClues:
        """Arguments of compiled loops."""
        return KnownClues(self.table, self.numbers)

    def numbers_of(self, clues: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each clue, -1 where it isn't known."""
        return np.asarray(kernels.numbers_of(clues, self.table, self.numbers))


class Comparing:
    """Comparisons and the rule of nulls, as kernels take them."""

    def __init__(self, layout: ClueLayout, nulls: Literal["unknown", "value"]) -> None:
        self.layout, self.given = layout, layout.under(nulls)

    def of_pairs(self, codes: NDArray[np.int32], t: NDArray[np.int32], u: NDArray[np.int32]) -> NDArray[np.uint64]:
        """The clues of (t[i], u[i]), uint64 (pairs, words). `codes`: int32 (rows, columns)."""
        return np.asarray(kernels.compare_pairs(codes, t, u, self.given, self.layout.words))

    def probe(
        self, codes: NDArray[np.int32], alive: NDArray[np.bool_], first: int, last: int,
        rows: SortedRows, queries: Queries, known: ClueTable, control: Control | None = None,
    ) -> tuple[Met, NDArray[np.int64]]:  # fmt: skip
        """Compare the rows from `first` on, before `last`, with earlier rows in the boxes of queries.

        Returns the new clues, and the number of pairs that each query compared, int64 (queries,).
        """
        classes = _classes(codes, first, last, rows, queries, control or Control())
        given = (rows.for_loops, queries, classes, self.given, known.given)

        def probe(first: int, last: int, compared: NDArray[np.int64]) -> Met:
            clues, pairs = kernels.probe_rows(codes, alive, *rows.span, first, last, *given, compared)
            return Met(clues, pairs, np.zeros(0, dtype=np.int64))

        return self._in_parts(probe, first, last, len(queries.order), control)

    def scan(
        self, codes: NDArray[np.int32], alive: NDArray[np.bool_], new: NDArray[np.int32], start: int, stop: int,
        by_column: NDArray[np.int32], known: ClueTable, *, only_before: bool, counting: int = 0,
        control: Control | None = None,
    ) -> tuple[Met, NDArray[np.int64]]:  # fmt: skip
        """Compare the rows `new` with the live rows from `start` to `stop`: with those before each one, or with all
        others.

        `by_column`: int32 (columns, rows + SPARE or more), the rows from `start` on, with room behind them. `counting`:
        the number of known clues where their pairs are to be counted, else 0. Returns the new clues, and the counts of
        the known ones, int64 (counting,).
        """
        by_column = np.ascontiguousarray(by_column)
        given = (self.given, known.given)

        def scan(first: int, last: int, counts: NDArray[np.int64]) -> Met:
            return Met(*kernels.scan_rows(
                codes, by_column, alive, new, first, last, start, stop, only_before, *given, counts
            ))  # fmt: skip

        return self._in_parts(scan, 0, len(new), counting, control)

    def _in_parts(
        self, compare: Callable[[int, int, NDArray[np.int64]], Met], first: int, last: int, counting: int,
        control: Control | None,
    ) -> tuple[Met, NDArray[np.int64]]:  # fmt: skip
        """Compare a range of new rows, on several threads where there are many. `compare` adds to counts, int64
        (counting,)."""
        starts = range(first, last, ROWS_A_TASK)
        counts = [np.zeros(counting, dtype=np.int64) for _ in range(max(1, len(starts)))]
        if len(starts) <= 1:
            return compare(first, last, counts[0]), counts[0]
        found: list[Met] = []

        def work(task: int) -> None:
            found.append(compare(starts[task], min(last, starts[task] + ROWS_A_TASK), counts[task]))

        run_tasks([1.0] * len(starts), lambda: work, control or Control())
        return _together(found, self.layout.words), np.sum(counts, axis=0, dtype=np.int64)

    def seek(
        self, codes: NDArray[np.int32], alive: NDArray[np.bool_], tried: NDArray[np.int32], clue: NDArray[np.uint64],
        rows: SortedRows, index: int, most: int,
    ) -> tuple[int, int, bool]:  # fmt: skip
        """A pair (t, u) of live rows with a given clue, t one of `tried`, u in an order; (-1, -1) if none was met.
        Third result: whether all of `tried` were looked at; False where `most` comparisons ran out first."""
        columns = rows.columns_of(index).tolist()
        terms = [term for term in terms_of_clue(clue, self.layout) if term[0] in columns]
        query = Queries.of_terms(rows.lists, [index], [terms])
        t, u, looked_at = kernels.seek_pair(
            codes, alive, tried, clue.copy(), rows.for_loops, query, self.given, most
        )
        return t, u, looked_at == len(tried)


def terms_of_clue(clue: NDArray[np.uint64], layout: ClueLayout) -> list[Term]:
    """Conditions on the values of u, given those of t, that a clue implies by its comparisons of t with u."""
    terms: list[Term] = []
    for g in np.flatnonzero(layout.scope == ACROSS).tolist():
        outcome = int(outcomes(clue[None, :], g)[0])
        if outcome == UNKNOWN:
            continue
        ordered = bool(layout.ordered[g])
        operator = EQ if outcome == EQUAL else (NE if not ordered else (LT if outcome == GREATER else GT))
        terms.append((int(layout.right[g]), operator, int(layout.left[g])))
    return terms


def _classes(
    codes: NDArray[np.int32], first: int, last: int, rows: SortedRows, queries: Queries, control: Control
) -> Classes:
    """The classes of new rows in the orders that queries with equalities search; none for a few rows, which are looked
    up by zones."""
    kinds: dict[tuple[int, tuple[int, ...]], int] = {}
    of_query = np.full(len(queries.order), -1, dtype=np.int32)
    for q, index in enumerate(queries.order.tolist() if last - first > FEW_PROBING else ()):
        part = slice(queries.offsets[q], queries.offsets[q + 1])
        terms = zip(queries.slot[part].tolist(), queries.operator[part].tolist(), queries.column[part], strict=True)
        equal = {slot: int(column) for slot, operator, column in terms if operator == EQ}
        leading = next(k for k in range(len(equal) + 1) if k not in equal)
        if leading:
            of_query[q] = kinds.setdefault((index, tuple(equal[k] for k in range(leading))), len(kinds))
    places = np.zeros((len(kinds), max(0, last - first) if kinds else 0, 2), dtype=np.int32)
    wanted = list(kinds)

    def work(task: int) -> None:
        index, of_columns = wanted[task]
        columns = np.array(of_columns, dtype=np.int32)
        values = codes[first:last, columns]
        order = np.argsort(values[:, 0]) if len(columns) == 1 else np.lexsort(values.T[::-1])
        found = np.empty((len(order), 2), dtype=np.int32)
        new = (order + first).astype(np.int32)
        zoned.find_classes(codes, rows.columns_of(index)[: len(columns)], rows.order(index), columns, new, found)
        places[task, order] = found

    run_tasks([1.0] * len(wanted), lambda: work, control)
    return Classes(of_query, first, places)


def _together(found: Sequence[Met], words: int) -> Met:
    """New clues of several threads, each once."""
    clues = np.concatenate([np.zeros((0, words), np.uint64), *(met.clues for met in found)])
    rows = np.concatenate([np.zeros((0, 2), np.int32), *(met.rows for met in found)])
    counts = np.concatenate([np.zeros(0, np.int64), *(met.counts for met in found)])
    if not len(clues):
        return Met(clues, rows, counts)
    order = np.lexsort((rows[:, 1], rows[:, 0], *clues.T[::-1]))  # of equal clues the first pair, whoever met it
    clues, rows = clues[order], rows[order]
    first = np.ones(len(clues), dtype=np.bool_)
    first[1:] = np.any(clues[1:] != clues[:-1], axis=1)
    starts = np.flatnonzero(first)
    summed = np.add.reduceat(counts[order], starts) if len(counts) else counts
    return Met(clues[starts], rows[starts], summed)


def stored(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Arrays by names with a prefix."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}
