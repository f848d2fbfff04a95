"""A state too large for one machine: counts of each value in each attribute, in files by bucket, changed by Spark.

The folder holds `state.json` (the fixed part, as in every state), `partitions.json` (the revision, the clusters with
their counts, the names of the current files, the progress of streams) and the files, under `values`. All machines of
the cluster must see the folder under the same path.

A batch writes new files next to the current ones, for the buckets that it touches, and then replaces `partitions.json`.
So a process killed at any moment leaves the state before the batch or after it. Files that the current revision no
longer names are removed when the state is opened for the next batch, and when it is closed.

Source: Shaabani and Meinel, "Incremental Discovery of Inclusion Dependencies", SSDBM 2017: frequencies of each value
in each attribute, and clusters. Departure: a batch is folded to one change for each value and attribute, and joined
with the frequencies as a whole, not value by value.
"""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import InputError, message, shortened
from tuplewise.engine.ind.changes import ChangedCells, batch_cells, frame_cells, rows_in_spark, shown_value
from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import InclusionDependency
from tuplewise.engine.ind.discover import unary_inds
from tuplewise.engine.ind.found import FoundInds
from tuplewise.engine.ind.manifest import Manifest
from tuplewise.engine.ind.partitions import Partitions, StreamPlace
from tuplewise.engine.ind.state import NOTHING, Applied, Change, ReadRows, absent_nulls, found_in_state
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.spark.session import open_session
from tuplewise.engine.spark.value_counts import (
    Moved,
    below_zero,
    bucket_folder,
    changed_counts,
    fold_changes,
    moved_values,
    read_counts,
    touched_buckets,
    write_counts,
)
from tuplewise.engine.state_folders import INDS, ClosedOnExit, WriterLock, real_folder, sync_path
from tuplewise.engine.table.spark_load import in_session, spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VALUES = "values"
STREAMS = "streams"


class PartitionedIndState(ClosedOnExit):
    """An open state in partitions.

    Parameters
    ----------
    folder : made by `partitioned_build.build`
    write : whether batches will be applied; others may then read, but not write
    spark : session to work in; None: the active one, or one started with the first batch

    Attributes
    ----------
    manifest : the fixed part of the state

    Raises
    ------
    InputError
        If the folder is no state of this kind, is damaged, of another version, or in use by another writer.

    Notes
    -----
    Opening and reading need no Spark. A batch costs two shuffles of its cells, and one of the frequencies in the
    buckets that it touches; those are read and written whole.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, write: bool = True, spark: SparkSession | None = None
    ) -> None:
        self.folder = real_folder(folder)
        self.manifest = Manifest.read(self.folder)
        self._lock = WriterLock(self.folder, INDS) if write else None
        self._working = threading.RLock()  # streams deliver their batches in threads of their own
        self._given = spark
        self._session: SparkSession | None = None
        try:
            self._now = self._read()
            self._clear()
        except BaseException:
            self.close()
            raise

    def _read(self) -> Partitions:
        return Partitions.read(self.folder, len(self.manifest.tables), len(self.manifest.attributes))

    def close(self) -> None:
        """Release the folder, after any batch that another thread is applying. May be called again."""
        with self._working:
            if self._lock is not None:
                if hasattr(self, "_now"):
                    self._clear()
                self._lock.release()
                self._lock = None

    @property
    def revision(self) -> int:
        """Number of batches applied since the build."""
        return self._now.revision

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table."""
        return {table.name: rows for table, rows in zip(self.manifest.tables, self._now.rows, strict=True)}

    @property
    def streams(self) -> Mapping[str, StreamPlace]:
        """Progress of each stream, by name."""
        return self._now.streams

    @property
    def dialect(self) -> Mapping[str, str | None]:
        """CSV dialect of change files."""
        return self._now.dialect

    @property
    def spark(self) -> SparkSession:
        """The state's own session, with the catalog of the given one."""
        if self._session is None:
            self.connect(LoadOptions())
        assert self._session is not None
        return self._session

    def connect(self, options: LoadOptions) -> None:
        """Open the session, with the master, profile and settings of `options` if one must be started."""
        opened = open_session(self._given, master=options.master, profile=options.profile, conf=options.conf)
        self._session = opened.spark
        self._session.conf.set("spark.sql.caseSensitive", "true")  # distinguish columns as loading does

    def clustering(self) -> AttributeClustering:
        """The attribute clustering."""
        manifest, now = self.manifest, self._now
        return AttributeClustering.of(manifest.attributes, manifest.families, now.masks, now.values)

    @property
    def used_bytes(self) -> int:
        """Bytes of the current files, without those that a writer has replaced meanwhile."""
        place, size = self.folder / VALUES, 0
        for bucket, name in self._now.folders.items():
            for file in bucket_folder(place / name, bucket).glob("*.parquet"):
                with suppress(FileNotFoundError):
                    size += file.stat().st_size
        return size

    def found(self) -> FoundInds:
        """The dependencies that hold, equal to those of a discovery on the same rows."""
        clustering = self.clustering()
        holds, distinct = clustering.included(), clustering.distinct
        return found_in_state(self.manifest, holds, distinct, self._now.rows, self._now.filled)

    def read_rows(
        self, source: Any, table: str | None = None, load_options: LoadOptions | None = None, *, leave_out: bool = False
    ) -> ReadRows:
        """Read rows for a table of the state, with columns matched by name. Spark holds them until they are applied.

        Parameters
        ----------
        source : a path, or a pandas, Polars, Arrow or Spark frame
        table : None: the only one
        load_options : None: files have the format of the tables
        leave_out : must be False

        Raises
        ------
        InputError
            If columns are missing or unknown, or a value doesn't fit.
        """
        if leave_out:
            hint = "Leave such rows out beforehand"
            raise InputError(message("bad_rows of a state in Spark", "report", "'fail'", hint))
        how: dict[str, Any] = {key: value for key, value in self._now.dialect.items() if value is not None}
        options = load_options if load_options is not None else LoadOptions(**how)
        return rows_in_spark(self.spark, self.manifest, source, self.manifest.table(table), options)

    def apply(self, changes: Sequence[Change]) -> Applied:
        """Delete and insert rows, as one revision.

        All changes are one batch: inserted and deleted rows are first added up, and only the resulting count of each
        value must not be negative.

        Raises
        ------
        InputError
            If the state is closed or read-only, or a value is deleted more often than its column has it. Nothing is
            then changed.
        """
        rows: list[Any] = [change.rows for change in changes]
        with self._working, ExitStack() as held:
            self._check_open()
            for one in rows:
                held.push(one.held)
            batches = [
                one.batch(change.attributes.table, change.kind) for one, change in zip(rows, changes, strict=True)
            ]
            return self._fold(batches, self._now.streams)

    def foreach_batch(
        self, frame: DataFrame, batch_id: int, *, table: str | None = None, stream: str | None = None,
        query: str | None = None,
    ) -> Applied | None:  # fmt: skip
        """Apply a batch of changed rows once: for `foreachBatch` of Structured Streaming.

        Parameters
        ----------
        frame : the columns of the table, and `_change`: "insert" or "delete" (an update is a row of each). Text is
            parsed as the type of its column in the state.
        batch_id : ascending. A number not above the last one of its stream means that the batch was applied before:
            nothing is done.
        table : None: the only one
        stream : name that separates the numbers of several queries; None: the table's name
        query : identity of the query that numbers the batches

        Returns
        -------
        None if the batch was applied before

        Raises
        ------
        InputError
            As `apply`; or if the stream was applied by another query, whose numbers mean other batches.
        """
        attributes = self.manifest.table(table)
        name = stream if stream is not None else self.manifest.tables[attributes.table].name
        with self._working, ExitStack() as held:
            self._check_open()
            place = self._next_place(name, batch_id, query)
            if place is None:
                return None
            if self._given is None:
                self._given = frame.sparkSession  # this thread may have no active session
            batch = frame_cells(self.manifest, in_session(frame, self.spark), attributes, held)
            return self._fold([batch], {**self._now.streams, name: place})

    def _next_place(self, name: str, batch_id: int, query: str | None) -> StreamPlace | None:
        """Progress of a stream after a batch; None if the batch was applied before."""
        last = self._now.streams.get(name)
        if last is not None and query is not None and last.query not in (None, query):
            hint = "Go on with its checkpoint, or name the new stream otherwise"
            what = f"stream {name!r} was applied up to batch {last.batch} by another query, which numbers other rows"
            raise InputError(message(what, query, last.query, hint))
        if last is not None and batch_id <= last.batch:
            return None
        return StreamPlace(batch_id, query if query is not None or last is None else last.query)

    def _check_open(self) -> None:
        if self._lock is None:
            hint = "Open it again, to write"
            raise InputError(message("the state is closed, or was opened to be read only", str(self.folder), hint=hint))

    def _fold(self, batches: Sequence[ChangedCells], streams: Mapping[str, StreamPlace]) -> Applied:
        """Apply batches as one revision."""
        self._clear()
        now = self._now
        rows = list(now.rows)
        for batch in batches:
            rows[batch.table] += batch.rows
        for table, left in zip(self.manifest.tables, rows, strict=True):
            if left < 0:
                gone = now.rows[self.manifest.table(table.name).table] - left
                had = self.rows[table.name]
                raise InputError(message(f"table {table.name!r} has {had} rows; to delete", gone, hint=NOTHING))
        folder = f"{now.revision + 1:08}-{uuid.uuid4().hex[:8]}"
        try:
            touched, moved = self._write(batch_cells(batches), folder) if batches else self._no_change()
            clustering = self.clustering()
            filled = tuple(n + int(by) for n, by in zip(now.filled, moved.filled, strict=True))
            for table, left in zip(self.manifest.tables, rows, strict=True):
                absent = absent_nulls(self.manifest, self.manifest.table(table.name), filled, left)
                if absent is not None:
                    raise absent
            after = _moved(clustering, moved)
            then = replace(
                now, revision=now.revision + 1, rows=tuple(rows), streams=streams, masks=after.masks,
                values=after.values, folders={**now.folders, **dict.fromkeys(touched, folder)},
                filled=filled,
            )  # fmt: skip
            then.write(self.folder)
        except BaseException:  # Ctrl-C may come once the new revision is in place: its files stay
            self._now = self._read()
            self._clear()
            raise
        self._now = then
        gained, lost = difference(clustering, after)
        return Applied(then.revision, gained, lost, self.rows)

    def _write(self, cells: DataFrame, folder: str) -> tuple[list[int], Moved]:
        """Write the files of the buckets touched by changes; returns the buckets, and which values moved."""
        now, place = self._now, self.folder / VALUES
        attributes = len(self.manifest.attributes)
        changes = fold_changes(cells).persist()
        try:
            with spark_failures("changes"):
                touched = touched_buckets(changes, now.buckets)
                if not touched:
                    return self._no_change()
                old = [bucket_folder(place / now.folders[b], b) for b in touched if b in now.folders]
                held = read_counts(self.spark, old) if old else None
                counts = changed_counts(held, changes, now.buckets, len(touched))
                if write_counts(counts, place / folder) != touched:
                    raise not_shared(self.folder)
                written = read_counts(self.spark, [bucket_folder(place / folder, b) for b in touched])
                below = below_zero(written)
                if below is not None:
                    raise self._below_zero(below)
                moved = moved_values(written, attributes)
        finally:
            changes.unpersist()
        if self.manifest.options.sync:
            hand_to_disk(place / folder)
        return touched, moved

    def _no_change(self) -> tuple[list[int], Moved]:
        none = self._now.masks[:0]
        return [], Moved(none, none, self._now.values[:0], np.zeros(len(self._now.filled), dtype=np.int64))

    def _below_zero(self, row: Mapping[str, Any]) -> InputError:
        attribute = self.manifest.attributes[row["attribute"]]
        columns = [column for table in self.manifest.tables for column in table.columns]
        held, gone = row["before"], row["before"] - row["frequency"]
        fault = f"table {attribute.table!r}, column {attribute.column!r}: a value goes {gone} times more than it comes,"
        fault += f" and the column has {'none' if held == 0 else f'only {held}'} of it"
        shown = shown_value(row, columns[row["attribute"]].type)
        return InputError(message(fault, shortened(shown), hint=NOTHING))

    def _clear(self) -> None:
        """Remove files that the current revision doesn't name: those of earlier revisions and of killed batches."""
        place = self.folder / VALUES
        if self._lock is None or not place.is_dir():
            return
        current: dict[str, set[str]] = {}
        for bucket, name in self._now.folders.items():
            current.setdefault(name, set()).add(bucket_folder(place, bucket).name)
        for folder in place.iterdir():
            if folder.name not in current:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            for bucket_ in folder.glob("bucket=*"):
                if bucket_.name not in current[folder.name]:
                    shutil.rmtree(bucket_, ignore_errors=True)


def not_shared(folder: Path) -> InputError:
    """The error for a folder that some machines don't see."""
    hint = "Put the state in a folder that all machines of the cluster share, under one path"
    return InputError(message("what tasks wrote isn't all seen here", str(folder), hint=hint))


def hand_to_disk(folder: Path) -> None:
    """Sync the files of a folder, and their names, to disk."""
    for path in (*folder.rglob("*"), folder, folder.parent):
        sync_path(path)


def _moved(before: AttributeClustering, moved: Moved) -> AttributeClustering:
    """The clustering after values have moved."""
    masks = np.concatenate([before.masks, moved.before, moved.after])
    values = np.concatenate([before.values, -moved.values, moved.values])
    return AttributeClustering.of(before.attributes, before.families, masks, values)


def difference(
    before: AttributeClustering, after: AttributeClustering
) -> tuple[tuple[InclusionDependency, ...], tuple[InclusionDependency, ...]]:
    """The dependencies gained and lost, in result order."""
    held = [one.ind for one in unary_inds(before)[0]]
    hold = [one.ind for one in unary_inds(after)[0]]
    before_it, behind_it = set(held), set(hold)
    return tuple(i for i in hold if i not in before_it), tuple(i for i in held if i not in behind_it)
