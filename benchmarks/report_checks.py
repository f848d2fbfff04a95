"""What docs/benchmarks.md says of rule checking."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import duckdb_peer, records
from benchmarks.check_cases import ONE_BY_ONE
from benchmarks.records import Record
from benchmarks.report_cells import alignment, megabytes, peer_of, peer_seconds, times_faster, typical

CHECKS = {
    "check/phi4": "Tax: `area_code, phone` is a key",
    "check/phi5": "Tax: `zip -> city`",
    "check/phi6": "Tax: `state, has_child -> child_exemp`",
    "check/phi7": "Tax: in a state, who earns more has no lower rate",
    "check/phi8": "Flights: a route is as long as its way back",
    "check/phi9": "Flights: on a route, more flights don't carry fewer passengers",
    "check/phi10": "TPC-H: no two are customer and supplier of each other",
    "check/phi11-100k": "TPC-H: no two deliveries are under way at once",
    "check/phi11": "the same",
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
SHOWN_CHECKS = (*CHECKS, *LISTINGS, *CHECKS_BESIDE)


def check_table(everything: list[Record]) -> str:
    """Counts of violating pairs beside DuckDB's, as a Markdown table."""
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
            typical(ours),
            peer_seconds(ours, theirs),
            times_faster(records.compare(theirs, ours)) if theirs else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = "| Rule | rows | violating pairs | tuplewise | DuckDB | faster |"
    return "\n".join(
        ["Checking a rule on a loaded table (exact count of ordered pairs):", "", head, alignment(6), *lines]
    )


def check_sentences(everything: list[Record]) -> str:
    """Listing, existence, many rules, memory and the command, as a Markdown list."""
    said = [*_listings(everything), *_existence(everything), *_many_rules(everything), *_memory_and_command(everything)]
    return "\n".join(f"- {line}" for line in said)


def _listings(everything: list[Record]) -> Sequence[str]:
    lines = []
    for listing, counting in LISTINGS.items():
        ours = records.latest(everything, listing)
        if ours is not None:
            theirs = peer_of(everything, ours, duckdb_peer.NAME)
            beside = f" (DuckDB, in no order: {typical(theirs)})" if theirs else ""
            count = f"{ours['answer']['count']:,}"
            lines.append(f'All {count} pairs of "{CHECKS[counting]}" listed in order: {typical(ours)}{beside}.')
    if (first := records.latest(everything, "check/constant-left-100k-first")) is not None:
        lines.append(
            f"Count, rows by their pairs and the first {first['answer']['count']:,} of"
            f" {first['figures']['violating_pairs']:,} pairs (one site, all serials different): {typical(first)}."
        )
    return lines


def _existence(everything: list[Record]) -> Sequence[str]:
    exists = records.latest(everything, "check/tax-clean-exists")
    if exists is None:
        return []
    theirs = peer_of(everything, exists, duckdb_peer.NAME)
    beside = f" (DuckDB: {typical(theirs)})" if theirs else ""
    title, rows = CHECKS["check/phi7"], f"{exists['dataset']['rows']:,}"
    return [f'Whether any pair violates "{title}", {rows} rows without errors: {typical(exists)}{beside}.']


def _many_rules(everything: list[Record]) -> Sequence[str]:
    many = records.latest(everything, "check/twenty-rules")
    if many is None:
        return []
    beside = ""
    for name, said in ((ONE_BY_ONE, "one by one"), (duckdb_peer.NAME, "DuckDB")):
        if (other := peer_of(everything, many, name)) is not None:
            beside += f", {said} {typical(other)}"
    rules, rows = len(many["parameters"]["rules"]), f"{many['dataset']['rows']:,}"
    return [f"{rules} keys of 3 to 5 columns that share columns, {rows} rows: {typical(many)} together{beside}."]


def _memory_and_command(everything: list[Record]) -> Sequence[str]:
    lines = []
    if (large := records.latest(everything, "check/phi12")) is not None:
        columns, extra = (megabytes(large["figures"][f]) for f in ("encoded_columns_bytes", "extra_peak_bytes"))
        lines.append(
            f"Memory on top of the two encoded columns ({columns}) while counting the pairs of"
            f" {large['dataset']['rows']:,} TPC-H rows: {extra}."
        )
    if (command := records.latest(everything, "check/command-30000")) is not None:
        lines.append(
            f"`tuplewise dc check` with {len(command['parameters']['rules'])} rules on a CSV of"
            f" {command['dataset']['rows']:,} rows, from start to exit: {typical(command)}."
        )
    return lines
