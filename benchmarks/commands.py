"""Commands of tuplewise in processes of their own, from start to exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CommandRuns:
    """Times and output of some runs of one command.

    Attributes
    ----------
    seconds : from start to exit, of each run
    reports : the JSON object that each run printed
    """

    seconds: list[float]
    reports: list[dict[str, Any]]

    @property
    def figures(self) -> dict[str, Any]:
        """Seconds of starting Spark and reading, seconds of our own work, and the most memory of a run."""
        times = [report["timings_seconds"] for report in self.reports]
        spark = [t.get("session", 0.0) + t.get("load", 0.0) for t in times]
        return {
            "spark_session_and_load_seconds": spark,
            "own_seconds": [total - part for total, part in zip(self.seconds, spark, strict=True)],
            "command_peak_bytes": max(report["peak_rss_bytes"] for report in self.reports),
        }


def run_command(
    arguments: Sequence[str], runs: int, *, exit_code: int = 0, environment: Mapping[str, str] | None = None
) -> CommandRuns:
    """Run `tuplewise ARGUMENTS --format json --device cpu` so many times. Raises RuntimeError for another exit code.

    `environment`: variables beside those of this process.
    """
    command = [sys.executable, "-m", "tuplewise.engine.cli.main", *arguments, "--format", "json", "--device", "cpu"]
    seconds, reports = [], []
    for _ in range(runs):
        started = time.perf_counter()
        variables = {**os.environ, **(environment or {})}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
        seconds.append(time.perf_counter() - started)
        if done.returncode != exit_code:
            raise RuntimeError(f"{' '.join(arguments)} ended with exit code {done.returncode}: {done.stderr}")
        reports.append(json.loads(done.stdout))
    return CommandRuns(seconds, reports)
