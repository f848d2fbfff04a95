"""The commands that find and check denial constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import settings
from tuplewise.engine.cli.checking import CheckListing, check, check_listing
from tuplewise.engine.cli.listing import (
    RankedListing,
    check_sql_table,
    format_of,
    only_text_and_json,
    write_found,
)
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import all_spelled, message
from tuplewise.engine.options import DcCheckOptions, DcDiscoverOptions, LoadOptions, fixed_by_a_state, option

if TYPE_CHECKING:
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace
    from tuplewise.engine.report.check_result import CheckResult
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.document import Document


@dataclass(frozen=True, kw_only=True)
class DcListing(RankedListing):
    """Which predicates `dc discover` uses, and what it lists."""

    space_from: str | None = option(
        None, "Take columns, types, nulls and predicates from this state (dc init).",
        metavar="STATE",
    )
    explain_space: bool = option(False, "Print the predicate space and stop.")


@click.group()
def dc() -> None:
    """Denial constraints: combinations of values that no two rows have."""


@dc.command("discover")
@click.argument("table")
@settings.options(DcDiscoverOptions, DcListing, LoadOptions)
@settings.output_options("text", "json", "csv", "sql", "html")
def dc_discover(invocation: Invocation, /, table: str, **given: Any) -> int:
    """The minimal denial constraints that hold in TABLE.

    TABLE is a CSV, TSV, Parquet, ORC or JSON-lines path (a file, a folder or a glob; local, or a URL that Spark reads),
    or spark:db.table.
    """
    if given["space_from"] is not None:
        _refuse_what_a_state_fixes(given)
    reading, options, listing = settings.made(given, LoadOptions, DcDiscoverOptions, DcListing)
    form = format_of(listing, page=True)
    if listing.explain_space:
        only_text_and_json("--explain-space", form)
    check_sql_table(listing.sql_table)

    def discover(progress: Progress) -> DcResult:
        command = "dc discover --error" if options.error > 0 else "dc discover"
        run = CommandRun(command, progress, invocation, options)
        how, asked, space = _of_state(listing.space_from, reading, options, run)
        shown = {**listing.chosen, "explain_space": False, "space_from": listing.space_from}
        found = tasks.discover_dcs(table, asked, run, reading=how, space=space, shown=shown)
        return found if form == "text" or listing.limit is not None else found.written_by(run.deadline)

    def explain(progress: Progress) -> Document:
        return _explain(table, reading, options, CommandRun(None, progress, invocation), listing.space_from)

    return write_found(listing, form, invocation, explain if listing.explain_space else discover)


def _refuse_what_a_state_fixes(given: Mapping[str, Any]) -> None:
    """Raise UsageError for options given beside --space-from that the state fixes."""
    kinds = (DcDiscoverOptions, LoadOptions)
    asked = [name for kind in kinds for name in settings.given_of(given, kind, fixed_by_a_state(kind))]
    if asked:
        fixed = message("options that the state of --space-from fixes", ", ".join(asked), hint="Leave them out")
        raise click.UsageError(f"{fixed}.")


def _of_state(
    folder: str | None, reading: LoadOptions, options: DcDiscoverOptions, run: CommandRun
) -> tuple[LoadOptions, DcDiscoverOptions, KeptSpace | None]:
    """How a table is read and searched, and the predicate space of the state, if there is one."""
    if folder is None:
        return reading, options, None
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace

    run.step("reading the state")
    kept = KeptSpace.of_state(folder)
    return kept.load_options(reading), kept.discover_options(options), kept


def _explain(
    table: str, reading: LoadOptions, options: DcDiscoverOptions, run: CommandRun, space_from: str | None
) -> Document:
    """The predicate space."""
    from tuplewise.engine.dc.predicate import space_to_search
    from tuplewise.engine.report import model, text
    from tuplewise.engine.report.document import Document

    how, asked, kept = _of_state(space_from, reading, options, run)
    relation = run.load(table, how, asked.device)
    space = space_to_search(relation, asked) if kept is None else kept.space
    shown = model.options_record(how, asked, explain_space=True, space_from=space_from)
    notes = all_spelled((*relation.notes, *run.notes), run.face)
    document = model.heading("dc discover", relation, options=shown, notes=notes)
    document["result"] = model.space_record(space)
    return Document(document, lambda verbose: text.space_parts(document, verbose=verbose))


@dc.command("check")
@click.argument("table")
@settings.options(CheckListing, DcCheckOptions, LoadOptions)
@settings.output_options("text", "json", "csv", "sql", "html")
def dc_check(invocation: Invocation, /, table: str, **given: Any) -> int:
    """The pairs of rows of TABLE that violate given rules.

    TABLE is named as for dc discover. A rule is text such as "not(t.zip == u.zip and t.city != u.city)", or "zip ->
    city" for the same. Counts are of ordered pairs, and exact; CSV has a line for each listed pair (with
    --count-only for each rule), SQL is a query for each rule that lists its pairs.

    Exit codes: 0 no rule is violated (beyond --fail-on); 1 some are; 2 bad usage, rule, input or device; 3 a limit was
    reached, and no violation found before.
    """
    if not given["rules"] and not given["rule_files"]:
        raise click.UsageError("No rule is given: --rule TEXT, or --rules FILE.")
    reading, options, listing = settings.made(given, LoadOptions, DcCheckOptions, CheckListing)
    if listing.explain:
        options = replace(options, pairs=0)
    form = format_of(listing, page=True)
    if listing.explain:
        only_text_and_json("--explain", form)
    check_listing(listing, options, table)

    def find(progress: Progress) -> CheckResult:
        run = CommandRun("dc check", progress, invocation, options)
        return check(table, settings.with_key(reading, options.key), options, listing, run)

    return write_found(listing, form, invocation, find)
