"""Accepted rules as a data package of Frictionless: a resource with a Table Schema for each table, in JSON.

Table Schema has no tolerances and no warnings. A rule that it can't say is listed in "notes". The paths of the tables
are those of the contract, which are relative to its folder.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from tuplewise.engine.contract.contract import Contract, ContractRule, ContractTable
from tuplewise.engine.contract.exports import scope
from tuplewise.engine.contract.exports.exported import CannotSay, Exported
from tuplewise.engine.contract.forms import InclusionDependency, Key, NotNull, Range, ValueSet, columns_of
from tuplewise.engine.errors import RuleError

TYPES = {
    "integer": "integer", "decimal": "number", "double": "number", "date": "date", "timestamp": "datetime",
    "boolean": "boolean", "text": "string",
}  # fmt: skip
"""Our types as those of Table Schema."""
_WITH_ENDS = ("integer", "decimal", "double", "date")
_TOLERANCE = "Table Schema has no tolerance"
_WARNING = "Table Schema has no warnings"
_NULLS = "nulls are values, and here they are left out"
_NO_KEY = "Table Schema has one key of several columns, the primary key, whose columns have no nulls"
_NO_WORD = "Table Schema can't say it"


def export(contract: Contract, table: str | None) -> Exported:
    """The package of one table, or of all."""
    tables = scope.tables_of(contract, table)
    names = _resource_names(tables)
    resources = [_Resource(contract, one, names) for one in tables]
    left_out = [(rule, why) for one in resources for rule, why in one.left_out]
    notes = [f"Left out: {rule.id}: {rule.text}: {why}" for rule, why in left_out]
    package: dict[str, Any] = {"name": _slug(Path(contract.name).stem), "resources": [one.record for one in resources]}
    package |= {"notes": notes} if notes else {}
    text = json.dumps(package, indent=2, ensure_ascii=False) + "\n"
    return Exported(text, ".json", tuple(rule.id for rule, _ in left_out))


def _slug(name: str) -> str:
    """A name as packages and resources may have it."""
    return re.sub(r"[^-a-z0-9._]+", "-", name.lower()).strip("-") or "table"


def _resource_names(tables: list[ContractTable]) -> dict[str, str]:
    """The names of the resources of tables, each another one."""
    names: dict[str, str] = {}
    for table in tables:
        name, number = _slug(table.name), 2
        while name in names.values():
            name, number = f"{_slug(table.name)}-{number}", number + 1
        names[table.name] = name
    return names


class _Resource:
    """The resource of one table, and what it can't say."""

    def __init__(self, contract: Contract, table: ContractTable, names: dict[str, str]) -> None:
        self._types, self._table, self._names = scope.types_of(table), table, names
        self._never_null = scope.never_null(contract, table.name)
        self._nulls_are_values = contract.nulls == "value"
        columns = scope.columns_named(table, contract.accepted())
        self._fields: dict[str, dict[str, Any]] = {name: self._field(name) for name in columns}
        self._foreign_keys: list[dict[str, Any]] = []
        rules = contract.accepted(table.name)
        self._primary = self._primary_key(rules)
        self.left_out: list[tuple[ContractRule, str]] = []
        for rule in rules:
            try:
                self._add(scope.simplest(rule))
            except CannotSay as unsaid:
                self.left_out.append((rule, str(unsaid)))
            except RuleError as error:
                raise RuleError(f"rule {rule.id!r}: {error.said}") from None

    @property
    def record(self) -> dict[str, Any]:
        """As the package has it."""
        schema: dict[str, Any] = {"fields": list(self._fields.values())}
        if self._primary:
            schema["primaryKey"] = list(self._primary)
        if self._foreign_keys:
            schema["foreignKeys"] = self._foreign_keys
        name = self._names[self._table.name]
        path = self._table.path or f"{name}.csv"
        return {"name": name, "title": self._table.name, "type": "table", "path": path, "schema": schema}

    def _field(self, name: str) -> dict[str, Any]:
        type_ = self._types.get(name)
        field = {"name": name, "type": "any" if type_ is None else TYPES[type_]}
        return field | ({"format": "any"} if type_ == "timestamp" else {})

    def _primary_key(self, rules: list[ContractRule]) -> tuple[str, ...]:
        """The columns of the first key that can be the primary key."""
        for rule in rules:
            form = scope.simplest(rule).form
            said = rule.is_strict and rule.severity == "error"
            if said and isinstance(form, Key) and self._never_null.issuperset(form.columns):
                return form.columns
        return ()

    def _add(self, rule: ContractRule) -> None:
        """Note a rule where it belongs. Raises CannotSay."""
        form = rule.form
        if not isinstance(form, (Key, NotNull, Range, ValueSet, InclusionDependency)):
            raise CannotSay(_NO_WORD)
        if rule.severity != "error" or not rule.is_strict:
            raise CannotSay(_WARNING if rule.severity != "error" else _TOLERANCE)
        if isinstance(form, InclusionDependency):
            self._refer(form)
            return
        sure = self._never_null.issuperset(columns_of(form))
        if self._nulls_are_values and not sure and not isinstance(form, NotNull):
            raise CannotSay(_NULLS)
        if isinstance(form, Key):
            if form.columns != self._primary:
                self._constrain(form.columns[0], unique=True) if len(form.columns) == 1 else _refuse(_NO_KEY)
        elif isinstance(form, NotNull):
            self._constrain(form.column, required=True)
        elif isinstance(form, ValueSet):
            if self._types.get(form.column) == "timestamp":
                raise CannotSay("times with and without a zone aren't compared")
            self._constrain(form.column, enum=[self._value(value, form.column) for value in form.values])
        else:
            if self._types.get(form.column) not in _WITH_ENDS:
                raise CannotSay("Table Schema has ends of numbers and dates, here of other types or unknown ones")
            ends = {name: end for name, end in (("minimum", form.low), ("maximum", form.high)) if end is not None}
            self._constrain(form.column, **{name: self._value(end, form.column) for name, end in ends.items()})

    def _constrain(self, column: str, **constraints: Any) -> None:
        """Add constraints to a field that has none of them yet."""
        there = self._fields[column].setdefault("constraints", {})
        if there.keys() & constraints.keys() and {**there, **constraints} != there:
            raise CannotSay("the field has another such constraint")
        there.update(constraints)

    def _refer(self, form: InclusionDependency) -> None:
        referenced = form.referenced[0].table
        columns = [attribute.column for attribute in form.dependent]
        if referenced not in self._names:
            raise CannotSay(f"table {referenced!r} is not in the package")
        if len(columns) > 1 and not self._never_null.issuperset(columns):
            raise CannotSay("a foreign key of several columns counts rows with a null in some of them")
        resource = "" if referenced == self._table.name else self._names[referenced]
        others = [attribute.column for attribute in form.referenced]
        self._foreign_keys.append({"fields": columns, "reference": {"resource": resource, "fields": others}})

    def _value(self, constant: Any, column: str) -> Any:
        """A constant as JSON has it: a number that JSON might change as text, which Table Schema reads."""
        type_ = self._types.get(column)
        value = scope.plain_value(constant, type_, column)
        if type_ is None and not isinstance(value, str):
            raise CannotSay("the column has no type in the contract, so that its cells are texts")
        if isinstance(value, float) and value - value != 0:
            raise CannotSay("JSON has no such number")
        return str(value) if isinstance(value, Decimal) else value


def _refuse(why: str) -> None:
    raise CannotSay(why)
