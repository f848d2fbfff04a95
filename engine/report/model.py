"""What every result says of itself as one JSON-able object, versioned."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tuplewise.engine.dc.constraint import Operand
from tuplewise.engine.options import FailOn
from tuplewise.engine.report.version import version

if TYPE_CHECKING:
    from tuplewise.engine.dc.predicate import PredicateSpace
    from tuplewise.engine.table.relation import Column, Relation

SCHEMA = "tuplewise/1"
_SECRET = re.compile(r"secret|password|token|access[.]?key|credential", re.IGNORECASE)


def plain(value: Any) -> Any:
    """An option's value as JSON can say it. A decimal becomes a number only where that loses nothing."""
    if isinstance(value, Decimal):
        if value == value.to_integral_value() and abs(value) < 2**53:
            return int(value)
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, FailOn):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


def options_record(*options: Any, **others: Any) -> dict[str, Any]:
    """All options of some dataclasses, defaults included; what looks like a secret in `conf` is left out."""
    record = {f.name: plain(getattr(o, f.name)) for o in options for f in fields(o)}
    record.update({name: plain(value) for name, value in others.items()})
    if record.get("conf"):
        record["conf"] = {k: "(not shown)" if _SECRET.search(k) else v for k, v in record["conf"].items()}
    return record


def peak_rss_bytes() -> int | None:
    """Peak resident memory of this process (without the JVM); None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def columns_record(columns: Iterable[Column]) -> list[dict[str, Any]]:
    """The columns of an entry of "tables"."""
    return [{"name": c.name, "type": c.type, "why": c.why, "distinct": c.distinct, "nulls": c.nulls} for c in columns]


def table_record(relation: Relation) -> dict[str, Any]:
    """One entry of "tables"."""
    return {
        "name": relation.name,
        "path": relation.path,
        "rows": relation.all_rows,
        "reader": None if relation.reader is None else relation.reader.name,
        "reader_reason": None if relation.reader is None else relation.reader.reason,
        "columns": columns_record(relation.columns),
    }


def heading(
    command: str,
    relation: Relation | None,
    *,
    options: Mapping[str, Any],
    device: str | None = None,
    device_reason: str | None = None,
    timings_seconds: Mapping[str, float] | None = None,
    partial: bool = False,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """What every result says beside its "result". `relation`: None where no table was looked at."""
    loading = {} if relation is None else relation.timings_seconds
    timings = {name: round(seconds, 6) for name, seconds in (timings_seconds or loading).items()}
    return {
        "schema": SCHEMA,
        "command": command,
        "version": version(),
        "tables": [] if relation is None else [table_record(relation)],
        "options": dict(options),
        "device": device,
        "device_reason": device_reason,
        "spark": None if relation is None or relation.spark is None else dict(relation.spark),
        "timings_seconds": timings,
        "peak_rss_bytes": peak_rss_bytes(),
        "partial": partial,
        "notes": list(notes),
    }


def operand(named: Operand) -> Any:
    """One side of a predicate as JSON has it."""
    return list(named) if isinstance(named, tuple) else named


def space_record(space: PredicateSpace) -> dict[str, Any]:
    """The predicate space, as `--explain-space` shows it."""
    groups = []
    for g in range(space.groups):
        predicates = [
            space.predicate(i) for i in range(int(space.first_predicate[g]), int(space.first_predicate[g + 1]))
        ]
        left, _, right = predicates[0].triple
        groups.append(
            {
                "left": operand(left),
                "right": operand(right),
                "operators": [p.operator for p in predicates],
            }
        )
    pairs = [
        {
            "left": e.left,
            "right": e.right,
            "shared_values": e.shared_share,
            "left_mean": e.left_mean,
            "right_mean": e.right_mean,
            "verdict": e.verdict,
            "why": e.why,
        }
        for e in space.explain()
    ]
    return {"predicate_space": space.predicates, "groups": groups, "column_pairs": pairs}
