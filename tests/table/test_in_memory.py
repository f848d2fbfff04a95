"""Frames in memory and the rules for text, without a JVM, against oracles in plain Python."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math
import uuid
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table import csv_scan
from tuplewise.engine.table.arrow_text import count_spellings
from tuplewise.engine.table.csv_scan import Dialect, TableExtent, scan_csv
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE
from tuplewise.engine.table.rows import read_rows
from tuplewise.engine.table.table import load
from tuplewise.engine.table.text_types import decide


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def order_key(value: Any) -> Any:
    """Spark's order as a Python sort key: NaN greatest, -0.0 as 0.0, text by bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    if isinstance(value, str):
        return value.encode()
    return (
        decimal.Decimal(value) if isinstance(value, (int, decimal.Decimal)) and not isinstance(value, bool) else value
    )


DECIMALS = st.decimals(min_value=-(10**12), max_value=10**12, places=3)
COLUMNS = {
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "small": (pa.int8(), st.integers(-3, 3)),
    "unsigned": (pa.uint64(), st.integers(2**64 - 3, 2**64 - 1) | st.integers(0, 3)),
    "d": (pa.decimal128(38, 3), DECIMALS | st.integers(-3, 3).map(decimal.Decimal)),
    "x": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, math.nan, 1.0])),
    "y": (pa.float32(), st.sampled_from([0.0, -0.0, math.nan, math.inf, 0.5])),
    "s": (pa.string(), st.text(max_size=3)),
    "day": (pa.date32(), st.dates()),
    "at": (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    "flag": (pa.bool_(), st.booleans()),
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_codes_are_dense_ranks_over_each_domain(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 8))
    names = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True))
    values = {n: data.draw(st.lists(st.none() | COLUMNS[n][1], min_size=rows, max_size=rows)) for n in names}
    relation = load(pa.table({n: pa.array(values[n], COLUMNS[n][0]) for n in names}))
    domains: dict[str, set[Any]] = {}
    for column in relation.columns:
        keys = {order_key(v) for v in values[column.name] if v is not None}
        domains.setdefault(DOMAIN_OF_TYPE[column.type], set()).update(keys)
        assert (column.distinct, column.nulls) == (len(keys), values[column.name].count(None))
    for c, column in enumerate(relation.columns):
        rank = {key: i for i, key in enumerate(sorted(domains[column.domain]))}
        expected = [-1 if v is None else rank[order_key(v)] for v in values[column.name]]
        assert relation.codes[c].tolist() == expected
    for domain, keys in domains.items():
        assert len(relation.dictionaries[domain]) == len(keys)  # type: ignore[index]


def test_decimals_of_any_scale_are_compared_exactly() -> None:
    wide = decimal.Decimal("9" * 38)
    tiny = decimal.Decimal("0." + "0" * 37 + "1")
    table = pa.table(
        {
            "a": pa.array([wide, decimal.Decimal(1)], pa.decimal128(38, 0)),
            "b": pa.array([tiny, tiny], pa.decimal128(38, 38)),
            "c": pa.array([1, 0], pa.int64()),
        }
    )
    assert load(table).codes.tolist() == [[3, 2], [1, 1], [2, 0]]


SPELLED = [
    (["1", "-5", "0", "-0"], "integer"),
    (["1", "9223372036854775808"], "decimal"),
    (["9" * 38], "decimal"),
    (["9" * 39], "text"),
    (["1.0", "1.00"], "decimal"),
    (["1." + "0" * 38], "text"),
    (["1", "2.5"], "double"),
    (["1e3", "2.5", "7"], "double"),
    (["1", "0.12345678901234567"], "decimal"),  # more digits than a double surely keeps
    (["9007199254740993", "1e3"], "text"),
    (["1e999"], "text"),
    (["2020-02-29"], "date"),
    (["2021-02-29"], "text"),
    (["2020-01-01T10:00", "2020-01-01 10:00:00.5Z"], "timestamp"),
    (["2020-01-01", "2020-01-01T10:00"], "text"),
    (["TRUE", "false"], "boolean"),
    ([], "text"),
    *[([v], "text") for v in ("007", "+1", " 1", "1 ", "1,000", "NaN", "inf", ".5", "5.", "1\n", "", "-", "0x1", "١")],
]


@pytest.mark.parametrize(("values", "type_"), SPELLED)
def test_first_type_that_every_value_spells(values: list[str], type_: str) -> None:
    counts = count_spellings(pa.array(values, pa.large_string()), np.ones(len(values), dtype=np.int64))
    assert sum(c.rows for c in counts.values()) == len(values)
    assert decide("x", counts).type == type_


def test_pandas_kinds() -> None:
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["x", None, "y"], categories=["z", "y", "x"]),
            "n": [0.5, float("nan"), 1.5],
            "a": pd.arrays.ArrowExtensionArray(pa.array([0.5, None, float("nan")])),
        }
    )
    relation = load(frame)
    assert relation.codes.tolist() == [[0, -1, 1], [0, -1, 1], [0, -1, 2]]
    assert relation.notes == ("column 'n': 1 NaN taken as null (pandas writes missing numbers so)",)


def test_polars_kinds() -> None:
    relation = load(pl.DataFrame({"e": pl.Series(["q", "p"], dtype=pl.Enum(["q", "p"])), "t": [dt.time(2), None]}))
    assert relation.codes.tolist() == [[2, 1], [0, -1]]
    assert [c.type for c in relation.columns] == ["text", "text"]


def test_days_and_instants_in_one_pandas_column_keep_their_hours() -> None:
    day, morning, evening = dt.date(2022, 7, 3), dt.datetime(2022, 7, 3, 8), dt.datetime(2022, 7, 3, 17)
    for values in ([day, morning, evening, None], [morning, evening, day, None]):
        relation = load(pd.DataFrame({"at": pd.Series(values, dtype=object)}))
        assert relation.columns[0].type == "timestamp"
        assert relation.columns[0].distinct == 3
        assert [n for n in relation.notes if "mixes dates and timestamps" in n] == list(relation.notes)
    aware = dt.datetime(2022, 7, 3, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert load(pd.DataFrame({"at": pd.Series([day, aware], dtype=object)})).codes.tolist() == [[0, 0]]


def test_offsets_count_where_arrow_is_told_to_drop_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing pandera or pyspark.pandas sets this variable for the whole process."""
    monkeypatch.setenv("PYARROW_IGNORE_TIMEZONE", "1")
    zone = dt.timezone(dt.timedelta(hours=2))
    values = [dt.datetime(2022, 7, 3, 2, tzinfo=zone), dt.datetime(2022, 7, 3, tzinfo=dt.UTC)]
    assert load(pd.DataFrame({"at": pd.Series(values, dtype=object)})).codes.tolist() == [[0, 0]]
    stamps = [[pd.Timestamp(value)] for value in values]
    assert [row for (row,) in read_rows(stamps, ["at"], ["timestamp"])[0]] == [1_656_806_400_000_000] * 2


@pytest.mark.parametrize(
    ("values", "type_", "codes"),
    [
        ([np.bool_(True), np.bool_(False), None], "boolean", [1, 0, -1]),
        ([b"\xff", b"\x00", None], "text", [1, 0, -1]),
        ([uuid.UUID(int=2), uuid.UUID(int=1)], "text", [1, 0]),
        ([Colour.RED, Colour.BLUE, Colour.RED], "text", [1, 0, 1]),
        ([np.int64(3), 2**70, None], "integer", [0, 1, -1]),
    ],
)
def test_objects_of_pandas(values: list[object], type_: str, codes: list[int]) -> None:
    relation = load(pd.DataFrame({"a": pd.Series(values, dtype=object)}))
    assert relation.codes.tolist() == [codes]
    assert relation.columns[0].type in (type_, "decimal")


def test_objects_that_arrow_would_take_for_others() -> None:
    fine = [pd.Timestamp(1), pd.Timestamp(2), None]
    assert load(pd.DataFrame({"t": pd.Series(fine, dtype=object)})).codes.tolist() == [[0, 1, -1]]
    relation = load(pd.DataFrame({"b": pd.Series([b"a", "a", "61"], dtype=object)}))
    assert relation.columns[0].distinct == 2  # b"a" is read as the text a
    assert [n for n in relation.notes if "mixes types (bytes" in n] == list(relation.notes)
    aware = pd.Timestamp("2020-01-01", tz="UTC")
    relation = load(pd.DataFrame({"t": pd.Series([aware, pd.Timestamp("2020-01-01")], dtype=object)}))
    assert relation.codes.tolist() == [[0, 0]]
    assert relation.notes == ("column 't' mixes timestamps with and without a zone: the latter are taken as UTC",)


def test_an_index_with_a_name_is_told() -> None:
    frame = pd.DataFrame({"a": [1, 1]}, index=pd.Index([5, 6], name="id"))
    assert load(frame).notes == ("the index ('id') is no column: reset_index() makes one of it",)
    assert load(pd.DataFrame({"a": [1, 1]})).notes == ()


def test_polars_objects_are_refused() -> None:
    with pytest.raises(InputError, match="column 'a' can't be compared value by value: its type is: 'Object'"):
        load(pl.DataFrame({"a": pl.Series([uuid.UUID(int=1)], dtype=pl.Object)}))


def test_sparse_columns_of_pandas() -> None:
    frame = pd.get_dummies(pd.Series(["x", "y", "x"]), sparse=True)
    assert load(frame).codes.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_whole_numbers_with_gaps_are_compared_with_whole_numbers() -> None:
    relation = load(pd.DataFrame({"a": [1.0, None, 3.0], "b": [1, 2, 3]}))
    assert [c.type for c in relation.columns] == ["integer", "integer"]
    assert relation.codes.tolist() == [[0, -1, 2], [0, 1, 2]]
    (note,) = relation.notes
    assert note == "column 'a': 1 NaN taken as null, the others as whole numbers, held as floats"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["x", "\ud800"], "column 'a' holds text that is not Unicode .* at row 1"),
        ([Decimal(1), Decimal("Infinity")], "column 'a' holds a decimal that is no number at row 1: 'Infinity'"),
        ([object()], "column 'a' can't be compared"),
    ],
)
def test_objects_of_pandas_that_cannot_be_read(values: list[object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(pd.DataFrame({"a": pd.Series(values, dtype=object)}))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pl.DataFrame({"a": pl.Series([1], dtype=pl.Int128)}), "column 'a' can't be read: its type is: 'Int128'"),
        (pa.table({"a": pa.array([b"\xff"]).view(pa.string())}), "column 'a' holds text that is not UTF-8"),
        (pa.table({"a": pa.array([10**14], pa.date64())}), "column 'a' can't be read: its type is: 'date64"),
        (pa.table({}), "this table has no columns: 'table'"),
    ],
)
def test_frames_that_cannot_be_read(frame: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(frame)


def test_narrow_decimals_views_and_infinities() -> None:
    narrow = pa.array([Decimal("1.5"), Decimal("2.0")], pa.decimal32(5, 1))
    table = pa.table({"d": narrow, "n": [2, 1], "v": pa.array([b"x", b"a"], pa.binary_view())})
    assert load(table).codes.tolist() == [[1, 2], [2, 0], [1, 0]]
    relation = load(pd.DataFrame({"x": [math.inf, 1.0, math.nan]}))
    assert relation.notes == ("column 'x': 1 NaN taken as null (pandas writes missing numbers so)",)


def test_columns_without_an_order_are_refused() -> None:
    with pytest.raises(InputError, match=r"column 'list' can't be compared.*: 'list<.*exclude='list'"):
        load(pa.table({"list": [[1]]}))
    with pytest.raises(InputError, match="a table of this type can't be read: 'list'"):
        load([1, 2])


def test_types_asked_for() -> None:
    table = pa.table({"i": [1, 2], "s": ["1", "x"]})
    assert load(table, LoadOptions(types={"i": "text"})).columns[0].type == "text"
    with pytest.raises(InputError, match=r"column 's': a value doesn't fit type integer at row 1: 'x'"):
        load(table, LoadOptions(types={"s": "int"}))


def records_by_definition(text: str) -> tuple[list[int], list[int]]:
    """Line of each record, and records before each blank line, one character at a time."""
    lines, blank_before = [], []
    line, i = 1, 0
    while i < len(text):
        begin, begun, inside = i, line, False
        start_of_field = True
        while i < len(text) and (inside or text[i] != "\n"):
            if inside and text[i] == '"':
                inside = text[i + 1 : i + 2] == '"'
                i += inside
            elif not inside and start_of_field and text[i] == '"':
                inside = True
            start_of_field = not inside and text[i] == "," and i >= begin
            line += text[i] == "\n"
            i += 1
        if i == begin:
            blank_before.append(len(lines))
        else:
            lines.append(begun)
        line += 1
        i += 1
    return lines, blank_before


FIELD = st.text("ab ", max_size=3) | st.text('a,\n"', max_size=4).map(lambda v: '"' + v.replace('"', '""') + '"')


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.lists(FIELD, min_size=1, max_size=3).map(",".join), min_size=1, max_size=6), st.integers(1, 40))
def test_scan_finds_records_and_blank_lines(records: list[str], block: int) -> None:
    text = "\n".join(records) + "\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_scan, "_BLOCK_BYTES", block)
        scan = scan_csv(io.BytesIO(text.encode()), "t.csv", Dialect(",", '"', None, "utf-8"))
    lines, blank_before = records_by_definition(text)
    assert scan.lines.tolist() == lines
    assert scan.blank_before.tolist() == blank_before


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.text('a"é ,', max_size=3), max_size=3),
    st.lists(st.lists(FIELD, min_size=1, max_size=3).map(",".join), min_size=1, max_size=6),
    st.integers(0, 4),
    st.booleans(),
    st.integers(1, 40),
)
def test_scan_of_a_part_is_that_of_the_part_alone(
    titles: list[str], records: list[str], footer: int, header: bool, block: int
) -> None:
    front, text = "".join(f"{t}\n" for t in titles), "\n".join(records) + "\n"
    dialect = Dialect(",", '"', None, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_scan, "_BLOCK_BYTES", block)
        extent = TableExtent(len(titles), footer, header)
        scan = scan_csv(io.BytesIO((front + text).encode()), "t.csv", dialect, None, extent)
    lines, blank_before = records_by_definition(text)
    left = len(lines) - min(footer, max(0, len(lines) - header))
    assert scan.lines.tolist() == [len(titles) + line for line in lines[:left]]
    if left == len(lines):
        assert scan.blank_before.tolist() == blank_before
        assert (scan.end, scan.end_line) == (None, None)
    else:
        assert scan.blank_before.tolist() == [b for b in blank_before if b < left]
    assert (scan.begin, scan.skipped_lines) == (len(front.encode()), len(titles))
    whole = (front + text).encode()
    alone = scan_csv(io.BytesIO(whole[scan.begin : scan.end]), "t.csv", dialect)
    assert (alone.lines + len(titles)).tolist() == scan.lines.tolist()
    assert scan.end_line is None or scan.end_line == 1 + whole.count(b"\n", 0, scan.end)
    if left:
        assert (alone.first_record, alone.header_end + scan.begin) == (scan.first_record, scan.header_end)


def test_scan_of_stray_quotes() -> None:
    text = 'a,b\n5" disk,x\n6,"y""z\nw"\n"q"r,7" s\n8,9\n'
    scan = scan_csv(io.BytesIO(text.encode()), "t.csv", Dialect(",", '"', None, "utf-8"))
    assert scan.lines.tolist() == [1, 2, 3, 5, 6]
