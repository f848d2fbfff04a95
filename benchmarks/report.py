"""Write the README's figures from the records, so that none is typed by hand.

python -m benchmarks.report            rewrite the part of README.md between the markers
python -m benchmarks.report --check    exit 1 where README.md says something else
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks import duckdb_peer, peer, records
from benchmarks.case import OURS
from benchmarks.check_cases import ONE_BY_ONE
from benchmarks.outside import REPOSITORY
from benchmarks.records import Record

BEGIN, END = "<!-- figures: begin (python -m benchmarks.report) -->", "<!-- figures: end -->"
README = REPOSITORY / "README.md"
log = logging.getLogger("benchmarks")

DISCOVERIES = {
    "dc_discover/airport-30000": "Airport, 30,000 rows",
    "dc_discover/adult-2000": "Adult, first 2,000 rows, no cross-column predicates",
    "dc_discover/adult-24000": "Adult, first 24,000 rows, no cross-column predicates",
    "dc_discover/adult-24000-cross": "Adult, first 24,000 rows",
    "dc_discover/uce": "Uce, 14,246 rows, no cross-column predicates",
}
EVIDENCES = {
    "evidence/adult": "Adult, whole",
    "evidence/airport-30000": "Airport, 30,000 rows",
    "evidence/generated-100": "generated, few distinct clues",
    "evidence/generated-10000": "generated, many distinct clues",
}
CHECKS = {
    "check/phi4": "Tax: `area_code, phone` is a key",
    "check/phi5": "Tax: `zip -> city`",
    "check/phi6": "Tax: `state, has_child -> child_exemp`",
    "check/phi7": "Tax: in a state, who earns more has no lower rate",
    "check/phi8": "Flights: a route is as long as its way back",
    "check/phi9": "Flights: on a route, more flights don't carry fewer passengers",
    "check/phi10": "TPC-H: no two are customer and supplier of each other",
    "check/phi11": "TPC-H: no two deliveries are under way at once",
    "check/phi12-100k": "TPC-H: a higher price has no lower discount",
    "check/phi12": "the same",
    "check/phi13-1m": "TPC-H: the same for equal quantity and tax",
    "check/phi13": "the same",
    "check/phi14": "Titles: `title, production_year -> kind`",
    "check/phi15": "Castings: `title, name, char_name, role` is a key",
    "check/constant-left-100k": "`site -> serial`, one site, all serials different",
    "check/three-inequalities-100k": "TPC-H: three inequalities",
    "check/four-inequalities-100k": "TPC-H: four inequalities",
    "check/three-inequalities-in-groups": "Tax: three inequalities in a state",
}
LISTINGS = {"check/phi4-listed": "check/phi4", "check/phi5-listed": "check/phi5", "check/phi6-listed": "check/phi6"}
CHECKS_BESIDE = (
    "check/tax-clean-exists",
    "check/constant-left-100k-first",
    "check/twenty-rules",
    "check/command-30000",
)
_SHOWN = (*DISCOVERIES, *EVIDENCES, *CHECKS, *LISTINGS, *CHECKS_BESIDE, "cli/tax-1000", "cli/import")


def seconds(value: float) -> str:
    """Two significant digits and more for long times.

    Examples
    --------
    >>> seconds(0.04567), seconds(3.21), seconds(222.3)
    ('0.046 s', '3.2 s', '222 s')
    """
    if value < 1:
        return f"{value:.2g} s"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def megabytes(value: float) -> str:
    """Whole megabytes (10^6 bytes)."""
    return f"{value / 1e6:,.0f} MB"


def times_faster(ratio: float) -> str:
    """Two significant digits and more for large ratios.

    Examples
    --------
    >>> times_faster(2.04), times_faster(633.2)
    ('2.0 x', '633 x')
    """
    return f"{ratio:.1f} x" if ratio < 10 else f"{ratio:,.0f} x"


def peer_of(everything: Iterable[Record], ours: Record, name: str) -> Record | None:
    """The peer's record to set beside ours: of the same run, else the newest; never of another machine."""
    theirs = [r for r in everything if r["case"] == ours["case"] and r["implementation"] == name]
    theirs = [r for r in theirs if r["device"] == ours["device"]]
    same_run = [r for r in theirs if r["run"] == ours["run"]]
    found = same_run or theirs
    return found[-1] if found else None


def figures(everything: list[Record]) -> str:
    """The Markdown between the markers, from the newest record of each case."""
    parts = [
        _discoveries(everything),
        _evidences(everything),
        _checks(everything),
        _checks_beside(everything),
        _commands(everything),
        _circumstances(everything),
    ]
    return "\n\n".join(part for part in parts if part)


def _discoveries(everything: list[Record]) -> str:
    lines = []
    for case, title in DISCOVERIES.items():
        ours = records.latest(everything, case)
        if ours is None:
            continue
        theirs = peer_of(everything, ours, peer.NAME)
        cells = [
            title,
            f"{ours['figures']['predicates']}",
            f"{ours['answer']['count']:,}",
            _typical(ours),
            _peer_seconds(ours, theirs),
            f"{records.compare(theirs, ours):.0f} x" if theirs else "",
            megabytes(ours["peak_bytes"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = "| Table | predicates | DCs found | tuplewise | FastADC | faster | peak memory |"
    return "\n".join(["Discovery on a loaded table (evidence and inversion):", "", head, _rule(7), *lines])


def _peer_seconds(ours: Record, theirs: Record | None) -> str:
    """The peer's time; marked where it is not of the same run as ours."""
    if theirs is None:
        return "not run"
    taken = seconds(records.typical_seconds(theirs))
    return taken if theirs["run"] == ours["run"] else f"{taken} (run of its own)"


def _evidences(everything: list[Record]) -> str:
    lines = []
    for case, title in EVIDENCES.items():
        ours = records.latest(everything, case)
        if ours is None:
            continue
        found = ours["figures"]
        cells = [
            title,
            f"{found['unordered_pairs'] / 1e6:,.0f} million",
            f"{ours['answer']['count']:,}",
            _typical(ours),
            f"{found['nanoseconds_per_pair_per_core']:.2f} ns",
            f"{megabytes(found['extra_peak_bytes_half_the_rows'])}, {megabytes(found['extra_peak_bytes_all_rows'])}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = "| Table | pairs | distinct clues | time | a pair and core | memory on top, half the rows and all |"
    return "\n".join(["Comparing all pairs of rows (the evidence kernel alone):", "", head, _rule(6), *lines])


def _checks(everything: list[Record]) -> str:
    lines = []
    for case, title in CHECKS.items():
        ours = records.latest(everything, case)
        if ours is None:
            continue
        theirs = peer_of(everything, ours, duckdb_peer.NAME)
        cells = [
            title,
            f"{ours['dataset']['rows']:,}",
            f"{ours['answer']['count']:,}",
            _typical(ours),
            _peer_seconds(ours, theirs),
            times_faster(records.compare(theirs, ours)) if theirs else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = "| Rule | rows | violating pairs | tuplewise | DuckDB | faster |"
    return "\n".join(["Checking a rule on a loaded table (exact count of ordered pairs):", "", head, _rule(6), *lines])


def _checks_beside(everything: list[Record]) -> str:
    """Sentences on listing, existence, many rules, memory and the command."""
    found = {case: records.latest(everything, case) for case in (*CHECKS, *LISTINGS, *CHECKS_BESIDE)}
    lines = []
    for listing, counting in LISTINGS.items():
        ours = found[listing]
        if ours is not None:
            theirs = peer_of(everything, ours, duckdb_peer.NAME)
            beside = f" (DuckDB, in no order: {_typical(theirs)})" if theirs else ""
            lines.append(
                f'All {ours["answer"]["count"]:,} pairs of "{CHECKS[counting]}" listed in order:'
                f" {_typical(ours)}{beside}."
            )
    if (exists := found["check/tax-clean-exists"]) is not None:
        title, rows = CHECKS["check/phi7"], exists["dataset"]["rows"]
        lines.append(f'Whether any pair violates "{title}", {rows:,} rows without errors: {_typical(exists)}.')
    if (first := found["check/constant-left-100k-first"]) is not None:
        lines.append(
            f"Count, rows by their pairs and the first {first['answer']['count']} of"
            f" {first['figures']['violating_pairs']:,} pairs (one site, all serials different): {_typical(first)}."
        )
    if (many := found["check/twenty-rules"]) is not None:
        alone = peer_of(everything, many, ONE_BY_ONE)
        beside = f", one by one {_typical(alone)}" if alone else ""
        theirs = peer_of(everything, many, duckdb_peer.NAME)
        beside += f", DuckDB {_typical(theirs)}" if theirs else ""
        lines.append(
            f"{len(many['parameters']['rules'])} keys of 3 to 5 columns that share columns,"
            f" {many['dataset']['rows']:,} rows: {_typical(many)} together{beside}."
        )
    if (large := found["check/phi12"]) is not None:
        lines.append(
            f"Memory on top of the two encoded columns ({megabytes(large['figures']['encoded_columns_bytes'])}) while"
            f" counting the pairs of {large['dataset']['rows']:,} TPC-H rows:"
            f" {megabytes(large['figures']['extra_peak_bytes'])}."
        )
    if (command := found["check/command-30000"]) is not None:
        own = statistics.median(command["figures"]["own_seconds"][1:])
        lines.append(
            f"`tuplewise dc check` with {len(command['parameters']['rules'])} rules on a CSV of"
            f" {command['dataset']['rows']:,} rows, from start to exit: {_typical(command)}, of which {seconds(own)} is"
            " not Spark starting and reading."
        )
    return "\n".join(f"- {line}" for line in lines)


def _typical(record: Record) -> str:
    return seconds(records.typical_seconds(record))


def _commands(everything: list[Record]) -> str:
    lines = []
    command = records.latest(everything, "cli/tax-1000")
    if command is not None:
        own = statistics.median(command["figures"]["own_seconds"][1:])
        lines.append(
            f"`tuplewise dc discover` on a CSV of 1,000 rows and 15 columns, from start to exit:"
            f" {seconds(records.typical_seconds(command))}, of which {seconds(own)} is not Spark starting and reading."
        )
    imported = records.latest(everything, "cli/import")
    if imported is not None:
        lines.append(f"`import tuplewise`: {seconds(records.typical_seconds(imported))}.")
    return "\n".join(lines)


def _circumstances(everything: list[Record]) -> str:
    ours = [r for r in everything if r["implementation"] == OURS]
    if not ours:
        return ""
    shown = [records.latest(everything, case) for case in _SHOWN]
    devices = sorted({r["device"] for r in shown if r})
    versions = ours[-1]["versions"]
    named = ", ".join(f"{name} {versions[name]}" for name in ("python", "numba", "pyspark") if name in versions)
    peers = ["FastADC is Desbordante's, with default threads"]
    theirs = [r for r in everything if r["implementation"] == duckdb_peer.NAME]
    if theirs:
        version, threads = theirs[-1]["versions"]["duckdb"], theirs[-1]["figures"]["threads"]
        peers.append(
            f"DuckDB {version} has {threads} threads and, for each rule, the faster of its default and of"
            f" `{duckdb_peer.RANGE_JOINS}`"
        )
    return f"Medians of warm runs on {'; '.join(devices)} ({named}); {'; '.join(peers)}."


def _rule(columns: int) -> str:
    return "|---" + "|---:" * (columns - 1) + "|"


def with_figures(text: str, part: str) -> str:
    """README text with the part between the markers replaced. Raises ValueError where a marker is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{part}\n{END}{after}"


def main(arguments: list[str] | None = None, *, readme: Path = README) -> int:
    """Rewrite or check the README; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where the README differs")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    text = readme.read_text(encoding="utf-8")
    wanted = with_figures(text, figures(records.read()))
    if given.check:
        if wanted != text:
            log.error("README.md differs from benchmarks/results: run python -m benchmarks.report")
        return int(wanted != text)
    readme.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
