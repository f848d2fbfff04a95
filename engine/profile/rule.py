"""A rule of a profile, with its measures; order rules as denial constraints, for the kernels of rule checking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tuplewise.engine.dc.constraint import DenialConstraint, Predicate

Kind = Literal["key", "fd", "od", "row", "constant"]
Order = tuple[tuple[int, ...], int, int, bool]
"""A context, A, B, and whether both rise together; else one falls as the other rises."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about the columns of one table, by their numbers.

    Attributes
    ----------
    kind : what it says
        "key": no two rows are equal on `left`. "fd": rows equal on `left` are equal on `right`. "od": among rows equal
        on `left`, the two columns of `right` are ordered alike, or oppositely. "row": in each row, the column of `left`
        is in relation `sense` to that of `right`. "constant": the column of `right` has one value.
    sense : "ascending" or "descending" of an "od", an operator of a "row", else ""
    rows : rows that the rule speaks of: those without a null in its columns
    exceptions : the fewest rows to remove so that it holds
    evidence : rows (of a key of several columns and of a row's rule: pairs, rows) that would contradict it, were its
        columns independent of each other
    strength : 0 where as much contradicts it as by chance, 1 where nothing does
    score : what rules are ranked by
    """

    kind: Kind
    left: tuple[int, ...]
    right: tuple[int, ...]
    sense: str
    rows: int
    exceptions: int
    evidence: float
    strength: float
    score: float

    @property
    def columns(self) -> tuple[int, ...]:
        return (*self.left, *self.right)


@dataclass(frozen=True, slots=True)
class Listed:
    """A shown rule, and the rules folded below it.

    Attributes
    ----------
    implies : rules that follow from this one and better ones
    equivalent : pairs of columns that determine each other
    """

    rule: Rule
    implies: tuple[Rule, ...] = ()
    equivalent: tuple[tuple[int, int], ...] = ()


def order_constraint(names: Sequence[str], rule: Rule) -> DenialConstraint:
    """That no two rows of a class are ordered by B against their order by A.

    Unlike in `od discover`, a null compares with nothing unless nulls are values.
    """
    return order_constraints(names, [order_of(rule)])[0]


def order_of(rule: Rule) -> Order:
    """An order rule by its columns and its way."""
    return rule.left, rule.right[0], rule.right[1], rule.sense == "ascending"


def order_constraints(names: Sequence[str], orders: Sequence[Order]) -> list[DenialConstraint]:
    """Each order rule as `order_constraint` has it."""
    found = []
    for context, a, b, ascending in orders:
        equal = [Predicate("t", names[c], "==", "u", names[c]) for c in context]
        against = Predicate("t", names[b], ">" if ascending else "<", "u", names[b])
        found.append(DenialConstraint((*equal, Predicate("t", names[a], "<", "u", names[a]), against)))
    return found
