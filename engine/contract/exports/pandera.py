"""Accepted rules as a Python module that defines a Pandera schema, for pandas or for Polars.

What Pandera has checks of its own for, with the same meaning, is written with these. All else calls functions over the
whole frame, which the module holds: `pandas_rules.py` or `polars_rules.py`, word for word. Names and values stand in it
as Python literals, so that none of them can become code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from tuplewise.engine.contract.contract import Contract, ContractRule, ContractTable
from tuplewise.engine.contract.exports import scope
from tuplewise.engine.contract.exports.exported import Exported
from tuplewise.engine.contract.forms import (
    DenialConstraint,
    FunctionalDependency,
    InclusionDependency,
    Key,
    NotNull,
    OrderCompatibility,
    Range,
    ValueSet,
    constraints_of,
)
from tuplewise.engine.errors import RuleError
from tuplewise.engine.table.relation import TypeName


@dataclass(frozen=True)
class _Library:
    """How Pandera is spelled for one kind of frames. `unique`: whether a column may be told to leave first rows out."""

    rules: str
    imported: str
    after: str
    takes: str
    whole: str
    column: str
    more: str
    unique: bool


_PANDAS = _Library(
    "pandas_rules.py", "pandera.pandas", "import pandas as pd\n", "frame", "frame", "frame", ", ignore_na=False", True
)
_COLLECTED = "data.lazyframe.collect()"
_POLARS = _Library(
    "polars_rules.py", "pandera.polars", "import polars as pl\n", "data", _COLLECTED,
    f"{_COLLECTED}[data.key]", "", False,
)  # fmt: skip
_FOR_LINTERS = re.compile(r"  # (?:noqa: \w+|fmt: skip)")
_BETWEEN_TABLES = "it is about two tables, a schema about one"


def export_pandas(contract: Contract, table: str | None) -> Exported:
    """A module that defines `schemas`, by names of tables, for pandas frames; where there is one, `schema` too."""
    return _module(contract, table, _PANDAS)


def export_polars(contract: Contract, table: str | None) -> Exported:
    """The same of Polars frames."""
    return _module(contract, table, _POLARS)


def _module(contract: Contract, table: str | None, library: _Library) -> Exported:
    tables = scope.tables_of(contract, table)
    written = [_Schema(contract, one, library) for one in tables]
    left_out = tuple(rule_id for one in written for rule_id in one.left_out)
    text = (Path(__file__).parent / library.rules).read_text(encoding="utf-8")
    text = _FOR_LINTERS.sub("", text[text.index("\nimport") + 1 :])
    text = text.replace(library.after, f"{library.after}import {library.imported} as pa\n", 1)
    heading = f"# {_comment(f'Rules of contract {contract.name}, written by tuplewise.')}\n"
    if len(written) == 1:
        schemas = f"schema = {written[0].text('')}\nschemas = {{{written[0].table.name!r}: schema}}\n"
    else:
        entries = "".join(f"    {one.table.name!r}: {one.text('    ')},\n" for one in written)
        schemas = f"schemas = {{\n{entries}}}\n"
    notes = "".join(f"# {note}\n" for one in written for note in one.notes)
    return Exported(f"{heading}\n{text}\n\n{notes}{schemas}", ".py", left_out)


@dataclass
class _Schema:
    """The schema of one table as it is being written."""

    contract: Contract
    table: ContractTable
    library: _Library
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._types = scope.types_of(self.table)
        self._nulls_are_values = self.contract.nulls == "value"
        self._never_null = scope.never_null(self.contract, self.table.name)
        rules = self.contract.accepted(self.table.name)
        self._columns: dict[str, list[str]] = {}
        self._attributes: dict[str, list[str]] = {}
        for name in scope.columns_named(self.table, self.contract.accepted()):
            self._columns[name] = [self._type_check(name, self._types[name])] if name in self._types else []
            self._attributes[name] = [f"nullable={name not in self._never_null}"]
        self._checks: list[str] = []
        for rule in rules:
            self._add(scope.simplest(rule))

    def text(self, margin: str) -> str:
        """The call that makes it."""
        lines = ["pa.DataFrameSchema(", f"    name={self.table.name!r},", "    columns={"]
        for name, checks in self._columns.items():
            attributes = ", ".join(self._attributes[name])
            if checks:
                lines += [f"        {name!r}: pa.Column(", f"            {attributes},", "            checks=["]
                lines += [*(f"                {check}," for check in checks), "            ],", "        ),"]
            else:
                lines.append(f"        {name!r}: pa.Column({attributes}),")
        lines.append("    },")
        if self._checks:
            checks = [f"        {line}" for check in self._checks for line in check.split("\n")]
            lines += ["    checks=[", *checks, "    ],"]
        lines.append(")")
        return f"\n{margin}".join(lines)

    def _add(self, rule: ContractRule) -> None:
        form = rule.form
        if isinstance(form, InclusionDependency) and form.referenced[0].table != self.table.name:
            self.left_out.append(rule.id)
            self.notes.append(_comment(f"Left out: {rule.id}: {rule.text}: {_BETWEEN_TABLES}"))
            return
        try:
            if not self._is_attribute(rule) and not self._is_built_in(rule):
                self._checks.append(self._check(rule))
        except RuleError as error:
            raise RuleError(f"rule {rule.id!r}: {error.said}") from None

    def _is_attribute(self, rule: ContractRule) -> bool:
        """Whether an attribute of a column says a rule; it is noted there."""
        form = rule.form
        if not rule.is_strict or rule.severity != "error":
            return False
        if isinstance(form, NotNull):
            return True  # see `nullable`
        if isinstance(form, Key) and len(form.columns) == 1 and self.library.unique:
            (name,) = form.columns
            if self._nulls_are_values or name in self._never_null:
                self._attributes[name] += ["unique=True", "report_duplicates='exclude_first'"]
                return True
        return False

    def _is_built_in(self, rule: ContractRule) -> bool:
        """Whether a check of Pandera's own says a rule of one column; it is noted there."""
        form = rule.form
        if not isinstance(form, (Range, ValueSet)) or not rule.is_strict:
            return False
        type_ = self._types.get(form.column)
        if type_ not in ("integer", "double", "text") or (
            self._nulls_are_values and form.column not in self._never_null
        ):
            return False
        told = f"error={_said(rule)}{_severity(rule)}"
        if isinstance(form, ValueSet):
            values = [scope.plain_value(value, type_, form.column) for value in form.values]
            if any(isinstance(value, float) and value != value for value in values):
                return False
            listed = ", ".join(map(_literal, values))
            self._columns[form.column].append(f"pa.Check.isin([{listed}], {told})")
            return True
        ends = [None if end is None else scope.plain_value(end, type_, form.column) for end in (form.low, form.high)]
        low, high = (None if end is None else _literal(end) for end in ends)
        between = f"in_range({low}, {high}" if low and high else f"ge({low}" if low else f"le({high}"
        self._columns[form.column].append(f"pa.Check.{between}, {told})")
        return True

    def _check(self, rule: ContractRule) -> str:
        """A check of the whole frame, with the rule in words before it."""
        library = self.library
        name, arguments = self._call(rule)
        words = f"# {_comment(rule.english)}\n" if rule.english else ""
        return (
            f"{words}pa.Check(\n    lambda {library.takes}: {name}({library.whole}, {', '.join(arguments)}),\n"
            f"    name={rule.id!r}, error={_said(rule)}{_severity(rule)}{library.more},\n),"
        )

    def _call(self, rule: ContractRule) -> tuple[str, list[str]]:
        """The function that checks a rule, and its arguments after the frame."""
        form, tolerance = rule.form, rule.tolerance
        allowed = str(tolerance.max_violations or 0)
        if tolerance.share:
            allowed = f"Fraction({str(tolerance.share)!r})"
        last = [repr(self._nulls_are_values), allowed]
        if isinstance(form, Key):
            return "key", [repr(list(form.columns)), *last]
        if isinstance(form, FunctionalDependency):
            return "determines", [repr(list(form.determinant)), repr(form.dependent), *last]
        if isinstance(form, OrderCompatibility):
            rises = repr(form.direction == "ascending")
            return "ordered", [repr(list(form.context)), repr(form.left), repr(form.right), rises, *last]
        if isinstance(form, InclusionDependency):
            sides = ([a.column for a in side] for side in (form.dependent, form.referenced))
            return "included", [*map(repr, sides), allowed]
        rules = constraints_of(form)
        written = [_list(self._predicates(one)) for one in rules]
        if all(one.names_one_tuple for one in rules):
            return "denied", [_list(written), *last]
        return "denied_pairs", [*written, *last]

    def _predicates(self, constraint: DenialConstraint) -> Iterator[str]:
        """The predicates as tuples: role, column, operator, role or None, column or constant."""
        for p in constraint.normalised().predicates:
            constant = p.constant
            if constant is None:
                right = repr(p.right)
            elif constant.type == "null":
                right = "None"
            else:
                right = _literal(scope.plain_value(constant, self._types.get(p.left), p.left))
            yield f"({p.left_role!r}, {p.left!r}, {p.operator!r}, {p.right_role!r}, {right})"

    def _type_check(self, name: str, type_: TypeName) -> str:
        library = self.library
        told = f"name='type', error={f'{name}: not of type {type_}'!r}{library.more}"
        return f"pa.Check(lambda {library.takes}: is_of_type({library.column}, {type_!r}), {told})"


def _list(items: Iterator[str] | list[str]) -> str:
    return f"[{', '.join(items)}]"


def _severity(rule: ContractRule) -> str:
    return "" if rule.severity == "error" else ", raise_warning=True"


def _said(rule: ContractRule) -> str:
    return repr(f"{rule.id}: {rule.text}")


def _literal(value: scope.PlainValue) -> str:
    """A value as Python writes it."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float({str(value)!r})"
    assert isinstance(value, (str, bool, int, float, Decimal))
    return repr(value)


def _comment(text: str) -> str:
    """A text on one line, of characters that can be seen."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
