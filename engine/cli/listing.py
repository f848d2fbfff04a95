"""What all commands do once their options are read: report progress, and write the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import click

from tuplewise.engine.cli import output
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import InputError, message, near_names
from tuplewise.engine.options import Options, RankBy, declarations, option
from tuplewise.engine.report import files

EXIT_VIOLATED = 1
EXIT_LIMIT = 3
Dialect = Literal["spark", "duckdb", "postgres", "ansi"]


@dataclass(frozen=True, kw_only=True)
class Written(Options):
    """What is written, and where to."""

    form: str | None = None
    output: str | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """Arguments that choose the listed entries, for the methods of results."""
        return {name: getattr(self, name) for name in ("rank_by", "limit") if name in declarations(type(self))}

    @property
    def in_text(self) -> dict[str, Any]:
        """Further arguments of the text of a result."""
        return {"command_line": True}

    @property
    def in_sql(self) -> dict[str, Any]:
        """Further arguments of the queries of a result."""
        return {}


@dataclass(frozen=True, kw_only=True)
class SqlListing(Written):
    """How queries are written."""

    dialect: Dialect = option("spark", "SQL: dialect.")

    @property
    def in_sql(self) -> dict[str, Any]:
        return {"dialect": self.dialect}


@dataclass(frozen=True, kw_only=True)
class TableListing(SqlListing):
    """How queries about one table are written."""

    sql_table: str | None = option(
        None, "SQL: the table's name in the database.", metavar="NAME", default_is="the loaded one's"
    )

    @property
    def in_sql(self) -> dict[str, Any]:
        return {"dialect": self.dialect, "table": self.sql_table}


@dataclass(frozen=True, kw_only=True)
class TablesListing(SqlListing):
    """How queries about several tables are written."""

    sql_table: Mapping[str, str] = option(
        {}, "SQL: a table's name in the database.", metavar="TABLE=NAME", default_is="the loaded ones'"
    )

    @property
    def in_sql(self) -> dict[str, Any]:
        return {"dialect": self.dialect, "tables": self.sql_table}


@dataclass(frozen=True, kw_only=True)
class LimitedListing(Written):
    """How many entries are listed."""

    limit: int | None = option(
        None, "List the first ones only, at most this many.", least=1, metavar="N", default_is="all; text: 20"
    )


@dataclass(frozen=True, kw_only=True)
class RankedListing(TableListing, LimitedListing):
    """Which of the denial constraints that hold are listed, and in which order."""

    rank_by: RankBy | None = option(
        None,
        "List best first. genuineness: how far a rule exceeds chance.",
        default_is="genuineness in text, where rules that differ only in operators share a line; elsewhere by size, or"
        " succinctness with --limit",
    )


class Found(Protocol):
    """The result of a command."""

    @property
    def partial(self) -> bool: ...

    @property
    def pieces(self) -> Callable[..., Iterable[str]]: ...

    @property
    def to_text(self) -> Callable[..., str]: ...


def format_of(written: Written, *, page: bool = False) -> str:
    """The requested format, or the default one. `page`: whether the command writes HTML.

    Raises InputError for a file that can't be written.
    """
    if written.output is not None:
        files.check_target("output file", written.output)
    return written.form or output.default_format(written.output, page=page)


def only_text_and_json(option: str, form: str) -> None:
    """Raise UsageError unless the format is one of the two that an option has."""
    if form not in ("text", "json"):
        raise click.UsageError(f"{option} has the formats text and json, not {form}.")


def check_sql_table(name: str | None) -> None:
    """Raise InputError before any work for what is no name of a table."""
    from tuplewise.engine.report import sql

    if name is not None:
        sql.table_parts(name)


def check_sql_tables(given: Mapping[str, str], tables: Sequence[str]) -> None:
    """Raise InputError before any work for unknown tables, or names that are none."""
    for name, written in given.items():
        if name not in tables:
            hint = near_names(name, tables)
            raise InputError(message("--sql-table for an unknown table", name, hint=hint))
        check_sql_table(written)


def write_found(listing: Written, form: str, invocation: Invocation, find: Callable[[Progress], Found]) -> int:
    """Do the work of a command and write what it found. Returns the exit code."""
    _listen_to_log(invocation)
    with Progress(invocation.quiet) as progress:
        if listing.form is None and (note := output.surprising_format(form, listing.output)):
            progress.say(f"note: {note}")
        found = find(progress)
        progress.step("writing")
        if form == "text":
            how = {"verbose": invocation.verbose > 0, **output.terminal(listing.output)}
            pieces: Iterable[str] = [found.to_text(**listing.chosen, **listing.in_text, **how)]
        elif form == "sql":
            pieces = found.pieces(form, **listing.in_sql, **listing.chosen)
        else:
            pieces = found.pieces(form, **listing.chosen)
    output.write(pieces, listing.output)
    if getattr(found, "failed", False):  # checks alone fail
        return EXIT_VIOLATED
    return EXIT_LIMIT if found.partial else 0


def _listen_to_log(invocation: Invocation) -> None:
    """Send our log to stderr, at the level of --quiet and --verbose."""
    logger = logging.getLogger("tuplewise")
    levels = [logging.WARNING, logging.INFO, logging.DEBUG]
    logger.setLevel(logging.ERROR if invocation.quiet else levels[min(invocation.verbose, 2)])
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("tuplewise: %(message)s"))
        logger.addHandler(handler)
