"""The command that compares two tables, contracts or results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import settings
from tuplewise.engine.cli.listing import EXIT_VIOLATED, Written, format_of, write_found
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.options import LoadOptions, ProfileOptions, option

if TYPE_CHECKING:
    from tuplewise.engine.contract.diff_result import DiffResult


@dataclass(frozen=True, kw_only=True)
class DiffListing(Written):
    """What the exit code tells."""

    exit_code: bool = option(False, "Exit code 1 where rules were lost or columns removed.")


@click.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@settings.options(DiffListing, ProfileOptions, LoadOptions)
@settings.output_options("text", "json", "html")
def diff(invocation: Invocation, /, a: str, b: str, **given: Any) -> int:
    """What differs between A and B: rules gained, lost, weaker and stronger; columns added, removed or changed.

    A and B are two tables, named as for dc discover, two contracts (.yaml), or two results (the JSON that profile, a
    discover or a check wrote). Two tables are profiled, and what one lists is counted in the other, too: each lost rule
    comes with rows of B that break it. With a contract as A and a table as B its accepted rules are checked.

    The exit code is 0 whether they differ or not, unless --exit-code is given.
    """
    reading, options, listing = settings.made(given, LoadOptions, ProfileOptions, DiffListing)
    form = format_of(listing, page=True)
    found: list[DiffResult] = []

    def find(progress: Progress) -> DiffResult:
        run = CommandRun("profile", progress, invocation, options)
        found.append(tasks.diff(a, b, options, run, reading=reading, shown={}))
        return found[0]

    code = write_found(listing, form, invocation, find)
    return EXIT_VIOLATED if listing.exit_code and found[0].regressed else code
