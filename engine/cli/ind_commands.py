"""The commands of inclusion dependencies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import settings
from tuplewise.engine.cli.listing import LimitedListing, TablesListing, check_sql_tables, format_of, write_found
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import IndCheckOptions, IndDiscoverOptions, LoadOptions, option

if TYPE_CHECKING:
    from tuplewise.engine.report.ind_check_result import IndCheckResult
    from tuplewise.engine.report.ind_result import IndResult

_NAMED = re.compile(r"([^/\\:*?=]+)=(.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class IndListing(TablesListing, LimitedListing):
    """What is listed of the inclusion dependencies that hold."""


@dataclass(frozen=True, kw_only=True)
class IndCheckListing(TablesListing):
    """Which dependencies `ind check` reads."""

    inds: tuple[str, ...] = option((), "A dependency.", metavar="TEXT", each="ind")
    ind_files: tuple[str, ...] = option(
        (), "Dependencies, one a line, or the JSON of ind discover or ind check.", metavar="FILE", each="inds"
    )


@click.group()
def ind() -> None:
    """Inclusion dependencies: all values of a column occur in another, as those of a foreign key do."""


@ind.command("discover")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@settings.options(IndDiscoverOptions, IndListing, LoadOptions)
@settings.output_options("text", "json", "csv", "sql", "html")
def ind_discover(invocation: Invocation, /, tables: Sequence[str], **given: Any) -> int:
    """The inclusion dependencies between the columns of TABLEs: A <= B, where every value of A occurs in B.

    TABLEs are named as for dc discover, or NAME=PATH; a folder is one table. Values are compared by type (text with
    text, numbers with numbers), or all as text. Each dependency comes with its evidence for a foreign key; text and
    --limit list the likeliest first. --columns, --exclude and --types name columns of any of the tables, as COLUMN or
    TABLE.COLUMN. SQL is a query for each that lists missing values.
    """
    reading, options, listing = settings.made(given, LoadOptions, IndDiscoverOptions, IndListing)
    form = format_of(listing, page=True)

    def find(progress: Progress) -> IndResult:
        run = CommandRun("ind discover", progress, invocation, options)
        return tasks.discover_inds(_named(tables, listing, run), options, run, reading=reading, shown=listing.chosen)

    return write_found(listing, form, invocation, find)


@ind.command("check")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@settings.options(IndCheckListing, IndCheckOptions, LoadOptions)
@settings.output_options("text", "json", "csv", "sql")
def ind_check(invocation: Invocation, /, tables: Sequence[str], **given: Any) -> int:
    """Whether inclusion dependencies hold in TABLEs, and which values are missing where they don't.

    TABLEs are named as for ind discover. A dependency is text such as "child.a <= parent.b" or "child[a, b] <=
    parent[x, y]". Rows with a null in a dependent column are not applicable, and counted apart; a null in a referenced
    column hides nothing. Columns of types that are not compared, text and numbers, have no value in common, and a note
    says so.

    Exit codes: 0 all hold; 1 some do not; 2 bad usage, dependency, input or device; 3 some are undecided (a limit was
    reached), and none is known not to hold.
    """
    if not given["inds"] and not given["ind_files"]:
        raise click.UsageError("No inclusion dependency is given: --ind TEXT, or --inds FILE.")
    reading, options, listing = settings.made(given, LoadOptions, IndCheckOptions, IndCheckListing)
    form = format_of(listing)

    def find(progress: Progress) -> IndCheckResult:
        run = CommandRun("ind check", progress, invocation, options)
        inds = [*listing.inds, *map(Path, listing.ind_files)]
        return tasks.check_inds(_named(tables, listing, run), inds, options, run, reading=reading, shown={})

    return write_found(listing, form, invocation, find)


def _named(tables: Sequence[str], listing: TablesListing, run: CommandRun) -> dict[str, str]:
    """The tables by their names. Waits for the kernels, as reading calls some."""
    named = named_tables(tables)
    check_sql_tables(listing.sql_table, list(named))
    run.get_ready()
    return named


def named_tables(given: Sequence[str]) -> dict[str, str]:
    """Paths by the names of their tables: the given name (NAME=PATH), else the name of the file.

    Raises
    ------
    InputError : for two tables of one name, or a path without a file

    Examples
    --------
    >>> named_tables(["a=x/orders.csv", "s3://bucket/day=1/orders.csv"])
    {'a': 'x/orders.csv', 'orders': 's3://bucket/day=1/orders.csv'}
    """
    from tuplewise.engine.table.source import find_source

    tables: dict[str, str] = {}
    for text in given:
        match = None if Path(text).exists() else _NAMED.fullmatch(text)
        name, path = (match[1], match[2]) if match else (find_source(text).name, text)
        if name in tables:
            both = f"{tables[name]} and {path}"
            hint = "Name one of them: NAME=PATH"
            raise InputError(message(f"two tables are called {name!r}", both, "names that differ", hint))
        tables[name] = path
    return tables
