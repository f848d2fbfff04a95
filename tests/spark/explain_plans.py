"""Loads small tables with the plugin's jar on the class path and prints, as JSON, what of each plan stays on the CPU.

A program of its own: the jar must be on the class path when the JVM starts. Arguments: the jar, an empty folder.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyspark.sql.classic.dataframe import DataFrame

from tuplewise.engine.options import LoadOptions
from tuplewise.engine.relation.spark_load import load_with_spark
from tuplewise.engine.spark.session import open_session

ROWS = 20


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
    to_arrow = DataFrame.toArrow

    def explained(frame: DataFrame) -> Any:
        """Every plan of loading and encoding ends in toArrow."""
        lines = [line.strip() for line in explain(frame._jdf, "ALL").splitlines()]
        plans.append([line for line in lines if line.startswith(("!", "*Exec", "*Partitioning"))])
        return to_arrow(frame)

    DataFrame.toArrow = explained  # type: ignore[method-assign]
    found = {}
    for name, path in write_tables(Path(folder)).items():
        for large in (False, True) if name in ("parquet", "csv_doubled") else (True,):
            plans.clear()
            load_with_spark(str(path), None, LoadOptions(), None, None, lambda step: None, large=large)
            found[f"{name} {'in Spark' if large else 'in-process'}"] = list(plans)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
