"""Order dependencies, functional dependencies and keys against published answers, and against others' programs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyarrow import csv

import tuplewise
from benchmarks.answers import Dependency
from benchmarks.dependency_peers import run_fastod, run_hyfd, run_hyucc, text_frame
from benchmarks.od_cases import all_departures, stated
from benchmarks.outside import MissingData
from tuplewise.engine.od.discover import discover
from tuplewise.engine.options import FdDiscoverOptions, KeyDiscoverOptions, OdDiscoverOptions

pytestmark = pytest.mark.outside
Algorithm = Literal["hybrid", "levelwise"]
ALGORITHMS: tuple[Algorithm, ...] = ("hybrid", "levelwise")


def ranked(shared: Path, name: str) -> pa.Table:
    return csv.read_csv(shared / "data" / "ranked" / f"{name}.csv")


def orders(table: pa.Table, algorithm: Algorithm = "hybrid") -> list[Dependency]:
    relation = tuplewise.load(table)
    return stated(discover(relation, OdDiscoverOptions(algorithm=algorithm, device="cpu")).dependencies)


def functional(table: pa.Table, algorithm: Algorithm = "hybrid") -> list[Dependency]:
    options = FdDiscoverOptions(algorithm=algorithm, nulls="value", device="cpu")
    return stated(discover(tuplewise.load(table), options).dependencies)


def keys(table: pa.Table, algorithm: Algorithm = "hybrid") -> list[Dependency]:
    options = KeyDiscoverOptions(algorithm=algorithm, nulls="value", device="cpu")
    return stated(discover(tuplewise.load(table), options).dependencies)


def as_set(dependencies: list[Dependency]) -> set[Any]:
    """Neither the order of a context nor that of a pair counts."""
    found = {(frozenset(context), kind, frozenset(right)) for context, kind, right in dependencies}
    assert len(found) == len(dependencies)
    return found


# ---------------------------------------------------------------- published answers


@pytest.mark.parametrize(
    ("table", "constant", "pairs"),
    [("adult", 78, 1_405), ("plista", 5_235, 72_861), ("world_population", 24, 18), ("fuel", 2, 5)],
)
def test_counts_are_the_published_ones(shared: Path, table: str, constant: int, pairs: int) -> None:
    kinds = [kind for _, kind, _ in orders(ranked(shared, table))]
    assert (kinds.count("constant"), len(kinds) - kinds.count("constant")) == (constant, pairs)


@pytest.mark.parametrize("name", ["world_population", "fuel"])
def test_sets_are_the_published_ones(shared: Path, name: str) -> None:
    table = ranked(shared, name)
    expected = json.loads((shared / "data" / "expected" / f"od_{name}.json").read_text(encoding="utf-8"))
    place = {column: position for position, column in enumerate(table.column_names)}
    wanted = {
        (frozenset(place[c] for c in d["context"]), "constant", frozenset([place[d["attribute"]]]))
        for d in expected["constant"]
    }
    for d in expected["order_compatible"]:
        pair = frozenset((place[d["left"]], place[d["right"]]))
        wanted.add((frozenset(place[c] for c in d["context"]), d["direction"], pair))
    assert as_set(orders(table)) == wanted


# ---------------------------------------------------------------- other programs, live


@pytest.fixture
def peers() -> None:
    pytest.importorskip("desbordante", reason="the package desbordante isn't installed (extra: peers)")
    pytest.importorskip("pandas")


def random_table(seed: int, *, nulls: bool) -> pa.Table:
    """Whole numbers with ties; at times a constant column, one like another, equal rows, nulls; 2 to 40 rows."""
    rng = random.Random(seed)
    rows = rng.choice([2, 3, 5, 8, 12, 20, 40])
    columns: list[list[int | None]] = []
    for _ in range(rng.randint(1, 6)):
        values: list[int | None] = list(range(rng.choice([1, 2, 3, 9, 60])))
        columns.append(rng.choices(values + [None] * (nulls * rng.randint(0, 2)), k=rows))
    if rng.random() < 0.2:
        columns[-1] = [value if value is None or rng.random() < 0.9 else value + 1 for value in columns[0]]
    if rng.random() < 0.2:
        columns = [[*column[:-1], column[0]] for column in columns]
    return pa.table({f"c{place}": pa.array(column, pa.int64()) for place, column in enumerate(columns)})


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_order_dependencies_equal_fastod(algorithm: Algorithm) -> None:
    for seed in range(60):
        table = random_table(seed, nulls=False)
        assert as_set(orders(table, algorithm)) == as_set(run_fastod(table.to_pandas())[1]), seed


@pytest.mark.usefixtures("peers")
def test_order_dependencies_of_fuel_equal_fastod(shared: Path) -> None:
    table = ranked(shared, "fuel")
    assert as_set(orders(table)) == as_set(run_fastod(table.to_pandas())[1])


Ours, Theirs = Callable[[pa.Table, Algorithm], list[Dependency]], Callable[[Any], tuple[float, list[Dependency]]]


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize(("ours", "theirs"), [(functional, run_hyfd), (keys, run_hyucc)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_fds_and_keys_equal_hyfd_and_hyucc(ours: Ours, theirs: Theirs, algorithm: Algorithm) -> None:
    for seed in range(60):
        table = random_table(seed, nulls=True)
        assert as_set(ours(table, algorithm)) == as_set(theirs(text_frame(table))[1]), seed


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    try:
        table = all_departures(2_000)
    except MissingData as missing:
        pytest.skip(str(missing))
    assert sum(column.null_count for column in table.columns) > 0
    return table


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_keys_of_flights_equal_hyucc(flights: pa.Table, algorithm: Algorithm) -> None:
    found = keys(flights, algorithm)
    assert as_set(found) == as_set(run_hyucc(text_frame(flights))[1])
    assert found


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_fds_of_flights_are_those_of_hyfd_that_hold(flights: pa.Table, algorithm: Algorithm) -> None:
    """Version 2.5.0 of the other program lists three more, each violated by two rows."""
    frame = text_frame(flights).fillna("null")
    ours, theirs = as_set(functional(flights, algorithm)), as_set(run_hyfd(frame)[1])
    assert ours
    assert ours <= theirs
    for context, _, right in theirs - ours:
        left, (dependent,) = [frame.columns[c] for c in context], [frame.columns[c] for c in right]
        assert frame.groupby(left)[dependent].nunique().max() > 1, (left, dependent)
