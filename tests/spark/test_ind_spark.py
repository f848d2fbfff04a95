"""Inclusion dependencies in Spark: the same as in-process, for all types, and kept current in partitions."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.ind.distributed import cluster_on_spark, open_tables
from tuplewise.engine.ind.unary import Clustered, cluster_tables
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.spark import attribute_values

pytestmark = pytest.mark.spark


def all_types(rng: np.random.Generator, rows: int) -> pa.Table:
    """Values that are equal across types, and ones that only look alike; nulls in each column."""
    few = rng.integers(-3, 4, rows)

    def column(values: list[Any], type_: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if rng.random() < 0.1 else v for v in values], type_)

    days = [dt.date(2020, 1, 1) + dt.timedelta(int(v)) for v in few]
    return pa.table(
        {
            "whole": column(few.tolist(), pa.int64()),
            "short": column(few.tolist(), pa.int16()),
            "exact": column([decimal.Decimal(int(v)) / 2 for v in few], pa.decimal128(12, 2)),
            "large": column([decimal.Decimal(int(v)) * 10**18 for v in few], pa.decimal128(38, 3)),
            "real": column([-0.0 if v == 0 else float("nan") if v == 3 else v / 2 for v in few.tolist()]),
            "plus": column([0.0 if v == 0 else v / 2 for v in few.tolist()], pa.float32()),
            "day": column(days),
            "at": column([dt.datetime(d.year, d.month, d.day, 0 if d.day % 2 else 5) for d in days], pa.timestamp("us")),
            "flag": column((few > 0).tolist()),
            "text": column([str(v) for v in few.tolist()]),
            "true": column(["true" if v > 0 else "" for v in few.tolist()]),
            "none": pa.nulls(rows, pa.string()),
        }
    )


def same(there: Clustered, here: Clustered) -> None:
    assert there.clustering.attributes == here.clustering.attributes
    assert there.clustering.families == here.clustering.families
    assert there.clustering.masks.tobytes() == here.clustering.masks.tobytes()
    assert there.clustering.values.tolist() == here.clustering.values.tolist()
    assert there.tables == here.tables


def write_csv(path: Path, table: pa.Table) -> str:
    from pyarrow import csv

    csv.write_csv(table, path)
    return str(path)


@pytest.mark.parametrize("as_text", [False, True])
def test_clusters_are_those_of_one_process(spark: Any, tmp_path: Path, as_text: bool) -> None:
    rng = np.random.default_rng(7)
    pq.write_table(all_types(rng, 40), tmp_path / "stored.parquet")
    tables = {
        "stored": str(tmp_path / "stored.parquet"),
        "read": write_csv(tmp_path / "read.csv", all_types(rng, 30)),
        "empty": write_csv(tmp_path / "empty.csv", all_types(rng, 30).slice(0, 0)),
    }
    options = LoadOptions(null_tokens=("-3",))
    there = cluster_on_spark(open_tables(tables, options), as_text=as_text)
    here = cluster_tables(tables, options, as_text=as_text)
    same(there, here)
    assert there.clustering.included().sum() > len(there.clustering.attributes)
