"""What it means that rows violate a rule, written down from the definitions (semantics: values, nulls, pairs, counts).

Plain Python over rows of Python values; None is null. Nothing of the package is used. For tables of more rows than
Python compares in a moment there is a second formulation, over arrays of integers; the two are held to each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = Sequence[Any]
Condition = tuple[str, int, str, str | None, Any]
"""(role, column, operator, role or None, column or value): `t.0 < u.1` is ("t", 0, "<", "u", 1); a role of None says
that a value stands on the right. Operators "is" and "is not" stand before None."""


@dataclass(frozen=True)
class Violations:
    """All there is to know about one rule in one table. A rule about one row has pairs (t, -1)."""

    pairs: frozenset[tuple[int, int]]
    listed: tuple[tuple[int, int], ...]
    counts: tuple[int, ...]
    rows_unknown: int
    symmetric: bool


def order_of(a: Any, b: Any) -> int:
    """-1, 0 or 1. NaN equals NaN and is greater than every number, -0.0 equals 0.0, text is ordered by bytes."""
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    elif isinstance(a, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) - math.isnan(b)
    elif isinstance(a, (int, Decimal)) and not isinstance(a, bool):
        a, b = Decimal(a), Decimal(b)
    return (a > b) - (a < b)


def satisfied(a: Any, operator: str, b: Any, nulls: str) -> bool:
    """Whether a comparison is satisfied under a null rule."""
    if operator in ("is", "is not"):
        return (a is None) == (operator == "is")
    if a is None or b is None:
        if nulls == "unknown":
            return False
        order = (a is not None) - (b is not None)
    else:
        order = order_of(a, b)
    return {
        "==": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def _holds_on(rule: Sequence[Condition], rows: Sequence[Row], place: dict[str, int], nulls: str) -> bool:
    for role, column, operator, other, right in rule:
        value = right if other is None else rows[place[other]][right]
        if not satisfied(rows[place[role]][column], operator, value, nulls):
            return False
    return True


def roles_of(rule: Sequence[Condition]) -> set[str]:
    return {role for c in rule for role in (c[0], c[3]) if role is not None}


def mirror(rule: Sequence[Condition]) -> list[Condition]:
    """The rule with t and u exchanged."""
    swap = {"t": "u", "u": "t", None: None}
    return [(swap[a] or "", c, op, swap[b], d) for a, c, op, b, d in rule]


def _written_one_way(rule: Sequence[Condition]) -> set[Condition]:
    """Conditions with t on the left, within one tuple the smaller column: `u.0 < t.1` is `t.1 > u.0`."""
    turn = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    found = set()
    for role, column, operator, other, right in rule:
        if other is not None and (
            (role == "u" and other == "t")
            or (role == other and (column > right or (column == right and operator in (">", ">="))))
        ):
            found.add((other, right, turn.get(operator, operator), role, column))
        else:
            found.add((role, column, operator, other, str(right) if other is None else right))
    return found


def violations(rows: Sequence[Row], rule: Sequence[Condition], nulls: str) -> Violations:
    """Everything, by comparing every ordered pair of rows on every condition."""
    n, roles = len(rows), roles_of(rule)
    symmetric = False
    if len(roles) == 1:
        role = next(iter(roles))
        pairs = {(t, -1) for t in range(n) if _holds_on(rule, rows, {role: t}, nulls)}
        listed = sorted(pairs)
    else:
        pairs = {
            (t, u) for t in range(n) for u in range(n) if t != u and _holds_on(rule, rows, {"t": t, "u": u}, nulls)
        }
        symmetric = _written_one_way(rule) == _written_one_way(mirror(rule))
        listed = sorted(p for p in pairs if not symmetric or p[0] < p[1])
    counts = [0] * n
    for pair in listed:
        for row in pair:
            if row >= 0:
                counts[row] += 1
    named = {c[1] for c in rule if c[2] not in ("is", "is not")} | {c[4] for c in rule if c[3] is not None}
    unknown = sum(any(row[c] is None for c in named) for row in rows) if nulls == "unknown" else 0
    return Violations(frozenset(pairs), tuple(listed), tuple(counts), unknown, symmetric)


def violation_matrix(columns: Sequence[Sequence[int | None]], rule: Sequence[Condition], nulls: str) -> NDArray[Any]:
    """Which ordered pairs violate a rule of two tuples over integers: bool (rows, rows), t down, u across.

    Null is a number below all others; under "unknown" rows with a null in what a condition compares are struck out.
    """
    lowest = np.iinfo(np.int64).min
    values = np.array([[lowest if v is None else v for v in column] for column in columns], dtype=np.int64)
    compare = {
        "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    }  # fmt: skip
    found = ~np.eye(values.shape[1], dtype=bool)

    def laid(role: str, array: NDArray[Any]) -> NDArray[Any]:
        return array[:, None] if role == "t" else array[None, :]

    for role, column, operator, other, right in rule:
        left = values[column]
        if operator in ("is", "is not"):
            found &= laid(role, (left == lowest) == (operator == "is"))
            continue
        found &= compare[operator](laid(role, left), right if other is None else laid(other, values[right]))
        if nulls == "unknown":
            found &= laid(role, left != lowest)
            if other is not None:
                found &= laid(other, values[right] != lowest)
    return found
