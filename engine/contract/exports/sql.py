"""A contract as SQL: constraints where a database can hold a rule as one, else queries that list what breaks it."""

from __future__ import annotations

from collections.abc import Sequence

from tuplewise.engine.contract.contract import Contract, ContractRule
from tuplewise.engine.contract.exports.exported import CannotSay, Exported
from tuplewise.engine.contract.exports.queries import (
    RuleQueries,
    is_one_row,
    said,
)
from tuplewise.engine.contract.forms import InclusionDependency, Key, NotNull, Range, RowOrder, ValueSet, columns_of
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.report import sql

_KEYS = {"duckdb", "postgres", "ansi"}
"""Dialects whose databases enforce keys that are added to a table."""
_CHECKS = {"spark", "postgres", "ansi"}
_REFERENCES = {"postgres", "ansi"}
_OPERATORS = {"==": "=", "!=": "<>"}


def export(contract: Contract, table: str | None, dialect: str) -> Exported:
    """The accepted rules as SQL.

    A constraint refuses each row that breaks it, so that only rules of severity "error" without a tolerance become
    one: PRIMARY KEY, UNIQUE, NOT NULL, CHECK, FOREIGN KEY, where the dialect can add them to a table.

    Parameters
    ----------
    contract : the contract
    table : the table whose rules are exported; None: all
    dialect : "spark", "duckdb", "postgres" or "ansi"

    Raises
    ------
    InputError : for another dialect, or a table that the contract doesn't have
    """
    return _Script(contract, table, dialect).exported()


class _Script:
    """The statements of a contract."""

    def __init__(self, contract: Contract, table: str | None, dialect: str) -> None:
        self.queries = RuleQueries(contract, dialect)
        self.contract, self.dialect = contract, dialect
        self.rules = contract.accepted(table)
        strict = [rule for rule in contract.accepted() if rule.is_strict and rule.severity == "error"]
        self.strict = {rule.id for rule in strict}
        self.filled = {(rule.table, rule.form.column) for rule in strict if isinstance(rule.form, NotNull)}
        self.keys = [rule for rule in strict if isinstance(rule.form, Key) and self._is_constraint_key(rule)]

    def exported(self) -> Exported:
        constraints: list[tuple[int, str]] = []
        listing, refused, left_out = [], [], []
        for rule in self.rules:
            comment = sql.comment(said(rule))
            try:
                found = self._constraint(rule)
                if found is None:
                    listing.append(f"{comment}{self._note(rule)}{self.queries.rows(rule)};\n")
                else:
                    constraints.append((found[0], f"{comment}ALTER TABLE {self._table(rule)} {found[1]};\n"))
            except CannotSay as why:
                left_out.append(rule.id)
                refused.append(sql.comment(f"{rule.id} is left out: {why}"))
        constraints.sort(key=lambda entry: entry[0])
        parts = [self._heading(), *(text for _, text in constraints), *listing]
        text = "\n".join(parts) + "".join(["\n", *refused] if refused else [])
        return Exported(text, ".sql", tuple(left_out))

    def _heading(self) -> str:
        lines = [
            f"Rules of contract {self.contract.name} as SQL (dialect: {self.dialect}).",
            "ALTER TABLE fails where rows break the rule already. Each query lists the rows that break a rule; it is "
            "empty where nothing does.",
            "Of a key it lists the rows after the first of each value, of an FD the rows without the most frequent "
            "value, of an order rule the rows that contradict another.",
        ]
        if self.dialect == "spark":
            lines.append("Spark enforces no keys: they are queries. CHECK and NOT NULL need a format such as Delta.")
        if self.dialect == "duckdb":
            lines.append("DuckDB adds no CHECK and no FOREIGN KEY to a table, so that these are queries.")
        if self.contract.nulls == "value":
            lines.append("Nulls: null is a value, equal to itself and lower than every other.")
        if self.dialect == "ansi":
            lines.append("Text is meant by bytes with case kept, NaN as equal to itself and greater than every number.")
        if any("timestamp" in self.queries.types(name).values() for name in self.contract.tables):
            lines.append("Timestamps are moments in UTC: set the session's time zone to UTC.")
        return "".join(map(sql.comment, lines))

    def _note(self, rule: ContractRule) -> str:
        """What else there is to say of a query."""
        if isinstance(rule.form, InclusionDependency) and not self.queries.same_family(rule.form):
            return sql.comment("tuplewise finds no value of one type in the other, a database may")
        return ""

    def _table(self, rule: ContractRule) -> str:
        return self.queries.name(rule.subject)

    def _constraint(self, rule: ContractRule) -> tuple[int, str] | None:
        """Where among the constraints it stands, and what is added to the table; None: it can be none."""
        if rule.id not in self.strict:
            return None
        form, name = rule.form, f"ADD CONSTRAINT {self.queries.name(rule.id)}"
        if isinstance(form, NotNull):
            return 0, f"ALTER COLUMN {self.queries.name(form.column)} SET NOT NULL"
        if isinstance(form, Key):
            return self._key(rule, form, name)
        if isinstance(form, InclusionDependency):
            possible = self.dialect in _REFERENCES and self.queries.same_family(form)
            if not possible or not self._is_key(form.referenced):
                return None
            own = self.queries.names(a.column for a in form.dependent)
            theirs = self.queries.names(b.column for b in form.referenced)
            referenced = self.queries.name(form.referenced[0].table)
            return 4, f"{name} FOREIGN KEY ({own}) REFERENCES {referenced} ({theirs})"
        if self.dialect in _CHECKS and is_one_row(form):
            self.queries.rows(rule)  # raises where the values can't be said
            return 3, f"{name} CHECK ({self._check(rule)})"
        return None

    def _is_constraint_key(self, rule: ContractRule) -> bool:
        """Whether the database enforces a key as the contract means it: UNIQUE leaves out rows with a null."""
        assert isinstance(rule.form, Key)
        if self.dialect not in _KEYS:
            return False
        filled = all((rule.table, column) in self.filled for column in rule.form.columns)
        return filled or self.contract.nulls == "unknown" or self.dialect == "postgres"

    def _key(self, rule: ContractRule, form: Key, name: str) -> tuple[int, str] | None:
        if rule not in self.keys:
            return None
        columns = self.queries.names(form.columns)
        if rule.id == self._primary(rule.table):
            return 1, f"{name} PRIMARY KEY ({columns})"
        filled = all((rule.table, column) in self.filled for column in form.columns)
        same = "" if filled or self.contract.nulls == "unknown" else " NULLS NOT DISTINCT"
        return 2, f"{name} UNIQUE{same} ({columns})"

    def _primary(self, table: str) -> str | None:
        """The id of the primary key of a table: its first key without nulls."""
        for rule in self.keys:
            assert isinstance(rule.form, Key)
            if rule.table == table and all((table, column) in self.filled for column in rule.form.columns):
                return rule.id
        return None

    def _is_key(self, referenced: Sequence[Attribute]) -> bool:
        """Whether the columns that a foreign key refers to become a key, which it needs."""
        wanted = {attribute.column for attribute in referenced}
        exported = [rule for rule in self.keys if rule in self.rules and rule.table == referenced[0].table]
        return any(set(columns_of(rule.form)) == wanted for rule in exported)

    def _check(self, rule: ContractRule) -> str:
        """The condition that a row keeps a rule. SQL takes one that nulls leave undecided for kept."""
        form, name = rule.form, self.queries.name
        if self.contract.nulls == "value":
            return f"NOT ({self.queries.broken(rule, roles=False)})"
        types = self.queries.types(rule.table)
        if isinstance(form, RowOrder):
            left = name(form.left)
            if form.operator not in _OPERATORS:
                left = sql.by_bytes(left, types.get(form.left), self.dialect)
            return f"{left} {_OPERATORS.get(form.operator, form.operator)} {name(form.right)}"
        if isinstance(form, ValueSet):
            return f"{name(form.column)} IN ({self.queries.values_of(rule.table, form)})"
        if isinstance(form, Range):
            column = sql.by_bytes(name(form.column), types.get(form.column), self.dialect)
            ends = [(">=", form.low), ("<=", form.high)]
            return " AND ".join(
                f"{column} {sign} {sql.literal_for(end, types.get(form.column), form.column, self.dialect)}"
                for sign, end in ends
                if end is not None
            )
        return f"NOT ({self.queries.broken(rule, roles=False)})"

