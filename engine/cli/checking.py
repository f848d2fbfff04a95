"""`dc check` step by step: read the rules, load the table, check, write pairs and rows that were asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuplewise.engine.cli.listing import CheckListing
from tuplewise.engine.cli.loading import Loading
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.errors import InputError, LimitReached, RuleError, message, near_names
from tuplewise.engine.options import DcCheckOptions, LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.violations.detect import DcCheck
    from tuplewise.engine.report.check_result import CheckResult


def check_listing(listing: CheckListing, options: DcCheckOptions, table: str) -> None:
    """Faults in what is to be written, before any work."""
    from tuplewise.engine.report import pairs_file, split, sql

    if listing.sql_table is not None:
        sql.table_parts(listing.sql_table)
    if listing.pairs_out is not None:
        pairs_file.check_pairs_file(listing.pairs_out)
        if listing.output is not None and os.path.realpath(listing.output) == os.path.realpath(listing.pairs_out):
            raise InputError(message("--pairs-out and -o name one file", listing.output, "two files"))
    if listing.split is not None:
        if options.run_on == "spark":
            raise InputError(message("--split with --run-on", "spark", "driver", "In Spark, write --pairs-out"))
        if options.count_only:
            raise InputError("--split needs to know the rows of violating pairs: leave out --count-only")
        split.check_split_folder(listing.split, table)


class Checking:
    """One run of the command."""

    def __init__(
        self,
        table: str,
        load_options: LoadOptions,
        options: DcCheckOptions,
        listing: CheckListing,
        progress: Progress,
        state: State,
    ) -> None:
        self._loading = Loading(table, load_options, options.device, progress, state, command="dc check")
        self._table, self._load_options, self._options, self._listing = table, load_options, options, listing
        self._progress = progress
        self._notes: list[str] = []

    def check(self) -> CheckResult:
        """What was found, after pairs and rows are written to where they were asked for."""
        from tuplewise.engine.table.peek import column_names

        names = column_names(self._table, self._load_options)
        if names is not None:  # else loading has to tell them
            self._check_key(names)
            self._read_rules(names)
        found, deadline = self._find()
        from tuplewise.engine.report import model
        from tuplewise.engine.report.check_result import CheckResult

        listing = self._listing
        shown = {"pairs_out": listing.pairs_out, "split": listing.split, "explain": listing.explain}
        result = CheckResult(found, options=model.options_record(self._load_options, self._options, **shown))
        written = [
            self._write_pairs(result, deadline) if listing.pairs_out is not None else True,
            self._split(result) if listing.split is not None else True,
        ]
        return result.with_more(
            notes=[*self._loading.notes, *self._notes],
            partial=not all(written),
            total_seconds=self._loading.seconds,
        )

    def _find(self) -> tuple[DcCheck, float | None]:
        """What was found, here or in Spark, and when the time limit ends the work."""
        from tuplewise.engine.dc.violations.detect import check_rules
        from tuplewise.engine.dc.violations.distributed import check_opened
        from tuplewise.engine.table.spark_load import BeyondDriver
        from tuplewise.engine.watch import most_bytes_here

        options, deadline = self._options, self._loading.deadline(self._options.time_limit)
        most_bytes = most_bytes_here(options) if self._listing.split is None else None
        try:
            relation = self._loading.relation(most_bytes=most_bytes)
        except BeyondDriver as beyond:
            found = check_opened(
                beyond.opened,
                self._read_rules_again,
                options,
                step=self._progress.step,
                progress=self._progress.share,
                deadline=deadline,
            )
            return found, deadline
        rules = self._read_rules_again(relation.column_names)
        self._check_key(relation.column_names)
        return check_rules(relation, rules, options, progress=self._progress.share, deadline=deadline), deadline

    def _check_key(self, columns: Sequence[str]) -> None:
        for name in self._options.key:
            if name not in columns:
                raise InputError(message("key: there is no column of the name", name, hint=near_names(name, columns)))

    def _read_rules_again(self, columns: Sequence[str]) -> list[DenialConstraint]:
        """The rules, now that the columns are certain."""
        self._notes.clear()
        return self._read_rules(columns)

    def _read_rules(self, columns: Sequence[str]) -> list[DenialConstraint]:
        """All rules that were given, each once. All faults of all of them come in one error."""
        from tuplewise.engine.dc.rule_text import read_rule_file, read_rules

        syntax = self._options.rules_syntax
        given: list[tuple[DenialConstraint, str]] = []
        faults: list[str] = []
        for text in self._listing.rules:
            try:
                given += [(rule, repr(text)) for rule in read_rules(text, columns=columns, syntax=syntax)]
            except RuleError as error:
                faults.append(str(error))
        for path in self._listing.rule_files:
            try:
                given += read_rule_file(path, columns=columns, syntax=syntax)
            except RuleError as error:
                faults.append(str(error))
        if faults:
            raise RuleError(_joined(faults))
        rules: dict[DenialConstraint, str] = {}
        for rule, where in given:
            if rule in rules:
                self._notes.append(f"{where} is the same rule as {rules[rule]}: it is checked once")
            rules.setdefault(rule, where)
        return list(rules)

    def _write_pairs(self, result: CheckResult, deadline: float | None) -> bool:
        """Whether the list was written; a note tells how long it is, or why there is none."""
        path = str(self._listing.pairs_out)
        if not result.partial:
            total = sum(rule.how_many(None) or 0 for rule in result.rules)
            try:
                pairs = result.write_pairs(
                    path,
                    deadline=deadline,
                    progress=lambda n: self._progress.share("writing pairs", n / max(total, 1)),
                )
            except LimitReached:
                pass
            else:
                self._notes.append(f"pairs: {pairs:,} written to {path!r}")
                return True
        self._notes.append(f"pairs were not written to {path!r}: a limit was reached before all were known")
        return False

    def _split(self, result: CheckResult) -> bool:
        """Whether the table was split; a note tells into what, or why not."""
        from tuplewise.engine.report.split import Violators, split

        folder = str(self._listing.split)
        if result.partial:
            self._notes.append(
                f"rows were not split into {folder!r}: a limit was reached before all rules were checked"
            )
            return False
        self._progress.step("splitting rows")
        ids = [rule.rule.id for rule in result.rules]
        violators = Violators.of(result.relation.rows, ids, [rule.row_counts for rule in result.rules])
        self._notes.append(split(folder, result.relation, violators, self._table, self._load_options))
        return True


def _joined(faults: list[str]) -> str:
    """Several messages, what is accepted once at their end."""
    from tuplewise.engine.dc.rule_text.faults import ACCEPTED

    bare = [fault.removesuffix(f"\n{ACCEPTED}") for fault in faults]
    return "\n".join([*bare, ACCEPTED]) if bare != faults else "\n".join(faults)
