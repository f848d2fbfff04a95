"""What a profile counts, by definition, in exact fractions. A table is a list of columns; None is null."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

Column = Sequence[Any]
Table = Sequence[Column]


def rows_with_values(table: Table, columns: Sequence[int], count: int | None = None) -> list[int]:
    """Rows without a null in these columns. `count`: rows of the table."""
    rows = len(table[0]) if count is None else count
    return [row for row in range(rows) if all(table[c][row] is not None for c in columns)]


def classes(table: Table, columns: Sequence[int], rows: Sequence[int]) -> list[list[int]]:
    """Rows by what they have in these columns."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        found.setdefault(tuple(table[c][row] for c in columns), []).append(row)
    return list(found.values())


def pdep(values: Column) -> Fraction:
    """The chance that two rows, drawn with replacement, have the same value."""
    return Fraction(sum(n * n for n in Counter(values).values()), len(values) ** 2)


def contradictions(values: Sequence[Column]) -> Fraction:
    """Over classes, given by the target's values: how many rows one guesses wrong that guesses by the frequencies."""
    return sum((len(of_class) * (1 - pdep(of_class)) for of_class in values if of_class), Fraction(0))


def of_classes(table: Table, left: Sequence[int], target: int) -> list[list[Any]]:
    """The target's values, class by class of the left side; rows with a null on either side are left out."""
    rows = rows_with_values(table, [*left, target])
    return [[table[target][row] for row in members] for members in classes(table, left, rows)]


def mu_plus(table: Table, left: Sequence[int], target: int) -> Fraction:
    """The strength of an FD, by the published formula; 0 where it is undefined."""
    values = of_classes(table, left, target)
    rows, kinds = sum(map(len, values)), len(values)
    of_target = [value for of_class in values for value in of_class]
    if rows == kinds or pdep(of_target) == 1:
        return Fraction(0)
    given = sum((len(of_class) * pdep(of_class) for of_class in values), Fraction(0)) / rows
    return max(Fraction(0), 1 - (1 - given) / (1 - pdep(of_target)) * Fraction(rows - 1, rows - kinds))


def fd_evidence(table: Table, left: Sequence[int], target: int) -> Fraction:
    """What an FD's contradictions would be on average over all orders of the target's values.

    That is (N - n_X) (1 - pdep(A)) N / (N - 1): see `mean_contradictions`, which tries all orders.
    """
    values = of_classes(table, left, target)
    rows = sum(map(len, values))
    of_target = [value for of_class in values for value in of_class]
    return (rows - len(values)) * (1 - pdep(of_target)) * Fraction(rows, rows - 1) if rows > 1 else Fraction(0)


def mean_contradictions(table: Table, left: Sequence[int], target: int) -> Fraction:
    """The same by trying every order of the target's values: for tables of a few rows."""
    values = of_classes(table, left, target)
    of_target = [value for of_class in values for value in of_class]
    sizes = [len(of_class) for of_class in values]
    ends = list(itertools.accumulate(sizes))
    total = Fraction(0)
    for order in itertools.permutations(of_target):
        total += contradictions([order[end - size : end] for size, end in zip(sizes, ends, strict=True)])
    return total / math.factorial(len(of_target))


def fd_removals(table: Table, left: Sequence[int], target: int) -> int:
    """The fewest rows to remove so that an FD holds (g3, in rows); of a constant with nothing on the left."""
    values = of_classes(table, left, target)
    return sum(len(of_class) - max(Counter(of_class).values()) for of_class in values)


def key_removals(table: Table, columns: Sequence[int]) -> int:
    """The fewest rows to remove so that no two are equal on these columns."""
    rows = rows_with_values(table, columns)
    return len(rows) - len(classes(table, columns, rows))


def doubles(table: Table, columns: Sequence[int]) -> int:
    """Pairs of rows that are equal on these columns."""
    return sum(math.comb(len(members), 2) for members in classes(table, columns, rows_with_values(table, columns)))


def doubles_by_chance(table: Table, columns: Sequence[int]) -> Fraction:
    """Pairs that would be on average over all orders of the columns, each on its own."""
    rows = rows_with_values(table, columns)
    pairs = Fraction(math.comb(len(rows), 2))
    if not pairs:
        return Fraction(0)
    kept = [[table[c][row] for row in rows] for c in columns]
    return math.prod((doubles([column], [0]) / pairs for column in kept), start=pairs)


def order_pairs(table: Table, context: Sequence[int], a: int, b: int) -> tuple[int, int]:
    """Pairs within a context that two columns order alike, and oppositely; ties in one of them are left out."""
    rows = rows_with_values(table, [*context, a, b])
    alike = against = 0
    for members in classes(table, context, rows):
        for t, u in itertools.combinations(members, 2):
            sign = _sign(table[a][t], table[a][u]) * _sign(table[b][t], table[b][u])
            alike, against = alike + (sign > 0), against + (sign < 0)
    return alike, against


def order_holds(table: Table, context: Sequence[int], a: int, b: int, sense: str, rows: Sequence[int]) -> bool:
    """Whether no pair of these rows contradicts an order rule."""
    kept = [[column[row] for row in rows] for column in table]
    alike, against = order_pairs(kept, context, a, b)
    return (against if sense == "ascending" else alike) == 0


def order_removals(table: Table, context: Sequence[int], a: int, b: int, sense: str) -> int:
    """The fewest rows to remove so that an order rule holds, by trying all subsets: for tables of a few rows."""
    rows = rows_with_values(table, [*context, a, b])
    for fewest in range(len(rows) + 1):
        for removed in itertools.combinations(rows, fewest):
            if order_holds(table, context, a, b, sense, [row for row in rows if row not in removed]):
                return fewest
    raise AssertionError("no rows contradict nothing")


def compared(table: Table, a: int, b: int, rows: Sequence[int] | None = None) -> Counter[int]:
    """Rows by how the value in a stands to that in b: 1 above, 0 equal, -1 below."""
    rows = rows_with_values(table, [a, b]) if rows is None else rows
    return Counter(_sign(table[a][row], table[b][row]) for row in rows)


def compared_by_chance(table: Table, a: int, b: int) -> dict[int, Fraction]:
    """The same on average over all orders of b's values: each meets each of a's as often."""
    rows = rows_with_values(table, [a, b])
    met = Counter(_sign(table[a][t], table[b][u]) for t in rows for u in rows)
    return {sign: Fraction(met[sign], max(len(rows), 1)) for sign in (1, 0, -1)}


def chance_of_at_most(observed: int, chances: Sequence[Fraction]) -> Fraction:
    """The chance that at most so many of independent events happen."""
    exactly = [Fraction(1)]
    for chance in chances:
        without, with_it = [*exactly, Fraction(0)], [Fraction(0), *exactly]
        exactly = [x * (1 - chance) + y * chance for x, y in zip(without, with_it, strict=True)]
    return sum(exactly[: observed + 1], Fraction(0))


def _sign(x: Any, y: Any) -> int:
    return (x > y) - (x < y)


def closure(columns: Iterable[int], known: Sequence[tuple[set[int], set[int]]]) -> set[int]:
    """The columns that these determine, by what left sides determine."""
    found = set(columns)
    while new := set().union(*(right for left, right in known if left <= found)) - found:
        found |= new
    return found


def transitive(known: set[tuple[int, int, bool]]) -> set[tuple[int, int, bool]]:
    """All that follows from x <= y (False) and x < y (True)."""
    found = set(known)
    while new := {(x, z, s or t) for x, y, s in found for w, z, t in found if y == w} - found:
        found |= new
    return found


def ordered_alike(known: set[tuple[int, int, int]], determined: set[tuple[int, int]]) -> set[tuple[int, int, int]]:
    """All pairs of columns that are ordered alike (1) or oppositely (-1).

    A ~ C follows from B ~ A and B ~ C where B determines A: of two rows with different values in A, B's differ as well
    and are ordered as A's are.
    """
    found = set(known)
    while True:
        new = {(b, a, sign) for a, b, sign in found}
        for b, a, one in found:
            new |= {(a, c, one * other) for x, c, other in found if x == b and c != a and (b, a) in determined}
        if new <= found:
            return found
        found |= new
