"""Tables as Spark DataFrames with plain column names, before their types are settled: one shape for all sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv_scan import scan_lines
from tuplewise.engine.table.csv_source import BAD, CsvTable, RowPlaces, blank_note, read_text, row_places
from tuplewise.engine.table.frames import unusable
from tuplewise.engine.table.source import Source

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

Reading = Literal["infer", "dates", "typed", "nanoseconds"]
"""What is done with a column: all rules for text; those for dates only (JSON says which values are numbers); its
type is known; its type is a number of nanoseconds."""


@dataclass(frozen=True)
class RawTable:
    """A table as Spark gives it.

    Attributes
    ----------
    frame : columns c0, c1, ..., and BAD where the source can hold bad rows
    names : the names that the source gives the columns, in order
    readings, labels : for each column, what is done with it and what its source calls its type
    files : local files in order; empty where there are none
    places : where the rows stand, where that was found out
    ordered : whether rows come in file order, that is, from one file; else splits are put in order
    """

    frame: DataFrame
    names: list[str]
    readings: list[Reading]
    labels: list[str]
    files: tuple[str, ...] = ()
    places: RowPlaces | None = None
    ordered: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def has_bad(self) -> bool:
        return BAD in self.frame.columns


def csv_table(spark: SparkSession, source: Source, table: CsvTable, options: LoadOptions, *, split: bool) -> RawTable:
    """A scanned CSV table."""
    frame = read_text(spark, source, table, options, split=split)
    places = row_places(table, options.header)
    notes = [*table.notes, *blank_note(places.blank_lines)]
    count = len(table.names)
    return RawTable(
        frame, table.names, ["infer"] * count, ["CSV"] * count, source.files, places, len(table.scans) == 1, notes
    )


def typed_table(spark: SparkSession, source: Source) -> RawTable:
    """Parquet and ORC files."""
    nanoseconds = _nanosecond_columns(source)
    frame = _read_typed(spark, source, bool(nanoseconds))
    if source.format == "parquet":
        frame = _instants(spark, source, frame)
    label = "Parquet" if source.format == "parquet" else "ORC"
    partitions = _partition_columns(source)
    ordered = len(source.files) == 1
    return _from_frame(frame, label, source.files, ordered, partitions, nanoseconds, [])


def _read_typed(spark: SparkSession, source: Source, nanoseconds: bool) -> DataFrame:
    """The files; timestamps in nanoseconds as whole numbers, instead of ending the job.

    That is asked for only where there are some: it takes the scan off the GPU.
    """
    from pyspark.errors import AnalysisException

    reader = spark.read.format(source.format)
    try:
        if not nanoseconds:
            return reader.load(list(source.paths))
    except AnalysisException as problem:
        if "NANOS" not in str(problem):
            raise
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    return reader.load(list(source.paths))


def _instants(spark: SparkSession, source: Source, frame: DataFrame) -> DataFrame:
    """Reads timestamps that Spark itself wrote without a zone as instants too, so that the scan stays on the GPU.

    ORC refuses that: its timestamps without a zone are cast behind the scan, which is then the CPU's.
    """
    from pyspark.sql import types as t

    fields = frame.schema.fields
    if not any(isinstance(f.dataType, t.TimestampNTZType) for f in fields):
        return frame
    schema = t.StructType(
        [
            t.StructField(f.name, t.TimestampType() if isinstance(f.dataType, t.TimestampNTZType) else f.dataType)
            for f in fields
        ]
    )
    return spark.read.format(source.format).schema(schema).load(list(source.paths))


def frame_table(frame: DataFrame, label: str) -> RawTable:
    """A Spark frame or a catalog table: its rows have no order of their own."""
    note = "rows of this source have no order of their own: positions were given once, as they came"
    return _from_frame(frame, label, (), True, frozenset(), frozenset(), [note])


def _from_frame(
    frame: DataFrame,
    label: str,
    files: tuple[str, ...],
    ordered: bool,
    partitions: frozenset[str],
    nanoseconds: frozenset[str],
    notes: list[str],
) -> RawTable:
    from pyspark.sql import types as t

    fields = frame.schema.fields
    plain = frame.toDF(*[f"c{i}" for i in range(len(fields))])
    readings: list[Reading] = []
    for f in fields:
        if f.name in partitions:
            readings.append("infer")
        elif f.name in nanoseconds and isinstance(f.dataType, t.LongType):
            readings.append("nanoseconds")
        else:
            readings.append("typed")
    labels = [
        f"{label} folder name" if f.name in partitions else f"{label} {f.dataType.simpleString()}" for f in fields
    ]
    return RawTable(plain, [f.name for f in fields], readings, labels, files, None, ordered, notes)


def readable(name: str, column: SparkColumn, type_: DataType) -> tuple[SparkColumn, str]:
    """The column as a type that plans keep on the GPU and Arrow takes, and what was done to it.

    Raises InputError for binary, nested and interval columns.
    """
    from pyspark.sql import types as t

    if isinstance(type_, t.TimestampNTZType):
        return column.cast("timestamp"), "; without a zone: taken as UTC"
    if isinstance(type_, t.StringType) and getattr(type_, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return column.cast("string"), "; compared by bytes, not by its collation"
    plain = (
        t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.DecimalType,
        t.StringType, t.CharType, t.VarcharType, t.DateType, t.TimestampType, t.NullType,
    )  # fmt: skip
    if isinstance(type_, plain):
        return column, ""
    if isinstance(type_, t.DayTimeIntervalType) or type_.typeName().startswith("time"):
        return column, ""
    raise unusable(name, type_.simpleString())


def _partition_columns(source: Source) -> frozenset[str]:
    """Columns that folder names hold, as in year=2024/part.parquet."""
    return frozenset(
        part.partition("=")[0] for path in source.files[:1] for part in path.split("/")[:-1] if "=" in part
    )


def _nanosecond_columns(source: Source) -> frozenset[str]:
    """Parquet timestamps in nanoseconds, which Spark reads as whole numbers."""
    if source.format != "parquet" or not source.files:
        return frozenset()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(source.files[0])
    except (pa.ArrowException, OSError) as problem:
        raise InputError(message("this file is not Parquet, or is damaged", source.files[0])) from problem
    return frozenset(f.name for f in schema if pa.types.is_timestamp(f.type) and f.type.unit == "ns")


def json_table(spark: SparkSession, source: Source, options: LoadOptions) -> RawTable:
    """JSON lines: each object a row. Numbers and booleans keep their spelling until their type is settled."""
    from pyspark.sql import types as t

    lines, keys = _scan_json(source, options)
    reading: Mapping[str, Any] = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
    found = [f for f in spark.read.options(**reading).json(list(source.paths)).schema.fields if f.name != BAD]
    order = {key: i for i, key in enumerate(keys)}
    found.sort(key=lambda f: (order.get(f.name, len(order)), f.name))
    if not found:
        raise InputError(message("no JSON object was found", source.given, "one object a line"))
    nested = (t.StructType, t.ArrayType)
    schema = t.StructType(
        [t.StructField(f.name, f.dataType if isinstance(f.dataType, nested) else t.StringType()) for f in found]
        + [t.StructField(BAD, t.StringType())]
    )
    frame = spark.read.schema(schema).options(**reading).json(list(source.paths))
    frame = frame.toDF(*[f"c{i}" for i in range(len(found))], BAD)
    readings: list[Reading] = []
    for f in found:
        kind: Reading = "dates" if isinstance(f.dataType, t.StringType) else "infer"
        readings.append("typed" if isinstance(f.dataType, nested) else kind)
    labels = [f"JSON {f.dataType.simpleString()}" for f in found]
    return RawTable(
        frame, [f.name for f in found], readings, labels, source.files, _json_places(lines), len(lines) == 1
    )


def _scan_json(source: Source, options: LoadOptions) -> tuple[list[NDArray[np.int64]], list[str]]:
    """Lines that aren't blank of each file, and keys in the order in which the first objects have them."""
    import pyarrow as pa

    lines = []
    keys: dict[str, None] = {}
    for path in source.files:
        with pa.input_stream(path, compression="detect") as stream:
            numbers, first = scan_lines(stream, path, options.encoding)
        lines.append(numbers)
        for line in first:
            try:
                parsed = json.loads(line)
            except ValueError:
                continue
            if isinstance(parsed, dict):
                keys.update(dict.fromkeys(parsed))
    if source.local and not any(len(n) for n in lines):
        raise InputError(message("this file is empty", source.given, "one JSON object a line"))
    return lines, list(keys)


def _json_places(lines: list[NDArray[np.int64]]) -> RowPlaces | None:
    if not lines:
        return None
    rows = sum(len(n) for n in lines)
    files = np.repeat(np.arange(len(lines), dtype=np.int32), [len(n) for n in lines])
    return RowPlaces(np.arange(rows, dtype=np.int64), np.concatenate(lines), files, rows, 0)
