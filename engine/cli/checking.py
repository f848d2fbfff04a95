"""`dc check` step by step: read the rules, load the table, check, write pairs and rows that were asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuplewise.engine import tasks
from tuplewise.engine.cli.listing import CheckListing
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.errors import InputError, LimitReached, RuleError, joined, message
from tuplewise.engine.options import DcCheckOptions, LoadOptions, RulesSyntax

if TYPE_CHECKING:
    from tuplewise.engine.dc.constraint import DenialConstraint
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


def check(
    table: str, load_options: LoadOptions, options: DcCheckOptions, listing: CheckListing, run: CommandRun
) -> CheckResult:
    """What was found, after pairs and rows are written to where they were asked for."""
    said: list[str] = []

    def rules(columns: Sequence[str]) -> list[DenialConstraint]:
        said.clear()  # they are read again when the columns are certain
        return _read_rules(listing, options.rules_syntax, columns, said)

    shown = {"pairs_out": listing.pairs_out, "split": listing.split, "explain": listing.explain}
    here = listing.split is not None
    result = tasks.check_dcs(table, rules, options, run, reading=load_options, here=here, shown=shown)
    written = [
        _write_pairs(result, listing.pairs_out, run, said) if listing.pairs_out is not None else True,
        _split(result, listing.split, table, load_options, run, said) if listing.split is not None else True,
    ]
    return result.with_more(notes=said, partial=not all(written), total_seconds=run.seconds)


def _read_rules(
    listing: CheckListing, syntax: RulesSyntax, columns: Sequence[str], said: list[str]
) -> list[DenialConstraint]:
    """All rules that were given, each once; `said` takes notes on repeated ones. All faults come in one error."""
    from tuplewise.engine.dc.rule_text import read_rule_file, read_rules
    from tuplewise.engine.table.source import read_twice

    given: list[tuple[DenialConstraint, str]] = []
    faults: list[RuleError] = []
    for text in listing.rules:
        try:
            given += [(rule, repr(text)) for rule in read_rules(text, columns=columns, syntax=syntax)]
        except RuleError as error:
            faults.append(error)
    for path in listing.rule_files:
        try:
            given += read_rule_file(read_twice(path), columns=columns, syntax=syntax)
        except RuleError as error:
            faults.append(error)
    if faults:
        accepted = next((fault.accepted for fault in faults if fault.accepted), "")
        raise RuleError(joined((fault.said for fault in faults), "\n"), accepted)
    rules: dict[DenialConstraint, str] = {}
    for rule, where in given:
        if rule in rules:
            said.append(f"{where} is the same rule as {rules[rule]}: it is checked once")
        rules.setdefault(rule, where)
    return list(rules)


def _write_pairs(result: CheckResult, path: str, run: CommandRun, said: list[str]) -> bool:
    """Whether the list was written; a note tells how long it is, or why there is none."""
    if not result.partial:
        total = sum(rule.how_many(None) or 0 for rule in result.rules)
        try:
            pairs = result.write_pairs(
                path, deadline=run.deadline, progress=lambda n: run.tell("writing pairs", n / max(total, 1))
            )
        except LimitReached:
            pass
        else:
            said.append(f"pairs: {pairs:,} written to {path!r}")
            return True
    said.append(f"pairs were not written to {path!r}: a limit was reached before all were known")
    return False


def _split(
    result: CheckResult, folder: str, table: str, load_options: LoadOptions, run: CommandRun, said: list[str]
) -> bool:
    """Whether the table was split; a note tells into what, or why not."""
    from tuplewise.engine.report.split import Violators, split

    if result.partial:
        said.append(f"rows were not split into {folder!r}: a limit was reached before all rules were checked")
        return False
    run.step("splitting rows")
    ids = [rule.rule.id for rule in result.rules]
    violators = Violators.of(result.relation.rows, ids, [rule.row_counts for rule in result.rules])
    said.append(split(folder, result.relation, violators, table, load_options))
    return True
