"""Inputs that break tools of this kind, loaded: cases A2, A3, A6 to A11, B3, B5, B10 and B16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tuplewise as tw
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.engine.table.table import load

Read = Callable[..., Relation]

pytestmark = pytest.mark.spark


@pytest.fixture
def read(spark: Any, tmp_path: Path) -> Read:
    """Writes a text to a file and loads it."""

    def write_and_load(text: str, *, name: str = "t.csv", encoding: str = "utf-8", **options: Any) -> Relation:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return load(str(path), LoadOptions(**options))

    return write_and_load


def equal_pairs(relation: Relation, column: str, nulls: str = "unknown") -> list[tuple[int, int]]:
    """Pairs of rows that agree on a column, by definition."""
    codes = relation.codes[relation.index_of(column)]
    return [
        (i, j)
        for i in range(len(codes))
        for j in range(i + 1, len(codes))
        if codes[i] == codes[j] and (nulls == "value" or codes[i] != NULL_CODE)
    ]


def test_a2_nan_and_zero_from_parquet(spark: Any, tmp_path: Path) -> None:
    other_nan = np.array([0xFFF8000000000000], dtype=np.uint64).view(np.float64)[0]
    values = pa.array([float("nan"), other_nan, 0.0, -0.0, None, None], pa.float64())
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet")
    for relation in (load(str(tmp_path / "x.parquet")), load(pa.table({"x": values}))):
        assert equal_pairs(relation, "x") == [(0, 1), (2, 3)]
        assert equal_pairs(relation, "x", "value") == [(0, 1), (2, 3), (4, 5)]
        assert relation.columns[0].type == "double"


def test_a2_nan_and_zero_from_csv(read: Read) -> None:
    relation = read("x\nNaN\nnan\n0.0\n-0.0\n\n\n", types={"x": "double"})
    assert equal_pairs(relation, "x") == [(0, 1), (2, 3)]
    assert equal_pairs(relation, "x", "value") == [(0, 1), (2, 3), (4, 5)]


def test_a3_nan_is_greatest(read: Read) -> None:
    relation = read("x,y\n1,1\ninf,2\nNaN,3\n", types={"x": "double"})
    assert relation.codes.tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("dtype", [object, "Int64"])
def test_a6_ids_beyond_2_to_53_in_pandas(dtype: Any) -> None:
    frame = pd.DataFrame({"id": pd.Series([9007199254740993, None, 9007199254740992], dtype=dtype)})
    relation = load(frame)
    assert relation.codes.tolist() == [[1, NULL_CODE, 0]]
    assert relation.columns[0].type == "integer"
    assert relation.notes == ()


def test_a6_floats_that_lost_digits_are_told() -> None:
    relation = load(pd.DataFrame({"id": [9007199254740993.0, None, 1.0]}))
    assert any("'id'" in note and "precision may be lost before we saw it" in note for note in relation.notes)


def test_a6_csv_with_an_empty_line(read: Read) -> None:
    relation = read("id\n9007199254740993\n\n9007199254740992\n")
    assert relation.codes.tolist() == [[1, NULL_CODE, 0]]
    assert relation.rows == 3


def test_a7_zip_codes_stay_text(read: Read) -> None:
    relation = read("zip,city\n01234,A\n1234,B\n")
    column = relation.columns[0]
    assert (column.type, column.distinct) == ("text", 2)
    assert "leading zeros" in column.why
    assert "'01234'" in column.why


def test_a8_newline_in_quotes(read: Read) -> None:
    relation = read('a,b\n1,"x\ny"\n1,z\n')
    assert relation.rows == 2
    assert relation.positions is None
    assert relation.values(1).to_pylist() == ["x\ny", "z"]
    assert equal_pairs(relation, "a") == [(0, 1)]


def test_a9_empty_last_field(read: Read) -> None:
    relation = read("a\tb\n1\tx\n1\t\n", name="t.tsv")
    assert relation.values(1).to_pylist() == ["x", None]
    assert equal_pairs(relation, "a") == [(0, 1)]


def test_a9_ragged_rows_are_an_error_with_lines(read: Read) -> None:
    with pytest.raises(InputError, match=r"2 rows do not have 2 fields \(lines 3, 4\).*bad_rows='report'"):
        read("a,b\n1,x\n2\n3,y,zz\n")


def test_a9_ragged_rows_can_be_left_out(read: Read) -> None:
    relation = read('a,b\n1,"x\n\ny"\n2\n3,y,zz\n\n4,z\n', bad_rows="report")
    assert relation.values(0).to_pylist() == [1, 4]
    assert relation.positions is not None
    assert relation.positions.tolist() == [0, 3]
    assert any("2 rows do not have 2 fields (lines 5, 6)" in note for note in relation.notes)


def test_a10_repeated_names(read: Read) -> None:
    relation = read("x,x,y\n1,2,a\n3,2,b\n")
    assert relation.column_names == ["x", "x_2", "y"]
    assert relation.notes == ("column 2 repeats the name 'x': called 'x_2'",)


def test_a10_a_new_name_is_free(read: Read) -> None:
    assert read("x,x,x_2,\n1,2,3,4\n").column_names == ["x", "x_3", "x_2", "column_4"]


def test_a11_odd_names(read: Read) -> None:
    header = ["Phone No.", "a.b", "a`b", "my col", "select", "naïve 名", "r and d", "[x]", ""]
    relation = read(",".join(header) + "\n1,2,3,4,5,6,7,8,9\n")
    assert relation.column_names == [*header[:-1], "column_9"]
    assert relation.codes.ravel().tolist() == list(range(9))
    assert relation.select(["a.b", "a`b"]).values(1).to_pylist() == [3]


def test_b3_na_is_text(read: Read) -> None:
    text = "code,name\nNA,Namibia\nNC,New Caledonia\n,?\n"
    assert read(text).values(0).to_pylist() == ["NA", "NC", None]
    assert read(text, null_tokens=("NA",)).values(0).to_pylist() == [None, "NC", None]


def test_b5_mixed_column(read: Read) -> None:
    relation = read("x\n1\nabc\n2.5\n1\n")
    assert relation.columns[0].type == "text"
    assert equal_pairs(relation, "x") == [(0, 3)]
    (note,) = relation.notes
    assert "'x'" in note
    assert "'abc'" in note


def test_b5_mixed_objects_in_pandas() -> None:
    relation = load(pd.DataFrame({"x": [1, "abc", 2.5, 1]}))
    assert relation.columns[0].type == "text"
    assert equal_pairs(relation, "x") == [(0, 3)]
    (note,) = relation.notes
    assert "'abc'" in note


def test_b10_text_and_numbers_have_nothing_to_compare(read: Read) -> None:
    first = read("A,B\n1,1\nx,\n")
    assert [c.type for c in first.columns] == ["text", "integer"]
    assert first.columns[0].domain != first.columns[1].domain


def test_b16_empty_file(read: Read) -> None:
    for text in ("", "\n\n"):
        with pytest.raises(InputError, match="this file is empty: it has no header and no rows"):
            read(text)


def test_b16_header_only_and_one_row(read: Read) -> None:
    empty = read("a,b\n")
    assert (empty.rows, empty.column_names) == (0, ["a", "b"])
    assert empty.columns[0].why == "no values"
    assert read("a,b\n1,x\n").rows == 1


def test_text_null_in_pandas_is_no_nan() -> None:
    relation = load(pd.DataFrame({"s": ["a", None, "nan", float("nan")]}))
    assert relation.values(0).to_pylist() == ["a", None, "nan", None]


# ---------------------------------------------------------------- D18


def test_part_numbers_are_not_numbers(tmp_path: Path) -> None:
    path = tmp_path / "parts.csv"
    path.write_text("part,name\n12E4,screw\n120000,nut\n5E1,bolt\n50,pin\n")
    checked = tw.check(str(path), "part -> name", device="cpu")
    assert checked.holds is True
    said = "column 'part': '12E4' and '120000' would be the same number: read as text (types can say double)"
    assert said in checked.notes
    asked = tw.load(str(path), types={"part": "double"})
    assert (asked.columns[0].type, asked.columns[0].distinct) == ("double", 2)
