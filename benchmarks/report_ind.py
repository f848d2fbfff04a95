"""What docs/benchmarks.md says of inclusion dependencies."""

from __future__ import annotations

from benchmarks import records
from benchmarks.ind_peers import GROUP_BY, SPIDER
from benchmarks.records import Record
from benchmarks.report_cells import alignment, megabytes, peer_of, peer_seconds, seconds, times_faster, typical

INCLUSIONS = {"ind/tpch-0.1": "TPC-H, scale 0.1", "ind/tpch-1": "TPC-H, scale 1"}


def inclusion_table(everything: list[Record]) -> str:
    """Unary inclusion dependencies beside Spider and DuckDB, as a Markdown table."""
    lines = []
    for case, title in INCLUSIONS.items():
        ours = records.latest(everything, case)
        if ours is not None:
            lines.append(_line(title, ours, everything))
    if not lines:
        return ""
    head = (
        "| Tables | rows, columns in all | found | tuplewise | peak memory | Spider | faster | peak memory"
        " | DuckDB, GROUP BY | faster | peak memory |"
    )
    title = "Unary inclusion dependencies of CSV files, from files to the answer, all values as text:"
    return "\n".join([title, "", head, alignment(11), *lines])


def _line(title: str, ours: Record, everything: list[Record]) -> str:
    size = f"{ours['dataset']['rows']:,} x {ours['dataset']['columns']}"
    cells = [title, size, f"{ours['answer']['count']:,}", typical(ours), megabytes(ours["peak_bytes"])]
    for name in (SPIDER, GROUP_BY):
        theirs = peer_of(everything, ours, name)
        faster = times_faster(records.compare(theirs, ours)) if theirs else ""
        cells += [peer_seconds(ours, theirs), faster, megabytes(theirs["peak_bytes"]) if theirs else ""]
    return "| " + " | ".join(cells) + " |"


def inclusion_sentences(everything: list[Record]) -> str:
    """The first run of a process, and where the time goes at the largest scale, as a Markdown list."""
    ours = [r for r in (records.latest(everything, case) for case in INCLUSIONS) if r is not None]
    if not ours:
        return ""
    last = ours[-1]
    taken = sorted(((times[-1], phase) for phase, times in last["kernel_seconds"].items()), reverse=True)
    parts = ", ".join(f"{phase} {seconds(time)}" for time, phase in taken)
    values, clusters = (f"{last['figures'][name]:,}" for name in ("values", "clusters"))
    return (
        f"- {INCLUSIONS[last['case']]}: {values} distinct values in {clusters} clusters; the first run of a process"
        f" took {seconds(last['cold_seconds'])}; of the last one {parts}."
    )
