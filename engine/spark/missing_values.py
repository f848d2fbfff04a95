"""The values of a frame that another one lacks, in Spark: found by grouping and one join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

COUNT, FIRST, THERE = "_count", "_first", "_there"


@dataclass(frozen=True)
class Missing:
    """The dependent values that are missing on the referenced side.

    Attributes
    ----------
    distinct, rows : distinct values of the dependent side, and rows with them
    referenced_distinct : distinct values of the referenced side
    missing_values, rows_missing : distinct missing values, and rows with them
    examples : some missing values, most rows first: the shown columns, COUNT, and FIRST, the lowest row id
    """

    distinct: int
    rows: int
    referenced_distinct: int
    missing_values: int
    rows_missing: int
    examples: pa.Table


def keyed(frame: DataFrame, keys: Sequence[Column], row: str, shown: Sequence[Column] = ()) -> DataFrame:
    """The rows without a null in a key: keys k0, k1, ..., the row's id, and values v0, v1, ... to show."""
    named = [key.alias(f"k{i}") for i, key in enumerate(keys)]
    values = [value.alias(f"v{i}") for i, value in enumerate(shown)]
    found = frame.select(*named, f.col(row).alias(FIRST), *values)
    for i in range(len(keys)):  # dropna would take NaN for null
        found = found.where(f.col(f"k{i}").isNotNull())
    return found


def find_missing(
    dependent: DataFrame, referenced: DataFrame, *, columns: int, compared: bool, examples: int
) -> Missing:
    """Count the values of one side that the other lacks.

    Parameters
    ----------
    dependent, referenced : results of `keyed` with so many `columns`, in one session
    compared : whether keys can be equal; if their types forbid it, all values are missing
    examples : the most missing values to list

    Notes
    -----
    Both sides are grouped by value and joined once: two shuffles of rows, in which each task combines equal ones. The
    join is persisted for the second of two jobs; a third counts the referenced values. The caller normalises doubles;
    NaN equals itself in Spark.
    """
    keys = [f"k{i}" for i in range(columns)]
    shown = [f.min(f"v{i}").alias(f"v{i}") for i in range(columns)]
    counted = dependent.groupBy(*keys).agg(f.count("*").alias(COUNT), f.min(FIRST).alias(FIRST), *shown)
    there = referenced.select(*keys).distinct().withColumn(THERE, f.lit(1))
    nothing = f.lit(None).cast("int")
    joined = counted.join(there, on=keys, how="left") if compared else counted.withColumn(THERE, nothing)
    lacks = f.col(THERE).isNull()
    with _held(joined) as held:
        figures = held.agg(
            f.count("*"),
            f.coalesce(f.sum(COUNT), f.lit(0)),
            f.count(f.when(lacks, 1)),
            f.coalesce(f.sum(f.when(lacks, f.col(COUNT))), f.lit(0)),
        ).first()
        assert figures is not None
        best = held.where(lacks).orderBy(f.desc(COUNT), FIRST).limit(examples)
        listed = best.select(*(f"v{i}" for i in range(columns)), COUNT, FIRST).toArrow()
    distinct, rows, missing, rows_missing = (int(n) for n in figures)
    return Missing(distinct, rows, there.count(), missing, rows_missing, listed)


def column_counts(frame: DataFrame, values: Sequence[Column]) -> list[tuple[int, int]]:
    """The number of distinct values and of non-null rows of each column. One job."""
    figures = frame.agg(*(agg for v in values for agg in (f.count_distinct(v), f.count(v)))).first()
    assert figures is not None
    counts = [int(n) for n in figures]
    return list(zip(counts[::2], counts[1::2], strict=True))


@contextmanager
def _held(frame: DataFrame) -> Iterator[DataFrame]:
    held = frame.persist()
    try:
        yield held
    finally:
        held.unpersist()
