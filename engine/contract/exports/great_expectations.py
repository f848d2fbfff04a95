"""Accepted rules as an expectation suite of Great Expectations 1.x, in JSON: `ExpectationSuite(**json.load(file))`.

Only expectations with exactly the meaning of a rule are written. A rule that none of them has is listed in "notes".
Great Expectations leaves rows with a null out, so where nulls are values a rule can be said of columns without nulls.
It compares dates with dates and times without a zone with such, and raises an error for a frame that has others.
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

from tuplewise.engine.contract.contract import Contract, ContractRule
from tuplewise.engine.contract.exports import scope
from tuplewise.engine.contract.exports.exported import CannotSay, Exported
from tuplewise.engine.contract.forms import (
    Constant,
    DenialConstraint,
    FunctionalDependency,
    InclusionDependency,
    Key,
    NotNull,
    Range,
    RowOrder,
    ValueSet,
    columns_of,
)
from tuplewise.engine.errors import InputError, RuleError, Wording, message

_SEVERITIES = {"error": "critical", "warning": "warning"}
_NO_COUNT = "a number of rows that may break it can't be said, only a share"
_FEWEST = "repeated keys are counted with the first of each, not as the fewest rows to remove"
_NULLS = "nulls are values, and here they are left out"
_TEXT_ORDER = "the order of texts is another in each database"
_NO_EXPECTATION = "no expectation says it"


def export(contract: Contract, table: str | None) -> Exported:
    """The suite of one table.

    Raises
    ------
    InputError : where the contract has several tables and none is chosen
    """
    if table is None and len(contract.tables) > 1:
        hint = Wording("An expectation suite is about one table: choose it with {table}")
        raise InputError(message("table of an expectation suite", None, ", ".join(contract.tables), hint))
    (described,) = scope.tables_of(contract, table)
    suite = _Suite(contract, described.name)
    expectations = [_expectation("expect_column_to_exist", column=name) for name in described.column_names]
    notes, left_out = [], []
    for rule in contract.accepted(described.name):
        try:
            expectations.append(suite.said(rule))
        except CannotSay as unsaid:
            left_out.append(rule.id)
            notes.append(f"Left out: {rule.id}: {rule.text}: {unsaid}")
    document = {
        "name": described.name,
        "expectations": expectations,
        "meta": {"tuplewise_contract": contract.name, "tuplewise_left_out": left_out},
        "notes": notes,
    }
    return Exported(json.dumps(document, indent=2, ensure_ascii=False) + "\n", ".json", tuple(left_out))


def _expectation(type_: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": type_, "kwargs": kwargs, "meta": {}, "severity": "critical"}


class _Suite:
    """What the expectations of one table need to know."""

    def __init__(self, contract: Contract, table: str) -> None:
        self._types = scope.types_of(contract.tables[table])
        self._nulls_are_values = contract.nulls == "value"
        self._never_null = scope.never_null(contract, table)

    def said(self, rule: ContractRule) -> dict[str, Any]:
        """The expectation of a rule. Raises CannotSay."""
        try:
            type_, kwargs = self._form(scope.simplest(rule))
        except RuleError as error:
            raise RuleError(f"rule {rule.id!r}: {error.said}") from None
        if rule.tolerance.max_violations:
            raise CannotSay(_NO_COUNT)
        if rule.tolerance.share:
            kwargs["mostly"] = float(1 - Decimal(str(rule.tolerance.share)))
        meta = {"tuplewise_id": rule.id, "tuplewise_rule": rule.text}
        meta |= {name: text for name, text in (("owner", rule.owner), ("note", rule.note)) if text}
        said = {"type": type_, "kwargs": kwargs, "meta": meta, "severity": _SEVERITIES[rule.severity]}
        return said | ({"description": rule.english} if rule.english else {})

    def _form(self, rule: ContractRule) -> tuple[str, dict[str, Any]]:
        form = rule.form
        if isinstance(form, NotNull):
            return "expect_column_values_to_not_be_null", {"column": form.column}
        if isinstance(form, InclusionDependency):
            raise CannotSay("an expectation is about one table" if form.referenced[0].table != rule.subject
                          else _NO_EXPECTATION)  # fmt: skip
        if isinstance(form, Key):
            return self._key(rule, form)
        if self._nulls_are_values and not self._never_null.issuperset(columns_of(form)):
            raise CannotSay(_NULLS)
        if isinstance(form, FunctionalDependency) and not form.determinant and rule.is_strict:
            return "expect_column_unique_value_count_to_be_between", {"column": form.dependent, "max_value": 1}
        if isinstance(form, ValueSet):
            return self._values(form)
        if isinstance(form, Range):
            return self._between(form.column, form.low, form.high)
        if isinstance(form, RowOrder):
            return self._pair(form)
        if isinstance(form, DenialConstraint):
            return self._predicate(form)
        raise CannotSay(_NO_EXPECTATION)

    def _key(self, rule: ContractRule, form: Key) -> tuple[str, dict[str, Any]]:
        if not rule.is_strict:
            raise CannotSay(_FEWEST)
        if len(form.columns) == 1:
            if self._nulls_are_values and not self._never_null.issuperset(form.columns):
                raise CannotSay(_NULLS)
            return "expect_column_values_to_be_unique", {"column": form.columns[0]}
        ignored = "never" if self._nulls_are_values else "any_value_is_missing"
        columns = {"column_list": list(form.columns), "ignore_row_if": ignored}
        return "expect_compound_columns_to_be_unique", columns

    def _values(self, form: ValueSet, wanted: str = "expect_column_values_to_be_in_set") -> tuple[str, dict[str, Any]]:
        if self._types.get(form.column) in ("date", "timestamp"):
            if len(form.values) == 1 and wanted == "expect_column_values_to_be_in_set":
                return self._between(form.column, form.values[0], form.values[0])
            raise CannotSay("sets of dates or times are compared as text")
        return wanted, {"column": form.column, "value_set": [self._value(v, form.column) for v in form.values]}

    def _between(
        self, column: str, low: Constant | None, high: Constant | None, **strict: bool
    ) -> tuple[str, dict[str, Any]]:
        if self._is_text(column) or any(end is not None and self._is_text(column, end) for end in (low, high)):
            raise CannotSay(_TEXT_ORDER)
        ends = {name: self._value(end, column) for name, end in (("min_value", low), ("max_value", high)) if end}
        return "expect_column_values_to_be_between", {"column": column, **ends, **strict}

    def _pair(self, form: RowOrder) -> tuple[str, dict[str, Any]]:
        left, right, sign = form.left, form.right, form.operator
        if sign == "!=":
            columns = {"column_list": [left, right], "ignore_row_if": "any_value_is_missing"}
            return "expect_select_column_values_to_be_unique_within_record", columns
        if sign in ("<", "<="):
            left, right = right, left
        both = {"column_A": left, "column_B": right, "ignore_row_if": "either_value_is_missing"}
        if sign == "==":
            return "expect_column_pair_values_to_be_equal", both
        if self._is_text(left) or self._is_text(right):
            raise CannotSay(_TEXT_ORDER)
        return "expect_column_pair_values_a_to_be_greater_than_b", {**both, "or_equal": sign in ("<=", ">=")}

    def _predicate(self, form: DenialConstraint) -> tuple[str, dict[str, Any]]:
        """A constraint of one predicate that compares a column with a constant."""
        (predicate, *more) = form.predicates
        constant, column = predicate.constant, predicate.left
        if not more and constant is not None and constant.type != "null":
            if predicate.operator == "==":
                return self._values(ValueSet(column, (constant,)), "expect_column_values_to_not_be_in_set")
            if predicate.operator == "<=":
                return self._between(column, constant, None, strict_min=True)
            if predicate.operator == ">=":
                return self._between(column, None, constant, strict_max=True)
        raise CannotSay(_NO_EXPECTATION)

    def _is_text(self, column: str, constant: Constant | None = None) -> bool:
        """Whether a column is of text, by its type, or where it has none by a constant."""
        if column in self._types or constant is None:
            return self._types.get(column) == "text"
        return constant.type == "text"

    def _value(self, constant: Constant, column: str) -> Any:
        """A constant as JSON has it: a number as the nearest double, a time in UTC, without a zone."""
        type_ = self._types.get(column)
        value = scope.plain_value(constant, type_, column)
        if isinstance(value, float) and value - value != 0:
            raise CannotSay("JSON has no such number")
        if type_ == "timestamp":
            moment = datetime.datetime.fromisoformat(str(value))
            if moment.tzinfo is not None:
                moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
            return moment.isoformat()
        return float(value) if isinstance(value, Decimal) else value
