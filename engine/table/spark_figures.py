"""Figures about the columns of a table whose codes stay in Spark, from which a predicate space is built and ranked.

The same numbers as in-process, exactly. What comes here grows with the distinct values of few columns at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.table.relation import NULL_CODE
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.engine.table.spark_ranks import RangeOfValues, RankedValues

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class CountedValues:
    """The values of a column, ascending, and how many rows hold each (int64)."""

    values: pa.Array
    counts: NDArray[np.int64]


def shared_distinct(table: EncodedFrame, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
    """Distinct non-null values that two columns of one domain have in common; int64 (pairs,).

    One job: each value of a domain says in which columns it is, and values in the same columns are counted together.
    """
    from pyspark.sql import functions as f

    used = np.unique(np.concatenate((left, right))).tolist()
    if not used:
        return np.zeros(len(left), dtype=np.int64)
    number = {domain: i for i, domain in enumerate(sorted({table.header.columns[k].domain for k in used}))}
    long = _long(table.frame, used, {k: number[table.header.columns[k].domain] for k in used})
    there = [f.max(f.when(f.col("column") == k, 1).otherwise(0)).alias(f"h{k}") for k in used]
    values = long.where(f.col("code") != NULL_CODE).groupBy("domain", "code").agg(*there)
    held = values.groupBy(*(f"h{k}" for k in used)).count().toArrow()
    counts = np.asarray(held["count"].to_numpy(), dtype=np.int64)
    within = {k: held[f"h{k}"].to_numpy() == 1 for k in used}
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return np.array([counts[within[a] & within[b]].sum() for a, b in pairs], dtype=np.int64)


def _long(frame: DataFrame, columns: Sequence[int], domains: dict[int, int]) -> DataFrame:
    """(domain, column, code) of each cell."""
    from pyspark.sql import functions as f

    cells = [
        f.struct(f.lit(domains[k]).alias("domain"), f.lit(k).alias("column"), f.col(f"c{k}").alias("code"))
        for k in columns
    ]
    return frame.select(f.explode(f.array(*cells)).alias("cell")).select("cell.domain", "cell.column", "cell.code")


def means_of_ranges(table: EncodedFrame, columns: Sequence[int]) -> dict[int, Fraction]:
    """Exact means of columns of numbers whose codes are numbers themselves, where there is a value. One job."""
    from pyspark.sql import functions as f

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
    """The values of a column whose codes are ranks, which come here with the rows of each: an exact sum needs them.

    None where codes aren't ranks. 16 bytes a distinct value, decimals 24.
    """
    from pyspark.sql import functions as f

    dictionary: Any = table.header.dictionaries[table.header.columns[column].domain]
    if not isinstance(dictionary, RankedValues):
        return None
    code = f.col(f"c{column}")
    rows = table.frame.where(code != NULL_CODE).groupBy(code.alias("code")).agg(f.count("*").alias("n"))
    found = dictionary.frame.join(rows, "code").select("code", "value", "n").toArrow().sort_by("code")
    return CountedValues(found["value"].combine_chunks(), np.asarray(found["n"].to_numpy(), dtype=np.int64))


def value_counts(table: EncodedFrame, column: int, *, nulls: bool) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The codes of a column, ascending, and how many rows hold each; `nulls`: with those of null. They come here, 12
    bytes a distinct value."""
    from pyspark.sql import functions as f

    rows = table.frame.groupBy(f.col(f"c{column}").alias("code")).agg(f.count("*").alias("n"))
    found = (rows if nulls else rows.where(f.col("code") != NULL_CODE)).toArrow().sort_by("code")
    return np.asarray(found["code"].to_numpy(), dtype=np.int32), np.asarray(found["n"].to_numpy(), dtype=np.int64)


def equal_pairs(table: EncodedFrame, *, nulls: bool) -> dict[int, tuple[int, int]]:
    """For each column how many rows have a value, and how many ordered pairs of rows the same one (a row with itself
    counts); `nulls`: null is a value. One job."""
    from pyspark.sql import functions as f

    columns = range(len(table.header.columns))
    if not columns:
        return {}
    long = _long(table.frame, columns, dict.fromkeys(columns, 0))
    each = (long if nulls else long.where(f.col("code") != NULL_CODE)).groupBy("column", "code").count()
    found = each.groupBy("column").agg(f.sum("count"), f.sum(f.col("count") * f.col("count"))).collect()
    return dict.fromkeys(columns, (0, 0)) | {row[0]: (int(row[1]), int(row[2])) for row in found}
