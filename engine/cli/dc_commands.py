"""The commands that find and check denial constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import dc_settings, output, settings
from tuplewise.engine.cli.checking import check, check_listing
from tuplewise.engine.cli.listing import (
    EXIT_LIMIT,
    CheckListing,
    RankedListing,
    check_sql_table,
    format_of,
    listing_of,
    working,
    write_found,
)
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.errors import all_spelled
from tuplewise.engine.options import READING_OF_A_STATE, RULES_OF_A_STATE, DcDiscoverOptions, LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace
    from tuplewise.engine.report.check_result import CheckResult
    from tuplewise.engine.report.dc_result import DcResult

EXIT_VIOLATED = 1


@click.group()
def dc() -> None:
    """Denial constraints: combinations of values that no two rows have."""


@dc.command("discover")
@click.argument("table")
@dc_settings.discover_options
@settings.run_options("unknown", dc_settings.NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def dc_discover(state: State, /, table: str, **given: Any) -> int:
    """The minimal denial constraints that hold in TABLE.

    TABLE is a CSV, TSV, Parquet, ORC or JSON-lines path (a file, a folder or a glob; local, or a URL that Spark reads),
    or spark:db.table.
    """
    explain, space_from = bool(given.pop("explain_space")), given.pop("space_from")
    if space_from is not None:
        dc_settings.refuse_what_a_state_fixes((*RULES_OF_A_STATE, *READING_OF_A_STATE))
    listing = listing_of(RankedListing, given)
    load_options, options = settings.load_options_and(DcDiscoverOptions, given)
    form = format_of(listing, page=True)
    if explain and form not in ("text", "json"):
        raise click.UsageError(f"--explain-space has the formats text and json, not {form}.")
    check_sql_table(listing.sql_table)

    if explain:
        with working(listing, form, state) as progress:
            run = CommandRun(None, progress, state)
            output.write(_explain(table, load_options, options, run, space_from, form), listing.output)
            return 0

    def discover(progress: Progress) -> DcResult:
        command = "dc discover --error" if options.error > 0 else "dc discover"
        run = CommandRun(command, progress, state, options)
        how, asked, space = _of_state(space_from, load_options, options, run)
        shown = {**listing.chosen, "explain_space": False, "space_from": space_from}
        return tasks.discover_dcs(table, asked, run, reading=how, space=space, shown=shown)

    return write_found(listing, form, state, discover)


def _of_state(
    folder: str | None, load_options: LoadOptions, options: DcDiscoverOptions, run: CommandRun
) -> tuple[LoadOptions, DcDiscoverOptions, KeptSpace | None]:
    """How a table is read and searched, and the predicate space of a state, if one is to say which rules there are."""
    if folder is None:
        return load_options, options, None
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace

    run.step("reading the state")
    kept = KeptSpace.of_state(folder)
    return kept.load_options(load_options), kept.discover_options(options), kept


def _explain(
    table: str,
    load_options: LoadOptions,
    options: DcDiscoverOptions,
    run: CommandRun,
    space_from: str | None,
    form: str,
) -> Iterator[str]:
    """The predicate space as text or JSON."""
    from tuplewise.engine.dc.predicate import space_to_search
    from tuplewise.engine.report import json, model, text

    how, asked, kept = _of_state(space_from, load_options, options, run)
    relation = run.load(table, how, asked.device)
    space = space_to_search(relation, asked) if kept is None else kept.space
    shown = model.options_record(how, asked, explain_space=True, space_from=space_from)
    notes = all_spelled((*relation.notes, *run.notes), run.face)
    document = model.heading("dc discover", relation, options=shown, notes=notes)
    document["result"] = model.space_record(space)
    yield json.dump(document) if form == "json" else text.render(text.space_parts(document, verbose=run.verbose))


@dc.command("check")
@click.argument("table")
@dc_settings.check_options
@settings.run_options("unknown", dc_settings.NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql", "html")
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
    form = format_of(listing, page=True)
    if listing.explain and form not in ("text", "json"):
        raise click.UsageError(f"--explain has the formats text and json, not {form}.")
    check_listing(listing, options, table)
    with working(listing, form, state) as progress:
        run = CommandRun("dc check", progress, state, options)
        result = check(table, load_options, options, listing, run)
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
