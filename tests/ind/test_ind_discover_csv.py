"""CSV files read by their bytes and by Arrow: the same columns, types, counts, notes, clusters, or the same error."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tuplewise.engine.errors import InputError, LimitReached
from tuplewise.engine.ind import csv_cells, unary
from tuplewise.engine.ind.found import Clustered
from tuplewise.engine.ind.unary import cluster_tables
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.run import Run
from tuplewise.engine.table.source import find_source

pytestmark = [pytest.mark.spark, pytest.mark.arrow]

# text of the file, and how it is read; read by its bytes
READ: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "plain": ("a,b,c\n1,x,2.50\n2,,3.00\n,y,\n", {}),
    "no newline at the end": ("a,b\n1,2\n3,4", {}),
    "quotes": ('a,"b ""c""",d\n"1","",x\n"a,b","say ""hi""","line\nbreak"\n,"\\", \n', {}),
    "blank lines": ("\n\na,b\n\n1,2\n\n\n3,4\n\n", {}),
    "one column": ("a\n1\n\n2\n\"\"\n\n", {}),
    "names": ("a,a,,b\n1,2,3,4\n", {}),
    "carriage returns": ("a,b\r\n1,\"x\"\r\n\r\n2,\r\n", {}),
    "mark of the byte order": (b"\xef\xbb\xbfa,b\n1,\xc3\xa4\n2,\xf0\x9d\x84\x9e\n", {}),
    "no header": ("1,x\n2,y\n", {"header": False}),
    "separator and quote": ("a|b\n'1|2'|''\n3|''''\n", {"sep": "|", "quote": "'"}),
    "no quote": ('a,b\n"1,2"\n3",4\n', {"quote": ""}),
    "null tokens": ("a,b\nNA,1\n-,2\n3,NA\n\"NA\",-\n", {"null_tokens": ("NA", "-")}),
    "types": ("a,b,c\n1,2024-01-01,007\n2,2024-01-01 00:00:00,8\n", {"types": {"a": "text", "c": "integer"}}),
    "spellings": ("a,b,c,d,e\n1,1.0,1e3,true,99999999999999999999\n2,2,2,FALSE,1\n,,,,\n1,,3.5,,-3\n", {}),
    "chosen columns": ("a,b,c\n1,2,3\n", {"columns": ("a", "c"), "exclude": ("c",)}),
    "blanks are kept": (" a , b\n 1, 2 \n\t,\n", {}),
}  # fmt: skip
# left to loading
ODD: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "a quote inside of a field": ('a,b\n5" pipe,1\n6,2\n', {}),
    "another encoding": ("a,b\nä,1\n".encode("latin-1"), {"encoding": "latin-1"}),
    "an escape character": ('a,b\n"x\\"y",1\n', {"escape": "\\"}),
    "some rows": ("a,b\n1,2\n3,4\n", {"rows": 1}),
    "bad rows": ("a,b\n1,2\n3\n4,5\n", {"bad_rows": "report"}),
    "a separator that is named": ("sep=;\na;b\n1;2\n", {}),
    "a separator that nobody named": ("a;b\n1;2\n", {}),
    "one column that seems to be two": ("a;b\n1;2\nx\n", {}),
    "lines in front": ("title\na,b\n1,2\n", {"skip_rows": 1}),
    "a footer": ("a,b\n1,2\nTotal\n", {"skip_footer": 1}),
    "decimal commas": ('a,b\n"1,5",2\n', {"decimal": ","}),
    "CR LF inside of quotes": ('a,b\r\n"x\r\ny",1\r\n', {}),
}
WRONG: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "a byte that is not UTF-8": (b"a,b\n1,\xff\n", {}, "line 2: a byte that encoding utf-8 does not allow"),
    "an open quote": ('a,b\n"1,2\n', {}, "line 2: a quote is opened and never closed"),
    "line ends": ("a,b\n1,2\r\n3,4\n", {}, "mixes line ends"),
    "fields": ("a,b\n1,2\n3\n", {}, r"1 row does not have 2 fields \(line 3\)"),
    "nothing": ("", {}, "this file is empty"),
    "a misfit": ("a\n1\nx\n", {"types": {"a": "integer"}}, "a value doesn't fit type integer at line 3"),
    "a column": ("a\n1\n", {"columns": ("b",)}, "no column of that name"),
    "a type": ("a\n1\n", {"types": {"b": "text"}}, "no column of that name"),
}


def write(folder: Path, text: str | bytes) -> str:
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def same(one: Clustered, other: Clustered) -> None:
    assert one.tables == other.tables
    assert one.notes == other.notes
    assert one.clustering.attributes == other.clustering.attributes
    assert one.clustering.families == other.clustering.families
    assert one.clustering.masks.tolist() == other.clustering.masks.tolist()
    assert one.clustering.values.tolist() == other.clustering.values.tolist()


def by_arrow(monkeypatch: pytest.MonkeyPatch, *given: Any, **options: Any) -> Clustered:
    with monkeypatch.context() as patched:
        patched.setattr(unary, "read_csv_cells", lambda *args, **kwargs: None)
        return cluster_tables(*given, **options)


@pytest.mark.parametrize("name", READ)
def test_bytes_and_arrow_agree(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, given = READ[name]
    tables, options = {"t": write(tmp_path, text)}, LoadOptions(**given)
    for as_text in (False, True):
        here = cluster_tables(tables, options, as_text=as_text)
        assert here.search["read_by"] == {"t": "bytes"}
        same(here, by_arrow(monkeypatch, tables, options, as_text=as_text))


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_left_to_arrow(name: str, tmp_path: Path) -> None:
    text, given = ODD[name]
    found = cluster_tables({"t": write(tmp_path, text)}, LoadOptions(**given))
    assert found.search["read_by"] == {"t": "Arrow"}
    assert found.clustering.values.sum() > 0


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_loading(name: str, tmp_path: Path) -> None:
    text, given, what = WRONG[name]
    with pytest.raises(InputError, match=what):
        cluster_tables({"t": write(tmp_path, text)}, LoadOptions(**given))


def test_many_files_threads_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few bytes, more threads than blocks, records longer than a block, packed files."""
    folder = tmp_path / "parts"
    folder.mkdir()
    expected: list[dict[str, int]] = [{}, {}, {}]
    for part in range(3):
        lines = ["id,word,long"]
        for i in range(200):
            row = [str(part * 200 + i), f'"w{i % 7},\n"', "x" * (i % 5) + "é" * (i % 91)]
            values = [row[0], row[1][1:-1], row[2]]
            lines.append(",".join(row))
            for counts, value in zip(expected, values, strict=True):
                if value:
                    counts[value] = counts.get(value, 0) + 1
        data = "\n".join(lines).encode()
        if part == 1:
            (folder / f"{part}.csv.gz").write_bytes(gzip.compress(data))
        else:
            (folder / f"{part}.csv").write_bytes(data)
    source = find_source(str(folder))
    for block, threads in ((16, 1), (50, 5), (1 << 20, 3)):
        monkeypatch.setattr(csv_cells, "BLOCK_BYTES", block)
        monkeypatch.setattr(csv_cells, "BLOCK_BYTES_PER_COLUMN", 1)
        cells = csv_cells.read_csv_cells(source, LoadOptions(), lambda names: range(len(names)), threads=threads)
        assert cells is not None
        assert cells.rows == 600
        found: list[dict[str, int]] = [{}, {}, {}]
        for counts, parts in zip(found, cells.columns, strict=True):
            for own in parts:
                offsets, data_, rows = own.values()
                for i, n in enumerate(rows.tolist()):
                    value = data_[offsets[i] : offsets[i + 1]].tobytes().decode()
                    counts[value] = counts.get(value, 0) + n
        assert found == expected
        assert sum(own.nulls for own in cells.columns[2]) == 600 - sum(expected[2].values())


def test_headers_that_differ_are_left_to_loading(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("a,c\n1,2\n")
    with pytest.raises(InputError, match=r"the header of .*2\.csv is not that of"):
        cluster_tables({"t": str(tmp_path)})


def test_progress_and_a_deadline(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n" + "1,2\n" * 1000)
    told: list[tuple[str, float]] = []
    cluster_tables({"t": path}, run=Run(progress=lambda *at: told.append(at)))
    assert told[0][0] == "reading"
    assert told[-1][1] == 1.0
    with pytest.raises(LimitReached, match="time limit reached"):
        cluster_tables({"t": path}, run=Run(deadline=0.0))


def test_types_of_spark_as_text(spark: Any, tmp_path: Path) -> None:
    """ORC and a frame of Spark as Spark casts them, each decimal with its own digits; a CSV file as it stands."""
    texts = {"small": "1.50", "large": "1.5000", "real": "1.0E20", "at": "2024-01-01 10:00:00", "day": "2024-01-01"}
    types = {"small": "decimal(9,2)", "large": "decimal(9,4)", "real": "double", "at": "timestamp", "day": "date"}
    frame = spark.sql("SELECT " + ", ".join(f"CAST('{t}' AS {types[c]}) AS {c}" for c, t in texts.items()))
    frame.coalesce(1).write.orc(str(tmp_path / "stored.orc"))
    (tmp_path / "written.csv").write_text(",".join(texts) + "\n" + ",".join(texts.values()) + "\n")
    tables = {"orc": str(tmp_path / "stored.orc"), "frame": frame, "csv": str(tmp_path / "written.csv")}
    found = cluster_tables(tables, as_text=True)
    assert found.search["read_by"] == {"orc": "Arrow", "frame": "Spark", "csv": "bytes"}
    columns = len(texts)
    expected = [[a % columns == b % columns for b in range(3 * columns)] for a in range(3 * columns)]
    assert found.clustering.included().tolist() == expected
