"""The part of docs/benchmarks.md about discovery on large tables."""

from __future__ import annotations

from benchmarks import records
from benchmarks.hybrid_cases import GROWTH_ROWS
from benchmarks.records import Record
from benchmarks.report_cells import alignment, megabytes, percent, seconds, typical

SEARCHES = {
    "dc_hybrid/tax-1000000": "Tax, no errors",
    "dc_hybrid/tax-1000000-errors": "Tax, errors in 0.1 % of the rows",
    "dc_hybrid/tax-4000000": "Tax, no errors",
    "dc_ten_million/tax": "Tax, no errors",
    "dc_hybrid/flights": "Flights from New York in 2013",
    "dc_error/tax-1000000-1e-4": "Tax, errors in 0.1 % of the rows; 4 predicates or fewer, g1 at most 1e-4",
    "dc_error/tax-1000000-1e-6": "the same, g1 at most 1e-6",
}
HYDRA = "dc_hydra/tax-1000000"


def hybrid_table(everything: list[Record]) -> str:
    """Rows, constraints, share of the pairs that were compared, time and memory of each large table."""
    lines = []
    for case, title in SEARCHES.items():
        ours = records.latest(everything, case)
        if ours is None:
            continue
        search = ours["figures"]["search"]
        time = typical(ours) if ours["warm_seconds"] else f"{seconds(ours['cold_seconds'])} (cold)"
        cells = [
            title,
            f"{ours['dataset']['rows']:,} x {ours['dataset']['columns']}",
            f"{ours['answer']['count']:,}",
            percent(search["share_of_pairs"]),
            f"{search['validated']:,}",
            time,
            megabytes(ours["peak_bytes"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = "| Table | rows, columns | DCs found | pairs compared | validated | tuplewise | peak memory |"
    title = "Discovery on large loaded tables (`hybrid`, no cross-column predicates):"
    return "\n".join([title, "", head, alignment(7), *lines])


def hybrid_sentences(everything: list[Record]) -> str:
    """Growth with rows, and Hydra as published beside the search."""
    lines = []
    growth = [records.latest(everything, f"dc_hybrid/tax-{rows}") for rows in GROWTH_ROWS]
    if all(growth):
        times = ", ".join(seconds(records.typical_seconds(r)) for r in growth if r is not None)
        sizes = ", ".join(f"{rows:,}" for rows in GROWTH_ROWS)
        lines.append(f"Tax without errors, {sizes} rows: {times}.")
    hydra, ours = records.latest(everything, HYDRA), records.latest(everything, "dc_hybrid/tax-1000000")
    if hydra is not None and ours is not None:
        lines.append(
            f"Hydra as published (`--algorithm hydra`) on Tax, {hydra['dataset']['rows']:,} rows:"
            f" {seconds(hydra['cold_seconds'])}; `hybrid`: {seconds(records.typical_seconds(ours))}."
        )
    return "\n".join(f"- {line}" for line in lines)
