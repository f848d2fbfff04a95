"""What a person waits for first: whole commands on a small file, and a file of a million rows to a Relation."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.answers import digest_bytes
from benchmarks.case import Case, Measurement
from benchmarks.commands import run_command
from benchmarks.datasets import MILLION
from benchmarks.generators import tax, write_csv, write_parquet
from benchmarks.memory import extra_bytes_of
from benchmarks.outside import REPOSITORY
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.table import load

COLUMNS = "zip,city,state,salary,rate"
FIRST_COMMANDS: dict[str, list[str]] = {
    "dc discover": ["--columns", COLUMNS],
    "fd discover": ["--columns", COLUMNS],
    "key discover": ["--columns", COLUMNS],
    "od discover": ["--columns", COLUMNS],
    "dc check": ["--columns", COLUMNS, "--rule", "zip -> city"],
}


@dataclass(frozen=True)
class ExampleFile:
    """A file of the repository's examples."""

    name: str

    def write(self, folder: Path) -> Path:
        return REPOSITORY / "examples" / self.name

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the table."""
        content = path.read_bytes()
        lines = content.splitlines()
        sha256 = hashlib.sha256(content).hexdigest()
        return {"name": self.name, "sha256": sha256, "rows": len(lines) - 1, "columns": lines[0].count(b",") + 1}

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """The file as a table."""
        return load(str(path), LoadOptions(columns=None if columns is None else tuple(columns)))


@dataclass(frozen=True)
class TaxFile:
    """Tax of a million rows, as a file of a format."""

    format: str

    @property
    def name(self) -> str:
        return f"tax-1m.{self.format}"

    def write(self, folder: Path) -> Path:
        """Make the file; one that is there is left as it is."""
        target = folder / self.name
        if not target.exists():
            (write_csv if self.format == "csv" else write_parquet)(tax(MILLION, seed=1, error_share=0.01), target)
        return target

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the table."""
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        return {"name": self.name, "sha256": sha256, "rows": MILLION, "columns": 15, "bytes": path.stat().st_size}

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """The file as a table."""
        return load(str(path), LoadOptions(columns=None if columns is None else tuple(columns)))


def measure_first(command: str, case: Case, path: Path, warm_runs: int) -> Measurement:
    """A command in processes of its own, from start to exit; kernels are compiled in the first, which is cold."""
    runs = run_command([*command.split(), str(path), *FIRST_COMMANDS[command]], warm_runs + 1)
    result = runs.reports[-1]["result"]
    count = result["count"] if "count" in result else len(result["rules"])
    return {
        "cold_seconds": runs.seconds[0],
        "warm_seconds": runs.seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": count, "digest": digest_bytes(command.encode())},
        "figures": runs.figures,
    }


def measure_load(case: Case, path: Path, warm_runs: int) -> Measurement:
    """A file to a Relation, and the memory that this takes beyond what the process held before, once it is warm."""
    seconds: list[float] = []
    extra: list[int] = []
    relation = None
    for _ in range(warm_runs + 1):
        relation = None  # the one before is let go

        def once() -> None:
            nonlocal relation
            started = time.perf_counter()
            relation = load(str(path))
            seconds.append(time.perf_counter() - started)

        extra.append(extra_bytes_of(once))
    assert relation is not None
    held = relation.codes.nbytes + sum(values.nbytes for values in relation.dictionaries.values())
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": relation.rows, "digest": digest_bytes(np.ascontiguousarray(relation.codes).tobytes())},
        "figures": {"relation_bytes": held, "file_bytes": path.stat().st_size, "extra_peak_bytes": extra},
    }


READING_CASES = (
    *(
        Case(
            f"cli/first-{command.replace(' ', '-')}", ExampleFile("tax.csv"), partial(measure_first, command),
            warm_runs=7,
        )
        for command in FIRST_COMMANDS
    ),
    *(Case(f"load/tax-1m-{form}", TaxFile(form), measure_load, warm_runs=5) for form in ("csv", "parquet")),
)  # fmt: skip
