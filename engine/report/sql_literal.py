"""Constants of rules as SQL literals of the type of the column that they stand beside."""

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
    "ansi": lambda text: f"TIMESTAMP '{text}+00:00'",
}


def text_literal(text: str, dialect: str) -> str:
    """Text between single quotes, so that the engine reads the same text again.

    Spark takes backslashes as escapes, joins texts that stand side by side, and replaces `${...}` before it parses;
    DuckDB has no way to write the character 0 between quotes.
    """
    if dialect == "spark":
        escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0").replace("${", "\\u0024{")
        return f"'{escaped}'"
    quoted = "'" + text.replace("'", "''") + "'"
    if dialect == "duckdb" and "\0" in text:
        return "(" + quoted.replace("\0", "' || chr(0) || '") + ")"
    return quoted


def _number(value: Decimal, dialect: str, *, of_integers: bool) -> str:
    """Digits where 38 of them hold the number, else a double: no number of 38 digits lies between them.

    Spark 4.1 takes a comparison of an integer column with a decimal literal beyond the column's range for true, in rows
    with null too; a cast keeps it from looking.
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
    name = "DOUBLE PRECISION" if dialect == "ansi" else "DOUBLE"
    if math.isnan(value):
        return f"CAST('NaN' AS {name})"
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS {name})"
    return repr(value) if "e" in repr(value) else f"{value!r}E0"
