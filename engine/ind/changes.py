"""Inserted and deleted rows of a partitioned state, as cells in Spark: from files, frames and streams."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, message, shortened
from tuplewise.engine.ind.manifest import Manifest
from tuplewise.engine.ind.places import type_for_spark
from tuplewise.engine.ind.rows import Attributes
from tuplewise.engine.ind.state import NOTHING, ReadRows
from tuplewise.engine.ind.values import FAMILIES
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.spark.attribute_values import Cell, cells_of
from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.spark.session import OpenSession
from tuplewise.engine.spark.value_counts import BY, all_of, count_changes, signed, turned
from tuplewise.engine.table.frames import arrow_columns, kind_of
from tuplewise.engine.table.in_spark import ColumnSelection, TableInSpark
from tuplewise.engine.table.raw import Reading
from tuplewise.engine.table.read_table import other_columns
from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.spark_csv import BAD
from tuplewise.engine.table.spark_load import in_session, open_with_spark, spark_failures
from tuplewise.engine.table.spark_source import RawFrame, frame_table
from tuplewise.engine.table.spark_values import TypedFrame, comparable, is_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE = "_change"
"""Column of a changed row with the kind of its change."""
KINDS = ("insert", "delete")


@dataclass(frozen=True, eq=False)
class ChangedCells:
    """Changed rows of a table.

    Attributes
    ----------
    table : number of the table
    rows : growth of the table in rows, negative for deletions
    cells : attribute, KEY, BY
    """

    table: int
    rows: int
    cells: DataFrame


@dataclass(frozen=True, eq=False)
class SparkRows:
    """Rows of a table of a state, in Spark.

    Attributes
    ----------
    count : number of rows
    cells : attribute, KEY, and BY (always 1)
    held : releases what Spark holds of the rows
    """

    count: int
    cells: DataFrame
    held: ExitStack

    def batch(self, table: int, kind: str) -> ChangedCells:
        """The rows as insertions into a table ("insert"), or as deletions."""
        if kind == "insert":
            return ChangedCells(table, self.count, self.cells)
        return ChangedCells(table, -self.count, turned(self.cells))


def batch_cells(batches: Sequence[ChangedCells]) -> DataFrame:
    """The cells of all batches, which belong to one session."""
    cells = batches[0].cells
    for batch in batches[1:]:
        cells = cells.unionAll(batch.cells)
    return cells


def rows_in_spark(
    spark: SparkSession, manifest: Manifest, source: Any, attributes: Attributes, options: LoadOptions
) -> ReadRows:
    """Rows for a table of a state, in Spark, from a path, or a pandas, Polars, Arrow or Spark frame.

    Raises InputError if columns are missing or unknown, or a value doesn't fit.
    """
    name = manifest.tables[attributes.table].name
    kind = kind_of(source)
    if kind in ("pandas", "polars", "arrow"):
        source, kind = _frame_here(spark, source, kind), "spark"
    elif kind is None and not isinstance(source, (str, os.PathLike)):
        allowed = "a path, or a pandas, Polars, Arrow or Spark DataFrame"
        raise InputError(message("rows of this type can't be read by Spark", type(source).__name__, allowed))
    target = source if kind is not None else os.fspath(source)
    plain = replace(options, null_tokens=manifest.null_tokens, types={})
    opened = open_with_spark(target, kind, plain, name, spark, lambda step: None, large=True)
    given = [opened.selection.names[i] for i in opened.selection.kept]
    if sorted(given) != sorted(attributes.names):
        raise other_columns(f"the rows of table {name!r}", given, attributes.names)
    selection = replace(opened.selection, overrides=_types(manifest, attributes))
    opened = replace(opened, raw=_read_texts(opened.raw), selection=selection)
    with ExitStack() as held:
        typed = _typed(opened, manifest.options.as_text, held)
        cells = in_session(_cells(replace(typed, base=all_of(typed.base, 1)), given, attributes), spark)
        rows: Any = SparkRows(typed.rows, cells, held.pop_all())
    return ReadRows(attributes, rows, tuple(typed.notes))


def _frame_here(spark: SparkSession, source: Any, kind: str) -> DataFrame:
    import pyarrow as pa

    names, _, column_of = arrow_columns(source, kind)
    with spark_failures("changes"):
        return frame_of(spark, pa.table([column_of(i)[0] for i in range(len(names))], names=names))


def _types(manifest: Manifest, attributes: Attributes) -> dict[str, TypeName]:
    """The types to parse text as, by column."""
    return {} if manifest.options.as_text else dict(zip(attributes.names, attributes.types, strict=True))


def frame_cells(manifest: Manifest, frame: DataFrame, attributes: Attributes, held: ExitStack) -> ChangedCells:
    """The rows of a frame of changes: the columns of the table and CHANGE. See `partitioned.foreach_batch`."""
    table = manifest.tables[attributes.table].name
    has_bad = BAD in frame.columns
    given = [name for name in frame.columns if name not in (CHANGE, BAD)]
    if CHANGE not in frame.columns or sorted(given) != sorted(attributes.names):
        there = [name for name in frame.columns if name != BAD]
        raise other_columns(f"the batch of table {table!r}", there, [*attributes.names, CHANGE])
    frame = frame.persist()
    held.callback(frame.unpersist)
    with spark_failures("changes"):
        (inserted, deleted), odd = count_changes(frame, CHANGE, KINDS)
        if has_bad:
            _refuse_bad(frame, table)
    if odd is not None:
        raise InputError(message(f"table {table!r}, column {CHANGE!r}", odd, "'insert' or 'delete'", NOTHING))
    opened = _opened(frame, given, attributes, manifest, table)
    typed = _typed(opened, manifest.options.as_text, held)
    cells = _cells(replace(typed, base=signed(typed.base, CHANGE)), given, attributes)
    return ChangedCells(attributes.table, inserted - deleted, cells)


def _refuse_bad(frame: DataFrame, table: str) -> None:
    """Raise InputError if a record's number of fields differs from the number of columns."""
    bad = frame.where(f"{BAD} is not null").select(BAD).toArrow()[BAD].to_pylist()
    if bad:
        hint = f"A record has the table's columns in their order, then {CHANGE}. {NOTHING}"
        what = f"table {table!r}: {len(bad)} records of the batch have another number of fields"
        raise InputError(message(what, shortened(min(bad)), hint=hint))


def _opened(frame: DataFrame, given: list[str], attributes: Attributes, manifest: Manifest, table: str) -> TableInSpark:
    """A frame of changes as an opened table. Text is parsed as the type of its column."""
    spark = frame.sparkSession
    whole = frame_table(frame.select(*(_quoted(name) for name in given)), "Spark")
    plain = frame.select(*(frame[_quoted(name)].alias(f"c{i}") for i, name in enumerate(given)), frame[CHANGE])
    raw = _read_texts(RawFrame(plain, given, whole.readings, whole.labels, (), None, True, []))
    selection = ColumnSelection(list(range(len(given))), given, _types(manifest, attributes), [])
    options = LoadOptions(null_tokens=manifest.null_tokens)
    session = OpenSession(spark, False, 0.0, spark.version, spark.sparkContext.master)
    return TableInSpark(raw, selection, options, table, None, session, 0, {"session": 0.0, "load": 0.0, "encode": 0.0})


def _read_texts(raw: RawFrame) -> RawFrame:
    """A table with text parsed as the requested types, even text that is of type text in its source."""
    readings: list[Reading] = [
        "infer" if reading == "typed" and is_text(raw.frame.schema[f"c{i}"].dataType) else reading
        for i, reading in enumerate(raw.readings)
    ]
    return replace(raw, readings=readings)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _typed(opened: TableInSpark, as_text: bool, held: ExitStack) -> TypedFrame:
    hint = f"Give it as the type that the column has in the state, or as text. {NOTHING}"
    typed = type_for_spark(opened, as_text, hint)
    held.callback(typed.close)
    return typed


def _cells(typed: TypedFrame, given: Sequence[str], attributes: Attributes) -> DataFrame:
    cells = []
    for name, column in zip(given, typed.typed, strict=True):
        place = attributes.names.index(name)
        form, value = comparable(column, wide=True)
        cells.append(Cell(attributes.first + place, FAMILIES.index(attributes.families[place]), form, value))
    return cells_of(typed.base, cells, BY)


def shown_value(row: Mapping[str, Any], type_: TypeName) -> str:
    """A value as its column writes it. `row` has KEY."""
    if row["text"] is not None:
        return str(row["text"])
    if row["real"] is not None:
        return repr(row["real"])
    whole = int(row["whole"])
    if type_ == "boolean":
        return "true" if whole else "false"
    if type_ not in ("date", "timestamp"):
        return str(whole)
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=whole)
    return at.date().isoformat() if type_ == "date" else at.isoformat()
