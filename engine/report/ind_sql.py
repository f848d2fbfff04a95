"""Inclusion dependencies as SQL: a query for each that lists missing values, in every dialect of rules as SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tuplewise.engine.errors import InputError, message, near_names
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency
from tuplewise.engine.ind.found import TableFound
from tuplewise.engine.ind.values import family_of
from tuplewise.engine.report import sql
from tuplewise.engine.table.relation import TypeName

_TEXT = {"spark": "STRING", "duckdb": "VARCHAR", "postgres": "TEXT", "ansi": "VARCHAR(65535)"}


def missing(own: Iterable[str], referenced: str, same: str) -> str:
    """The condition that a row has a value in each of its `own` columns and no `same` row r in the referenced table."""
    filled = " AND ".join(f"{column} IS NOT NULL" for column in own)
    return f"{filled}\n  AND NOT EXISTS (SELECT 1 FROM {referenced} AS r WHERE {same})"


@dataclass(frozen=True)
class IndWriter:
    """Writes queries on several tables.

    Attributes
    ----------
    tables : the searched or checked tables
    names : names of tables in the database, as written there; other tables keep the names they were loaded under
    as_text : whether values are compared as text

    Raises
    ------
    InputError : for another dialect, an unknown table, or a text that is no name
    """

    tables: tuple[TableFound, ...]
    dialect: str
    names: Mapping[str, str] = field(default_factory=dict)
    as_text: bool = False

    def __post_init__(self) -> None:
        sql.check_dialect(self.dialect)
        known = [table.name for table in self.tables]
        for name, given in self.names.items():
            if name not in known:
                raise InputError(message("SQL name for an unknown table", name, hint=near_names(name, known)))
            sql.table_parts(given)

    def script(self, inds: Iterable[InclusionDependency]) -> Iterator[str]:
        """The heading, then one query a dependency."""
        yield self.heading()
        for ind in inds:
            yield "\n" + self.query(ind)

    def heading(self) -> str:
        """Comments for the reader of the queries."""
        lines = [
            f"Each query lists the missing values of one inclusion dependency (SQL dialect: {self.dialect}), and how "
            "many rows have each. It is empty where the dependency holds.",
            "Rows with a null in a dependent column are left out. A null in a referenced column hides nothing.",
        ]
        for table in self.tables:
            listed = ", ".join(f"{self._quote(c.name)} {c.type}" for c in table.columns)
            lines.append(f"Table {self._table(table.name)}: {listed}.")
        types = {c.type for table in self.tables for c in table.columns}
        if self.as_text:
            lines.append("Values are compared as text, as they stood in the files: load the tables as text.")
        elif types & {"date", "timestamp"}:
            lines.append("A date is its midnight in UTC: set the session's time zone to UTC.")
        if self.dialect == "ansi":
            lines.append(
                "Text is compared by bytes with case kept, NaN equals itself, -0.0 is 0.0: set the collation, and mind "
                "your engine's rule for NaN."
            )
        return "".join(map(sql.comment, lines))

    def query(self, ind: InclusionDependency) -> str:
        """The query that lists the missing values of one dependency, the most frequent first."""
        own = [f"d.{self._quote(a.column)}" for a in ind.dependent]
        theirs = [f"r.{self._quote(b.column)}" for b in ind.referenced]
        same = " AND ".join(f"{self._compared(b)} = {self._compared(a)}" for a, b in zip(own, theirs, strict=True))
        count = self._quote(sql.unused("rows_missing", [a.column for a in ind.dependent]))
        order = ", ".join([f"{count} DESC", *own])
        apart = [] if self.as_text else [
            sql.comment(f"tuplewise does not compare {a} with {b}, which a database may")
            for a, b in zip(self._types(ind.dependent), self._types(ind.referenced), strict=True)
            if family_of(a) != family_of(b)
        ]  # fmt: skip
        return (
            f"{sql.comment(str(ind))}{''.join(apart)}"
            f"SELECT {', '.join(own)}, count(*) AS {count}\n"
            f"FROM {self._table(ind.dependent[0].table)} AS d\n"
            f"WHERE {missing(own, self._table(ind.referenced[0].table), same)}\n"
            f"GROUP BY {', '.join(own)}\n"
            f"ORDER BY {order};\n"
        )

    def _types(self, attributes: Iterable[Attribute]) -> list[TypeName]:
        types = {(table.name, column.name): column.type for table in self.tables for column in table.columns}
        return [types[a.table, a.column] for a in attributes]

    def _compared(self, column: str) -> str:
        return f"CAST({column} AS {_TEXT[self.dialect]})" if self.as_text else column

    def _quote(self, name: str) -> str:
        return sql.quote(name, self.dialect)

    def _table(self, name: str) -> str:
        parts = sql.table_parts(self.names[name]) if name in self.names else [name]
        return ".".join(map(self._quote, parts))
