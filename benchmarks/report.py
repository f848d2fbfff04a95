"""Write the figures of the README and of docs/benchmarks.md from the records, so that none is typed by hand.

python -m benchmarks.report            rewrite the parts between the markers, and the charts
python -m benchmarks.report --check    exit 1 where they say something else
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import dependency_peers, duckdb_peer, ind_peers, peer, records
from benchmarks.case import OURS
from benchmarks.outside import REPOSITORY
from benchmarks.records import Record
from benchmarks.report_cells import alignment, megabytes, peer_of, peer_seconds, seconds, typical
from benchmarks.report_checks import SHOWN_CHECKS, check_sentences, check_table
from benchmarks.report_cluster import ON_CLUSTER, cluster_sentences
from benchmarks.report_dc_state import DC_STATES, dc_state_sentences, dc_state_tables
from benchmarks.report_gpu import GPU_RESULTS, gpu_table
from benchmarks.report_hybrid import SEARCHES, hybrid_sentences, hybrid_table
from benchmarks.report_ind import INCLUSIONS, inclusion_sentences, inclusion_table
from benchmarks.report_od import SHOWN_DEPENDENCIES, dependency_sentences, dependency_tables
from benchmarks.report_speed import growth_chart, speed_chart, speed_table

BEGIN, END = "<!-- figures: begin (python -m benchmarks.report) -->", "<!-- figures: end -->"
README, PAGE, IMAGES = (REPOSITORY / name for name in ("README.md", "docs/benchmarks.md", "docs/images"))
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

FIRST_RUN, ALL_KERNELS = "compile/dc-discover", "compile/all"
FIRST_ANSWERS = {
    "cli/first-profile": "profile",
    "cli/first-dc-discover": "dc discover",
    "cli/first-fd-discover": "fd discover",
    "cli/first-key-discover": "key discover",
    "cli/first-od-discover": "od discover",
    "cli/first-dc-check": "dc check",
}
LOADED = ("load/tax-1m-csv", "load/tax-1m-parquet")
PROFILES = {
    "profile/twenty-columns": "10,000 rows and 20 columns",
    "profile/tax-1m": "Tax, 1,000,000 rows and 15 columns",
}
COMMANDS = ("cli/tax-1000", "cli/import", FIRST_RUN, ALL_KERNELS, *FIRST_ANSWERS, *LOADED, *PROFILES)
DESBORDANTE = {
    peer.NAME: "FastADC",
    dependency_peers.FASTOD: "FASTOD",
    dependency_peers.HYFD: "HyFD",
    dependency_peers.HYUCC: "HyUCC",
    ind_peers.SPIDER: "Spider",
}


def figures(everything: list[Record], on_gpus: Sequence[Record] = ()) -> str:
    """The Markdown of the page, from the newest record of each case."""
    chapters = {
        "Machine and versions": [_circumstances],
        "Denial constraints": [_discoveries, hybrid_table, hybrid_sentences, cluster_sentences, _evidences],
        "Rules kept current": [dc_state_tables, dc_state_sentences],
        "Keys, functional and order dependencies": [dependency_tables, dependency_sentences],
        "Inclusion dependencies": [inclusion_table, inclusion_sentences],
        "Checking rules": [check_table, check_sentences],
        "Commands, files and first runs": [_commands],
    }
    said = []
    for title, parts in chapters.items():
        written = [text for part in parts if (text := part(everything))]
        if written:
            said += [f"## {title}", *written]
    if table := gpu_table(list(on_gpus)):
        said += ["## On a GPU", table]
    return "\n\n".join(said)


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
            typical(ours),
            peer_seconds(ours, theirs),
            f"{records.compare(theirs, ours):.0f} x" if theirs else "",
            megabytes(ours["peak_bytes"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = "| Table | predicates | DCs found | tuplewise | FastADC | faster | peak memory |"
    return "\n".join(["Discovery on a loaded table (evidence and inversion):", "", head, alignment(7), *lines])


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
            typical(ours),
            f"{found['nanoseconds_per_pair_per_core']:.2f} ns",
            f"{megabytes(found['extra_peak_bytes_half_the_rows'])}, {megabytes(found['extra_peak_bytes_all_rows'])}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return ""
    head = "| Table | pairs | distinct clues | time | a pair and core | memory on top, half the rows and all |"
    return "\n".join(["Comparing all pairs of rows (the evidence kernel alone):", "", head, alignment(6), *lines])


def _commands(everything: list[Record]) -> str:
    lines = []
    command = records.latest(everything, "cli/tax-1000")
    if command is not None:
        lines.append(
            f"`tuplewise dc discover` on a CSV of 1,000 rows and 15 columns, from start to exit: {typical(command)}."
        )
    lines += _first_answers(everything)
    lines += _first_runs(everything)
    imported = records.latest(everything, "cli/import")
    if imported is not None:
        lines.append(f"`import tuplewise`: {seconds(records.typical_seconds(imported))}.")
    return "\n".join(f"- {line}" for line in lines)


def _first_answers(everything: list[Record]) -> list[str]:
    """What a person waits for on a small file, and a file of a million rows."""
    lines = []
    first = {name: records.latest(everything, case) for case, name in FIRST_ANSWERS.items()}
    if all(first.values()):
        listed = ", ".join(f"`{name}` {typical(found)}" for name, found in first.items() if found is not None)
        lines.append(f"Five columns of it (`profile` takes all), kernels compiled, from start to exit: {listed}.")
    loaded = {form: records.latest(everything, f"load/tax-1m-{form.lower()}") for form in ("CSV", "Parquet")}
    if all(loaded.values()):
        listed = ", ".join(
            f"{form} {typical(found)} ({megabytes(found['figures']['file_bytes'])}; memory on top"
            f" {megabytes(max(found['figures']['extra_peak_bytes'][1:]))})"
            for form, found in loaded.items()
            if found is not None
        )
        lines.append(f"A file of 1,000,000 rows and 15 columns, read and encoded: {listed}.")
    profiled = {what: records.latest(everything, case) for case, what in PROFILES.items()}
    if all(profiled.values()):
        listed = "; ".join(
            f"{what} {typical(found)} (memory on top {megabytes(max(found['figures']['extra_peak_bytes'][1:]))})"
            for what, found in profiled.items()
            if found is not None
        )
        lines.append(f"The profile of a loaded table, without a report: {listed}.")
    return lines


def _first_runs(everything: list[Record]) -> list[str]:
    """What compiling takes."""
    lines = []
    first = records.latest(everything, FIRST_RUN)
    if first is not None:
        count, alone = first["figures"]["specialisations"], first["kernel_seconds"]["compiling"][0]
        lines.append(
            f"The same on a new machine, with no compiled kernels: {seconds(first['cold_seconds'])};"
            f" the {count} that it needs take {seconds(alone)} on one core."
        )
    every = records.latest(everything, ALL_KERNELS)
    if every is not None:
        lines.append(
            f"`tuplewise doctor --warm`, all {every['answer']['count']} kernels: {seconds(every['cold_seconds'])}"
            f" on 2 cores, {seconds(every['figures']['cpu_seconds'])} of CPU."
        )
    return lines


def _circumstances(everything: list[Record]) -> str:
    ours = [r for r in everything if r["implementation"] == OURS]
    if not ours:
        return ""
    shown = [
        records.latest(everything, case)
        for shown_cases in (
            DISCOVERIES, SEARCHES, ON_CLUSTER, DC_STATES, SHOWN_DEPENDENCIES, INCLUSIONS, EVIDENCES, SHOWN_CHECKS,
            COMMANDS,
        )
        for case in shown_cases
    ]
    devices = sorted({r["device"] for r in shown if r})
    versions = ours[-1]["versions"]
    named = ", ".join(f"{name} {versions[name]}" for name in ("python", "numba", "pyspark") if name in versions)
    known = {r["implementation"] for r in everything}
    names = [name for implementation, name in DESBORDANTE.items() if implementation in known]
    peers = []
    if names:
        listed = ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]
        peers.append(f"{listed} {'are' if len(names) > 1 else 'is'} Desbordante's, with default threads")
    theirs = [r for r in everything if r["implementation"] == duckdb_peer.NAME]
    if theirs and any(records.latest(everything, case) for case in SHOWN_CHECKS):
        version, threads = theirs[-1]["versions"]["duckdb"], theirs[-1]["figures"]["threads"]
        peers.append(
            f"DuckDB {version} has {threads} threads and, for each rule, the faster of its default and of"
            f" `{duckdb_peer.RANGE_JOINS}`"
        )
    return "; ".join([f"Medians of warm runs on {'; '.join(devices)} ({named})", *peers]) + "."


def with_figures(text: str, part: str) -> str:
    """A page's text with the part between the markers replaced. Raises ValueError where a marker is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{part}\n{END}{after}"


def wanted(
    everything: list[Record], readme: Path = README, page: Path = PAGE, images: Path = IMAGES
) -> dict[Path, str]:
    """What the README, the page and the charts must say."""
    return {
        readme: with_figures(readme.read_text(encoding="utf-8"), speed_table(everything)),
        page: with_figures(page.read_text(encoding="utf-8"), figures(everything, records.read(GPU_RESULTS))),
        images / "speed.svg": speed_chart(everything),
        images / "growth.svg": growth_chart(everything),
    }


def main(
    arguments: list[str] | None = None, *, readme: Path = README, page: Path = PAGE, images: Path = IMAGES
) -> int:
    """Rewrite or check the README, the page and the charts; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where they differ")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    texts = wanted(records.read(), readme, page, images)
    if not given.check:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return 0
    differing = [path.name for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    if differing:
        log.error("%s: not what benchmarks/results say; run python -m benchmarks.report", ", ".join(differing))
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
