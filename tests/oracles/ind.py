"""Unary inclusion dependencies by definition: every column against every other, as sets.

Plain Python; imports nothing of tuplewise. A column is a pair of its type and its values, None for null: int and
Decimal (integer, decimal), float (double), date and datetime with a zone (date, timestamp), bool (boolean), str (text).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

Column = tuple[str, Sequence[Any]]
COMPARED = {
    "integer": "numbers", "decimal": "numbers", "double": "double", "date": "instants", "timestamp": "instants",
    "boolean": "boolean", "text": "text",
}  # fmt: skip


class Ind(NamedTuple):
    """A <= B by positions of columns, distinct values of both, and how many of A's are not in B."""

    dependent: int
    referenced: int
    dependent_distinct: int
    referenced_distinct: int
    missing: int


def plain(value: Any) -> Hashable:
    """A value as something that is equal in Python exactly where the two are equal here."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, (int, Decimal)):
        return Fraction(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value


def inclusions(columns: Sequence[Column], error: Fraction = Fraction(0)) -> tuple[list[Ind], int]:
    """Those that hold, or miss at most this share of their distinct values; and how many hold for want of values."""
    kinds = [COMPARED[type_] for type_, _ in columns]
    sets = [{plain(v) for v in values if v is not None} for _, values in columns]
    found = []
    trivial = 0
    for a, own in enumerate(sets):
        for b, other in enumerate(sets):
            if a == b:
                continue
            if not own:
                trivial += 1
                continue
            missing = len(own - other)
            if kinds[a] == kinds[b] and missing <= error * len(own):
                found.append(Ind(a, b, len(own), len(other), missing))
    return found, trivial
