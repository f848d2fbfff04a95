"""Derivation of list order dependencies from the set-based ones of a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.od.dependency import ASCENDING, members
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.implied import SavedOds, known_ods
from tuplewise.engine.od.lexicographic import SignedColumn
from tuplewise.engine.od.list_od import ListOd, OrderedColumn

MOST_STEPS = 1_000_000

Signed = tuple[SignedColumn, ...]


def derive_list_ods(source: SavedOds | Discovery, most: int) -> list[ListOd]:
    """Derive the list order dependencies `X -> Y` of at most `most` columns a side, without implied ones.

    Listed is every `X -> Y` that the discovered dependencies imply, of lists of at most `most` columns without a
    repeated one, in which

    1. Y is no prefix of X, so that it may fail on some table;
    2. no column of either list is determined by those in front of it in the list (it would order nothing): constants
       are in no list, and what only says that X determines Y's columns is among the constancies;
    3. X is no longer than it has to be: no proper prefix of X orders Y;
    4. Y does not fall apart: X orders no proper suffix of Y (`X -> Y` and `X -> Z` give `X -> YZ`);
    5. with Z the longest common prefix of X and Y: no column of Z can be left out of both lists;
    6. X and Y do not end in the same item behind lists that order each other (any item may stand behind such lists);
    7. of those that say the same one is listed: Z in the table's order of columns, ascending, and ascending the column
       of X behind it (all directions behind Z turned round say the same; neither order nor directions of Z matter).

    Every list dependency of that length which holds follows from these and the constancies, by 1 to 7.

    Parameters
    ----------
    source : what `od discover` found, here or saved. Where that is limited (`max_context`, a time limit), list
        dependencies may be missing, and some may be listed that follow from missing ones.
    most : 1 or more

    Returns
    -------
    list of ListOd
        By columns of both sides together, then by the columns' positions, "asc" first.

    Raises
    ------
    InputError
        Where more than `MOST_STEPS` lists would have to be looked at; for an approximate discovery.

    Notes
    -----
    Where X and Y part behind Z at columns A and B, `Z: A ~ B` holds and neither is constant under Z (2): so some pair
    `C: A ~ B` was discovered with C inside Z. The search starts at those, lets X grow as long as no rows that X orders
    one way are ordered the other way by [Z, B], and Y as long as X orders it. Cost: a look-up for each list met and
    each column that may follow it; the number grows with the power of `most` in columns.
    """
    if most < 1:
        raise InputError(message("columns of a list", most, "1 or more"))
    search = _Derivation(known_ods(source), most)
    for shared, first, second in search.starts():
        search.grow_left((*shared, first), (*shared, second), len(shared))
    found = sorted(search.found, key=lambda od: (len(od[0]) + len(od[1]), _place(od[0]), _place(od[1])))
    return [ListOd(search.named(left), search.named(right)) for left, right in found]


def _place(items: Signed) -> tuple[tuple[int, bool], ...]:
    return tuple((column, not ascends) for column, ascends in items)


class _Derivation:
    """A derivation. `found`: the dependencies to list."""

    def __init__(self, known: SavedOds, most: int) -> None:
        self.known, self._most = known, most
        self.found: list[tuple[Signed, Signed]] = []
        self._steps = 0
        self._columns = [(c, ascends) for c in range(len(known.names)) for ascends in (True, False)]
        dependencies = known.dependencies
        sizes = np.bitwise_count(dependencies.contexts).sum(axis=1)
        self._pairs = dependencies.take((dependencies.kind >= ASCENDING) & (sizes < most))

    def named(self, items: Signed) -> tuple[OrderedColumn, ...]:
        """The list with the columns' names."""
        return tuple(OrderedColumn(self.known.names[c], "asc" if ascends else "desc") for c, ascends in items)

    def starts(self) -> Iterator[tuple[Signed, SignedColumn, SignedColumn]]:
        """Each common prefix, with two columns that may follow it on the left and on the right."""
        seeds: dict[tuple[int, int, int], list[frozenset[int]]] = {}
        sides = zip(self._pairs.kind.tolist(), self._pairs.left.tolist(), self._pairs.right.tolist(), strict=True)
        for side, context in zip(sides, self._pairs.contexts, strict=True):
            seeds.setdefault(side, []).append(frozenset(members(context)))
        for (kind, a, b), contexts in seeds.items():
            for shared in self._common_prefixes(contexts, {a, b}):
                for first, second in ((a, b), (b, a)):
                    yield tuple((c, True) for c in shared), (first, True), (second, kind == ASCENDING)

    def _common_prefixes(self, contexts: Sequence[frozenset[int]], pair: set[int]) -> Iterator[tuple[int, ...]]:
        """Column sets that include one of the contexts, determine neither column of the pair, and have no column that
        those before it determine."""
        others = [c for c in range(len(self.known.names)) if c not in pair]
        seen: set[frozenset[int]] = set()
        for context in contexts:
            free = [c for c in others if c not in context]
            for more in range(self._most - len(context)):
                for added in itertools.combinations(free, more):
                    self._step()
                    shared = context.union(added)
                    if shared not in seen:
                        seen.add(shared)
                        ordered = tuple(sorted(shared))
                        if not pair & self.known.determined(shared) and not self._idle(ordered):
                            yield ordered

    def _idle(self, columns: tuple[int, ...]) -> bool:
        """Whether one of the columns is determined by those before it."""
        return any(column in self.known.determined(frozenset(columns[:i])) for i, column in enumerate(columns))

    def grow_left(self, left: Signed, right: Signed, shared: int) -> None:
        """Extend `left` to lists that are compatible with `right` and order lists that start with `right`."""
        determined = self.known.determined(frozenset(c for c, _ in left))
        if right[-1][0] in determined:
            self._grow_right(left, right, shared)
        if len(left) == self._most:
            return
        for item in self._columns:
            if item[0] not in determined:
                self._step()
                if self.known.compatible(left, item, right):
                    self.grow_left((*left, item), right, shared)

    def _grow_right(self, left: Signed, right: Signed, shared: int) -> None:
        """Extend `right`, which `left` orders, to longer lists that `left` orders."""
        if not self._falls_apart(left, right) and self._needed(left, right, shared):
            self.found.append((left, right))
        if len(right) == self._most:
            return
        ordered = self.known.determined(frozenset(c for c, _ in left))
        idle = self.known.determined(frozenset(c for c, _ in right))
        for item in self._columns:
            if item[0] in ordered and item[0] not in idle:
                self._step()
                if self.known.compatible(right, item, left):
                    self._grow_right(left, (*right, item), shared)

    def _falls_apart(self, left: Signed, right: Signed) -> bool:
        """Whether `left` orders a proper suffix of `right`."""
        return any(self.known.orders(left, right[i:]) for i in range(len(right) - 1, 0, -1))

    def _needed(self, left: Signed, right: Signed, shared: int) -> bool:
        """Whether neither a shorter left list orders `right`, nor both lists without a common column say the same."""
        if self.known.orders(left[:-1], right):
            return False
        fronts = left[:-1], right[:-1]
        if left[-1] == right[-1] and self.known.orders(*fronts) and self.known.orders(*fronts[::-1]):
            return False
        without = ((left[:i] + left[i + 1 :], right[:i] + right[i + 1 :]) for i in range(shared))
        return not any(self.known.orders(*both) for both in without)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            what = f"list order dependencies of {self._most} columns: more than {MOST_STEPS:,} lists to look at"
            raise InputError(message(what, hint=Wording("Lower {lexicographic}, or look at fewer {columns}")))
