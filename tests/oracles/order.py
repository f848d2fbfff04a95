"""Keys, constancy and order compatibility inside classes by definition, in plain Python. Imports nothing of tuplewise.

`table[column][row]`, codes; -1 is null. `strict`: a null agrees with nothing and differs from nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

KEY, CONSTANT, ASCENDING, DESCENDING = 0, 1, 2, 3

Table = Sequence[Sequence[int]]
Check = tuple[frozenset[int], int, int, int]  # context, kind, left, right


def agree(table: Table, column: int, t: int, u: int, strict: bool) -> bool:
    """Whether two rows have one value in a column."""
    return table[column][t] == table[column][u] and not (strict and table[column][t] == -1)


def violates(table: Table, check: Check, t: int, u: int, strict: bool) -> bool:
    """Whether two rows together break a check."""
    context, kind, left, right = check
    if not all(agree(table, column, t, u, strict) for column in context):
        return False
    if kind == KEY:
        return True
    a, b = table[left][t], table[left][u]
    if kind == CONSTANT:
        return a != b and not (strict and -1 in (a, b))
    c, d = table[right][t], table[right][u]
    opposite = (a < b and c > d) or (a > b and c < d)
    alike = (a < b and c < d) or (a > b and c > d)
    return opposite if kind == ASCENDING else alike


def violations(table: Table, rows: int, check: Check, strict: bool) -> list[tuple[int, int]]:
    """All pairs of rows that break a check."""
    return [(t, u) for u in range(rows) for t in range(u) if violates(table, check, t, u, strict)]


def removals(table: Table, rows: int, check: Check, strict: bool) -> int:
    """The fewest rows without which nothing breaks a check, by trying."""
    enemies: list[set[int]] = [set() for _ in range(rows)]
    for t, u in violations(table, rows, check, strict):
        enemies[t].add(u)
        enemies[u].add(t)

    @cache
    def most_left(candidates: frozenset[int]) -> int:
        if not candidates:
            return 0
        row = max(candidates, key=lambda r: len(enemies[r] & candidates))
        if not enemies[row] & candidates:
            return len(candidates)
        return max(most_left(candidates - {row}), 1 + most_left(candidates - enemies[row] - {row}))

    return rows - most_left(frozenset(range(rows)))


def met_pairs(table: Table, rows: int, check: Check, strict: bool) -> list[tuple[int, int]]:
    """One pair (t, u) for each row u that breaks a check with the row t that stands for its class, or with none."""
    context, kind, left, right = check
    met = []
    for u in range(rows):
        fellows = [t for t in range(rows) if all(agree(table, column, t, u, strict) for column in context)]
        if kind in (KEY, CONSTANT):
            valued = [t for t in fellows if kind == KEY or not strict or table[left][t] != -1]
            if valued and valued[0] != u and violates(table, check, valued[0], u, strict):
                met.append((valued[0], u))
            continue
        smaller = [t for t in fellows if table[left][t] < table[left][u]]
        if smaller:
            sign = -1 if kind == ASCENDING else 1
            t = min(smaller, key=lambda t: (sign * table[right][t], table[left][t], t))
            if violates(table, check, t, u, strict):
                met.append((t, u))
    return met


def mixed(row: int) -> int:
    """A bijection of 32 bits (multiply, shift): the order in which pairs are compared on all columns."""
    row ^= row >> 16
    row = row * 0x7FEB352D % 2**32
    row ^= row >> 15
    row = row * 0x846CA68B % 2**32
    return row ^ (row >> 16)


def best_pairs(
    table: Table, rows: int, check: Check, strict: bool, compared: int, limit: int
) -> list[tuple[int, int]]:
    """Of the met pairs of the `compared` smallest mixed rows those that agree most, then of the lowest row."""
    met = sorted(met_pairs(table, rows, check, strict), key=lambda pair: mixed(pair[1]))[:compared]

    def rank(pair: tuple[int, int]) -> tuple[int, int]:
        return -sum(agree(table, column, *pair, strict) for column in range(len(table))), pair[1]

    return sorted(met, key=rank)[:limit]
