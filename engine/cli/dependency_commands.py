"""The commands of keys, functional and order dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import settings
from tuplewise.engine.cli.listing import LimitedListing, TableListing, Written, check_sql_table, format_of, write_found
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import message
from tuplewise.engine.options import (
    DependencyOptions,
    DependencyRankBy,
    FdDiscoverOptions,
    KeyDiscoverOptions,
    LoadOptions,
    OdCheckOptions,
    OdDiscoverOptions,
    option,
)

if TYPE_CHECKING:
    from tuplewise.engine.od.list_od import ListOd
    from tuplewise.engine.report.dependency_result import DependencyResult
    from tuplewise.engine.report.od_check_result import OdCheckResult
    from tuplewise.engine.report.order_by import Shortened

_COMMANDS: dict[type[DependencyOptions], str] = {
    FdDiscoverOptions: "fd discover",
    KeyDiscoverOptions: "key discover",
    OdDiscoverOptions: "od discover",
}


@dataclass(frozen=True, kw_only=True)
class DependencyListing(TableListing, LimitedListing):
    """Which of the dependencies that hold are listed, and in which order."""

    rank_by: DependencyRankBy | None = option(
        None,
        "genuineness: how far it exceeds chance, best first. size: fewest columns first, then by their positions.",
        default_is="size; text: genuineness",
    )


@dataclass(frozen=True, kw_only=True)
class OrderListing(Written):
    """Which order dependencies `od check` reads, and the saved result that decides them, if any."""

    ods: tuple[str, ...] = option((), "An order dependency.", metavar="TEXT", each="od")
    od_files: tuple[str, ...] = option(
        (), "Order dependencies, one a line, or the JSON of od check.", metavar="FILE", each="ods"
    )
    against: str | None = option(
        None, "Instead of TABLE: the JSON that od discover wrote for it. It decides without rows.",
        metavar="RESULT",
    )

    def read(self, columns: Sequence[str]) -> tuple[list[ListOd], list[str]]:
        """The dependencies, given the names of the columns; with notes."""
        from tuplewise.engine.report.od_texts import read_all_ods
        from tuplewise.engine.table.source import read_twice

        return read_all_ods([*self.ods, *(Path(read_twice(path)) for path in self.od_files)], columns)


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
@settings.options(FdDiscoverOptions, DependencyListing, LoadOptions)
@settings.output_options("text", "json", "csv", "sql", "html")
def fd_discover(invocation: Invocation, /, table: str, **given: Any) -> int:
    """The minimal functional dependencies that hold in TABLE.

    TABLE is named as for dc discover. X -> A holds where rows that are equal on X are equal on A; with --error E, where
    that share of rows, or less, has to be removed for it. SQL is a query for each that lists the violating pairs.
    """
    return _discover(invocation, table, FdDiscoverOptions, given)


@key.command("discover")
@click.argument("table")
@settings.options(KeyDiscoverOptions, DependencyListing, LoadOptions)
@settings.output_options("text", "json", "csv", "sql", "html")
def key_discover(invocation: Invocation, /, table: str, **given: Any) -> int:
    """The minimal keys (unique column combinations) of TABLE.

    TABLE is named as for dc discover. With --error E columns are a key where that share of rows, or less, has to be
    removed for it. SQL is a query for each that lists the pairs of rows that are equal on it.
    """
    return _discover(invocation, table, KeyDiscoverOptions, given)


@od.command("discover")
@click.argument("table")
@settings.options(OdDiscoverOptions, DependencyListing, LoadOptions)
@settings.output_options("text", "json", "csv", "sql", "html")
def od_discover(invocation: Invocation, /, table: str, **given: Any) -> int:
    """The minimal set-based order dependencies that hold in TABLE.

    TABLE is named as for dc discover. Within rows that are equal on a context of columns, one column is constant, or
    two are order compatible: they can be sorted by both at once, in the same or in opposite directions. All columns
    take part, text by bytes. SQL is a query for each that lists the violating pairs.
    """
    return _discover(invocation, table, OdDiscoverOptions, given)


def _discover(invocation: Invocation, table: str, kind: type[DependencyOptions], given: dict[str, Any]) -> int:
    reading, options, listing = settings.made(given, LoadOptions, kind, DependencyListing)
    form = format_of(listing, page=True)
    check_sql_table(listing.sql_table)

    def discover(progress: Progress) -> DependencyResult:
        run = CommandRun(_COMMANDS[kind], progress, invocation, options)
        return tasks.discover_dependencies(table, options, run, reading=reading, shown=listing.chosen)

    return write_found(listing, form, invocation, discover)


@od.command("check")
@click.argument("table", required=False)
@settings.options(OrderListing, OdCheckOptions, LoadOptions)
@settings.output_options("text", "json", "csv")
def od_check(invocation: Invocation, /, table: str | None, **given: Any) -> int:
    """Whether order dependencies hold in TABLE, and two rows that break each violated one.

    TABLE is named as for dc discover. An order dependency is text such as "month, week desc -> quarter": rows sorted by
    the left list are sorted by the right one. Two rows are a split if they are equal on the left and differ on the
    right, and a swap if the lists order them in opposite ways. Spark may show another pair than a check here. With
    --against no table is read: the dependencies that od discover saved decide. A partial result proves what follows
    from it, and leaves the rest undecided.

    Exit codes: 0 all hold; 1 some do not; 2 bad usage, dependency, input or device; 3 some are undecided (a limit was
    reached), and none is known not to hold.
    """
    if not given["ods"] and not given["od_files"]:
        raise click.UsageError("No order dependency is given: --od TEXT, or --ods FILE.")
    if (table is None) == (given["against"] is None):
        raise click.UsageError("Give a TABLE, or the JSON of od discover: --against RESULT (one of the two).")
    if table is None and (asked := settings.given_of(given, LoadOptions)):
        what, hint = "options of reading a table beside --against", "No table is read: leave them out"
        raise click.UsageError(f"{message(what, ', '.join(asked), hint=hint)}.")
    reading, options, listing = settings.made(given, LoadOptions, OdCheckOptions, OrderListing)
    form = format_of(listing)

    def find(progress: Progress) -> OdCheckResult:
        """What was found in a table, or follows from a saved result."""
        from tuplewise.engine.od.implied import SavedOds

        run = CommandRun("od check" if table else None, progress, invocation, options)
        shown = {"against": listing.against}
        if table is None:
            return tasks.check_ods(SavedOds.read(str(listing.against)), listing.read, options, run, shown=shown)
        return tasks.check_ods(table, listing.read, options, run, reading=reading, shown=shown)

    return write_found(listing, form, invocation, find)


@od.command("order-by")
@click.argument("columns")
@click.option("--against", required=True, metavar="RESULT", help="The JSON that od discover wrote for the table.")
@settings.output_options("text", "json")
def od_order_by(invocation: Invocation, /, columns: str, against: str, **given: Any) -> int:
    """The shortest ORDER BY that sorts a table as COLUMNS do.

    COLUMNS is a list as in ORDER BY, such as "year, month desc, quarter". A column is left out if, by the order
    dependencies in --against, it changes nothing. Other columns of the table are used if fewer of them sort the same
    way. Nulls are first (last with desc). A note says if there may be a shorter one: the result in --against is
    limited, or the search was ended.
    """
    (written,) = settings.made(given, Written)
    form = format_of(written)

    def find(progress: Progress) -> Shortened:
        from tuplewise.engine.report.order_by import shorten

        shortened = shorten(columns, against)
        for note in shortened.notes if form == "text" else ():
            progress.say(f"note: {note}")
        return shortened

    return write_found(written, form, invocation, find)
