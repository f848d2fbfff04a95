"""Derivation of list order dependencies from the set-based ones of a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.od.dependency import ASCENDING
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.implied import SavedOds, known_ods
from tuplewise.engine.od.lexicographic import Signed, SignedColumn, named
from tuplewise.engine.od.list_od import ListOd
from tuplewise.gpu_kernels.words import members

MOST_STEPS = 1_000_000


def derive_list_ods(source: SavedOds | Discovery, most: int) -> list[ListOd]:
    """Derive the list order dependencies `X -> Y` of at most `most` columns a side, without implied ones.

    The result has every `X -> Y` that the discovered dependencies imply, over lists of at most `most` different
    columns, if

    1. Y is no prefix of X: it is not trivial;
    2. no column of either list is determined by the columns in front of it, where it would order nothing. So constants
       are in no list, and a dependency that only says that X determines Y's columns is left to the constancies;
    3. no proper prefix of X orders Y: X is as short as possible;
    4. X orders no proper suffix of Y: Y can't be split (`X -> Y` and `X -> Z` imply `X -> YZ`);
    5. no column of Z, the longest common prefix of X and Y, can be left out of both lists;
    6. X and Y do not end in the same item behind lists that order each other (any item may follow such lists);
    7. it stands for its equivalents: Z is ascending and in the table's order of columns, and the column of X behind Z
       is ascending. (The order and the directions of Z don't matter, and all directions behind Z may be reversed.)

    Every list dependency of that length that holds follows from these and the constancies, by 1 to 7.

    Parameters
    ----------
    source : the result of `od discover`, in memory or saved. With a limited result (`max_context`, a time limit), list
        dependencies may be missing, and the list may have some that follow from missing ones.
    most : 1 or more

    Returns
    -------
    list of ListOd
        By columns of both sides together, then by the columns' positions, "asc" first.

    Raises
    ------
    InputError
        If more than `MOST_STEPS` lists would have to be tried; for an approximate discovery.

    Notes
    -----
    Let A and B be the columns behind Z in X and in Y. Then `Z: A ~ B` holds, and neither is constant under Z (2), so
    some `C: A ~ B` was discovered with C inside Z. The search starts at those. It extends X as long as X and [Z, B]
    order no rows in opposite ways, and Y as long as X orders it. Cost: a look-up for each list tried and each column
    that may follow it; their number is a power of the number of columns, with `most` as exponent.
    """
    if most < 1:
        raise InputError(message("columns of a list", most, "1 or more"))
    search = _Derivation(known_ods(source), most)
    for shared, first, second in search.starts():
        search.grow_left((*shared, first), (*shared, second), len(shared))
    found = sorted(search.found, key=lambda od: (len(od[0]) + len(od[1]), _place(od[0]), _place(od[1])))
    names = search.known.names
    return [ListOd(named(left, names), named(right, names)) for left, right in found]


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
                        if not pair & self.known.determined(shared) and not any(
                            column in self.known.determined(frozenset(ordered[:i])) for i, column in enumerate(ordered)
                        ):
                            yield ordered

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
        falls_apart = any(self.known.orders(left, right[i:]) for i in range(len(right) - 1, 0, -1))
        if not falls_apart and self._needed(left, right, shared):
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
