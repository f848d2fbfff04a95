"""What docs/benchmarks.md says of order dependencies, functional dependencies and keys."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import records
from benchmarks.dependency_peers import FASTOD, HYFD, HYUCC
from benchmarks.od_cases import GROWTH_ROWS
from benchmarks.records import Record
from benchmarks.report_cells import alignment, megabytes, peer_of, peer_seconds, percent, seconds, times_faster, typical

ORDERS = {
    "od/adult": "Adult",
    "od/plista": "Plista",
    "od/fuel": "Fuel",
    "od/world_population": "World population",
    "od/flights-50000": "Flights from New York in 2013, first",
    "od/flights": "all of them",
    "od/letter-like-20000": "Made like Letter, 16 values a column",
}
EQUALITIES = {
    "fd/adult": ("Adult, functional dependencies", HYFD),
    "fd/plista": ("Plista, functional dependencies", HYFD),
    "fd/flights": ("Flights from New York in 2013, functional dependencies", HYFD),
    "key/flights": ("the same, keys", HYUCC),
    "wide/fds-90x50000": ("Made as a join of dimensions, functional dependencies", HYFD),
    "wide/keys-250x100000": ("the same, wider, keys", HYUCC),
}
GROWTH = (*(f"od/flights-{rows}" for rows in GROWTH_ROWS), "od/flights")
LEVELWISE, HYBRID = "od/adult-levelwise", "od/adult"
SHOWN_DEPENDENCIES = (*ORDERS, *EQUALITIES, *GROWTH, LEVELWISE)


def dependency_tables(everything: list[Record]) -> str:
    """Order dependencies beside FASTOD, then FDs and keys beside HyFD and HyUCC, as Markdown tables."""
    return "\n\n".join(part for part in (_orders(everything), _equalities(everything)) if part)


def _orders(everything: list[Record]) -> str:
    lines = []
    for case, title in ORDERS.items():
        ours = records.latest(everything, case)
        if ours is None:
            continue
        constant, pairs = _kinds(ours)
        search = ours["figures"]["search"]
        found = [title, _size(ours), f"{constant:,}, {pairs:,}", _share(search), f"{search['validated']:,}"]
        lines.append(_line(found, everything, ours, FASTOD))
    if not lines:
        return ""
    head = (
        "| Table | rows, columns | constant, order compatible | pairs compared | validated | tuplewise | FASTOD"
        " | faster | peak memory |"
    )
    title = "Order dependencies of a loaded table (all minimal ones; nulls first):"
    return "\n".join([title, "", head, alignment(9), *lines])


def _equalities(everything: list[Record]) -> str:
    lines = []
    for case, (title, peer) in EQUALITIES.items():
        ours = records.latest(everything, case)
        if ours is not None:
            found = [title, _size(ours), f"{ours['answer']['count']:,}", _share(ours["figures"]["search"])]
            lines.append(_line(found, everything, ours, peer))
    if not lines:
        return ""
    head = (
        "| Table | rows, columns | found | pairs compared | tuplewise | HyFD, for keys HyUCC | faster | peak memory |"
    )
    title = "Functional dependencies and keys of a loaded table (all minimal ones; nulls equal):"
    return "\n".join([title, "", head, alignment(8), *lines])


def _line(found: list[str], everything: list[Record], ours: Record, peer: str) -> str:
    theirs = peer_of(everything, ours, peer)
    faster = times_faster(records.compare(theirs, ours)) if theirs else ""
    cells = [*found, typical(ours), peer_seconds(ours, theirs), faster, megabytes(ours["peak_bytes"])]
    return "| " + " | ".join(cells) + " |"


def _size(record: Record) -> str:
    return f"{record['dataset']['rows']:,} x {record['dataset']['columns']}"


def _kinds(record: Record) -> tuple[int, int]:
    """Constant ones, and pairs of columns of either direction."""
    kinds = record["figures"]["kinds"]
    return kinds.get("constant", 0), kinds.get("ascending", 0) + kinds.get("descending", 0)


def _share(search: Mapping[str, float]) -> str:
    return percent(search["share_of_pairs"])


def dependency_sentences(everything: list[Record]) -> str:
    """Growth with rows, where the time goes, and HyOD as published, as a Markdown list."""
    lines = []
    growth = [records.latest(everything, case) for case in GROWTH]
    known = [record for record in growth if record is not None]
    if len(known) == len(growth):
        sizes = ", ".join(f"{record['dataset']['rows']:,}" for record in known)
        lines.append(f"Order dependencies of the first {sizes} flights: {', '.join(map(typical, known))}.")
        phases = known[-1]["kernel_seconds"]
        taken = sorted(((times[-1], phase) for phase, times in phases.items()), reverse=True)
        said = ", ".join(f"{phase} {seconds(time)}" for time, phase in taken)
        lines.append(f"Of the last warm run on all flights: {said}.")
    levelwise, hybrid = records.latest(everything, LEVELWISE), records.latest(everything, HYBRID)
    if levelwise is not None and hybrid is not None:
        search = levelwise["figures"]["search"]
        lines.append(
            f"HyOD as published (`--algorithm levelwise`) on Adult: {typical(levelwise)},"
            f" {search['validated']:,} candidates validated on the table, {search['sample_rows']:,} rows in the sample"
            f" at the end; `hybrid`: {typical(hybrid)}, {hybrid['figures']['search']['validated']:,} validated."
        )
    return "\n".join(f"- {line}" for line in lines)
