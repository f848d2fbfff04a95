"""Encoding in Spark: codes that come here, or that stay there, for tables that one machine doesn't hold."""

from __future__ import annotations

import contextlib
import decimal
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.spark.missing_values import column_counts
from tuplewise.engine.table.encode import TypedColumn, encode, indexed
from tuplewise.engine.table.relation import NULL_CODE, Column, Domain, Relation
from tuplewise.engine.table.spark_encode import (
    TypedExpression,
    cells_frame,
    codes_frame,
    dictionary_frame,
    plain_dictionary,
    plain_value,
    spark_type,
)
from tuplewise.engine.table.spark_ranks import MOST_CODES, WIDE, RangeOfValues, rank_values
from tuplewise.engine.table.spark_rows import ROW, RowRuns
from tuplewise.engine.table.spark_values import TypedFrame, type_frame

if TYPE_CHECKING:
    from tuplewise.engine.table.in_spark import TableInSpark

POSITION = "position"
_COUNTABLE = ("number", "date", "boolean")
_MOST_DIGITS = 37  # one less than decimals have: the difference of two takes one more
_MOST_SCALE = 17  # with it a difference times its scale has 38 digits
_CODE_DIGITS = 10
_PARTITION_BITS = 33  # of a row id, below the number of the partition


@dataclass(eq=False)
class EncodedFrame:
    """A table as codes in Spark.

    Attributes
    ----------
    frame : persisted; columns `position` (bigint) and c0, c1, ... (int): the codes of each column to compare, named by
        its place in `header`. As in a Relation, codes keep order and equality within a domain, and null is -1; but they
        need not be dense.
    header : all columns, including those that are only shown, as a Relation without rows. Its dictionaries are not
        Arrow arrays: they have a length and return single values.
    rows : rows of the table
    """

    frame: DataFrame
    header: Relation
    rows: int
    _typed: list[TypedExpression]
    _base: DataFrame
    _places: RowRuns
    _held: list[DataFrame] = field(default_factory=list)

    def excerpt(self, positions: NDArray[np.int64]) -> Relation:
        """The rows at these positions (ascending) as a Relation with values."""
        ids = self._places.ids(positions) if len(positions) else positions
        values = [c.expression.alias(f"v{i}") for i, c in enumerate(self._typed)]
        found = self._base.where(f.col(ROW).isin(ids.tolist())).select(ROW, *values).toArrow()
        order = np.argsort(self._places.places(np.asarray(found[ROW].to_numpy(), dtype=np.int64)))
        columns = []
        for i, described in enumerate(self.header.columns):
            array = plain_dictionary(described.domain, found[f"v{i}"].combine_chunks().take(order))
            columns.append(TypedColumn(described.name, described.type, described.why, *indexed(array)))
        codes, dictionaries, _ = encode(columns, len(order))
        return replace(self.header, codes=codes, dictionaries=dictionaries, positions=positions)

    def values(self, names: Mapping[str, str]) -> DataFrame:
        """The values of some columns beside `position`, for every row. `names`: from column name to result name."""
        chosen = [self._typed[self.header.index_of(n)].expression.alias(alias) for n, alias in names.items()]
        return _with_positions(self._base, self._places).select(POSITION, *chosen)

    def close_with(self, owner: object) -> None:
        """Close the frame when an object is deleted. At the end of the process Spark ends anyway."""
        weakref.finalize(owner, _close, self, os.getpid()).atexit = False

    def close(self) -> None:
        """Let Spark drop what it holds."""
        for frame in self._held:
            frame.unpersist()
        self._held.clear()


def encode_in_spark(opened: TableInSpark, report: Callable[[str], None]) -> Relation:
    """Encode an open table in Spark, and collect codes and dictionaries.

    Raises NotInSpark if a column can only be encoded in this process.

    Notes
    -----
    Each domain takes two jobs. The first sorts its distinct values in range partitions and collects them. The second
    joins the cells with their ranks in the long form (row, column, code), so that one shuffle serves all columns.
    Ranks are counted within buckets of values whose bounds come from the dictionary, so they don't depend on how Spark
    partitions. Cost: one shuffle of the cells of a domain (none if the dictionary is small enough to be broadcast), and
    14 bytes a cell to the driver.
    """
    begin = time.perf_counter()
    table = type_frame(opened, report)
    with closing(table):
        loaded = time.perf_counter()
        opened.timings["load"] += loaded - begin
        report("encoding")
        kept = np.ones(table.places.total, dtype=np.bool_)
        kept[table.places.total if opened.options.rows is None else opened.options.rows :] = False
        kept[table.bad] = False
        positions = np.flatnonzero(kept)
        codes, dictionaries = _collect_codes(table, positions)
    columns = tuple(
        Column(name, c.type, c.why, _distinct(row), int(np.count_nonzero(row == NULL_CODE)))
        for name, c, row in zip(opened.column_names, table.typed, codes, strict=True)
    )
    codes.setflags(write=False)
    opened.timings["encode"] = time.perf_counter() - loaded
    plain = not table.rows or int(positions[-1]) == table.rows - 1
    return Relation(
        opened.name, opened.path, columns, codes, dictionaries, None if plain else positions, tuple(table.notes),
        opened.timings,
    )  # fmt: skip


def _distinct(codes: NDArray[np.int32]) -> int:
    return int(np.count_nonzero(np.bincount(codes + 1)[1:]))


def _collect_codes(table: TypedFrame, positions: NDArray[np.int64]) -> tuple[NDArray[np.int32], dict[Domain, Any]]:
    """The codes, int32 (columns, rows), of the rows at some positions, and dictionaries."""
    codes = np.full((len(table.typed), len(positions)), NULL_CODE, dtype=np.int32)
    dictionaries: dict[Domain, Any] = {}
    for domain, columns in _domains(dict(enumerate(table.typed))).items():
        cells = cells_frame(table.base, columns, domain)
        dictionary = dictionary_frame(cells).toArrow()["value"].combine_chunks()
        dictionaries[domain] = plain_dictionary(domain, dictionary)
        if len(dictionary) == 0:
            continue
        found = codes_frame(cells, dictionary).toArrow()
        place = table.places.places(np.asarray(found[ROW].to_numpy(), dtype=np.int64))
        if len(positions) != table.places.total:
            place = np.searchsorted(positions, place)
        codes[found["column"].to_numpy(), place] = found["code"].to_numpy()
    return codes, dictionaries


def _domains(typed: Mapping[int, TypedExpression]) -> dict[Domain, dict[int, TypedExpression]]:
    """The columns of each domain."""
    found: dict[Domain, dict[int, TypedExpression]] = {}
    for k, column in typed.items():
        found.setdefault(column.domain, {})[k] = column
    return found


def encode_as_frame(
    opened: TableInSpark, names: Sequence[str], report: Callable[[str], None], *, shown: Sequence[str] = ()
) -> EncodedFrame:
    """Encode some columns of an open table, in the table's order. Nothing that grows with its rows is collected.

    `shown`: further columns whose values are shown, but not compared.

    Raises
    ------
    NotInSpark : if a column can only be encoded in this process

    Notes
    -----
    Numbers, dates and booleans whose range, in units of the last digit, fits 32 bits need no dictionary and no shuffle:
    the code is the value minus the lowest one. Other cells take two shuffles in the long form (row, column, value), to
    the ranks of their values and back to their rows.
    """
    begin = time.perf_counter()
    kept = [i for i in opened.selection.kept if opened.selection.names[i] in {*names, *shown}]
    called = [opened.selection.names[i] for i in kept]
    table = type_frame(opened, report, kept=kept)
    base, typed, places, held = table.base, table.typed, table.places, table.held
    try:
        loaded = time.perf_counter()
        report("encoding")
        coded = {k: typed[k] for k, name in enumerate(called) if name in names}
        frame, dictionaries = _encode(base, coded, places, held)
        frame = frame.persist()
        held.append(frame)
        counts = _count_codes(frame, list(coded))
        others = {k: plain_value(c.expression, c.domain) for k, c in enumerate(typed) if k not in coded}
        if others:
            found = column_counts(base, list(others.values()))
            counts |= {k: (distinct, table.rows - there) for k, (distinct, there) in zip(others, found, strict=True)}
        columns = tuple(
            Column(name, c.type, c.why, *counts[k]) for k, (name, c) in enumerate(zip(called, typed, strict=True))
        )
    except BaseException:
        table.close()
        raise
    timings = {
        "session": opened.timings["session"],
        "load": opened.timings["load"] + loaded - begin,
        "encode": time.perf_counter() - loaded,
    }
    header = Relation(
        opened.name,
        opened.path,
        columns,
        np.zeros((len(columns), 0), dtype=np.int32),
        dictionaries,
        np.zeros(0, dtype=np.int64),
        tuple(table.notes),
        timings,
        {"version": opened.session.version, "master": opened.session.master},
        reader=opened.reader,
    )
    return EncodedFrame(frame, header, table.rows, typed, base, places, held)


def _close(table: EncodedFrame, process: int) -> None:
    if os.getpid() == process:  # a forked one has no share in the session
        with contextlib.suppress(Exception):  # the session may be gone
            table.close()


def _with_positions(base: DataFrame, places: RowRuns) -> DataFrame:
    """The rows with their positions: the place of the split plus the number of the row within it.

    Ids start with the number of their partition, which holds few splits: a broadcast join by it moves no rows.
    """
    splits = pa.table(
        {
            "_partition": places.first >> _PARTITION_BITS,
            "_first": places.first,
            "_last": places.first + places.count - 1,
            "_move": places.offset - places.first,
        }
    )
    known = f.broadcast(frame_of(base.sparkSession, splits))
    inside = f.col(ROW).between(f.col("_first"), f.col("_last"))
    joined = base.join(known, (f.shiftright(f.col(ROW), _PARTITION_BITS) == f.col("_partition")) & inside)
    return joined.select(*base.columns, (f.col(ROW) + f.col("_move")).alias(POSITION))


def _encode(
    base: DataFrame, typed: Mapping[int, TypedExpression], places: RowRuns, held: list[DataFrame]
) -> tuple[DataFrame, dict[Domain, Any]]:
    """The frame of codes, and a dictionary for each domain."""
    domains = _domains(typed)
    values = {domain: _numbers(domain, columns) for domain, columns in domains.items() if domain in _COUNTABLE}
    ranges = _ranges(base, values, typed)
    dictionaries: dict[Domain, Any] = {}
    plain: dict[int, SparkColumn] = {}
    long: DataFrame | None = None
    for domain, columns in domains.items():
        if domain in ranges:
            dictionaries[domain] = ranges[domain]
            for k, value in values[domain].items():
                plain[k] = f.coalesce(_code_in(ranges[domain], value), f.lit(NULL_CODE))
            continue
        cells = cells_frame(base, columns, domain)
        ranked = rank_values(cells, domain)
        held.append(ranked.held)
        dictionaries[domain] = ranked
        coded = cells.join(ranked.frame, "value").select(ROW, "column", "code")
        long = coded if long is None else long.unionAll(coded)
    frame = _with_positions(base, places).select(ROW, POSITION, *(plain[k].alias(f"c{k}") for k in sorted(plain)))
    if long is not None:
        others = [k for k in typed if k not in plain]
        code = f.col("code")
        wide = [f.max(f.when(f.col("column") == k, code)).alias(f"w{k}") for k in others]
        frame = frame.join(long.groupBy(ROW).agg(*wide), ROW, "left")
        filled = [f.coalesce(f"w{k}", f.lit(NULL_CODE)).alias(f"c{k}") for k in others]
        frame = frame.select(POSITION, *(f"c{k}" for k in sorted(plain)), *filled)
    return frame.select(POSITION, *(f"c{k}" for k in typed)), dictionaries


def _numbers(domain: Domain, columns: dict[int, TypedExpression]) -> dict[int, SparkColumn]:
    """The columns of a countable domain as numbers of one type: dates as days, booleans as 0 and 1."""
    target = spark_type(domain, list(columns.values()))
    values = {k: c.expression.cast(target) for k, c in columns.items()}
    if domain == "number":
        return values
    return {k: (f.unix_date(v) if domain == "date" else v).cast("int") for k, v in values.items()}


def _ranges(
    base: DataFrame, values: dict[Domain, dict[int, SparkColumn]], typed: Mapping[int, TypedExpression]
) -> dict[Domain, RangeOfValues]:
    """The domains whose range of values, in units of the last digit, fits a code. One job."""
    if not values:
        return {}
    extremes = []
    for own in values.values():
        extremes += [f.min(_of_row(f.least, own)), f.max(_of_row(f.greatest, own))]
    found = base.agg(*extremes).collect()[0]
    ranges: dict[Domain, RangeOfValues] = {}
    for place, domain in enumerate(values):
        scales = [typed[k].scale for k in values[domain]]
        scale = max((s for s in scales if s is not None), default=None) if domain == "number" else None
        if found[2 * place] is None:
            ranges[domain] = RangeOfValues(0, 0, domain, scale)
            continue
        low, high = (_in_units(value, scale or 0) for value in found[2 * place : 2 * place + 2])
        short = len(str(max(abs(low), abs(high)))) <= _MOST_DIGITS and (scale or 0) <= _MOST_SCALE
        if short and high - low < MOST_CODES:
            ranges[domain] = RangeOfValues(low, high - low + 1, domain, scale)
    return ranges


def _of_row(extreme: Callable[..., SparkColumn], columns: dict[int, SparkColumn]) -> SparkColumn:
    """The lowest or highest non-null value of a row; `least` and `greatest` need at least two arguments."""
    return extreme(*columns.values()) if len(columns) > 1 else next(iter(columns.values()))


def _in_units(value: int | decimal.Decimal, scale: int) -> int:
    """A number in units."""
    return int(value.scaleb(scale, WIDE)) if isinstance(value, decimal.Decimal) else value


def _code_in(values: RangeOfValues, value: SparkColumn) -> SparkColumn:
    """The distance of a number from the lowest one, in units."""
    if values.scale is None:
        return (value - f.lit(values.low).cast("bigint")).cast("int")
    scale = values.scale
    digits = max(scale, *(len(str(abs(v))) for v in (values.low, values.low + values.length)))
    low = f.lit(str(decimal.Decimal(values.low).scaleb(-scale, WIDE))).cast(f"decimal({digits},{scale})")
    above = (value.cast(f"decimal({digits},{scale})") - low).cast(f"decimal({max(scale, _CODE_DIGITS) + 1},{scale})")
    return (above * f.lit(10**scale).cast(f"decimal({scale + 1},0)")).cast("int")


def _count_codes(frame: DataFrame, columns: list[int]) -> dict[int, tuple[int, int]]:
    """Distinct values and nulls of encoded columns. One job."""
    if not columns:
        return {}
    cells = [f.struct(f.lit(k).alias("column"), f.col(f"c{k}").alias("code")) for k in columns]
    long = frame.select(f.explode(f.array(*cells)).alias("cell")).select("cell.column", "cell.code")
    each = long.groupBy("column", "code").count().groupBy("column")
    values = f.count(f.when(f.col("code") != NULL_CODE, 1))
    nulls = f.sum(f.when(f.col("code") == NULL_CODE, f.col("count")).otherwise(0))
    found = {row[0]: (row[1], row[2]) for row in each.agg(values, nulls).collect()}
    return {k: found.get(k, (0, 0)) for k in columns}
