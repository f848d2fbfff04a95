"""What `check` returns: whether rules hold, the pairs of rows that violate them, and every form to hand them on in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import Face, InputError, LimitReached, all_spelled, message, number_of, python_option
from tuplewise.engine.report import check_model, check_text, csv, html, json, list_page, pairs_file, sql, text
from tuplewise.engine.report.cells import Cell, Cells, cells_of
from tuplewise.engine.report.checked_result import CheckedResult
from tuplewise.engine.report.rule_result import RuleResult, pairs_frame, rows_frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.violations.found import DcCheck
    from tuplewise.engine.options import RulesSyntax
    from tuplewise.engine.table.relation import Relation


class CheckResult(CheckedResult):
    """Whether rules hold in a table, and what violates them.

    Attributes
    ----------
    rules : list of RuleResult, one for each rule, with its figures, `.pairs()` and `.rows()`
    relation : the table
    partial : whether a limit ended the check early
    notes : what a reader should know about the table or the check
    device, device_reason : what the kernels ran on, and why
    timings_seconds : what took how long

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

    _NO_TRUTH = "a CheckResult is neither true nor false: ask .holds, or .rules for each rule"

    def __init__(
        self,
        found: DcCheck,
        *,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        total_seconds: float = 0.0,
        face: Face = python_option,
    ) -> None:
        super().__init__(found, options=options, notes=notes, total_seconds=total_seconds, face=face)
        self._found: DcCheck = found
        self._cells = Cells(found.relation, found.options.key)
        self.rules = [RuleResult(found, rule, self._cells) for rule in found.rules]

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

    @property
    def relation(self) -> Relation:
        return self._found.relation

    @property
    def notes(self) -> list[str]:
        key_note = self._cells.key_note
        own = [] if key_note is None else [key_note]
        return all_spelled((*self.relation.notes, *self._found.notes, *own, *self._more_notes), self._face)

    @property
    def device(self) -> str:
        return self._found.device

    @property
    def device_reason(self) -> str:
        return self._found.device_reason

    @property
    def timings_seconds(self) -> dict[str, float]:
        return dict(self._heading["timings_seconds"])

    def __repr__(self) -> str:
        verdicts = [rule.holds for rule in self.rules]
        said = f"{verdicts.count(False):,} of {number_of(len(verdicts), 'rule')} violated in {self.relation.name!r}"
        partial = ", PARTIAL" if self.partial else ""
        lines = [f"<CheckResult: {said}, {number_of(self.relation.all_rows, 'row')}, {self.device}{partial}>"]
        lines += [f"  {rule.line()}" for rule in self.rules[: text.SHOWN]]
        if len(self.rules) > text.SHOWN:
            lines.append(f"  ... and {len(self.rules) - text.SHOWN:,} more: .rules, .to_pandas()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html.check_html(self._heading, self._records(), text.SHOWN_PAIRS)

    def with_more(self, *, notes: Sequence[str], partial: bool, total_seconds: float) -> CheckResult:
        """The same result with more notes, marked partial where it or `partial` says so."""
        found = replace(self._found, partial=self.partial or partial)
        more = [*self._more_notes, *notes]
        how: dict[str, Any] = {"total_seconds": total_seconds, "face": self._face}
        return CheckResult(found, options=self._options, notes=more, **how)

    def pairs(self, limit: int | None = None) -> pd.DataFrame:
        """The violating pairs: all, also those that were not listed, or the first `limit` of each rule.

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
        """The violating rows, those in most violating pairs first: all, or the first `limit`.

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
        rows, pairs = check_model.ranked_rows(total, limit)
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

    def to_dict(self) -> dict[str, Any]:
        """The whole result as `tuplewise dc check --format json` writes it."""
        document = {**self._heading, "result": dict(self._heading["result"])}
        document["result"]["rules"] = self._records()
        return document

    def to_json(self) -> str:
        """The whole result as JSON text."""
        return "".join(self.pieces("json"))

    def to_csv(self) -> str:
        """A line for each listed pair, with a header: rule_id, rule, t, u, key columns, and the cells of the pair.

        Where pairs were only counted (count_only), a line for each rule instead: rule_id, rule, holds, violating_pairs,
        g1, rows_unknown, symmetric.
        """
        return "".join(self.pieces("csv"))

    def to_pandas(self) -> pd.DataFrame:
        """One row a rule: id, rule, holds, violating_pairs, g1, violating_rows, rows_unknown, symmetric, seconds."""
        import pandas as pd

        records = [
            {
                "id": rule.rule.id, "rule": rule.rule.rule, "holds": rule.holds, **rule.figures,
                "symmetric": rule.symmetric, "seconds": rule.seconds,
            }
            for rule in self.rules
        ]  # fmt: skip
        names = [
            "id", "rule", "holds", "violating_pairs", "g1", "violating_rows", "rows_unknown", "symmetric", "seconds",
        ]  # fmt: skip
        return pd.DataFrame(records, columns=names)

    def to_html(self) -> str:
        """One page for a browser: each rule (the first 500, violated ones before others) with its first pairs."""
        return list_page.checks_page(self._heading, self._records(), text.SHOWN_PAIRS)

    def to_sql(self, dialect: str = "spark", *, table: str | None = None) -> str:
        """For each rule a query that lists all its violating pairs.

        Parameters
        ----------
        dialect : "spark", "duckdb" or "ansi"
        table : name of the table in the database, as one writes it there; default: the name it was loaded under.

        Notes
        -----
        Rows are told apart by the key columns where no two rows are alike in them, else by a number that each query
        assigns. The text says which.
        """
        return "".join(self.pieces("sql", dialect=dialect, table=table))

    def pieces(self, form: str, *, dialect: str = "spark", table: str | None = None) -> Iterator[str]:
        """The result as "json", "csv", "sql" or "html" in pieces of text."""
        if form == "json":
            return json.pieces(self._heading, (rule.to_dict() for rule in self.rules))
        if form == "csv" and self._found.options.count_only:
            return csv.pieces(({**rule.to_dict(), "rule_id": rule.rule.id} for rule in self.rules), csv.COUNTED_FIELDS)
        if form == "csv":
            schema = self._cells.schema([rule.rule for rule in self.rules], name_rules=True)
            return (piece.decode() for piece in csv.table_pieces(self._listed_tables(schema), schema))
        if form == "sql":
            writer = self._sql_writer(dialect, table)
            return writer.script((f"{rule.rule.id} {rule.rule}", rule.rule) for rule in self.rules)
        if form == "html":
            return iter([self.to_html()])
        raise InputError(message("format", form, "'json', 'csv', 'sql' or 'html'"))

    def to_text(
        self,
        *,
        limit: int | None = None,
        plan: bool = False,
        verbose: bool = False,
        width: int | None = None,
        color: bool = False,
        command_line: bool = False,
    ) -> str:
        """For people: each rule with its first pairs (10 unless limited) and its worst rows; or with its plan.

        Where pairs are left out, its last line says how to get them: here, or with `command_line` there.
        """
        shown = text.SHOWN_PAIRS if limit is None else limit
        parts = check_text.check_parts(
            self._heading, self._records(), limit=shown, plan=plan, verbose=verbose, command_line=command_line
        )
        return text.render(parts, width=width, color=color)

    @cached_property
    def _schema(self) -> pa.Schema:
        return self._cells.schema([rule.rule for rule in self.rules], name_rules=len(self.rules) != 1)

    def _all_tables(self, schema: pa.Schema, limit: int | None, deadline: float | None = None) -> Iterator[pa.Table]:
        for rule in self.rules:
            yield from rule.tables(limit, schema, deadline)

    def _listed_tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        for checked in self._found.rules:
            yield self._cells.table(checked.rule, checked.pairs, schema)

    def _records(self) -> list[dict[str, Any]]:
        return [rule.to_dict() for rule in self.rules]

    def _sql_writer(self, dialect: str, table: str | None) -> sql.Writer:
        sql.check_dialect(dialect)
        return sql.Writer(
            columns=self.relation.column_names,
            types=[c.type for c in self.relation.columns],
            table=[self.relation.name] if table is None else sql.table_parts(table),
            dialect=dialect,
            nulls=self._found.options.nulls,
            key=self._cells.key,
            key_tells_apart=self._cells.key_tells_apart,
        )

    @cached_property
    def _heading(self) -> dict[str, Any]:
        return check_model.check_heading(
            self._found, options=self._options, notes=self.notes, total_seconds=self._total_seconds
        )


def read_all(given: Any, columns: Sequence[str], syntax: RulesSyntax) -> list[DenialConstraint]:
    """Rules as a caller gives them: text, constraints, a result of discovery, a path of a file, or a list of these.

    Each rule is kept once. Raises RuleError for one that can't be read, InputError for anything else.
    """
    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.rule_text import read_rule_file, read_rules
    from tuplewise.engine.report.dc_result import DcResult

    rules: dict[DenialConstraint, None] = {}
    several = isinstance(given, Sequence) and not isinstance(given, str)
    for one in given if several else [given]:
        if isinstance(one, str):
            found = read_rules(one, columns=columns, syntax=syntax)
        elif isinstance(one, DenialConstraint):
            found = [one]
        elif isinstance(one, DcResult):
            found = list(one.constraints)
        elif isinstance(one, PurePath):
            found = [rule for rule, _ in read_rule_file(one, columns=columns, syntax=syntax)]
        else:
            allowed = "text, a DenialConstraint, a DcResult, a pathlib.Path, or a list of these"
            raise InputError(message("a rule of this type can't be read", type(one).__name__, allowed))
        rules.update(dict.fromkeys(found))
    return list(rules)
