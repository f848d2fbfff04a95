"""Predicates and denial constraints as values: how they are written, named and told apart."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Operator = Literal["==", "!=", "<", "<=", ">", ">="]
Role = Literal["t", "u"]
Kind = Literal["key", "fd", "constant", "od", "dc"]
Operand = str | tuple[str, str]

OPERATORS: tuple[Operator, ...] = ("==", "!=", "<", "<=", ">", ">=")
EXCHANGED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset({"and", "or", "not", "true", "false", "null"})


def quote_name(name: str) -> str:
    """A column name as rules spell it: bare where it is a plain word, else in back-quotes (doubled inside).

    Examples
    --------
    >>> quote_name("zip"), quote_name("ident(String)"), quote_name("a`b")
    ('zip', '`ident(String)`', '`a``b`')
    """
    if _BARE_NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Predicate:
    """`left_role.left operator right_role.right`, columns by name.

    Examples
    --------
    >>> str(Predicate("t", "salary", "<", "u", "salary"))
    't.salary < u.salary'
    """

    left_role: Role
    left: str
    operator: Operator
    right_role: Role
    right: str

    def __str__(self) -> str:
        left = f"{self.left_role}.{quote_name(self.left)}"
        return f"{left} {self.operator} {self.right_role}.{quote_name(self.right)}"

    @property
    def same_column(self) -> bool:
        """Whether it compares one column of t with the same column of u."""
        return self.left == self.right and self.left_role != self.right_role

    @property
    def triple(self) -> tuple[Operand, str, Operand]:
        """As JSON lists it: `("t.a", "==", "u.a")`; a name that holds a dot makes the operand a pair."""
        return _operand(self.left_role, self.left), self.operator, _operand(self.right_role, self.right)

    def mirror(self) -> Predicate:
        """The same with t and u exchanged, written with t on the left where both tuples take part."""
        if self.left_role != self.right_role:
            return Predicate(self.left_role, self.right, EXCHANGED[self.operator], self.right_role, self.left)
        role: Role = "u" if self.left_role == "t" else "t"
        return Predicate(role, self.left, self.operator, role, self.right)


def _operand(role: Role, name: str) -> Operand:
    return (role, name) if "." in name else f"{role}.{name}"


@dataclass(frozen=True)
class DenialConstraint:
    """`not(p1 and ... and pm)`: no ordered pair of tuples satisfies all predicates.

    Equal when the predicates are equal, in order; sorted by size, then by text.

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
        """Whether it is about one row: it names t only, or u only."""
        return len({r for p in self.predicates for r in (p.left_role, p.right_role)}) == 1

    @property
    def is_symmetric(self) -> bool:
        """Whether it is its own mirror, up to the order of its predicates."""
        return set(self.mirror().predicates) == set(self.predicates)

    @property
    def kind(self) -> Kind:
        """The special kind it is, by its form.

        "key": every predicate is `t.X == u.X`. "constant": it is `not(t.A != u.A)`. "fd": one `t.A != u.A`, all
        others `t.X == u.X`. "od" (pointwise order dependency): at least two predicates, each of one column, no `!=`,
        some operator that orders. Anything else is "dc".
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
        """The constraint with t and u exchanged: it holds exactly when this one does."""
        return DenialConstraint(tuple(p.mirror() for p in self.predicates))
