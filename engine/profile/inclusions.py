"""Inclusion dependencies between profiled tables that look like foreign keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tuplewise.engine.ind.dependency import InclusionDependency
from tuplewise.engine.ind.foreign_keys import with_evidence
from tuplewise.engine.ind.values import family_of
from tuplewise.engine.options import IndDiscoverOptions, LoadOptions, ProfileOptions
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation

ALLOWED_MISSING = Decimal("0.15")
"""Share of the distinct values that the referenced side may lack."""
LEAST_LIKELY = 0.3
"""The least likeness to a foreign key, `foreign_keys.ForeignKeyEvidence.score`, that is shown."""
NEARLY_KEY = 0.99
LEAST_EVIDENCE = 1.0
LEAST_STRENGTH = 0.8


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A column whose values occur in another one, with evidence for a foreign key.

    Attributes
    ----------
    values : distinct values of the dependent side
    exceptions : values that the referenced side lacks
    evidence : values that it would lack if they were drawn from the values of all columns of that kind
    strength : 1 - exceptions / evidence
    """

    ind: InclusionDependency
    values: int
    exceptions: int
    evidence: float
    strength: float
    score: float


def inclusions(
    tables: Mapping[str, Relation],
    options: ProfileOptions,
    run: Run,
    *,
    sources: Mapping[str, Any] | None = None,
    reading: LoadOptions | None = None,
) -> tuple[list[Inclusion], int, bool]:
    """The likely foreign keys between different tables, best first; how many others there are; and whether the time
    limit came first.

    `sources`, `reading`: what tables were opened from, and how, where Spark is to read them; else their rows are here.
    """
    from tuplewise.engine.ind.discover import discover

    asked = IndDiscoverOptions(
        error=ALLOWED_MISSING, device=options.device, memory_limit=options.memory_limit,
        run_on="auto" if sources is None else "spark",
    )  # fmt: skip
    found = discover(sources or tables, asked, reading, run=run)
    if found.partial:
        return [], 0, True
    found = with_evidence(found)
    types = {(name, c.name): c.type for name, table in tables.items() for c in table.columns}
    pool: dict[str, int] = {}
    for table in tables.values():
        for column in table.columns:
            family = family_of(column.type)
            pool[family] = pool.get(family, 0) + column.distinct
    listed = []
    for one in found.inds:
        dependent, referenced = one.ind.dependent[0], one.ind.referenced[0]
        if dependent.table == referenced.table or one.evidence.key < NEARLY_KEY or one.dependent_distinct == 0:
            continue
        share = one.referenced_distinct / max(pool[family_of(types[dependent.table, dependent.column])], 1)
        evidence = one.dependent_distinct * (1.0 - min(share, 1.0))
        if one.evidence.score < LEAST_LIKELY or evidence < LEAST_EVIDENCE:
            continue
        strength = max(0.0, 1.0 - one.missing_values / evidence)
        if strength < LEAST_STRENGTH:
            continue
        score = float(strength * one.evidence.score * math.log10(1 + evidence) * 2)
        listed.append(Inclusion(one.ind, one.dependent_distinct, one.missing_values, evidence, strength, score))
    listed.sort(key=lambda inclusion: -inclusion.score)
    # A column refers to one table: its likeliest.
    best: dict[object, Inclusion] = {}
    for inclusion in listed:
        best.setdefault(inclusion.ind.dependent, inclusion)
    return list(best.values()), len(found.inds) - len(best), False
