"""Ranks of values that stay in Spark, for dictionaries that are too large for the driver or not needed there."""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.table.relation import Domain
from tuplewise.engine.table.spark_encode import BUCKET_VALUES, NotInSpark, plain_dictionary

MOST_CODES = 2**31 - 2
PAGE_VALUES = 1 << 18
WIDE = decimal.Context(prec=76)
"""Decimals of 38 digits don't fit Python's own context."""


@dataclass(eq=False)
class RankedValues:
    """The distinct values of a domain with their ranks, as a frame (value, code).

    Used as a dictionary it has a length and returns single values, which is enough to place a constant among them.
    Values are fetched a page at a time; `take` fetches only the requested ones.
    """

    frame: DataFrame
    length: int
    domain: Domain
    held: DataFrame
    pages: dict[int, pa.Array] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, code: int) -> pa.Scalar:
        page = code // PAGE_VALUES
        if page not in self.pages:
            first = page * PAGE_VALUES
            found = self.frame.where(f.col("code").between(first, first + PAGE_VALUES - 1)).toArrow().sort_by("code")
            self.pages[page] = plain_dictionary(self.domain, found["value"].combine_chunks())
        return self.pages[page][code % PAGE_VALUES]

    def take(self, codes: Any) -> pa.Array:
        """The values of some codes. One job."""
        wanted, places = np.unique(np.asarray(codes, dtype=np.int32), return_inverse=True)
        chosen = f.broadcast(frame_of(self.frame.sparkSession, pa.table({"code": wanted})))
        found = self.frame.join(chosen, "code").select("code", "value").toArrow().sort_by("code")
        return plain_dictionary(self.domain, found["value"].combine_chunks()).take(pa.array(places))

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self[0].type


def rank_values(cells: DataFrame, domain: Domain) -> RankedValues:
    """Ranks of the distinct values of the column "value", 0-based and dense.

    Notes
    -----
    Distinct values are range-partitioned and persisted, so that later jobs see the same partitions; one job counts
    them. A rank is the row number within its partition plus the sizes of the partitions before. No partition holds more
    than its share, and no value goes to the driver.
    """
    distinct = cells.select("value").distinct()
    buckets = max(2, -(-distinct.count() // BUCKET_VALUES))
    held = distinct.repartitionByRange(buckets, "value").withColumn("bucket", f.spark_partition_id()).persist()
    counts = held.groupBy("bucket").count().toArrow().sort_by("bucket")
    sizes = counts["count"].to_numpy()
    length = int(sizes.sum())
    if length > MOST_CODES:
        held.unpersist()
        raise NotInSpark(f"the columns hold {length:,} different values, more than fit 32 bits")
    before = pa.table({"bucket": counts["bucket"], "before": np.cumsum(sizes) - sizes})
    number = f.row_number().over(Window.partitionBy("bucket").orderBy("value"))
    numbered = held.select("value", "bucket", number.alias("number"))
    offsets = f.broadcast(frame_of(cells.sparkSession, before))
    code = (f.col("number") - 1 + f.col("before")).cast("int")
    return RankedValues(numbered.join(offsets, "bucket").select("value", code.alias("code")), length, domain, held)


@dataclass(frozen=True)
class RangeOfValues:
    """A range of values one unit apart, whether rows have them or not; code i is the value `low + i` units.

    `scale`: decimal digits of the unit. Used as a dictionary like `RankedValues`.
    """

    low: int
    length: int
    domain: Domain
    scale: int | None = None

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, code: int) -> pa.Scalar:
        value: Any = self.low + code
        if self.domain == "boolean":
            return pa.scalar(bool(value))
        if self.domain == "date":
            return pa.scalar(value, pa.int32()).cast(pa.date32())
        if self.scale is not None:
            return pa.scalar(decimal.Decimal(value).scaleb(-self.scale, WIDE), pa.decimal128(38, self.scale))
        return pa.scalar(value, pa.int64())

    def take(self, codes: Any) -> pa.Array:
        """The values of some codes."""
        return pa.array([self[code] for code in codes.tolist()], None if len(codes) else self[0].type)
