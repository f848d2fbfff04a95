"""The commands that keep denial constraints current: dc init, insert, update, delete and show."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import settings
from tuplewise.engine.cli.dc_commands import dc
from tuplewise.engine.cli.kernels import announce, get_ready
from tuplewise.engine.cli.listing import (
    RankedListing,
    Written,
    check_sql_table,
    format_of,
    only_text_and_json,
    write_found,
)
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.parameters import WholeNumbers
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import all_spelled, command_line_option
from tuplewise.engine.options import (
    OF_A_STATE,
    DcDiscoverOptions,
    DcStateOptions,
    LimitOptions,
    LoadOptions,
    option,
)
from tuplewise.engine.run import Clock

if TYPE_CHECKING:
    from tuplewise.engine.dc.incremental.applied import AppliedRevision
    from tuplewise.engine.dc.incremental.rows import RowBatch
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.report.dc_state import DcChange, DcStateResult

    Batches = tuple[RowBatch | None, Callable[[], AppliedRevision]]

__all__ = ["dc"]
_BUILT = settings.READING | OF_A_STATE - {"memory_limit", "seed"}
_BATCH = {"device", *settings.OF_THE_ROWS}


@dataclass(frozen=True, kw_only=True)
class _ShowListing(RankedListing):
    """Which revision `dc show` is about, and what it lists."""

    revision: int | None = option(
        None, "The rules of revision N.", least=0, metavar="N", default_is="the last one"
    )
    since: int | None = option(
        None, "The rules gained and lost since revision N, and the pair of rows that broke each lost one.",
        least=0, metavar="N",
    )


@dc.command("init")
@click.argument("folder", metavar="STATE")
@click.argument("table", metavar="TABLE")
@settings.options(DcStateOptions, DcDiscoverOptions, LoadOptions, only=_BUILT)
@settings.output_options("text", "json")
def dc_init(invocation: Invocation, /, folder: str, table: str, **given: Any) -> int:
    """Build a STATE of TABLE, to keep its rules current.

    It keeps the minimal denial constraints as rows come (dc insert), change (dc update) and go (dc delete). STATE is a
    new or an empty folder; TABLE is named as for dc discover. Columns, their types, nulls, the predicate space and all
    options are fixed from now on; dc show notes where today's rows would lead to other choices. The state is written
    whole or not at all.

    Rows are named by --key, or by ids: the rows of TABLE get 0, 1, 2, ... in their order, later rows the next numbers.
    """
    reading, discover, written = settings.made(given, LoadOptions, DcDiscoverOptions, Written)
    (options,) = settings.made({**given, "discover": discover}, DcStateOptions)
    form = format_of(written)
    reading = settings.with_key(reading, options.key)
    return write_found(
        written, form, invocation, lambda shown: _build(folder, table, options, reading, shown, invocation)
    )


def _build(
    folder: str,
    table: str,
    options: DcStateOptions,
    load_options: LoadOptions,
    progress: Progress,
    invocation: Invocation,
) -> DcChange:
    from tuplewise.engine.dc.incremental import initial
    from tuplewise.engine.dc.incremental.applied import AppliedRevision
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.report.dc_state import DcChange, state_options
    from tuplewise.engine.report.version import version
    from tuplewise.gpu_kernels.device import pick_device

    initial.check_folder(folder)
    device = options.discover.device
    run = CommandRun("dc init", progress, invocation)
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
@settings.options(LimitOptions, LoadOptions, only=_BATCH)
@settings.output_options("text", "json")
def dc_insert(invocation: Invocation, /, folder: str, table: str, **given: Any) -> int:
    """Insert the rows of TABLE into a STATE.

    All of them are one revision, or none is inserted. TABLE has the columns of the state's, matched by name. A value
    that doesn't fit its column's type is an error, and nothing is applied; --bad-rows report leaves such rows out. The
    result lists the ids of the new rows, the rules that no longer hold, each with a pair of rows that breaks it, and
    the rules that replace them. If the command is killed, the state is as before the revision or as after it.
    """
    def insert(opened: DcState, how: LoadOptions) -> Batches:
        batch = opened.read(table, how, leave_out=how.bad_rows == "report")
        return batch, lambda: opened.insert(batch)

    return _change("dc insert", folder, insert, given, invocation, table=table)


@dc.command("update")
@click.argument("folder", metavar="STATE")
@click.argument("table", metavar="TABLE")
@settings.options(LimitOptions, LoadOptions, only=_BATCH)
@settings.output_options("text", "json")
def dc_update(invocation: Invocation, /, folder: str, table: str, **given: Any) -> int:
    """Change rows of a STATE to what TABLE says.

    All of them are one revision, or none is changed. TABLE is as for dc insert. Each of its rows names the row that it
    replaces by the key of the state, or by a further column row_id. Rows keep their ids.
    """

    def update(opened: DcState, how: LoadOptions) -> Batches:
        batch = opened.read(table, how, leave_out=how.bad_rows == "report", with_row_id=True)
        return batch, lambda: opened.update(batch)

    return _change("dc update", folder, update, given, invocation, table=table)


@dc.command("delete")
@click.argument("folder", metavar="STATE")
@click.option("--ids", type=WholeNumbers(), metavar="3,7", help="Rows by their ids.")
@click.option("--keys", type=click.Path(), metavar="TABLE", help="Rows by their keys: a table with the key's columns.")
@settings.options(LimitOptions, LoadOptions, only=_BATCH)
@settings.output_options("text", "json")
def dc_delete(
    invocation: Invocation, /, folder: str, ids: tuple[int, ...] | None, keys: str | None, **given: Any
) -> int:
    """Delete rows of a STATE.

    All of them are one revision, or none is deleted: a missing row is an error. Rows are named by their ids or, in a
    state built with --key, by their keys.
    """
    if (ids is None) == (keys is None):
        raise click.UsageError("Name the rows to delete by --ids 3,7 or by --keys TABLE, not by both.")

    def delete(opened: DcState, how: LoadOptions) -> Batches:
        import numpy as np

        rows = np.array(ids, dtype=np.int64) if keys is None else opened.row_ids_of(keys, how)
        return None, lambda: opened.delete(rows)

    return _change("dc delete", folder, delete, given, invocation, ids=ids, keys=keys)


def _change(
    command: str,
    folder: str,
    read: Callable[[DcState, LoadOptions], Batches],
    given: dict[str, Any],
    invocation: Invocation,
    **asked: Any,
) -> int:
    """One revision: open the state, read rows, apply them, write the change."""
    written, load_options, limits = settings.made(given, Written, LoadOptions, LimitOptions)
    form, device = format_of(written), limits.device

    def change(progress: Progress) -> DcChange:
        get_ready("dc insert", progress)
        from tuplewise.engine.dc.incremental.state import DcState
        from tuplewise.engine.report.dc_state import DcChange, state_options
        from tuplewise.gpu_kernels.device import pick_device

        clock = Clock()
        progress.step("opening the state")
        with DcState(folder, device=device) as opened:
            clock.lap("open")
            progress.step("reading")
            batch, apply = read(opened, load_options)
            clock.lap("read")
            progress.step("applying")
            applied = apply()
            clock.lap("apply")
            notes = dict.fromkeys((*(() if batch is None else batch.notes), *applied.notes))
            return DcChange(
                command, opened, applied,
                options=state_options(opened.options, load_options, **asked, device=device),
                notes=all_spelled(notes, command_line_option),
                timings_seconds=clock.with_total(), device=pick_device(device),
            )  # fmt: skip

    return write_found(written, form, invocation, change)


@dc.command("show")
@click.argument("folder", metavar="STATE")
@settings.options(_ShowListing)
@settings.output_options("text", "json", "csv", "sql", "html")
def dc_show(invocation: Invocation, /, folder: str, **given: Any) -> int:
    """The rules of a STATE, or what it gained and lost.

    Lists the minimal denial constraints as of its last revision, even while another process writes it. --revision N
    lists those of revision N, without the figures that need the rows of that time. --since N lists the rules gained and
    lost since revision N, with the pair of rows that broke each lost one.
    """
    (listing,) = settings.made(given, _ShowListing)
    form = format_of(listing, page=True)
    check_sql_table(listing.sql_table)
    if listing.since is None:
        return write_found(listing, form, invocation, lambda progress: _shown(folder, listing, progress))
    if listing.revision is not None:
        raise click.UsageError("Give --revision N or --since N, not both.")
    only_text_and_json("--since", form)
    if listing.rank_by is not None or listing.limit is not None:
        raise click.UsageError("--since lists all rules that were gained and lost, without --rank-by and --limit.")
    since, written = listing.since, Written(form=listing.form, output=listing.output)
    return write_found(written, form, invocation, lambda progress: _since(folder, since, progress))


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
        shown = {"revision": listing.revision, **listing.chosen}
        return DcStateResult(opened, revision=listing.revision, options=shown, started=start)
