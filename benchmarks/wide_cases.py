"""Keys and functional dependencies of tables of 90, 250 and 500 columns, without a bound where the answer is small."""

from __future__ import annotations

from functools import partial

from benchmarks.case import Case, Peer
from benchmarks.datasets import ParquetTable
from benchmarks.dependency_peers import HYFD, HYUCC, measure_with, run_hyfd, run_hyucc
from benchmarks.od_cases import measure_dependencies
from benchmarks.wide_tables import joined_dimensions


def _wide(columns: int, rows: int) -> ParquetTable:
    made = partial(joined_dimensions, columns=columns, seed=1)
    return ParquetTable(f"joined-dimensions-{columns}x{rows}", made, rows)


def _case(name: str, dataset: ParquetTable, discover: str, max_context: int | None = None, **peers: Peer) -> Case:
    parameters = {"discover": discover, "algorithm": "auto", "nulls": "value", "max_context": max_context}
    beside = {{"hyfd": HYFD, "hyucc": HYUCC}[name]: peer for name, peer in peers.items()}
    return Case(name, dataset, measure_dependencies, parameters, beside, warm_runs=2)


WIDE_CASES = (
    _case("wide/keys-250x100000", _wide(250, 100_000), "key", hyucc=Peer(measure_with(run_hyucc), warm_runs=0)),
    _case("wide/fds-90x50000", _wide(90, 50_000), "fd", hyfd=Peer(measure_with(run_hyfd), warm_runs=0)),
    _case("wide/keys-500x100000-of-3", _wide(500, 100_000), "key", 3),
    _case("wide/fds-500x100000-of-2", _wide(500, 100_000), "fd", 2),
)
