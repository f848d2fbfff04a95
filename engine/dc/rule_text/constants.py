"""Constants of rules beside typed columns: the value of a constant, and its rank among the values of a column.

A constant takes the type of the column that it is compared with. Beside number columns, numbers compare by value (`5.0`
equals the integer 5); beside double columns, as the nearest double. Text in quotes can be compared with any column
whose type its text spells, as in SQL: `'2024-01-31'` with dates, ISO 8601 with timestamps (without a zone it is UTC, a
day alone is its first moment), `'5'` with numbers, `'NaN'` and `'inf'` with doubles. A number or `true` beside a text
column is an error, since it is not known whether `5` should equal the text `05`.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tuplewise.engine.dc.constraint import Constant, DenialConstraint, Predicate
from tuplewise.engine.errors import InputError, RuleError, Wording, joined, message
from tuplewise.engine.table.relation import Column, Relation, TypeName
from tuplewise.engine.table.text_types import BOOLEAN, DATE, FITS, TIMESTAMP, WHAT_FITS

if TYPE_CHECKING:
    import pyarrow as pa

Value = str | bool | int | float | Decimal
"""A number as Decimal, a double as float, a date as days and a timestamp as nanoseconds since 1970."""

_NUMBERS = ("integer", "decimal", "double")
_NUMBER_TEXT = re.compile(FITS["decimal"] + r"([eE][+-]?[0-9]{1,4})?", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY_NANOSECONDS = 86_400 * 10**9
_UNIT_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def value_of(constant: Constant, type_: TypeName, column: str) -> Value:
    """The value of a constant beside a column of this type.

    Raises
    ------
    RuleError : if it can't be compared with such a column
    """
    text = constant.text
    value: Value | None = None
    if constant.type == "null":
        hint = f"Write `{column} is null`"
        raise RuleError(message(f"null compared with column {column!r}", allowed="is null, is not null", hint=hint))
    if type_ == "text":
        value = text if constant.type == "text" else None
    elif type_ == "boolean":
        if constant.type == "boolean" or (constant.type == "text" and re.fullmatch(BOOLEAN, text)):
            value = text.lower() == "true"
    elif constant.type == "boolean":
        value = None
    elif type_ in ("integer", "decimal"):
        value = Decimal(text) if _NUMBER_TEXT.fullmatch(text) else None
    elif type_ == "double":
        value = float(text) + 0.0 if re.fullmatch(FITS["double"], text, re.ASCII) else None
    elif constant.type == "text":
        value = _days(text) if type_ == "date" else _nanoseconds(text)
    if value is None:
        raise RuleError(_misfit(constant, type_, column))
    return value


def _misfit(constant: Constant, type_: TypeName, column: str) -> str:
    quoted = "'" + constant.text.replace("'", "''") + "'"
    hint = None
    if constant.type != "text" and type_ in ("text", "date", "timestamp"):
        hint = f"Quote it: {quoted}"
        if type_ == "text":
            hint = Wording("{}; or read the column as numbers: {types}", hint, types={column: constant.type})
    elif type_ == "date" and _nanoseconds(constant.text) is not None:
        hint = Wording("Give the day alone, or read the column as timestamps: {types}", types={column: "timestamp"})
    elif type_ in _NUMBERS and constant.type == "text":
        hint = Wording("Or read the column as text: {types}", types={column: "text"})
    allowed = "text in single quotes" if type_ == "text" else WHAT_FITS[type_]
    return message(f"constant beside column {column!r}, whose type is {type_}", constant.text, allowed, hint)


def _days(text: str) -> int | None:
    """Days since 1970 of `YYYY-MM-DD`; None for other text and impossible dates."""
    if not re.fullmatch(DATE, text):
        return None
    try:
        return (datetime.date.fromisoformat(text) - _EPOCH.date()).days
    except ValueError:
        return None


def _nanoseconds(text: str) -> int | None:
    """Nanoseconds since 1970 of a timestamp in ISO 8601 or of a day's first moment, in UTC; None for other text."""
    if (days := _days(text)) is not None:
        return days * _DAY_NANOSECONDS
    if not re.fullmatch(TIMESTAMP, text):
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    offset = moment.utcoffset() or datetime.timedelta(0)
    return ((moment.replace(tzinfo=None) - _EPOCH - offset) // datetime.timedelta(microseconds=1)) * 1000


def utc_text(nanoseconds: int) -> str:
    """A timestamp in SQL, in UTC without a zone: `2024-01-31 10:00:00.5`."""
    moment = _EPOCH + datetime.timedelta(microseconds=nanoseconds // 1000)
    text = moment.isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def place_constant(relation: Relation, column: int, constant: Constant) -> tuple[int, bool]:
    """The rank of a constant in the dictionary of a column.

    Returns
    -------
    rank : of the first value that is not lower than the constant, or the number of values
    present : whether that value equals the constant

    Raises
    ------
    RuleError : if the constant can't be compared with the column

    Notes
    -----
    Steps in the logarithm of the dictionary's length.
    """
    described = relation.columns[column]
    if described.distinct == 0:
        return 0, False
    value = value_of(constant, described.type, described.name)
    dictionary = relation.dictionaries[described.domain]
    read = _reader(described, dictionary)
    wanted = _sortable(value)
    low, high = 0, len(dictionary)
    while low < high:
        middle = (low + high) // 2
        if _sortable(read(middle)) < wanted:
            low = middle + 1
        else:
            high = middle
    return low, low < len(dictionary) and _sortable(read(low)) == wanted


def _reader(column: Column, dictionary: pa.Array) -> Callable[[int], Value]:
    """A function that reads a value of the dictionary in the form of `value_of`."""
    if column.domain == "date":
        return lambda i: int(dictionary[i].value)
    if column.domain == "timestamp":
        unit = _UNIT_NANOSECONDS[dictionary.type.unit]
        return lambda i: int(dictionary[i].value) * unit
    return lambda i: dictionary[i].as_py()  # type: ignore[no-any-return]


def _sortable(value: Value) -> Any:
    """NaN above every number; the rest as Python sorts it (text by code points, which is by bytes of UTF-8)."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def check_types(relation: Relation, rule: DenialConstraint) -> None:
    """Raise RuleError, with all faults, for unknown columns and for types that can't be compared."""
    columns = {c.name: c for c in relation.columns}
    faults: list[str] = []
    for name in rule.columns:
        if name not in columns:
            try:
                relation.index_of(name)
            except InputError as error:
                faults.append(error.wording)
    for p in rule.predicates:
        if all(name in columns for name in p.columns):
            fault = _fault(p, *(columns[name] for name in p.columns))
            if fault is not None:
                faults.append(fault)
    if faults:
        raise RuleError(Wording("rule {}: {}", rule, joined(dict.fromkeys(faults), "\n")))


def _fault(p: Predicate, left: Column, right: Column | None = None) -> str | None:
    """The fault of one predicate, or None. A column without values can be compared with anything.

    Its type is a guess then: a file without rows must not fail rules that fit its later rows.
    """
    if p.operator in ("is", "is not") or left.distinct == 0 or (right is not None and right.distinct == 0):
        return None
    if isinstance(p.right, Constant):
        try:
            value_of(p.right, left.type, left.name)
        except RuleError as error:
            return error.wording
        return None
    if right is None or left.domain == right.domain:
        return None
    given = f"{left.name} ({left.type}) and {right.name} ({right.type})"
    allowed = "columns of one type (integer and decimal count as one, double only with double)"
    return message(f"columns of different types in {p}", given, allowed, _type_hint(left, right))


def _type_hint(left: Column, right: Column) -> str:
    """The types to set so that both columns have one type, by a lossless conversion."""
    for one, other in ((left, right), (right, left)):
        if one.domain == "number" and other.domain == "double":
            return Wording("Read both as doubles: {types}", types={one.name: "double"})
        if (one.type, other.type) == ("date", "timestamp"):
            return Wording("Read both as timestamps: {types}", types={one.name: "timestamp"})
    return Wording("Read both as text: {types}", types={c.name: "text" for c in (left, right) if c.type != "text"})
