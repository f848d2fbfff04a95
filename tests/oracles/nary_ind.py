"""Inclusion dependencies of any number of columns, by their definition. Imports nothing of the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations

Table = Mapping[str, Sequence[Hashable | None]]
Tables = Mapping[str, Table]
Side = tuple[str, tuple[str, ...]]  # a table and some of its columns


def tuples(tables: Tables, side: Side) -> list[tuple[Hashable, ...] | None]:
    """Of each row its values in the columns; None where one of them is null."""
    table, columns = side
    rows = zip(*(tables[table][c] for c in columns), strict=True)
    return [None if None in row else row for row in rows]


def counted(tables: Tables, dependent: Side, referenced: Side) -> dict[str, int]:
    """What a check counts."""
    left = Counter(tuples(tables, dependent))
    nulls = left.pop(None, 0)
    right = set(tuples(tables, referenced)) - {None}
    missing = {row: rows for row, rows in left.items() if row not in right}
    return {
        "dependent_distinct": len(left),
        "referenced_distinct": len(right),
        "missing_values": len(missing),
        "rows": sum(left.values()),
        "rows_missing": sum(missing.values()),
        "rows_null": nulls,
    }


def listed(
    tables: Tables, max_arity: int, error: Fraction = Fraction(0)
) -> tuple[list[tuple[Side, Side, dict[str, int]]], int]:
    """The dependencies that are found, by size, dependent and referenced columns; and how many others hold because no
    row has values in all dependent columns, though all their parts are found."""
    found: dict[tuple[Side, Side], dict[str, int]] = {}
    trivial = 0
    for size in range(1, max_arity + 1):
        for dependent, referenced in _sides(tables, size):
            parts = list(_parts(dependent, referenced))
            if size > 1 and not all(part in found for part in parts):
                continue
            figures = counted(tables, dependent, referenced)
            if figures["dependent_distinct"] == 0:
                trivial += 1
            elif figures["missing_values"] <= error * figures["dependent_distinct"]:
                found[dependent, referenced] = figures
    return [(*sides, figures) for sides, figures in found.items()], trivial


def _sides(tables: Tables, size: int) -> Iterator[tuple[Side, Side]]:
    for left in tables:
        for columns in combinations(tables[left], size):
            for right in tables:
                for others in permutations(tables[right], size):
                    if left != right or all(a != b for a, b in zip(columns, others, strict=True)):
                        yield (left, columns), (right, others)


def _parts(dependent: Side, referenced: Side) -> Iterator[tuple[Side, Side]]:
    for k in range(len(dependent[1])):
        yield (
            (dependent[0], dependent[1][:k] + dependent[1][k + 1 :]),
            (referenced[0], referenced[1][:k] + referenced[1][k + 1 :]),
        )
