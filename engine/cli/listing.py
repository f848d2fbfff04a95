"""What commands have in common once their options are read: what is said meanwhile, and what is written, where."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tuplewise.engine.cli import output
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import DependencyRankBy, RankBy

EXIT_LIMIT = 3


@dataclass(frozen=True)
class Written:
    """What is written, and where to."""

    form: str | None
    output: str | None


@dataclass(frozen=True)
class CheckListing(Written):
    """Which rules `dc check` reads, what it writes, and where to."""

    rules: tuple[str, ...] = ()
    rule_files: tuple[str, ...] = ()
    pairs: int | None = None
    pairs_out: str | None = None
    split: str | None = None
    explain: bool = False
    dialect: str = "spark"
    sql_table: str | None = None


@dataclass(frozen=True)
class OrderListing(Written):
    """Which order dependencies `od check` reads, and against which saved result, if any."""

    ods: tuple[str, ...] = ()
    od_files: tuple[str, ...] = ()
    against: str | None = None


@dataclass(frozen=True)
class Listing(Written):
    """What a discovery lists."""

    limit: int | None = None
    dialect: str = "spark"
    sql_table: str | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """Which of what was found are listed, for the methods of results."""
        return {"limit": self.limit}


@dataclass(frozen=True)
class RankedListing(Listing):
    """What a discovery lists, and in which order."""

    rank_by: RankBy | DependencyRankBy | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        return {"rank_by": self.rank_by, "limit": self.limit}


L = TypeVar("L", bound=Written)


def listing_of(kind: type[L], given: dict[str, Any]) -> L:
    """What is listed, taken out of what was given."""
    return kind(**{name: given.pop(name) for name in kind.__dataclass_fields__})


class Found(Protocol):
    """What a discovery hands on."""

    @property
    def partial(self) -> bool: ...

    @property
    def pieces(self) -> Callable[..., Iterable[str]]: ...

    @property
    def to_text(self) -> Callable[..., str]: ...


def format_of(written: Written, *, page: bool = False) -> str:
    """The format that was asked for, or the default one; `page`: whether there is HTML.

    Raises InputError for a file that can't be written.
    """
    output.check_output(written.output)
    return written.form or output.default_format(written.output, page=page)


def check_sql_table(name: str | None) -> None:
    """Faults in a table's name, before any work."""
    from tuplewise.engine.report import sql

    if name is not None:
        sql.table_parts(name)


@contextlib.contextmanager
def working(written: Written, form: str, state: State) -> Iterator[Progress]:
    """The log and the progress of a command that works, and a note on a file's name that promises another format."""
    _listen_to_log(state)
    with Progress(state.quiet) as progress:
        if written.form is None and (note := output.surprising_format(form, written.output)):
            progress.say(f"note: {note}")
        yield progress


def write_found(listing: Listing, form: str, state: State, discover: Callable[[Progress], Found]) -> int:
    """Discover, and write what was found. The exit code."""
    with working(listing, form, state) as progress:
        found = discover(progress)
        progress.step("writing")
        if form == "text":
            how = {**listing.chosen, "verbose": state.verbose > 0, **output.terminal(listing.output)}
            pieces: Iterable[str] = [found.to_text(command_line=True, **how)]
        elif form == "sql":
            pieces = found.pieces(form, dialect=listing.dialect, table=listing.sql_table, **listing.chosen)
        else:
            pieces = found.pieces(form, **listing.chosen)
    output.write(pieces, listing.output)
    return EXIT_LIMIT if found.partial else 0


def _listen_to_log(state: State) -> None:
    """Our log goes to stderr, as much of it as was asked for."""
    logger = logging.getLogger("tuplewise")
    levels = [logging.WARNING, logging.INFO, logging.DEBUG]
    logger.setLevel(logging.ERROR if state.quiet else levels[min(state.verbose, 2)])
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("tuplewise: %(message)s"))
        logger.addHandler(handler)
