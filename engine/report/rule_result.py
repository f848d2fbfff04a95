"""What a check found about one rule, and its pairs and rows as data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, LimitReached, message
from tuplewise.engine.report import check_model, check_text, text
from tuplewise.engine.report.cells import Cells

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.violations.found import DcCheck, RuleCheck

CHUNK_PAIRS = 1 << 19
HELD_PAIRS = 50_000_000
"""More than so many are not made into one data frame unless a limit says so."""


class RuleResult:
    """What was found about one rule.

    Attributes
    ----------
    rule : DenialConstraint
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
        self.holds, self.failed = check.holds, check_model.failed(found, check)
        self.violating_pairs, self.violating_rows = check.violating_pairs, check.violating_rows
        self.rows_unknown, self.symmetric = check.rows_unknown, check.symmetric
        self.plan, self.seconds = check.plan, check.seconds

    def __repr__(self) -> str:
        return f"<RuleResult: {self.line()}>"

    def line(self) -> str:
        """The verdict, the rule and its figures on one line."""
        record = {**self.figures, "one_row": self._check.one_row}
        verdict = check_text.VERDICTS[self.holds]
        return f"{verdict} {text.visible(self.rule.rule)}: {check_text.figures(record)}"

    @property
    def figures(self) -> dict[str, Any]:
        """Numbers of violating pairs and rows, and g1, by name."""
        possible = check_model.possible_pairs(self._check, self._found.relation.all_rows)
        return {
            "violating_pairs": self.violating_pairs,
            "violating_rows": self.violating_rows,
            "rows_unknown": self.rows_unknown,
            "g1": None if self.violating_pairs is None else self.violating_pairs / max(possible, 1),
        }

    def pairs(self, limit: int | None = None) -> pd.DataFrame:
        """The violating pairs, all or the first `limit`: see CheckResult.pairs."""
        return pairs_frame(self.tables(limit, self._schema), self._schema, self.how_many(limit))

    def rows(self, limit: int | None = None) -> pd.DataFrame:
        """The violating rows, those in most pairs first: see CheckResult.rows."""
        self.check_known_rows(limit)
        rows, counts = check_model.ranked_rows(self.row_counts, limit)
        return rows_frame(self._cells, rows, {"pairs": counts})

    def to_dict(self) -> dict[str, Any]:
        """The entry of this rule in what `tuplewise dc check --format json` writes."""
        return check_model.rule_record(self._found, self._check, self._cells)

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
