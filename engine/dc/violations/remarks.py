"""Notes on rules and a table that don't depend on the results: the same in-process and in Spark."""

from __future__ import annotations

from collections.abc import Sequence

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import note_on_text

ORDERING = ("<", "<=", ">", ">=")


def remarks(rules: Sequence[DenialConstraint], relation: Relation) -> list[str]:
    """Notes on rules; `relation` has the columns named by the rules."""
    if not rules:
        return ["no rules: nothing to check"]
    comparisons = [p for rule in rules for p in rule.predicates if p.operator in ORDERING]
    return note_on_text(relation, [name for p in comparisons for name in p.columns])
