"""What is to be said of rules on a table, whatever is found: the same here and in Spark."""

from __future__ import annotations

from collections.abc import Sequence

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import quote_name

ORDERING = ("<", "<=", ">", ">=")
_NAMED = 5


def remarks(rules: Sequence[DenialConstraint], relation: Relation) -> list[str]:
    """Notes on rules; `relation` has the columns that they name."""
    if not rules:
        return ["no rules: nothing to check"]
    comparisons = [p for rule in rules for p in rule.predicates if p.operator in ORDERING]
    ordered = dict.fromkeys(name for p in comparisons for name in p.columns)
    with_values = {c.name for c in relation.columns if c.type == "text" and c.distinct}
    names = [quote_name(name) for name in ordered if name in with_values]
    if not names:
        return []
    listed = names if len(names) <= _NAMED else [*names[:_NAMED], f"{len(names) - _NAMED:,} more columns"]
    said = f"{', '.join(listed[:-1])} and {listed[-1]} are" if len(listed) > 1 else f"{listed[0]} is"
    return [
        f"{said} text: compared byte by byte, so that '10:30' comes before '9:00'. Times and numbers that are text "
        "compare right where all are padded with zeros ('09:00')"
    ]
