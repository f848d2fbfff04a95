"""Loading through Spark: opening a source and a session, and the choice of where the table is encoded."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tuplewise.engine.errors import InputError, Wording, message, number_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.spark.session import OpenSession, open_session
from tuplewise.engine.table.csv import bad_rows_note, scan_table
from tuplewise.engine.table.encode import TypedColumn, indexed
from tuplewise.engine.table.frames import UnusableColumn, typed_column
from tuplewise.engine.table.in_spark import IN_PROCESS_BYTES, ColumnSelection, TableInSpark
from tuplewise.engine.table.read_table import Needed, ReadTable, encoded, note_unless_needed, typed
from tuplewise.engine.table.reader import Reader
from tuplewise.engine.table.relation import CODE_BYTES, Relation
from tuplewise.engine.table.schema import repair_names, selected_columns, type_overrides
from tuplewise.engine.table.source import Source, find_source, why_not_spark
from tuplewise.engine.table.spark_csv import BAD, SPLIT_BYTES, scan_remote, with_blank_rows
from tuplewise.engine.table.spark_encode import NotInSpark
from tuplewise.engine.table.spark_frame import encode_in_spark
from tuplewise.engine.table.spark_rows import split_runs
from tuplewise.engine.table.spark_source import (
    RawFrame,
    csv_table,
    frame_table,
    json_table,
    odd_column,
    readable,
    typed_table,
)

_TAKE_ARROW = Wording("Take {reader}", reader="arrow")


def load_with_spark(
    target: Any,
    kind: str | None,
    options: LoadOptions,
    name: str | None,
    spark: SparkSession | None,
    report: Callable[[str], None],
    *,
    large: bool | None = None,
    device: str = "auto",
) -> Relation:
    """Load a file, folder, URL, catalog table or Spark frame as a Relation.

    `large`: encode in Spark (True) or in this process (False); None: by size. `device`: see `load`.
    """
    opened = open_with_spark(target, kind, options, name, spark, report, large=large)
    return bring_here(opened, report, large=large, device=device)


def bring_here(
    opened: TableInSpark, report: Callable[[str], None], *, large: bool | None = None, device: str = "auto"
) -> Relation:
    """Bring an open table here as a Relation. `large`, `device`: see `load_with_spark`."""
    in_spark = opened.size_bytes > IN_PROCESS_BYTES if large is None else large
    with spark_failures(opened.name):
        relation = _encode(in_spark, opened, report, device)
    session = {"version": opened.session.version, "master": opened.session.master}
    return replace(relation, spark=session, reader=opened.reader)


def open_with_spark(
    target: Any,
    kind: str | None,
    options: LoadOptions,
    name: str | None,
    spark: SparkSession | None,
    report: Callable[[str], None],
    *,
    large: bool | None = None,
    reader: Reader | None = None,
    needed: Needed = None,
) -> TableInSpark:
    """Open a source and a session, and read only the column names."""
    begin = time.perf_counter()
    source = find_source(target) if kind is None else None
    # Faults in local files are reported before a JVM is started.
    scanned = None
    if source is not None:
        odd = why_not_spark(source, options)
        if odd is not None:
            hint = _TAKE_ARROW if source.local else "Read a local copy"
            raise InputError(message(f"Spark can't read {source.given}", odd, hint=hint))
    if source is not None and source.format == "csv" and source.local:
        report("scanning")
        scanned = scan_table(source, options)
        if any(scan.behind_quotes for scan in scanned.scans):
            what = f"Spark can't read {source.given}"
            raise InputError(message(what, "text stands behind a closing quote", hint=_TAKE_ARROW))
    scan_seconds = time.perf_counter() - begin
    report("starting Spark")
    if kind in ("spark", "connect"):
        spark = target.sparkSession
    session = open_session(spark, master=options.master, profile=options.profile, conf=options.conf)
    begin = time.perf_counter()
    report("reading")
    if source is None:
        raw = frame_table(in_session(target, session.spark), "Spark")
        table, path, size = name or "table", None, _plan_bytes(target)
    else:
        table, path, size = name or source.name, source.given, -1
        size = sum(os.path.getsize(f) for f in source.files) if source.local else 0
        raw = _open(source, scanned, session, options, split=bool(large) or size > SPLIT_BYTES)
        size = (size or _plan_bytes(raw.frame)) * (4 if source.format in ("parquet", "orc") else 1)
    names, renamed = repair_names(raw.names)
    notes = [*renamed, *(() if source is None else source.notes), *raw.notes]
    kept = selected_columns(names, options, table)
    overrides = type_overrides(names, options.types, table)
    if needed is not None:
        kept = _comparable(raw, names, kept, needed, notes)
    selection = ColumnSelection(kept, names, overrides, notes)
    timings = {"session": session.seconds, "load": time.perf_counter() - begin + scan_seconds, "encode": 0.0}
    return TableInSpark(raw, selection, options, table, path, session, size, timings, reader)


def _comparable(
    raw: RawFrame, names: list[str], kept: list[int], needed: frozenset[str], notes: list[str]
) -> list[int]:
    """The columns without those that are neither comparable nor needed; notes name these."""
    left = []
    for i in kept:
        try:
            readable(names[i], f.col(f"c{i}"), raw.frame.schema[f"c{i}"].dataType)
            left.append(i)
        except UnusableColumn as problem:
            notes.append(note_unless_needed(names[i], problem, needed))
    return left


def takes_more(opened: TableInSpark, most_bytes: int) -> bool:
    """Whether the codes take more than so many bytes. Rows are counted only if the size does not decide it."""
    if most_bytes <= 0:
        return True
    cells = most_bytes // CODE_BYTES
    if opened.raw.places is None and opened.size_bytes < min(cells, IN_PROCESS_BYTES):
        return False
    rows = opened.raw.places.data_rows if opened.raw.places is not None else opened.raw.frame.count()
    return bool(rows * len(opened.selection.kept) > cells)


@contextlib.contextmanager
def spark_failures(table: str) -> Iterator[None]:
    """Turn failures of Spark into one InputError."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as problem:
        raise InputError(message("Spark can't read this table", table, hint=_cause(problem))) from problem


def _encode(in_spark: bool, opened: TableInSpark, report: Callable[[str], None], device: str) -> Relation:
    if in_spark:
        try:
            return encode_in_spark(opened, report)
        except NotInSpark as reason:
            opened.selection.notes.append(f"encoded in one process: {reason}")
    return _encode_here(opened, report, device)


def _open(source: Source, scanned: Any, session: OpenSession, options: LoadOptions, *, split: bool) -> RawFrame:
    spark = session.spark
    try:
        if source.format == "csv":
            table = scanned if scanned is not None else scan_remote(spark, source, options)
            return csv_table(spark, source, table, options, split=split)
        if source.format == "table":
            return frame_table(spark.table(source.paths[0]), "table")
        spark.conf.set("spark.sql.caseSensitive", "true")
        if source.format == "json":
            return json_table(spark, source, options)
        return typed_table(spark, source)
    except PySparkException as problem:
        odd = odd_column(source)
        what = "this table" if odd is None else f"column {odd.name!r} of this table, whose type is {odd.type}"
        hint = _TAKE_ARROW if source.local else None
        said = f"Spark can't open {what} ({_first_line(problem)})"
        raise InputError(message(said, source.given, hint=hint)) from problem


def _first_line(problem: Exception) -> str:
    """The first line of an exception's text, without error codes."""
    first = str(problem).strip().splitlines()[0]
    return re.sub(r"^\[[A-Z_.0-9]+\] | SQLSTATE: \w+$", "", first).removesuffix(".")[:200]


def _cause(problem: Exception) -> str:
    """The last cause of a failed job; earlier ones only state that it failed."""
    causes = [line for line in str(problem).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ")[:300] if causes else _first_line(problem)


def in_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """The frame's plan under the settings of our session. The frame's own session keeps its settings."""
    module = spark._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(module.ofRows(spark._jsparkSession, frame._jdf.logicalPlan()), spark)


def _plan_bytes(frame: DataFrame) -> int:
    """Spark's estimate of the size of a plan's result; for a scan, the size of the files."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _encode_here(opened: TableInSpark, report: Callable[[str], None], device: str) -> Relation:
    """Type and encode the table in this process."""
    selection, timings = opened.selection, opened.timings
    begin = time.perf_counter()
    table = read_here(opened)
    loaded = time.perf_counter()
    timings["load"] += loaded - begin
    report("encoding")
    kept = {selection.names[i] for i in selection.kept}
    types = {name: type_ for name, type_ in selection.overrides.items() if name in kept}
    relation = encoded(typed(table, replace(opened.options, types=types)), timings, device)
    timings["encode"] = time.perf_counter() - loaded
    return replace(relation, timings_seconds=timings)


def read_here(opened: TableInSpark) -> ReadTable:
    """The columns of a table as the source stores them, collected once as Arrow."""
    raw, selection, options = opened.raw, opened.selection, opened.options
    arrow, remarks = _bring(raw, selection, options)
    order = _file_order(raw, len(arrow))
    if order is not None:
        arrow = arrow.take(order)
    arrow, positions, bad_note, data_rows = _leave_out(raw, arrow, options)
    columns = tuple(_as_it_stands(raw, i, selection, arrow, remarks[i]) for i in selection.kept)
    readings = tuple(raw.readings[i] for i in selection.kept)
    notes = (*selection.notes, *([bad_note] if bad_note else []))
    session = {"version": opened.session.version, "master": opened.session.master}

    def locate(row: int) -> str:
        at = int(positions[row])
        return f"row {at}" if raw.places is None else raw.places.line_of(at, raw.files)

    return ReadTable(
        opened.name, columns, readings, data_rows, locate, notes, opened.path, session, positions,
        opened.reader,
    )  # fmt: skip


def _bring(raw: RawFrame, selection: ColumnSelection, options: LoadOptions) -> tuple[pa.Table, dict[int, str]]:
    remarks = {}
    chosen = []
    for i in selection.kept:
        column, remarks[i] = readable(selection.names[i], f.col(f"c{i}"), raw.frame.schema[f"c{i}"].dataType)
        chosen.append(column.alias(f"c{i}"))
    if raw.has_bad:
        chosen.append(f.col(BAD).isNotNull().alias(BAD))
    frame = raw.frame.select(chosen)
    if options.rows is not None and raw.places is not None and raw.ordered:
        frame = frame.limit(options.rows)  # one file that one task reads: the first rows are the first of the file
    return frame.toArrow(), remarks


def _file_order(raw: RawFrame, rows: int) -> pa.Array | None:
    """The permutation that puts rows of several files in file order; None if they are.

    Rows arrive by partition, and Spark packs files into partitions by size. Within a partition each split is one run
    of ids, so the place of a split follows from its file, its start and its lowest id.
    """
    if raw.ordered or rows == 0:
        return None
    _, count, order = split_runs(raw.frame)
    arrival = np.concatenate([[0], np.cumsum(count)[:-1]])
    if int(count.sum()) != rows:
        raise InputError(message("files changed while they were read", rows, number_of(int(count.sum()), "row")))
    return pa.array(np.concatenate([np.arange(arrival[k], arrival[k] + count[k]) for k in order]))


def _leave_out(
    raw: RawFrame, arrow: pa.Table, options: LoadOptions
) -> tuple[pa.Table, NDArray[np.int64], str | None, int]:
    """The requested first rows without malformed ones, and the positions of the remaining rows."""
    rows = len(arrow)
    positions = np.arange(rows, dtype=np.int64)
    places = raw.places
    if raw.names and len(raw.names) == 1 and places is not None and places.data_rows != len(places.position):
        whole = with_blank_rows(arrow, places, rows)
        positions = np.arange(len(whole), dtype=np.int64)
        arrow, rows = whole, len(whole)
    if options.rows is not None and rows > options.rows:
        arrow, positions = arrow.slice(0, options.rows), positions[: options.rows]
    note = None
    if raw.has_bad and places is not None:
        bad = np.flatnonzero(arrow[BAD].fill_null(False).to_numpy())
        if len(bad):
            note = bad_rows_note(places, positions[bad], raw.what_is_bad, raw.files, options.bad_rows)
            keep = np.ones(len(arrow), dtype=np.bool_)
            keep[bad] = False
            arrow, positions = arrow.filter(pa.array(keep)), positions[keep]
    return arrow, positions, note, len(arrow)


def _as_it_stands(raw: RawFrame, i: int, selection: ColumnSelection, arrow: pa.Table, remark: str) -> TypedColumn:
    name, array, reading = selection.names[i], arrow[f"c{i}"], raw.readings[i]
    if reading in ("infer", "dates"):
        return TypedColumn(name, "text", "", *indexed(array.cast(pa.large_string())))
    if reading == "nanoseconds":
        array = array.cast(pa.timestamp("ns", tz="UTC"))
    column = typed_column(name, array, raw.labels[i])
    return replace(column, why=raw.stored_as(i, remark))
