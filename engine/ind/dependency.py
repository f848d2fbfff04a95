"""Inclusion dependencies, such as `child.a <= parent.b`: definition, parsing and writing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tuplewise.engine.errors import Fault, RuleError, message, near_hint, number_of
from tuplewise.engine.scanner import BRACKETS, Scanner
from tuplewise.engine.table.schema import quote_name

SIGNS = ("<=", "[=", "⊆", "->", "→")
ACCEPTED = (
    "Accepted: child.a <= parent.b | child[a, b] <= parent[x, y] | child.a, child.b <= parent.x, parent.y | "
    "[t.a][=[u.b] | (t.csv, [a]) -> (u.csv, [b]). "
    'Names that are no plain word stand in `...` or "...".'
)

_END = re.compile(r"\s*(?:[,\])]|\[=|<=|⊆|->|→|\Z)")
_FILE_ENDING = re.compile(r"\.(?:csv|tsv|txt|parquet|orc|jsonl|ndjson|json)(?:\.(?:gz|bz2|zst|lz4|snappy))?$", re.I)
_NO_NAME = re.compile(r"[`\"\[\]()]")


class Attribute(NamedTuple):
    """A column of a table, by names. `str` writes the text that `parse_attribute` reads.

    Examples
    --------
    >>> print(Attribute("orders", "customer"), Attribute("my orders", "a.b"))
    orders.customer `my orders`.`a.b`
    """

    table: str
    column: str

    def __str__(self) -> str:
        return f"{quote_name(self.table)}.{quote_name(self.column)}"


@dataclass(frozen=True, order=True)
class InclusionDependency:
    """`A <= B`: every value of the dependent columns occurs in the referenced columns. Rows with a null don't count.

    Attributes
    ----------
    dependent, referenced : columns, the same number on both sides, at least one; each side has different columns of
        one table

    Raises
    ------
    RuleError : for sides of any other form

    Examples
    --------
    >>> unary = InclusionDependency((Attribute("child", "a"),), (Attribute("parent", "b"),))
    >>> binary = InclusionDependency(
    ...     (Attribute("child", "a"), Attribute("child", "b")), (Attribute("parent", "x"), Attribute("parent", "y")))
    >>> print(unary, binary, sep="; ")
    child.a <= parent.b; child[a, b] <= parent[x, y]
    """

    dependent: tuple[Attribute, ...]
    referenced: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        for side in (self.dependent, self.referenced):
            if problem := _side_problem(side):
                raise RuleError(f"inclusion dependency: {problem}")
        if problem := _size_problem(self.dependent, self.referenced):
            raise RuleError(f"inclusion dependency: {problem}")

    def __str__(self) -> str:
        return f"{write_side(self.dependent)} <= {write_side(self.referenced)}"

    @property
    def size(self) -> int:
        """Number of columns on each side."""
        return len(self.dependent)


def unary(dependent: Attribute, referenced: Attribute) -> InclusionDependency:
    """The dependency between two columns.

    Examples
    --------
    >>> print(unary(Attribute("t", "a"), Attribute("u", "b")))
    t.a <= u.b
    """
    return InclusionDependency((dependent,), (referenced,))


def write_side(side: Sequence[Attribute]) -> str:
    """One side as text: `t.a`, or `t[a, b]` for several columns."""
    if len(side) == 1:
        return str(side[0])
    return f"{quote_name(side[0].table)}[{', '.join(quote_name(a.column) for a in side)}]"


def parse_ind(text: str, tables: Mapping[str, Sequence[str]]) -> InclusionDependency:
    """Parse an inclusion dependency.

    Parameters
    ----------
    text : two sides with `<=`, `⊆`, `[=`, `->` or `→` between them. A side is `t.a`; `t.a, t.b`, in brackets or not;
        `t[a, b]` or `t(a, b)`; or `(t.csv, [a, b])`. Names that are not plain words stand in back-quotes or
        double quotes (doubled inside), or bare if no other reading is possible. A table may have its file's ending.
    tables : the columns of each table, by its name

    Raises
    ------
    RuleError : with the position, what was expected, and names similar to an unknown one

    Examples
    --------
    >>> tables = {"child": ["a", "b c"], "parent": ["x", "y"]}
    >>> print(parse_ind("[child.a, child.b c][=[parent.x, parent.y]", tables))
    child[a, `b c`] <= parent[x, y]
    >>> print(parse_ind("(child.csv, [a]) -> (parent.csv, [y])", tables))
    child.a <= parent.y
    """
    reader = _IndReader(text, tables)
    return InclusionDependency(*reader.whole(reader.sides, "inclusion dependency", ACCEPTED))


def parse_attribute(text: str, tables: Mapping[str, Sequence[str]]) -> Attribute:
    """Parse `table.column`. Raises RuleError as `parse_ind` does.

    Examples
    --------
    >>> parse_attribute("`my orders`.id", {"my orders": ["id"]})
    Attribute(table='my orders', column='id')
    """
    reader = _IndReader(text, tables)
    return reader.whole(reader.attribute, "column", ACCEPTED)


def ind_of_record(record: Mapping[str, Any], tables: Mapping[str, Sequence[str]]) -> InclusionDependency:
    """The dependency of a JSON entry `{"dependent": "t.a", "referenced": "u.b"}`; several columns are a list.

    Raises RuleError for an entry of another form, and for unknown names.

    Examples
    --------
    >>> tables = {"t": ["a", "b"], "u": ["x", "y"]}
    >>> print(ind_of_record({"dependent": ["t.a", "t.b"], "referenced": ["u.x", "u.y"]}, tables))
    t[a, b] <= u[x, y]
    """
    sides = []
    for name in ("dependent", "referenced"):
        given = record.get(name)
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, (list, tuple)) or not names or not all(isinstance(n, str) for n in names):
            raise RuleError(message(f"{name!r} of an inclusion dependency", given, '"table.column", or a list of such'))
        sides.append(tuple(parse_attribute(n, tables) for n in names))
    return InclusionDependency(*sides)


def names_record(side: Sequence[Attribute]) -> str | list[str]:
    """One side for JSON: `"t.a"`, or a list for several columns."""
    return str(side[0]) if len(side) == 1 else [str(a) for a in side]


def _side_problem(side: Sequence[Attribute]) -> str | None:
    """The fault of one side, or None."""
    if not side:
        return "a side without columns"
    other = next((a for a in side if a.table != side[0].table), None)
    if other is not None:
        return f"columns of two tables on one side: {side[0]} and {other}"
    twice = next((a for i, a in enumerate(side) if a in side[:i]), None)
    return None if twice is None else f"a column that stands twice on one side: {twice}"


def _size_problem(dependent: Sequence[Attribute], referenced: Sequence[Attribute]) -> str | None:
    """The fault of sides of different sizes, or None."""
    if len(dependent) == len(referenced):
        return None
    return f"{_counted(dependent)} on the left, {_counted(referenced)} on the right"


def _counted(side: Sequence[Attribute]) -> str:
    return number_of(len(side), "column")


class _IndReader(Scanner):
    """Parser of a text about given tables. `unknown`: a fault for each unknown table or column."""

    def __init__(self, text: str, tables: Mapping[str, Sequence[str]]) -> None:
        super().__init__(text)
        self.tables = tables

    def sides(self) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """Two sides with a sign between them."""
        dependent = self.side()
        if not self.take(*SIGNS):
            raise self.fault("expected a comma or <=")
        at = self.skip_blanks()
        referenced = self.side()
        if not self.unknown and (problem := _size_problem(dependent, referenced)):
            raise Fault(problem, at)
        return dependent, referenced

    def side(self) -> tuple[Attribute, ...]:
        """One side, in any of its spellings."""
        start = self.skip_blanks()
        side = self._desbordante() or self._table_then_list() or self._attributes()
        unknown_here = any(f.at >= start for f in self.unknown)
        if not unknown_here and (problem := _side_problem(side)):
            raise Fault(problem, start)
        return side

    def _desbordante(self) -> tuple[Attribute, ...] | None:
        """`(t.csv, [a, b])`, if it is next."""
        start = self.skip_blanks()
        if self.take("("):
            table = self._table_before(re.compile(r"\s*,\s*\["))
            if table is not None and self.take(",") and self.take("["):
                columns = self._columns(table, "]")
                self.expect(")", ")")
                return columns
        self.at = start
        return None

    def _table_then_list(self) -> tuple[Attribute, ...] | None:
        """`t[a, b]` or `t(a, b)`, if it is next."""
        start = self.skip_blanks()
        table = self._table_before(re.compile(r"\s*(?:\[(?!=)|\()"))
        bracket = None if table is None else self.take(*BRACKETS)
        if table is None or bracket is None:
            self.at = start
            return None
        return self._columns(table, BRACKETS[bracket])

    def _table_before(self, follows: re.Pattern[str]) -> str | None:
        """The next table, if `follows` matches behind it: a quoted name, a known one, or an unknown word."""
        start = self.skip_blanks()
        if self.sees("`", '"'):
            name = self.quoted()
            if follows.match(self.text, self.at):
                return self._known_table(name, start)
            self.at = start
            return None
        for end in self.ends_of(start, self._spelled_tables(), follows):
            self.at = end
            return self._known_table(self.text[start:end], start)
        match = re.compile(rf"([^\s`\"\[\](),]+){follows.pattern}").match(self.text, start)
        if match is None or ("." in match[1] and follows.match("[")):
            return None  # in `t.a[` the fault is behind the column
        self.at = match.end(1)
        return self._known_table(match[1], start)

    def _columns(self, table: str, closing: str) -> tuple[Attribute, ...]:
        """Columns up to the closing bracket, and past it."""
        return tuple(self.separated(lambda: self._of_table(table), closing))

    def _attributes(self) -> tuple[Attribute, ...]:
        """`t.a, t.b`, in brackets or not."""
        bracket = self.take("[", "(")
        return tuple(self.separated(self.attribute, BRACKETS[bracket] if bracket else None))

    def attribute(self) -> Attribute:
        """`table.column`."""
        start = self.skip_blanks()
        if self.sees("`", '"'):
            name = self.quoted()
            if not self.take("."):
                raise self.fault("expected a dot and the name of a column")
            return self._of_table(self._known_table(name, start))
        for end in self.ends_of(start, self._spelled_tables(), re.compile(r"\s*\.")):
            self.at = end
            self.take(".")
            table = self._known_table(self.text[start:end], start)
            if self.sees("`", '"') or self._known_column(table) is not None:
                return self._of_table(table)
        return self._unknown_attribute(start)

    def _of_table(self, table: str) -> Attribute:
        return Attribute(table, self._column(table))

    def _unknown_attribute(self, start: int) -> Attribute:
        """A bare `table.column` with an unknown name: the table is the longest known one, or ends at the first dot."""
        self.at = start
        end = _END.search(self.text, start)
        written = self.text[start : end.start() if end else len(self.text)]
        known = next(iter(self.ends_of(start, self._spelled_tables(), re.compile(r"\s*\."))), None)
        if known is None:
            name, dot, _ = written.partition(".")
            if not name.strip() or _NO_NAME.search(name):
                raise self.fault("expected table.column")
            if not dot:
                raise Fault(f"expected table.column, found {name!r}", start, self._tables_with(name))
            known = start + len(name)
        self.at = known
        table = self._known_table(self.text[start:known].rstrip(), start)
        self.take(".")
        return self._of_table(table)

    def _tables_with(self, column: str) -> str | None:
        """A hint for the name of a column without its table."""
        holders = [str(Attribute(t, column)) for t, columns in self.tables.items() if column in columns]
        return f"Write {' or '.join(holders)}" if holders else None

    def _column(self, table: str) -> str:
        """The next column: a quoted name, a known one, or all text up to a sign."""
        at = self.skip_blanks()
        columns = self.tables.get(table)
        name = self.quoted() if self.sees("`", '"') else self.bare_name(columns or (), _END, _END)
        if columns is not None and name not in columns:
            hint = near_hint(name, list(columns))
            self.unknown.append(Fault(f"table {table!r} has no column of the name {name!r}", at, hint))
        return name

    def _known_column(self, table: str) -> str | None:
        """The next column, if it is a known column of the table without quotes; else None."""
        at = self.skip_blanks()
        ends = self.ends_of(at, self.tables.get(table, ()), _END)
        return self.text[at : ends[0]] if ends else None

    def _spelled_tables(self) -> list[str]:
        """The table names, bare and with each file ending that occurs in the text."""
        endings = re.findall(_FILE_ENDING.pattern.removesuffix("$"), self.text, re.IGNORECASE)
        with_ending = (f"{name}{ending}" for name in self.tables for ending in endings)
        return [*self.tables, *with_ending]

    def _known_table(self, spelled: str, at: int) -> str:
        """The name of a table: as spelled, or without its file ending if that is a known table."""
        bare = _FILE_ENDING.sub("", spelled)
        name = spelled if spelled in self.tables or bare not in self.tables else bare
        if name not in self.tables:
            self.unknown.append(Fault(f"no table of the name {name!r}", at, near_hint(name, list(self.tables))))
        return name
