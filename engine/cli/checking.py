"""`dc check` step by step: read the rules, load the table, check, write the pairs and rows requested."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuplewise.engine import tasks
from tuplewise.engine.cli.listing import TableListing, check_sql_table
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.errors import InputError, LimitReached, message
from tuplewise.engine.options import DcCheckOptions, LoadOptions, option

if TYPE_CHECKING:
    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.report.check_result import CheckResult


@dataclass(frozen=True, kw_only=True)
class CheckListing(TableListing):
    """Which rules `dc check` reads, and what it writes.

    Attributes
    ----------
    pairs : pairs listed for each rule, if the user gave a number; text lists fewer by default
    """

    rules: tuple[str, ...] = option((), "A rule.", metavar="TEXT", each="rule")
    rule_files: tuple[str, ...] = option(
        (), "Rules, one a line, or the JSON of dc discover or dc check.", metavar="FILE", each="rules"
    )
    pairs_out: str | None = option(
        None, "Write all violating pairs: .parquet (a folder, when Spark checks) or .csv.", metavar="FILE"
    )
    split: str | None = option(
        None, "Write the rows that violate no rule, and the others, to two files in this folder.", metavar="FOLDER"
    )
    explain: bool = option(False, "Print how each rule is checked instead of its pairs.")
    pairs: int | None = None

    @property
    def in_text(self) -> dict[str, Any]:
        return {**super().in_text, "limit": self.pairs, "plan": self.explain}


def check_listing(listing: CheckListing, options: DcCheckOptions, table: str) -> None:
    """Raise InputError before any work where a result could not be written."""
    from tuplewise.engine.report import pairs_file, split

    check_sql_table(listing.sql_table)
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
    """Check the rules, and write pairs and rows to the files that were named."""
    from tuplewise.engine.report.rule_texts import read_all_rules
    from tuplewise.engine.table.source import read_twice

    given = [*listing.rules, *(Path(read_twice(path)) for path in listing.rule_files)]

    def rules(columns: Sequence[str]) -> tuple[list[DenialConstraint], list[str]]:
        return read_all_rules(given, columns, options.rules_syntax)

    notes: list[str] = []
    shown = {"pairs_out": listing.pairs_out, "split": listing.split, "explain": listing.explain}
    here = listing.split is not None
    result = tasks.check_dcs(table, rules, options, run, reading=load_options, here=here, shown=shown)
    written = [
        listing.pairs_out is None or _write_pairs(result, listing.pairs_out, run, notes),
        listing.split is None or _split(result, listing.split, table, load_options, run, notes),
    ]
    return result.with_more(notes=notes, partial=not all(written), total_seconds=run.seconds)


def _write_pairs(result: CheckResult, path: str, run: CommandRun, notes: list[str]) -> bool:
    """Write all pairs. A note in `notes` says how many, or why not. Returns whether they were written."""
    if not result.partial:
        total = sum(rule.how_many(None) or 0 for rule in result.rules)
        try:
            pairs = result.write_pairs(
                path, deadline=run.deadline, progress=lambda n: run.tell("writing pairs", n / max(total, 1))
            )
        except LimitReached:
            pass
        else:
            notes.append(f"pairs: {pairs:,} written to {path!r}")
            return True
    notes.append(f"pairs were not written to {path!r}: a limit was reached before all were known")
    return False


def _split(
    result: CheckResult, folder: str, table: str, load_options: LoadOptions, run: CommandRun, notes: list[str]
) -> bool:
    """Split the table. A note in `notes` says into what, or why not. Returns whether it was split."""
    from tuplewise.engine.report.split import Violators, split

    if result.partial:
        notes.append(f"rows were not split into {folder!r}: a limit was reached before all rules were checked")
        return False
    run.step("splitting rows")
    ids = [rule.rule.id for rule in result.rules]
    violators = Violators.of(result.relation.rows, ids, [rule.row_counts for rule in result.rules])
    notes.append(split(folder, result.relation, violators, table, load_options))
    return True
