"""What exports ask of a contract: the rules of a table, where nulls can't matter, constants as values of Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from tuplewise.engine.contract.contract import Contract, ContractRule, ContractTable
from tuplewise.engine.contract.forms import (
    Constant,
    DenialConstraint,
    Form,
    InclusionDependency,
    Key,
    NotNull,
    Range,
    RowOrder,
    ValueSet,
    columns_of,
)
from tuplewise.engine.dc.constraint import Operator, Predicate
from tuplewise.engine.dc.rule_text.constants import value_of
from tuplewise.engine.table.relation import TypeName

PlainValue = str | bool | int | float | Decimal

_HOLDS: dict[Operator, Operator] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def tables_of(contract: Contract, table: str | None) -> list[ContractTable]:
    """The chosen table, or all."""
    return list(contract.tables.values()) if table is None else [contract.tables[table]]


def columns_named(table: ContractTable, rules: Sequence[ContractRule]) -> list[str]:
    """The columns of a table: those of the contract; where it has none, those that any of these rules names."""
    if table.columns is not None:
        return table.column_names
    named = [name for rule in rules if rule.subject == table.name for name in columns_of(rule.form)]
    for rule in rules:
        if isinstance(rule.form, InclusionDependency) and rule.form.referenced[0].table == table.name:
            named += [attribute.column for attribute in rule.form.referenced]
    return list(dict.fromkeys(named))


def types_of(table: ContractTable) -> dict[str, TypeName]:
    """The types of the columns whose types the contract has."""
    return {column.name: column.type for column in table.columns or () if column.type is not None}


def never_null(contract: Contract, table: str) -> frozenset[str]:
    """Columns that another accepted rule of severity error holds free of nulls: where they matter, that one fails."""
    rules = (rule for rule in contract.accepted(table) if rule.is_strict and rule.severity == "error")
    return frozenset(rule.form.column for rule in rules if isinstance(rule.form, NotNull))


def simplest(rule: ContractRule) -> ContractRule:
    """The rule with the plainest form that says the same.

    A denial constraint of one predicate is the negation of it; one that is a key says so where nothing may break it.
    """
    form = rule.form
    if not isinstance(form, DenialConstraint):
        return rule
    found: Form | None = None
    if len(form) == 1 and form.names_one_tuple:
        found = _negated(form.predicates[0])
    elif form.kind == "key" and rule.is_strict:
        found = Key(form.columns)
    return rule if found is None else replace(rule, form=found)


def _negated(predicate: Predicate) -> Form | None:
    """What holds in each row where a predicate may hold in none."""
    constant, column = predicate.constant, predicate.left
    if constant is None:
        return RowOrder(column, _HOLDS[predicate.operator], str(predicate.right))
    if predicate.operator == "is":
        return NotNull(column)
    if predicate.operator == "<":
        return Range(column, constant, None)
    if predicate.operator == ">":
        return Range(column, None, constant)
    return ValueSet(column, (constant,)) if predicate.operator == "!=" else None


def plain_value(constant: Constant, type_: TypeName | None, column: str) -> PlainValue:
    """A constant as a value of Python beside a column of this type. Dates and times stay text.

    Raises
    ------
    RuleError : where it can't be compared with such a column

    Examples
    --------
    >>> plain_value(Constant("5", "text"), "integer", "a"), plain_value(Constant("1.50", "decimal"), None, "a")
    (5, Decimal('1.50'))
    """
    if constant.type == "null" or type_ is None:
        return _as_written(constant)
    value = value_of(constant, type_, column)
    if type_ in ("date", "timestamp"):
        return constant.text
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return value


def _as_written(constant: Constant) -> PlainValue:
    if constant.type == "boolean":
        return constant.text == "true"
    if constant.type == "integer":
        return int(constant.text)
    if constant.type == "decimal":
        return Decimal(constant.text)
    return float(constant.text) if constant.type == "double" else constant.text
