"""Frequencies of values in attributes, stored in Parquet files by hash bucket of the value, and changed in batches.

A row of a file has the value (KEY), an attribute, its frequency there before the batch that wrote the file (`before`),
and the one since (`frequency`; 0 if the batch removed the last one). So one file, written in one pass, holds both the
present state and the batch's changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from tuplewise.engine.spark.attribute_values import KEY, KEY_TYPES, masks_of, set_columns, set_names

_NAME = re.compile(r"([\[\]{}*?\\])")  # what Spark takes as patterns where it reads
BY = "by"
"""The column of changes: how often a cell comes (above 0) or goes (below 0)."""
ROW_SCHEMA = (
    ", ".join(f"{name} {KEY_TYPES[name]}" for name in KEY) + ", attribute int, before bigint, frequency bigint"
)


@dataclass(frozen=True, eq=False)
class Moved:
    """Values that moved from one set of attributes to another.

    Attributes
    ----------
    before, after : uint64 (moves, words), masks; empty: the value is new, or was removed
    values : int64 (moves,), number of values
    filled : int64 (attributes,), growth of each attribute in non-null rows
    """

    before: NDArray[np.uint64]
    after: NDArray[np.uint64]
    values: NDArray[np.int64]
    filled: NDArray[np.int64]


def fold_changes(cells: DataFrame) -> DataFrame:
    """Sum the changes of cells (attribute, KEY, BY) for each value and attribute, without those that cancel out."""
    summed = cells.groupBy(*KEY, "attribute").agg(f.sum(BY).alias(BY))
    return summed.where(f.col(BY) != 0)


def bucket_of(buckets: int) -> Column:
    """The bucket of a value, from 0 to `buckets` - 1; the same in every session and on every device."""
    return f.pmod(f.xxhash64(*KEY), f.lit(buckets).cast("bigint")).cast("int")


def touched_buckets(changes: DataFrame, buckets: int) -> list[int]:
    """The buckets with values that change, ascending. One job."""
    found = changes.select(bucket_of(buckets).alias("bucket")).distinct().toArrow()
    return sorted(found["bucket"].to_pylist())


def read_counts(spark: SparkSession, folders: Iterable[Path]) -> DataFrame:
    """The rows of some buckets' folders."""
    paths = [_NAME.sub(r"\\\1", _uri(folder)) for folder in folders]
    return spark.read.schema(ROW_SCHEMA).parquet(*paths)


def changed_counts(held: DataFrame | None, changes: DataFrame, buckets: int, partitions: int) -> DataFrame:
    """The rows of the touched buckets after some changes, and the column `bucket`. One shuffle.

    Parameters
    ----------
    held : their present rows; None if there are none
    changes : the result of `fold_changes`
    """
    named = [*KEY, "attribute", "before", BY]
    rows = changes.withColumn("before", f.lit(0).cast("bigint")).select(named)
    if held is not None:
        before = held.where("frequency > 0").withColumn("before", f.col("frequency"))
        rows = rows.unionAll(before.withColumn(BY, f.lit(0).cast("bigint")).select(named))
    placed = rows.withColumn("bucket", bucket_of(buckets)).repartition(partitions, "bucket")
    summed = placed.groupBy("bucket", *KEY, "attribute").agg(f.sum("before").alias("before"), f.sum(BY).alias(BY))
    return summed.select("bucket", *KEY, "attribute", "before", (f.col("before") + f.col(BY)).alias("frequency"))


def write_counts(rows: DataFrame, folder: Path) -> list[int]:
    """Write rows as a folder of buckets. Returns the buckets that this process then finds there, ascending."""
    rows.write.partitionBy("bucket").parquet(_uri(folder))
    return sorted(int(path.name.partition("=")[2]) for path in folder.glob("bucket=*"))


def bucket_folder(folder: Path, bucket: int) -> Path:
    """The folder of a bucket, as written by `write_counts`."""
    return folder / f"bucket={bucket}"


def total_frequency(rows: DataFrame) -> int:
    """The sum of all frequencies. One job."""
    return int(rows.agg(f.sum("frequency")).collect()[0][0] or 0)


def below_zero(rows: DataFrame) -> dict[str, Any] | None:
    """The first row by attribute and value whose frequency is below 0; None if there is none. One job."""
    lowest = f.min(f.struct("attribute", *KEY, "before", "frequency")).alias("lowest")
    found = rows.where("frequency < 0").agg(lowest).collect()[0]["lowest"]
    return None if found is None else found.asDict()


def moved_values(rows: DataFrame, attributes: int) -> Moved:
    """The values whose set of attributes a batch has changed, from the rows of `write_counts`. Two jobs."""
    sides = {"was": "before > 0", "now": "frequency > 0"}
    aggregates = [column for name, condition in sides.items() for column in set_columns(attributes, name, condition)]
    names = {name: set_names(attributes, name) for name in sides}
    sets = rows.where("before > 0 or frequency > 0").groupBy(*KEY).agg(*aggregates)
    other = [f.col(a) != f.col(b) for a, b in zip(names["was"], names["now"], strict=True)]
    differs = other[0]
    for one in other[1:]:
        differs = differs | one
    found = sets.where(differs).groupBy(*names["was"], *names["now"]).agg(f.count("*").alias("values")).toArrow()
    values = np.asarray(found["values"].to_numpy(), dtype=np.int64)
    grown = rows.groupBy("attribute").agg(f.sum(f.col("frequency") - f.col("before")).alias("rows")).toArrow()
    filled = np.zeros(attributes, dtype=np.int64)
    filled[grown["attribute"].to_numpy()] = grown["rows"].to_numpy()
    return Moved(masks_of(found, attributes, "was"), masks_of(found, attributes, "now"), values, filled)


def count_changes(frame: DataFrame, column: str, kinds: Sequence[str]) -> tuple[list[int], str | None]:
    """The rows of each kind of change, and the lowest value of the column that is no kind ("null" if it is null)."""
    change = f.col(column)
    counts = [f.count(f.when(change == kind, 1)) for kind in kinds]
    odd = f.coalesce(change.cast("string"), f.lit("null"))
    known = change.isNotNull() & change.isin(list(kinds))
    found = frame.agg(*counts, f.min(f.when(~known, odd))).collect()[0]
    return [int(n) for n in found[:-1]], found[len(kinds)]


def signed(frame: DataFrame, column: str) -> DataFrame:
    """A frame of changed rows with BY: 1 for rows that are inserted, -1 for others."""
    return frame.withColumn(BY, f.when(f.col(column) == "insert", 1).otherwise(-1))


def all_of(frame: DataFrame, by: int) -> DataFrame:
    """A frame of rows that are all inserted (1) or all deleted (-1)."""
    return frame.withColumn(BY, f.lit(by))


def turned(cells: DataFrame) -> DataFrame:
    """Cells with the opposite change: insertions become deletions, and the other way round."""
    return cells.withColumn(BY, -f.col(BY))


def _uri(folder: Path) -> str:
    """The URI of a folder for Spark: literal, and on the local file system whatever Spark's default is."""
    return f"file://{folder.absolute()}"
