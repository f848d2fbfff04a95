"""What a check found about one rule, and its pairs and rows as data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, LimitReached, message, number_of
from tuplewise.engine.report import model, text
from tuplewise.engine.report.cells import Cells, cells_of, json_values
from tuplewise.engine.report.checked_result import VERDICTS
from tuplewise.engine.report.sections import Entry, Fold

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.violations.found import DcCheck, RuleCheck

CHUNK_PAIRS = 1 << 19
WORST_ROWS, SHOWN_WORST_ROWS = 20, 5
HELD_PAIRS = 50_000_000
"""More than so many are not made into one data frame unless a limit says so."""


class RuleResult:
    """What was found about one rule.

    Attributes
    ----------
    holds : True, False, or None where a limit came before it was known
    failed : whether it is violated beyond what `fail_on` allows
    violating_pairs : exact number of ordered pairs (of rows, for a rule about one row); None where it is not known
    violating_rows : rows in at least one violating pair; None where it is not known
    rows_unknown : rows left out by a null in a column that the rule compares
    symmetric : whether exchanging t and u changes nothing; each pair is listed once then
    plan : how it was checked, step by step
    seconds : how long that took
    """

    def __init__(self, found: DcCheck, check: RuleCheck, cells: Cells) -> None:
        self._found, self._check, self._cells = found, check, cells
        self.rule: DenialConstraint = check.rule
        self.holds, self.failed = check.holds, self._fails()
        self.violating_pairs, self.violating_rows = check.violating_pairs, check.violating_rows
        self.rows_unknown, self.symmetric = check.rows_unknown, check.symmetric
        self.plan, self.seconds = check.plan, check.seconds

    def __repr__(self) -> str:
        return f"<RuleResult: {self.line()}>"

    def line(self) -> str:
        """The verdict, the rule and its figures on one line."""
        return f"{VERDICTS[self.holds]} {text.visible(self.rule.rule)}: {self._said()}"

    @property
    def figures(self) -> dict[str, Any]:
        """Numbers of violating pairs and rows, and g1, by name."""
        pairs = self.violating_pairs
        return {
            "violating_pairs": pairs,
            "violating_rows": self.violating_rows,
            "rows_unknown": self.rows_unknown,
            "g1": None if pairs is None else pairs / max(self._possible_pairs, 1),
        }

    def pairs(self, limit: int | None = None) -> pd.DataFrame:
        """The violating pairs, all or the first `limit`: see CheckResult.pairs."""
        return pairs_frame(self.tables(limit, self._schema), self._schema, self.how_many(limit))

    def rows(self, limit: int | None = None) -> pd.DataFrame:
        """The violating rows, those in most pairs first: see CheckResult.rows."""
        self.check_known_rows(limit)
        rows, counts = ranked_rows(self.row_counts, limit)
        return rows_frame(self._cells, rows, {"pairs": counts})

    def to_dict(self) -> dict[str, Any]:
        """The entry of this rule in what `tuplewise dc check --format json` writes."""
        check, figures = self._check, self.figures
        return {
            "id": self.rule.id,
            "rule": self.rule.rule,
            "predicates": [
                [model.operand(left), operator, model.operand(right)]
                for left, operator, right in (p.triple for p in self.rule.predicates)
            ],
            "holds": self.holds,
            "failed": self.failed,
            "violating_pairs": self.violating_pairs,
            "g1": figures["g1"],
            "violating_rows": self.violating_rows,
            "rows_unknown": self.rows_unknown,
            "symmetric": self.symmetric,
            "one_row": check.one_row,
            "pairs": self._pair_records(),
            "pairs_listed": len(check.pairs),
            "truncated": self._truncated,
            "worst_rows": self._worst_rows(min(WORST_ROWS, self._found.options.pairs)),
            "plan": self.plan,
            "seconds": round(self.seconds, 6),
        }

    def entry(self, most: int, plan: bool) -> Entry:
        """What people are shown: the first pairs and the worst rows, or the plan."""
        folds, remark = [], ""
        if plan:
            folds = [_plan_fold(self.plan)]
        else:
            if most and len(self._check.pairs):
                folds = [self._pairs_fold(most)]
            worst = self._worst_rows(min(SHOWN_WORST_ROWS, self._found.options.pairs))
            if worst and worst[0]["pairs"] > 1:
                remark = "rows in most pairs: " + ", ".join(f"{_row_name(w['row'])} ({w['pairs']:,})" for w in worst)
        known = (self.violating_pairs, self.violating_rows)
        return Entry(
            mark=VERDICTS[self.holds],
            text=self.rule.rule,
            said=self._said(),
            figures=["–" if number is None else f"{number:,}" for number in known],
            folds=folds,
            copies={"rule": self.rule.rule},
            wrong=self.holds is False,
            remark=remark,
        )

    @property
    def _possible_pairs(self) -> int:
        """Ordered pairs of rows that could violate the rule; rows for a rule about one row."""
        rows = self._found.relation.all_rows
        return rows if self._check.one_row else rows * (rows - 1)

    def _fails(self) -> bool:
        """Whether the rule is violated beyond what `fail_on` allows, by the pairs that are certain."""
        bound = self._found.options.fail_on
        if bound is None:
            return self._check.holds is False
        known = self._check.violating_pairs
        if known is None:
            known = len(self._check.pairs) * (2 if self._check.symmetric else 1)
        return bound.fails(known, of=self._possible_pairs)

    @property
    def _truncated(self) -> bool:
        """Whether there are, or may be, more violating pairs than are listed."""
        return self._check.pairs_in_list is None or len(self._check.pairs) < self._check.pairs_in_list

    def _said(self) -> str:
        """By how many pairs and rows the rule is violated."""
        what = "row" if self._check.one_row else "ordered pair"
        pairs, rows = self.violating_pairs, self.violating_rows
        if pairs is None:
            line = "how many pairs violate it is not known: a limit came before"
        elif pairs == 0:
            line = f"no {what} violates it"
        else:
            line = f"{number_of(pairs, what)} ({text.share(100 * self.figures['g1'])} % of all)"
            if rows is not None and not self._check.one_row:
                line += f", {number_of(rows, 'row')}"
        if self.rows_unknown:
            line += f"; {number_of(self.rows_unknown, 'row')} left out for a null"
        return line

    def _pair_records(self) -> list[dict[str, Any]]:
        """The listed pairs: which rows, which cells, and their values in the order of the cells."""
        rows = {"t": self._check.pairs[:, 0], "u": self._check.pairs[:, 1]}
        involved = cells_of(self.rule)
        columns = [json_values(self._cells.values(name, rows[role])) for role, name in involved]
        named = [list(cell) for cell in involved]
        names = {role: self._cells.names(index) for role, index in rows.items()}
        return [
            {"t": t, "u": u, "cells": named, "values": [column[i] for column in columns]}
            for i, (t, u) in enumerate(zip(names["t"], names["u"], strict=True))
        ]

    def _pairs_fold(self, most: int) -> Fold:
        """The first pairs as a table: which rows, then their cells."""
        pairs = self._pair_records()[:most]
        columns: dict[str, list[Any]] = {}
        for role in ("t",) if self._check.one_row else ("t", "u"):
            if self._cells.key:
                columns |= {f"{role}.{name}": [pair[role][name] for pair in pairs] for name in self._cells.key}
            else:
                columns[role] = [pair[role] for pair in pairs]
        for i, (role, name) in enumerate(pairs[0]["cells"]):
            columns.setdefault(f"{role}.{name}", [pair["values"][i] for pair in pairs])
        rows = [list(map(text.value, row)) for row in zip(*columns.values(), strict=True)]
        whole = len(pairs) == len(self._check.pairs) and not self._truncated
        return Fold(self._listed(len(pairs), whole), rows, [(heading, "left") for heading in columns], cut=not whole)

    def _listed(self, shown: int, whole: bool) -> str:
        """How many of the pairs are shown."""
        once = ", each once (t before u)" if self.symmetric else ""
        what = "row" if self._check.one_row else "pair"
        if whole:
            return f"all {what}s{once}" if shown > 1 or once else f"the only {what}"
        return f"the first {number_of(shown, what)}{once}"

    def _worst_rows(self, limit: int) -> list[dict[str, Any]]:
        if self._check.row_counts is None:
            return []
        rows, counts = ranked_rows(self._check.row_counts, limit)
        return [{"row": row, "pairs": n} for row, n in zip(self._cells.names(rows), counts.tolist(), strict=True)]

    @cached_property
    def _schema(self) -> pa.Schema:
        return self._cells.schema([self.rule], name_rules=False)

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """For each row of the relation, in how many violating pairs it is. int64 (rows,)"""
        if self._check.row_counts is None:
            raise InputError(
                message("rows were not ranked", self.rule.rule, hint="Check without count_only and without a limit")
            )
        return self._check.row_counts

    def check_known_rows(self, limit: int | None) -> None:
        """Raise InputError where a list of at most `limit` rows needs more than a check in Spark has brought here."""
        known = int(np.count_nonzero(self.row_counts))
        wanted = self.violating_rows or 0
        if self._found.on_spark is not None and known < (wanted if limit is None else min(limit, wanted)):
            hint = "Ask for no more, or have Spark write all pairs: write_pairs('folder')"
            raise InputError(message("rows known here of a check in Spark", known, hint=hint))

    def how_many(self, limit: int | None) -> int | None:
        """Pairs that a list of at most `limit` has; None where it is not known."""
        if limit is not None and limit < 0:
            raise InputError(message("limit", limit, "0 or more"))
        known = self._check.pairs_in_list
        return limit if known is None else known if limit is None else min(limit, known)

    def tables(self, limit: int | None, schema: pa.Schema, deadline: float | None = None) -> Iterator[pa.Table]:
        """The violating pairs in order, in tables of at most CHUNK_PAIRS rows."""
        left = self.how_many(limit)
        for chunk in self._chunks(left, deadline):
            part = chunk if left is None else chunk[:left]
            yield self._cells.table(self.rule, part, schema)
            left = None if left is None else left - len(part)
            if left == 0:
                return

    def _chunks(self, wanted: int | None, deadline: float | None) -> Iterator[NDArray[np.int64]]:
        if wanted is not None and wanted <= len(self._check.pairs):
            if wanted:
                yield self._check.pairs
            return
        if self._found.on_spark is not None:
            hint = "Ask for fewer, or have Spark write all: write_pairs('folder')"
            raise InputError(message("pairs listed here of a check in Spark", len(self._check.pairs), hint=hint))
        from tuplewise.engine.dc.violations.listing import iterate_pairs

        options = self._found.options
        chunks = iterate_pairs(
            self._found.relation,
            self.rule,
            nulls=options.nulls,
            device=options.device,
            deadline=deadline,
            chunk_pairs=CHUNK_PAIRS,
        )
        try:
            yield from chunks
        except TimeoutError as reached:
            raise LimitReached("the time limit came before all pairs were listed") from reached


def ranked_rows(counts: NDArray[np.int64], limit: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that are in some violating pair, those in most pairs first, then by index; and in how many each is."""
    rows = np.flatnonzero(counts)
    rows = rows[np.argsort(-counts[rows], kind="stable")[:limit]]
    return rows, counts[rows]


def _row_name(row: Any) -> str:
    """A row by its position, or by its key."""
    if isinstance(row, Mapping):
        return " ".join(f"{name}={text.value(v)}" for name, v in row.items())
    return text.value(row)


def _plan_fold(plan: Sequence[Mapping[str, Any]]) -> Fold:
    """The steps of a check."""
    rows = []
    for number, step in enumerate(plan, 1):
        known = {
            k.removeprefix("estimated_"): n for k, n in step.items() if k.startswith("estimated_") and n is not None
        }
        estimates = ", ".join(f"{n:,.0f} {what}" for what, n in known.items())
        done = step["step"] if not step.get("predicates") else f"{step['step']}: {' and '.join(step['predicates'])}"
        rows.append([str(number), done, str(step.get("algorithm", "")), estimates, str(step.get("why", ""))])
    return Fold(
        "", rows,
        [("", "right"), ("step", "left"), ("algorithm", "left"), ("estimate", "left"), ("why", "left")],
    )  # fmt: skip


def pairs_frame(tables: Iterator[pa.Table], schema: pa.Schema, known: int | None) -> pd.DataFrame:
    """Tables of pairs as one data frame."""
    import pyarrow as pa

    if known is not None and known > HELD_PAIRS:
        hint = "Give a limit, or write them to a file: .write_pairs('pairs.parquet')"
        raise InputError(message("pairs for one data frame", known, f"up to {HELD_PAIRS:,}", hint))
    whole = pa.Table.from_batches([b for table in tables for b in table.to_batches()], schema)
    return _to_pandas(whole)


def rows_frame(cells: Cells, rows: NDArray[np.int64], figures: Mapping[str, NDArray[np.int64]]) -> pd.DataFrame:
    """Positions, keys and figures of rows; a key column that is called like one of ours gets `key.` before its name."""
    import pyarrow as pa

    columns: dict[str, Any] = {"row": pa.array(cells.positions(rows))}
    for name in cells.key:
        columns[f"key.{name}" if name in ("row", *figures) else name] = cells.values(name, rows)
    columns |= {name: pa.array(counts) for name, counts in figures.items()}
    return _to_pandas(pa.Table.from_arrays(list(columns.values()), names=list(columns)))


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    """Whole numbers and booleans stay what they are beside nulls."""
    import pandas as pd
    import pyarrow as pa

    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
