"""Cases of compiling: the first run of a command on a new machine, and all kernels at once."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import datasets
from benchmarks.answers import digest_bytes
from benchmarks.case import Case, Measurement
from benchmarks.commands import run_command
from tuplewise.engine.cli.kernels import NEEDED

RULES = (
    "not(t.zip == u.zip and t.city != u.city)",
    "not(t.state == u.state and t.salary < u.salary and t.rate > u.rate)",
)
ARGUMENTS: dict[str, list[str]] = {
    "dc discover": [],
    "dc check": ["--fail-on", "100%", *(word for rule in RULES for word in ("--rule", rule))],
    "fd discover": [],
    "key discover": [],
    "od discover": [],
    "ind discover": [],
}
"""Of the commands whose first run is measured, beside the table."""


def measure_first_run(case: Case, path: Path, warm_runs: int) -> Measurement:
    """A command in a process of its own with an empty cache, then with a full one; and what it compiles, function by
    function, in one process."""
    command = str(case.parameters["command"])
    arguments = [*command.split(), str(path), *ARGUMENTS[command]]
    with tempfile.TemporaryDirectory(prefix="tuplewise-kernels-") as kernels:
        runs = run_command(arguments, warm_runs + 1, environment={"TUPLEWISE_KERNELS": kernels})
    compiled = compile_alone(*NEEDED[command])
    result = json.dumps(what_was_found(runs.reports[-1]["result"]), sort_keys=True)
    return {
        "cold_seconds": runs.seconds[0],
        "warm_seconds": runs.seconds[1:],
        "kernel_seconds": {"compiling": [compiled.pop("seconds")]},
        "answer": {"count": compiled["specialisations"], "digest": digest_bytes(result.encode())},
        "figures": {**runs.figures, **compiled},
    }


def measure_all(case: Case, path: Path, warm_runs: int) -> Measurement:
    """All kernels by as many processes as there are cores; then, function by function, by one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory(prefix="tuplewise-kernels-") as kernels:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "tuplewise.gpu_kernels.building", "--into", kernels], check=True)
        seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    compiled = compile_alone()
    return {
        "cold_seconds": seconds,
        "warm_seconds": [],
        "kernel_seconds": {"compiling": [compiled.pop("seconds")]},
        "answer": {"count": compiled["specialisations"], "digest": digest_bytes(b"compiled")},
        "figures": {"cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, **compiled},
    }


def compile_alone(*names: str) -> dict[str, Any]:
    """What `compile_events` tells of some kernels, all without names."""
    command = [sys.executable, "-m", "benchmarks.compile_events", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    compiled: dict[str, Any] = json.loads(done.stdout)
    return compiled


def what_was_found(value: Any) -> Any:
    """A result without what differs from run to run: times, and how the search chose by them."""
    if isinstance(value, dict):
        return {k: what_was_found(v) for k, v in value.items() if "seconds" not in k and k not in ("search", "plan")}
    return [what_was_found(part) for part in value] if isinstance(value, list) else value


def _first_run(command: str) -> Case:
    name = f"compile/{command.replace(' ', '-')}"
    return Case(name, datasets.TAX_1000, measure_first_run, {"command": command}, warm_runs=2)


COMPILE_CASES = (
    Case("compile/all", datasets.TAX_1000, measure_all, warm_runs=0),
    *(_first_run(command) for command in ARGUMENTS),
)
