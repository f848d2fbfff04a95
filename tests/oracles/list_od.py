"""List order dependencies by definition, in plain Python; imports nothing of tuplewise.

A table is a list of columns, each a list of int or None. A list is a tuple of (column, ascends). Null is the lowest
value and equal to itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

Column = Sequence[int | None]
Items = tuple[tuple[int, bool], ...]


def compare(columns: Sequence[Column], items: Items, t: int, u: int) -> int:
    """-1 where row t is before row u on the list, 1 where it is behind, 0 where they are equal on it."""
    for column, ascends in items:
        a, b = columns[column][t], columns[column][u]
        if a != b:
            before = a is None or (b is not None and a < b)
            return -1 if before == ascends else 1
    return 0


def violates(columns: Sequence[Column], left: Items, right: Items, t: int, u: int) -> str | None:
    """What the ordered pair of rows breaks: "split", "swap" (t before u on the left) or nothing."""
    on_left, on_right = compare(columns, left, t, u), compare(columns, right, t, u)
    if on_left == 0 and on_right != 0:
        return "split"
    return "swap" if on_left < 0 and on_right > 0 else None


def holds(columns: Sequence[Column], left: Items, right: Items) -> bool:
    """Whether no two rows break it."""
    rows = range(len(columns[0]))
    return not any(violates(columns, left, right, t, u) for t, u in itertools.permutations(rows, 2))


def lists(columns: Sequence[int], most: int) -> Iterator[Items]:
    """Every list of at most so many of the columns, none repeated, in both directions."""
    for size in range(most + 1):
        for chosen in itertools.permutations(columns, size):
            for directions in itertools.product((True, False), repeat=size):
                yield tuple(zip(chosen, directions, strict=True))


class Orders:
    """How lists order the pairs of rows of one table; kept, as the same lists are compared again and again."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._pairs = list(itertools.permutations(range(len(columns[0])), 2))
        self._found: dict[Items, list[int]] = {}

    def of(self, items: Items) -> list[int]:
        if items not in self._found:
            self._found[items] = [compare(self._columns, items, t, u) for t, u in self._pairs]
        return self._found[items]

    def holds(self, left: Items, right: Items) -> bool:
        return all(y == 0 if x == 0 else x > 0 or y <= 0 for x, y in zip(self.of(left), self.of(right), strict=True))

    def determined(self, items: Items) -> bool:
        """Whether some column of the list orders nothing behind those in front of it."""
        return any(self.of(items[:i]) == self.of(items[: i + 1]) for i in range(len(items)))


def reduced(columns: Sequence[Column], most: int) -> set[tuple[Items, Items]]:
    """The list dependencies that hold and do not follow from others, by the seven rules of `derive_list_ods`."""
    orders = Orders(columns)
    useful = [items for items in lists(range(len(columns)), most) if items and not orders.determined(items)]
    return {(x, y) for x in useful for y in useful if x != y and orders.holds(x, y) and _listed(orders, x, y)}


def _listed(orders: Orders, x: Items, y: Items) -> bool:
    if x[: len(y)] == y:
        return False
    if any(orders.holds(x[:i], y) for i in range(len(x))) or any(orders.holds(x, y[i:]) for i in range(1, len(y))):
        return False
    shared = next((i for i, (a, b) in enumerate(zip(x, y, strict=False)) if a != b), min(len(x), len(y)))
    if any(orders.holds(x[:i] + x[i + 1 :], y[:i] + y[i + 1 :]) for i in range(shared)):
        return False
    if x[-1] == y[-1] and orders.holds(x[:-1], y[:-1]) and orders.holds(y[:-1], x[:-1]):
        return False
    front = x[:shared]
    if front != tuple(sorted(front)) or not all(ascends for _, ascends in front):
        return False
    return len(x) == shared or x[shared][1]


def shortest_equivalent(columns: Sequence[Column], items: Items) -> int:
    """The length of the shortest list, over any columns, that sorts the rows the same way."""
    orders = Orders(columns)
    wanted = orders.of(items)
    return min(len(other) for other in lists(range(len(columns)), len(items)) if orders.of(other) == wanted)
