"""What the README says of speed: few cases, each beside a program that ran in the same run, as a table and a chart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from benchmarks import duckdb_peer, peer, records
from benchmarks.ind_peers import GROUP_BY, SPIDER
from benchmarks.records import Record
from benchmarks.report_cells import alignment, peer_of, times_faster, typical

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


ROW, LEFT, WIDTH = 26, 400, 840


def speed_chart(everything: list[Record]) -> str:
    """An SVG image of how many times faster ours is, on a logarithmic scale: to the right of 1 ours is faster."""
    shown = list(speeds(everything))
    if not shown:
        return ""
    low = math.floor(min(0.0, *(math.log10(one.ratio) for one in shown)))
    high = math.ceil(max(1.0, *(math.log10(one.ratio) for one in shown)))
    a_decade = (WIDTH - LEFT - 60) / (high - low)

    def place(ratio: float) -> float:
        return LEFT + (math.log10(ratio) - low) * a_decade

    bottom = 20 + ROW * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 30}" role="img"'
        ' font-family="sans-serif" font-size="12">',
        "<title>How many times faster tuplewise is than the program beside it</title>",
        f'<rect width="{WIDTH}" height="{bottom + 30}" fill="#fff"/>',
    ]
    for power in range(low, high + 1):
        x, stroke = place(10.0**power), "#555" if power == 0 else "#ddd"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="12" y2="{bottom}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{10.0**power:g} x</text>')
    for number, one in enumerate(shown):
        y = 20 + ROW * number
        begin, end = sorted((place(1.0), place(one.ratio)))
        label = escape(f"{one.what.replace('`', '')} ({one.peer})")
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{label}</text>')
        color = "#1f5f8b" if one.ratio >= 1 else "#b5541c"
        parts.append(f'<rect x="{begin:.1f}" y="{y}" width="{end - begin:.1f}" height="16" fill="{color}"/>')
        parts.append(f'<text x="{max(end, place(1.0)) + 5:.1f}" y="{y + 12}">{times_faster(one.ratio)}</text>')
    return "\n".join([*parts, "</svg>", ""])
