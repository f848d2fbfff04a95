"""Discovers constraints in the tasks of a cluster, and by all pairs in this process; prints both, as JSON.

A driver program for `loopback.Loopback.run`. Argument: a Parquet file.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any

import tuplewise as tw
from tuplewise.engine.dc import distributed, distributed_discover
from tuplewise.engine.spark import run
from tuplewise.engine.spark.session import open_session, stop
from tuplewise.engine.spark.tiles import Sizes


def small_tiles(spark: Any, rows: int, columns: int) -> Sizes:
    return Sizes(rows, slots=2, tile_rows=150, least_rows=60, most_partitions=6)


class SmallTable(distributed.SparkDcTable):
    """Groups of a few rows are cut, few rows are judged here, and comparing has a price: sets and validations."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options, judged_rows=50, least_pairs=4000)

    def _compared(self, *given: Any, **how: Any) -> Any:
        compared = super()._compared(*given, **how)
        prices = {"grouping_seconds": 1e-4 * self.rows, "comparing_seconds": 1e-4 * compared.pairs}
        return replace(compared, rows=compared.rows[:0], **prices)


def main(path: str) -> None:
    run.cluster_sizes = small_tiles
    distributed_discover.SparkDcTable = SmallTable  # type: ignore[misc]
    open_session(master=os.environ["LOOPBACK_MASTER"], conf=json.loads(os.environ["LOOPBACK_CONF"]))
    found = {}
    for where, algorithm in (("spark", "hybrid"), ("driver", "evidence")):
        result = tw.discover_dcs(path, device="cpu", run_on=where, algorithm=algorithm)  # type: ignore[arg-type]
        found[where] = result.to_dict()["result"]
    stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
