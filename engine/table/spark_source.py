"""Sources as Spark DataFrames of one form, with plain column names, before their types are decided."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructType

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv import CsvTable, blank_note, lacks_fields, row_places
from tuplewise.engine.table.csv_scan import scan_lines
from tuplewise.engine.table.files import (
    FIRST_OBJECTS,
    NOT_OBJECTS,
    Schema,
    common_schema,
    empty_files,
    json_places,
    stored_as,
)
from tuplewise.engine.table.frames import BYTES_AS_HEX, unusable
from tuplewise.engine.table.raw import CSV_LABEL, NO_BAD_ROWS, BadRows, Reading, RowPlaces
from tuplewise.engine.table.source import Source, opened
from tuplewise.engine.table.spark_csv import BAD, inner_returns, read_text
from tuplewise.engine.table.spark_text import MOST_DIGITS


@dataclass(frozen=True)
class RawFrame:
    """A table as Spark reads it.

    Attributes
    ----------
    frame : columns c0, c1, ..., and BAD if the source can hold malformed rows
    names : the column names of the source, in order
    readings, labels : for each column, how it gets its type, and the source's name for its type
    files : the local files in order, if any
    places : the places of the rows, if known
    ordered : whether rows are in file order because they are from one file; otherwise splits have to be ordered
    """

    frame: DataFrame
    names: list[str]
    readings: list[Reading]
    labels: list[str]
    files: tuple[str, ...] = ()
    places: RowPlaces | None = None
    ordered: bool = True
    notes: list[str] = field(default_factory=list)
    what_is_bad: BadRows = NO_BAD_ROWS

    def stored_as(self, column: int, remark: str) -> str:
        """The reason for the type of a typed column. `remark`: that of `readable`, unless the label contains it."""
        label = self.labels[column]
        return f"stored as {label}" + ("" if label.endswith(remark) else remark)

    @property
    def has_bad(self) -> bool:
        return BAD in self.frame.columns


def csv_table(spark: SparkSession, source: Source, table: CsvTable, options: LoadOptions, *, split: bool) -> RawFrame:
    """A scanned CSV table."""
    frame = read_text(spark, source, table, options, split=split)
    places = row_places(table, options.header)
    notes = [*table.notes, *blank_note(places.blank_lines)]
    if inner_returns(table) == "lost":
        notes.append("line ends inside of quotes are CR LF in places and LF in others: they are not told apart")
    count = len(table.names)
    return RawFrame(
        frame, table.names, ["infer"] * count, [CSV_LABEL] * count, source.files, places, len(table.scans) == 1, notes,
        lacks_fields(table, source.files, options),
    )  # fmt: skip


def typed_table(spark: SparkSession, source: Source) -> RawFrame:
    """Parquet and ORC files."""
    schema = common_schema(source) if source.local else None
    nanoseconds = frozenset[str]()
    if schema is not None:
        nanoseconds = frozenset(f.name for f in schema.fields if in_nanoseconds(f.type) and source.format == "parquet")
        _refuse_repeated(schema, source)
    if schema is None or schema.same or source.format == "orc":
        frame = _read_typed(spark, source, bool(nanoseconds))
        if source.format == "parquet":
            frame = _instants(spark, source, frame)
    else:
        frame = spark.read.format(source.format).schema(_spark_schema(schema, source)).load(list(source.paths))
    label = "Parquet" if source.format == "parquet" else "ORC"
    raw = _from_frame(
        frame, label, source.files, len(source.files) == 1, frozenset(source.folder_columns), nanoseconds,
        [] if schema is None else schema.notes,
    )  # fmt: skip
    if schema is not None:
        own = {field.name: stored_as(label, field.type) for field in schema.fields}
        raw = replace(raw, labels=[own.get(name, given) for name, given in zip(raw.names, raw.labels, strict=True)])
    return raw


def in_nanoseconds(type_: Any) -> bool:
    """Whether an Arrow type is a timestamp in nanoseconds, which Spark reads as an integer."""
    return bool(pa.types.is_timestamp(type_) and type_.unit == "ns")


def odd_column(source: Source) -> Any:
    """The first column of local Parquet or ORC files with a type that only Arrow reads; None if there is none."""
    if not source.local or source.format not in ("parquet", "orc"):
        return None
    t = pa.types
    return next(
        (
            field
            for field in common_schema(source).fields
            if isinstance(field.type, pa.BaseExtensionType)
            or t.is_float16(field.type)
            or t.is_time(field.type)
            or (t.is_decimal(field.type) and field.type.precision > MOST_DIGITS)
        ),
        None,
    )


def _refuse_repeated(schema: Schema, source: Source) -> None:
    repeated = next((field.name for field in schema.fields if field.number), None)
    if repeated is not None:
        hint = Wording("Leave the reader out, or take {reader}", reader="arrow")
        raise InputError(
            message(f"two columns of {source.given} have one name, which Spark can't read", repeated, hint=hint)
        )


def _spark_schema(schema: Schema, source: Source) -> StructType:
    """The common schema of files that differ, for which Spark widens types and fills missing columns with nulls."""
    if any(in_nanoseconds(field.type) for field in schema.fields):
        hint = Wording("Take {reader}, or write the files with one unit", reader="arrow")
        raise InputError(
            message("Spark can't join timestamps in nanoseconds of files that differ", source.given, hint=hint)
        )
    plain = from_arrow_schema(pa.schema([(field.name, field.type) for field in schema.fields]))
    folders = [t.StructField(name, t.StringType()) for name in source.folder_columns]
    return t.StructType([*_as_instants(plain.fields), *folders])


def _read_typed(spark: SparkSession, source: Source, nanoseconds: bool) -> DataFrame:
    """The files, with timestamps in nanoseconds as integers, which would end the job otherwise.

    The setting for that is only made if there are some: it moves the scan off the GPU.
    """
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
    """Read timestamps without a zone, as Spark itself writes them, as instants, so that the scan stays on the GPU.

    ORC refuses that: its timestamps without a zone are cast after the scan, which then runs on the CPU.
    """
    fields = frame.schema.fields
    if not any(isinstance(f.dataType, t.TimestampNTZType) for f in fields):
        return frame
    return spark.read.format(source.format).schema(t.StructType(_as_instants(fields))).load(list(source.paths))


def _as_instants(fields: Sequence[t.StructField]) -> list[t.StructField]:
    """The fields with timestamps without a zone as timestamps of instants."""
    return [
        t.StructField(f.name, t.TimestampType() if isinstance(f.dataType, t.TimestampNTZType) else f.dataType)
        for f in fields
    ]


def frame_table(frame: DataFrame, label: str) -> RawFrame:
    """A Spark frame or a catalog table, whose rows have no order of their own."""
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
) -> RawFrame:
    fields = frame.schema.fields
    plain = frame.toDF(*[f"c{i}" for i in range(len(fields))])
    readings: list[Reading] = []
    for field_ in fields:
        if field_.name in partitions:
            readings.append("infer")
        elif field_.name in nanoseconds and isinstance(field_.dataType, t.LongType):
            readings.append("nanoseconds")
        else:
            readings.append("typed")
    labels = [
        f"{label} folder name" if f.name in partitions else f"{label} {f.dataType.simpleString()}" for f in fields
    ]
    return RawFrame(plain, [f.name for f in fields], readings, labels, files, None, ordered, notes)


def readable(name: str, column: SparkColumn, type_: DataType) -> tuple[SparkColumn, str]:
    """The column as a type that plans keep on the GPU and Arrow can represent, and a remark on the conversion.

    Raises InputError for nested and interval columns.
    """
    if isinstance(type_, t.BinaryType):
        return f.lower(f.hex(column)), f"; {BYTES_AS_HEX}"
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


def json_table(spark: SparkSession, source: Source, options: LoadOptions) -> RawFrame:
    """JSON lines, each object a row. Numbers and booleans stay as written until their type is known."""
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
    for key in found:
        kind: Reading = "dates" if isinstance(key.dataType, t.StringType) else "infer"
        readings.append("typed" if isinstance(key.dataType, nested) else kind)
    labels = [f"JSON {f.dataType.simpleString()}" for f in found]
    places = json_places(lines) if lines else None
    return RawFrame(
        frame, [f.name for f in found], readings, labels, source.files, places, len(lines) == 1,
        list(empty_files(source, lines)), NOT_OBJECTS,
    )  # fmt: skip


_MAY_BE_SEVERAL = re.compile(rb"\A\s*\[|\}\s*\{")


def _refuse_several(line: bytes, where: str) -> None:
    """Raise InputError if a line holds several objects: Spark drops all but the first, or turns a list into rows."""
    if _MAY_BE_SEVERAL.search(line):
        try:
            one = isinstance(json.loads(line), dict)
        except ValueError:
            one = False
        if not one:
            hint = Wording("Write one JSON object a line; {reader} can leave such rows out", reader="arrow")
            raise InputError(message(f"{where}: Spark can't read several objects on one line", hint=hint))


def _scan_json(source: Source, options: LoadOptions) -> tuple[list[NDArray[np.int64]], list[str]]:
    """The non-blank lines of each file, and the keys in the order of the first objects."""
    lines = []
    keys: dict[str, None] = {}
    objects = 0
    for path in source.files:
        numbers = []
        with opened(path) as stream:
            for number, line in scan_lines(stream, path, options.encoding):
                numbers.append(number)
                _refuse_several(line, f"{path}, line {number}")
                if objects >= FIRST_OBJECTS:
                    continue
                try:
                    parsed = json.loads(line)
                except ValueError:
                    continue
                if isinstance(parsed, dict):
                    objects += 1
                    keys.update(dict.fromkeys(parsed))
        lines.append(np.array(numbers, dtype=np.int64))
    if source.local and not any(len(n) for n in lines):
        raise InputError(message("this file is empty", source.given, "one JSON object a line"))
    return lines, list(keys)
