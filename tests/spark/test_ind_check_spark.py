"""Checks of inclusion dependencies in Spark: the same counts as in-process, for all types."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tuplewise as tw
from tuplewise.engine.errors import InputError

pytestmark = pytest.mark.spark


def some_of_each_type(shift: int, rows: int) -> pa.Table:
    """Values that are equal across types and tables, and nulls."""
    numbers = [None if i % 7 == 6 else (i * 5 + shift) % 6 - 2 for i in range(rows)]

    def column(make: Any, type_: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if n is None else make(n) for n in numbers], type_)

    return pa.table(
        {
            "whole": column(int, pa.int64()),
            "exact": column(lambda n: decimal.Decimal(n) / 2, pa.decimal128(30, 2)),
            "real": column(lambda n: float("nan") if n == 3 else -0.0 if n == 0 else n / 2),
            "day": column(lambda n: dt.date(2020, 1, 5 + n)),
            "at": column(lambda n: dt.datetime(2020, 1, 5 + n, 6 * (n % 2)), pa.timestamp("us")),
            "flag": column(lambda n: n > 0),
            "text": column(str),
        }
    )


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("inds")
    pq.write_table(some_of_each_type(0, 20), folder / "t.parquet")
    pq.write_table(some_of_each_type(1, 4), folder / "u.parquet")
    (folder / "few.csv").write_text("k,w\n1,x\n,y\n9,x\n9,\n0,x\n")
    return [str(folder / name) for name in ("t.parquet", "u.parquet", "few.csv")]


def counted(found: Any) -> list[dict[str, Any]]:
    """All that is the same wherever the check ran."""
    return [{**vars(one), "examples": None, "seconds": None} for one in found.inds]


def described(found: Any) -> list[Any]:
    """Tables, and what was counted in their columns."""
    return [
        (table.name, table.path, table.rows, [(c.name, c.type, c.distinct, c.nulls) for c in table.columns])
        for table in found.tables
    ]


def test_counts_are_those_of_one_process(spark: Any, paths: list[str]) -> None:
    inds = [
        "t.whole <= u.exact", "u.real <= t.real", "u.day <= t.at", "t.text <= u.whole", "few.k <= u.whole",
        "t[whole, text] <= u[whole, text]",
    ]  # fmt: skip
    there = tw.check_inds(paths, inds, run_on="spark", examples=1)
    here = tw.check_inds(paths, inds, run_on="driver", examples=1)
    assert counted(there) == counted(here)
    assert described(there) == described(here)
    assert json.loads(there.to_json())["result"]["work"] == "spark"
    assert {one.holds for one in there.inds} == {True, False}
    found = there.inds[4].examples
    assert found is not None
    assert (found.values[0].to_pylist(), found.counts.tolist(), found.rows) == ([9], [2], ((2,),))


def test_values_as_text(spark: Any, paths: list[str]) -> None:
    found = tw.check_inds(paths, "few.k <= u.text", run_on="spark", as_text=True)
    assert counted(found) == counted(tw.check_inds(paths, "few.k <= u.text", run_on="driver", as_text=True))
    assert found.inds[0].reason is None


def test_sql_runs_in_spark(spark: Any) -> None:
    tables = {"my child": pa.table({"a`b": [1, 9, 9, None]}), "p": pa.table({"k": [1, None]})}
    for name, table in tables.items():
        spark.createDataFrame(table).createOrReplaceTempView(f"v{len(name)}")
    found = tw.check_inds(tables, "`my child`.`a``b` <= p.k")
    query = found.to_sql("spark", tables={"my child": "v8", "p": "v1"})
    assert [tuple(row) for row in spark.sql(query.rstrip().removesuffix(";")).collect()] == [(9, 2)]


def test_what_is_not_in_spark_is_refused(spark: Any, paths: list[str]) -> None:
    tables = {"t": paths[0], "held": pa.table({"a": [1]})}
    with pytest.raises(InputError, match="run_on 'spark' for a table that is held here: 'held'"):
        tw.check_inds(tables, "t.whole <= held.a", run_on="spark")


def test_frames_and_formats_that_only_spark_reads(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "child.json").write_text('{"a": 1}\n{"a": null}\n{"a": 9}\n')
    parent = spark.createDataFrame([(1,), (None,)], "b int")
    for where in ("driver", "spark"):
        found = tw.check_inds(
            {"child": str(tmp_path / "child.json"), "parent": parent}, "child.a <= parent.b", run_on=where
        ).inds[0]  # fmt: skip
        assert (found.missing_values, found.rows_missing, found.rows_null) == (1, 1, 1)


def test_a_time_limit_leaves_them_undecided(spark: Any, paths: list[str]) -> None:
    found = tw.check_inds(paths, ["few.k <= u.whole", "t.text <= u.text"], run_on="spark", time_limit=1e-6)
    assert found.partial
    assert [one.holds for one in found.inds] == [None, None]
