"""Discovers order dependencies in the tasks of a cluster, and in this process; prints both, as JSON.

A driver program for `loopback.Loopback.run`. Argument: a Parquet file.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any

import tuplewise as tw
from tuplewise.engine.od import distributed, distributed_discover, search
from tuplewise.engine.spark import run
from tuplewise.engine.spark.session import open_session, stop
from tuplewise.engine.spark.tiles import Sizes


class SmallTable(distributed.SparkContextTable):
    """Few rows are sampled and judged here, and comparing has a price: sets and validations."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **{**options, "sampled_rows": 40, "pairs_a_row": 1}, judged_rows=50, least_pairs=4000)

    def _compared(self, *given: Any, **how: Any) -> Any:
        compared = super()._compared(*given, **how)
        return replace(compared, grouping_seconds=1e-4 * self.rows, comparing_seconds=1e-3 * compared.pairs)


def main(path: str) -> None:
    search.ALL_AT_ONCE = -1
    distributed_discover.SparkContextTable = SmallTable  # type: ignore[misc]
    open_session(master=os.environ["LOOPBACK_MASTER"], conf=json.loads(os.environ["LOOPBACK_CONF"]))
    found = {"driver": tw.discover_ods(path, device="cpu", run_on="driver").to_dict()["result"]}
    for way, tile_rows in (("shared", 10_000), ("shuffled", 200)):
        run.cluster_sizes = lambda spark, rows, columns, most=tile_rows: Sizes(rows, 2, most, least_rows=100)  # type: ignore[misc]
        found[way] = tw.discover_ods(path, device="cpu", run_on="spark").to_dict()["result"]
    stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
