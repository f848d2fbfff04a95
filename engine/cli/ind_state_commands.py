"""The commands that keep inclusion dependencies current: ind init, apply and show."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import click

from tuplewise.engine.cli import ind_settings, output, settings
from tuplewise.engine.cli.ind_commands import IndDiscoverListing, check_sql_tables, ind, listed_pieces, named_tables
from tuplewise.engine.cli.listing import Written, format_of, listing_of, working
from tuplewise.engine.cli.settings import State
from tuplewise.engine.errors import all_spelled, command_line_option, placed
from tuplewise.engine.options import IndStateOptions, LoadOptions, RunOn

if TYPE_CHECKING:
    from tuplewise.engine.ind.open_state import AnyState
    from tuplewise.engine.ind.state import Change
    from tuplewise.engine.report.ind_state import IndChange

__all__ = ["ind"]


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


@dataclass(frozen=True)
class _Changes(Written):
    """Which files of rows `ind apply` applies."""

    insert: str | None
    delete: str | None
    update: tuple[str, str] | None
    stream: str | None


@ind.command("init")
@click.argument("folder", metavar="STATE")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@_state_options
@click.option(
    "--run-on", type=click.Choice(get_args(RunOn)), default="auto", show_default=True,
    help="Where the state is kept: by one process (driver, auto), or in partitions by Spark, beyond one machine.",
)
@settings.input_options
@settings.output_options("text", "json")
@click.pass_obj
def ind_init(state: State, /, folder: str, tables: Sequence[str], run_on: RunOn, **given: Any) -> int:
    """Build a STATE of TABLEs: a folder that keeps their inclusion dependencies current as rows come and go.

    STATE is a new or an empty folder; TABLEs are named as for ind discover. The types of columns are fixed: a later
    value that doesn't fit its column's type is an error. The state is there when it is whole, or not at all.

    With --run-on spark, STATE is a folder that all machines of the cluster see (--master), TABLEs are what Spark reads,
    and --insert-only and --track-rows are not taken. ind show is the same for both kinds, and so is ind apply, but that
    rows which come and go with one revision are then counted up together.
    """
    written = listing_of(Written, given)
    load_options, options = settings.load_options_and(IndStateOptions, given)
    form = format_of(written)
    with working(written, form, state) as progress:
        result = _build(folder, tables, options, load_options, run_on, progress.step)
    return _write(result, written, form, state)


def _build(
    folder: str, tables: Sequence[str], options: IndStateOptions, load_options: LoadOptions, run_on: RunOn, step: Any
) -> IndChange:
    from tuplewise.engine.ind.open_state import build_state, open_state
    from tuplewise.engine.ind.state import Applied
    from tuplewise.engine.report.ind_state import IndChange
    from tuplewise.engine.report.model import options_record
    from tuplewise.engine.report.version import version

    start = time.monotonic()
    built = build_state(
        folder, named_tables(tables), options, load_options, run_on=run_on, written_by=version(), progress=step
    )
    seconds = time.monotonic() - start
    with open_state(built.folder, write=False) as opened:
        gained = tuple(found.ind for found in opened.found().inds)
        applied = Applied(opened.revision, gained, (), opened.rows)
        return IndChange(
            "ind init", opened, applied, notes=all_spelled(built.notes, command_line_option),
            options=options_record(load_options, options, run_on=run_on),
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
@click.option(
    "--stream", type=click.Path(), metavar="FOLDER",
    help="Files of changed rows, each applied once: the table's columns, then _change: insert or delete.",
)
@settings.reading_options
@settings.output_options("text", "json")
@click.pass_obj
def ind_apply(state: State, /, folder: str, table: str | None, **given: Any) -> int:
    """Apply rows that come to a table of a STATE, go, or change: all of them as one revision, or none.

    FILEs are tables with the columns of the state's, matched by name. Rows that go are of those that were there
    before. A row whose values are not all there is an error, and nothing is applied; with --track-rows so is any row
    that is not there. Killed at any moment, the state is before the revision or after it.

    --stream is for a state that was built with --run-on spark: it applies the files in FOLDER that were not applied
    before, in batches, a revision each, and ends. CSV files have a header with the table's columns in their order, then
    _change. An update is two rows. A batch that can't be applied is an error, and comes again the next time.
    """
    changes = listing_of(_Changes, given)
    files = changes.insert is not None or changes.delete is not None or bool(changes.update)
    if not files and changes.stream is None:
        every = "--insert FILE, --delete FILE, --update OLD NEW or --stream FOLDER"
        raise click.UsageError(f"Nothing is to be applied: {every}.")
    if files and changes.stream is not None:
        raise click.UsageError("--stream FOLDER is applied by itself, without --insert, --delete and --update.")
    load_options = settings.reading_of(given)
    form = format_of(changes)
    with working(changes, form, state) as progress:
        result = _apply(folder, table, changes, load_options, progress.step)
    return _write(result, changes, form, state)


def _apply(folder: str, table: str | None, files: _Changes, load_options: LoadOptions, step: Any) -> IndChange:
    from tuplewise.engine.ind.open_state import open_state
    from tuplewise.engine.ind.partitioned import PartitionedIndState
    from tuplewise.engine.report.ind_state import IndChange
    from tuplewise.engine.report.model import options_record

    start = time.monotonic()
    with open_state(folder) as opened:
        if isinstance(opened, PartitionedIndState):
            opened.connect(load_options)
        if files.stream is not None:
            return _stream(opened, files.stream, table, load_options, step)
        step("reading")
        changes, notes = _read_changes(opened, table, files, load_options)
        read = time.monotonic()
        step("applying")
        applied = opened.apply(changes)
        end = time.monotonic()
        asked = {"table": table, "insert": files.insert, "delete": files.delete, "update": files.update or None}
        return IndChange(
            "ind apply", opened, applied, options=options_record(load_options, opened.manifest.options, **asked),
            notes=all_spelled(notes, command_line_option),
            timings_seconds={"read": read - start, "apply": end - read, "total": end - start},
        )  # fmt: skip


def _stream(
    opened: AnyState, folder: str, table: str | None, load_options: LoadOptions, step: Any
) -> IndChange:
    from tuplewise.engine.errors import InputError, message, number_of
    from tuplewise.engine.ind.partitioned import PartitionedIndState
    from tuplewise.engine.ind.partitioned_stream import apply_stream
    from tuplewise.engine.report.ind_state import IndChange
    from tuplewise.engine.report.model import options_record

    if not isinstance(opened, PartitionedIndState):
        hint = "Build it with ind init --run-on spark, or apply files: --insert FILE, --delete FILE, --update OLD NEW"
        raise InputError(message("this state takes no streams", str(opened.folder), hint=hint))
    start = time.monotonic()
    step("applying")
    found = apply_stream(opened, folder, table=table)
    seconds = time.monotonic() - start
    many = len(found.batches)
    notes = [f"{number_of(many, 'batch', 'batches')} of new files applied"]
    asked = {"table": table, "stream": folder}
    return IndChange(
        "ind apply", opened, found.together, options=options_record(load_options, opened.manifest.options, **asked),
        notes=notes, timings_seconds={"apply": seconds, "total": seconds},
    )  # fmt: skip


def _read_changes(
    opened: AnyState, table: str | None, files: _Changes, load_options: LoadOptions
) -> tuple[list[Change], list[str]]:
    from tuplewise.engine.ind.state import Change, update_of

    leave_out = load_options.bad_rows == "report"
    notes: list[str] = []

    def read(path: str) -> Any:
        found = opened.read_rows(path, table, load_options, leave_out=leave_out)
        notes.extend(placed(path, found.notes))
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
@ind_settings.ind_show_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def ind_show(state: State, /, folder: str, **given: Any) -> int:
    """The inclusion dependencies of a STATE as of its last revision, also while another process writes it."""
    from tuplewise.engine.ind.open_state import open_state
    from tuplewise.engine.report.ind_state import IndStateResult

    listing = listing_of(IndDiscoverListing, given)
    form = format_of(listing, page=True)
    start = time.monotonic()
    with working(listing, form, state), open_state(folder, write=False) as opened:
        check_sql_tables(listing.sql_tables, [table.name for table in opened.manifest.tables])
        result = IndStateResult(opened, options={"limit": listing.limit}, total_seconds=time.monotonic() - start)
    output.write(listed_pieces(result, form, listing, state), listing.output)
    return 0


def _write(result: IndChange, written: Written, form: str, state: State) -> int:
    """Write what a revision brought; its notes to stderr too, where they are not in the text."""
    if form == "text":
        pieces = [result.to_text(verbose=state.verbose > 0, **output.terminal(written.output))]
    else:
        pieces = [result.to_json()]
    output.write(pieces, written.output)
    return 0
