"""What follows from predicates as objects, one by one, by the closure that the product applies to arrays of them."""

from __future__ import annotations

import numpy as np

from tuplewise.engine.dc.closure import close
from tuplewise.engine.dc.constraint import OPERATORS, DenialConstraint, Predicate


class Consequences:
    """What follows from a conjunction of predicates."""

    def __init__(self, predicates: list[Predicate] | tuple[Predicate, ...]) -> None:
        operands = [o for p in predicates for o in _operands(p)]
        self._number = {operand: i for i, operand in enumerate(dict.fromkeys(operands))}
        n = max(1, len(self._number))
        self._at_most, self._below, self._differ = (np.zeros((n, n), dtype=np.bool_) for _ in range(3))
        pairs = np.array([[self._number[o] for o in _operands(p)] for p in predicates], dtype=np.int64).reshape(-1, 2)
        operators = np.array([OPERATORS.index(p.operator) for p in predicates], dtype=np.int64)
        left, right = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        squares = self._at_most, self._below, self._differ
        self.satisfiable = bool(close(len(self._number), left, right, operators, *squares))

    def entails(self, predicate: Predicate) -> bool:
        """Whether every assignment of values that satisfies the conjunction satisfies the predicate."""
        if not self.satisfiable:
            return True
        left, right = _operands(predicate)
        if left == right:
            return predicate.operator in ("==", "<=", ">=")
        if left not in self._number or right not in self._number:
            return False
        x, y = self._number[left], self._number[right]
        at_most, at_least = self._at_most[x, y], self._at_most[y, x]
        return bool(
            {
                "==": at_most and at_least,
                "!=": self._differ[x, y],
                "<": self._below[x, y],
                "<=": at_most,
                ">": self._below[y, x],
                ">=": at_least,
            }[predicate.operator]
        )


def _operands(predicate: Predicate) -> tuple[tuple[str, str], tuple[str, str]]:
    if predicate.right_role is None or not isinstance(predicate.right, str):
        raise ValueError(f"entailment is decided for comparisons of columns only: {predicate}")
    return (predicate.left_role, predicate.left), (predicate.right_role, predicate.right)


def is_trivial(constraint: DenialConstraint) -> bool:
    """Whether no pair of values could satisfy all predicates."""
    return not Consequences(constraint.predicates).satisfiable


def implies(stronger: DenialConstraint, weaker: DenialConstraint) -> bool:
    """Whether `weaker` holds wherever `stronger` does: all of `stronger`, or of its mirror, follows from it."""
    found = Consequences(weaker.predicates)
    return any(all(found.entails(p) for p in form.predicates) for form in (stronger, stronger.mirror()))
