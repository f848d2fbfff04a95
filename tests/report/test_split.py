"""A table split into valid and violating rows: each row in one file, in order, as it stood in the source."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.report.split import Violators, check_split_folder, split
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.table import load

MESSY = '\ufeffid,"text, long",x\r\n1,"a ""b"",\r\n\r\nc",1.50\r\n\r\n2,,007\r\n3,"",1e3\r\n\r\n4,é 名,\r\n5,last,-0'


def relation_of(rows: int, positions: list[int] | None = None) -> Relation:
    """A relation of so many rows; what is in them does not matter here."""
    relation = load(pa.table({"any": list(range(rows))}))
    if positions is None:
        return relation
    return Relation(
        "t", None, relation.columns, relation.codes, relation.dictionaries, np.array(positions, dtype=np.int64)
    )


def violators(rows: int, bad: dict[int, list[str]]) -> Violators:
    ids = sorted({i for some in bad.values() for i in some})
    counts = [np.array([int(i in bad.get(row, [])) for row in range(rows)], dtype=np.int64) for i in ids]
    return Violators.of(rows, ids, counts)


def split_files(
    source: Path | str, relation: Relation, bad: dict[int, list[str]], folder: Path, **options: Any
) -> tuple[bytes, bytes]:
    said = split(str(folder), relation, violators(relation.rows, bad), str(source), LoadOptions(**options))
    good = relation.rows - len(bad)
    assert f"{good} row{'' if good == 1 else 's'} in " in said
    assert "rows as they stand in the source" in said
    valid, violating = sorted(folder.iterdir())
    assert (valid.stem, violating.stem) == ("valid", "violating")
    return valid.read_bytes(), violating.read_bytes()


def test_groups_of_violated_rules() -> None:
    found = violators(5, {1: ["a"], 3: ["a", "b"], 4: ["a"]})
    assert [found.rules[g] for g in found.group] == [[], ["a"], [], ["a", "b"], ["a"]]
    assert Violators.of(3, [], []).rules == [[]]


@pytest.mark.parametrize(
    ("content", "options", "valid", "violating"),
    [
        ("T\n\na,b\n1,x\n\n2,y\nTotal\n", {"skip_rows": 2, "skip_footer": 1}, "a,b\n2,y\n",
         "row_position,violated_rules,a,b\n0,r,1,x\n"),
        ('"T\na,b\n1,"x\nz"\n2,y\n"of\nall"', {"header_row": 2, "skip_footer": 1}, "a,b\n2,y\n",
         'row_position,violated_rules,a,b\n0,r,1,"x\nz"\n'),
        ("sep=;\r\na;b\r\n1;x\r\n2;y\r\n", {}, "a;b\r\n2;y\r\n", "row_position;violated_rules;a;b\r\n0;r;1;x\r\n"),
        ("a;b\n1;x\n2;y\n", {}, "a;b\n2;y\n", "row_position;violated_rules;a;b\n0;r;1;x\n"),
        ("T\n\n1\n\nTotal\n", {"skip_rows": 1, "skip_footer": 1, "header": False}, "1\n", "0,r,\n"),
        ("\ufeffa\n1\n2\n", {"skip_rows": 0, "skip_footer": 0}, "a\n2\n", "row_position,violated_rules,a\n0,r,1\n"),
    ],
)  # fmt: skip
def test_only_the_table_of_a_csv_file_is_split(
    tmp_path: Path, content: str, options: dict[str, Any], valid: str, violating: str
) -> None:
    source = tmp_path / "t.csv"
    source.write_text(content, encoding="utf-8", newline="")
    relation = load(str(source), LoadOptions(**options))
    good, bad = split_files(source, relation, {0: ["r"]}, tmp_path / "out", **options)
    assert (relation.rows, good.decode()) == (2, valid)
    assert bad.decode() == violating


def test_csv_records_stand_as_they_stood(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    source.write_bytes(MESSY.encode())
    valid, violating = split_files(source, relation_of(5), {1: ["ab"], 0: ["ab", "cd"]}, tmp_path / "out")
    header = b'id,"text, long",x\r\n'
    assert valid == header + '3,"",1e3\r\n4,é 名,\r\n5,last,-0\r\n'.encode()
    assert violating == (
        b"row_position,violated_rules," + header + b'0,ab cd,1,"a ""b"",\r\n\r\nc",1.50\r\n1,ab,2,,007\r\n'
    )


def test_several_files_follow_one_another(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "b.csv").write_text("a;b\n3;z\n")
    (folder / "a.csv").write_text("a;b\n1;x\n2;y")
    with gzip.open(folder / "c.csv.gz", "wt") as stream:
        stream.write("a;b\n4;w\n")
    valid, violating = split_files(folder, relation_of(4), {1: ["e"], 3: ["f"]}, tmp_path / "out", sep=";")
    assert valid == b"a;b\n1;x\n3;z\n"
    assert violating == b"row_position;violated_rules;a;b\n1;e;2;y\n3;f;4;w\n"


def test_rows_that_were_not_loaded_are_in_neither(tmp_path: Path) -> None:
    source = tmp_path / "t.tsv"
    source.write_text("a\tb\n1\tx\nbad\n2\ty\n3\tz\n4\tw\n")
    valid, violating = split_files(source, relation_of(3, [0, 2, 3]), {1: ["e"]}, tmp_path / "out", rows=4)
    assert valid == b"a\tb\n1\tx\n3\tz\n"
    assert violating == b"row_position\tviolated_rules\ta\tb\n2\te\t2\ty\n"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["valid.tsv", "violating.tsv"]


@pytest.mark.parametrize(
    ("text", "rows", "options", "valid", "violating"),
    [
        ("x\n1\n\n2\n\n", 4, {}, "x\n1\n2\n\n", "row_position,violated_rules,x\n1,e,\n"),
        ("\n1\n\n2\n", 4, {"header": False}, "\n\n2\n", "1,e,1\n"),
        ("x\r1\r2\r", 2, {}, "x\n1\n", "row_position,violated_rules,x\n1,e,2\n"),
        ("a b\n1 2\n3 4\n", 2, {"sep": " "}, "a b\n1 2\n", "row_position violated_rules a b\n1 e|f 3 4\n"),
        ("row_position\n1\n3\n", 2, {}, "row_position\n1\n", "row_position_2,violated_rules,row_position\n1,e,3\n"),
    ],
)  # fmt: skip
def test_tables_of_odd_shapes(
    text: str, rows: int, options: dict[str, Any], valid: str, violating: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    rules = ["e", "f"] if options.get("sep") == " " else ["e"]
    found = split_files(tmp_path / "t.csv", relation_of(rows), {1: rules}, tmp_path / "out", **options)
    assert (found[0].decode(), found[1].decode()) == (valid, violating)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_the_encoding_stays(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\né,1\nü,2\n".encode(encoding))
    found = split_files(tmp_path / "t.csv", relation_of(2), {1: ["e"]}, tmp_path / "out", encoding=encoding)
    assert found[0].decode(encoding) == "a,b\né,1\n"
    assert found[1].decode(encoding) == "row_position,violated_rules,a,b\n1,e,ü,2\n"


def test_parquet_keeps_types_and_columns_that_were_not_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    table = pa.table({
        "id": pa.array([1, 2, 3, 4], pa.int8()),
        "money": pa.array([Decimal("1.50"), None, Decimal("2.00"), None], pa.decimal128(9, 2)),
        "tags": pa.array([["a"], [], None, ["b", "c"]]),
    })  # fmt: skip
    pq.write_table(table.slice(0, 3), folder / "a.parquet", row_group_size=2)
    pq.write_table(table.slice(3), folder / "b.parquet")
    said = split(
        str(tmp_path / "out"), relation_of(4), violators(4, {0: ["e", "f"], 3: ["f"]}), str(folder), LoadOptions()
    )
    assert "rows as they stand in the source" in said
    valid, violating = (pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in ("valid", "violating"))
    assert valid.equals(table.slice(1, 2))
    assert violating["row_position"].to_pylist() == [0, 3]
    assert violating["violated_rules"].to_pylist() == [["e", "f"], ["f"]]
    assert violating.drop_columns(["row_position", "violated_rules"]).equals(table.take([0, 3]))


def test_other_sources_are_written_with_the_values_that_were_loaded(tmp_path: Path) -> None:
    relation = load(pa.table({"a": [1, 2, None], "d": [Decimal("1.5"), None, Decimal("2.25")], "s": ["x", "", None]}))
    (tmp_path / "t.json").write_text('{"a": 1}\n')
    out = tmp_path / "out"
    said = split(str(out), relation, violators(3, {2: ["e"]}), str(tmp_path / "t.json"), LoadOptions())
    assert "values as they were loaded" in said
    assert pq.read_table(out / "valid.parquet").to_pylist() == [
        {"a": 1, "d": Decimal("1.50"), "s": "x"}, {"a": 2, "d": None, "s": ""},
    ]  # fmt: skip
    assert pq.read_table(out / "violating.parquet").to_pylist() == [
        {"row_position": 2, "violated_rules": ["e"], "a": None, "d": Decimal("2.25"), "s": None}
    ]
    folder = tmp_path / "k=1"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1, 2, 3]}), folder / "part.parquet")
    said = split(str(out), relation, violators(3, {}), str(folder / "part.parquet"), LoadOptions())
    assert "values as they were loaded" in said  # a folder's name may hold a column
    assert pq.read_table(out / "violating.parquet").num_rows == 0


def test_a_source_that_changed_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    with pytest.raises(InputError, match="rows of the source when it was split: 2; allowed: 3, as when it was loaded"):
        split(str(tmp_path / "out"), relation_of(3), violators(3, {}), str(tmp_path / "t.csv"), LoadOptions())
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_folders_that_are_refused_before_the_work(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    source.write_text("a\n1\n")
    check_split_folder(str(tmp_path / "new"), str(source))
    own = tmp_path / "own"
    own.mkdir()
    check_split_folder(str(own), str(source))
    (own / "valid.csv").write_text("")
    check_split_folder(str(own), str(source))
    (own / "notes.txt").write_text("")
    for folder, fault in (
        (own, r"holds 'notes.txt': .*allowed: a new or empty folder, or one with valid.csv and violating.csv only"),
        (tmp_path, "allowed: another folder than the table's"),
        (tmp_path / "no" / "such", "There is no folder"),
        (source, "allowed: a folder; this is a file"),
    ):
        with pytest.raises(InputError, match=fault):
            check_split_folder(str(folder), str(source))
