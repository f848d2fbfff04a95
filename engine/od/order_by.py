"""ORDER BY with fewer columns: omissions and replacements that the order dependencies of a table allow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.implied import SavedOds, check_names, known_ods
from tuplewise.engine.od.lexicographic import Signed, SignedColumn, named, signed
from tuplewise.engine.od.list_od import OrderedColumn

MOST_STEPS = 100_000  # lists that are tried


@dataclass(frozen=True)
class ShortOrder:
    """An ORDER BY that sorts the table in the same way as a given one.

    Attributes
    ----------
    items : its columns with their directions
    shortest : whether there is certainly no shorter one; else `notes` give the reason
    """

    items: tuple[OrderedColumn, ...]
    shortest: bool
    notes: tuple[str, ...] = ()


def shortest_order_by(items: Sequence[tuple[str, str]], source: SavedOds | Discovery) -> ShortOrder:
    """The shortest ORDER BY, over any columns, that sorts the table the same way as a given one.

    The two lists are equivalent (`X -> Y` and `Y -> X` hold): of any two rows, both put the same one first, or both
    leave the order open. "asc" puts nulls first, "desc" nulls last. The result is valid for the table as it was when
    its dependencies were discovered.

    Parameters
    ----------
    items : (name, "asc" or "desc") in order; `read_order_by` reads them from text
    source : the result of `od discover`, in memory or saved. With a limited result, the list is still equivalent, but
        a shorter one may exist.

    Returns
    -------
    ShortOrder
        Of several shortest lists, one over the given columns is preferred; among those, one that keeps the given order
        and directions, then one of columns given earlier. Other columns come last, in the table's order. The list is
        empty if all columns are constant.

    Raises
    ------
    InputError
        For a column that the discovery did not have, with similar names; for another direction; for an approximate
        discovery.

    Notes
    -----
    Columns determined by those in front of them are left out first; let X be the rest. A list Y is equivalent to X iff
    X determines the columns of Y, these determine the columns of X, and no two rows are ordered opposite ways by X and
    Y. So the column sets that X determines and that determine X are tried by size: each in the given order, then in
    every other order whose prefixes are all compatible with X. A column that no other columns determine is in each of
    these sets. After `MOST_STEPS` sets and prefixes the search ends. The result is then the given list without each
    column that can be left out, which may not be the shortest.
    """
    known = known_ods(source)
    for name, direction in items:
        if direction not in ("asc", "desc"):
            raise InputError(message(f"direction of {name!r} in ORDER BY", direction, "'asc' or 'desc'"))
    check_names([name for name, _ in items], known.names)
    given = signed([OrderedColumn(name, "asc" if d == "asc" else "desc") for name, d in items], known.names)
    search = _Reduction(known, given)
    found = named(search.shortest(), known.names)
    notes = []
    if search.gave_up and found:
        notes.append(f"the search ended after {MOST_STEPS:,} lists: there may be a shorter one that sorts alike")
    if known.limited and len(found) > int(known.complete):
        notes.append("the discovery was limited: there may be a shorter one that sorts alike")
    return ShortOrder(found, not notes, tuple(notes))


class _GaveUp(Exception):
    """The search has reached its limit of steps."""


class _Reduction:
    """The lists that are equivalent to one list. `gave_up`: whether there were too many to look at all of them."""

    def __init__(self, known: SavedOds, given: Sequence[SignedColumn]) -> None:
        self._known, self._steps, self.gave_up = known, 0, False
        kept: list[SignedColumn] = []
        for item in given:
            if item[0] not in known.determined(frozenset(c for c, _ in kept)):
                kept.append(item)
        self._given = tuple(kept)
        closure = known.determined(frozenset(c for c, _ in given))
        idle = known.determined(frozenset())
        first = {c: ascends for c, ascends in (*kept, *given) if c not in idle}
        others = {c: True for c in sorted(closure) if c not in first and c not in idle}
        self._among_given, self._among_all = tuple(first.items()), tuple({**first, **others}.items())

    def shortest(self) -> Signed:
        """The shortest of them."""
        best = self._without_what_can_go()
        try:
            for length in range(1, len(best)):
                found = self._of_length(length)
                if found is not None:
                    return found
        except _GaveUp:
            self.gave_up = True
        return best

    def _of_length(self, length: int) -> Signed | None:
        among_given = list(self._determining(self._among_given, length))
        for items in among_given:
            if self._compatible(items):
                return items
        for items in itertools.chain(among_given, self._determining(self._among_all, length)):
            found = next(self._arranged((), items), None)
            if found is not None:
                return found
        return None

    def _determining(self, items: Signed, length: int) -> Iterator[Signed]:
        """The subsets of the items, of one length, that determine all given columns."""
        columns = frozenset(c for c, _ in items)
        needed = tuple(item for item in items if item[0] not in self._known.determined(columns - {item[0]}))
        free = [item for item in items if item not in needed]
        for added in itertools.combinations(free, length - len(needed)) if length >= len(needed) else ():
            self._step()
            chosen = {*needed, *added}
            if self._determine_all(tuple(chosen)):
                yield tuple(item for item in items if item in chosen)

    def _without_what_can_go(self) -> Signed:
        """The list without each column that can be left out, the last one first."""
        best = self._given
        for item in reversed(self._given):
            shorter = tuple(kept for kept in best if kept != item)
            if self._determine_all(shorter) and self._compatible(shorter):
                best = shorter
        return best

    def _arranged(self, front: Signed, items: Signed) -> Iterator[Signed]:
        """Orders and directions of the items that follow `front` and are compatible with the given list."""
        if not items:
            yield front
            return
        for column, given in items:
            for ascends in (given, not given):
                self._step()
                if self._known.compatible(front, (column, ascends), self._given):
                    left = tuple(item for item in items if item[0] != column)
                    yield from self._arranged((*front, (column, ascends)), left)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _GaveUp

    def _compatible(self, items: Signed) -> bool:
        return all(self._known.compatible(items[:i], item, self._given) for i, item in enumerate(items))

    def _determine_all(self, items: Sequence[SignedColumn]) -> bool:
        determined = self._known.determined(frozenset(c for c, _ in items))
        return all(column in determined for column, _ in self._given)
