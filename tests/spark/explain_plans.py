"""Loads and checks small tables with the plugin's jar on the class path; prints, as JSON, what stays on the CPU.

A program of its own: the jar must be on the class path when the JVM starts. Arguments: the jar, an empty folder.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyspark.sql.classic.dataframe import DataFrame

from tuplewise.engine.dc.distributed import SparkDcTable
from tuplewise.engine.dc.distributed_figures import SparkFigures
from tuplewise.engine.dc.predicate import build_space
from tuplewise.engine.dc.rule_text import read_rule
from tuplewise.engine.dc.violations.distributed import rule_on
from tuplewise.engine.dc.violations.program import bind
from tuplewise.engine.ind import partitioned, partitioned_build
from tuplewise.engine.ind.distributed import cluster_on_spark, open_tables
from tuplewise.engine.ind.state import Change
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, KEY, Dependencies
from tuplewise.engine.od.distributed import SparkContextTable
from tuplewise.engine.od.search import clue_layout
from tuplewise.engine.options import DcDiscoverOptions, IndStateOptions, LoadOptions
from tuplewise.engine.relation.spark_frame import encode_as_frame
from tuplewise.engine.relation.spark_load import load_with_spark, open_with_spark
from tuplewise.engine.spark import attribute_values, run
from tuplewise.engine.spark.layout import lay_out
from tuplewise.engine.spark.routes import full_row_counts, send_rows, tiles_both_ways
from tuplewise.engine.spark.session import open_session
from tuplewise.engine.spark.tasks import TileWork
from tuplewise.engine.spark.tiles import Sizes

ROWS = 20
CHECKED = (  # groups that stay whole, ones that are cut, of two columns; no groups
    "not(t.flag == u.flag and t.text != u.text and t.whole == u.exact)",
    "not(t.exact < u.exact and t.day > u.day)",
)


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
    quoted = "a,b\n" + "".join(f'{i},"x, {i % 3}"\n' for i in range(ROWS))
    doubled = "a,b\n" + "".join(f'{i},"x ""{i % 3}"""\n' for i in range(ROWS))
    for name in ("parquet", "orc", "csv", "csv_quoted", "csv_doubled"):
        (folder / name).mkdir()
    for part in ("p", "q"):
        pq.write_table(table, folder / "parquet" / f"{part}.parquet")
        orc.write_table(table, str(folder / "orc" / f"{part}.orc"))
        (folder / "csv" / f"{part}.csv").write_text(lines)
        (folder / "csv_quoted" / f"{part}.csv").write_text(quoted)
        (folder / "csv_doubled" / f"{part}.csv").write_text(doubled)
    return {path.name: path for path in sorted(folder.iterdir())}


def explain_check(path: str, rule: str, note: Callable[[DataFrame], DataFrame]) -> None:
    """Encode a table as a frame, lay a rule out in small tiles, and note the plans that send rows to them."""
    opened = open_with_spark(path, None, LoadOptions(), None, None, lambda step: None)
    constraint = read_rule(rule)
    table = encode_as_frame(opened, constraint.columns, lambda step: None)
    sizes = Sizes(2 * ROWS, slots=2, tile_rows=9, least_rows=4, most_partitions=3)
    asked = replace(rule_on(table, bind(constraint, table.header, "unknown")), sizes=sizes)
    layout = lay_out(asked.frame, asked.columns, asked.rule, sizes, full=True)
    parts = full_row_counts(layout)
    sent = send_rows(layout, sizes)
    if sent is not None:
        work = TileWork(asked.kernels, asked.rule, asked.columns, tiles_both_ways(layout), asked.one_way, "cpu")
        parts.append(sent.mapInArrow(work.count_rows, "position bigint, as_t bigint, as_u bigint"))
    for part in parts:
        note(part.groupBy("position").sum("as_t", "as_u"))


def explain_discovery(path: str) -> None:
    """Encode a table as a frame, and do in small tiles what discovery does there: figures, samples, agreeing pairs."""
    opened = open_with_spark(path, None, LoadOptions(), None, None, lambda step: None)
    table = encode_as_frame(opened, [opened.plan.names[i] for i in opened.plan.kept], lambda step: None)
    figures = SparkFigures(table)
    space = build_space(table.header, DcDiscoverOptions(shared_values=Decimal(0)), figures)
    figures.outcome_counts(space)
    run.cluster_sizes = lambda spark, rows, columns: Sizes(rows, slots=2, tile_rows=9, least_rows=4, most_partitions=3)
    rows = SparkDcTable(table, space, device="cpu", least_pairs=9, judged_rows=8)
    rows.sample()
    rows.sample_agreeing(((6, 6),))
    for agreement in (((3, 3), (6, 6)), ((0, 1),)):
        rows.compare_agreeing(agreement)
    rows.violating_clues([read_rule(rule) for rule in CHECKED], 2)


def explain_orders(path: str) -> None:
    """Encode a table as a frame, and check contexts there: over codes that all tasks have, by classes, sorted."""
    opened = open_with_spark(path, None, LoadOptions(), None, None, lambda step: None)
    table = encode_as_frame(opened, [opened.plan.names[i] for i in opened.plan.kept], lambda step: None)
    layout = clue_layout(len(table.header.columns), ordered=True)
    contexts = np.array([[1 << 0], [1 << 6]], dtype=np.uint64)  # few classes by the second one
    which = np.array([0, 0, 1, 1], dtype=np.int32)
    kind = np.array([KEY, CONSTANT, CONSTANT, ASCENDING], dtype=np.int8)
    left, right = (np.array(side, dtype=np.int32) for side in ([-1, 2, 2, 2], [-1, -1, -1, 3]))
    for tile_rows in (1000, 9):
        run.cluster_sizes = lambda spark, rows, columns, most=tile_rows: Sizes(rows, 2, most, 4, 3)
        rows = SparkContextTable(
            table, layout, nulls="value", device="cpu", pairs_a_row=1, sampled_rows=9, judged_rows=8
        )
        rows.sample()
        rows.sample_agreeing(((6, 6),))
        rows.violating_pairs(contexts, which, Dependencies(contexts[which], kind, left, right), 2)
        rows.close()


def explain_inclusions(folder: Path, tables: dict[str, Path], note: Callable[[DataFrame], DataFrame]) -> None:
    """Cluster attributes, their sets as words and as arrays; build a state, apply a table and a batch to it."""
    given = {name: str(tables[name]) for name in ("parquet", "csv")}
    cluster_on_spark(open_tables(given, LoadOptions()))
    given = {"parquet": given["parquet"]}
    for module in (partitioned, partitioned_build):
        write = module.write_counts
        module.write_counts = lambda rows, place, write=write: write(note(rows), place)  # type: ignore[attr-defined]
    partitioned_build.build(folder / "state", given, IndStateOptions(), written_by="test")
    with partitioned.PartitionedIndState(folder / "state") as state:
        rows = state.read_rows(given["parquet"], "parquet")
        state.apply([Change("insert", rows.attributes, rows.rows)])
        frame = state.spark.read.parquet(given["parquet"]).selectExpr("*", "'insert' as _change")
        state.foreach_batch(frame, 0, table="parquet")
    attribute_values.MOST_WORDS = 0
    cluster_on_spark(open_tables(given, LoadOptions()), as_text=True)


def main(jar: str, folder: str) -> None:
    # Interpreted plans of few partitions: the same operators, without seconds of compiling for twenty rows.
    quick = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    spark = open_session(conf={"spark.driver.extraClassPath": jar, **quick}).spark
    explain = spark._jvm.com.nvidia.spark.rapids.ExplainPlan.explainPotentialGpuPlan
    plans: list[list[str]] = []
    to_arrow, collect = DataFrame.toArrow, DataFrame.collect

    kept: list[list[str]] = []

    def explained(frame: DataFrame) -> list[str]:
        """What the plugin says of the plan under the settings of the frame's own session, and of what it has kept."""
        spark._jvm.org.apache.spark.sql.SparkSession.setActiveSession(frame.sparkSession._jsparkSession)
        lines = [line.strip() for line in explain(frame._jdf, "ALL").splitlines()]
        read = sorted({Path(file).parent for file in frame.inputFiles()})
        of_parts = [line for part in read if part.parent.name == "kept" for line in kept[int(part.name)]]
        return [line for line in lines if line.startswith(("!", "*Exec", "*Partitioning"))] + of_parts

    def note(frame: DataFrame) -> DataFrame:
        plans.append(explained(frame))
        return frame

    def keep(frame: DataFrame, *_: object) -> DataFrame:
        """In place of rows kept in memory, which only a serializer of the plugin's own reads on GPUs: a Parquet file,
        so that what it took to make them is explained, and done, once."""
        place = f"{folder}/kept/{len(kept)}"
        kept.append(explained(frame))
        frame.write.parquet(place)
        return frame.sparkSession.read.schema(frame.schema).parquet(place)

    DataFrame.toArrow = lambda frame: to_arrow(note(frame))  # type: ignore[method-assign]
    DataFrame.collect = lambda frame: collect(note(frame))  # type: ignore[method-assign]
    DataFrame.persist = keep  # type: ignore[method-assign]
    found = {}
    tables = write_tables(Path(folder))
    for rule in CHECKED:
        plans.clear()
        explain_check(str(tables["parquet"]), rule, note)
        found[f"check {rule}"] = list(plans)
    plans.clear()
    explain_discovery(str(tables["parquet"]))
    found["discover"] = list(plans)
    plans.clear()
    explain_orders(str(tables["parquet"]))
    found["orders"] = list(plans)
    plans.clear()
    explain_inclusions(Path(folder), tables, note)
    found["inclusions"] = list(plans)
    for name, path in tables.items():
        for large in (False, True) if name in ("parquet", "csv_doubled") else (True,):
            plans.clear()
            load_with_spark(str(path), None, LoadOptions(), None, None, lambda step: None, large=large)
            found[f"{name} {'in Spark' if large else 'in-process'}"] = list(plans)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
