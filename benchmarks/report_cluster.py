"""The part of docs/benchmarks.md about work on a Spark cluster."""

from __future__ import annotations

from benchmarks import records
from benchmarks.cluster_cases import CLUSTER_CASES, ONE_THREAD
from benchmarks.records import Record
from benchmarks.report_cells import peer_of, times_faster, typical

ON_CLUSTER = tuple(case.name for case in CLUSTER_CASES)


def cluster_sentences(everything: list[Record]) -> str:
    """Two executors beside one thread."""
    lines = []
    for case in ON_CLUSTER:
        ours = records.latest(everything, case)
        theirs = None if ours is None else peer_of(everything, ours, ONE_THREAD)
        if ours is None or theirs is None:
            continue
        lines.append(
            f"- On a standalone cluster of {ours['figures']['executors']} executors with one core each, all pairs of"
            f" {ours['dataset']['rows']:,} rows x {ours['dataset']['columns']} columns of Tax, from the file to the"
            f" rules: {typical(ours)}; {ONE_THREAD}: {typical(theirs)} ({times_faster(records.compare(theirs, ours))})."
        )
    return "\n".join(lines)
