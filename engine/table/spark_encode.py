"""Types and values of columns in Spark, and their cells in the form that encoding takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv import bad_rows_note
from tuplewise.engine.table.in_spark import ColumnSelection
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, Domain, TypeName
from tuplewise.engine.table.spark_csv import BAD
from tuplewise.engine.table.spark_rows import ROW, RowRuns
from tuplewise.engine.table.spark_source import RawFrame, readable
from tuplewise.engine.table.spark_text import (
    MISFIT,
    MOST_DIGITS,
    fits,
    fraction_digits,
    one_number_twice,
    parsed,
    spelling,
    whole_digits,
)
from tuplewise.engine.table.text_types import WHAT_FITS, SpellingCount, as_codes, decide, may_be_codes
from tuplewise.engine.table.typing_columns import ASKED_FOR

BUCKET_VALUES = 250_000
MOST_BUCKETS = 64


@dataclass(frozen=True)
class TypedExpression:
    """A column's type, the reason for it, the Spark expression of its values, and the width of its numbers.

    `whole` and `scale`: for numbers, the digits before and after the point; scale None: a 64-bit integer.
    """

    type: TypeName
    why: str
    expression: SparkColumn
    whole: int = 19
    scale: int | None = None

    @property
    def domain(self) -> Domain:
        """Columns of one domain share a dictionary."""
        return DOMAIN_OF_TYPE[self.type]


class NotInSpark(Exception):
    """A table has a column that can only be encoded in this process. The message is the reason."""


def kept_frame(
    raw: RawFrame, base: DataFrame, rows: RowRuns, options: LoadOptions
) -> tuple[DataFrame, NDArray[np.int64], str | None]:
    """The frame of the rows to keep, the places of malformed rows (ascending), and a note on these."""
    places = raw.places
    if places is not None and len(raw.names) == 1 and places.data_rows != len(places.position):
        raise NotInSpark("blank lines of a one-column file are rows, which Spark's reader leaves out")
    bad = np.zeros(0, dtype=np.int64)
    note = None
    if options.rows is not None and options.rows < rows.total:
        base = base.where(_first_rows(rows, options.rows))
    if raw.has_bad:
        ids = base.where(f.col(BAD).isNotNull()).select(ROW, "c0").toArrow()[ROW].to_numpy()
        bad = np.sort(rows.places(np.asarray(ids, dtype=np.int64)))
        if len(bad):
            if places is None:
                raise NotInSpark("bad rows without known lines")
            note = bad_rows_note(places, bad, raw.what_is_bad, raw.files, options.bad_rows)
            base = base.where(f.col(BAD).isNull())
    return base, bad, note


def _first_rows(rows: RowRuns, limit: int) -> SparkColumn:
    """The condition on row ids that selects the first rows in file order."""
    condition = f.lit(False)
    for first, count, offset in zip(rows.first, rows.count, rows.offset, strict=True):
        taken = min(int(count), limit - int(offset))
        if taken > 0:
            condition = condition | f.col(ROW).between(int(first), int(first) + taken - 1)
    return condition


def type_columns(
    raw: RawFrame, selection: ColumnSelection, base: DataFrame, options: LoadOptions, rows: RowRuns
) -> tuple[list[TypedExpression], list[str]]:
    """The types of the selected columns, and notes. One job for all text columns."""
    texts: dict[int, SparkColumn] = {}
    typed: dict[int, TypedExpression] = {}
    for i in selection.kept:
        field = raw.frame.schema[f"c{i}"]
        wanted = selection.overrides.get(selection.names[i])
        if raw.readings[i] in ("infer", "dates"):
            column = f.col(f"c{i}")
            texts[i] = f.when(~column.isin(list(options.null_tokens)), column) if options.null_tokens else column
        else:
            expression, remark = readable(selection.names[i], f.col(f"c{i}"), field.dataType)
            typed[i] = _typed_expression(field.dataType, expression, raw.stored_as(i, remark), options)
            if raw.readings[i] == "nanoseconds" or (wanted is not None and wanted != typed[i].type):
                raise NotInSpark(f"column {selection.names[i]!r} must be converted from {raw.labels[i]}")
    notes: list[str] = []
    if texts:
        wanted_types = {i: selection.overrides.get(selection.names[i]) for i in texts}
        found = profile_frame(base, texts, wanted_types).toArrow().to_pylist()
        for i, text in texts.items():
            mine = [r for r in found if r["column"] == i]
            typed[i], note = _text_expression(raw, selection, i, text, mine, rows, base)
            notes.extend([note] if note else [])
    return [typed[i] for i in selection.kept], notes


def profile_frame(base: DataFrame, texts: dict[int, SparkColumn], wanted: dict[int, TypeName | None]) -> DataFrame:
    """The rows, the lowest value and the widest number of each spelling in each column, in one pass."""
    cells = []
    for i, text in texts.items():
        type_ = wanted[i]
        spelled = spelling(text) if type_ is None else fits(text, type_)
        cells.append(
            f.struct(f.lit(i).alias("column"), f.when(text.isNotNull(), spelled).alias("spelling"), text.alias("value"))
        )
    long = base.select(f.col(ROW), f.explode(f.array(*cells)).alias("cell")).where(f.col("cell.spelling").isNotNull())
    long = long.select(ROW, "cell.column", "cell.spelling", "cell.value")
    value = f.col("value")
    return long.groupBy("column", "spelling").agg(
        f.count("*").alias("rows"),
        f.min("value").alias("example"),
        f.max(whole_digits(value)).alias("whole"),
        f.max(fraction_digits(value)).alias("fraction"),
        f.min(ROW).alias("first"),
    )


def _text_expression(
    raw: RawFrame,
    selection: ColumnSelection,
    i: int,
    text: SparkColumn,
    found: list[dict[str, Any]],
    rows: RowRuns,
    base: DataFrame,
) -> tuple[TypedExpression, str | None]:
    name = selection.names[i]
    wanted: TypeName | None = selection.overrides.get(name)
    note = None
    if wanted is None:
        counts = {r["spelling"]: SpellingCount(r["rows"], r["example"]) for r in found}
        decision = decide(name, counts)
        twice = one_number_twice(base, text) if may_be_codes(decision, counts) else None
        if twice is not None:
            decision = as_codes(name, *twice)
        type_, why, note = decision.type, decision.why, decision.note
        if raw.readings[i] == "dates" and type_ not in ("date", "timestamp"):
            type_, why, note = "text", "text in its source", None
    else:
        type_, why = wanted, ASKED_FOR
        misfit = next((r for r in found if r["spelling"] == MISFIT), None)
        if misfit is not None:
            place = int(rows.places(np.array([misfit["first"]], dtype=np.int64))[0])
            where = f"line {raw.places.line[place]}" if raw.places is not None else f"row {place}"
            fit = "value doesn't fit" if misfit["rows"] == 1 else "values don't fit"
            text_ = f"column {name!r}: {misfit['rows']:,} {fit} type {type_}, the first at {where}"
            raise InputError(message(text_, misfit["example"], WHAT_FITS[type_]))
    whole = max((r["whole"] for r in found), default=0)
    scale: int | None = max((r["fraction"] for r in found), default=0)
    wide = any(r["spelling"] in ("integer38", "integer_more") for r in found)
    if type_ == "integer" and not wide:
        scale = None
    elif type_ in ("integer", "decimal") and whole + (scale or 0) > MOST_DIGITS:
        raise NotInSpark(f"column {name!r} needs more than {MOST_DIGITS} digits in all")
    return TypedExpression(type_, why, parsed(text, type_, scale), max(whole, 1), scale), note


def _typed_expression(type_: Any, column: SparkColumn, why: str, options: LoadOptions) -> TypedExpression:
    if isinstance(type_, t.BooleanType):
        return TypedExpression("boolean", why, column)
    if isinstance(type_, (t.ByteType, t.ShortType, t.IntegerType, t.LongType)):
        return TypedExpression("integer", why, column.cast("bigint"))
    if isinstance(type_, (t.FloatType, t.DoubleType)):
        return TypedExpression("double", why, column.cast("double"))
    if isinstance(type_, t.DecimalType):
        return TypedExpression("decimal", why, column, type_.precision - type_.scale, type_.scale)
    if isinstance(type_, t.DateType):
        return TypedExpression("date", why, column)
    if isinstance(type_, (t.TimestampType, t.TimestampNTZType)):
        return TypedExpression("timestamp", why, column)
    if isinstance(type_, (t.StringType, t.CharType, t.VarcharType)):
        if options.null_tokens:
            column = f.when(~column.isin(list(options.null_tokens)), column)
        return TypedExpression("text", why, column.cast("string"))
    raise NotInSpark(f"columns of type {type_.simpleString()} are converted in-process")


def cells_frame(base: DataFrame, columns: dict[int, TypedExpression], domain: Domain) -> DataFrame:
    """The non-null cells of a domain in the long form (ROW, column, value)."""
    target = spark_type(domain, list(columns.values()))
    cells = []
    for k, column in columns.items():
        value = plain_value(column.expression.cast(target), domain)
        cells.append(f.struct(f.lit(k).cast("smallint").alias("column"), value.alias("value")))
    long = base.select(f.col(ROW), f.explode(f.array(*cells)).alias("cell"))
    return long.where(f.col("cell.value").isNotNull()).select(ROW, "cell.column", "cell.value")


def plain_value(value: SparkColumn, domain: Domain) -> SparkColumn:
    """The value as stored in dictionaries, with one zero and one NaN."""
    return f.when(f.isnan(value), float("nan")).otherwise(value + 0.0) if domain == "double" else value


def spark_type(domain: Domain, columns: list[TypedExpression]) -> str:
    if domain != "number":
        return {"text": "string", "double": "double", "date": "date", "timestamp": "timestamp", "boolean": "boolean"}[
            domain
        ]
    if all(c.scale is None for c in columns):
        return "bigint"
    scale = max(c.scale or 0 for c in columns)
    if max(c.whole for c in columns) + scale > MOST_DIGITS:
        raise NotInSpark(f"the numbers of the table together need more than {MOST_DIGITS} digits")
    return f"decimal({MOST_DIGITS},{scale})"


def dictionary_frame(cells: DataFrame) -> DataFrame:
    """The distinct values of a domain, ascending, in range partitions."""
    return cells.select("value").distinct().orderBy("value")


def codes_frame(cells: DataFrame, dictionary: pa.Array) -> DataFrame:
    """(ROW, column, code) of each cell. `dictionary`: the result of `dictionary_frame`, ascending."""
    value = f.col("value")
    size = max(1, -(-len(dictionary) // max(2, min(MOST_BUCKETS, -(-len(dictionary) // BUCKET_VALUES)))))
    bucket = f.lit(0)
    for start in range(size, len(dictionary), size):
        bucket = bucket + (value >= literal_of(dictionary[start])).cast("int")
    within = Window.partitionBy("bucket").orderBy("value")
    ranked = (
        cells.select("value")
        .distinct()
        .withColumn("bucket", bucket)
        .select("value", (f.row_number().over(within) - 1 + f.col("bucket") * size).alias("code"))
    )
    return cells.join(ranked, "value").select(ROW, "column", "code")


def literal_of(scalar: pa.Scalar) -> SparkColumn:
    if pa.types.is_timestamp(scalar.type):
        return f.timestamp_micros(f.lit(scalar.cast(pa.timestamp("us", tz="UTC")).value))
    if pa.types.is_date(scalar.type):
        return f.date_from_unix_date(f.lit(scalar.value))
    if pa.types.is_decimal(scalar.type):
        return f.lit(str(scalar.as_py())).cast(f"decimal({MOST_DIGITS},{scalar.type.scale})")
    return f.lit(scalar.as_py())


def plain_dictionary(domain: Domain, values: pa.Array) -> pa.Array:
    """The dictionary in the Arrow type that encoding in this process uses."""
    if domain == "text":
        return values.cast(pa.large_string())
    if domain == "timestamp":
        return values.cast(pa.timestamp("us", tz="UTC"))
    return values
