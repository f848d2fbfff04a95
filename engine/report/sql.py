"""Rules as SQL: one query a rule that lists its violations, for Spark SQL, DuckDB, PostgreSQL or standard SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, get_args

from tuplewise.engine.dc.constraint import Constant, DenialConstraint, Operator, Predicate
from tuplewise.engine.errors import InputError, RuleError, message
from tuplewise.engine.report.sql_literal import literal
from tuplewise.engine.report.text import visible
from tuplewise.engine.table.relation import Relation, TypeName

Dialect = Literal["spark", "duckdb", "postgres", "ansi"]
DIALECTS: tuple[str, ...] = get_args(Dialect)
Ordered = tuple[str, bool]
"""An item of ORDER BY: a column, and whether it is ascending."""

_SQL_OPERATOR = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def check_dialect(dialect: str) -> None:
    """Raise InputError for an unknown dialect."""
    if dialect not in DIALECTS:
        raise InputError(message("dialect", dialect, ", ".join(map(repr, DIALECTS))))


def quote(name: str, dialect: str) -> str:
    """The quoted name of a column or table."""
    mark = "`" if dialect == "spark" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def table_parts(text: str) -> list[str]:
    """The parts of a table's name: `db.orders`, `"my db"."a.b"`. Dots inside quotes belong to a part.

    Raises InputError for an open quote or an empty part.
    """
    parts, part, mark, i = [], "", "", 0
    while i < len(text):
        char = text[i]
        if mark and char == mark:
            if text[i + 1 : i + 2] == mark:
                part += char
                i += 1
            else:
                mark = ""
        elif mark:
            part += char
        elif char in '"`' and not part:
            mark = char
        elif char == ".":
            parts.append(part)
            part = ""
        else:
            part += char
        i += 1
    parts.append(part)
    if mark or not all(parts):
        allowed = 'a name such as orders, db.orders, "my db"."a.b"'
        raise InputError(message("SQL table name", text, allowed))
    return parts


def comment(text: str) -> str:
    """A one-line comment. A line end in a name is spelled out, so that nothing runs on behind the comment."""
    return f"-- {visible(text)}\n"


def by_bytes(column: str, type_: TypeName | None, dialect: str) -> str:
    """A column of this type as it is ordered: in PostgreSQL text has an order of its own."""
    return f'{column} COLLATE "C"' if dialect == "postgres" and type_ == "text" else column


def condition(
    p: Predicate, dialect: str, nulls: str, types: Mapping[str, TypeName | None] | None = None, *, roles: bool = True
) -> str:
    """One predicate. As a value, null equals itself and is lower than every other value.

    `types`: the columns' types, for the literals of constants; None: unknown. `roles`: whether t or u is written.
    """
    types = types or {}
    x = f"{p.left_role}.{quote(p.left, dialect)}" if roles else quote(p.left, dialect)
    if p.operator in ("is", "is not"):
        return f"{x} {p.operator.upper()} NULL"
    ordered = x if p.operator in ("==", "!=") else by_bytes(x, types.get(p.left), dialect)
    if isinstance(p.right, Constant):
        value = literal_for(p.right, types.get(p.left), p.left, dialect)
        plain = f"{ordered} {_SQL_OPERATOR[p.operator]} {value}"
        below = nulls == "value" and p.operator in ("!=", "<", "<=")
        return f"({plain} OR {x} IS NULL)" if below else plain
    y = f"{p.right_role}.{quote(p.right, dialect)}" if roles else quote(p.right, dialect)
    plain = f"{ordered} {_SQL_OPERATOR[p.operator]} {y}"
    if nulls == "unknown":
        return plain
    same = f"{x} <=> {y}" if dialect == "spark" else f"{x} IS NOT DISTINCT FROM {y}"
    return {
        "==": same,
        "!=": f"NOT ({same})" if dialect == "spark" else f"{x} IS DISTINCT FROM {y}",
        "<": f"({plain} OR ({x} IS NULL AND {y} IS NOT NULL))",
        "<=": f"({plain} OR {x} IS NULL)",
        ">": f"({plain} OR ({x} IS NOT NULL AND {y} IS NULL))",
        ">=": f"({plain} OR {y} IS NULL)",
    }[p.operator]


def literal_for(constant: Constant, type_: TypeName | None, column: str, dialect: str) -> str:
    """A literal of the column's type, or of its own type beside a column without values (check_types allows it)."""
    own: TypeName = "text" if constant.type == "null" else constant.type
    try:
        return literal(constant, type_ or own, column, dialect)
    except RuleError:
        return literal(constant, own, column, dialect)


def writer_of(relation: Relation, dialect: str, table: str | None, nulls: str) -> Writer:
    """The writer of queries on a table. `table`: its name in the database; None: the name that it was loaded under.

    Raises InputError for another dialect, or a text that is no name.
    """
    check_dialect(dialect)
    parts = [relation.name] if table is None else table_parts(table)
    return Writer(relation.column_names, [c.type for c in relation.columns], parts, dialect, nulls)


def unused(wanted: str, taken: Sequence[str]) -> str:
    """`wanted`, with a number if `taken` has the name in any case."""
    used = {name.casefold() for name in taken}
    name, number = wanted, 2
    while name.casefold() in used:
        name, number = f"{wanted}_{number}", number + 1
    return name


@dataclass(frozen=True)
class Writer:
    """Writes queries on one table.

    Attributes
    ----------
    columns : all column names of the table, in order; `types` their types, for the heading and for constants; None of a
        type: unknown
    table : parts of the table's name (catalog, schema, name, or fewer).
    nulls : "unknown" or "value": the rule that the constraints were found under.
    key : columns that are listed first for each row
    key_tells_apart : whether no two rows are equal in all of them (null as a value); rows need no number then
    """

    columns: Sequence[str]
    types: Sequence[TypeName | None]
    table: Sequence[str]
    dialect: str
    nulls: str
    key: Sequence[str] = ()
    key_tells_apart: bool = False

    def heading(self) -> str:
        """Comments for the reader of the queries."""
        names = ".".join(quote(part, self.dialect) for part in self.table)
        listed = ", ".join(f"{quote(c, self.dialect)} {t}" for c, t in zip(self.columns, self.types, strict=True))
        lines = [
            f"Each query lists the violations of one rule in table {names} (SQL dialect: {self.dialect}).",
            f"Column types that the rules were found with: {listed}.",
            self._told_apart(),
            "A rule that exchanging t and u does not change lists each pair once (t < u), other rules list ordered "
            "pairs, a rule about one row lists rows.",
        ]
        if self.nulls == "unknown":
            lines.append("Nulls: a comparison with a null is never true (SQL's own rule).")
        else:
            lines.append("Nulls: null is a value, equal to itself and lower than every other.")
        if self.dialect == "ansi":
            lines.append(
                "The rules take text by bytes with case kept, NaN as equal to itself and greater than every number, "
                "and -0.0 as 0.0: set the collation, and mind your engine's rule for NaN."
            )
        if "timestamp" in self.types:
            lines.append("Timestamps that a rule names are moments in UTC: set the session's time zone to UTC.")
        if len({c.casefold() for c in self.columns}) < len(self.columns):
            lines.append("Some column names differ in case only: the engine must tell names apart by case.")
        return "".join(map(comment, lines))

    def _told_apart(self) -> str:
        names = ", ".join(map(self._q, self.key))
        if self.key_tells_apart:
            return (
                f"Rows are told apart by {names}, in which no two rows of the checked table were alike (a null taken "
                "as a value). Pairs of rows that come to be alike in them, nulls included, would not be listed; of a "
                "pair that is listed once, t is the row that is lower in them."
            )
        not_apart = f" {names} is listed, but did not tell the rows of the checked table apart." if names else ""
        return (
            "Rows are told apart by a number that each query assigns itself with row_number(): 0-based, in the order "
            f"of all columns, nulls first. It is not the row's position in a file.{not_apart}"
        )

    def query(self, rule: DenialConstraint, title: str | None = None) -> str:
        """The query that lists the violations of one rule: rows, with their cells in the columns of the rule.

        Rows are `t` and `u` (row numbers), or `t_` and `u_` before the name of each key column.
        """
        tuples = [rule.predicates[0].left_role] if rule.names_one_tuple else ["t", "u"]
        return self._query(rule.columns, tuples, self.conditions(rule), title)

    def conditions(self, rule: DenialConstraint) -> list[str]:
        """What rows that violate a rule are like: rows t, or pairs of rows t and u with their numbers."""
        apart = [] if rule.names_one_tuple else [self._apart(self._is_symmetric(rule))]
        return apart + [self._condition(p) for p in rule.predicates]

    def order_query(self, left: Sequence[Ordered], right: Sequence[Ordered], title: str | None = None) -> str:
        """The query that lists violations of `left -> right`: t is before u or equal to it on the left list, and
        behind u on the right list."""
        conditions = [self._apart(once=False)]
        if left:
            conditions.append(self._before(left, beside=True))
        conditions.append(self._before([(column, not ascends) for column, ascends in right], beside=False))
        return self._query([column for column, _ in (*left, *right)], ["t", "u"], conditions, title)

    def _query(
        self, columns: Iterable[str], tuples: Sequence[str], conditions: Sequence[str], title: str | None
    ) -> str:
        """The query that lists rows or pairs of rows, with their cells in these columns."""
        used = list(dict.fromkeys([*self.key, *columns]))
        shown = [] if self.key_tells_apart else [f"{x}.{self.row} AS {self._q(x)}" for x in tuples]
        shown += [f"{x}.{self._q(c)} AS {self._q(f'{x}_{c}')}" for c in used for x in tuples]
        rows = self._table if self.key_tells_apart else self._rows
        source = f"FROM {rows} AS t\nJOIN {rows} AS u\n  ON "
        if len(tuples) == 1:
            source = f"FROM {rows} AS {tuples[0]}\nWHERE "
        query = f"SELECT {', '.join(shown)}\n{source}" + "\n AND ".join(conditions) + ";\n"
        if not self.key_tells_apart:
            cells = [", ".join(map(self._q, used))] if used else []
            numbered = "SELECT " + ",\n    ".join([*cells, self.number]) + f"\n  FROM {self._table}"
            query = f"WITH {rows} AS (\n  {numbered}\n)\n{query}"
        return query if title is None else comment(title) + query

    def _apart(self, once: bool) -> str:
        """The condition that t and u are different rows; with `once`, only one of the two orders of a pair."""
        if not self.key_tells_apart:
            return f"t.{self.row} {'<' if once else '<>'} u.{self.row}"

        def compare(column: str, operator: Operator) -> str:
            pair = Predicate("t", column, operator, "u", column)
            return condition(pair, self.dialect, "value", self._types)

        if not once:
            return "NOT (" + " AND ".join(compare(c, "==") for c in self.key) + ")"
        before = compare(self.key[-1], "<")
        for column in reversed(self.key[:-1]):
            before = f"({compare(column, '<')} OR ({compare(column, '==')} AND {before}))"
        return before

    def _before(self, items: Sequence[Ordered], *, beside: bool) -> str:
        """The condition that a list puts t before u; with `beside`, that t is before u or equal to it."""

        def compare(item: Ordered, ascending: Operator, descending: Operator) -> str:
            return self._condition(Predicate("t", item[0], ascending if item[1] else descending, "u", item[0]))

        text = compare(items[-1], "<=", ">=") if beside else compare(items[-1], "<", ">")
        for item in reversed(items[:-1]):
            text = f"({compare(item, '<', '>')} OR ({compare(item, '==', '==')} AND {text}))"
        return text

    def script(self, rules: Iterator[tuple[str, DenialConstraint]]) -> Iterator[str]:
        """The heading, then one query for each (title, rule)."""
        yield self.heading()
        for title, rule in rules:
            yield "\n" + self.query(rule, title)

    def _is_symmetric(self, rule: DenialConstraint) -> bool:
        """`rule.is_symmetric`, with the mirrors of predicates kept."""
        predicates = set(rule.predicates)
        return all(self._mirror(predicate) in predicates for predicate in rule.predicates)

    # Each worked out once: a script may have a million rules over the same predicates

    @cached_property
    def _q(self) -> Callable[[str], str]:
        return cache(lambda name: quote(name, self.dialect))

    @cached_property
    def _condition(self) -> Callable[[Predicate], str]:
        return cache(lambda predicate: condition(predicate, self.dialect, self.nulls, self._types))

    @cached_property
    def _types(self) -> Mapping[str, TypeName | None]:
        return dict(zip(self.columns, self.types, strict=True))

    @cached_property
    def _mirror(self) -> Callable[[Predicate], Predicate]:
        return cache(Predicate.mirror)

    @cached_property
    def _table(self) -> str:
        return ".".join(map(self._q, self.table))

    @cached_property
    def _rows(self) -> str:
        return unused("numbered_rows", self.table)

    @cached_property
    def row(self) -> str:
        """The quoted name of the column that numbers the rows."""
        return self._q(unused("row_id", self.columns))

    @cached_property
    def number(self) -> str:
        """The number of a row, 0-based in the order of all columns, as a column of the name `row`."""
        order = ", ".join(f"{self._q(c)} NULLS FIRST" for c in self.columns)
        return f"row_number() OVER (ORDER BY {order}) - 1 AS {self.row}"
