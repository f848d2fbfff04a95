"""Commands under a time limit that is far too short: how well it is kept, from start to exit, and what they list.

The answer differs from run to run, since the clock decides. So it is the promise that is recorded: a run that takes a
tenth more than its limit, or lists a longer constraint before a shorter one, is no record but an error.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.answers import digest_bytes
from benchmarks.case import Case, Measurement
from benchmarks.commands import run_command
from benchmarks.datasets import ParquetTable
from benchmarks.od_cases import all_departures

EXIT_LIMIT = 3
MOST_TIMES = 1.1  # of the limit that a command may take


def like_columns(rows: int, *, columns: int, values: int, seed: int) -> pa.Table:
    """Columns of like numbers, independent of each other: nearly every large set of comparisons is a constraint."""
    drawn = np.random.default_rng(seed).integers(0, values, size=(columns, rows))
    return pa.table({f"c{i}": column for i, column in enumerate(drawn)})


def measure_limit(case: Case, path: Path, warm_runs: int) -> Measurement:
    """The command of a case, in processes of its own, with the case's limit."""
    limit = case.parameters["time_limit_seconds"]
    arguments = [*case.parameters["command"], str(path), "--time-limit", str(limit)]
    runs = run_command(arguments, warm_runs + 1, exit_code=EXIT_LIMIT)
    listed = [len(rule["predicates"]) for report in runs.reports for rule in report["result"]["constraints"]]
    for report in runs.reports:
        sizes = [len(rule["predicates"]) for rule in report["result"]["constraints"]]
        if sizes != sorted(sizes):
            raise RuntimeError(f"{case.name}: a longer constraint is listed before a shorter one")
    if max(runs.seconds) > MOST_TIMES * limit:
        raise RuntimeError(f"{case.name}: a limit of {limit} s took {max(runs.seconds):.1f} s")
    figures: dict[str, Any] = {
        "share_of_limit": [seconds / limit for seconds in runs.seconds],
        "listed": [report["result"]["count"] for report in runs.reports],
        "shortest": min(listed, default=0),
        "longest": max(listed, default=0),
        "notes": [note for note in runs.reports[-1]["notes"] if "time limit" in note],
    }
    return {
        "cold_seconds": runs.seconds[0],
        "warm_seconds": runs.seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": 1, "digest": digest_bytes(b"within the limit, the shortest first")},
        "figures": figures | runs.figures,
    }


LIKE = ParquetTable("like-500", partial(like_columns, columns=9, values=100, seed=7), 500)
DEPARTURES = ParquetTable("all-departures-10000", all_departures, 10_000)
LIMIT_CASES = tuple(
    Case(
        f"limit/{dataset.name}-{seconds}",
        dataset,
        measure_limit,
        {"command": ["dc", "discover"], "time_limit_seconds": seconds},
        warm_runs=2,
    )
    for dataset in (LIKE, DEPARTURES)
    for seconds in (10, 30)
)
