"""Records of benchmarks: one JSON object a line, with everything needed to judge the figure later."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.outside import REPOSITORY

RESULTS = Path(__file__).resolve().parent / "results"
VERSIONED = ("tuplewise", "numpy", "numba", "pyarrow", "pyspark", "desbordante", "duckdb")

Record = dict[str, Any]


def processor() -> str:
    """Name of the processor and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (match := re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)):
        name = match[1].strip()
    return f"{name}, {cores()} cores"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter, where installed."""
    found = {"python": platform.python_version()}
    for name in VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> tuple[str | None, bool | None]:
    """Commit of the working tree and whether tracked source differs from it; (None, None) outside a repository."""

    def git(*words: str) -> str:
        return subprocess.run(("git", *words), cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout

    try:
        sources = ("engine", "gpu_kernels", "spark_conf", "src", "benchmarks/*.py")
        return git("rev-parse", "HEAD").strip(), bool(git("status", "--porcelain", "--", *sources).strip())
    except (OSError, subprocess.CalledProcessError):
        return None, None


def append(record: Record, folder: Path = RESULTS) -> Path:
    """Append a record to `<folder>/<group>.jsonl`, the group being the part of the case before the slash."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (str(record["case"]).split("/")[0] + ".jsonl")
    with target.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    return target


def read(folder: Path = RESULTS) -> list[Record]:
    """All records of a folder, oldest first."""
    found: list[Record] = []
    for path in sorted(folder.glob("*.jsonl")):
        found += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return sorted(found, key=lambda r: str(r.get("time_utc", "")))


def latest(records: Iterable[Record], case: str, implementation: str = "tuplewise") -> Record | None:
    """The newest record of a case and implementation."""
    wanted = [r for r in records if r.get("case") == case and r.get("implementation") == implementation]
    return wanted[-1] if wanted else None


def typical_seconds(record: Record) -> float:
    """Median of the warm runs; the cold run where there were none."""
    return float(statistics.median(record["warm_seconds"] or [record["cold_seconds"]]))


def compare(old: Record, new: Record) -> float:
    """Compute how many times faster `new` is than `old`. Refuses records that aren't comparable.

    Raises
    ------
    ValueError
        Where dataset, answer or device differ; all differences are named.
    """
    faults = []
    for name, path in (("dataset", ("dataset", "sha256")), ("answer", ("answer", "digest")), ("device", ("device",))):
        a, b = (_at(r, path) for r in (old, new))
        if a is None or a != b:
            faults.append(f"{name}: {a!r} and {b!r}")
    if faults:
        raise ValueError("not comparable: " + "; ".join(faults))
    return typical_seconds(old) / typical_seconds(new)


def _at(record: Record, path: tuple[str, ...]) -> Any:
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
