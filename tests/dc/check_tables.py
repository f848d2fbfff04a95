"""Random small tables and random rules of every class, for the tests of rule checking."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from dc.dc_tables import POOLS, Table
from oracles.check import Condition

from tuplewise.engine.dc.constraint import NULL, Constant, DenialConstraint, Operator, Predicate, Role
from tuplewise.engine.relation.relation import DOMAIN_OF_TYPE

ORDERED: tuple[Operator, ...] = ("<", "<=", ">", ">=")
ALL: tuple[Operator, ...] = ("==", "!=", *ORDERED)
CLASSES = (
    "key", "fd", "constant", "one inequality", "two inequalities", "three inequalities", "four inequalities",
    "equality and inequalities", "same column several times", "across columns", "across equalities",
    "mixed orientation",
    "non-equalities", "non-equalities with others", "many non-equalities", "single tuple", "constants", "null tests",
    "one row", "contradiction", "own mirror", "only filters", "anything",
)  # fmt: skip


def random_table(rng: random.Random, rows: int | None = None) -> Table:
    """Columns of up to three types, two or three of one type, so that some can be compared with each other."""
    n = rng.choice([0, 1, 2, 3, 5, 8, 13]) if rows is None else rows
    columns: Table = []
    first = rng.choice(["integer", "double", "text", "date"])
    types = [first, first, rng.choice(["integer", "decimal"]), "integer", rng.choice(list(POOLS))]
    for place, type_ in enumerate(types):
        pool = list(POOLS[type_])
        some = rng.sample(pool, rng.randint(1, min(len(pool), 4)))
        share = rng.choice([0, 0, 0.15, 0.5])
        columns.append((f"c{place}", type_, [None if rng.random() < share else rng.choice(some) for _ in range(n)]))
    return columns


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return list(zip(*(values for _, _, values in table), strict=True)) if table else []


class Rules:
    """Random rules over one table."""

    def __init__(self, rng: random.Random, table: Table) -> None:
        self._rng, self._table = rng, table
        self._domains = [DOMAIN_OF_TYPE[t] for _, t, _ in table]  # type: ignore[index]
        self._columns = list(range(len(table)))

    def of(self, kind: str) -> list[Condition]:
        """A rule of one of CLASSES."""
        rng, same = self._rng, self._same
        some = rng.sample(self._columns, len(self._columns))
        number = {"one": 1, "two": 2, "three": 3, "four": 4}.get(kind.split()[0], 0)
        if kind.endswith(("inequality", "inequalities")) and number:
            return [same(c, rng.choice(ORDERED)) for c in some[:number]]
        makers = {
            "key": lambda: [same(c, "==") for c in some[: rng.randint(1, 3)]],
            "fd": lambda: [same(some[0], "!="), *(same(c, "==") for c in some[1 : rng.randint(2, 4)])],
            "constant": lambda: [same(some[0], "!=")],
            "equality and inequalities": lambda: [
                same(some[0], "=="), *(same(c, rng.choice(ORDERED)) for c in some[1 : rng.randint(2, 5)]),
            ],
            "same column several times": lambda: [
                *(same(some[0], rng.choice(ALL)) for _ in range(rng.randint(2, 3))),
                self._pair(some[0], rng.choice(ALL)),
            ],
            "across columns": lambda: [self._pair(c, rng.choice(ALL)) for c in some[: rng.randint(1, 3)]],
            "across equalities": lambda: [
                *(self._pair(c, "==") for c in some[: rng.randint(1, 2)]), self._pair(some[0], rng.choice(ALL)),
            ],
            "mixed orientation": lambda: [
                self._turned(same(c, rng.choice(ORDERED))) for c in some[: rng.randint(2, 3)]
            ],
            "non-equalities": lambda: [self._pair(c, "!=") for c in some[: rng.randint(2, 4)]],
            "non-equalities with others": lambda: [
                *(self._pair(c, "!=") for c in some[: rng.randint(1, 2)]),
                *(same(c, rng.choice(["==", *ORDERED])) for c in some[2 : rng.randint(3, 5)]),
            ],
            "many non-equalities": lambda: [("t", a, "!=", "u", b) for a, b in self._comparable()[:9]],
            "single tuple": lambda: [self._within(rng.choice("tu")), same(some[0], rng.choice(ALL)), self._within("t")],
            "constants": lambda: [
                self._constant(rng.choice("tu")), same(some[0], rng.choice(ALL)), self._constant("u"),
            ],
            "null tests": lambda: [
                (rng.choice("tu"), some[0], rng.choice(["is", "is not"]), None, None), same(some[1], rng.choice(ALL)),
            ],
            "one row": lambda: self._one_row(rng.choice("tu")),
            "contradiction": lambda: [same(some[0], "<"), same(some[0], ">="), same(some[1], "==")],
            "own mirror": lambda: self._own_mirror(some),
            "only filters": lambda: [self._constant("t"), self._constant("u")],
            "anything": lambda: [
                rng.choice([self._pair(c, rng.choice(ALL)), self._within(rng.choice("tu")), self._constant("t")])
                for c in some[: rng.randint(1, 5)]
            ],
        }  # fmt: skip
        return makers[kind]()

    def each(self) -> Iterator[tuple[str, list[Condition]]]:
        for kind in CLASSES:
            yield kind, self.of(kind)

    def _same(self, column: int, operator: str) -> Condition:
        return "t", column, operator, "u", column

    def _partner(self, column: int) -> int:
        return self._rng.choice([c for c in self._columns if self._domains[c] == self._domains[column]])

    def _pair(self, column: int, operator: str) -> Condition:
        return self._turned(("t", column, operator, "u", self._partner(column)))

    def _turned(self, c: Condition) -> Condition:
        return ("u", c[1], c[2], "t", c[4]) if self._rng.random() < 0.4 else c

    def _within(self, role: str) -> Condition:
        column = self._rng.choice(self._columns)
        return role, column, self._rng.choice(ALL), role, self._partner(column)

    def _comparable(self) -> list[tuple[int, int]]:
        return [(a, b) for a in self._columns for b in self._columns if self._domains[a] == self._domains[b]]

    def _constant(self, role: str) -> Condition:
        column = self._rng.choice(self._columns)
        values = [v for v in self._table[column][2] if v is not None] + list(POOLS[self._table[column][1]])
        return role, column, self._rng.choice(ALL), None, self._rng.choice(values)

    def _one_row(self, role: str) -> list[Condition]:
        tests = [self._within(role), self._constant(role), (role, self._rng.choice(self._columns), "is", None, None)]
        return self._rng.sample(tests, self._rng.randint(1, 2))

    def _own_mirror(self, some: list[int]) -> list[Condition]:
        a, b = some[0], self._partner(some[0])
        return [("t", a, "<=", "u", b), ("t", b, ">=", "u", a), self._same(some[1], "==")]


def as_rule(table: Table, conditions: list[Condition]) -> DenialConstraint:
    """The same rule as a value of ours."""
    predicates = []
    for role, column, operator, other, right in conditions:
        value = table[right][0] if other is not None else constant(right)
        predicates.append(Predicate(_role(role), table[column][0], operator, _role(other), value))  # type: ignore[arg-type]
    return DenialConstraint(tuple(predicates))


def _role(role: str | None) -> Role | None:
    return role  # type: ignore[return-value]


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
        return (
            Constant(repr(value), "double")
            if value == value and abs(value) < 1e300
            else Constant({float("inf"): "inf", float("-inf"): "-inf"}.get(value, "NaN"), "text")
        )
    if isinstance(value, datetime.datetime):
        return Constant(value.isoformat(sep=" "), "text")
    if isinstance(value, datetime.date):
        return Constant(value.isoformat(), "text")
    return Constant(value, "text")
