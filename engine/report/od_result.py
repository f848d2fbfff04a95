"""What `discover_ods` returns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tuplewise.engine.errors import InputError, Wording
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING
from tuplewise.engine.od.derive import derive_list_ods
from tuplewise.engine.od.implied import SavedOds
from tuplewise.engine.od.list_od import ListOd, read_order_by, write_order
from tuplewise.engine.od.order_by import shortest_order_by
from tuplewise.engine.report import sql
from tuplewise.engine.report.dependencies import Constancy, OrderCompatibility
from tuplewise.engine.report.dependency_result import DependencyResult, Group
from tuplewise.engine.report.order_by import COMMAND
from tuplewise.engine.report.result import Chosen, Fields
from tuplewise.engine.report.sections import Section

VIOLATED = "(t is before u on the left, or equal to it, and behind it on the right)"
LISTS = "lists, derived from the above (rows sorted by the left are sorted by the right)"


class OdResult(DependencyResult):
    """The minimal set-based order dependencies that hold in a table.

    Attributes
    ----------
    constants : sequence of Constancy (`X: [] -> A`), by size of the context, then column positions
    order_compatible : sequence of OrderCompatibility (`X: A ~ B`), in the same order
    relation, partial, notes, device, device_reason, timings_seconds : as of every Result

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> pay = pd.DataFrame({"rank": [1, 2, 3, 3], "pay": [10, 20, 20, 20], "left": [9, 5, 4, 1]})
    >>> found = tw.discover_ods(pay)
    >>> print(*found.constants, *found.order_compatible, sep="; ")
    rank -> pay; left -> rank; left -> pay; []: rank ~ pay; []: rank ~ left desc; []: pay ~ left desc
    """

    COMMAND = "od discover"
    THINGS = ("order dependency", "order dependencies")
    SMALLER = "more order dependencies"
    GROUPS = (
        Group(
            "constant", (CONSTANT,), Constancy, "constant",
            "constant (rows that are equal on the left have one value on the right)",
        ),
        Group(
            "order_compatible", (ASCENDING, DESCENDING), OrderCompatibility, "order compatible",
            "order compatible (among rows that are equal on what is in brackets, where one rises the other never "
            "falls, with desc never rises)",
        ),
    )  # fmt: skip
    ALL = ".constants, .order_compatible, .to_pandas()"

    @property
    def constants(self) -> Sequence[Constancy]:
        return self._groups[0]

    @property
    def order_compatible(self) -> Sequence[OrderCompatibility]:
        return self._groups[1]

    @property
    def lexicographic(self) -> list[ListOd]:
        """Dependencies between lists that follow, such as month, week -> quarter. Empty without `lexicographic=N`.

        Each is of at most N columns on each side, and none follows from the others and the constancies.
        """
        return self._derived[0]

    def _noted(self) -> list[str]:
        return [*super()._noted(), *self._derived[1]]

    def shortest_order_by(self, columns: str) -> str:
        """The shortest ORDER BY that sorts this table as a given one does. Nulls come first, with `desc` last.

        Where there may be a shorter one, as the discovery was limited or there was too much to look at, a line in the
        log says so.

        Examples
        --------
        >>> import pandas as pd, tuplewise as tw
        >>> days = pd.DataFrame({"quarter": [1, 1, 2], "month": [1, 3, 4], "day": [5, 2, 1]})
        >>> tw.discover_ods(days).shortest_order_by("quarter, month desc, day")
        'quarter, month desc'
        """
        items = read_order_by(columns, self.relation.column_names)
        found = shortest_order_by(items, self.known)
        for note in found.notes:
            logging.getLogger("tuplewise").warning("%s: %s", COMMAND, note)
        return write_order(found.items) or "[]"

    @cached_property
    def known(self) -> SavedOds:
        """What follows from these. Raises InputError where rows may break them (error above 0)."""
        return SavedOds.of(self._found)

    @cached_property
    def _derived(self) -> tuple[list[ListOd], list[str]]:
        """What was derived, and what is to be said of it: a discovery is not lost where there is too much to derive."""
        most = self._found.options.lexicographic
        if most is None:
            return [], []
        try:
            return derive_list_ods(self.known, most), []
        except InputError as reason:
            return [], [Wording("no list-based dependencies were derived: {}", reason.wording)]

    @property
    def _derives(self) -> bool:
        """Whether dependencies between lists were asked for."""
        return self._found.options.lexicographic is not None

    @property
    def _facts(self) -> dict[str, Any]:
        return {**super()._facts, **({"lexicographic_count": len(self.lexicographic)} if self._derives else {})}

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        lists = {"lexicographic": map(str, self.lexicographic[: chosen.limit])} if self._derives else {}
        return {**lists, **super()._lists(chosen)}

    def _more_queries(self, writer: sql.Writer, limit: int | None) -> Iterator[str]:
        for od in self.lexicographic[:limit]:
            left, right = ([(item.name, item.direction == "asc") for item in side] for side in (od.left, od.right))
            yield "\n" + writer.order_query(left, right, f"{od} {VIOLATED}")

    def _shares(self, limit: int | None) -> list[tuple[int, int, str]]:
        lists = (len(self.lexicographic[:limit]), len(self.lexicographic), "dependencies between lists")
        return [*super()._shares(limit), lists]

    def _table(self, chosen: Chosen) -> Fields:
        names, records = super()._table(chosen)
        if not self._derives:
            return Fields(names, records)
        return Fields([*names, "list"], self._with_lists(names, records, chosen))

    def _with_lists(
        self, names: Sequence[str], records: Iterable[Mapping[str, Any]], chosen: Chosen
    ) -> Iterator[Mapping[str, Any]]:
        yield from ({**record, "list": None} for record in records)
        for od in self.lexicographic[: chosen.limit]:
            yield {**dict.fromkeys(names), "kind": "lexicographic", "list": str(od)}

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        groups = super()._sections(chosen, most, html=html)
        if not self.lexicographic:
            return groups
        derived: list[tuple[str, Mapping[str, Any]]] = [
            (str(od), {}) for od in self.lexicographic[: chosen.limit or most]
        ]
        return [*groups, self._section("derived", LISTS, len(self.lexicographic), derived, "")]
