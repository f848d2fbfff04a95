"""The cases of work on a Spark cluster: two executors of one core on this machine's loopback, beside one process that
works on one thread.

Both read the same Parquet file through Spark, whose sessions are started already. On a machine of two cores the driver
has none of its own.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.answers import digest_constraints
from benchmarks.case import Case, Measurement, Peer
from benchmarks.datasets import ParquetTable
from benchmarks.discoveries import timed_phases
from benchmarks.generators import tax

if TYPE_CHECKING:
    from tuplewise.engine.options import RunOn

ROWS = 250_000
SEED = 2
ONE_THREAD = "one process, one thread"
# Small tables are the tests' business: these plans are compiled, as users' are.
CONF = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


def measure_on_cluster(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Discovery in the tasks of a standalone cluster."""
    from tests.spark.loopback import DRIVER_CONF, loopback_cluster
    from tuplewise.engine.spark.session import open_session, stop

    with tempfile.TemporaryDirectory() as folder, loopback_cluster(Path(folder) / "cluster") as cluster:
        own = {"spark.local.dir": str(cluster.folder / "local")}
        session = open_session(master=cluster.master, conf={**DRIVER_CONF, **CONF, **own})
        try:
            return _measured(case, path, warm_runs, "spark") | {"figures": {"master": session.master, "executors": 2}}
        finally:
            stop()


def measure_on_one_thread(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Discovery in this process, which is kept to one core."""
    from tuplewise.engine.spark.session import open_session, stop

    open_session(master="local[1]", conf=CONF)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        return _measured(case, path, warm_runs, "driver")
    finally:
        stop()


def _measured(case: Case, path: Path, warm_runs: int, run_on: RunOn) -> Measurement:
    """From the file to constraints."""
    import tuplewise as tw

    how: dict[str, Any] = {"algorithm": "evidence", "device": "cpu", "cross_columns": case.parameters["cross_columns"]}
    measured, found = timed_phases(partial(tw.discover_dcs, str(path), run_on=run_on, **how), warm_runs)
    count, digest = digest_constraints(
        [(p.left, p.operator, str(p.right)) for p in constraint.predicates] for constraint in found.constraints
    )
    return measured | {"answer": {"count": count, "digest": digest, "listed": len(found.constraints)}}


CLUSTER_CASES = (
    Case(
        "dc_cluster/tax-250000-evidence",
        ParquetTable(f"tax-{ROWS}-seed-{SEED}", partial(tax, seed=SEED), ROWS),
        measure_on_cluster,
        {"cross_columns": False},
        peers={ONE_THREAD: Peer(measure_on_one_thread, warm_runs=1)},
        warm_runs=1,
    ),
)
