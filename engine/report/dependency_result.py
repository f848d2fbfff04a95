"""What discoveries of keys, functional and order dependencies return: every form that dependencies are handed on in."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import DependencyRankBy
from tuplewise.engine.report import csv, dependency_text, html, json, list_page, model, sql, text
from tuplewise.engine.report.dependencies import Key, Named, NamedDependencies
from tuplewise.engine.report.dependency_text import Group, Shown
from tuplewise.engine.report.discovery_result import SHOWN_IN_REPR, DiscoveryResult

if TYPE_CHECKING:
    import pandas as pd

    from tuplewise.engine.od.found import Discovery


class DependencyResult(DiscoveryResult):
    """Dependencies that hold in a table. Subclasses name the groups that they are listed in."""

    COMMAND: ClassVar[str]
    THINGS: ClassVar[tuple[str, str]]
    GROUPS: ClassVar[tuple[Group, ...]]
    MORE: ClassVar[str]

    def __len__(self) -> int:
        return len(self._discovery.dependencies)

    def __iter__(self) -> Iterator[Named]:
        for group in self._groups:
            yield from group

    def __repr__(self) -> str:
        best = [str(d) for d, _ in zip(self, range(SHOWN_IN_REPR), strict=False)]
        return self._described(*self.THINGS, best, self.MORE)

    def _repr_html_(self) -> str:
        shown = self._ranked(self._by_default)._shown(text.SHOWN)
        return html.dependencies_html(self._heading, self.THINGS, shown, self._by_default)

    def to_dict(self, *, rank_by: DependencyRankBy | None = None, limit: int | None = None) -> dict[str, Any]:
        """The whole result as the command line's `--format json` writes it; the first `limit` of each list."""
        heading = self._heading_of_list(limit)
        document = {**heading, "result": dict(heading["result"])}
        lists = self._ranked(rank_by)._lists(limit)
        document["result"].update((name, list(entries)) for name, entries in lists.items())
        return document

    def to_json(self, *, rank_by: DependencyRankBy | None = None, limit: int | None = None) -> str:
        """The whole result as JSON text."""
        return "".join(self.pieces("json", rank_by=rank_by, limit=limit))

    def to_csv(self, *, rank_by: DependencyRankBy | None = None, limit: int | None = None) -> str:
        """One line a dependency, with a header: the columns of `to_pandas`, names with commas between them."""
        return "".join(self.pieces("csv", rank_by=rank_by, limit=limit))

    def to_pandas(self, *, rank_by: DependencyRankBy | None = None, limit: int | None = None) -> pd.DataFrame:
        """One row a dependency, with the fields that it has in JSON; several names are a tuple.

        Where rows may have to be removed (error above 0), rows_to_remove follows, and g3, their share, or the error by
        the measure that was asked for.
        """
        import pandas as pd

        return pd.DataFrame(self._ranked(rank_by)._rows(limit), columns=self._fields)

    def to_html(self, *, rank_by: DependencyRankBy | None = None, limit: int | None = None) -> str:
        """One page for a browser: the first of each list (500 unless limited) in a table to search and to sort."""
        ranked_by = rank_by or self._by_default
        shown = self._ranked(ranked_by)._shown(limit or list_page.MOST)
        return list_page.dependencies_page(self._heading, self.THINGS, shown, ranked_by)

    def to_sql(
        self,
        dialect: str = "spark",
        *,
        table: str | None = None,
        rank_by: DependencyRankBy | None = None,
        limit: int | None = None,
    ) -> str:
        """For each dependency a query that lists the pairs of rows that violate it.

        Parameters
        ----------
        dialect : "spark", "duckdb" or "ansi"
        table : name of the table in the database, as one writes it there (`db.orders`, `"my db".orders`);
            default: the name that the table was loaded under.
        """
        return "".join(self.pieces("sql", dialect=dialect, table=table, rank_by=rank_by, limit=limit))

    def pieces(
        self,
        form: str,
        *,
        rank_by: DependencyRankBy | None = None,
        limit: int | None = None,
        dialect: str = "spark",
        table: str | None = None,
    ) -> Iterator[str]:
        """The result as "json", "csv", "sql" or "html" in pieces of text, for results too long to hold as one.

        `rank_by`: "genuineness", how much more there is to a dependency than chance, best first, or "size", by columns
        of its context and their positions; None: that.
        """
        if limit is not None and limit < 1:
            raise InputError(message("limit", limit, "1 or more"))
        ranked = self._ranked(rank_by)
        if form == "json":
            return json.pieces(self._heading_of_list(limit), *ranked._lists(limit).values())
        if form == "csv":
            return csv.pieces(ranked._rows(limit), self._fields)
        if form == "sql":
            writer = self._sql_writer(dialect, table)
            rules = ((str(d), d.rule) for group in ranked._groups for d in group[:limit])
            return itertools.chain(writer.script(rules), self._more_queries(writer, limit))
        if form == "html":
            return iter([self.to_html(rank_by=rank_by, limit=limit)])
        raise InputError(message("format", form, "'json', 'csv', 'sql' or 'html'"))

    def to_text(
        self,
        *,
        rank_by: DependencyRankBy | None = None,
        limit: int | None = None,
        verbose: bool = False,
        width: int | None = None,
        color: bool = False,
        command_line: bool = False,
    ) -> str:
        """A summary and the first dependencies of each kind (20 unless limited) for people, by genuineness where their
        rows are in this process, else by size.

        Where there are more, its last line says how to get them: here, or with `command_line` there.
        """
        ranked_by = rank_by or self._by_default
        shown = self._ranked(ranked_by)._shown(limit or text.SHOWN)
        parts = dependency_text.parts(self._heading, self.THINGS, shown, ranked_by=ranked_by, verbose=verbose)
        if any(len(s.entries) < s.count for s in shown):
            parts += ["", text.MORE_THERE if command_line else text.MORE_HERE]
        return text.render(parts, width=width, color=color)

    @property
    def _discovery(self) -> Discovery:
        found: Discovery = self._found
        return found

    @property
    def _by_default(self) -> DependencyRankBy:
        """What people are shown dependencies by."""
        return "size" if self._order is None else "genuineness"

    @cached_property
    def _order(self) -> NDArray[np.int64] | None:
        """Numbers of the dependencies, by genuineness; None where that can't be told."""
        from tuplewise.engine.profile.genuine import order_of_dependencies

        return order_of_dependencies(self._discovery)

    def _ranked(self, by: DependencyRankBy | None) -> Self:
        """The same with its dependencies in another order."""
        if by not in (None, *get_args(DependencyRankBy)):
            raise InputError(message("rank_by", by, ", ".join(map(repr, get_args(DependencyRankBy)))))
        if by != "genuineness":
            return self
        if self._order is None:
            raise InputError(message("rank_by", by, "'size'", "The rows are in Spark, and are not counted there again"))
        ranked = copy.copy(self)
        ranked._found = self._discovery.take(self._order)
        vars(ranked).pop("_groups", None)
        return ranked

    @cached_property
    def _groups(self) -> list[NamedDependencies[Any]]:
        """The dependencies of each group."""
        kinds = self._discovery.dependencies.kind
        numbers = [np.flatnonzero(np.isin(kinds, group.kinds)) for group in self.GROUPS]
        return [NamedDependencies(self._discovery, g.named, n) for g, n in zip(self.GROUPS, numbers, strict=True)]

    @property
    def _approximate(self) -> bool:
        return self._discovery.removals is not None

    @property
    def _measure(self) -> str:
        measure: str = self._discovery.options.error_measure
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

    def _lists(self, limit: int | None) -> dict[str, Iterable[Any]]:
        """The lists that end the document, by name: one a group, and before them what else there is."""
        return {
            group.name: map(self._record, listed[:limit])
            for group, listed in zip(self.GROUPS, self._groups, strict=True)
        }

    def _more_queries(self, writer: sql.Writer, limit: int | None) -> Iterator[str]:
        """The queries of what else there is, behind those of the groups."""
        return iter(())

    @property
    def _more_counts(self) -> dict[str, int]:
        """How many there are of what else there is, by what JSON calls it."""
        return {}

    @property
    def _fields(self) -> list[str]:
        """Columns of CSV and of data frames."""
        own = dict.fromkeys(name for group in self.GROUPS for name in group.named.FIELDS)
        kind = ["kind"] if len(self.GROUPS) > 1 else []
        return [*kind, *own, *(["rows_to_remove", self._measure] if self._approximate else [])]

    def _rows(self, limit: int | None) -> Iterator[dict[str, Any]]:
        nothing = dict.fromkeys(self._fields)
        for group, listed in zip(self.GROUPS, self._groups, strict=True):
            for one in listed[:limit]:
                values = {name: getattr(one, name) for name in one.FIELDS}
                row = {**nothing, "kind": group.name, **values, **self._cost(one)}
                yield {name: row[name] for name in nothing}

    def _shown(self, limit: int) -> list[Shown]:
        """The first dependencies of each group, for people."""
        return [
            Shown(group.means, group.short, len(listed), [(str(d), self._cost(d)) for d in listed[:limit]])
            for group, listed in zip(self.GROUPS, self._groups, strict=True)
        ]

    def _heading_of_list(self, limit: int | None) -> Mapping[str, Any]:
        """The heading of lists that may be cut, which notes say."""
        cut = [
            f"{listed:,} of {count:,} {things} are listed (limit)"
            for listed, count, things in self._listed(limit)
            if listed < count
        ]
        return {**self._heading, "notes": [*self._heading["notes"], *cut]} if cut else self._heading

    def _listed(self, limit: int | None) -> list[tuple[int, int, str]]:
        """How many of how many of which things are listed."""
        return [(sum(len(group[:limit]) for group in self._groups), len(self), self.THINGS[1])]

    @cached_property
    def _heading(self) -> dict[str, Any]:
        found = self._discovery
        document = model.found_heading(
            self.COMMAND, found, options=self._options, notes=self.notes, total_seconds=self._total_seconds
        )
        document["result"] = {
            "algorithm": found.algorithm,
            "algorithm_reason": found.algorithm_reason,
            "search": dict(found.search),
            "measure": self._measure if self._approximate else None,
            "complete_context": found.complete_context,
            "count": len(self),
            **self._more_counts,
            **{name: [] for name in self._lists(1)},
        }
        return document
