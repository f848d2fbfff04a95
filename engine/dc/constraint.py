"""Predicates and denial constraints as values: their text, names and equality."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tuplewise.engine.table.schema import quote_name, quote_text

Operator = Literal["==", "!=", "<", "<=", ">", ">=", "is", "is not"]
Role = Literal["t", "u"]
Kind = Literal["key", "fd", "constant", "od", "dc"]
ConstantType = Literal["text", "integer", "decimal", "double", "boolean", "null"]
Operand = str | tuple[str, str] | dict[str, str | int | bool | None]

OPERATORS: tuple[Operator, ...] = ("==", "!=", "<", "<=", ">", ">=")
"""The comparisons; "is" and "is not" stand before null only."""
EXCHANGED: dict[Operator, Operator] = {
    "==": "==",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "is": "is",
    "is not": "is not",
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in a rule, with the type of its literal.

    Attributes
    ----------
    text : the value without quotes: `Texas`, `5`, `1.50`, `true`; empty for null
    type : type of the literal; dates and timestamps are written as text and get their type from their column

    Examples
    --------
    >>> str(Constant("it's", "text")), str(Constant("1.50", "decimal")), str(NULL)
    ("'it''s'", '1.50', 'null')
    """

    text: str
    type: ConstantType

    def __str__(self) -> str:
        if self.type == "null":
            return "null"
        if self.type == "text":
            return quote_text(self.text, "'")
        return self.text

    @property
    def record(self) -> dict[str, str | int | bool | None]:
        """The constant for JSON. Decimals and doubles stay text, so that no digit is lost."""
        value: str | int | bool | None = self.text
        if self.type == "integer":
            value = int(self.text)
        elif self.type == "boolean":
            value = self.text == "true"
        elif self.type == "null":
            value = None
        return {"value": value, "type": self.type}


NULL = Constant("", "null")


@dataclass(frozen=True, slots=True)
class Predicate:
    """`left_role.left operator right_role.right`, columns by name; or a column compared with a constant.

    `right_role` is None exactly if `right` is a constant; "is" and "is not" take `NULL` only.

    Examples
    --------
    >>> str(Predicate("t", "salary", "<", "u", "salary"))
    't.salary < u.salary'
    >>> str(Predicate("t", "state", "==", None, Constant("Texas", "text"))), str(Predicate("t", "a", "is", None, NULL))
    ("t.state == 'Texas'", 't.a is null')
    """

    left_role: Role
    left: str
    operator: Operator
    right_role: Role | None
    right: str | Constant

    def __str__(self) -> str:
        left = f"{self.left_role}.{quote_name(self.left)}"
        if isinstance(self.right, Constant):
            return f"{left} {self.operator} {self.right}"
        return f"{left} {self.operator} {self.right_role}.{quote_name(self.right)}"

    @property
    def same_column(self) -> bool:
        """Whether the predicate compares a column of t with the same column of u."""
        return self.right_role is not None and self.left == self.right and self.left_role != self.right_role

    @property
    def constant(self) -> Constant | None:
        """The right constant; None for a column."""
        return self.right if isinstance(self.right, Constant) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the predicate, left first: two, or one if the other operand is a constant."""
        return (self.left, self.right) if isinstance(self.right, str) else (self.left,)

    @property
    def roles(self) -> frozenset[Role]:
        """Tuple variables of the predicate."""
        return frozenset({self.left_role} if self.right_role is None else {self.left_role, self.right_role})

    @property
    def triple(self) -> tuple[Operand, str, Operand]:
        """The predicate for JSON: `("t.a", "==", "u.a")`. An operand is a pair if its column name contains a dot. A
        constant is a mapping with "value" and "type"."""
        left = _operand(self.left_role, self.left)
        if isinstance(self.right, Constant):
            return left, self.operator, self.right.record
        return left, self.operator, _operand(self.right_role or "t", self.right)

    def mirror(self) -> Predicate:
        """The predicate with t and u exchanged, written with t on the left if it names both tuples."""
        if isinstance(self.right, str) and self.right_role not in (None, self.left_role):
            return Predicate(self.left_role, self.right, EXCHANGED[self.operator], self.right_role, self.left)
        role: Role = "u" if self.left_role == "t" else "t"
        return Predicate(role, self.left, self.operator, None if self.right_role is None else role, self.right)

    def normalised(self, position: Mapping[str, int] | None = None) -> Predicate:
        """The same comparison in canonical form: t on the left of u; within one tuple, the lower name on the left (the
        earlier column, if `position` gives column positions).

        Examples
        --------
        >>> str(Predicate("u", "b", "<", "t", "a").normalised()), str(Predicate("t", "b", "<", "t", "a").normalised())
        ('t.a > u.b', 't.a > t.b')
        """
        if isinstance(self.right, Constant) or self.right_role is None:
            return self
        turned = Predicate(self.right_role, self.right, EXCHANGED[self.operator], self.left_role, self.left)
        if self.left_role != self.right_role:
            return self if self.left_role == "t" else turned
        if self.left == self.right:
            return turned if self.operator in (">", ">=") else self
        if position and self.left in position and self.right in position:
            return self if position[self.left] < position[self.right] else turned
        return self if self.left < self.right else turned


def _operand(role: Role, name: str) -> Operand:
    return (role, name) if "." in name else f"{role}.{name}"


def _place(p: Predicate, position: Mapping[str, int]) -> tuple[object, ...]:
    """Sort key of a predicate within its rule: by columns, across tuples before within one, by operator."""
    last = len(position)
    left = position.get(p.left, last)
    right = position.get(p.right, last) if isinstance(p.right, str) else last
    operators: tuple[Operator, ...] = (*OPERATORS, "is", "is not")
    return left, right, len(p.roles) == 1, operators.index(p.operator), str(p)


@dataclass(frozen=True)
class DenialConstraint:
    """`not(p1 and ... and pm)`: no ordered pair of tuples satisfies all predicates.

    Constraints are equal if their predicates are equal, in order. They sort by size, then by text.

    Examples
    --------
    >>> same_zip, other_city = Predicate("t", "zip", "==", "u", "zip"), Predicate("t", "city", "!=", "u", "city")
    >>> found = DenialConstraint((same_zip, other_city))
    >>> str(found), found.kind
    ('not(t.zip == u.zip and t.city != u.city)', 'fd')
    """

    predicates: tuple[Predicate, ...]

    def __str__(self) -> str:
        return self.rule

    def __len__(self) -> int:
        return len(self.predicates)

    def __lt__(self, other: DenialConstraint) -> bool:
        return (len(self), self.rule) < (len(other), other.rule)

    def __getstate__(self) -> dict[str, object]:
        return {"predicates": self.predicates}

    @cached_property
    def rule(self) -> str:
        """The canonical text."""
        return "not(" + " and ".join(map(str, self.predicates)) + ")"

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the canonical text."""
        return hashlib.sha256(self.rule.encode()).hexdigest()[:12]

    @property
    def names_one_tuple(self) -> bool:
        """Whether the constraint is about one row: it names t only, or u only."""
        return len({role for p in self.predicates for role in p.roles}) == 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the constraint, each once, in order of appearance."""
        return tuple(dict.fromkeys(name for p in self.predicates for name in p.columns))

    @property
    def is_symmetric(self) -> bool:
        """Whether the constraint is its own mirror, up to the order of its predicates."""
        return set(self.mirror().predicates) == set(self.predicates)

    @property
    def kind(self) -> Kind:
        """Special kind of the constraint, by its form.

        "key": every predicate is `t.X == u.X`. "constant": `not(t.A != u.A)`. "fd": one `t.A != u.A`, all others
        `t.X == u.X`. "od" (pointwise order dependency): at least two predicates, each of one column, no `!=`, at least
        one order operator. Anything else is "dc".
        """
        if not all(p.same_column for p in self.predicates):
            return "dc"
        operators = [p.operator for p in self.predicates]
        unequal = operators.count("!=")
        if unequal == 1 and len(operators) == 1:
            return "constant"
        if operators.count("==") == len(operators):
            return "key"
        if unequal == 1 and operators.count("==") == len(operators) - 1:
            return "fd"
        return "od" if unequal == 0 and len(operators) > 1 else "dc"

    def mirror(self) -> DenialConstraint:
        """The constraint with t and u exchanged, which holds exactly if this one holds."""
        return DenialConstraint(tuple(p.mirror() for p in self.predicates))

    def normalised(self, columns: Sequence[str] | None = None) -> DenialConstraint:
        """The same rule in canonical form, shared by all its spellings. Checked rules are named by this text.

        Predicates are normalised, deduplicated and sorted. With the table's `columns` they are sorted by column
        positions and operator, as in discovery; otherwise by their text. A rule about one row names t.
        """
        predicates = self.predicates
        if self.names_one_tuple and predicates[0].left_role == "u":
            predicates = self.mirror().predicates
        position = None if columns is None else {name: place for place, name in enumerate(columns)}
        distinct = dict.fromkeys(p.normalised(position) for p in predicates)
        if position is None:
            return DenialConstraint(tuple(sorted(distinct, key=str)))
        return DenialConstraint(tuple(sorted(distinct, key=lambda p: _place(p, position))))
