"""Tables that stay in Spark: typed rows, and values in forms that can be compared across tables and types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.types import DataType

from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.spark_encode import NotInSpark, TypedExpression, kept_frame, plain_value, type_columns
from tuplewise.engine.table.spark_rows import ROW, RowRuns, find_rows
from tuplewise.engine.table.spark_source import RawFrame, readable
from tuplewise.engine.table.typing_columns import ASKED_FOR

if TYPE_CHECKING:
    from tuplewise.engine.table.in_spark import TableInSpark

Form = Literal["text", "whole", "real"]
"""The form of a value: text of any length, a 64-bit integer, or a double."""
_DAY_MICROSECONDS = 86_400_000_000


@dataclass(eq=False)
class TypedFrame:
    """The rows of a table that stay in Spark, and the expressions of its columns' values.

    Attributes
    ----------
    base : the selected rows, with their ids in ROW
    typed : type and expression of each selected column
    places : the places of the rows, those that were left out included
    bad : int64, ascending: the places of malformed rows
    rows : number of rows
    notes : on columns and rows, those of the selection first
    """

    base: DataFrame
    typed: list[TypedExpression]
    places: RowRuns
    bad: NDArray[np.int64]
    rows: int
    notes: list[str]
    held: list[DataFrame] = field(default_factory=list)

    def close(self) -> None:
        """Let Spark drop what it holds."""
        for frame in self.held:
            frame.unpersist()
        self.held.clear()


def type_frame(
    opened: TableInSpark, report: Callable[[str], None], *, kept: Sequence[int] | None = None, as_text: bool = False
) -> TypedFrame:
    """Find the types of an open table in Spark.

    Parameters
    ----------
    kept : indexes of the columns to use, among those of the selection; None: all
    as_text : use the text of every value; in typed sources, the text that Spark casts it to

    Raises
    ------
    NotInSpark : if a column can only be typed in this process

    Notes
    -----
    One job counts rows, one infers the types of all text columns.
    """
    raw = opened.raw
    selection = opened.selection if kept is None else replace(opened.selection, kept=list(kept))
    report("counting rows")
    held: list[DataFrame] = []
    base = raw.frame.withColumn(ROW, f.monotonically_increasing_id())
    if not raw.files:  # nothing says that the plan of a caller's frame gives the same rows twice in the same order
        base = base.persist()
        held.append(base)
    try:
        places = find_rows(base, bool(raw.files))
        base, bad, bad_note = kept_frame(raw, base, places, opened.options)
        rows = min(places.total, places.total if opened.options.rows is None else opened.options.rows) - len(bad)
        report("finding types")
        notes: list[str] = []
        if as_text:
            typed = [text_of(raw, i, selection.names[i], opened.options) for i in selection.kept]
        else:
            typed, notes = type_columns(raw, selection, base, opened.options, places)
    except BaseException:
        for one in held:
            one.unpersist()
        raise
    notes = [*selection.notes, *([bad_note] if bad_note else []), *notes]
    return TypedFrame(base, typed, places, bad, rows, notes, held)


def text_of(raw: RawFrame, i: int, name: str, options: LoadOptions) -> TypedExpression:
    """A column's values as text; floats are cast to double first.

    Raises NotInSpark for timestamps that Spark reads as integers.
    """
    if raw.readings[i] == "nanoseconds":
        raise NotInSpark(f"column {name!r} must be converted from {raw.labels[i]}")
    type_ = raw.frame.schema[f"c{i}"].dataType
    column, _ = readable(name, f.col(f"c{i}"), type_)
    if isinstance(type_, t.FloatType):
        column = column.cast("double")
    text = column.cast("string")
    if options.null_tokens and is_text(type_):
        text = f.when(~text.isin(list(options.null_tokens)), text)
    return TypedExpression("text", ASKED_FOR, text)


def is_text(type_: DataType) -> bool:
    """Whether values of a type are text."""
    return isinstance(type_, (t.StringType, t.CharType, t.VarcharType))


def comparable(column: TypedExpression, *, wide: bool) -> tuple[Form, SparkColumn]:
    """A value in the form in which equal values of all types of its family are equal.

    Numbers are integers or, with `wide`, text of plain digits without redundant zeros, so that numbers of any scale are
    compared exactly. Dates and timestamps are microseconds; a date is its midnight in UTC. Booleans are 0 and 1.
    Doubles have one zero and one NaN.
    """
    value = column.expression
    if column.type in ("integer", "decimal"):
        if not wide:
            return "whole", value.cast("bigint")
        return "text", plain_number(value.cast("string"), fractions=column.scale != 0 and column.scale is not None)
    if column.type == "double":
        return "real", plain_value(value, "double")
    if column.type == "date":
        return "whole", f.unix_date(value).cast("bigint") * f.lit(_DAY_MICROSECONDS).cast("bigint")
    if column.type == "timestamp":
        return "whole", f.unix_micros(value.cast("timestamp"))
    if column.type == "boolean":
        return "whole", value.cast("bigint")
    return "text", value


def needs_wide(typed: Sequence[TypedExpression]) -> bool:
    """Whether some columns need more than 64-bit integers for their numbers."""
    return any(c.type in ("integer", "decimal") and c.scale is not None for c in typed)


def plain_number(text: SparkColumn, *, fractions: bool = True) -> SparkColumn:
    """The shortest text of a number that is written as digits, with or without sign and point.

    Without `fractions` it is the text itself, as Spark writes integers.
    """
    if not fractions:
        return text
    whole = f.ltrim(f.ltrim(f.substring_index(text, ".", 1), f.lit("+-")), f.lit("0"))
    fraction = f.when(text.contains("."), f.rtrim(f.substring_index(text, ".", -1), f.lit("0"))).otherwise("")
    front = f.when(whole == "", "0").otherwise(whole)
    digits = f.when(fraction == "", front).otherwise(f.concat(front, f.lit("."), fraction))
    return f.when(text.startswith("-") & (digits != "0"), f.concat(f.lit("-"), digits)).otherwise(digits)
