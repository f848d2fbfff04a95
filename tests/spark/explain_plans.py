"""Loads, checks and searches small tables as for GPUs; prints, as JSON, what stays on the CPU of all that Spark plans.

A program of its own: the plugin must be there when the JVM starts. Arguments: an empty folder, and a table for the
answers of `explain_only`, which are printed, too: they are found in the same session.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from explain_only import answers
from pyspark.sql import SparkSession

from tuplewise.engine.cli.explain_gpu import QUICK, PlannedWork
from tuplewise.engine.ind.distributed import cluster_on_spark
from tuplewise.engine.ind.partitioned import PartitionedIndState
from tuplewise.engine.ind.partitioned_build import build
from tuplewise.engine.ind.places import open_tables
from tuplewise.engine.ind.state import Change
from tuplewise.engine.options import IndStateOptions, LoadOptions
from tuplewise.engine.spark import attribute_values, run
from tuplewise.engine.spark.gpu_plans import PlanWatch, watching
from tuplewise.engine.spark.tiles import TileSizes
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.spark_load import load_with_spark

QUICK_SESSION = {
    **QUICK,
    "spark.sql.ui.explainMode": "simple",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}
"""Spark itself describes plans in short, and calls don't look up where they stand."""
ROWS = 20
FILES = ("p", "q")


def write_tables(folder: Path) -> dict[str, Path]:
    """One folder of two files for each format, with a column of each type that the format has."""
    table = pa.table(
        {
            "whole": list(range(ROWS)),
            "exact": [decimal.Decimal(i) / 4 for i in range(ROWS)],
            "double": [i / 3 for i in range(ROWS)],
            "text": [f"v{i % 9}" for i in range(ROWS)],
            "day": [dt.date(2020, 1, 1 + i) for i in range(ROWS)],
            "at": pa.array([dt.datetime(2020, 1, 1, 1, 1, i) for i in range(ROWS)], pa.timestamp("us")),
            "flag": [i % 2 == 0 for i in range(ROWS)],
        }
    )
    lines = "whole,exact,double,text,day,at,flag\n" + "".join(
        f"{i},{i}.5,{i}e-1,v{i % 9},2020-01-{i + 1:02},2020-01-01T01:01:{i:02}Z,{i % 2 == 0}\n" for i in range(ROWS)
    )
    texts = {
        "csv": lines,
        "csv_quoted": "a,b\n" + "".join(f'{i},"x, {i % 3}"\n' for i in range(ROWS)),
        "csv_doubled": "a,b\n" + "".join(f'{i},"x ""{i % 3}"""\n' for i in range(ROWS)),
        "csv_latin": "a,b\n" + "".join(f"{i},ü{i % 3}\n" for i in range(ROWS)),
        "tsv": "a\tb\n" + "".join(f"{i}\tx {i % 3}\n" for i in range(ROWS)),
        "json": "".join(json.dumps({"a": i, "b": f"x{i % 3}", "c": i % 2 == 0}) + "\n" for i in range(ROWS)),
    }
    for name in ("parquet", "orc", *texts):
        (folder / name).mkdir()
    for part in FILES:
        pq.write_table(table, folder / "parquet" / f"{part}.parquet")
        orc.write_table(table, str(folder / "orc" / f"{part}.orc"))
        for name, text in texts.items():
            encoding = "latin-1" if name == "csv_latin" else "utf-8"
            (folder / name / f"{part}.{name.partition('_')[0]}").write_text(text, encoding=encoding)
    return {name: folder / name for name in ("parquet", "orc", *texts)}


def other_sources(spark: SparkSession, parquet: Path) -> dict[str, Any]:
    """What is read by name, and what a caller hands over: as it is, and such as only the CPU can read."""
    whole = spark.read.parquet(str(parquet))
    whole.createOrReplaceTempView("stored")
    reader = spark.read.schema("a string, b string").options(mode="FAILFAST", header="true")
    return {
        "catalog": "spark:stored",
        "frame": whole.selectExpr("whole + 1 as whole", "text"),
        "frame_ntz": spark.read.schema("whole bigint, at timestamp_ntz").parquet(str(parquet)),
        "frame_failfast": reader.csv(str(parquet.parent / "csv_quoted")),
    }


@contextmanager
def small_tiles(tile_rows: int) -> Iterator[None]:
    """Tables of so few rows are cut as large ones are."""
    real = run.cluster_sizes
    run.cluster_sizes = lambda spark, rows, columns: TileSizes(rows, 2, tile_rows, least_rows=4, most_partitions=3)
    try:
        yield
    finally:
        run.cluster_sizes = real


def inclusion_states(folder: Path, table: Path, spark: SparkSession) -> None:
    """Build a state, apply a table and a batch of a stream to it."""
    build(folder / "state", {"parquet": str(table)}, IndStateOptions(), written_by="test")
    with PartitionedIndState(folder / "state") as state:
        rows = state.read_rows(str(table), "parquet")
        state.apply([Change("insert", rows.attributes, rows.rows)])
        frame = state.spark.read.parquet(str(table)).selectExpr("*", "'insert' as _change")
        state.foreach_batch(frame, 0, table="parquet")


def wide_inclusions(tables: dict[str, Path], spark: SparkSession) -> None:
    """Cluster the attributes of two tables, whose sets don't fit words, as text."""
    attribute_values.MOST_WORDS = 0
    given = {name: str(tables[name]) for name in ("parquet", "csv")}
    cluster_on_spark(open_tables(given, LoadOptions(), spark), as_text=True)


def cases(folder: Path, watch: PlanWatch) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each case, as the plan that it belongs to and what it is about, and its work."""
    spark, tables = watch.spark, write_tables(folder)
    latin = LoadOptions(encoding="latin-1")

    def load(target: Any, options: LoadOptions, *, large: bool) -> None:
        load_with_spark(target, kind_of(target), options, None, spark, lambda step: None, large=large)

    sources: dict[str, Any] = {**{name: str(path) for name, path in tables.items()},
                               **other_sources(spark, tables["parquet"])}  # fmt: skip
    for name, target in sources.items():
        options = latin if name == "csv_latin" else LoadOptions()
        yield f"load {name}", lambda target=target, options=options: load(target, options, large=False)  # type: ignore[misc]
    for name in ("csv", "csv_doubled", "frame"):
        yield f"encode {name}", lambda name=name: load(sources[name], LoadOptions(), large=True)  # type: ignore[misc]
    work = PlannedWork(sources["parquet"], LoadOptions(), watch)
    for plan, planned in work.pieces()[1:]:
        if plan == "encode":
            yield f"{plan} parquet", planned
            continue
        for tile_rows in (9, 1000) if plan == "od discover" else (9,):

            def cut(planned: Callable[[], None] = planned, tile_rows: int = tile_rows) -> None:
                with small_tiles(tile_rows):
                    planned()

            yield f"{plan} by {tile_rows}", cut
    work.close()
    yield "ind discover as text", lambda: wide_inclusions(tables, spark)
    yield "ind state", lambda: inclusion_states(folder, tables["parquet"], spark)


def main(folder: str, table: str) -> None:
    found: dict[str, list[list[dict[str, Any]]]] = {}
    with watching({**QUICK_SESSION, "spark.sql.warehouse.dir": f"{folder}/warehouse"}) as watch:
        for name, work in cases(Path(folder), watch):
            work()
            found[name] = [[asdict(line) for line in plan] for plan in watch.take()]
            print(name, len(found[name]), file=sys.stderr, flush=True)
        plugins = watch.spark.sparkContext.getConf().get("spark.plugins")
        print(json.dumps({"plans": found, "plugins": plugins, "answers": answers(table, "driver")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
