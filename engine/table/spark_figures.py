"""Statistics of the columns of a table whose codes stay in Spark, for building and ranking predicate spaces.

They equal those of this process exactly. At most the distinct values of a few columns are collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.table.relation import NULL_CODE, Domain
from tuplewise.engine.table.spark_encode import plain_dictionary
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.engine.table.spark_ranks import RangeOfValues, RankedValues, rank_values


@dataclass(frozen=True)
class CountedValues:
    """The values of a column, ascending, and how many rows hold each (int64)."""

    values: pa.Array
    counts: NDArray[np.int64]


def shared_distinct(table: EncodedFrame, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number of distinct non-null values that two columns of one domain share; int64 (pairs,).

    One job: it finds the set of columns of each value and counts the values with the same set.
    """
    used = np.unique(np.concatenate((left, right))).tolist()
    if not used:
        return np.zeros(len(left), dtype=np.int64)
    number = {domain: i for i, domain in enumerate(sorted({table.header.columns[k].domain for k in used}))}
    long = _long(table.frame, used, {k: number[table.header.columns[k].domain] for k in used})
    holding = [f.max(f.when(f.col("column") == k, 1).otherwise(0)).alias(f"h{k}") for k in used]
    values = long.where(f.col("code") != NULL_CODE).groupBy("domain", "code").agg(*holding)
    held = values.groupBy(*(f"h{k}" for k in used)).count().toArrow()
    counts = np.asarray(held["count"].to_numpy(), dtype=np.int64)
    within = {k: held[f"h{k}"].to_numpy() == 1 for k in used}
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return np.array([counts[within[a] & within[b]].sum() for a, b in pairs], dtype=np.int64)


def _long(frame: DataFrame, columns: Sequence[int], domains: dict[int, int]) -> DataFrame:
    """(domain, column, code) of each cell."""
    cells = [
        f.struct(f.lit(domains[k]).alias("domain"), f.lit(k).alias("column"), f.col(f"c{k}").alias("code"))
        for k in columns
    ]
    return frame.select(f.explode(f.array(*cells)).alias("cell")).select("cell.domain", "cell.column", "cell.code")


def means_of_ranges(table: EncodedFrame, columns: Sequence[int]) -> dict[int, Fraction]:
    """Exact means of non-empty numeric columns whose codes are numbers themselves. One job."""
    ranges: dict[int, RangeOfValues] = {}
    for k in columns:
        dictionary: Any = table.header.dictionaries[table.header.columns[k].domain]
        if isinstance(dictionary, RangeOfValues):
            ranges[k] = dictionary
    if not ranges:
        return {}
    given = {k: f.when(f.col(f"c{k}") != NULL_CODE, f.col(f"c{k}").cast("bigint")) for k in ranges}
    found = table.frame.agg(*(x for v in given.values() for x in (f.sum(v), f.count(v)))).collect()[0]
    means = {}
    for i, (k, values) in enumerate(ranges.items()):
        total, rows = found[2 * i], found[2 * i + 1]
        if rows:
            means[k] = (values.low + Fraction(total, rows)) / 10 ** (values.scale or 0)
    return means


def ranked_values(table: EncodedFrame, column: int) -> CountedValues | None:
    """The values of a column whose codes are ranks, with the rows of each, for an exact sum.

    None if the codes aren't ranks. Collects 16 bytes a distinct value, 24 for decimals.
    """
    dictionary: Any = table.header.dictionaries[table.header.columns[column].domain]
    if not isinstance(dictionary, RankedValues):
        return None
    code = f.col(f"c{column}")
    rows = table.frame.where(code != NULL_CODE).groupBy(code.alias("code")).agg(f.count("*").alias("n"))
    found = dictionary.frame.join(rows, "code").select("code", "value", "n").toArrow().sort_by("code")
    return CountedValues(found["value"].combine_chunks(), np.asarray(found["n"].to_numpy(), dtype=np.int64))


def value_counts(table: EncodedFrame, column: int, *, nulls: bool) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The codes of a column, ascending, and the rows of each. `nulls`: null counts as a value. Collects 12 bytes a
    distinct value."""
    rows = table.frame.groupBy(f.col(f"c{column}").alias("code")).agg(f.count("*").alias("n"))
    found = (rows if nulls else rows.where(f.col("code") != NULL_CODE)).toArrow().sort_by("code")
    return np.asarray(found["code"].to_numpy(), dtype=np.int32), np.asarray(found["n"].to_numpy(), dtype=np.int64)


def equal_pairs(table: EncodedFrame, *, nulls: bool) -> dict[int, tuple[int, int]]:
    """For each column the number of rows with a value, and of ordered pairs of rows with equal values (a row and itself
    count). `nulls`: null is a value. One job."""
    columns = range(len(table.header.columns))
    if not columns:
        return {}
    long = _long(table.frame, columns, dict.fromkeys(columns, 0))
    each = (long if nulls else long.where(f.col("code") != NULL_CODE)).groupBy("column", "code").count()
    found = each.groupBy("column").agg(f.sum("count"), f.sum(f.col("count") * f.col("count"))).collect()
    return dict.fromkeys(columns, (0, 0)) | {row[0]: (int(row[1]), int(row[2])) for row in found}


@dataclass(frozen=True, eq=False)
class ValueFigures:
    """The distribution of a column's rows over its values, without nulls.

    Attributes
    ----------
    rows, squares : sum of the values' rows, and sum of their squares
    low, high : lowest and highest code, -1 if there is none
    best : codes of the most frequent values with their rows; among equals, the lowest first
    """

    rows: int = 0
    squares: int = 0
    low: int = NULL_CODE
    high: int = NULL_CODE
    best: tuple[tuple[int, int], ...] = ()


def value_figures(frame: DataFrame, columns: int, most: int) -> list[ValueFigures]:
    """The figures of each column c0, c1, ... of a frame, with its `most` most frequent values. One job, with a shuffle
    of all cells."""
    long = _long(frame, range(columns), dict.fromkeys(range(columns), 0)).where(f.col("code") != NULL_CODE)
    counted = long.groupBy("column", "code").agg(f.count("*").alias("rows")) if columns else long
    schema = "column int, code int, rows bigint, all_rows bigint, squares bigint, low int, high int"
    found = counted.mapInArrow(partial(_summed, most=most), schema).collect() if columns else []
    parts: dict[int, list[Any]] = {}
    for column, *own in found:
        parts.setdefault(column, []).append(own)
    return [_merged(parts.get(c, []), most) for c in range(columns)]


def _summed(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The figures of a part of the values, in the first line for each column, and its most frequent values."""
    given = list(batches)
    if not given:
        return
    table = pa.Table.from_batches(given)
    lines = []
    for column in pc.unique(table["column"]).to_pylist():
        own = table.filter(pc.equal(table["column"], column))
        codes, rows = (own[name].to_numpy() for name in ("code", "rows"))
        best = np.lexsort((codes, -rows))[:most]
        figures = [int(rows.sum()), int(np.dot(rows, rows)), int(codes.min()), int(codes.max())]
        for i, place in enumerate(best.tolist()):
            lines.append((column, int(codes[place]), int(rows[place]), *(figures if i == 0 else [0, 0, *figures[2:]])))
    if lines:  # batches may be empty
        names = ["column", "code", "rows", "all_rows", "squares", "low", "high"]
        types = [pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.int32(), pa.int32()]
        columns = zip(zip(*lines, strict=True), types, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(values, type_) for values, type_ in columns], names=names)


def _merged(parts: Sequence[Sequence[int]], most: int) -> ValueFigures:
    if not parts:
        return ValueFigures()
    codes, rows, all_rows, squares, low, high = zip(*parts, strict=True)
    best = sorted(zip(codes, rows, strict=True), key=lambda entry: (-entry[1], entry[0]))[:most]
    return ValueFigures(sum(all_rows), sum(squares), min(low), max(high), tuple(best))


def squares_among(frame: DataFrame, requests: Sequence[tuple[Sequence[int], int]]) -> list[tuple[int, int]]:
    """For each (columns, column), over the rows with a value in all of them: their number, and the sum of the squares
    of the rows of each value of the column. One job."""
    cells = []
    for number, (filled, column) in enumerate(requests):
        present = f.expr(" and ".join(f"c{c} <> {NULL_CODE}" for c in {*filled, column}))
        cells.append(f.when(present, f.struct(f.lit(number).alias("number"), f.col(f"c{column}").alias("code"))))
    if not requests:
        return []
    long = frame.select(f.explode(f.array(*cells)).alias("cell")).where("cell is not null")
    each = long.groupBy("cell.number", "cell.code").count().groupBy("number")
    sums = each.agg(f.sum("count"), f.sum(f.col("count") * f.col("count"))).collect()
    found = {row[0]: (int(row[1]), int(row[2])) for row in sums}
    return [found.get(number, (0, 0)) for number in range(len(requests))]


def compare_columns(frame: DataFrame, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int, int, int]]:
    """For two columns of one domain, over the rows with both values: their number, those with a > b, those with a == b;
    and the pairs of an a and a b of any two of these rows with a > b, and with a == b. Two jobs; the second sorts the
    values."""
    if not pairs:
        return []
    counts, cells = [], []
    for number, (a, b) in enumerate(pairs):
        both = f"c{a} <> {NULL_CODE} and c{b} <> {NULL_CODE}"
        counts += [f.count_if(f.expr(f"{both}{more}")) for more in ("", f" and c{a} > c{b}", f" and c{a} = c{b}")]
        for column, sides in ((a, (1, 0)), (b, (0, 1))):
            of_sides = [f.lit(side).cast("bigint").alias(name) for name, side in zip("ab", sides, strict=True)]
            cell = f.struct(f.lit(number).alias("number"), f.col(f"c{column}").alias("code"), *of_sides)
            cells.append(f.when(f.expr(both), cell))
    counted = frame.agg(*counts).collect()[0]
    long = frame.select(f.explode(f.array(*cells)).alias("cell")).where("cell is not null").select("cell.*")
    each = long.groupBy("number", "code").agg(f.sum("a").alias("a"), f.sum("b").alias("b"))
    before = Window.partitionBy("number").orderBy("code").rowsBetween(Window.unboundedPreceding, -1)
    a, b, below = (f.col(name).cast("decimal(18,0)") for name in ("a", "b", "below"))
    each = each.withColumn("below", f.coalesce(f.sum("b").over(before), f.lit(0)))
    sums = {row[0]: row[1:] for row in each.groupBy("number").agg(f.sum(a * below), f.sum(a * b)).collect()}
    return [(*counted[3 * n : 3 * n + 3], *map(int, sums.get(n, (0, 0)))) for n in range(len(pairs))]



def lowest_codes(frame: DataFrame, column: int, most: int) -> NDArray[np.int32]:
    """The lowest codes of a column, ascending, at most `most` of them."""
    code = f.col(f"c{column}").alias("code")
    found = frame.select(code).where(f.col("code") != NULL_CODE).distinct().orderBy("code").limit(most).toArrow()
    return np.asarray(found["code"].to_numpy(), dtype=np.int32)


def codes_at_ranks(frame: DataFrame, column: int, ranks: NDArray[np.int64]) -> NDArray[np.int32]:
    """The codes of a column, ascending, that have given ranks among its distinct codes."""
    value = f.col(f"c{column}").alias("value")
    ranked = rank_values(frame.select(value).where(f.col("value") != NULL_CODE), "number")
    try:
        wanted = f.broadcast(frame_of(frame.sparkSession, pa.table({"code": ranks.astype(np.int32)})))
        found = ranked.frame.join(wanted, "code").toArrow()
    finally:
        ranked.held.unpersist()
    return np.sort(np.asarray(found["value"].to_numpy(), dtype=np.int32))


def bin_values(
    table: EncodedFrame, ends: Mapping[int, tuple[float, float]], bins: int, as_numbers: Callable[[Any], Any]
) -> dict[int, NDArray[np.int64]]:
    """Histograms of some columns: rows in bins of equal width between two ends, int64 (bins,). One job, which reads the
    values once. Values beyond the ends count in the outermost bins, NaN in the last."""
    if not ends:
        return {}
    names = {table.header.columns[k].name: f"v{k}" for k in ends}
    domains = {k: table.header.columns[k].domain for k in ends}
    work = partial(_binned, ends=ends, domains=domains, bins=bins, as_numbers=as_numbers)
    binned = table.values(names).select(*names.values()).mapInArrow(work, "column int, bin int, rows bigint")
    found = {k: np.zeros(bins, dtype=np.int64) for k in ends}
    for column, place, rows in binned.groupBy("column", "bin").agg(f.sum("rows")).collect():
        found[column][place] = rows
    return found


def _binned(
    batches: Iterable[pa.RecordBatch],
    ends: Mapping[int, tuple[float, float]],
    domains: Mapping[int, Domain],
    bins: int,
    as_numbers: Callable[[Any], Any],
) -> Iterator[pa.RecordBatch]:
    found = {k: np.zeros(bins, dtype=np.int64) for k in ends}
    for batch in batches:
        for k in ends:
            values = as_numbers(plain_dictionary(domains[k], batch.column(f"v{k}").drop_null()))
            within = np.fmax(ends[k][0], np.fmin(values, ends[k][1]))
            found[k] += np.histogram(within, bins=bins, range=ends[k])[0]
    columns, places = np.divmod(np.arange(len(ends) * bins), bins)
    rows = np.concatenate(list(found.values()))
    yield pa.RecordBatch.from_arrays(
        [pa.array(np.array(list(ends))[columns], pa.int32()), pa.array(places, pa.int32()), pa.array(rows)],
        names=["column", "bin", "rows"],
    )


def finite_ends(table: EncodedFrame, columns: Sequence[int]) -> dict[int, tuple[float, float]]:
    """The lowest and highest finite value of double columns, if they have any. One job."""
    if not columns:
        return {}
    values = table.values({table.header.columns[k].name: f"v{k}" for k in columns})
    infinite = [float("inf"), float("-inf"), float("nan")]
    kept = {k: f.when(~f.col(f"v{k}").isin(infinite), f.col(f"v{k}")) for k in columns}
    found = values.agg(*(side(kept[k]) for k in columns for side in (f.min, f.max))).collect()[0]
    ends = {k: (found[2 * i], found[2 * i + 1]) for i, k in enumerate(columns)}
    return {k: both for k, both in ends.items() if both[0] is not None}
