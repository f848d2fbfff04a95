"""The result of `dc check` as one JSON-able object: a record for each rule, with its pairs and its worst rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.report import model
from tuplewise.engine.report.cells import Cells, cells_of, json_values

if TYPE_CHECKING:
    from tuplewise.engine.dc.violations.found import DcCheck, RuleCheck

WORST_ROWS = 20


def possible_pairs(check: RuleCheck, rows: int) -> int:
    """Ordered pairs of rows that could violate a rule; rows for a rule about one row."""
    return rows if check.one_row else rows * (rows - 1)


def known_pairs(check: RuleCheck) -> int:
    """Violating ordered pairs that are certain: all, or those that were found before a limit."""
    if check.violating_pairs is not None:
        return check.violating_pairs
    return len(check.pairs) * (2 if check.symmetric else 1)


def failed(found: DcCheck, check: RuleCheck) -> bool:
    """Whether a rule is violated beyond what `fail_on` allows."""
    bound = found.options.fail_on
    if bound is None:
        return check.holds is False
    return bound.fails(known_pairs(check), of=possible_pairs(check, found.relation.all_rows))


def truncated(check: RuleCheck) -> bool:
    """Whether there are, or may be, more violating pairs than are listed."""
    return check.pairs_in_list is None or len(check.pairs) < check.pairs_in_list


def ranked_rows(counts: NDArray[np.int64], limit: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that are in some violating pair, those in most pairs first, then by index; and in how many each is."""
    rows = np.flatnonzero(counts)
    rows = rows[np.argsort(-counts[rows], kind="stable")[:limit]]
    return rows, counts[rows]


def rule_record(found: DcCheck, check: RuleCheck, cells: Cells) -> dict[str, Any]:
    """One entry of "rules"."""
    possible = possible_pairs(check, found.relation.all_rows)
    pairs = check.violating_pairs
    return {
        "id": check.rule.id,
        "rule": check.rule.rule,
        "predicates": [
            [model.operand(left), operator, model.operand(right)]
            for left, operator, right in (p.triple for p in check.rule.predicates)
        ],
        "holds": check.holds,
        "failed": failed(found, check),
        "violating_pairs": pairs,
        "g1": None if pairs is None else pairs / possible if possible else 0.0,
        "violating_rows": check.violating_rows,
        "rows_unknown": check.rows_unknown,
        "symmetric": check.symmetric,
        "one_row": check.one_row,
        "pairs": _pair_records(check, cells),
        "pairs_listed": len(check.pairs),
        "truncated": truncated(check),
        "worst_rows": _worst_rows(check, cells, min(WORST_ROWS, found.options.pairs)),
        "plan": check.plan,
        "seconds": round(check.seconds, 6),
    }


def _pair_records(check: RuleCheck, cells: Cells) -> list[dict[str, Any]]:
    """The listed pairs: which rows, which cells, and their values in the order of the cells."""
    rows = {"t": check.pairs[:, 0], "u": check.pairs[:, 1]}
    involved = cells_of(check.rule)
    columns = [json_values(cells.values(name, rows[role])) for role, name in involved]
    named = [list(cell) for cell in involved]
    names = {role: cells.names(index) for role, index in rows.items()}
    return [
        {"t": t, "u": u, "cells": named, "values": [column[i] for column in columns]}
        for i, (t, u) in enumerate(zip(names["t"], names["u"], strict=True))
    ]


def _worst_rows(check: RuleCheck, cells: Cells, limit: int) -> list[dict[str, Any]]:
    if check.row_counts is None:
        return []
    rows, counts = ranked_rows(check.row_counts, limit)
    return [{"row": row, "pairs": n} for row, n in zip(cells.names(rows), counts.tolist(), strict=True)]


def check_heading(
    found: DcCheck, *, options: Mapping[str, Any], notes: Sequence[str], total_seconds: float
) -> dict[str, Any]:
    """The result of `dc check` with an empty list of rules, which is its last entry."""
    document = model.found_heading("dc check", found, options=options, notes=notes, total_seconds=total_seconds)
    document["result"] = {"rules": []}
    return document
