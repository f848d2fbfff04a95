"""The commands: what each one reads, does and writes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.discovery import Discovery
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Listing, State

if TYPE_CHECKING:
    from tuplewise.engine.report.dc_result import DcResult

EXIT_USAGE = 2
EXIT_LIMIT = 3


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from tuplewise.engine.report.version import version

        click.echo(f"tuplewise {version()}")
        ctx.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
)
def cli() -> None:
    """Finds the rules that hold in tables by looking at pairs of rows.

    Exit codes: 0 done; 2 bad usage, input or device; 3 a time or memory limit was reached (what was found is printed
    and marked partial); 130 interrupted.
    """


@cli.group()
def dc() -> None:
    """Denial constraints: combinations of values that no two rows have."""


@dc.command("discover")
@click.argument("table")
@settings.discover_options
@settings.run_options
@settings.input_options
@settings.output_options("text", "json", "csv", "sql")
@click.pass_obj
def dc_discover(state: State, /, table: str, **given: Any) -> int:
    """The minimal denial constraints that hold in TABLE.

    TABLE is a CSV, TSV, Parquet, ORC or JSON-lines path (a file, a folder or a glob; local, or a URL that Spark reads),
    or spark:db.table.
    """
    explain = bool(given.pop("explain_space"))
    listing = Listing(**{name: given.pop(name) for name in Listing.__dataclass_fields__})
    load_options, options = settings.load_and_discover_options(given)
    form = listing.form or output.default_format(listing.output)
    _check_listing(listing, form, explain)
    _listen_to_log(state)
    with Progress(state.quiet) as progress:
        if listing.form is None and (note := output.surprising_format(form, listing.output)):
            progress.say(f"note: {note}")
        job = Discovery(table, load_options, options, progress, state)
        if explain:
            output.write(job.explain(form), listing.output)
            return 0
        found = job.discover(listing)
        progress.step("writing")
        pieces = found.pieces(form, **_how(listing, form)) if form != "text" else [_text(found, listing, state)]
    output.write(pieces, listing.output)
    return EXIT_LIMIT if found.partial else 0


def _how(listing: Listing, form: str) -> dict[str, Any]:
    how: dict[str, Any] = {"rank_by": listing.rank_by, "limit": listing.limit}
    return {**how, "dialect": listing.dialect, "table": listing.sql_table} if form == "sql" else how


def _text(found: DcResult, listing: Listing, state: State) -> str:
    return found.to_text(
        rank_by=listing.rank_by, limit=listing.limit, verbose=state.verbose > 0, **output.terminal(listing.output)
    )


def _check_listing(listing: Listing, form: str, explain: bool) -> None:
    """Faults in what is to be written, before any work."""
    from tuplewise.engine.report import sql

    if explain and form not in ("text", "json"):
        raise click.UsageError(f"--explain-space has the formats text and json, not {form}.")
    if listing.sql_table is not None:
        sql.table_parts(listing.sql_table)
    output.check_output(listing.output)


def _listen_to_log(state: State) -> None:
    """Our log goes to stderr, as much of it as was asked for."""
    logger = logging.getLogger("tuplewise")
    levels = [logging.WARNING, logging.INFO, logging.DEBUG]
    logger.setLevel(logging.ERROR if state.quiet else levels[min(state.verbose, 2)])
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("tuplewise: %(message)s"))
        logger.addHandler(handler)


@cli.command()
@settings.output_options("text", "json")
@click.pass_obj
def doctor(state: State, /, form: str | None, **given: Any) -> int:
    """What will be used here (Java, Spark, plugin, GPUs, kernels) and what to do where something is missing."""
    from tuplewise.engine.doctor import examine, works
    from tuplewise.engine.report import json, text

    target = given["output"]
    form = form or output.default_format(target)
    output.check_output(target)
    with Progress(state.quiet) as progress:
        progress.step("looking")
        checks = examine()
    records = [check.to_dict() for check in checks]
    if form == "json":
        output.write([json.dump({"checks": records})], target)
    else:
        output.write([text.render(text.doctor_parts(records), **output.terminal(target))], target)
    return 0 if works(checks) else EXIT_USAGE
