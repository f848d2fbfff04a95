"""The commands that keep denial constraints current: dc init, insert, update, delete and show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import dc_settings, output, settings
from tuplewise.engine.cli.dc_commands import dc
from tuplewise.engine.cli.kernels import announce, get_ready
from tuplewise.engine.cli.listing import (
    RankedListing,
    Written,
    check_sql_table,
    format_of,
    listing_of,
    working,
    write_found,
)
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.parameters import WholeNumbers
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.errors import all_spelled, command_line_option
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions, LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.dc.incremental.applied import AppliedRevision
    from tuplewise.engine.dc.incremental.rows import RowBatch
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.report.dc_state import DcChange, DcStateResult

    Batches = tuple[RowBatch | None, Callable[[], AppliedRevision]]

__all__ = ["dc"]


@dataclass(frozen=True)
class _ShowListing(RankedListing):
    """Which revision `dc show` is about, and what it lists."""

    revision: int | None = None
    since: int | None = None


@dc.command("init")
@click.argument("folder", metavar="STATE")
@click.argument("table", metavar="TABLE")
@dc_settings.state_options
@settings.input_options
@settings.output_options("text", "json")
@click.pass_obj
def dc_init(state: State, /, folder: str, table: str, **given: Any) -> int:
    """Build a STATE of TABLE, to keep its rules current.

    It keeps the minimal denial constraints as rows come (dc insert), change (dc update) and go (dc delete). STATE is a
    new or an empty folder; TABLE is named as for dc discover. Columns, their types, nulls, the predicate space and all
    options are fixed from now on; dc show says where the rows of the day would give others. The state is there when it
    is whole, or not at all.

    Rows are named by --key, or by ids: those of TABLE have 0, 1, 2, ... in its order, and later ones go on from there.
    """
    written = listing_of(Written, given)
    load_options, options = _state_options(given)
    form = format_of(written)
    with working(written, form, state) as progress:
        result = _build(folder, table, options, load_options, progress, state)
    return _write(result, written, form, state)


def _state_options(given: dict[str, Any]) -> tuple[LoadOptions, DcStateOptions]:
    """How the table is read, and how its state is kept. Key columns are read where columns are chosen."""
    plain = DcDiscoverOptions()
    every = {name: getattr(plain, name) for name in DcDiscoverOptions.__dataclass_fields__}
    load_options, discover = settings.load_options_and(DcDiscoverOptions, {**every, **given})
    own = {name: given[name] for name in DcStateOptions.__dataclass_fields__ if name != "discover"}
    options = DcStateOptions(discover=discover, **own)
    if load_options.columns is not None:
        key = (name for name in options.key if name not in load_options.columns)
        load_options = replace(load_options, columns=(*load_options.columns, *key))
    return load_options, options


def _build(
    folder: str, table: str, options: DcStateOptions, load_options: LoadOptions, progress: Progress, state: State
) -> DcChange:
    from tuplewise.engine.dc.incremental import initial
    from tuplewise.engine.dc.incremental.applied import AppliedRevision
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.report.dc_state import DcChange, state_options
    from tuplewise.engine.report.version import version
    from tuplewise.gpu_kernels.device import pick_device

    initial.check_folder(folder)
    device = options.discover.device
    run = CommandRun("dc init", progress, state)
    relation = run.load(table, load_options, device)
    start = time.monotonic()
    how: dict[str, Any] = {"written_by": version(), "null_tokens": load_options.null_tokens}
    initial.build(folder, relation, options, **how, progress=progress.step)
    built = time.monotonic() - start
    progress.step("writing")
    with DcState(folder, write=False, device="cpu") as opened:
        return DcChange(
            "dc init", opened, AppliedRevision(opened.revision, opened.rows, tuple(opened.constraints())),
            options=state_options(opened.options, load_options),
            notes=all_spelled((*initial.notes_on_first_rows(relation), *run.notes), run.face),
            timings_seconds={**relation.timings_seconds, "build": built, "total": run.seconds},
            device=pick_device(device),
        )  # fmt: skip


@dc.command("insert")
@click.argument("folder", metavar="STATE")
@click.argument("table", metavar="TABLE")
@settings.device_option
@settings.reading_options
@settings.output_options("text", "json")
@click.pass_obj
def dc_insert(state: State, /, folder: str, table: str, **given: Any) -> int:
    """Insert the rows of TABLE into a STATE.

    All of them are one revision, or none is inserted. TABLE has the columns of the state's, matched by name. A value
    that doesn't fit its column's type is an error, and nothing is applied; --bad-rows report leaves such rows out. Says
    which ids the rows were given, which rules hold no more, with a pair of rows that breaks each, and which are listed
    instead. Killed at any moment, the state is before the revision or after it.
    """
    def insert(opened: DcState, how: LoadOptions) -> Batches:
        batch = opened.read(table, how, leave_out=how.bad_rows == "report")
        return batch, lambda: opened.insert(batch)

    return _change("dc insert", folder, insert, given, state, table=table)


@dc.command("update")
@click.argument("folder", metavar="STATE")
@click.argument("table", metavar="TABLE")
@settings.device_option
@settings.reading_options
@settings.output_options("text", "json")
@click.pass_obj
def dc_update(state: State, /, folder: str, table: str, **given: Any) -> int:
    """Change rows of a STATE to what TABLE says.

    All of them are one revision, or none is changed. TABLE is as for dc insert. Which row each of its rows stands for
    is told by the key that the state was built with, or by a column row_id beside the others. Rows keep their ids.
    """

    def update(opened: DcState, how: LoadOptions) -> Batches:
        batch = opened.read(table, how, leave_out=how.bad_rows == "report", with_row_id=True)
        return batch, lambda: opened.update(batch)

    return _change("dc update", folder, update, given, state, table=table)


@dc.command("delete")
@click.argument("folder", metavar="STATE")
@click.option("--ids", type=WholeNumbers(), metavar="3,7", help="Rows by their ids.")
@click.option("--keys", type=click.Path(), metavar="TABLE", help="Rows by their keys: a table with the key's columns.")
@settings.device_option
@settings.reading_options
@settings.output_options("text", "json")
@click.pass_obj
def dc_delete(state: State, /, folder: str, ids: tuple[int, ...] | None, keys: str | None, **given: Any) -> int:
    """Delete rows of a STATE.

    All of them are one revision, or none is deleted: a row that isn't there is an error. Rows are named by the ids that
    the state gave them, or, in a state that was built with --key, by that.
    """
    if (ids is None) == (keys is None):
        raise click.UsageError("Rows to delete are named by --ids 3,7 or by --keys TABLE: one of both.")

    def delete(opened: DcState, how: LoadOptions) -> Batches:
        import numpy as np

        rows = np.array(ids, dtype=np.int64) if keys is None else opened.row_ids_of(keys, how)
        return None, lambda: opened.delete(rows)

    return _change("dc delete", folder, delete, given, state, ids=ids, keys=keys)


def _change(
    command: str,
    folder: str,
    read: Callable[[DcState, LoadOptions], Batches],
    given: dict[str, Any],
    state: State,
    **asked: Any,
) -> int:
    """One revision: open the state, read rows, apply them, write what they brought."""
    written, load_options = listing_of(Written, given), settings.reading_of(given)
    form = format_of(written)
    with working(written, form, state) as progress:
        get_ready("dc insert", progress)
        from tuplewise.engine.dc.incremental.state import DcState
        from tuplewise.engine.report.dc_state import DcChange, state_options
        from tuplewise.gpu_kernels.device import pick_device

        start = time.monotonic()
        progress.step("opening the state")
        with DcState(folder, device=given["device"]) as opened:
            progress.step("reading")
            opening = time.monotonic()
            batch, apply = read(opened, load_options)
            reading = time.monotonic()
            progress.step("applying")
            applied = apply()
            end = time.monotonic()
            notes = dict.fromkeys((*(() if batch is None else batch.notes), *applied.notes))
            result = DcChange(
                command, opened, applied,
                options=state_options(opened.options, load_options, **asked, device=given["device"]),
                notes=all_spelled(notes, command_line_option),
                timings_seconds={
                    "open": opening - start, "read": reading - opening, "apply": end - reading, "total": end - start,
                },
                device=pick_device(given["device"]),
            )  # fmt: skip
    return _write(result, written, form, state)


@dc.command("show")
@click.argument("folder", metavar="STATE")
@dc_settings.show_options
@settings.output_options("text", "json", "csv", "sql", "html")
@click.pass_obj
def dc_show(state: State, /, folder: str, **given: Any) -> int:
    """The rules of a STATE, or what it gained and lost.

    Lists the minimal denial constraints as of its last revision, also while another process writes it. With --revision
    N those of revision N, without the figures that need the rows of then; with --since N those that were gained and
    lost since, and the pair of rows that broke each lost one.
    """
    listing = listing_of(_ShowListing, given)
    form = format_of(listing, page=True)
    check_sql_table(listing.sql_table)
    if listing.since is None:
        return write_found(listing, form, state, lambda progress: _shown(folder, listing, progress))
    _check_since(listing, form)
    with working(listing, form, state) as progress:
        result = _since(folder, listing.since, progress)
    return _write(result, listing, form, state)


def _check_since(listing: _ShowListing, form: str) -> None:
    """Raise UsageError for what a list of rules has, and what was gained and lost doesn't."""
    if listing.revision is not None:
        raise click.UsageError("--revision N and --since N: one of both.")
    if form not in ("text", "json"):
        raise click.UsageError(f"--since has the formats text and json, not {form}.")
    if listing.rank_by is not None or listing.limit is not None:
        raise click.UsageError("--since lists all rules that were gained and lost, without --rank-by and --limit.")


def _since(folder: str, since: int, progress: Progress) -> DcChange:
    from tuplewise.engine.dc.incremental.applied import AppliedRevision
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.report.dc_state import DcChange, state_options

    start = time.monotonic()
    progress.step("opening the state")
    with DcState(folder, write=False, device="cpu") as opened:
        changes = opened.changes(since)
        applied = AppliedRevision(opened.revision, opened.rows, changes.gained, changes.lost)
        options, notes = state_options(opened.options, since=since), opened.differs_today()
        seconds = {"total": time.monotonic() - start}
        return DcChange("dc show", opened, applied, options=options, notes=notes, timings_seconds=seconds, since=since)


def _shown(folder: str, listing: _ShowListing, progress: Progress) -> DcStateResult:
    announce(progress)
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.report.dc_state import DcStateResult

    start = time.monotonic()
    progress.step("opening the state")
    with DcState(folder, write=False, device="cpu") as opened:
        progress.step("reading")
        shown = {"revision": listing.revision, "rank_by": listing.rank_by, "limit": listing.limit}
        return DcStateResult(opened, revision=listing.revision, options=shown, started=start)


def _write(result: DcChange, written: Written, form: str, state: State) -> int:
    """Write what a revision brought."""
    pieces: Iterable[str] = result.pieces()
    if form == "text":
        pieces = [result.to_text(verbose=state.verbose > 0, **output.terminal(written.output))]
    output.write(pieces, written.output)
    return 0
