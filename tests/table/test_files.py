"""Files through Spark: encodings, quotes, several files, formats, options, and errors that name lines."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.peek import known_columns
from tuplewise.engine.table.read_table import fit_types
from tuplewise.engine.table.reader import choose_reader, read_columns
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.source import find_source
from tuplewise.engine.table.table import load

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def read(path: Path, content: str | bytes, **options: Any) -> Relation:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load(str(path), LoadOptions(**options))


def rows_of(relation: Relation) -> list[tuple[Any, ...]]:
    return list(zip(*(relation.values(c).to_pylist() for c in range(len(relation.columns))), strict=True))


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("utf-8", b"\xef\xbb\xbfa,b\n1,\xc3\xa9\n"),
        ("latin-1", "a,b\n1,é\n".encode("latin-1")),
        ("cp1252", "a,b\n1,é\n".encode("cp1252")),
        ("utf-16", "a,b\n1,é\n".encode("utf-16")),
        ("utf-16-le", "a,b\n1,é\n".encode("utf-16-le")),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, content: bytes) -> None:
    relation = read(tmp_path / "t.csv", content, encoding=encoding)
    assert relation.column_names == ["a", "b"]
    assert rows_of(relation) == [(1, "é")]


@pytest.mark.parametrize(
    ("content", "line", "hint"),
    [
        ("a,b\n1,x\n2,é\n".encode("latin-1"), 3, "latin-1"),
        ('a,b\n1,"x\ny"\n2,é\n'.encode("latin-1"), 4, "latin-1"),
        ("a,b\n1,x\n".encode("utf-16"), 1, "utf-16"),
    ],
)
def test_bytes_that_the_encoding_does_not_allow(tmp_path: Path, content: bytes, line: int, hint: str) -> None:
    with pytest.raises(InputError, match=rf"line {line}: a byte that encoding utf-8 does not allow.*encoding='{hint}'"):
        read(tmp_path / "t.csv", content)


def test_quotes_and_blank_lines(tmp_path: Path) -> None:
    relation = read(tmp_path / "t.csv", 'a,b\n1,""\n\n2,\n3,"q""q"\n\n4,"\\"\n5,5" disk\n')
    assert [b for _, b in rows_of(relation)] == ["", None, 'q"q', "\\", '5" disk']
    assert "2 blank lines skipped" in relation.notes


def test_carriage_returns(tmp_path: Path) -> None:
    relation = read(tmp_path / "t.csv", 'a,b\r\n1,"x\r\ny"\r\n\r\n2,z\r\n')
    assert rows_of(relation) == [(1, "x\r\ny"), (2, "z")]
    with pytest.raises(InputError, match="mixes line ends"):
        read(tmp_path / "t.csv", "a,b\n1,x\r\n2,y\n")


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 3: a quote is opened and never closed"):
        read(tmp_path / "t.csv", 'a,b\n1,x\n2,"y\n3,z\n')


def test_without_header_and_other_separators(tmp_path: Path) -> None:
    relation = read(tmp_path / "t.csv", "1;x\n2;y\n", header=False, sep=";")
    assert relation.column_names == ["c1", "c2"]
    assert rows_of(relation) == [(1, "x"), (2, "y")]
    hinted = read(tmp_path / "t.csv", "a;b\n2;y\n")
    assert any("separator" in note for note in hinted.notes)


def test_a_row_of_empty_fields_is_no_blank_line(tmp_path: Path) -> None:
    relation = read(tmp_path / "t.tsv", "a\tb\n\t\n1\tx\n")
    assert rows_of(relation) == [(None, None), (1, "x")]


def test_blank_lines_of_one_column_are_rows(tmp_path: Path) -> None:
    relation = read(tmp_path / "t.csv", '\na\n\n"1"\n\n\n2\n\n')
    assert rows_of(relation) == [(None,), (1,), (None,), (None,), (2,), (None,)]
    limited = read(tmp_path / "t.csv", "a\n1\n\n2\n3\n", rows=3)
    assert rows_of(limited) == [(1,), (None,), (2,)]


def test_asked_for_types(tmp_path: Path) -> None:
    text = "a,b,c,d\n007,1,2020-01-01,1.5\n8,2,2020-01-02,2\n"
    relation = read(tmp_path / "t.csv", text, types={"a": "integer", "c": "timestamp", "*": "text"})
    assert [c.type for c in relation.columns] == ["integer", "text", "timestamp", "text"]
    assert relation.values(0).to_pylist() == [7, 8]
    with pytest.raises(InputError, match=r"column 'a': a value doesn't fit type integer at line 3: 'zz'"):
        read(tmp_path / "t.csv", "a,b\n1,x\nzz,y\n", types={"a": "integer"})
    with pytest.raises(InputError, match="Did you mean 'city'"):
        read(tmp_path / "t.csv", "city,b\n1,x\n", types={"cty": "integer"})
    with pytest.raises(InputError, match="allowed: integer, decimal, double"):
        read(tmp_path / "t.csv", "city,b\n1,x\n", types={"city": "number"})


def test_chosen_columns_and_rows(tmp_path: Path) -> None:
    text = "a,b,c\n1,2,3\n4,5,6\n7,8,9\n"
    assert rows_of(read(tmp_path / "t.csv", text, columns=("c", "a"), rows=2)) == [(1, 3), (4, 6)]
    assert read(tmp_path / "t.csv", text, exclude=("a",)).column_names == ["b", "c"]
    with pytest.raises(InputError, match="no column of that name"):
        read(tmp_path / "t.csv", text, columns=("d",))


def test_several_files_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "many files"
    folder.mkdir()
    sizes = {"b": 3000, "a": 2, "d": 40, "c x": 700}  # Spark packs large files first
    for name, size in sizes.items():
        (folder / f"{name}.csv").write_text("k,v\n" + "".join(f"{name},{i}\n" for i in range(size)))
    expected = [(name, i) for name in sorted(sizes) for i in range(sizes[name])]
    for source in (str(folder), str(folder / "*.csv"), f"file://{folder}/*.csv"):
        relation = load(source)
        assert rows_of(relation) == expected
        assert relation.positions is None
    (folder / "e.csv").write_text("k,w\n1,2\n")
    with pytest.raises(InputError, match=r"the header of .*e\.csv is not that of"):
        load(str(folder))


def test_compressed_and_oddly_named(tmp_path: Path) -> None:
    path = tmp_path / "a[1] {x}.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,x\n"))
    relation = load(str(path))
    assert rows_of(relation) == [(1, "x")]
    assert relation.name == "a[1] {x}"


@pytest.fixture
def typed() -> pa.Table:
    return pa.table(
        {
            "i": pa.array([1, None, 9007199254740993], pa.int64()),
            "d": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")]),
            "x": [0.5, None, float("nan")],
            "s": ["a", None, ""],
            "day": pa.array([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1)]),
            "at": pa.array([dt.datetime(2020, 1, 1, 5), None, dt.datetime(2019, 1, 1)], pa.timestamp("us")),
            "b": [True, None, False],
        }
    )


def test_parquet_and_orc_equal_arrow(tmp_path: Path, typed: pa.Table) -> None:
    pq.write_table(typed, tmp_path / "t.parquet")
    orc.write_table(typed, str(tmp_path / "t.orc"))
    expected = load(typed)
    for name in ("t.parquet", "t.orc"):
        relation = load(str(tmp_path / name))
        assert [c.type for c in relation.columns] == [c.type for c in expected.columns]
        assert relation.codes.tolist() == expected.codes.tolist()
        for domain, dictionary in expected.dictionaries.items():
            assert repr(relation.dictionaries[domain].to_pylist()) == repr(dictionary.to_pylist())


def test_parquet_timestamps_in_nanoseconds(tmp_path: Path) -> None:
    times = pd.to_datetime(["2020-01-01 00:00:00.000000001", "2020-01-01"], format="mixed")
    pd.DataFrame({"t": times}).to_parquet(tmp_path / "t.parquet")
    relation = load(str(tmp_path / "t.parquet"))
    assert relation.columns[0].type == "timestamp"
    assert relation.codes.tolist() == [[1, 0]]


def test_folder_names_are_columns(tmp_path: Path) -> None:
    for code in ("007", "8"):
        (tmp_path / "t" / f"zip={code}").mkdir(parents=True)
        pq.write_table(pa.table({"v": [1, 2]}), tmp_path / "t" / f"zip={code}" / "p.parquet")
    relation = load(str(tmp_path / "t"))
    assert rows_of(relation) == [(1, "007"), (2, "007"), (1, "8"), (2, "8")]


def test_binary_and_nested_columns_are_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1], "blob": [b"x"], "list": [[1]]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"column 'list' can't be compared.*exclude='list'"):
        load(str(tmp_path / "t.parquet"))
    assert load(str(tmp_path / "t.parquet"), LoadOptions(exclude=("blob", "list"))).column_names == ["k"]


def test_json_lines(tmp_path: Path) -> None:
    text = '{"z":1,"a":"007","c":1.50,"d":"2020-01-01"}\n\n{"z":9007199254740993,"a":"8","c":2.25}\n'
    relation = read(tmp_path / "t.jsonl", text)
    assert [(c.name, c.type) for c in relation.columns] == [
        ("z", "integer"), ("a", "text"), ("c", "decimal"), ("d", "date"),
    ]  # fmt: skip
    assert relation.values(0).to_pylist() == [1, 9007199254740993]
    with pytest.raises(InputError, match=r"1 row is not a JSON object \(line 3\)"):
        read(tmp_path / "t.jsonl", '{"z":1}\n\n{"z":\n')


def test_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "flights.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"no such file.*Did you mean 'flights\.csv'"):
        load(str(tmp_path / "flight.csv"))
    with pytest.raises(InputError, match="no file matches"):
        load(str(tmp_path / "x*.csv"))


def test_spark_frames_and_tables(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "a"), (None, "b")], "`my.id` bigint, s string")
    relation = load(frame)
    assert relation.column_names == ["my.id", "s"]
    assert rows_of(relation) == [(1, "a"), (None, "b")]
    assert any("positions were given once" in note for note in relation.notes)
    frame.createOrReplaceTempView("a_view")
    assert rows_of(load("spark:a_view", spark=spark)) == [(1, "a"), (None, "b")]
    with pytest.raises(InputError, match="Spark can't open this table"):
        load("spark:no_such_table", spark=spark)


@pytest.mark.outside
def test_published_tables(shared: Path) -> None:
    adult = load(str(shared / "data" / "adult.csv"))
    assert (adult.rows, len(adult.columns)) == (32561, 15)
    assert [c.type for c in adult.columns].count("integer") == 6
    with pytest.raises(InputError, match="encoding='latin-1'"):
        load(str(shared / "data" / "airport_original.csv"))
    airport = load(str(shared / "data" / "airport_original.csv"), LoadOptions(encoding="latin-1"))
    assert (airport.rows, airport.column_names[3]) == (30000, "elevation_ft(Integer)")
    assert airport.columns[3].type == "integer"


@pytest.mark.parametrize(
    "content", ['a,b\n1,"x\ny"', '\r\n\r\n"a","b"\r\n1,"x\ny', "a,b", 'a,b\n1,"' + "long line\n" * 120_000 + '"\n']
)
def test_names_are_those_of_the_first_record_whatever_follows(tmp_path: Path, content: str) -> None:
    (tmp_path / "t.csv").write_text(content, newline="")
    assert known_columns(str(tmp_path / "t.csv"), LoadOptions()) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("sep=;\na;b\n1;2\n", {}),
        ("a;b\n1;2\n", {}),
        ('Title "x\n\na,b\n1,2\n', {"skip_rows": 2}),
        ("\ufeffTitle\r\na|b\r\n1|2\r\n", {"header_row": 2}),
        ("a;b\n1;2\nTotal\n", {"skip_footer": 1}),
    ],
)
def test_names_are_told_before_loading_as_loading_finds_them(
    tmp_path: Path, content: str, options: dict[str, Any]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content, newline="")
    found = LoadOptions(**options)
    assert known_columns(str(path), found) == load(str(path), found).column_names == ["a", "b"]


@pytest.mark.parametrize("options", [{"skip_rows": 1}, {"header_row": 2}, {"skip_footer": 1}, {"decimal": ","}])
def test_a_url_is_not_read_with_options_that_spark_lacks(options: dict[str, Any]) -> None:
    name = next(iter(options)).replace("_", "-")
    with pytest.raises(InputError, match=rf"Spark can't read s3://b/t\.csv: .*--{name}.*a local copy"):
        choose_reader(find_source("s3://b/t.csv"), LoadOptions(**options))
    assert choose_reader(find_source("s3://b/t.parquet"), LoadOptions(**options)).name == "spark"


def test_arrow_reads_what_spark_cannot_pass_over(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sep=;\na;b\n1;2\n")
    source = find_source(str(tmp_path / "t.csv"))
    for options in (LoadOptions(), LoadOptions(master="local[1]"), LoadOptions(skip_rows=1, master="local[1]")):
        assert choose_reader(source, options).name == "arrow"
    assert choose_reader(source, LoadOptions(sep=";", master="local[1]")).name == "spark"


def test_rows_of_a_state_are_read_in_its_types_and_the_notation_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a;b\n1.234,5;"1,5"\n7;x\n')
    read = read_columns(str(tmp_path / "t.csv"), ["b", "a"], LoadOptions(decimal=",", thousands="."), "t", "rows")
    found = fit_types(read, ["text", "double"], (), leave_out=False)
    values = [[c.values.to_pylist()[i] for i in c.index] for c in found.columns]
    assert values == [["1,5", "x"], [1234.5, 7.0]]
    assert found.notes == read.notes
    read = read_columns(str(tmp_path / "t.csv"), ["b", "a"], LoadOptions(decimal=","), "t", "rows")
    with pytest.raises(InputError, match=r"type double at line 2: '1\.234,5'"):
        fit_types(read, ["text", "double"], (), leave_out=False)


def test_a_folder_may_be_named_relative_to_the_working_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "part.csv").write_text("a\n1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert find_source("rows").files == (str(tmp_path / "rows" / "part.csv"),)
