"""Profiles: the first command on a small file, a table of 20 columns, and a million rows."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.case import Case, Measurement, timed
from benchmarks.commands import run_command
from benchmarks.datasets import TAX_1M, ParquetTable
from benchmarks.memory import extra_bytes_of
from benchmarks.reading_cases import ExampleFile
from tuplewise.engine.options import ProfileOptions
from tuplewise.engine.profile.discover import Profile, profile


def twenty_columns(rows: int, seed: int) -> pa.Table:
    """A table of 20 columns of all types: ten that depend on others, some of them with errors, and ten that don't."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"id": np.arange(rows)}
    for i in range(10):
        columns[f"free_{i}"] = rng.integers(0, 4 << i, rows)
    for i in range(9):
        determined = columns[f"free_{i}"] * 7 % (3 + i)
        wrong = rng.random(rows) < i / 1000
        columns[f"bound_{i}"] = np.where(wrong, rng.integers(0, 3 + i, rows), determined)
    return pa.table(columns)


TWENTY = ParquetTable("twenty-columns", partial(twenty_columns, seed=1), 10_000)


def measure_profile(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Profiling a table that is here, and the memory that this takes on top."""
    relation = case.dataset.load(path)
    extra: list[int] = []
    stages: dict[str, float] = {}

    def once() -> Profile:
        found: list[Profile] = []
        extra.append(extra_bytes_of(lambda: found.append(profile({relation.name: relation}, ProfileOptions()))))
        stages.update(found[0].timings_seconds)
        return found[0]

    seconds, results = timed(once, warm_runs)
    listed = results[-1].tables[relation.name].found.listed
    rules = "\n".join(f"{one.rule.kind} {one.rule.left} {one.rule.right} {one.rule.exceptions}" for one in listed)
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": len(listed), "digest": hashlib.sha256(rules.encode()).hexdigest()},
        "figures": {"relation_bytes": relation.codes.nbytes, "extra_peak_bytes": extra, "stages": stages},
    }


def measure_command(case: Case, path: Path, warm_runs: int) -> Measurement:
    """The command on the example, in processes of its own, from start to exit."""
    runs = run_command(["profile", str(path)], warm_runs + 1)
    rules = "\n".join(rule["rule"] for rule in runs.reports[-1]["result"]["rules"])
    return {
        "cold_seconds": runs.seconds[0],
        "warm_seconds": runs.seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": len(rules.splitlines()), "digest": hashlib.sha256(rules.encode()).hexdigest()},
        "figures": runs.figures,
    }


PROFILE_CASES = (
    Case("cli/first-profile", ExampleFile("tax.csv"), measure_command, warm_runs=7),
    Case("profile/twenty-columns", TWENTY, measure_profile, warm_runs=5),
    Case("profile/tax-1m", TAX_1M, measure_profile, warm_runs=3),
)
