"""The error of a rule's text that can't be read."""

from __future__ import annotations

from collections.abc import Iterable

from tuplewise.engine.errors import Fault, RuleError, describe

ACCEPTED = (
    "Accepted: not(t.a == u.a and t.b != u.b) | !(s.A == t.A and s.B < 5) | ¬{ t.a = t'.a ∧ t.b ≠ t'.b } | "
    "∀t,u: ¬(...) | t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b) | a, b -> c | [a, b]. "
    "Names that are no plain word stand in `...` or \"...\", text in '...'."
)


def rule_error(text: str, faults: Iterable[Fault]) -> RuleError:
    """The error of one text, with the forms that are accepted."""
    return RuleError(describe(text, faults), ACCEPTED)
