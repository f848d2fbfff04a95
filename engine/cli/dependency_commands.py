"""The commands of keys, functional and order dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.listing import (
    EXIT_LIMIT,
    OrderListing,
    RankedListing,
    Written,
    check_sql_table,
    format_of,
    listing_of,
    working,
    write_found,
)
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import (
    DependencyOptions,
    FdDiscoverOptions,
    KeyDiscoverOptions,
    LoadOptions,
    OdCheckOptions,
    OdDiscoverOptions,
)

if TYPE_CHECKING:
    from tuplewise.engine.od.list_od import ListOd
    from tuplewise.engine.report.dependency_result import DependencyResult
    from tuplewise.engine.report.od_check_result import OdCheckResult

EXIT_VIOLATED = 1
_COMMANDS: dict[type[DependencyOptions], str] = {
    FdDiscoverOptions: "fd discover",
    KeyDiscoverOptions: "key discover",
    OdDiscoverOptions: "od discover",
}
_NULLS = "A null is equal to nothing and differs from nothing, or is a value equal to itself."
_ORDER_NULLS = "Here always value: nulls are equal to each other and before all others."


@click.group()
def fd() -> None:
    """Functional dependencies: rows that are equal on some columns are equal on another."""


@click.group()
def key() -> None:
    """Keys: columns on which no two rows are equal."""


@click.group()
def od() -> None:
    """Order dependencies: rows sorted by some columns are sorted by others."""


@fd.command("discover")
@click.argument("table")
@settings.dependency_options("Left sides")
@settings.run_options("unknown", _NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def fd_discover(state: State, /, table: str, **given: Any) -> int:
    """The minimal functional dependencies that hold in TABLE.

    TABLE is named as for dc discover. X -> A holds where rows that are equal on X are equal on A; with --error E, where
    that share of rows, or less, has to be removed for it. SQL is a query for each that lists the violating pairs.
    """
    return _discover(state, table, FdDiscoverOptions, given)


@key.command("discover")
@click.argument("table")
@settings.dependency_options("Keys")
@settings.run_options("unknown", _NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def key_discover(state: State, /, table: str, **given: Any) -> int:
    """The minimal keys (unique column combinations) of TABLE.

    TABLE is named as for dc discover. With --error E columns are a key where that share of rows, or less, has to be
    removed for it. SQL is a query for each that lists the pairs of rows that are equal on it.
    """
    return _discover(state, table, KeyDiscoverOptions, given)


@od.command("discover")
@click.argument("table")
@settings.dependency_options("Contexts", "List the first N of each kind only.")
@click.option(
    "--lexicographic",
    type=int,
    metavar="N",
    help="Also derive the dependencies between lists of at most N columns, such as month, week -> quarter.",
)
@settings.run_options("value", _ORDER_NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def od_discover(state: State, /, table: str, **given: Any) -> int:
    """The minimal set-based order dependencies that hold in TABLE.

    TABLE is named as for dc discover. Within rows that are equal on a context of columns, one column is constant, or
    two are order compatible: they can be sorted by both at once, in the same or in opposite directions. All columns
    take part, text by bytes. SQL is a query for each that lists the violating pairs.
    """
    return _discover(state, table, OdDiscoverOptions, given)


def _discover(state: State, table: str, kind: type[DependencyOptions], given: dict[str, Any]) -> int:
    listing = listing_of(RankedListing, given)
    load_options, options = settings.load_options_and(kind, given)
    form = format_of(listing, page=True)
    check_sql_table(listing.sql_table)

    def discover(progress: Progress) -> DependencyResult:
        run = CommandRun(_COMMANDS[kind], progress, state, options)
        return tasks.discover_dependencies(table, options, run, reading=load_options, shown=listing.chosen)

    return write_found(listing, form, state, discover)


@od.command("check")
@click.argument("table", required=False)
@settings.order_check_options
@settings.run_options("value", _ORDER_NULLS)
@settings.input_options
@settings.output_options("text", "json", "csv")
@click.pass_obj
def od_check(state: State, /, table: str | None, **given: Any) -> int:
    """Whether order dependencies hold in TABLE, and two rows that break each that does not.

    TABLE is named as for dc discover. An order dependency is text such as "month, week desc -> quarter": rows sorted by
    the left list are sorted by the right one. Two rows are a split where they are equal on the left and differ on the
    right, and a swap where the lists order them in opposite ways; where Spark checks, other two may be shown. With
    --against no table is read: the dependencies that od discover saved decide. If they are partial, they prove what
    follows from them, and leave undecided what they may lack.

    Exit codes: 0 all hold; 1 some do not; 2 bad usage, dependency, input or device; 3 some are undecided (a limit was
    reached), and none is known not to hold.
    """
    listing = listing_of(OrderListing, given)
    if not listing.ods and not listing.od_files:
        raise click.UsageError("No order dependency is given: --od TEXT, or --ods FILE.")
    if (table is None) == (listing.against is None):
        raise click.UsageError("Give a TABLE, or the JSON of od discover: --against RESULT (one of the two).")
    if table is None:
        settings.refuse_reading_options("beside --against", "No table is read: leave them out")
    load_options, options = settings.load_options_and(OdCheckOptions, given)
    form = format_of(listing)
    with working(listing, form, state) as progress:
        result = _check_ods(table, listing, load_options, options, progress, state)
        progress.step("writing")
        if form == "text":
            how = {"verbose": state.verbose > 0, **output.terminal(listing.output)}
            pieces = iter([result.to_text(**how)])
        else:
            pieces = result.pieces(form)
    output.write(pieces, listing.output)
    if result.failed:
        return EXIT_VIOLATED
    return EXIT_LIMIT if result.partial else 0


def _check_ods(
    table: str | None,
    listing: OrderListing,
    load_options: LoadOptions,
    options: OdCheckOptions,
    progress: Progress,
    state: State,
) -> OdCheckResult:
    """What was found in a table, or follows from a saved result."""
    from tuplewise.engine.od.implied import SavedOds
    from tuplewise.engine.report.od_texts import read_all_ods
    from tuplewise.engine.table.source import read_twice

    def ods(columns: Sequence[str]) -> tuple[list[ListOd], list[str]]:
        return read_all_ods([*listing.ods, *(Path(read_twice(path)) for path in listing.od_files)], columns)

    run = CommandRun("od check" if table else None, progress, state, options)
    shown = {"against": listing.against}
    if table is None:
        return tasks.check_ods(SavedOds.read(str(listing.against)), ods, options, run, shown=shown)
    return tasks.check_ods(table, ods, options, run, reading=load_options, shown=shown)


@od.command("order-by")
@click.argument("columns")
@settings.against_option("The JSON that od discover wrote for the table.", required=True)
@settings.output_options("text", "json")
@click.pass_obj
def od_order_by(state: State, /, columns: str, against: str, **given: Any) -> int:
    """The shortest ORDER BY that sorts as COLUMNS do.

    COLUMNS is what stands behind ORDER BY, such as "year, month desc, quarter". Columns that the order dependencies in
    --against make idle are left out; others of the table are taken where fewer of them sort alike. Nulls are first
    (last where desc). A note says where there may be a shorter one: the result in --against is limited, or there was
    too much to look at.
    """
    from tuplewise.engine.report.order_by import shorten

    written = listing_of(Written, given)
    form = format_of(written)
    shortened = shorten(columns, against)
    if form != "json" and not state.quiet:
        for note in shortened.notes:
            click.echo(f"tuplewise: note: {note}", err=True)
    output.write([shortened.to_json() if form == "json" else f"{shortened.shortest}\n"], written.output)
    return 0
