"""Loading through Spark: opens the source and a session, and decides where the table is encoded."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv_source import BAD, SPLIT_BYTES, bad_rows, scan_table, with_blank_rows
from tuplewise.engine.table.encode import TypedColumn, encode, indexed
from tuplewise.engine.table.frames import typed_column
from tuplewise.engine.table.relation import Relation, TypeName
from tuplewise.engine.table.schema import repair_names, selected_columns, type_overrides
from tuplewise.engine.table.source import Source, find_source
from tuplewise.engine.table.spark_encode import NotInSpark, encode_in_spark
from tuplewise.engine.table.spark_rows import split_runs
from tuplewise.engine.table.spark_source import (
    RawTable,
    csv_table,
    frame_table,
    json_table,
    readable,
    typed_table,
)
from tuplewise.engine.table.typing_columns import infer_text_column, null_tokens, retype, without_tokens
from tuplewise.engine.spark.session import OpenSession, open_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

IN_PROCESS_BYTES = 512 << 20
"""Sources up to this size come over as Arrow and are encoded in-process: that takes a few times their size in memory,
which any laptop has, and spares Spark's shuffles. Parquet and ORC count fourfold, for their compression."""

CODE_BYTES = 4


@dataclass(frozen=True)
class Plan:
    """What is read of a table: which columns, under which names and types."""

    kept: list[int]
    names: list[str]
    overrides: dict[str, TypeName]
    notes: list[str]


@dataclass(frozen=True)
class Opened:
    """A table that Spark can read, before anything of it is brought here.

    `size_bytes`: of its files (fourfold for packed formats), or what Spark's plan says.
    """

    raw: RawTable
    plan: Plan
    options: LoadOptions
    table: str
    path: str | None
    session: OpenSession
    size_bytes: int
    timings: dict[str, float]

    def ordered(self, names: Sequence[str]) -> Opened:
        """The same with these columns only, in this order."""
        return replace(self, plan=replace(self.plan, kept=[self.plan.names.index(name) for name in names]))


class BeyondDriver(Exception):
    """A table whose codes are not to come here; `opened` is what Spark can read of it."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(f"table {opened.table!r} stays in Spark")
        self.opened = opened

    @property
    def column_names(self) -> list[str]:
        return [self.opened.plan.names[i] for i in self.opened.plan.kept]


def load_with_spark(
    target: Any,
    kind: str | None,
    options: LoadOptions,
    name: str | None,
    spark: SparkSession | None,
    report: Callable[[str], None],
    *,
    large: bool | None = None,
    most_bytes: int | None = None,
    device: str = "auto",
) -> Relation:
    """A file, folder, URL, catalog table or Spark frame as a Relation.

    `large` forces the way of encoding: True in Spark, False in-process; None decides by size. Raises BeyondDriver where
    the codes would take more than `most_bytes`. `device`: see `load`.
    """
    opened = open_with_spark(target, kind, options, name, spark, report, large=large)
    if most_bytes is not None and _takes_more(opened, most_bytes):
        raise BeyondDriver(opened)
    return bring_here(opened, report, large=large, device=device)


def bring_here(
    opened: Opened, report: Callable[[str], None], *, large: bool | None = None, device: str = "auto"
) -> Relation:
    """An opened table as a Relation. `large`, `device`: see `load_with_spark`."""
    in_spark = opened.size_bytes > IN_PROCESS_BYTES if large is None else large
    with spark_failures(opened.table):
        relation = _encode(in_spark, opened, report, device)
    return replace(relation, spark={"version": opened.session.version, "master": opened.session.master})


def open_with_spark(
    target: Any,
    kind: str | None,
    options: LoadOptions,
    name: str | None,
    spark: SparkSession | None,
    report: Callable[[str], None],
    *,
    large: bool | None = None,
) -> Opened:
    """Opens a source and a session; reads no more of the table than its names need."""
    begin = time.perf_counter()
    source = find_source(target) if kind is None else None
    # What the bytes of local files say against loading is said before a JVM is started.
    scanned = None
    if source is not None and source.format == "csv" and source.local:
        report("scanning")
        scanned = scan_table(source, options, None)
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
    plan = Plan(
        selected_columns(names, options, table), names, type_overrides(names, options.types, table), renamed + raw.notes
    )
    timings = {"session": session.seconds, "load": time.perf_counter() - begin + scan_seconds, "encode": 0.0}
    return Opened(raw, plan, options, table, path, session, size, timings)


def _takes_more(opened: Opened, most_bytes: int) -> bool:
    """Whether the codes take more than so many bytes. Rows are only counted where the size leaves that open."""
    if most_bytes <= 0:
        return True
    cells = most_bytes // CODE_BYTES
    if opened.raw.places is None and opened.size_bytes < min(cells, IN_PROCESS_BYTES):
        return False
    rows = opened.raw.places.data_rows if opened.raw.places is not None else opened.raw.frame.count()
    return bool(rows * len(opened.plan.kept) > cells)


@contextlib.contextmanager
def spark_failures(table: str) -> Iterator[None]:
    """What Spark says when it fails, as one message."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as problem:
        raise InputError(message("Spark can't read this table", table, hint=_cause(problem))) from problem


def _encode(in_spark: bool, opened: Opened, report: Callable[[str], None], device: str) -> Relation:
    if in_spark:
        try:
            return encode_in_spark(
                opened.raw, opened.plan, opened.options, opened.table, opened.path, opened.timings, report
            )
        except NotInSpark as reason:
            opened.plan.notes.append(f"encoded in one process: {reason}")
    return _encode_here(opened, report, device)


def _open(source: Source, scanned: Any, session: OpenSession, options: LoadOptions, *, split: bool) -> RawTable:
    from pyspark.errors import AnalysisException

    spark = session.spark
    try:
        if source.format == "csv":
            table = scanned if scanned is not None else scan_table(source, options, spark)
            return csv_table(spark, source, table, options, split=split)
        if source.format == "table":
            return frame_table(spark.table(source.paths[0]), "table")
        spark.conf.set("spark.sql.caseSensitive", "true")
        if source.format == "json":
            return json_table(spark, source, options)
        return typed_table(spark, source)
    except AnalysisException as problem:
        raise InputError(message("Spark can't open this table", source.given, hint=_first_line(problem))) from problem


def _first_line(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0][:200]


def _cause(problem: Exception) -> str:
    """The last cause of a failed job: the first ones only say that it failed."""
    causes = [line for line in str(problem).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ")[:300] if causes else _first_line(problem)


def in_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """The same plan under the settings of our session; the frame's own keeps its settings."""
    from pyspark.sql import DataFrame

    module = spark._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(module.ofRows(spark._jsparkSession, frame._jdf.logicalPlan()), spark)


def _plan_bytes(frame: DataFrame) -> int:
    """Spark's estimate of the size of a plan's result; file sizes where it is a scan."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _encode_here(opened: Opened, report: Callable[[str], None], device: str) -> Relation:
    """Brings the table over once as Arrow; types and encodes it in this process."""
    raw, plan, options, timings = opened.raw, opened.plan, opened.options, opened.timings
    begin = time.perf_counter()
    arrow, remarks = _bring(raw, plan, options)
    order = _file_order(raw, len(arrow))
    if order is not None:
        arrow = arrow.take(order)
    arrow, positions, bad_note, data_rows = _leave_out(raw, arrow, options)
    loaded = time.perf_counter()
    timings["load"] += loaded - begin
    report("encoding")
    notes = list(plan.notes)
    if bad_note:
        notes.append(bad_note)
    locate = _locator(raw, positions)
    columns = []
    for i in plan.kept:
        column, added = _typed(raw, i, plan, arrow, options, locate, remarks[i])
        columns.append(column)
        notes.extend(added)
    codes, dictionaries, described = encode(columns, data_rows, device)
    timings["encode"] = time.perf_counter() - loaded
    rows = _unless_plain(positions, data_rows)
    return Relation(opened.table, opened.path, described, codes, dictionaries, rows, tuple(notes), timings)


def _bring(raw: RawTable, plan: Plan, options: LoadOptions) -> tuple[pa.Table, dict[int, str]]:
    from pyspark.sql import functions as f

    remarks = {}
    chosen = []
    for i in plan.kept:
        column, remarks[i] = readable(plan.names[i], f.col(f"c{i}"), raw.frame.schema[f"c{i}"].dataType)
        chosen.append(column.alias(f"c{i}"))
    if raw.has_bad:
        chosen.append(f.col(BAD).isNotNull().alias(BAD))
    frame = raw.frame.select(chosen)
    if options.rows is not None and raw.places is not None and raw.ordered:
        frame = frame.limit(options.rows)  # one file that one task reads: the first rows are the first of the file
    return frame.toArrow(), remarks


def _file_order(raw: RawTable, rows: int) -> pa.Array | None:
    """How rows of several files are put in file order; None where they are.

    Rows arrive by partition, and Spark packs files into partitions by size. Within a partition each split is one run
    of ids, so that a split's place follows from its file, its start and its lowest id.
    """
    if raw.ordered or rows == 0:
        return None
    import pyarrow as pa

    _, count, order = split_runs(raw.frame)
    arrival = np.concatenate([[0], np.cumsum(count)[:-1]])
    if int(count.sum()) != rows:
        raise InputError(message("files changed while they were read", rows, f"{int(count.sum())} rows"))
    return pa.array(np.concatenate([np.arange(arrival[k], arrival[k] + count[k]) for k in order]))


def _leave_out(
    raw: RawTable, arrow: pa.Table, options: LoadOptions
) -> tuple[pa.Table, NDArray[np.int64], str | None, int]:
    """The first rows that were asked for, without bad ones, and the positions of those that are left."""
    import pyarrow as pa

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
            note = bad_rows(places, np.searchsorted(places.position, positions[bad]), raw, options.bad_rows)
            keep = np.ones(len(arrow), dtype=np.bool_)
            keep[bad] = False
            arrow, positions = arrow.filter(pa.array(keep)), positions[keep]
    return arrow, positions, note, len(arrow)


def _unless_plain(positions: NDArray[np.int64], rows: int) -> NDArray[np.int64] | None:
    return None if rows == 0 or int(positions[-1]) == rows - 1 else positions


def _locator(raw: RawTable, positions: NDArray[np.int64]) -> Callable[[int], str]:
    places = raw.places

    def locate(row: int) -> str:
        if places is None:
            return f"row {int(positions[row])}"
        at = int(np.searchsorted(places.position, positions[row]))
        where = f"line {int(places.line[at])}"
        return where if len(raw.files) < 2 else f"{raw.files[places.file[at]]}, {where}"

    return locate


def _typed(
    raw: RawTable,
    i: int,
    plan: Plan,
    arrow: pa.Table,
    options: LoadOptions,
    locate: Callable[[int], str],
    remark: str,
) -> tuple[TypedColumn, list[str]]:
    import pyarrow as pa

    name = plan.names[i]
    wanted = plan.overrides.get(name)
    array = arrow[f"c{i}"]
    reading = raw.readings[i]
    notes: list[str] = []
    if reading in ("infer", "dates"):
        values, index = indexed(array.cast(pa.large_string()))
        index = null_tokens(values, index, options.null_tokens)
        if wanted is None:
            column, notes = infer_text_column(name, values, index, dates_only=reading == "dates")
        else:
            column = TypedColumn(name, "text", "", values, index)
    else:
        if reading == "nanoseconds":
            array = array.cast(pa.timestamp("ns", tz="UTC"))
        column, notes = typed_column(name, array, raw.labels[i])
        column = replace(column, why=f"stored as {raw.labels[i]}{remark}")
        column = without_tokens(column, options.null_tokens)
    return (column if wanted is None else retype(column, wanted, locate)), notes
