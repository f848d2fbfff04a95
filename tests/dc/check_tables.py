"""Random small tables and random rules of every class, for the tests of rule checking."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from dc.dc_tables import POOLS, Table, encode
from oracles.check import Condition, mirror, order_of

import tuplewise as tw
from tuplewise.engine.dc.constraint import NULL, Constant, DenialConstraint, Operator, Predicate
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, Relation

ORDERED: tuple[Operator, ...] = ("<", "<=", ">", ">=")
ALL: tuple[Operator, ...] = ("==", "!=", *ORDERED)
ARROW = {
    "integer": pa.int64(), "decimal": pa.decimal128(38, 6), "double": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "boolean": pa.bool_(), "text": pa.string(),
}  # fmt: skip
NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 5], dtype=np.uint64).view(np.float64)


def random_table(rng: random.Random, rows: int | None = None) -> Table:
    """Five columns of up to four types, two or more of one type, so that some can be compared with each other.

    Few values each, so that there are ties; nulls, constants, columns without values; rows that repeat others; columns
    that follow another one or are sorted.
    """
    n = rng.choice([0, 1, 2, 3, 5, 8, 13, 13, 20, 20]) if rows is None else rows
    first = rng.choice(["integer", "double", "text", "date", "timestamp", "boolean"])
    types = [first, first, rng.choice(["integer", "decimal"]), "integer", rng.choice(list(POOLS))]
    columns: list[list[Any]] = []
    for place, type_ in enumerate(types):
        pool = list(POOLS[type_])
        some = rng.sample(pool, rng.randint(1, min(len(pool), 5)))
        share = rng.choice([0, 0, 0, 0.1, 0.4, 1 if rng.random() < 0.15 else 0])
        values = [rng.choice(some) for _ in range(n)]
        shape = rng.random()
        if shape < 0.15 and types[place - 1] == type_ and place:
            values = [rng.choice([v, w]) for v, w in zip(columns[-1], values, strict=True)]
        elif shape < 0.3 and type_ != "double":
            values = sorted((v for v in values if v is not None), reverse=rng.random() < 0.5)
            values += [None] * (n - len(values))
        columns.append([None if rng.random() < share else v for v in values])
    for row in range(1, n):
        if rng.random() < 0.1:
            like = rng.randrange(row)
            for column in columns:
                column[row] = column[like]
    return [(f"c{place}", type_, values) for place, (type_, values) in enumerate(zip(types, columns, strict=True))]


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return list(zip(*(values for _, _, values in table), strict=True)) if table else []


def as_arrow(table: Table) -> pa.Table:
    """The same as Arrow has it; every other NaN has other bits than the one before."""
    columns = {}
    for name, type_, values in table:
        column = pa.array(values, ARROW[type_])
        if type_ == "double":
            plain = np.array([0.0 if v is None else v for v in values])
            plain[np.isnan(plain)] = np.resize(NANS, int(np.isnan(plain).sum()))
            column = pa.array(plain, mask=np.array([v is None for v in values], dtype=bool))
        columns[name] = column
    return pa.table(columns)


def relation_of(rng: random.Random, table: Table) -> Relation:
    """The table encoded by the definition of codes, or by the package."""
    return encode(table) if rng.random() < 0.5 else tw.load(as_arrow(table))


class Rules:
    """Random rules over one table. Predicates of two tuples are written with u on the left in two cases of five."""

    def __init__(self, rng: random.Random, table: Table) -> None:
        self._rng, self._table = rng, table
        self._domains = [DOMAIN_OF_TYPE[t] for _, t, _ in table]  # type: ignore[index]
        self._columns = list(range(len(table)))

    def of(self, kind: str) -> list[Condition]:
        """A rule of one of CLASSES."""
        return MAKERS[kind](self, self._rng.sample(self._columns, len(self._columns)), self._rng.randint)

    def each(self) -> Iterator[tuple[str, list[Condition]]]:
        for kind in CLASSES:
            yield kind, self.of(kind)

    def same(self, columns: Sequence[int], operators: Sequence[str]) -> list[Condition]:
        """Each column of t with the same of u."""
        return [self._turned(("t", c, self._rng.choice(operators), "u", c)) for c in columns]

    def across(self, columns: Sequence[int], operators: Sequence[str]) -> list[Condition]:
        """Each column of t with a column of u that it can be compared with, at times the same."""
        return [self._turned(("t", c, self._rng.choice(operators), "u", self._partner(c))) for c in columns]

    def within(self, roles: str) -> list[Condition]:
        """For each role a column with another (or the same) of the same tuple."""
        columns = [self._rng.choice(self._columns) for _ in roles]
        return [(r, c, self._rng.choice(ALL), r, self._partner(c)) for r, c in zip(roles, columns, strict=True)]

    def constants(self, roles: str, operators: Sequence[str] = ALL) -> list[Condition]:
        """For each role a column with a value that it has, or may have, or that lies between two of those."""
        found: list[Condition] = []
        for role in roles:
            column = self._rng.choice(self._columns)
            type_, values = self._table[column][1:]
            pool = [v for v in values if v is not None] + list(POOLS[type_])
            if type_ in ("integer", "decimal"):
                pool += [Decimal("1.5"), Decimal("2.00"), 2, 10**30]
            found.append((role, column, self._rng.choice(operators), None, self._rng.choice(pool)))
        return found

    def null_tests(self, roles: str) -> list[Condition]:
        rng = self._rng
        return [(r, rng.choice(self._columns), rng.choice(["is", "is not"]), None, None) for r in roles]

    def any_role(self) -> str:
        return self._rng.choice("tu")

    def shuffled(self, rule: list[Condition]) -> list[Condition]:
        return self._rng.sample(rule, len(rule))

    def contradiction(self, column: int) -> list[Condition]:
        """Conditions that no pair of rows satisfies, whatever the values."""
        other = self._partner(column)
        value = self._rng.choice(list(POOLS[self._table[column][1]]))
        differing = [v for v in POOLS[self._table[column][1]] if order_of(v, value)]
        choices: list[list[Condition]] = [
            [("t", column, "<", "u", column), ("t", column, ">=", "u", column)],
            [("t", column, "==", "u", column), ("u", column, "!=", "t", column)],
            [("t", column, "<", "u", other), ("u", other, "<=", "t", column)],
            [("u", column, "<", "u", column), ("t", column, "==", "u", column)],
            [("t", column, "==", None, value), ("t", column, "==", None, self._rng.choice(differing))],
            [("t", column, "is", None, None), ("t", column, "is not", None, None)],
            [("u", column, "is", None, None), ("u", column, "<=", None, value), ("u", column, ">=", None, value)],
        ]
        return self._rng.choice(choices)

    def _partner(self, column: int) -> int:
        return self._rng.choice([c for c in self._columns if self._domains[c] == self._domains[column]])

    def _turned(self, c: Condition) -> Condition:
        """The condition, or its mirror written with u on the left: `u.A < t.B` for `t.A < u.B`."""
        return ("u", c[1], c[2], "t", c[4]) if self._rng.random() < 0.4 else c


Maker = Callable[[Rules, list[int], Callable[[int, int], int]], list[Condition]]


def _one_orientation(r: Rules, s: list[int], n: Callable[[int, int], int]) -> list[Condition]:
    operators = ORDERED[:2] if n(0, 1) else ORDERED[2:]
    return [("t", c, operators[n(0, 1)], "u", c) for c in s[: n(2, 4)]]


def _own_mirror(r: Rules, s: list[int], n: Callable[[int, int], int]) -> list[Condition]:
    half = r.across(s[: n(1, 2)], ALL) + r.constants("t" * n(0, 1)) + r.null_tests("u" * n(0, 1))
    return r.shuffled(half + mirror(half) + r.same(s[2 : n(2, 3)], ["==", "!="]))


def _one_row(r: Rules, s: list[int], n: Callable[[int, int], int]) -> list[Condition]:
    role = r.any_role()
    return r.shuffled(r.within(role) + r.constants(role) + r.null_tests(role))[: n(1, 3)]


def _anything(r: Rules, s: list[int], n: Callable[[int, int], int]) -> list[Condition]:
    each = r.across(s, ALL) + r.same(s, ALL) + r.within("tu") + r.constants("tu") + r.null_tests("tu")
    return r.shuffled(each)[: n(1, 6)]


EQUAL, UNEQUAL = ("==",), ("!=",)
UNSTRICT = ("!=", "<=", ">=", "<=", ">=", "<")
MAKERS: dict[str, Maker] = {
    "key": lambda r, s, n: r.same(s[: n(1, 3)], EQUAL),
    "key across": lambda r, s, n: r.across(s[: n(1, 2)], EQUAL),
    "fd": lambda r, s, n: r.same(s[:1], UNEQUAL) + r.same(s[1 : n(2, 4)], EQUAL),
    "constant": lambda r, s, n: r.same(s[:1], UNEQUAL),
    "one inequality": lambda r, s, n: r.same(s[:1], ORDERED),
    "two inequalities": lambda r, s, n: r.same(s[:2], ORDERED),
    "three inequalities": lambda r, s, n: r.same(s[:3], ORDERED),
    "four inequalities": lambda r, s, n: r.same(s[:4], ORDERED),
    "one orientation": _one_orientation,
    "mixed orientation": lambda r, s, n: [
        ("t", s[0], "<", "u", s[0]), ("u", s[1], "<=", "t", s[1]), *r.same(s[2 : n(2, 3)], ORDERED),
    ],
    "equality and inequalities": lambda r, s, n: r.shuffled(r.same(s[:1], EQUAL) + r.same(s[1 : n(2, 5)], ORDERED)),
    "same column several times": lambda r, s, n: r.same(s[:1] * n(1, 3), UNSTRICT) + r.across(s[:1] * n(1, 3), ALL),
    "one column, one orientation": lambda r, s, n: [
        ("t", s[0], "<", "u", s[0]), ("t", s[0], "<=", "u", s[0]), *r.across(s[:1], ORDERED),
    ],
    "across columns": lambda r, s, n: r.across(s[: n(1, 3)], ALL),
    "across inequalities": lambda r, s, n: r.across(s[: n(1, 4)], ORDERED),
    "across equalities": lambda r, s, n: r.across(s[: n(1, 2)], EQUAL) + r.across(s[2 : n(2, 4)], ORDERED),
    "non-equalities": lambda r, s, n: r.across(s[: n(2, 4)], UNEQUAL),
    "equalities and non-equalities": lambda r, s, n: r.across(s[: n(1, 2)], EQUAL) + r.across(s[2 : n(3, 5)], UNEQUAL),
    "inequalities and non-equalities": lambda r, s, n: r.same(s[: n(1, 3)], ORDERED)
    + r.across(s[5 - n(1, 4) :], UNEQUAL),
    "all three": lambda r, s, n: r.same(s[:1], EQUAL) + r.same(s[1 : n(2, 4)], ORDERED)
    + r.across(s[5 - n(1, 3) :], UNEQUAL),
    "many non-equalities": lambda r, s, n: [
        *r.across(s, UNEQUAL), *r.across(s[: n(2, 4)], UNEQUAL), *r.same(s[: n(0, 1)], ORDERED),
    ],
    "single tuple": lambda r, s, n: r.within(r.any_role()) + r.same(s[: n(1, 2)], ALL) + r.within("tu"[: n(0, 2)]),
    "constants": lambda r, s, n: r.constants(["t", "u", "tu", "tt"][n(0, 3)]) + r.same(s[: n(1, 2)], ALL),
    "null tests": lambda r, s, n: r.null_tests(["t", "u", "tu"][n(0, 2)]) + r.same(s[:1], ALL),
    "only filters": lambda r, s, n: r.constants("t") + r.within("u"),
    "one row": _one_row,
    "contradiction": lambda r, s, n: r.shuffled(r.contradiction(s[0]) + r.same(s[1 : n(1, 3)], ALL)),
    "own mirror": _own_mirror,
    "said twice": lambda r, s, n: 2 * r.same(s[: n(1, 2)], ALL) + mirror(r.across(s[:1], ALL)),
    "anything": _anything,
}  # fmt: skip
CLASSES = tuple(MAKERS)


def as_rule(table: Table, conditions: Sequence[Condition]) -> DenialConstraint:
    """The same rule as a value of ours."""
    predicates = []
    for role, column, operator, other, right in conditions:
        value = table[right][0] if other is not None else constant(right)
        predicates.append(Predicate(role, table[column][0], operator, other, value))  # type: ignore[arg-type]
    return DenialConstraint(tuple(predicates))


def constant(value: Any) -> Constant:
    """A Python value as a rule writes it."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return Constant("true" if value else "false", "boolean")
    if isinstance(value, int):
        return Constant(str(value), "integer")
    if isinstance(value, Decimal):
        return Constant(str(value), "decimal")
    if isinstance(value, float):
        return Constant(repr(value), "double" if math.isfinite(value) else "text")
    if isinstance(value, datetime.datetime):
        return Constant(value.isoformat(sep=" "), "text")
    if isinstance(value, datetime.date):
        return Constant(value.isoformat(), "text")
    return Constant(value, "text")
