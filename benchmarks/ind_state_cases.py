"""The cases of inclusion dependencies kept current: a state of TPC-H's tables built, opened, and changed.

Rows that come are lines of lineitem drawn at random, with a comment that is new and, of one in three, the key of an
order that isn't there; the same rows then go. One by one they are given as lists of text, in batches as Arrow tables;
what is measured is the whole call, from such rows to a revision that a kill of the process leaves standing.
"""

from __future__ import annotations

import csv
import hashlib
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.answers import digest_bytes
from benchmarks.case import Case, Measurement
from benchmarks.outside import package_program

if TYPE_CHECKING:
    from tuplewise.engine.table.relation import Relation
    from tuplewise.maintained import MaintainedInds

TABLES = ("lineitem", "orders", "customer", "part", "partsupp", "supplier", "nation", "region")
COMMENT, ORDER = 15, 0
SINGLE_ROWS, SYNCED_ROWS, BATCH_ROWS = 3_000, 200, 10_000
BATCHES = 5


@dataclass(frozen=True)
class TpchTables:
    """The eight tables of TPC-H as CSV files in a folder, made by the package tpchgen-cli."""

    name: str
    scale: float

    def write(self, folder: Path) -> Path:
        """Make the files in a folder of `folder`, if they aren't there. Raises MissingData without tpchgen-cli."""
        target = folder / self.name
        if not (target / "region.csv").exists():
            command = [package_program("tpchgen-cli"), "csv", "-s", str(self.scale), "-o", str(target)]
            subprocess.run(command, check=True, capture_output=True)
        return target

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the tables: rows and columns of all together."""
        whole, rows, columns = hashlib.sha256(), 0, 0
        for table in TABLES:
            with (path / f"{table}.csv").open("rb") as lines:
                header = lines.readline()
                whole.update(header)
                columns += header.count(b",") + 1
                while block := lines.read(1 << 24):
                    whole.update(block)
                    rows += block.count(b"\n")
        return {"name": self.name, "sha256": whole.hexdigest(), "rows": rows, "columns": columns}

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """The largest table."""
        import tuplewise

        relation: Relation = tuplewise.load(str(path / "lineitem.csv"), columns=columns)
        return relation


def drawn_lines(path: Path, rows: int, seed: int) -> list[list[str]]:
    """Rows of lineitem, drawn by places in the file, with values that are new."""
    draw = random.Random(seed)
    size = path.stat().st_size
    found = []
    with path.open("rb") as stream:
        for i in range(rows):
            stream.seek(draw.randrange(size - 2000))
            stream.readline()
            row = next(csv.reader([stream.readline().decode()]))
            row[COMMENT] = f"{row[COMMENT][::-1]} {seed} {i}"
            if i % 3 == 0:
                row[ORDER] = str(int(row[ORDER]) // 32 * 32 + 9 + i % 8)  # TPC-H uses the first 8 keys of 32
            found.append(row)
    return found


def measure_state(case: Case, path: Path, warm_runs: int) -> Measurement:
    """A state built in a new folder beside the tables, opened, changed one row at a time and in batches."""
    import tuplewise as tw

    sync = bool(case.parameters["sync"])
    folder = path / ("state-sync" if sync else "state")
    shutil.rmtree(folder, ignore_errors=True)
    files = {table: path / f"{table}.csv" for table in TABLES}
    started = time.perf_counter()
    tw.maintain_inds(folder, files, sync=sync).close()
    built = time.perf_counter() - started
    started = time.perf_counter()
    state = tw.maintain_inds(folder)
    opened = time.perf_counter() - started
    with state:
        inds = sorted(map(str, state.inds))
        figures = {"state_bytes": _bytes_of(folder), "open_seconds": opened, "build_seconds": built}
        figures |= _single(state, files["lineitem"], SYNCED_ROWS if sync else SINGLE_ROWS, warm_runs)
        figures |= _batches(state, files["lineitem"])
        if sorted(map(str, state.inds)) != inds:
            raise RuntimeError("the rows that came are gone, and other dependencies hold")
    shutil.rmtree(folder)
    digest = digest_bytes(*(text.encode() for text in inds))
    return {
        "cold_seconds": built,
        "warm_seconds": [],
        "kernel_seconds": {},
        "answer": {"count": len(inds), "digest": digest},
        "figures": figures,
    }


def _bytes_of(folder: Path) -> int:
    """Bytes that a folder takes on the disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir())


def _each(work: Callable[[Any], Any], rows: Sequence[Any]) -> list[float]:
    seconds = []
    for row in rows:
        started = time.perf_counter()
        work(row)
        seconds.append(time.perf_counter() - started)
    return seconds


def _single(state: MaintainedInds, lines: Path, rows: int, rounds: int) -> dict[str, float]:
    """Median microseconds of a row that comes, and of one that goes: in the first round after opening, and later."""
    drawn = drawn_lines(lines, rows, seed=1)
    come: list[list[float]] = []
    go: list[list[float]] = []
    for _ in range(1 + rounds):
        come.append(_each(lambda row: state.insert([row], table="lineitem"), drawn))
        go.append(_each(lambda row: state.delete([row], table="lineitem"), drawn))
    first = {"insert_first": come[0], "delete_first": go[0]}
    later = {name: [s for turn in turns[1:] for s in turn] for name, turns in (("insert", come), ("delete", go))}
    return {f"{name}_microseconds": 1e6 * statistics.median(seconds) for name, seconds in {**first, **later}.items()}


def _batches(state: MaintainedInds, lines: Path) -> dict[str, float]:
    """Tuples a second in batches, median."""
    import pyarrow as pa

    with lines.open(encoding="utf-8") as stream:
        names = next(csv.reader(stream))
    come, go = [], []
    for seed in range(2, 2 + BATCHES):
        drawn = drawn_lines(lines, BATCH_ROWS, seed)
        table = pa.table({name: [row[i] for row in drawn] for i, name in enumerate(names)})
        come += _each(lambda rows: state.insert(rows, table="lineitem"), [table])
        go += _each(lambda rows: state.delete(rows, table="lineitem"), [table])
    return {
        "insert_tuples_per_second": BATCH_ROWS / statistics.median(come),
        "delete_tuples_per_second": BATCH_ROWS / statistics.median(go),
    }


def _case(scale: str, sync: bool) -> Case:
    name = f"ind_state/tpch-{scale}" + ("-sync" if sync else "")
    tables = TpchTables(f"tpch-tables-{scale}", float(scale))
    return Case(name, tables, measure_state, {"sync": sync, "batch_rows": BATCH_ROWS}, warm_runs=2)


IND_STATE_CASES = tuple(_case(scale, sync) for scale in ("0.1", "1") for sync in (False, True))
