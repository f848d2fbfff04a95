"""What is to be said of rules on a table, whatever is found: the same here and in Spark."""

from __future__ import annotations

from collections.abc import Sequence

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.table.relation import Relation


def remarks(rules: Sequence[DenialConstraint], relation: Relation) -> list[str]:
    """Notes on rules; `relation` has the columns that they name."""
    if not rules:
        return ["no rules: nothing to check"]
    return []
