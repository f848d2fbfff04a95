"""Spider of Desbordante and the same grouping in DuckDB's SQL, which unary inclusion dependencies are timed against.

Both compare values as text, as ours with `as_text`; TPC-H has no empty cells, which Spider takes for texts and the
others for nulls. Spider is given the paths as it wants them, with its default threads. In SQL the form was chosen that
was the fastest of three on scale 0.1: each file is read once, as text; of each column the distinct values; these are
grouped to bit masks, and the masks counted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.answers import digest_inclusions
from benchmarks.case import Case, Measurement
from benchmarks.records import cores

SPIDER, GROUP_BY = "desbordante-spider", "duckdb-group-by"
Pair = tuple[str, str]  # two attributes, `table.column`
_SIDE = re.compile(r"\((.+?)\.csv, \[(.+?)\]\)")


def table_paths(folder: Path) -> dict[str, Path]:
    """The CSV files of a folder, by the names of their tables."""
    return {path.stem: path for path in sorted(folder.glob("*.csv"))}


def run_spider(tables: dict[str, Path]) -> list[Pair]:
    """Unary inclusion dependencies between CSV files with headers."""
    import desbordante

    algorithm = desbordante.ind.algorithms.Spider()
    algorithm.load_data(tables=[(str(path), ",", True) for path in tables.values()])
    algorithm.execute()
    return [parse_inclusion(str(ind)) for ind in algorithm.get_inds()]


def parse_inclusion(text: str) -> Pair:
    """Read one inclusion dependency as Spider prints it.

    Examples
    --------
    >>> parse_inclusion("(orders.csv, [o_custkey]) -> (customer.csv, [c_custkey])")
    ('orders.o_custkey', 'customer.c_custkey')
    """
    left, arrow, right = text.partition(" -> ")
    sides = [_SIDE.fullmatch(side) for side in (left, right)]
    if not arrow or not all(sides):
        raise ValueError(f"not an inclusion dependency: {text!r}")
    dependent, referenced = (f"{side[1]}.{side[2]}" for side in sides if side)
    return dependent, referenced


def run_group_by(tables: dict[str, Path]) -> list[Pair]:
    """The same by SQL over at most 64 columns, in as many threads as we have cores."""
    import duckdb

    connection = duckdb.connect(config={"threads": cores()})
    names: list[str] = []
    branches = []
    for table, path in tables.items():
        read = "read_csv(?, header=true, all_varchar=true)"
        connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM {read}', [str(path)])
        for column in (row[0] for row in connection.execute(f'DESCRIBE "{table}"').fetchall()):
            bit = f"{1 << len(names)}::UBIGINT"
            branches.append(f'SELECT DISTINCT "{column}" AS v, {bit} AS m FROM "{table}" WHERE "{column}" IS NOT NULL')
            names.append(f"{table}.{column}")
    sets = f"SELECT v, bit_or(m) AS m FROM ({' UNION ALL '.join(branches)}) GROUP BY v"
    masks = [mask for mask, _ in connection.execute(f"SELECT m, count(*) FROM ({sets}) GROUP BY m").fetchall()]
    return list(_pairs(names, masks))


def _pairs(names: list[str], masks: list[int]) -> Iterator[Pair]:
    for a, dependent in enumerate(names):
        inside = -1
        own = [mask for mask in masks if mask >> a & 1]
        for mask in own:
            inside &= mask
        yield from ((dependent, name) for b, name in enumerate(names) if own and a != b and inside >> b & 1)


def measure_with(run: Callable[[dict[str, Path]], list[Pair]], case: Case, path: Path, warm_runs: int) -> Measurement:
    """The measurement of a peer: from files to the answer, loading included."""
    seconds: list[float] = []
    found: Any = []
    for _ in range(warm_runs + 1):
        started = time.perf_counter()
        found = run(table_paths(path))
        seconds.append(time.perf_counter() - started)
    count, digest = digest_inclusions(found)
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": count, "digest": digest},
        "figures": {},
    }
