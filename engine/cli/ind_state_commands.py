"""The commands that keep inclusion dependencies current: ind init, apply and show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import settings
from tuplewise.engine.cli.ind_commands import IndListing, ind, named_tables
from tuplewise.engine.cli.listing import Written, check_sql_tables, format_of, write_found
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import all_spelled, command_line_option, placed
from tuplewise.engine.options import IndInitOptions, IndStateOptions, LoadOptions, option
from tuplewise.engine.run import Clock

if TYPE_CHECKING:
    from tuplewise.engine.ind.open_state import AnyState
    from tuplewise.engine.ind.state import Applied, Change
    from tuplewise.engine.report.ind_state import IndChange, IndStateResult

__all__ = ["ind"]


@dataclass(frozen=True, kw_only=True)
class _Changes(Written):
    """Which files of rows `ind apply` applies, and to which table."""

    table: str | None = option(None, "The rows' table.", metavar="NAME", default_is="the only one")
    insert: str | None = option(None, "Rows that come.", metavar="FILE")
    delete: str | None = option(None, "Rows that go.", metavar="FILE")
    update: tuple[str, str] | None = None
    stream: str | None = option(
        None, "Files of changed rows, each applied once: the table's columns, then _change: insert or delete.",
        metavar="FOLDER",
    )


@ind.command("init")
@click.argument("folder", metavar="STATE")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@settings.options(IndInitOptions, LoadOptions)
@settings.output_options("text", "json")
def ind_init(invocation: Invocation, /, folder: str, tables: Sequence[str], **given: Any) -> int:
    """Build a STATE of TABLEs: a folder that keeps their inclusion dependencies current as rows come and go.

    STATE is a new or an empty folder; TABLEs are named as for ind discover. The types of columns are fixed: a later
    value that doesn't fit its column's type is an error. The state is written whole or not at all.

    With --run-on spark, STATE is a folder that all machines of the cluster see (--master), and TABLEs are paths that
    Spark reads; --insert-only and --track-rows are not available. ind show and ind apply work on both kinds of states.
    In Spark, the inserted and deleted rows of one revision are counted together.
    """
    load_options, options, written = settings.made(given, LoadOptions, IndInitOptions, Written)
    form = format_of(written)
    return write_found(
        written, form, invocation, lambda shown: _build(folder, tables, options, load_options, shown.step)
    )


def _build(
    folder: str, tables: Sequence[str], options: IndInitOptions, load_options: LoadOptions, step: Any
) -> IndChange:
    from tuplewise.engine.ind.open_state import build_state, open_state
    from tuplewise.engine.ind.state import Applied
    from tuplewise.engine.report.ind_state import IndChange
    from tuplewise.engine.report.model import options_record
    from tuplewise.engine.report.version import version

    start = time.monotonic()
    how: dict[str, Any] = {"run_on": options.run_on, "written_by": version(), "progress": step}
    built = build_state(folder, named_tables(tables), options.part(IndStateOptions), load_options, **how)
    seconds = time.monotonic() - start
    with open_state(built.folder, write=False) as opened:
        gained = tuple(found.ind for found in opened.found().inds)
        applied = Applied(opened.revision, gained, (), opened.rows)
        return IndChange(
            "ind init", opened, applied, notes=all_spelled(built.notes, command_line_option),
            options=options_record(load_options, options),
            timings_seconds={"build": seconds, "total": time.monotonic() - start}, spark=built.spark,
        )  # fmt: skip


@ind.command("apply")
@click.argument("folder", metavar="STATE")
@settings.options(_Changes)
@click.option("--update", nargs=2, metavar="OLD NEW", help="Rows as they were, and as they are, in one order.")
@settings.options(LoadOptions, only=settings.OF_THE_ROWS)
@settings.output_options("text", "json")
def ind_apply(invocation: Invocation, /, folder: str, **given: Any) -> int:
    """Apply rows that come to a table of a STATE, go, or change: all of them as one revision, or none.

    FILEs are tables with the columns of the state's, matched by name. Deleted rows must have been in the state before.
    To delete a row with a value that the state lacks is an error, and nothing is applied; with --track-rows the whole
    row must be in the state. If the command is killed, the state is as before the revision or as after it.

    --stream is for a state that was built with --run-on spark. It applies the new files in FOLDER in batches, a
    revision each, and ends. CSV files have a header with the table's columns in their order, then _change. An update
    is two rows. A batch that can't be applied is an error, and is tried again the next time.
    """
    load_options, changes = settings.made(given, LoadOptions, _Changes)
    files = changes.insert is not None or changes.delete is not None or bool(changes.update)
    if not files and changes.stream is None:
        every = "--insert FILE, --delete FILE, --update OLD NEW or --stream FOLDER"
        raise click.UsageError(f"Nothing to apply: {every}.")
    if files and changes.stream is not None:
        raise click.UsageError("--stream FOLDER is applied by itself, without --insert, --delete and --update.")
    form = format_of(changes)
    return write_found(changes, form, invocation, lambda progress: _apply(folder, changes, load_options, progress.step))


def _apply(folder: str, files: _Changes, load_options: LoadOptions, step: Any) -> IndChange:
    from tuplewise.engine.ind.open_state import open_state
    from tuplewise.engine.ind.partitioned import PartitionedIndState
    from tuplewise.engine.report.ind_state import IndChange
    from tuplewise.engine.report.model import options_record

    clock = Clock()
    with open_state(folder) as opened:
        if isinstance(opened, PartitionedIndState):
            opened.connect(load_options)
        if files.stream is not None:
            step("applying")
            applied, notes = _stream(opened, files.stream, files.table)
            asked: dict[str, Any] = {"table": files.table, "stream": files.stream}
        else:
            step("reading")
            changes, notes = _read_changes(opened, files, load_options)
            clock.lap("read")
            step("applying")
            applied = opened.apply(changes)
            update = files.update or None
            asked = {"table": files.table, "insert": files.insert, "delete": files.delete, "update": update}
        clock.lap("apply")
        return IndChange(
            "ind apply", opened, applied, options=options_record(load_options, opened.manifest.options, **asked),
            notes=all_spelled(notes, command_line_option), timings_seconds=clock.with_total(),
        )  # fmt: skip


def _stream(opened: AnyState, folder: str, table: str | None) -> tuple[Applied, list[str]]:
    """Apply the new files of a folder; what they changed together, and a note."""
    from tuplewise.engine.errors import InputError, message, number_of
    from tuplewise.engine.ind.partitioned import PartitionedIndState
    from tuplewise.engine.ind.partitioned_stream import apply_stream

    if not isinstance(opened, PartitionedIndState):
        hint = "Build it with ind init --run-on spark, or apply files: --insert FILE, --delete FILE, --update OLD NEW"
        raise InputError(message("this state takes no streams", str(opened.folder), hint=hint))
    found = apply_stream(opened, folder, table=table)
    return found.together, [f"{number_of(len(found.batches), 'batch', 'batches')} of new files applied"]


def _read_changes(
    opened: AnyState, files: _Changes, load_options: LoadOptions
) -> tuple[list[Change], list[str]]:
    from tuplewise.engine.ind.state import Change, update_of

    leave_out = load_options.bad_rows == "report"
    notes: list[str] = []

    def read(path: str) -> Any:
        found = opened.read_rows(path, files.table, load_options, leave_out=leave_out)
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
@settings.options(IndListing)
@settings.output_options("text", "json", "csv", "sql", "html")
def ind_show(invocation: Invocation, /, folder: str, **given: Any) -> int:
    """The inclusion dependencies of a STATE as of its last revision, even while another process writes it."""
    (listing,) = settings.made(given, IndListing)
    form = format_of(listing, page=True)
    start = time.monotonic()

    def find(progress: Progress) -> IndStateResult:
        from tuplewise.engine.ind.open_state import open_state
        from tuplewise.engine.report.ind_state import IndStateResult

        with open_state(folder, write=False) as opened:
            check_sql_tables(listing.sql_table, [table.name for table in opened.manifest.tables])
            return IndStateResult(opened, options=listing.chosen, total_seconds=time.monotonic() - start)

    return write_found(listing, form, invocation, find)
