"""The rules of a contract as SQL queries: rows that break each, and whether they are more than its tolerance allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tuplewise.engine.contract.contract import Contract, ContractRule
from tuplewise.engine.contract.exports.exported import CannotSay
from tuplewise.engine.contract.forms import (
    DenialConstraint,
    Form,
    FunctionalDependency,
    InclusionDependency,
    Key,
    OrderCompatibility,
    ValueSet,
    columns_of,
    constraints_of,
)
from tuplewise.engine.dc.constraint import Constant
from tuplewise.engine.ind.values import family_of
from tuplewise.engine.report import sql
from tuplewise.engine.report.ind_sql import missing
from tuplewise.engine.table.relation import TypeName


def is_one_row(form: Form) -> bool:
    """Whether each row alone keeps or breaks a rule."""
    if isinstance(form, (Key, FunctionalDependency, OrderCompatibility, InclusionDependency)):
        return False
    return not isinstance(form, DenialConstraint) or form.names_one_tuple


def compared_columns(form: Form) -> list[str]:
    """The columns of a rule of one row that it compares: nulls there leave a row out."""
    predicates = [p for dc in constraints_of(form) for p in dc.predicates if p.operator not in ("is", "is not")]
    return list(dict.fromkeys(name for p in predicates for name in p.columns))


@dataclass(frozen=True)
class Steps:
    """The way to rows that break a rule.

    Attributes
    ----------
    filled : the condition that the rule speaks of a row; "": of all
    added : columns to add, step by step, each with the expression that it is: a window
    broken : the condition that a row with these columns breaks the rule
    """

    filled: str
    added: tuple[tuple[tuple[str, str], ...], ...]
    broken: str


@dataclass(frozen=True)
class RuleQueries:
    """Writes queries on the tables of a contract. They end without a semicolon, in a line without a comment.

    Raises
    ------
    InputError : for another dialect
    """

    contract: Contract
    dialect: str

    def __post_init__(self) -> None:
        sql.check_dialect(self.dialect)

    def rows(self, rule: ContractRule) -> str:
        """The query that lists what breaks a rule.

        Of a key the rows after the first of each value; of an FD those without the most frequent value (the lowest
        among equals); of an order rule all rows that contradict another; of other rules of two rows the pairs, each
        once if exchanging the rows changes nothing; of an inclusion dependency the rows whose value is missing.

        Raises
        ------
        CannotSay : where the database can't have the values of the rule
        """
        form = rule.form
        self._refuse(form)
        if isinstance(form, InclusionDependency):
            return self._missing(rule, form)
        if isinstance(form, (Key, FunctionalDependency, OrderCompatibility)):
            return self._stepwise(rule, self.steps(rule))
        if is_one_row(form):
            role = constraints_of(form)[0].predicates[0].left_role
            listed = ", ".join(f"{role}.{self.name(c)}" for c in self.listed(rule))
            return f"SELECT {listed}\nFROM {self.name(rule.table)} AS {role}\nWHERE {self.broken(rule)}"
        assert isinstance(form, DenialConstraint)
        return self.writer(rule).query(form).removesuffix(";\n")

    def steps(self, rule: ContractRule, prefix: str = "") -> Steps:
        """The way to the rows that break a key, an FD or an order rule: see `rows`. `prefix`: of added columns."""
        form = rule.form
        if isinstance(form, Key):
            return self._steps_of_key(rule, form, prefix)
        if isinstance(form, FunctionalDependency):
            return self._steps_of_fd(rule, form, prefix)
        assert isinstance(form, OrderCompatibility)
        return self._steps_of_order(rule, form, prefix)

    def broken(self, rule: ContractRule, *, roles: bool = True) -> str:
        """The condition that a row breaks a rule of one row. `roles`: whether t or u stands before the columns."""
        types, nulls = self.types(rule.table), self.contract.nulls
        form = rule.form
        if isinstance(form, ValueSet):
            column = f"t.{self.name(form.column)}" if roles else self.name(form.column)
            outside = f"{column} NOT IN ({self.values_of(rule.table, form)})"
            return f"({outside} OR {column} IS NULL)" if nulls == "value" else outside
        each = [
            [sql.condition(p, self.dialect, nulls, types, roles=roles) for p in dc.predicates]
            for dc in constraints_of(form)
        ]
        several = [" AND ".join(own) if len(own) == 1 or len(each) == 1 else f"({' AND '.join(own)})" for own in each]
        return " OR ".join(several)

    def values_of(self, table: str, form: ValueSet) -> str:
        """The values of a set, with commas between them."""
        type_ = self.types(table).get(form.column)
        values = (sql.literal_for(value, type_, form.column, self.dialect) for value in form.values)
        return ", ".join(dict.fromkeys(values))

    def exceptions(self, rule: ContractRule) -> str:
        """The query that counts what breaks a rule, as a check counts it.

        Raises
        ------
        CannotSay : for order rules, whose fewest rows to remove SQL can't count
        """
        form = rule.form
        if isinstance(form, OrderCompatibility):
            raise CannotSay("its tolerance is about the fewest rows to remove, which SQL can't count of an order rule")
        twice = isinstance(form, DenialConstraint) and not is_one_row(form) and form.is_symmetric
        return f"SELECT {'2 * ' * twice}count(*) FROM (\n{self.rows(rule)}\n) AS broken"

    def spoken_of(self, rule: ContractRule) -> str:
        """The query that counts what a rule speaks of: rows, or ordered pairs of rows."""
        form = rule.form
        table = self.name(rule.subject)
        if isinstance(form, DenialConstraint) and not is_one_row(form):
            return f"SELECT count(*) * (count(*) - 1) FROM {table}"
        filled = self._filled(rule)
        return f"SELECT count(*) FROM {table}" + (f"\nWHERE {filled}" if filled else "")

    def beyond(self, rule: ContractRule) -> str:
        """The query that returns a row where more break a rule than its tolerance allows, else none."""
        share = rule.tolerance.share
        allowed = str(rule.tolerance.max_violations or 0)
        if share is not None:
            allowed = f"{Decimal(str(share)):f} * counted.spoken_of"
        counts = f"SELECT (\n{self.exceptions(rule)}\n) AS exceptions, (\n{self.spoken_of(rule)}\n) AS spoken_of"
        return f"SELECT counted.* FROM (\n{counts}\n) AS counted\nWHERE counted.exceptions > {allowed}"

    def left_out_by_nulls(self, rule: ContractRule) -> Sequence[str]:
        """The columns in which a null leaves a row out."""
        if isinstance(rule.form, InclusionDependency):
            return columns_of(rule.form)
        if self.contract.nulls == "value":
            return ()
        return compared_columns(rule.form) if is_one_row(rule.form) else columns_of(rule.form)

    def name(self, name: str) -> str:
        """A column or table in quotes."""
        if self.dialect == "postgres" and "\0" in name:
            raise CannotSay("PostgreSQL has no character 0")
        return sql.quote(name, self.dialect)

    def names(self, names: Iterable[str]) -> str:
        """Columns in quotes, with commas between them."""
        return ", ".join(map(self.name, names))

    def types(self, table: str) -> Mapping[str, TypeName | None]:
        """The types of a table's columns; None: the contract has none."""
        return {column.name: column.type for column in self.contract.tables[table].columns or ()}

    def listed(self, rule: ContractRule) -> Sequence[str]:
        """The columns that queries list: all where the contract has them, else those of the rule."""
        return self.contract.tables[rule.subject].column_names or columns_of(rule.form)

    def same_family(self, form: InclusionDependency) -> bool:
        """Whether the values of the two sides can be equal, as far as the contract has their types."""
        for a, b in zip(form.dependent, form.referenced, strict=True):
            own, theirs = self.types(a.table).get(a.column), self.types(b.table).get(b.column)
            if own is not None and theirs is not None and family_of(own) != family_of(theirs):
                return False
        return True

    def _refuse(self, form: Form) -> None:
        """Raise CannotSay for what no table of the database can hold."""
        texts = [*columns_of(form)]
        if is_one_row(form) or isinstance(form, DenialConstraint):
            found = (p.right for dc in constraints_of(form) for p in dc.predicates)
            texts += [right.text for right in found if isinstance(right, Constant)]
        if self.dialect == "postgres" and any("\0" in text for text in texts):
            raise CannotSay("PostgreSQL has no character 0")

    def _filled(self, rule: ContractRule) -> str:
        """The condition that nulls don't leave a row out; "" where they leave out none."""
        return " AND ".join(f"{self.name(column)} IS NOT NULL" for column in self.left_out_by_nulls(rule))

    def _order(self, rule: ContractRule, columns: Iterable[str]) -> str:
        types = self.types(rule.table)
        ordered = (sql.by_bytes(self.name(c), types.get(c), self.dialect) for c in columns)
        return "ORDER BY " + ", ".join(f"{column} NULLS FIRST" for column in ordered)

    def _within(self, columns: Sequence[str]) -> str:
        return f"PARTITION BY {self.names(columns)} " if columns else ""

    def _added(self, rule: ContractRule, wanted: str) -> str:
        """A name for a column beside those of the table."""
        return self.name(sql.unused(wanted, self.listed(rule)))

    def _steps_of_key(self, rule: ContractRule, form: Key, prefix: str) -> Steps:
        place = self._added(rule, prefix + "place")
        number = f"row_number() OVER ({self._within(form.columns)}{self._order(rule, self.listed(rule))})"
        return Steps(self._filled(rule), (((place, number),),), f"{place} > 1")

    def _steps_of_fd(self, rule: ContractRule, form: FunctionalDependency, prefix: str) -> Steps:
        alike, place = self._added(rule, prefix + "alike"), self._added(rule, prefix + "place")
        count = f"count(*) OVER ({self._within(columns_of(form)).rstrip()})"
        order = self._order(rule, [form.dependent]).replace("ORDER BY ", f"ORDER BY {alike} DESC, ", 1)
        rank = f"dense_rank() OVER ({self._within(form.determinant)}{order})"
        return Steps(self._filled(rule), (((alike, count),), ((place, rank),)), f"{place} > 1")

    def _steps_of_order(self, rule: ContractRule, form: OrderCompatibility, prefix: str) -> Steps:
        """Values are ranked first, so that windows compare numbers, whatever the types and the nulls."""
        within = self._within(form.context)
        left, right = self._added(rule, prefix + "left_rank"), self._added(rule, prefix + "right_rank")
        before, behind = self._added(rule, prefix + "before"), self._added(rule, prefix + "behind")
        ranks = tuple(
            (rank, f"dense_rank() OVER ({within}{self._order(rule, [column])})")
            for column, rank in ((form.left, left), (form.right, right))
        )
        rises = form.direction == "ascending"
        first, last = ("max", "min") if rises else ("min", "max")
        over = f"({right}) OVER ({within}ORDER BY {left} RANGE BETWEEN"
        ends = (
            (before, f"{first}{over} UNBOUNDED PRECEDING AND 1 PRECEDING)"),
            (behind, f"{last}{over} 1 FOLLOWING AND UNBOUNDED FOLLOWING)"),
        )
        higher, lower = (">", "<") if rises else ("<", ">")
        return Steps(self._filled(rule), (ranks, ends), f"{before} {higher} {right} OR {behind} {lower} {right}")

    def _stepwise(self, rule: ContractRule, steps: Steps) -> str:
        listed, source = self.names(self.listed(rule)), f"FROM {self.name(rule.table)}"
        query = ""
        for number, step in enumerate(steps.added):
            columns = ", ".join(f"{expression} AS {name}" for name, expression in step)
            if number:
                query = f"SELECT step_{number}.*,\n  {columns}\nFROM (\n{query}\n) AS step_{number}"
            else:
                where = f"\nWHERE {steps.filled}" if steps.filled else ""
                query = f"SELECT {listed},\n  {columns}\n{source}{where}"
        return f"SELECT {listed}\nFROM (\n{query}\n) AS steps\nWHERE {steps.broken}"

    def _missing(self, rule: ContractRule, form: InclusionDependency) -> str:
        own = [f"d.{self.name(a.column)}" for a in form.dependent]
        theirs = (f"r.{self.name(b.column)}" for b in form.referenced)
        same = " AND ".join(f"{b} = {a}" for a, b in zip(own, theirs, strict=True))
        listed = ", ".join(f"d.{self.name(c)}" for c in self.listed(rule))
        condition = missing(own, self.name(form.referenced[0].table), same)
        return f"SELECT {listed}\nFROM {self.name(form.dependent[0].table)} AS d\nWHERE {condition}"

    def writer(self, rule: ContractRule) -> sql.Writer:
        """The writer of queries on pairs of rows of the rule's table."""
        columns, types = self.listed(rule), self.types(rule.table)
        known = [types.get(column) for column in columns]
        return sql.Writer(columns, known, [rule.table], self.dialect, self.contract.nulls)


def said(rule: ContractRule) -> str:
    """A rule in one line, for a comment: its id, what it says, and what its tolerance allows."""
    allowed = "" if rule.is_strict else f" (tolerance: {rule.tolerance})"
    return f"{rule.id}: {rule.english or rule.text}{allowed}{' (warning)' if rule.severity == 'warning' else ''}"

