"""Files are read in pieces, and what Arrow has read isn't held beside the codes that are made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import tuplewise as tw
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table import files
from tuplewise.engine.table.encode import TypedColumn, encode, indexed
from tuplewise.engine.table.read_table import encoded, of_raw, typed
from tuplewise.engine.table.reader import open_here
from tuplewise.engine.table.source import find_source

pytestmark = pytest.mark.arrow

COLUMNS = {
    "a": [3, 1, None, 1], "b": ["x", None, "y", "x"], "c": [0.5, 0.5, 1.5, None], "l": [[1], [2], [3], [4]],
    "d": ["y", "y", "z", "x"], "e": [True, None, False, True],
}  # fmt: skip
PLAIN = [name for name in COLUMNS if name != "l"]


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_columns_of_large_files_are_read_two_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    table = pa.table({name: COLUMNS[name] for name in PLAIN})
    more = table.select(["d", "a"])
    for i, part in enumerate((table, more)):
        target = str(tmp_path / f"{i}.{format_}")
        pq.write_table(part, target) if format_ == "parquet" else orc.write_table(part, target)
    read: list[int] = []
    columns_of = files._TypedFile.read

    def counted(file: Any, kept: Sequence[int]) -> list[pa.ChunkedArray]:
        read.append(len(kept))
        return columns_of(file, kept)

    monkeypatch.setattr(files._TypedFile, "read", counted)
    expected = tw.load(str(tmp_path))
    assert read == [5, 2]
    monkeypatch.setattr(files, "_CELLS_AT_ONCE", 1)
    read.clear()
    found = tw.load(str(tmp_path))
    assert read == [2, 1, 2, 1, 1, 0]
    assert found.columns == expected.columns
    assert np.array_equal(found.codes, expected.codes)
    assert found.dictionaries == expected.dictionaries


def test_all_columns_are_read_at_once_where_a_name_is_there_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([pa.array([1, 2]), pa.array(["x", "y"]), pa.array([2, 2])], ["a", "b", "a"]), path)
    expected = tw.load(str(path))
    monkeypatch.setattr(files, "_CELLS_AT_ONCE", 1)
    found = tw.load(str(path))
    assert found.codes.tolist() == expected.codes.tolist() == [[0, 1], [0, 1], [1, 1]]


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_codes_stand_where_indexes_stood(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    table = pa.table(COLUMNS)
    if name == "t.csv":
        table = table.select(PLAIN)
        arrow_csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    options = LoadOptions(null_tokens=("y",))
    source = find_source(path)
    read = typed(of_raw(open_here(source, options), options, "t", path, frozenset()), options)
    assert [c.name for c in read.columns] == PLAIN
    assert read.index is not None
    assert read.index.shape == (5, 4)
    apart = [TypedColumn(c.name, c.type, c.why, c.values, c.index.copy()) for c in read.columns]
    codes, dictionaries, described = encode(apart, 4)
    found = encoded(read, {}, "cpu")
    assert np.shares_memory(found.codes, read.index)
    assert not found.codes.flags.writeable
    assert np.array_equal(found.codes, codes)
    assert (found.dictionaries, found.columns) == (dictionaries, described)


def test_codes_without_room_for_them_leave_indexes_as_they_are() -> None:
    columns = [TypedColumn("a", "text", "", *indexed(pa.array(["b", None, "a"], pa.large_string())))]
    codes, _, _ = encode(columns, 3)
    assert codes.tolist() == [[1, -1, 0]]
    assert columns[0].index.tolist() == [0, -1, 1]


LOADED = """
import json, sys
from benchmarks.memory import extra_bytes_of
from tuplewise.engine.table.table import load
load(sys.argv[1])
held = []
extra = extra_bytes_of(lambda: held.append(load(sys.argv[2])))
print(json.dumps([extra, held[0].codes.nbytes + sum(v.nbytes for v in held[0].dictionaries.values())]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the greatest size of a process")
@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_first_read_of_a_million_rows_takes_three_times_what_is_kept(tmp_path: Path, format_: str) -> None:
    from benchmarks.generators import tax, write_csv, write_parquet

    write = write_csv if format_ == "csv" else write_parquet
    paths = [tmp_path / f"{rows}.{format_}" for rows in (100, 1_000_000)]
    for path, rows in zip(paths, (100, 1_000_000), strict=True):
        write(tax(rows, seed=1), path)
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", LOADED, *map(str, paths)]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    extra, held = json.loads(done.stdout)
    assert extra < 3 * held + paths[1].stat().st_size, f"{extra / held:.2f} times what is kept"
