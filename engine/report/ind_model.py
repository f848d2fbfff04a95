"""Results about several tables as one JSON-able object: what all results of inclusion dependencies say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tuplewise.engine.ind.dependency import names_record, write_side
from tuplewise.engine.ind.foreign_keys import ForeignKeyEvidence
from tuplewise.engine.ind.found import FoundInd, TableFound
from tuplewise.engine.report import model, text
from tuplewise.engine.report.drawing import Relation

MEASURE = "share of distinct values missing"
FIGURES = ("coverage", "name_likeness", "key", "unique", "score")


def table_records(tables: Iterable[TableFound]) -> list[dict[str, Any]]:
    """The entries of "tables"."""
    return [
        {
            "name": table.name,
            "path": table.path,
            "rows": table.rows,
            "columns": [
                {"name": c.name, "type": c.type, "why": c.why, "distinct": c.distinct, "nulls": c.nulls}
                for c in table.columns
            ],
        }
        for table in tables
    ]


def heading(
    command: str, found: Any, *, options: Mapping[str, Any], notes: Sequence[str], total_seconds: float
) -> dict[str, Any]:
    """What every result says beside its "result", of what was found or checked in several tables."""
    document = model.heading(
        command,
        None,
        options=options,
        device=found.device,
        device_reason=found.device_reason,
        timings_seconds={**found.timings_seconds, "total": total_seconds},
        partial=found.partial,
        notes=notes,
    )
    document["tables"] = table_records(found.tables)
    document["spark"] = None if found.spark is None else dict(found.spark)
    return document


def foreign_key_record(evidence: ForeignKeyEvidence) -> dict[str, Any]:
    """What speaks for a foreign key."""
    values = {name: getattr(evidence, name) for name in FIGURES}
    return {name: value if isinstance(value, bool) else round(value, 6) for name, value in values.items()}


def ind_record(found: FoundInd) -> dict[str, Any]:
    """One entry of "inds"."""
    return {
        "dependent": names_record(found.ind.dependent),
        "referenced": names_record(found.ind.referenced),
        "dependent_distinct": found.dependent_distinct,
        "referenced_distinct": found.referenced_distinct,
        "missing_values": found.missing_values,
        "foreign_key": foreign_key_record(found.evidence),
    }


def ind_row(found: FoundInd) -> dict[str, Any]:
    """One line of CSV, or row of a data frame: the same, flat, each side as text."""
    record = ind_record(found)
    sides = {"dependent": write_side(found.ind.dependent), "referenced": write_side(found.ind.referenced)}
    return {**record, **sides, **record.pop("foreign_key")}


def drawn(found: FoundInd) -> Relation:
    """A dependency in a drawing of tables."""
    left, right = found.ind.dependent, found.ind.referenced
    score = found.evidence.score
    return left[0].table, [a.column for a in left], right[0].table, [a.column for a in right], score


def table_lines(document: Mapping[str, Any], verbose: bool) -> list[Any]:
    """What was read: a line a table; with `verbose` each column of each."""
    return [part for table in document["tables"] for part in text.table_lines(table, verbose)]
