"""What discoveries of keys, functional and order dependencies return."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import DependencyRankBy
from tuplewise.engine.report import sql, text
from tuplewise.engine.report.dependencies import Key, Named, NamedDependencies
from tuplewise.engine.report.discovered_result import DiscoveredResult
from tuplewise.engine.report.result import SHOWN_IN_REPR, Chosen, Fields
from tuplewise.engine.report.sections import Heading, Section

if TYPE_CHECKING:
    from tuplewise.engine.od.found import Discovery


class Group(NamedTuple):
    """Dependencies that are listed together.

    Attributes
    ----------
    name : of the list in JSON
    kinds : of `engine.od.dependency` that belong to it
    named : the class of its objects
    short : what a summary calls them; empty where there is one group only
    means : what they say of rows, for the heading of a list
    """

    name: str
    kinds: tuple[int, ...]
    named: type[Named]
    short: str
    means: str


class DependencyResult(DiscoveredResult):
    """Dependencies that hold in a table. Subclasses name the groups that they are listed in."""

    RANKINGS = get_args(DependencyRankBy)
    GROUPS: ClassVar[tuple[Group, ...]]
    _found: Discovery

    def __iter__(self) -> Iterator[Named]:
        for group in self._groups:
            yield from group

    def __repr__(self) -> str:
        best = [str(d) for d, _ in zip(self, range(SHOWN_IN_REPR), strict=False)]
        return self._described_as(best)

    def _summary(self) -> str:
        kinds = [f"{len(listed):,} {group.short}" for group, listed in self._listed_groups() if group.short]
        return super()._summary() + (f": {', '.join(kinds)}" if kinds and len(self) else "")

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "algorithm": self._found.algorithm,
            "algorithm_reason": self._found.algorithm_reason,
            "search": dict(self._found.search),
            "measure": self._measure if self._approximate else None,
            "complete_context": self._found.complete_context,
            "count": len(self._found.dependencies),
        }

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {
            group.name: map(self._record, listed[: chosen.limit])
            for group, listed in self._ranked(chosen)._listed_groups()
        }

    def _cut(self, chosen: Chosen) -> list[str]:
        return [
            f"{listed:,} of {count:,} {things} are listed (limit)"
            for listed, count, things in self._shares(chosen.limit)
            if listed < count
        ]

    def _shares(self, limit: int | None) -> list[tuple[int, int, str]]:
        """How many of how many of which things are listed."""
        return [(sum(len(group[:limit]) for group in self._groups), len(self), self.THINGS[1])]

    def _table(self, chosen: Chosen) -> Fields:
        own = dict.fromkeys(name for group in self.GROUPS for name in group.named.FIELDS)
        kind = ["kind"] if len(self.GROUPS) > 1 else []
        costs = ["rows_to_remove", self._measure] if self._approximate else []
        names = [*kind, *own, *costs]
        return Fields(names, self._ranked(chosen)._records(dict.fromkeys(names), chosen.limit))

    def _records(self, nothing: Mapping[str, None], limit: int | None) -> Iterator[dict[str, Any]]:
        for group, listed in self._listed_groups():
            for one in listed[:limit]:
                values = {name: getattr(one, name) for name in one.FIELDS}
                yield {**nothing, "kind": group.name, **values, **self._cost(one)}

    def _queries(self, chosen: Chosen, dialect: str, table: str | None, tables: Mapping[str, str]) -> Iterator[str]:
        writer = sql.writer_of(self.relation, dialect, table, self._found.options.nulls)
        groups = self._ranked(chosen)._groups
        rules = ((str(d), d.rule) for group in groups for d in group[: chosen.limit])
        return itertools.chain(writer.script(rules), self._more_queries(writer, chosen.limit))

    def _more_queries(self, writer: sql.Writer, limit: int | None) -> Iterator[str]:
        """The queries of what else there is, behind those of the groups."""
        return iter(())

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        """By genuineness where their rows are in this process, else by size, unless ranked otherwise."""
        chosen = Chosen(chosen.rank_by or self._by_default, chosen.limit or most)
        order = ", by genuineness" if chosen.rank_by == "genuineness" else ""
        ranked = self._ranked(chosen)
        return [
            ranked._section(
                group.short or self.THINGS[1], group.means, len(listed),
                [(str(one), self._cost(one)) for one in listed[: chosen.limit]], order,
            )
            for group, listed in ranked._listed_groups()
        ]  # fmt: skip

    def _section(
        self, title: str, means: str, count: int, entries: Sequence[tuple[str, Mapping[str, Any]]], order: str
    ) -> Section:
        """A list of so many. `entries`: the first of them, with what each costs; `order`: what is said of it."""
        costs: list[Heading] = [(name.replace("_", " "), "right") for name in (entries[0][1] if entries else ())]
        rows = [
            [str(i), *(f"{n:,}" if isinstance(n, int) else text.share(n) for n in cost.values()), dependency]
            for i, (dependency, cost) in enumerate(entries, 1)
        ]
        cut = len(entries) < count
        shown = f", the {'best' if order else 'first'} {len(entries):,} of {count:,}" if cut else ""
        note = f"{means[0].upper()}{means[1:]}{order}." if count else "There are none."
        return Section(
            title.capitalize(), "table", [("", "right"), *costs, ("dependency", "code")], rows, note,
            heading=f"{means}{shown}{order}", count=count, cut=cut,
        )  # fmt: skip

    @property
    def _by_default(self) -> DependencyRankBy:
        """What people are shown dependencies by."""
        return "size" if self._order is None else "genuineness"

    @cached_property
    def _order(self) -> NDArray[np.int64] | None:
        """Numbers of the dependencies, by genuineness; None where that can't be told."""
        from tuplewise.engine.profile.genuine import order_of_dependencies

        return order_of_dependencies(self._found)

    def _ranked(self, chosen: Chosen) -> Self:
        """The same with its dependencies in another order."""
        if chosen.rank_by != "genuineness":
            return self
        if self._order is None:
            hint = "The rows are in Spark, and are not counted there again"
            raise InputError(message("rank_by", chosen.rank_by, "'size'", hint))
        ranked = copy.copy(self)
        ranked._found = self._found.take(self._order)
        vars(ranked).pop("_groups", None)
        return ranked

    @cached_property
    def _groups(self) -> list[NamedDependencies[Any]]:
        """The dependencies of each group."""
        kinds = self._found.dependencies.kind
        numbers = [np.flatnonzero(np.isin(kinds, group.kinds)) for group in self.GROUPS]
        return [NamedDependencies(self._found, g.named, n) for g, n in zip(self.GROUPS, numbers, strict=True)]

    def _listed_groups(self) -> list[tuple[Group, NamedDependencies[Any]]]:
        return list(zip(self.GROUPS, self._groups, strict=True))

    @property
    def _approximate(self) -> bool:
        return self._found.removals is not None

    @property
    def _measure(self) -> str:
        measure: str = self._found.options.error_measure
        return measure

    def _cost(self, dependency: Named) -> dict[str, Any]:
        """The rows to remove, where there may be some."""
        if not self._approximate:
            return {}
        error = 1.0 - dependency.error if self._measure == "mu" else dependency.error
        return {"rows_to_remove": dependency.rows_to_remove, self._measure: error}

    def _record(self, dependency: Named) -> Any:
        """One entry of a list in JSON."""
        if isinstance(dependency, Key):
            return list(dependency.columns)
        values = ((name, getattr(dependency, name)) for name in dependency.FIELDS)
        named = {name: list(value) if isinstance(value, tuple) else value for name, value in values}
        return {**named, **self._cost(dependency)}

