"""Ranks of values that stay in Spark: dictionaries too large for the driver, or not needed there."""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuplewise.engine.relation.relation import Domain
from tuplewise.engine.relation.spark_encode import BUCKET_VALUES, NotInSpark, literal_of, plain_dictionary
from tuplewise.engine.spark.ranges import choose_leaf

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

MOST_CODES = 2**31 - 2
SAMPLED_VALUES = 100
"""Sampled values for each bucket: buckets are then within a third of the same size."""
PAGE_VALUES = 1 << 18
WIDE = decimal.Context(prec=76)
"""Decimals of 38 digits don't fit Python's own context."""


@dataclass(eq=False)
class RankedValues:
    """The distinct values of a domain with their ranks, as a frame (value, code).

    As a dictionary it has a length and gives single values: all that placing a constant among them needs. They are
    fetched a page at a time.
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
            from pyspark.sql import functions as f

            first = page * PAGE_VALUES
            there = self.frame.where(f.col("code").between(first, first + PAGE_VALUES - 1)).toArrow().sort_by("code")
            self.pages[page] = plain_dictionary(self.domain, there["value"].combine_chunks())
        return self.pages[page][code % PAGE_VALUES]

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self[0].type


def rank_values(cells: DataFrame, domain: Domain, seed: int = 0) -> RankedValues:
    """Ranks of the distinct values of the column "value", 0-based and dense.

    Notes
    -----
    One job finds and counts the distinct values, which are held; one samples bounds of buckets, one counts the buckets.
    Within a bucket ranks are a window's row numbers, so no partition holds more than a bucket and no value goes to the
    driver but the sampled ones. Bounds are literals: ranks don't depend on how Spark partitions.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    held = cells.select("value").distinct().persist()
    length = held.count()
    if length > MOST_CODES:
        held.unpersist()
        raise NotInSpark(f"the columns hold {length:,} different values, more than fit 32 bits")
    buckets = max(2, -(-length // BUCKET_VALUES))
    bounds = _bounds(held, length, buckets, seed)
    value = f.col("value")
    bucket = choose_leaf(value, bounds, [f.lit(i) for i in range(len(bounds) + 1)])
    bucketed = held.select("value", bucket.alias("bucket"))
    counts = {row["bucket"]: row["count"] for row in bucketed.groupBy("bucket").count().collect()}
    before = [sum(counts.get(k, 0) for k in range(i)) for i in range(len(bounds) + 1)]
    offset = choose_leaf(value, bounds, [f.lit(n) for n in before])
    number = f.row_number().over(Window.partitionBy("bucket").orderBy("value"))
    frame = bucketed.select("value", (number - 1 + offset).cast("int").alias("code"))
    return RankedValues(frame, length, domain, held)


def _bounds(values: DataFrame, length: int, buckets: int, seed: int) -> list[SparkColumn]:
    """Values that cut the distinct values into buckets of about the same size, from a sample."""
    import pyarrow.compute as pc

    share = min(1.0, buckets * SAMPLED_VALUES / max(1, length))
    sample = values.sample(share, seed).toArrow()["value"].combine_chunks()
    sample = sample.take(pc.sort_indices(sample))
    cuts = sorted({len(sample) * i // buckets for i in range(1, buckets)} - {0})
    return [literal_of(sample[i]) for i in cuts if i < len(sample)]


@dataclass(frozen=True)
class RangeOfValues:
    """All values from a first one on, a unit apart, some row having them or not; code i is the value `low + i` units.

    `scale`: digits behind the point of the unit. As a dictionary, like `RankedValues`.
    """

    low: int
    length: int
    domain: Domain
    scale: int | None = None

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, code: int) -> pa.Scalar:
        import pyarrow as pa

        value: Any = self.low + code
        if self.domain == "boolean":
            return pa.scalar(bool(value))
        if self.domain == "date":
            return pa.scalar(value, pa.int32()).cast(pa.date32())
        if self.scale is not None:
            return pa.scalar(decimal.Decimal(value).scaleb(-self.scale, WIDE), pa.decimal128(38, self.scale))
        return pa.scalar(value, pa.int64())
