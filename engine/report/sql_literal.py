"""Constants of rules as SQL literals of the type of the column that they are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from tuplewise.engine.dc.constraint import Constant
from tuplewise.engine.dc.rule_text.constants import utc_text, value_of
from tuplewise.engine.table.relation import TypeName

_MOST_DIGITS = 38


def literal(constant: Constant, type_: TypeName, column: str, dialect: str) -> str:
    """A constant as SQL. Raises RuleError where it can't be compared with a column of this type."""
    value = value_of(constant, type_, column)
    if type_ == "date":
        return f"DATE '{constant.text}'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return text_literal(value, dialect)
    if isinstance(value, Decimal):
        return _number(value, dialect, of_integers=type_ == "integer")
    if isinstance(value, float):
        return _double(value, dialect)
    return _TIMESTAMPS[dialect](utc_text(value))


_TIMESTAMPS: dict[str, Callable[[str], str]] = {
    "spark": lambda text: f"TIMESTAMP '{text}Z'",
    "duckdb": lambda text: f"TIMESTAMPTZ '{text}+00'",
    "postgres": lambda text: f"TIMESTAMPTZ '{text}+00'",
    "ansi": lambda text: f"TIMESTAMP '{text}+00:00'",
}


def text_literal(text: str, dialect: str) -> str:
    """Text in single quotes that the engine reads back unchanged.

    Spark takes backslashes as escapes, joins adjacent literals, and replaces `${...}` before it parses. DuckDB can't
    write the character 0 in quotes.
    """
    if dialect == "spark":
        escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0").replace("${", "\\u0024{")
        return f"'{escaped}'"
    quoted = "'" + text.replace("'", "''") + "'"
    if dialect == "duckdb" and "\0" in text:
        return "(" + quoted.replace("\0", "' || chr(0) || '") + ")"
    return quoted


def _number(value: Decimal, dialect: str, *, of_integers: bool) -> str:
    """A decimal literal of at most 38 digits, else a double: no number of 38 digits lies between the two.

    Spark 4.1 evaluates a comparison of an integer column with a decimal literal outside the column's range as true,
    even for null. A cast prevents that.
    """
    if value == 0:
        return "0"
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + exponent, 0) + scale
    if precision > _MOST_DIGITS:
        return _double(float(value), dialect)
    if of_integers and value == value.to_integral_value():
        value, scale = Decimal(int(value)), 0
    if of_integers and dialect == "spark" and (scale or not -(2**63) <= value < 2**63):
        return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
    return f"{value:f}"


def _double(value: float, dialect: str) -> str:
    name = "DOUBLE PRECISION" if dialect in ("ansi", "postgres") else "DOUBLE"
    if math.isnan(value):
        return f"CAST('NaN' AS {name})"
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS {name})"
    return repr(value) if "e" in repr(value) else f"{value!r}E0"
