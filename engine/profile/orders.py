"""Order rules as denial constraints, for the kernels of rule checking."""

from __future__ import annotations

from collections.abc import Sequence

from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.profile.rule import Rule


def order_constraint(names: Sequence[str], rule: Rule) -> DenialConstraint:
    """That no two rows of a class are ordered by B against their order by A.

    Unlike in `od discover`, a null compares with nothing unless nulls are values.
    """
    a, b = (names[c] for c in rule.right)
    equal = [Predicate("t", names[c], "==", "u", names[c]) for c in rule.left]
    against = Predicate("t", b, ">" if rule.sense == "ascending" else "<", "u", b)
    return DenialConstraint((*equal, Predicate("t", a, "<", "u", a), against))
