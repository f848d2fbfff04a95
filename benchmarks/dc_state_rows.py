"""A state of denial constraints of a large table: rows that come and go one by one, how it opens, what it takes."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import unquote

import numpy as np

from benchmarks.answers import digest_constraints
from benchmarks.case import Case, Measurement
from benchmarks.growing import parquet_bytes
from benchmarks.memory import resident_bytes
from benchmarks.outside import REPOSITORY

if TYPE_CHECKING:
    import pyarrow as pa

    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.options import DcStateOptions

OPENINGS, LATER_ROWS = 3, 50
CLUES = ("clues", "witnesses", "counts", "sets", "violations", "probes", "promised", "own")
OPENING = """
import json, sys, time
from tuplewise.engine.dc.incremental.state import DcState
started = time.perf_counter()
state = DcState(sys.argv[1], device="cpu")
seconds = [time.perf_counter() - started]
for row in map(json.loads, sys.argv[2:]):
    started = time.perf_counter()
    state.insert(state.read(row))
    seconds.append(time.perf_counter() - started)
from benchmarks.memory import resident_bytes  # the peak of getrusage would be that of the process that started this
print(json.dumps([seconds, resident_bytes(peak=True)]))
"""


def rows_needed(parameters: dict[str, Any]) -> int:
    """How many rows come in a case of single rows."""
    batch = parameters["batch_rows"]
    single = int(parameters["single_rows"]) + int(parameters["counted_rows"])
    return 2 + single + (int(batch) + LATER_ROWS if batch else 0)


def options_of(parameters: dict[str, Any]) -> DcStateOptions:
    """The options of a case's state."""
    from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions

    discover = DcDiscoverOptions(
        cross_columns=parameters["cross_columns"], nulls=parameters["nulls"], device="cpu"
    )  # fmt: skip
    return DcStateOptions(discover=discover, sync=parameters.get("sync", False), index=parameters.get("index", "auto"))


def measure_rows(case: Case, path: Path, warm_runs: int) -> Measurement:
    """A state built of the first rows of a Parquet file, opened and changed by the others.

    Cold is the first row that comes in a new process; warm are single rows later.
    """
    from pyarrow import parquet

    import tuplewise
    from tuplewise.engine.dc.incremental.initial import build
    from tuplewise.engine.dc.incremental.state import DcState

    given, table = case.parameters, parquet.read_table(path)
    first, more = table.slice(0, given["rows"]), _Coming(table.slice(given["rows"]))
    relation = tuplewise.load(first, name=case.dataset.name)
    folder = path.with_name("state-of-" + case.name.replace("/", "-"))
    shutil.rmtree(folder, ignore_errors=True)
    started = time.perf_counter()
    build(folder, relation, options_of(given), written_by="benchmarks")
    figures: dict[str, Any] = {
        "build_seconds": time.perf_counter() - started,
        "build_peak_bytes": resident_bytes(peak=True),
        "bytes": bytes_by_part(folder),
        "parquet_bytes": parquet_bytes(first),
    }
    del relation, table, first
    figures |= opened_anew(folder, more.row())
    with DcState(folder, device="cpu") as state:
        figures |= {"rules_before": len(state.constraints()), "counting": state.counting}
        _insert(state, more.row())  # what is made by the first row after opening
        seconds = [_insert(state, more.row()) for _ in range(given["single_rows"])]
        figures |= _of_inserts("insert", seconds) | _deletes(state, given)
        figures["pairs_compared"] = _pairs(state, more, given["counted_rows"])
        if given["batch_rows"]:
            batch = more.table(given["batch_rows"])
            figures["batch_seconds"] = dict(zip(("reading", "inserting"), _insert(state, batch), strict=True))
            later = [_insert(state, more.row()) for _ in range(LATER_ROWS)]
            figures |= _of_inserts("insert_after_batch", later)
        figures |= {"log_bytes": bytes_by_part(folder)["log"]}
        answer = answer_of(state, check=given["checked"])
    shutil.rmtree(folder)
    return {
        "cold_seconds": figures["first_insert_seconds"],
        "warm_seconds": [reading + inserting for reading, inserting in seconds],
        "kernel_seconds": {},
        "answer": answer,
        "figures": figures,
    }


class _Coming:
    """Hands out the rows of a table in turn."""

    def __init__(self, table: pa.Table) -> None:
        self._table, self._at = table, 0

    def table(self, rows: int) -> pa.Table:
        self._at += rows
        return self._table.slice(self._at - rows, rows)

    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = self.table(1).to_pylist()[0]
        return row


def _insert(state: DcState, rows: Any) -> tuple[float, float]:
    """Seconds of reading rows into codes, and of inserting them."""
    started = time.perf_counter()
    batch = state.read(rows)
    read = time.perf_counter()
    state.insert(batch)
    return read - started, time.perf_counter() - read


def _of_inserts(name: str, seconds: Sequence[tuple[float, float]]) -> dict[str, Any]:
    reading, inserting = zip(*seconds, strict=True)
    return {
        f"{name}_seconds": spread([a + b for a, b in seconds]),
        f"{name}_reading_seconds": spread(reading),
        f"{name}_applying_seconds": spread(inserting),
    }


def _deletes(state: DcState, given: dict[str, Any]) -> dict[str, Any]:
    """Rows of those that the state was built of, drawn at random, go one by one."""
    drawn = np.random.default_rng(1).choice(given["rows"], given["deleted_rows"], replace=False)
    seconds, changed = [], 0
    for row in drawn.tolist():
        started = time.perf_counter()
        applied = state.delete([row])
        seconds.append(time.perf_counter() - started)
        changed += bool(applied.gained)
    return {"delete_seconds": spread(seconds), "deletes_that_gained": changed}


def _pairs(state: DcState, more: _Coming, rows: int) -> dict[str, float]:
    """Pairs of rows that are compared for a row that comes."""
    with counted_pairs() as counted:
        pairs = []
        for _ in range(rows):
            before = counted[0]
            _insert(state, more.row())
            pairs.append(counted[0] - before)
    return spread(pairs)


@contextmanager
def counted_pairs() -> Iterator[list[int]]:
    """Adds up, in the one number of a list, the pairs that are compared for rows that come."""
    from tuplewise.gpu_kernels.column_set_index import Comparing

    counted = [0]
    probe, scan, of_pairs = Comparing.probe, Comparing.scan, Comparing.of_pairs

    def counting_probe(self: Comparing, *given: Any, **named: Any) -> Any:
        met, compared = probe(self, *given, **named)
        counted[0] += int(compared.sum())
        return met, compared

    def counting_scan(self: Comparing, codes: Any, alive: Any, new: Any, start: int, *given: Any, **named: Any) -> Any:
        counted[0] += int((new - start).sum())
        return scan(self, codes, alive, new, start, *given, **named)

    def counting_of_pairs(self: Comparing, codes: Any, t: Any, u: Any) -> Any:
        counted[0] += len(t)
        return of_pairs(self, codes, t, u)

    with (
        mock.patch.object(Comparing, "probe", counting_probe),
        mock.patch.object(Comparing, "scan", counting_scan),
        mock.patch.object(Comparing, "of_pairs", counting_of_pairs),
    ):
        yield counted


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, the value that nine in ten don't exceed, and the greatest.

    Examples
    --------
    >>> spread([float(value) for value in range(11)])
    {'median': 5.0, 'p90': 9.0, 'most': 10.0}
    """
    ordered = sorted(values)
    nine = ordered[max(0, -(-9 * len(ordered) // 10) - 1)]
    return {"median": float(statistics.median(ordered)), "p90": float(nine), "most": float(ordered[-1])}


def opened_anew(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    """The state opened in new processes, and a row inserted in the last one; medians of those without."""
    opened, whole = [], []
    for _ in range(OPENINGS):
        started = time.perf_counter()
        (seconds,), _ = _process(folder)
        whole.append(time.perf_counter() - started)
        opened.append(seconds)
    (_, inserted), peak = _process(folder, json.dumps(row))
    return {
        "open_seconds": statistics.median(opened),
        "open_process_seconds": statistics.median(whole),
        "first_insert_seconds": inserted,
        "opened_peak_bytes": peak,
    }


def _process(folder: Path, *rows: str) -> tuple[list[float], int]:
    command = [sys.executable, "-c", OPENING, str(folder.resolve()), *rows]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=REPOSITORY)
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def bytes_by_part(folder: Path) -> dict[str, int]:
    """Bytes of a state's files: codes, dictionaries, orders, zones, clues_and_sets, log, other."""
    found = dict.fromkeys(("codes", "dictionaries", "orders", "zones", "clues_and_sets", "log", "other"), 0)
    for file in folder.rglob("*"):
        if file.is_file():
            found[_part_of(unquote(file.name))] += file.stat().st_size
    return found


def _part_of(name: str) -> str:
    kind = name.removesuffix(".npy").split("/")[0]
    if kind == "sorted":
        return "zones" if name == "sorted/zones.npy" else "orders"
    if name.startswith("log-"):
        return "log"
    if kind in CLUES:
        return "clues_and_sets"
    return {"column": "codes", "dictionary": "dictionaries"}.get(kind, "other")


def answer_of(state: DcState, *, check: bool) -> dict[str, Any]:
    """The rules of a state; `check`: they must be those of a discovery on its rows, in the same order."""
    if check:
        from tuplewise.engine.dc.discover import discover

        refuse_others(state, discover(state.relation(), state.options.discover, space=state.space))
    count, digest = digest_constraints(
        [(p.left, p.operator, str(p.right)) for p in constraint.predicates] for constraint in state.constraints()
    )
    return {"count": count, "digest": digest, "listed": len(state.constraints()), "as_discovered": check}


def refuse_others(state: DcState, found: Any) -> None:
    """Raise RuntimeError where a discovery found other rules, or in another order."""
    mine, theirs = state.arrays(), found.arrays
    if not all(np.array_equal(getattr(mine, n), getattr(theirs, n)) for n in ("predicates", "sizes", "violations")):
        raise RuntimeError(f"the state has {len(mine)} rules, discovery finds {len(theirs)}, and they differ")


def timed_once(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
