"""What `check` returns: whether rules hold, and the pairs of rows that violate them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import InputError, LimitReached, message, number_of
from tuplewise.engine.report import csv, pairs_file, sql, text
from tuplewise.engine.report.cells import Cell, Cells, cells_of
from tuplewise.engine.report.checked_result import CheckedResult
from tuplewise.engine.report.result import Chosen, Fields
from tuplewise.engine.report.rule_result import RuleResult, pairs_frame, ranked_rows, rows_frame
from tuplewise.engine.report.sections import Entry

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tuplewise.engine.dc.violations.found import DcCheck

COUNTED_FIELDS = ("rule_id", "rule", "holds", "violating_pairs", "g1", "rows_unknown", "symmetric")


class CheckResult(CheckedResult):
    """Whether rules hold in a table, and what violates them.

    Attributes
    ----------
    rules : list of RuleResult, one for each rule, with its figures, `.pairs()` and `.rows()`
    relation, partial, notes, device, device_reason, timings_seconds : as of every Result

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> people = pd.DataFrame({"zip": ["01", "01", "02"], "city": ["A", "B", "B"]})
    >>> check = tw.check(people, "zip -> city", device="cpu")
    >>> check.holds, check.violating_pairs
    (False, 2)
    >>> print(check.pairs().to_string(index=False))
     t  u t.zip u.zip t.city u.city
     0  1    01    01      A      B
    """

    COMMAND = "dc check"
    CHOICES_OF_TEXT = ("limit", "plan")
    THINGS = ("rule", "rules")
    ALL = ".rules, .to_pandas()"
    ASK = ".rules for each rule"
    FIGURES = (("pairs", "right"), ("rows", "right"))
    MORE = (
        "All pairs: .pairs(), or .write_pairs(path) into a file; more here: .to_text(limit=N); the rows: .rows().",
        "All pairs: --pairs-out FILE.parquet (or .csv); more here: --pairs N; the rows: --split FOLDER.",
    )
    _found: DcCheck

    @cached_property
    def rules(self) -> list[RuleResult]:
        return [RuleResult(self._found, rule, self._cells) for rule in self._found.rules]

    @cached_property
    def _cells(self) -> Cells:
        return Cells(self._found.relation, self._found.options.key)

    @property
    def _verdicts(self) -> list[bool | None]:
        return [one.holds for one in self.rules]

    @property
    def failed(self) -> bool:
        """Whether some rule is violated beyond what `fail_on` allows."""
        return any(rule.failed for rule in self.rules)

    @property
    def violating_pairs(self) -> int | None:
        """Ordered pairs that violate the rule. Where there are several rules each has its own number: see `.rules`."""
        if len(self.rules) != 1:
            hint = "Each has its own number of pairs: .rules[i].violating_pairs"
            raise InputError(message("rules that were checked", len(self.rules), hint=hint))
        return self.rules[0].violating_pairs

    def _noted(self) -> list[str]:
        key_note = self._cells.key_note
        return super()._noted() + ([] if key_note is None else [key_note])

    def __repr__(self) -> str:
        violated = f"{self._verdicts.count(False):,} of {number_of(len(self.rules), 'rule')} violated"
        rows = number_of(self.relation.all_rows, "row")
        said = f"{violated} in {self.relation.name!r}, {rows}, {self.device}{', PARTIAL' if self.partial else ''}"
        return self._described(said, [rule.line() for rule in self.rules[: text.SHOWN]], len(self.rules))

    def with_more(self, *, notes: Sequence[str], partial: bool, total_seconds: float) -> CheckResult:
        """The same result with more notes, marked partial where it or `partial` says so."""
        found = replace(self._found, partial=self.partial or partial)
        more = [*self._more_notes, *notes]
        return CheckResult(found, options=self._options, notes=more, total_seconds=total_seconds, face=self._face)

    def pairs(self, limit: int | None = None) -> pd.DataFrame:
        """All violating pairs, not only the listed ones; with `limit`, the first ones of each rule.

        Returns
        -------
        DataFrame
            `t` and `u` (positions of the rows; `u` is null for a rule about one row), key columns of both, and the
            cells that the rule names (`t.zip`, `u.zip`), ordered by t, then u. A rule that is its own mirror lists
            each pair once. With several rules, `rule_id` and `rule` come first.

        Raises
        ------
        InputError
            Where there are more than fifty million pairs and no limit: `write_pairs` takes them all.
        """
        schema = self._schema
        counts = [rule.how_many(limit) for rule in self.rules]
        known = None if None in counts else sum(n for n in counts if n is not None)
        return pairs_frame(self._all_tables(schema, limit), schema, known)

    def rows(self, limit: int | None = None) -> pd.DataFrame:
        """All violating rows, or the first `limit`. Those in most violating pairs come first.

        Returns
        -------
        DataFrame
            `row` (position), the key columns, `pairs` (violating pairs of all rules that the row is in, as t or u)
            and, with several rules, `rules` (how many it violates).
        """
        for rule in self.rules:
            rule.check_known_rows(None if len(self.rules) > 1 else limit)
        counts = [rule.row_counts for rule in self.rules]
        total = sum(counts, np.zeros(self.relation.rows, dtype=np.int64))
        rows, pairs = ranked_rows(total, limit)
        figures = {"pairs": pairs}
        if len(self.rules) > 1:
            figures["rules"] = np.sum([c[rows] > 0 for c in counts], axis=0, dtype=np.int64)
        return rows_frame(self._cells, rows, figures)

    def write_pairs(
        self, path: str, *, deadline: float | None = None, progress: Callable[[int], None] | None = None
    ) -> int:
        """Write all violating pairs to a Parquet or CSV file (by its ending), and give back how many they are.

        The columns are those of `pairs`. The pairs are streamed, not held; the file is written whole or not at all.
        Where the check ran in Spark, its tasks write a folder of Parquet files, in no order, to where Spark's file
        system finds that path.

        Parameters
        ----------
        deadline : when to stop (monotonic clock); LimitReached is raised then
        progress : told how many pairs are written
        """
        schema = self._schema
        if self._found.on_spark is not None:
            return self._write_in_spark(path, schema, deadline)
        return pairs_file.write_pairs(path, self._all_tables(schema, None, deadline), schema, progress)

    def _write_in_spark(self, folder: str, schema: pa.Schema, deadline: float | None) -> int:
        assert self._found.on_spark is not None
        if folder.lower().endswith(".csv"):
            raise InputError(message("pairs of a check in Spark", folder, "a folder of Parquet files"))
        columns = [name.split(".", 1) for name in schema.names if "." in name]
        own = [{*cells_of(rule.rule), *(("t", k) for k in self._cells.key)} for rule in self.rules]
        for rule, cells in zip(self.rules, own, strict=True):
            cells.update(() if rule.rule.names_one_tuple else [("u", k) for k in self._cells.key])
        known: list[Cell] = [("t" if role == "t" else "u", name) for role, name in columns]
        listed = [[c for c in known if c in cells] for cells in own]
        try:
            self._found.on_spark.write_pairs(folder, known, listed, deadline)
        except TimeoutError as reached:
            raise LimitReached("the time limit came before all pairs were written") from reached
        return sum(rule.how_many(None) or 0 for rule in self.rules)

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {"rules": (rule.to_dict() for rule in self.rules)}

    def _summary(self) -> str:
        bound = self._found.options.fail_on
        failed = sum(rule.failed for rule in self.rules)
        return super()._summary() + (f"; {failed:,} beyond the bound of {bound}" if bound is not None else "")

    def _table(self, chosen: Chosen) -> Fields:
        """One row a rule."""
        names = (
            "id", "rule", "holds", "violating_pairs", "g1", "violating_rows", "rows_unknown", "symmetric", "seconds",
        )  # fmt: skip
        own = (
            {"id": one.rule.id, "rule": one.rule.rule, "holds": one.holds, "symmetric": one.symmetric, **one.figures}
            for one in self.rules
        )
        return Fields(names, ({**record, "seconds": one.seconds} for one, record in zip(self.rules, own, strict=True)))

    def _csv(self, chosen: Chosen) -> Iterator[str]:
        """A line for each listed pair: its rule, t, u, key columns, cells; for each rule where they were counted."""
        if self._found.options.count_only:
            return csv.pieces(({**rule.to_dict(), "rule_id": rule.rule.id} for rule in self.rules), COUNTED_FIELDS)
        schema = self._cells.schema([rule.rule for rule in self.rules], name_rules=True)
        tables = (self._cells.table(checked.rule, checked.pairs, schema) for checked in self._found.rules)
        return (piece.decode() for piece in csv.table_pieces(tables, schema))

    def _queries(self, chosen: Chosen, dialect: str, table: str | None, tables: Mapping[str, str]) -> Iterator[str]:
        """Rows are told apart by the key columns where no two rows are alike in them."""
        writer = sql.writer_of(self.relation, dialect, table, self._found.options.nulls)
        writer = replace(writer, key=self._cells.key, key_tells_apart=self._cells.key_tells_apart)
        return writer.script((f"{rule.rule.id} {rule.rule}", rule.rule) for rule in self.rules)

    def _entry(self, number: int, most: int, plan: bool) -> Entry:
        return self.rules[number].entry(most, plan)

    @cached_property
    def _schema(self) -> pa.Schema:
        return self._cells.schema([rule.rule for rule in self.rules], name_rules=len(self.rules) != 1)

    def _all_tables(self, schema: pa.Schema, limit: int | None, deadline: float | None = None) -> Iterator[pa.Table]:
        for rule in self.rules:
            yield from rule.tables(limit, schema, deadline)
