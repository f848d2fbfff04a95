"""What the README says of speed: few cases, each beside a program that ran in the same run, as a table and charts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import duckdb_peer, peer, records
from benchmarks.bar_chart import BLUE, RED, Bar, Tick, bar_chart
from benchmarks.hybrid_cases import GROWTH_ROWS
from benchmarks.ind_peers import GROUP_BY, SPIDER
from benchmarks.records import Record
from benchmarks.report_cells import alignment, peer_of, seconds, times_faster, typical

SPEEDS = (
    ("dc_discover/airport-30000", peer.NAME, "every denial constraint of Airport", "FastADC"),
    ("ind/tpch-1", SPIDER, "every inclusion between columns of TPC-H's tables", "Spider"),
    ("ind/tpch-1", GROUP_BY, "the same", "DuckDB"),
    ("check/phi5", duckdb_peer.NAME, "check `zip -> city`", "DuckDB"),
    ("check/phi9", duckdb_peer.NAME, "check that more flights don't carry fewer passengers", "DuckDB"),
    ("check/phi11-100k", duckdb_peer.NAME, "check that no two deliveries overlap", "DuckDB"),
    ("check/phi14", duckdb_peer.NAME, "check `title, production_year -> kind`", "DuckDB"),
    ("check/phi10", duckdb_peer.NAME, "check that no two firms supply each other", "DuckDB"),
)


class Speed(NamedTuple):
    """A case beside its peer."""

    what: str
    peer: str
    ours: Record
    theirs: Record

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return records.compare(self.theirs, self.ours)


def speeds(everything: list[Record]) -> Iterator[Speed]:
    """The cases that were run, each with its peer. Raises ValueError where the peer didn't run in the same run."""
    for case, name, what, called in SPEEDS:
        ours = records.latest(everything, case)
        theirs = peer_of(everything, ours, name) if ours is not None else None
        if ours is None or theirs is None:
            continue
        if theirs["run"] != ours["run"]:
            raise ValueError(f"{case}: {called} was not run in the run of ours: {theirs['run']}, {ours['run']}")
        yield Speed(what, called, ours, theirs)


def speed_table(everything: list[Record]) -> str:
    """The README's table."""
    lines = [
        f"| {one.what[0].upper()}{one.what[1:]} | {one.ours['dataset']['rows']:,} | {typical(one.ours)}"
        f" | {one.peer} | {typical(one.theirs)} | {times_faster(one.ratio)} |"
        for one in speeds(everything)
    ]
    if not lines:
        return ""
    head = "| Work | rows | tuplewise | the other | takes | faster |"
    return "\n".join([head, alignment(6), *lines])


def speed_chart(everything: list[Record]) -> str:
    """How many times faster ours is, on a logarithmic scale: to the right of 1 ours is faster."""
    shown = [(one, math.log10(one.ratio)) for one in speeds(everything)]
    if not shown:
        return ""
    low = math.floor(min(0.0, *(power for _, power in shown)))
    high = math.ceil(max(1.0, *(power for _, power in shown)))

    def place(power: float) -> float:
        return (power - low) / (high - low)

    bars = []
    for one, power in shown:
        begin, end = sorted((place(0.0), place(power)))
        label = f"{one.what.replace('`', '')} ({one.peer})"
        bars.append(Bar(label, begin, end, times_faster(one.ratio), BLUE if power >= 0 else RED))
    ticks = [Tick(place(n), f"{10.0**n:g} x", "#555" if n == 0 else "#ddd") for n in range(low, high + 1)]
    return bar_chart("How many times faster tuplewise is than the program beside it", bars, ticks)


def growth_chart(everything: list[Record]) -> str:
    """Seconds to find every exact constraint of Tax, by rows."""
    found = [(rows, records.latest(everything, f"dc_hybrid/tax-{rows}")) for rows in GROWTH_ROWS]
    timed = [(rows, records.typical_seconds(record)) for rows, record in found if record is not None]
    if not timed:
        return ""
    most = max(taken for _, taken in timed)
    bars = [Bar(f"{rows:,} rows", 0.0, taken / most, seconds(taken)) for rows, taken in timed]
    return bar_chart("Seconds to find every denial constraint of the Tax table", bars, [Tick(0.0, "0 s", "#555")])
