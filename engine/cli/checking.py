"""`dc check` step by step: read the rules, load the table, check, write pairs and rows that were asked for."""

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
    pairs : of each rule that are listed, where it was said; text lists fewer by default
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
    """Faults in what is to be written, before any work."""
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
    """What was found, after pairs and rows are written to where they were asked for."""
    from tuplewise.engine.report.rule_texts import read_all_rules
    from tuplewise.engine.table.source import read_twice

    given = [*listing.rules, *(Path(read_twice(path)) for path in listing.rule_files)]

    def rules(columns: Sequence[str]) -> tuple[list[DenialConstraint], list[str]]:
        return read_all_rules(given, columns, options.rules_syntax)

    said: list[str] = []
    shown = {"pairs_out": listing.pairs_out, "split": listing.split, "explain": listing.explain}
    here = listing.split is not None
    result = tasks.check_dcs(table, rules, options, run, reading=load_options, here=here, shown=shown)
    written = [
        listing.pairs_out is None or _write_pairs(result, listing.pairs_out, run, said),
        listing.split is None or _split(result, listing.split, table, load_options, run, said),
    ]
    return result.with_more(notes=said, partial=not all(written), total_seconds=run.seconds)


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
