"""The commands that find and check denial constraints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import dc_settings, output, settings
from tuplewise.engine.cli.checking import Checking, check_listing
from tuplewise.engine.cli.discovery import DcRun
from tuplewise.engine.cli.listing import (
    EXIT_LIMIT,
    CheckListing,
    DcListing,
    check_sql_table,
    format_of,
    listing_of,
    working,
    write_found,
)
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import READING_OF_A_STATE, RULES_OF_A_STATE, DcDiscoverOptions

if TYPE_CHECKING:
    from tuplewise.engine.report.check_result import CheckResult

EXIT_VIOLATED = 1


@click.group()
def dc() -> None:
    """Denial constraints: combinations of values that no two rows have."""


@dc.command("discover")
@click.argument("table")
@dc_settings.discover_options
@settings.run_options("unknown", dc_settings.NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql")
@click.pass_obj
def dc_discover(state: State, /, table: str, **given: Any) -> int:
    """The minimal denial constraints that hold in TABLE.

    TABLE is a CSV, TSV, Parquet, ORC or JSON-lines path (a file, a folder or a glob; local, or a URL that Spark reads),
    or spark:db.table.
    """
    explain, space_from = bool(given.pop("explain_space")), given.pop("space_from")
    if space_from is not None:
        dc_settings.refuse_what_a_state_fixes((*RULES_OF_A_STATE, *READING_OF_A_STATE))
    listing = listing_of(DcListing, given)
    load_options, options = settings.load_options_and(DcDiscoverOptions, given)
    form = format_of(listing)
    if explain and form not in ("text", "json"):
        raise click.UsageError(f"--explain-space has the formats text and json, not {form}.")
    check_sql_table(listing.sql_table)

    def run(progress: Progress) -> DcRun:
        return DcRun(table, load_options, options, progress, state, space_from=space_from)

    if explain:
        with working(listing, form, state) as progress:
            output.write(run(progress).explain(form), listing.output)
            return 0
    return write_found(listing, form, state, lambda progress: run(progress).discover(listing))


@dc.command("check")
@click.argument("table")
@dc_settings.check_options
@settings.run_options("unknown", dc_settings.NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql")
@click.pass_obj
def dc_check(state: State, /, table: str, **given: Any) -> int:
    """The pairs of rows of TABLE that violate given rules.

    TABLE is named as for dc discover. A rule is text such as "not(t.zip == u.zip and t.city != u.city)", or "zip ->
    city" for the same. Counts are of ordered pairs, and exact; CSV has a line for each listed pair (with
    --count-only for each rule), SQL is a query for each rule that lists its pairs.

    Exit codes: 0 no rule is violated (beyond --fail-on); 1 some are; 2 bad usage, rule, input or device; 3 a limit was
    reached, and no violation found before.
    """
    listing = listing_of(CheckListing, given)
    if not listing.rules and not listing.rule_files:
        raise click.UsageError("No rule is given: --rule TEXT, or --rules FILE.")
    load_options, options = settings.load_and_check_options(given, listing)
    form = format_of(listing)
    if listing.explain and form not in ("text", "json"):
        raise click.UsageError(f"--explain has the formats text and json, not {form}.")
    check_listing(listing, options, table)
    with working(listing, form, state) as progress:
        result = Checking(table, load_options, options, listing, progress, state).check()
        progress.step("writing")
        pieces = _check_pieces(result, listing, form, state)
    output.write(pieces, listing.output)
    if result.failed:
        return EXIT_VIOLATED
    return EXIT_LIMIT if result.partial else 0


def _check_pieces(result: CheckResult, listing: CheckListing, form: str, state: State) -> Iterable[str]:
    if form == "text":
        verbose = state.verbose > 0
        text = result.to_text(
            limit=listing.pairs,
            plan=listing.explain,
            verbose=verbose,
            command_line=True,
            **output.terminal(listing.output),
        )
        return [text]
    if form == "sql":
        return result.pieces("sql", dialect=listing.dialect, table=listing.sql_table)
    return result.pieces(form)
