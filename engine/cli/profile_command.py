"""The command that profiles tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.ind_commands import named_tables
from tuplewise.engine.cli.listing import EXIT_LIMIT, Written, format_of, listing_of, working
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import ProfileOptions

_NULLS = "Rows with a null in a rule's columns are left out, or a null is a value equal to itself."


@dataclass(frozen=True)
class ProfileListing(Written):
    """What `profile` writes."""

    dialect: str = "spark"


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=ProfileOptions.limit,
    show_default=True,
    metavar="N",
    help="List the best N rules of each table.",
)
@click.option(
    "--max-context",
    type=int,
    default=ProfileOptions.max_context,
    show_default=True,
    metavar="K",
    help="Left sides of at most K columns (1 to 3).",
)
@click.option(
    "--dialect",
    type=click.Choice(["spark", "duckdb", "ansi"]),
    default="spark",
    show_default=True,
    help="SQL: dialect.",
)
@settings.run_options("unknown", _NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def profile(state: State, /, tables: Sequence[str], **given: Any) -> int:
    """The few rules of TABLEs that a person would keep, best first.

    TABLEs are named as for dc discover, or NAME=PATH. Listed are keys, functional dependencies, order rules, rules
    between two columns of a row, constants, and of several tables likely foreign keys: those that far fewer rows
    contradict than would by chance. They need not hold in every row: the rows that break them are counted, and shown
    with -v. What follows from better rules is folded beneath them. -o report.html writes a page with everything.

    All rules that hold, whether they mean anything or not: dc, fd, key, od and ind discover.
    """
    listing = listing_of(ProfileListing, given)
    load_options, options = settings.load_options_and(ProfileOptions, given)
    form = format_of(listing, page=True)
    named = named_tables(tables)
    with working(listing, form, state) as progress:
        run = CommandRun("profile", progress, state, options)
        result = tasks.profile(named, options, run, reading=load_options, shown={})
        progress.step("writing")
        if form == "text":
            how = {"verbose": state.verbose > 0, **output.terminal(listing.output)}
            pieces: Iterable[str] = [result.to_text(command_line=True, **how)]
        else:
            pieces = result.pieces(form, dialect=listing.dialect)
    output.write(pieces, listing.output)
    return EXIT_LIMIT if result.partial else 0
