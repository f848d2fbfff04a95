"""Change files of a folder, each applied once to a partitioned state by Structured Streaming."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.ind.changes import CHANGE
from tuplewise.engine.ind.partitioned import STREAMS, PartitionedIndState, difference
from tuplewise.engine.ind.state import Applied
from tuplewise.engine.spark.streams import ChangeStream, callbacks_closed, query_of
from tuplewise.engine.state_folders import real_folder
from tuplewise.engine.table.csv_scan import Dialect
from tuplewise.engine.table.source import find_source
from tuplewise.engine.table.spark_csv import BAD, plain_options
from tuplewise.engine.table.spark_load import spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("csv", "json", "parquet")


@dataclass(frozen=True)
class StreamApplied:
    """Changes applied from a folder: each batch, and all batches together."""

    batches: tuple[Applied, ...]
    together: Applied


def start_stream(
    state: PartitionedIndState, folder: str | os.PathLike[str], *, table: str | None = None, stream: str | None = None,
    format: str | None = None, available_now: bool = False, files_a_batch: int | None = None,
    told: Callable[[Applied], None] = lambda applied: None,
) -> ChangeStream:  # fmt: skip
    """Start the query that applies a folder of change files to a state, each file once.

    Parameters
    ----------
    folder : files of changed rows: the columns of the table, and `_change`, "insert" or "delete"; an update is a row of
        each, the old one and the new one. CSV files have a header line with the table's columns in order, then
        `_change`, and use the dialect of the tables (separator, quote, encoding). JSON files have one object a line;
        Parquet files have the columns in any order. A file must appear in the folder whole (written elsewhere, then
        renamed) and never change, and its name must not begin with `_` or a dot.
    table : None: the only one of the state
    stream : name under which the state records its progress; None: the table's name
    format : "csv", "json" or "parquet"; None: that of the existing files
    available_now : end once the existing files are applied; else wait for more, until `.query.stop()`
    files_a_batch : maximum number of files in a batch; None: all that exist
    told : called after each batch

    Returns
    -------
    ChangeStream
        `.query` is Spark's; `.wait()` raises the error that ended it. Keep the state open meanwhile.

    Raises
    ------
    InputError
        If the folder can't be read as a stream; from `.wait()`, if a batch can't be applied. No part of that batch is
        then applied, and it is tried again at the next start.

    Notes
    -----
    Spark's checkpoint, in the state's folder, records the files of batch n before the batch is applied. The state
    records that batch n is applied in the same file as the result. Whatever is killed, each batch is applied once. Rows
    of a batch are added up together, so their order does not matter.
    """
    attributes = state.manifest.table(table)
    kept = state.manifest.tables[attributes.table]
    name = stream if stream is not None else kept.name
    place = real_folder(folder)
    known = _format_of(place, format)
    checkpoint = state.folder / STREAMS / (quote(name, safe="") or "_")
    schema, options = _reading(state, place, known, attributes.names)

    def apply(frame: DataFrame, batch: int) -> None:
        query = query_of(checkpoint)
        applied = state.foreach_batch(frame, batch, table=kept.name, stream=name, query=query)
        if applied is not None:
            told(applied)

    with spark_failures(str(place)):
        return ChangeStream(
            state.spark, f"file://{_literal(place)}", known, schema, options, apply, checkpoint,
            available_now=available_now, files_a_batch=files_a_batch,
        )  # fmt: skip


def apply_stream(
    state: PartitionedIndState, folder: str | os.PathLike[str], *, table: str | None = None, stream: str | None = None,
    format: str | None = None, files_a_batch: int | None = None,
) -> StreamApplied:  # fmt: skip
    """Apply the files of a folder not applied yet, and end. See `start_stream`."""
    before = state.clustering()
    batches: list[Applied] = []
    with callbacks_closed(state.spark):
        running = start_stream(
            state, folder, table=table, stream=stream, format=format, available_now=True, files_a_batch=files_a_batch,
            told=batches.append,
        )  # fmt: skip
        try:
            running.wait()
        finally:
            with suppress(Exception):  # it may have ended with the JVM, after Ctrl-C
                running.query.stop()
    gained, lost = difference(before, state.clustering())
    return StreamApplied(tuple(batches), Applied(state.revision, gained, lost, state.rows))


def _format_of(folder: Path, asked: str | None) -> str:
    if not folder.is_dir():
        raise InputError(message("no such folder of change files", str(folder)))
    found = asked if asked is not None else find_source(str(folder)).format
    if found not in FORMATS:
        raise InputError(message("change files of this format can't be streamed", found, ", ".join(FORMATS)))
    return found


def _reading(
    state: PartitionedIndState, folder: Path, format: str, names: tuple[str, ...]
) -> tuple[Any, dict[str, str]]:
    """The schema of the files and the options of Spark's reader."""
    if format == "parquet":
        files = find_source(str(folder)).files
        if not files:
            raise InputError(message("the folder holds no change files to tell their types by", str(folder)))
        with spark_failures(str(folder)):
            return state.spark.read.parquet(f"file://{_literal(Path(files[0]))}").schema, {}
    columns = [*names, CHANGE, BAD]
    schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in columns)
    if format == "json":
        return schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
    how = state.dialect
    sep = how.get("sep") or (find_source(str(folder)).sep if any(folder.iterdir()) else ",")
    quoted = how.get("quote") or ""
    escape = how.get("escape")
    dialect = Dialect(sep, quoted, escape, how.get("encoding") or "utf-8")
    return schema, {
        **plain_options(dialect),
        "escape": escape if escape is not None else quoted,
        "header": "true",
        "enforceSchema": "false",  # refuse a file with another header
        "multiLine": "true",
    }


def _literal(path: Path) -> str:
    """A path that Spark takes character by character."""
    return "".join(f"\\{c}" if c in "[]{}*?\\" else c for c in str(path))
