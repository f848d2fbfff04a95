"""Order rules as denial constraints, for the kernels of rule checking."""

from __future__ import annotations

from collections.abc import Sequence

from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.profile.rule import Rule

Order = tuple[tuple[int, ...], int, int, bool]
"""A context, A, B, and whether both rise together; else one falls as the other rises."""


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
