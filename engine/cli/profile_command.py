"""The command that profiles tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import settings
from tuplewise.engine.cli.ind_commands import named_tables
from tuplewise.engine.cli.listing import SqlListing, format_of, write_found
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.options import LoadOptions, ProfileOptions, option
from tuplewise.engine.report import files

if TYPE_CHECKING:
    from tuplewise.engine.report.profile_result import ProfileResult


@dataclass(frozen=True, kw_only=True)
class ProfileListing(SqlListing):
    """Where rules are proposed, and how queries are written."""

    contract: str | None = option(
        None, "Propose the rules in this file of a contract, a new one or one that is there.", metavar="FILE"
    )


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@settings.options(ProfileOptions, ProfileListing, LoadOptions)
@settings.output_options("text", "json", "csv", "sql", "html")
def profile(invocation: Invocation, /, tables: Sequence[str], **given: Any) -> int:
    """The few rules of TABLEs that a person would keep, best first.

    TABLEs are named as for dc discover, or NAME=PATH. Listed are keys, functional dependencies, order rules, rules
    between two columns of a row, constants, and of several tables likely foreign keys: those that far fewer rows
    contradict than would by chance. They need not hold in every row: the rows that break them are counted, and shown
    with -v. What follows from better rules is folded beneath them. -o report.html writes a page with everything.
    --contract rules.yaml writes them as a contract, to be accepted, refused and checked.

    All rules that hold, whether they mean anything or not: dc, fd, key, od and ind discover.
    """
    reading, options, listing = settings.made(given, LoadOptions, ProfileOptions, ProfileListing)
    form = format_of(listing, page=True)
    named = named_tables(tables)
    files.check_apart((listing.output, listing.contract), named.values())

    def find(progress: Progress) -> ProfileResult:
        run = CommandRun("profile", progress, invocation, options)
        return tasks.profile(named, options, run, reading=reading, contract=listing.contract, shown={})

    return write_found(listing, form, invocation, find)
