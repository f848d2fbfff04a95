"""ORDER BY with fewer columns: what the order dependencies of a table allow to leave out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.implied import SavedOds, check_names, known_ods
from tuplewise.engine.od.lexicographic import SignedColumn, signed
from tuplewise.engine.od.list_od import OrderedColumn

MOST_COLUMNS = 12
MOST_STEPS = 100_000

Signed = tuple[SignedColumn, ...]


def shortest_order_by(items: Sequence[tuple[str, str]], source: SavedOds | Discovery) -> list[OrderedColumn]:
    """The shortest ORDER BY over the given one's columns that sorts the table the same way.

    The two are equivalent: rows that one sorts before, behind or beside each other are so sorted by the other
    (`X -> Y` and `Y -> X` both hold). "asc" is nulls first, "desc" nulls last. It is for the table as it was when it
    was discovered.

    Parameters
    ----------
    items : (name, "asc" or "desc") in order; `read_order_by` reads them from text
    source : what `od discover` found, here or saved. Where that is limited, the result is still equivalent, but there
        may be a shorter one.

    Returns
    -------
    list of OrderedColumn
        Pairs (name, direction). Of several of the same length one that keeps the given order and directions is
        preferred, then one of columns given earlier. Empty where all columns are constant.

    Raises
    ------
    InputError
        For a column that the discovery did not have, with names near to it; another direction; an approximate
        discovery.

    Notes
    -----
    Columns determined by those in front of them are left out first. Of what is left, Y over some columns of X is
    equivalent iff these determine the others and no two rows are ordered opposite ways by X and Y. So the column sets
    that determine X are tried by size, each in the given order, then in every other in which each prefix is compatible
    with X. Beyond `MOST_COLUMNS` columns or `MOST_STEPS` prefixes the result is the given list without each column
    that can go, which may not be the shortest.
    """
    known = known_ods(source)
    for name, direction in items:
        if direction not in ("asc", "desc"):
            raise InputError(message(f"direction of {name!r} in ORDER BY", direction, "'asc' or 'desc'"))
    check_names([name for name, _ in items], known.names)
    given = signed([OrderedColumn(name, "asc" if d == "asc" else "desc") for name, d in items], known.names)
    search = _Search(known, given)
    return [OrderedColumn(known.names[c], "asc" if ascends else "desc") for c, ascends in search.shortest()]


class _Search:
    """The lists that are equivalent to one list."""

    def __init__(self, known: SavedOds, given: Sequence[SignedColumn]) -> None:
        self._known, self._steps = known, 0
        kept: list[SignedColumn] = []
        for item in given:
            if item[0] not in known.determined(frozenset(c for c, _ in kept)):
                kept.append(item)
        self._given = tuple(kept)

    def shortest(self) -> Signed:
        """The shortest of them."""
        best = self._without_what_can_go()
        if len(self._given) > MOST_COLUMNS:
            return best
        for length in range(1, len(best)):
            chosen = [items for items in itertools.combinations(self._given, length) if self._determine_all(items)]
            for items in chosen:
                if self._compatible(items):
                    return items
            for items in chosen:
                found = next(self._arranged((), items), None)
                if found is not None:
                    return found
        return best

    def _without_what_can_go(self) -> Signed:
        """The list without each column that can go, the last first."""
        best = self._given
        for item in reversed(self._given):
            shorter = tuple(kept for kept in best if kept != item)
            if self._determine_all(shorter) and self._compatible(shorter):
                best = shorter
        return best

    def _arranged(self, front: Signed, items: Signed) -> Iterator[Signed]:
        """Lists of the items, in any order and direction, that begin with `front` and are compatible with the given."""
        if not items:
            yield front
            return
        for column, given in items:
            for ascends in (given, not given):
                self._steps += 1
                if self._steps > MOST_STEPS:
                    return
                if self._known.compatible(front, (column, ascends), self._given):
                    left = tuple(item for item in items if item[0] != column)
                    yield from self._arranged((*front, (column, ascends)), left)

    def _compatible(self, items: Signed) -> bool:
        return all(self._known.compatible(items[:i], item, self._given) for i, item in enumerate(items))

    def _determine_all(self, items: Sequence[SignedColumn]) -> bool:
        determined = self._known.determined(frozenset(c for c, _ in items))
        return all(column in determined for column, _ in self._given)
