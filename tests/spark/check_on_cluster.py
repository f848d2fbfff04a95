"""Checks rules on a table in the tasks of a cluster, and in this process; prints both, as JSON, and who ran the tasks.

A driver program for `loopback.Loopback.run`. Argument: a Parquet file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import tuplewise as tw
from tuplewise.engine.spark import run
from tuplewise.engine.spark.session import open_session, stop
from tuplewise.engine.spark.tiles import Sizes

RULES = "zip -> city; not(t.city == u.city and t.pay > u.pay and t.rate < u.rate and t.city != 'C')"


def small_tiles(spark: Any, rows: int, columns: int) -> Sizes:
    return Sizes(rows, slots=2, tile_rows=150, least_rows=60, most_partitions=6)


def who(batches: Any) -> Iterator[pa.RecordBatch]:
    """Which processes run tasks: Python workers and the executors that they belong to."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [os.getpid()], "executor": [os.getcwd()]})


def main(path: str) -> None:
    run.cluster_sizes = small_tiles
    session = open_session(master=os.environ["LOOPBACK_MASTER"], conf=json.loads(os.environ["LOOPBACK_CONF"]))
    ran = session.spark.range(0, 40, 1, 4).mapInArrow(who, "python long, executor string").collect()
    found = {}
    for where in ("spark", "driver"):
        result = tw.check(path, RULES, device="cpu", pairs=20, run_on=where)  # type: ignore[arg-type]
        found[where] = [{k: v for k, v in r.items() if k != "seconds"} for r in result.to_dict()["result"]["rules"]]
    stop()
    found["python"] = sorted({row["python"] for row in ran})
    found["executors"] = sorted({row["executor"] for row in ran})
    print(json.dumps({**found, "driver_process": os.getpid()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
