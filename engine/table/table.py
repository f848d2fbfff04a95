"""The function that opens tables.

A `Relation` holds its codes in this process; the rows of a `TableInSpark` stay in Spark. Each task has one function
that takes either.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.in_spark import Table
from tuplewise.engine.table.read_table import Needed, ReadTable, encoded, of_frame, of_raw, typed
from tuplewise.engine.table.reader import Reader, choose_reader, open_here, unreadable
from tuplewise.engine.table.relation import CODE_BYTES, Relation
from tuplewise.engine.table.source import Source, find_source, why_not_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]


def load(
    source: Any,
    options: LoadOptions | None = None,
    *,
    name: str | None = None,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
    device: str = "auto",
) -> Relation:
    """Load a table of any size as a Relation. Parameters and errors are those of `open_table`."""
    table = open_table(source, options, name=name, spark=spark, progress=progress, device=device)
    assert isinstance(table, Relation), "tables of any size come here"
    return table


def open_table(
    source: Any,
    options: LoadOptions | None = None,
    *,
    name: str | None = None,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
    most_bytes: int | None = None,
    device: str = "auto",
    needed: Needed = None,
) -> Table:
    """Open a table: in this process if its codes take at most `most_bytes`, else in Spark.

    Parameters
    ----------
    source : str, path or frame
        A CSV, TSV, Parquet, ORC or JSON-lines path (file, folder or glob; local, or a URL that Spark reads),
        `-` (standard input), `spark:db.table`, or a pandas, Polars, Arrow or Spark frame. Local files that fit in
        memory and frames other than Spark's need no JVM.
    options : LoadOptions, optional
    name : str, optional
        The name of the table in results. The default is the file's stem, the table's name, or "table".
    spark : SparkSession, optional
        The session to read with. The default is the active one, or a new one that is kept for later calls.
    progress : callable, optional
        Called with the name of each step at its start.
    most_bytes : int, optional
        Limit for the codes in this process; None: no limit.
    needed : set of names, optional
        The columns that the task needs. Others are left out with a note if they can't be compared.
    device : the device that ranks very large sets of text, if cuDF is installed; see `gpu_kernels.texts.rank_texts`

    Returns
    -------
    Relation or TableInSpark
        Rows in the order of the source. A Relation is returned unchanged.

    Raises
    ------
    InputError
        If the source can't be read with these options.
    """
    if isinstance(source, Relation):
        return source
    options = options or LoadOptions()
    report = progress or _ignore
    kind = kind_of(source)
    if kind in ("pandas", "polars", "arrow"):
        return _load_frame(source, kind, options, name or "table", report, device, needed)
    if kind is None and not isinstance(source, (str, os.PathLike)):
        raise unreadable(source)
    target = source if kind is not None else (str(source) if isinstance(source, str) else os.fspath(Path(source)))
    reader = None
    if kind is None:
        found = find_source(target)
        reader = choose_reader(found, options, session=spark is not None)
        if reader.name == "arrow":
            relation = _load_here(found, options, name or found.name, report, most_bytes, device, reader, needed)
            if relation is not None:
                return relation
            reader = Reader("spark", "the codes of the table do not fit here, or work in Spark was asked for")
    from tuplewise.engine.table.spark_load import bring_here, open_with_spark, takes_more

    opened = open_with_spark(target, kind, options, name, spark, report, reader=reader, needed=needed)
    if most_bytes is not None and takes_more(opened, most_bytes):
        return opened
    return bring_here(opened, report, device=device)


def _ignore(step: str) -> None:
    """A callback for progress that does nothing."""


def _load_here(
    source: Source, options: LoadOptions, name: str, report: Progress, most_bytes: int | None, device: str,
    reader: Reader, needed: Needed,
) -> Relation | None:  # fmt: skip
    """A local table, read by Arrow. None if its codes take more than `most_bytes`, unless Arrow was requested."""
    start = time.perf_counter()
    if most_bytes is not None and most_bytes <= 0:
        if options.reader == "arrow":
            hint = "Leave the reader out, or take 'spark'"
            raise InputError(message("run_on 'spark' with reader 'arrow'", source.given, hint=hint))
        return None
    report("reading")
    raw = open_here(source, options)
    columns = len(raw.names) if options.columns is None else len(options.columns)
    too_large = most_bytes is not None and raw.rows * columns * CODE_BYTES > most_bytes
    if too_large and options.reader != "arrow" and why_not_spark(source, options) is None:
        return None
    table = typed(of_raw(raw, options, name, source.given, needed), options)
    return _timed(replace(table, reader=reader), start, report, device)


def _load_frame(
    source: Any, kind: str, options: LoadOptions, name: str, report: Progress, device: str, needed: Needed
) -> Relation:
    start = time.perf_counter()
    report("reading")
    table = typed(of_frame(source, kind, options, name, needed), options)
    return _timed(table, start, report, device)


def _timed(table: ReadTable, start: float, report: Progress, device: str) -> Relation:
    """Encode a table, with the seconds of loading, which has ended, and of encoding."""
    loaded = time.perf_counter()
    report("encoding")
    relation = encoded(table, {}, device)
    seconds = {"session": 0.0, "load": loaded - start, "encode": time.perf_counter() - loaded}
    return replace(relation, timings_seconds=seconds)
