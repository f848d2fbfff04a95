"""The commands that keep inclusion dependencies current: ind init, apply and show."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.ind_commands import IndDiscoverListing, check_sql_tables, ind, named_tables
from tuplewise.engine.cli.listing import Written, format_of, listing_of, working
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import IndStateOptions, LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.ind.state import Change, IndState
    from tuplewise.engine.report.ind_state import IndChange

__all__ = ["ind"]
_READING = frozenset(
    ("--sep", "--quote", "--escape", "--encoding", "--no-header", "--bad-rows", "--master", "--profile", "--conf")
)


def _state_options(command: settings.F) -> settings.F:
    """How a state is kept."""
    flags = {
        "--as-text": "Compare all values as the text that they are written as.",
        "--insert-only": "Keep no frequencies of values: smaller and quicker, and rows can't be deleted.",
        "--track-rows": "Keep how often each row occurs, so that a delete of any row that isn't there is an error.",
        "--sync": "Hand each revision to the disk before it is done: it survives a loss of power, not a kill alone.",
    }
    decorators = [click.option(flag, is_flag=True, help=says) for flag, says in flags.items()]
    return functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


def _reading_options(command: settings.F) -> settings.F:
    """The options of reading that a file of rows may need: columns, types and null tokens are the state's."""

    @settings.input_options
    def all_of_them() -> None:
        """Carries the options."""

    kept = [p for p in all_of_them.__click_params__ if _READING & set(p.opts)]  # type: ignore[attr-defined]
    params = command.__dict__.setdefault("__click_params__", [])
    params.extend(kept)
    return command


@dataclass(frozen=True)
class _Changes(Written):
    """Which files of rows `ind apply` applies."""

    insert: str | None
    delete: str | None
    update: tuple[str, str] | None


@ind.command("init")
@click.argument("folder", metavar="STATE")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@_state_options
@settings.input_options
@settings.output_options("text", "json")
@click.pass_obj
def ind_init(state: State, /, folder: str, tables: Sequence[str], **given: Any) -> int:
    """Build a STATE of TABLEs: a folder that keeps their inclusion dependencies current as rows come and go.

    STATE is a new or an empty folder; TABLEs are named as for ind discover. The types of columns are fixed: a later
    value that doesn't fit its column's type is an error. The state is there when it is whole, or not at all.
    """
    written = listing_of(Written, given)
    load_options, options = settings.load_options_and(IndStateOptions, given)
    form = format_of(written)
    with working(written, form, state) as progress:
        result = _build(folder, tables, options, load_options, progress.step)
    return _write(result, written, form, state)


def _build(
    folder: str, tables: Sequence[str], options: IndStateOptions, load_options: LoadOptions, step: Any
) -> IndChange:
    from tuplewise.engine.ind.initial import build
    from tuplewise.engine.ind.state import Applied, IndState
    from tuplewise.engine.report.ind_state import IndChange
    from tuplewise.engine.report.model import options_record
    from tuplewise.engine.report.version import version

    start = time.monotonic()
    built = build(folder, named_tables(tables), options, load_options, written_by=version(), progress=step)
    seconds = time.monotonic() - start
    with IndState(built.folder, write=False) as opened:
        gained = tuple(found.ind for found in opened.found().inds)
        applied = Applied(opened.revision, gained, (), opened.rows)
        return IndChange(
            "ind init", opened, applied, options=options_record(load_options, options), notes=built.notes,
            timings_seconds={"build": seconds, "total": time.monotonic() - start}, spark=built.spark,
        )  # fmt: skip


@ind.command("apply")
@click.argument("folder", metavar="STATE")
@click.option("--table", metavar="NAME", help="The rows' table. [default: the only one]")
@click.option("--insert", type=click.Path(), metavar="FILE", help="Rows that come.")
@click.option("--delete", type=click.Path(), metavar="FILE", help="Rows that go.")
@click.option(
    "--update", type=click.Path(), nargs=2, metavar="OLD NEW", help="Rows as they were, and as they are, in one order."
)
@_reading_options
@settings.output_options("text", "json")
@click.pass_obj
def ind_apply(state: State, /, folder: str, table: str | None, **given: Any) -> int:
    """Apply rows that come to a table of a STATE, go, or change: all of them as one revision, or none.

    FILEs are tables with the columns of the state's, matched by name. Rows that go are of those that were there
    before. A row whose values are not all there is an error, and nothing is applied; with --track-rows so is any row
    that is not there. Killed at any moment, the state is before the revision or after it.
    """
    changes = listing_of(_Changes, given)
    if changes.insert is None and changes.delete is None and not changes.update:
        raise click.UsageError("Nothing is to be applied: --insert FILE, --delete FILE or --update OLD NEW.")
    load_options = LoadOptions(**{**given, "conf": dict(given["conf"])})
    form = format_of(changes)
    with working(changes, form, state) as progress:
        result = _apply(folder, table, changes, load_options, progress.step)
    return _write(result, changes, form, state)


def _apply(folder: str, table: str | None, files: _Changes, load_options: LoadOptions, step: Any) -> IndChange:
    from tuplewise.engine.ind.state import IndState
    from tuplewise.engine.report.ind_state import IndChange
    from tuplewise.engine.report.model import options_record

    start = time.monotonic()
    with IndState(folder) as opened:
        step("reading")
        changes, notes = _read_changes(opened, table, files, load_options)
        read = time.monotonic()
        step("applying")
        applied = opened.apply(changes)
        end = time.monotonic()
        asked = {"table": table, "insert": files.insert, "delete": files.delete, "update": files.update or None}
        return IndChange(
            "ind apply", opened, applied, options=options_record(load_options, opened.manifest.options, **asked),
            notes=notes, timings_seconds={"read": read - start, "apply": end - read, "total": end - start},
        )  # fmt: skip


def _read_changes(
    opened: IndState, table: str | None, files: _Changes, load_options: LoadOptions
) -> tuple[list[Change], list[str]]:
    from tuplewise.engine.ind.state import Change, update_of

    leave_out = load_options.bad_rows == "report"
    notes: list[str] = []

    def read(path: str) -> Any:
        found = opened.read_rows(path, table, load_options, leave_out=leave_out)
        notes.extend(f"{path}: {note}" for note in found.notes)
        return found

    changes = []
    if files.delete is not None:
        rows = read(files.delete)
        changes.append(Change("delete", rows.attributes, rows.rows))
    if files.update:
        changes += update_of(*map(read, files.update))
    if files.insert is not None:
        rows = read(files.insert)
        changes.append(Change("insert", rows.attributes, rows.rows))
    return changes, notes


@ind.command("show")
@click.argument("folder", metavar="STATE")
@settings.ind_show_options
@settings.output_options("text", "json", "csv", "sql")
@click.pass_obj
def ind_show(state: State, /, folder: str, **given: Any) -> int:
    """The inclusion dependencies of a STATE as of its last revision, also while another process writes it."""
    from tuplewise.engine.ind.state import IndState
    from tuplewise.engine.report.ind_state import IndStateResult

    listing = listing_of(IndDiscoverListing, given)
    form = format_of(listing)
    start = time.monotonic()
    with working(listing, form, state), IndState(folder, write=False) as opened:
        check_sql_tables(listing.sql_tables, [table.name for table in opened.manifest.tables])
        result = IndStateResult(opened, options={"limit": listing.limit}, total_seconds=time.monotonic() - start)
    if form == "text":
        how = {"verbose": state.verbose > 0, **output.terminal(listing.output)}
        pieces: Iterable[str] = [result.to_text(limit=listing.limit, command_line=True, **how)]
    else:
        named = dict(listing.sql_tables)
        pieces = result.pieces(form, limit=listing.limit, dialect=listing.dialect, tables=named)
    output.write(pieces, listing.output)
    return 0


def _write(result: IndChange, written: Written, form: str, state: State) -> int:
    """Write what a revision brought; its notes to stderr too, where they are not in the text."""
    if form == "text":
        pieces = [result.to_text(verbose=state.verbose > 0, **output.terminal(written.output))]
    else:
        pieces = [result.to_json()]
    output.write(pieces, written.output)
    return 0
