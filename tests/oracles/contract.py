"""Rules of contracts by definition: how many break each, over lists of rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

Row = Sequence[Any]
Table = Sequence[Row]


def speaking(table: Table, columns: Sequence[int]) -> list[Row]:
    """The rows with a value in each of some columns."""
    return [row for row in table if all(row[c] is not None for c in columns)]


def fewest_to_remove(rows: Sequence[Row], breaks: Callable[[Row, Row], bool]) -> int:
    """The fewest rows to remove so that no pair is left that breaks it: all subsets are tried."""
    for removed in range(len(rows) + 1):
        for kept in itertools.combinations(rows, len(rows) - removed):
            if not any(breaks(t, u) or breaks(u, t) for t, u in itertools.combinations(kept, 2)):
                return removed
    raise AssertionError("no rows are left to break it")


def key(table: Table, columns: Sequence[int]) -> int:
    same = lambda t, u: all(t[c] == u[c] for c in columns)  # noqa: E731
    return fewest_to_remove(speaking(table, columns), same)


def fd(table: Table, left: Sequence[int], right: int) -> int:
    breaks = lambda t, u: all(t[c] == u[c] for c in left) and t[right] != u[right]  # noqa: E731
    return fewest_to_remove(speaking(table, [*left, right]), breaks)


def od(table: Table, context: Sequence[int], a: int, b: int, ascending: bool) -> int:
    def breaks(t: Row, u: Row) -> bool:
        against = t[b] > u[b] if ascending else t[b] < u[b]
        return all(t[c] == u[c] for c in context) and t[a] < u[a] and against

    return fewest_to_remove(speaking(table, [*context, a, b]), breaks)


def pairs(table: Table, columns: Sequence[int], breaks: Callable[[Row, Row], bool]) -> int:
    """Ordered pairs of different rows that break a rule."""
    return sum(breaks(t, u) for t, u in itertools.permutations(speaking(table, columns), 2))


def rows(table: Table, columns: Sequence[int], breaks: Callable[[Row], bool]) -> int:
    """Rows that break a rule about one row."""
    return sum(map(breaks, speaking(table, columns)))


def missing(child: Table, c: int, parent: Table, p: int) -> int:
    """Rows of a table whose value is in no row of another."""
    there = {row[p] for row in parent if row[p] is not None}
    return sum(row[c] is not None and row[c] not in there for row in child)
