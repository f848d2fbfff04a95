"""The commands of inclusion dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import ind_settings, output, settings
from tuplewise.engine.cli.listing import EXIT_LIMIT, Written, format_of, listing_of, working
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.settings import State
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import IndCheckOptions, IndDiscoverOptions

if TYPE_CHECKING:
    from tuplewise.engine.report.ind_result import IndResult

EXIT_VIOLATED = 1
_NULLS = "Here always unknown: a null is no value, on either side."
_NAMED = re.compile(r"([^/\\:*?=]+)=(.+)", re.DOTALL)


@dataclass(frozen=True)
class IndListing(Written):
    """What `ind discover` and `ind check` have in common in what they write."""

    dialect: str = "spark"
    sql_tables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class IndDiscoverListing(IndListing):
    """What `ind discover` lists."""

    limit: int | None = None


@dataclass(frozen=True)
class IndCheckListing(IndListing):
    """Which dependencies `ind check` reads."""

    inds: tuple[str, ...] = ()
    ind_files: tuple[str, ...] = ()


@click.group()
def ind() -> None:
    """Inclusion dependencies: all values of a column occur in another, as those of a foreign key do."""


def _tables_argument(command: settings.F) -> settings.F:
    return click.argument("tables", nargs=-1, required=True, metavar="TABLE...")(command)


@ind.command("discover")
@_tables_argument
@ind_settings.ind_discover_options
@settings.run_options("unknown", _NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def ind_discover(state: State, /, tables: Sequence[str], **given: Any) -> int:
    """The inclusion dependencies between the columns of TABLEs: A <= B, where every value of A occurs in B.

    TABLEs are named as for dc discover, or NAME=PATH; a folder is one table. Values are compared by type (text with
    text, numbers with numbers), or all as text. Each dependency comes with what speaks for a foreign key; text and
    --limit list the likeliest first. --columns, --exclude and --types name columns of any of the tables, as COLUMN or
    TABLE.COLUMN. SQL is a query for each that lists missing values.
    """
    listing = listing_of(IndDiscoverListing, given)
    load_options, options = settings.load_options_and(IndDiscoverOptions, given)
    form = format_of(listing, page=True)
    with working(listing, form, state) as progress:
        run = CommandRun("ind discover", progress, state, options)
        named = _named(tables, listing, run)
        shown = {"limit": listing.limit}
        result = tasks.discover_inds(named, options, run, reading=load_options, shown=shown)
        progress.step("writing")
        pieces = listed_pieces(result, form, listing, state)
    output.write(pieces, listing.output)
    return EXIT_LIMIT if result.partial else 0


def listed_pieces(result: IndResult, form: str, listing: IndDiscoverListing, state: State) -> Iterable[str]:
    """A list of dependencies as it was asked for."""
    if form == "text":
        how = {"verbose": state.verbose > 0, **output.terminal(listing.output)}
        return [result.to_text(limit=listing.limit, command_line=True, **how)]
    named = dict(listing.sql_tables)
    return result.pieces(form, limit=listing.limit, dialect=listing.dialect, tables=named)


@ind.command("check")
@_tables_argument
@ind_settings.ind_check_options
@settings.run_options("unknown", _NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql")
@click.pass_obj
def ind_check(state: State, /, tables: Sequence[str], **given: Any) -> int:
    """Whether inclusion dependencies hold in TABLEs, and which values are missing where they don't.

    TABLEs are named as for ind discover. A dependency is text such as "child.a <= parent.b" or "child[a, b] <=
    parent[x, y]". Rows with a null in a dependent column are not applicable, and counted apart; a null in a referenced
    column hides nothing. Columns of types that are not compared, text and numbers, have no value in common, and a note
    says so.

    Exit codes: 0 all hold; 1 some do not; 2 bad usage, dependency, input or device; 3 some are undecided (a limit was
    reached), and none is known not to hold.
    """
    listing = listing_of(IndCheckListing, given)
    if not listing.inds and not listing.ind_files:
        raise click.UsageError("No inclusion dependency is given: --ind TEXT, or --inds FILE.")
    load_options, options = settings.load_options_and(IndCheckOptions, given)
    form = format_of(listing)
    with working(listing, form, state) as progress:
        run = CommandRun("ind check", progress, state, options)
        named = _named(tables, listing, run)
        inds = [*listing.inds, *map(Path, listing.ind_files)]
        result = tasks.check_inds(named, inds, options, run, reading=load_options, shown={})
        progress.step("writing")
        if form == "text":
            how = {"verbose": state.verbose > 0, **output.terminal(listing.output)}
            pieces: Iterable[str] = [result.to_text(command_line=True, **how)]
        else:
            pieces = result.pieces(form, dialect=listing.dialect, tables=dict(listing.sql_tables))
    output.write(pieces, listing.output)
    if result.failed:
        return EXIT_VIOLATED
    return EXIT_LIMIT if result.partial else 0


def _named(tables: Sequence[str], listing: IndListing, run: CommandRun) -> dict[str, str]:
    """The tables by their names, when the kernels are ready too: reading calls some."""
    named = named_tables(tables)
    check_sql_tables(listing.sql_tables, list(named))
    run.get_ready()
    return named


def named_tables(given: Sequence[str]) -> dict[str, str]:
    """Paths by the names of their tables: those that were given (NAME=PATH), else the files' own.

    Raises
    ------
    InputError : where two have one name, or a path names no file

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


def check_sql_tables(given: Sequence[tuple[str, str]], tables: Sequence[str]) -> None:
    """Faults in the names of tables in a database, before any work."""
    from tuplewise.engine.errors import near_names
    from tuplewise.engine.report import sql

    for name, written in given:
        if name not in tables:
            hint = near_names(name, tables)
            raise InputError(message("--sql-table for a table that isn't there", name, hint=hint))
        sql.table_parts(written)
