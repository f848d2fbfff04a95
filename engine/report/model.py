"""The versioned result of a command as one JSON-able object, and the order in which constraints are listed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Operand, Predicate
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import FailOn, RankBy
from tuplewise.engine.report.version import version

if TYPE_CHECKING:
    from tuplewise.engine.dc.discovery import DcDiscovery
    from tuplewise.engine.dc.estimate import Estimate
    from tuplewise.engine.dc.predicate import PredicateSpace
    from tuplewise.engine.table.relation import Relation

SCHEMA = "tuplewise/1"
RANKINGS: tuple[str, ...] = get_args(RankBy)
DEFAULT_RANKING: Literal["succinctness"] = "succinctness"
_SECRET = re.compile(r"secret|password|token|access[.]?key|credential", re.IGNORECASE)
_CHUNK = 4096


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


def table_record(relation: Relation) -> dict[str, Any]:
    """One entry of "tables"."""
    columns = [
        {"name": c.name, "type": c.type, "why": c.why, "distinct": c.distinct, "nulls": c.nulls}
        for c in relation.columns
    ]
    return {
        "name": relation.name,
        "path": relation.path,
        "rows": relation.all_rows,
        "reader": None if relation.reader is None else relation.reader.name,
        "reader_reason": None if relation.reader is None else relation.reader.reason,
        "columns": columns,
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


def found_heading(
    command: str, found: Any, *, options: Mapping[str, Any], notes: Sequence[str], total_seconds: float
) -> dict[str, Any]:
    """The heading of what a search or a check found: it has a relation, a device, timings_seconds and partial."""
    loading = {} if found.relation is None else found.relation.timings_seconds
    return heading(
        command,
        found.relation,
        options=options,
        device=found.device,
        device_reason=found.device_reason,
        timings_seconds={**loading, **found.timings_seconds, "total": total_seconds},
        partial=found.partial,
        notes=notes,
    )


def chosen(found: DcDiscovery, *, rank_by: RankBy | None = None, limit: int | None = None) -> NDArray[np.int64]:
    """Numbers of the constraints to list: all in result order; with a ranking or a limit, best first."""
    if limit is not None and limit < 1:
        raise InputError(message("limit", limit, "1 or more"))
    if rank_by is not None and rank_by not in RANKINGS:
        raise InputError(message("rank_by", rank_by, ", ".join(map(repr, RANKINGS))))
    if rank_by is None and limit is None:
        return np.arange(len(found.arrays), dtype=np.int64)
    if rank_by == "genuineness":
        from tuplewise.engine.profile.genuine import order_of_dcs

        return order_of_dcs(found)[:limit]
    return found.best(rank_by or DEFAULT_RANKING, limit)


def constraints_of(found: DcDiscovery, index: NDArray[np.int64]) -> Iterator[DenialConstraint]:
    """The constraints with these numbers as objects that share their predicates: quick where there are many.

    Their texts are put together from the texts of the predicates and handed to the objects, which would make the same.
    """
    predicates = [found.space.predicate(i) for i in range(found.space.predicates)]
    return (constraint for constraint, _ in _numbered(found, index, predicates))


def _numbered(
    found: DcDiscovery, index: NDArray[np.int64], predicates: Sequence[Predicate]
) -> Iterator[tuple[DenialConstraint, list[int]]]:
    """Constraints, each with the numbers of its predicates in `predicates`."""
    texts = [str(p) for p in predicates]
    arrays = found.arrays
    for start in range(0, len(index), _CHUNK):
        part = index[start : start + _CHUNK]
        for numbers, size in zip(arrays.predicates[part].tolist(), arrays.sizes[part].tolist(), strict=True):
            used = numbers[:size]
            constraint = DenialConstraint(tuple([predicates[i] for i in used]))
            vars(constraint)["rule"] = "not(" + " and ".join([texts[i] for i in used]) + ")"
            yield constraint, used


def constraint_records(found: DcDiscovery, index: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """The entries of "constraints" with these numbers, made one by one: there may be millions."""
    predicates = [found.space.predicate(i) for i in range(found.space.predicates)]
    triples = [list(map(operand, p.triple)) for p in predicates]
    ranking = found.ranking
    figures = zip(
        _numbered(found, index, predicates),
        violating_pairs(found, index),
        ranking.g1[index].tolist(),
        ranking.succinctness[index].tolist(),
        ranking.coverage[index].tolist(),
        _intervals(found, index),
        ranking.chance[index].tolist(),
        strict=True,
    )
    by_chance = found.options.error > 0 and found.options.error_measure == "lift"
    for (constraint, used), violations, g1, succinctness, coverage, interval, chance in figures:
        yield {
            "id": constraint.id,
            "rule": constraint.rule,
            "predicates": [triples[i] for i in used],
            "kind": constraint.kind,
            "violating_pairs": violations,
            "g1": g1,
            **interval,
            **({"lift": g1 / chance if chance else 0.0} if by_chance else {}),
            "succinctness": succinctness,
            "coverage": None if coverage != coverage else coverage,
        }


def violating_pairs(found: DcDiscovery, index: NDArray[np.int64]) -> list[int | None]:
    """Violating pairs of constraints; None where they are only estimated."""
    counts: list[int | None] = found.arrays.violations[index].tolist()
    if found.estimate is None:
        return counts
    return [None if e else n for n, e in zip(counts, found.estimate.estimated[index].tolist(), strict=True)]


def _intervals(found: DcDiscovery, index: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """What records of constraints say beside g1 where it was estimated; nothing where all figures are exact."""
    estimate = found.estimate
    if estimate is None:
        return iter([{}] * len(index))
    ends = zip(*(a[index].tolist() for a in (estimate.estimated, estimate.low, estimate.high)), strict=True)
    return ({"estimated": e, "g1_low": low, "g1_high": high} for e, low, high in ends)


def operand(named: Operand) -> Any:
    """One side of a predicate as JSON has it."""
    return list(named) if isinstance(named, tuple) else named


def dc_heading(
    found: DcDiscovery, *, options: Mapping[str, Any], notes: Sequence[str], total_seconds: float
) -> dict[str, Any]:
    """The result of `dc discover` with an empty list of constraints, which is its last entry."""
    document = found_heading("dc discover", found, options=options, notes=notes, total_seconds=total_seconds)
    document["result"] = {
        "predicate_space": found.space.predicates,
        "distinct_evidences": found.distinct_evidences,
        "pairs": found.ordered_pairs,
        "algorithm": found.algorithm,
        "algorithm_reason": found.algorithm_reason,
        "search": None if found.search is None else dict(found.search),
        "estimate": _estimate_record(found.estimate),
        "count": len(found.arrays),
        "constraints": [],
    }
    return document


def _estimate_record(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"sampled_pairs": estimate.sampled_pairs, "confidence": estimate.confidence, "measure": "g1"}


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
