"""Clusters of attributes, the bytes by which values are compared, and the tables of values under both."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from oracles.ind import plain

from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.unary import cells_of
from tuplewise.engine.ind.values import canonical_array, canonical_bytes, family_of
from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.rows import read_rows
from tuplewise.engine.table.to_text import to_spark_text
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.distinct import DistinctCells, ValueSets, padded


def test_equal_parts_are_added_up_and_empty_ones_left_out() -> None:
    attributes = [Attribute("t", name) for name in "abc"]
    masks = np.array([[3], [1], [3], [4]], dtype=np.uint64)
    found = AttributeClustering.of(attributes, ["text"] * 3, masks, np.array([2, 5, 1, 0]))
    assert found.masks.tolist() == [[1], [3]]
    assert found.values.tolist() == [5, 3]
    assert found.distinct.tolist() == [8, 3, 0]
    assert found.common().tolist() == [[8, 3, 0], [3, 3, 0], [0, 0, 0]]
    assert found.included().tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_nothing_is_included_across_families() -> None:
    attributes = [Attribute("t", "a"), Attribute("t", "b")]
    masks = np.array([[1], [2]], dtype=np.uint64)
    found = AttributeClustering.of(attributes, ["number", "text"], masks, np.array([1, 1]))
    assert found.included().tolist() == [[True, False], [False, True]]


def test_no_attributes() -> None:
    found = AttributeClustering.of([], [], np.empty((0, 1), dtype=np.uint64), np.empty(0, dtype=np.int64))
    assert found.included().shape == found.common().shape == (0, 0)
    assert found.distinct.tolist() == []


CASES: list[tuple[TypeName, list[Any], pa.DataType]] = [
    ("integer", [0, -1, 10, 2**63 - 1, -(2**63)], pa.int64()),
    ("decimal", [Decimal("1.00"), Decimal("-0.05"), Decimal("100.00"), Decimal("0.00")], pa.decimal128(38, 2)),
    ("decimal", [Decimal(10) ** 37, Decimal(-(10**30)) - 1], pa.decimal128(38, 0)),
    ("decimal", [Decimal("1e-30"), Decimal("12345678901234567890.5")], pa.decimal256(76, 30)),
    ("double", [0.0, -0.0, 1.5, float("nan"), float("inf"), -1e-300], pa.float64()),
    ("date", [date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)], pa.date32()),
    ("timestamp", [datetime(1970, 1, 1, tzinfo=UTC), datetime(1, 1, 1, 3, 4, 5, 6, UTC)], pa.timestamp("us", "UTC")),
    ("timestamp", [datetime(1970, 1, 2, tzinfo=timezone(timedelta(hours=2)))], pa.timestamp("s", "UTC")),
    ("boolean", [True, False], pa.bool_()),
    ("text", ["", "a", "ä\u0000b", "𝄞" * 40, "12345678", "123456789"], pa.large_string()),
]


def written_one_by_one(type_: TypeName, values: list[Any]) -> list[bytes]:
    rows, _ = read_rows([[value] for value in values], ["value"], [type_])
    return [canonical_bytes(type_)(value) for (value,) in rows]


@pytest.mark.parametrize(("type_", "values", "arrow_type"), CASES)
def test_many_are_written_as_one_is(type_: TypeName, values: list[Any], arrow_type: pa.DataType) -> None:
    # in UTC, since Arrow drops other offsets once pandera, in this process, has set PYARROW_IGNORE_TIMEZONE
    in_utc = [value.astimezone(UTC) if isinstance(value, datetime) else value for value in values]
    written = canonical_array(family_of(type_), pa.array([None, *in_utc], arrow_type).slice(1))
    assert written.type == pa.large_binary()
    assert written.to_pylist() == written_one_by_one(type_, values)


def test_nanoseconds_are_told_apart() -> None:
    values = pa.array([1_000, 1_001, -1, 0], pa.timestamp("ns", "UTC"))
    assert canonical_array("instant", values).to_pylist() == [b"1", b"1.001", b"-1.999", b"0"]
    assert canonical_array("instant", values.slice(3)).to_pylist() == [b"0"]
    assert written_one_by_one("timestamp", [pd.Timestamp(n) for n in (1_000, 1_001, -1)]) == [b"1", b"1.001", b"-1.999"]


@seed(7)
@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.integers(-(10**20), 10**20), st.decimals(-100, 100, places=2)), min_size=2, max_size=2))
def test_numbers_have_equal_bytes_where_they_are_equal(pair: list[Any]) -> None:
    one, other = written_one_by_one("decimal", pair)
    assert (one == other) == (plain(pair[0]) == plain(pair[1]))


def test_typed_values_as_spark_casts_them() -> None:
    doubles = [1.0, 0.001, 1e7, 1.25e-4, -123456.789, 1e20, float("nan"), float("-inf"), 12345678.9]
    shown = ["1.0", "0.001", "1.0E7", "1.25E-4", "-123456.789", "1.0E20", "NaN", "-Infinity", "1.23456789E7"]
    assert to_spark_text("double", pa.array(doubles)).to_pylist() == shown
    instants = pa.array([0, 1_500_000, 10_000_000], pa.timestamp("us", "UTC"))
    texts = ["1970-01-01 00:00:00", "1970-01-01 00:00:01.5", "1970-01-01 00:00:10"]
    assert to_spark_text("timestamp", instants).to_pylist() == texts
    assert to_spark_text("timestamp", pa.array([10], pa.timestamp("s", "UTC"))).to_pylist() == ["1970-01-01 00:00:10"]
    assert to_spark_text("decimal", pa.array([Decimal("1.50")], pa.decimal128(9, 2))).to_pylist() == ["1.50"]
    tiny = pa.array([Decimal("0.00000001")], pa.decimal128(20, 8))
    assert to_spark_text("decimal", tiny).to_pylist() == ["0.00000001"]
    assert to_spark_text("boolean", pa.array([True])).to_pylist() == ["true"]


WORDS = st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"a", b"12345678", b"\0", b"\0\0"]))


@seed(11)
@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.one_of(st.none(), WORDS), max_size=60), min_size=1, max_size=4))
def test_distinct_cells_are_a_counter(parts: list[list[bytes | None]]) -> None:
    cells = DistinctCells()
    counts: dict[bytes, int] = {}
    nulls = 0
    for part in parts:
        data = b"".join(v or b"" for v in part)
        sizes = np.array([-1 if v is None else len(v) for v in part], dtype=np.int32)
        starts = np.cumsum(np.maximum(sizes, 0), dtype=np.int32) - np.maximum(sizes, 0)
        cells.add(padded(np.frombuffer(data, dtype=np.uint8)), starts, sizes)
        nulls += part.count(None)
        for value in part:
            if value is not None:
                counts[value] = counts.get(value, 0) + 1
    cells.finish()
    assert cells.nulls == nulls
    assert counted(cells) == counts
    for dropped in (b"a", b"none such", b"12345678"):
        cells.drop(dropped)
        nulls += counts.pop(dropped, 0)
        assert counted(cells) == counts
        assert cells.nulls == nulls


def counted(cells: DistinctCells) -> dict[bytes, int]:
    offsets, data, rows = cells.values()
    values = [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
    assert len(set(values)) == len(values) == cells.distinct
    return dict(zip(values, rows.tolist(), strict=True))


@pytest.mark.parametrize("threads", [1, 4])
def test_sets_of_many_values_and_attributes(threads: int) -> None:
    rng = np.random.default_rng(threads)
    columns = [np.unique(rng.integers(0, 2_000, size=rng.integers(0, 1_000))) for _ in range(70)]
    members = [set(column.tolist()) for column in columns]
    sets = ValueSets(Control(threads=threads))
    for a in range(0, 70, 10):
        cells = [[parted(column, part) for part in range(2)] for column in columns[a : a + 10]]
        sets.add(range(a, a + 10), cells)
    found = sets.clusters(2)
    expected: dict[int, int] = {}
    for value in range(2_000):
        mask = sum(1 << a for a, own in enumerate(members) if value in own)
        expected[mask] = expected.get(mask, 0) + bool(mask)
    expected.pop(0, None)
    masks: dict[int, int] = {}
    for (low, high), values in zip(found.masks.tolist(), found.values.tolist(), strict=True):
        masks[low | high << 64] = masks.get(low | high << 64, 0) + values
    assert masks == expected


def parted(column: Any, part: int) -> DistinctCells:
    """Most of a column's values, so that two parts share some and have all together."""
    texts = [str(v) for v in column.tolist() if v % 3 != part]
    return cells_of(pa.array(texts, pa.large_binary()))
