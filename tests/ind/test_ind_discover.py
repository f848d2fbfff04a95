"""Unary inclusion dependencies against the definition: every family, nulls, exceptions, text, limits, many columns."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from oracles.ind import Column, inclusions

from tuplewise.engine.errors import InputError
from tuplewise.engine.ind.discover import discover
from tuplewise.engine.ind.found import FoundInds
from tuplewise.engine.ind.tables import name_tables
from tuplewise.engine.options import IndDiscoverOptions, LoadOptions
from tuplewise.engine.table.table import load

INSTANT = pa.timestamp("us", "UTC")
POOLS: dict[str, tuple[list[Any], pa.DataType]] = {
    "integer": ([0, 1, 2, -1, 2**53, 2**53 + 1, -(2**63)], pa.int64()),
    "decimal": ([Decimal(t) for t in ("0.00", "1.00", "1.50", "-1.00", "9007199254740993.00")], pa.decimal128(38, 2)),
    "double": ([0.0, -0.0, 1.0, 2.0**53, float("nan"), float("inf")], pa.float64()),
    "date": ([date(1970, 1, 1), date(1970, 1, 2), date(2024, 2, 29)], pa.date32()),
    "timestamp": ([datetime(1970, 1, 1, h, tzinfo=UTC) for h in (0, 1)] + [datetime(2024, 2, 29, tzinfo=UTC)], INSTANT),
    "boolean": ([True, False], pa.bool_()),
    "text": (["", "0", "1", "a", "A", "ä", "a\u0308", "true", " a"], pa.large_string()),
}


def column_of(type_: str) -> st.SearchStrategy[Column]:
    values = st.lists(st.one_of(st.none(), st.sampled_from(POOLS[type_][0])), min_size=4, max_size=4)
    return st.tuples(st.just(type_), values)


TABLES = st.lists(
    st.lists(st.sampled_from(sorted(POOLS)).flatmap(column_of), min_size=1, max_size=5), min_size=1, max_size=3
)


def arrow(columns: list[Column]) -> pa.Table:
    return pa.table({f"c{i}": pa.array(values, POOLS[type_][1]) for i, (type_, values) in enumerate(columns)})


def listed(found: FoundInds) -> list[tuple[int, ...]]:
    place = {attribute: i for i, attribute in enumerate(found.attributes)}
    return [
        (place[f.ind.dependent[0]], place[f.ind.referenced[0]], f.dependent_distinct, f.referenced_distinct,
         f.missing_values)
        for f in found.inds
    ]  # fmt: skip


def options(**given: Any) -> IndDiscoverOptions:
    return IndDiscoverOptions(device="cpu", **given)


@seed(3)
@settings(max_examples=150, deadline=None)
@given(TABLES, st.sampled_from(["0", "0.25", "0.5", "0.34"]))
def test_frames_give_what_the_definition_gives(tables: list[list[Column]], error: str) -> None:
    found = discover({f"t{i}": arrow(columns) for i, columns in enumerate(tables)}, options(error=Decimal(error)))
    expected, trivial = inclusions([column for columns in tables for column in columns], Fraction(error))
    assert listed(found) == [tuple(ind) for ind in expected]
    assert found.trivial == trivial
    assert not found.partial
    assert [(t.rows, len(t.columns)) for t in found.tables] == [(4, len(columns)) for columns in tables]


@seed(5)
@settings(max_examples=40, deadline=None)
@given(TABLES)
def test_a_loaded_relation_says_the_same(tables: list[list[Column]]) -> None:
    given_tables = {f"t{i}": arrow(columns) for i, columns in enumerate(tables)}
    relations = {name: load(table, name=name) for name, table in given_tables.items()}
    assert listed(discover(relations, options())) == listed(discover(given_tables, options()))


@pytest.mark.arrow
@seed(9)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(column_of("text"), min_size=1, max_size=3), min_size=1, max_size=3))
def test_files_as_text_give_what_the_definition_gives(tmp_path_factory: Any, tables: list[list[Column]]) -> None:
    folder = tmp_path_factory.mktemp("csv")
    paths = {}
    for i, columns in enumerate(tables):
        rows = [",".join(f"c{c}" for c in range(len(columns))) + ",key"]
        for r in range(4):
            cells = ["" if v[r] is None else f'"{v[r]}"' for _, v in columns]
            rows.append(",".join([*cells, str(r)]))
        paths[f"t{i}"] = folder / f"t{i}.csv"
        paths[f"t{i}"].write_text("\n".join(rows), encoding="utf-8")
    found = discover({name: str(path) for name, path in paths.items()}, options(as_text=True))
    keys: Column = ("text", ["0", "1", "2", "3"])
    expected, trivial = inclusions([column for columns in tables for column in [*columns, keys]])
    assert listed(found) == [tuple(ind) for ind in expected]
    assert found.trivial == trivial
    assert set(found.search["read_by"].values()) == {"bytes"}


def test_values_as_text_are_what_they_are_written_as() -> None:
    table = pa.table({"whole": [1, 10], "part": pa.array([Decimal("1.0"), None]), "text": ["1", "10"]})
    assert [str(f.ind) for f in discover({"t": table}, options(as_text=True)).inds] == [
        "t.whole <= t.text", "t.text <= t.whole"
    ]  # fmt: skip
    assert [str(f.ind) for f in discover({"t": table}, options()).inds] == ["t.part <= t.whole"]


def test_types_of_files_are_compared_by_value(tmp_path: Path) -> None:
    (tmp_path / "child.csv").write_text("n,d,t,x\n1,2024-01-01,a,7\n2,,b,07\n,,,\n")
    parent = ["k,at,word,e", "1.0,2024-01-01T00:00:00Z,a,", "2.00,2024-01-02 01:00:00,b,", "3.5,,,", ""]
    (tmp_path / "parent.csv").write_text("\n".join(parent))
    found = discover(name_tables([tmp_path / "child.csv", str(tmp_path / "parent.csv")]), options())
    assert [str(f.ind) for f in found.inds] == [
        "child.n <= parent.k", "child.d <= parent.at", "child.t <= parent.word", "parent.word <= child.t",
    ]  # fmt: skip
    assert found.trivial == 7
    described = {f"{t.name}.{c.name}": (c.type, c.distinct, c.nulls) for t in found.tables for c in t.columns}
    assert described["child.n"] == ("integer", 2, 1)
    assert described["child.x"] == ("text", 2, 1)
    assert described["parent.at"] == ("timestamp", 2, 1)
    assert described["parent.e"] == ("text", 0, 3)


def test_load_options_hold_for_each_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1;NA\n2;2\n")
    (tmp_path / "b.csv").write_text("x;z\n1;1\n2;-\n")
    chosen = LoadOptions(sep=";", null_tokens=("NA", "-"), exclude=("b.x",), types={"a.y": "text"})
    found = discover(name_tables([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]), options(), chosen)
    assert [str(a) for a in found.attributes] == ["a.x", "a.y", "b.z"]
    assert [str(f.ind) for f in found.inds] == ["b.z <= a.x"]
    assert [c.nulls for t in found.tables for c in t.columns] == [0, 1, 1]


def test_two_thousand_columns() -> None:
    rng = np.random.default_rng(2)
    data = {f"c{i}": rng.choice(5 * i + 200, size=20) if i % 10 else np.arange(i, i + 20) for i in range(2_000)}
    data |= {f"c{i}": data[f"c{i - 1}"][:7].repeat(3)[:20] for i in range(5, 2_000, 10)}
    begun = time.monotonic()
    found = discover({"wide": pa.table(data)}, options())
    assert time.monotonic() - begun < 60
    sets = [frozenset(values.tolist()) for values in data.values()]
    expected = [(a, b) for a, own in enumerate(sets) for b, other in enumerate(sets) if a != b and own <= other]
    assert [row[:2] for row in listed(found)] == expected
    assert len(expected) >= 200


def test_tables_without_rows_or_columns(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("a,b\n")
    tables = {"none": str(tmp_path / "none.csv"), "one": pd.DataFrame({"k": [1]})}
    found = discover(tables, options())
    assert found.inds == ()
    assert found.trivial == 4
    assert [t.rows for t in found.tables] == [0, 1]
    with pytest.raises(InputError, match="this table has no columns: 'bare'"):
        discover({"bare": pd.DataFrame()}, options())


@pytest.mark.arrow
def test_a_limit_lists_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,1\n")
    for given_options in (options(time_limit=1e-9), options(memory_limit=1)):
        chosen = IndDiscoverOptions(**{**vars(given_options), "run_on": "driver"})
        found = discover({"t": str(tmp_path / "t.csv")}, chosen)
        assert found.partial
        assert found.inds == ()
        assert "limit" in found.notes[0]
        assert found.notes[0].endswith("no dependency is listed, since one that holds of some may fail of all")


def test_names_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    assert list(name_tables(str(path))) == ["t"]
    assert list(name_tables([pd.DataFrame({"a": [1]}), path])) == ["table", "t"]
    with pytest.raises(InputError, match=r"two tables are called 't': .*names that differ\. Name them: NAME=PATH"):
        name_tables([path, str(path)])
    with pytest.raises(InputError, match="no table was given; allowed: one table or more"):
        name_tables([])


@pytest.mark.parametrize("value", [[1], {"x": 1}])
def test_nested_columns_are_refused_by_name(tmp_path: Path, value: Any) -> None:
    table = pa.table({"a": [1], "n": [value]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, table.to_pandas(), str(tmp_path / "t.parquet")):
        with pytest.raises(InputError, match=r"column 'n' can't be compared value by value.*exclude"):
            discover({"t": source})
    assert discover({"t": str(tmp_path / "t.parquet")}, load_options=LoadOptions(exclude=("n",))).tables[0].rows == 1
