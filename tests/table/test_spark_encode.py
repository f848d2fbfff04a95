"""Encoding in Spark gives what encoding in-process gives: codes, dictionaries, positions, types, reasons, notes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table import spark_encode
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.spark_load import load_with_spark

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

# Each column draws from a few kinds of spelling, so that columns of one kind and mixed ones both occur.
SPELLINGS: list[list[str]] = [
    ["1", "0", "-7", "-0", "123456789012345"],
    ["9223372036854775807", "-9223372036854775808", "1234567890123456"],
    ["9223372036854775808", "-9223372036854775809", "9" * 20],
    ["9" * 39],
    ["1.0", "1.00", "-0.5", "0.50", "2.25"],
    ["0.123456789012345678", "12345678901234567.5"],
    ["1e3", "-2.5E-3", "0.5e+1", "0e0"],
    ["1e999", "1e-999"],
    ["2020-01-01", "2020-02-29", "1900-12-31", "0001-01-01"],
    ["2020-02-30", "0000-01-01"],
    ["2020-01-01T00:00:00Z", "2020-01-01 00:00", "2020-01-01T02:00+0200", "2020-01-01T00:00:00.123456-03"],
    ["2020-01-01T00:00:00.1234567", "2020-01-01T24:00"],
    ["true", "FALSE", "True"],
    ["007", "+1", "01.5"],
    ["1,5", "-2,75", "0,125"],
    ["1,234", "-1,234,567.5"],
    ["1.234,5"],
    ["x", "é", "名", "", " 1", "1,000", "NaN", 'q"q', "a\nb", "1\n", "\\", "NA"],
]


def random_csv(seed: int, columns: int, rows: int) -> str:
    rng = random.Random(seed)
    cells = []
    for _ in range(columns):
        kinds = rng.sample(SPELLINGS, rng.choice([1, 1, 1, 2, 2, 3]))
        pool = [v for kind in kinds for v in kind]
        cells.append([None if rng.random() < 0.15 else rng.choice(pool) for _ in range(rows)])
    lines = [",".join(f"k{i}" for i in range(columns))]
    for row in zip(*cells, strict=True):
        lines.append(",".join("" if v is None else '"' + v.replace('"', '""') + '"' for v in row))
    return "\n".join(lines) + "\n"


def both(source: Any, kind: str | None = None, **options: Any) -> tuple[Relation, Relation]:
    """The table encoded in-process and in Spark."""
    chosen = LoadOptions(**options)
    here, there = (
        load_with_spark(source, kind, chosen, None, None, lambda step: None, large=large) for large in (False, True)
    )
    assert not any("encoded in one process" in note for note in there.notes)
    return here, there


def assert_same(here: Relation, there: Relation) -> None:
    assert here.columns == there.columns
    assert np.array_equal(here.codes, there.codes)
    assert there.codes.flags.c_contiguous
    assert here.notes == there.notes
    assert (here.positions is None) == (there.positions is None)
    if here.positions is not None:
        assert here.positions.tolist() == there.positions.tolist()  # type: ignore[union-attr]
    assert here.dictionaries.keys() == there.dictionaries.keys()
    for domain, dictionary in here.dictionaries.items():
        assert dictionary.type == there.dictionaries[domain].type
        assert repr(dictionary.to_pylist()) == repr(there.dictionaries[domain].to_pylist())


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_text(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text(random_csv(seed, columns=14, rows=60))
    here, there = both(str(path), null_tokens=("NA",))
    assert len({c.type for c in here.columns}) >= 3
    assert_same(here, there)


def test_several_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_encode, "BUCKET_VALUES", 100)
    rng = random.Random(5)
    path = tmp_path / "t.csv"
    lines = [
        f"{rng.randint(-900, 900)},{rng.randint(0, 99)}.{rng.randint(0, 9)},v{rng.randint(0, 700)}\n"
        for _ in range(1500)
    ]
    path.write_text("a,b,c\n" + "".join(lines))
    assert_same(*both(str(path)))


def test_files_and_splits_in_order(tmp_path: Path, spark: Any) -> None:
    for name, size in (("b", 3000), ("a", 2), ("d", 40), ("c", 700)):
        lines = "".join(f"{name},{i}{',z' if i == 33 else ''}\n" for i in range(size))
        (tmp_path / f"{name}.csv").write_text("k,v\n" + lines)
    small_splits = {"spark.sql.files.minPartitionNum": "7", "spark.sql.files.openCostInBytes": "0"}
    here, there = both(str(tmp_path), bad_rows="report", rows=3500, conf=small_splits)
    assert there.rows == 3500 - 2
    assert_same(here, there)
    with pytest.raises(
        InputError, match=r"3 rows do not have 2 fields \(lines .*b\.csv:35, .*c\.csv:35, .*d\.csv:35\)"
    ):
        both(str(tmp_path), conf=small_splits)


def test_asked_for_types(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n007,.5,inf,2020-01-01\n+8,1,-nan,2020-01-01T00:00+01:00\n,2.50,-0,\n")
    types = {"a": "integer", "b": "decimal", "c": "double", "d": "timestamp"}
    assert_same(*both(str(path), types=types))
    path.write_text("a\n1\nx\n")
    for large in (False, True):
        with pytest.raises(InputError, match=r"fit type integer.*line 3: 'x'"):
            load_with_spark(
                str(path), None, LoadOptions(types={"a": "integer"}), None, None, lambda step: None, large=large
            )


@pytest.mark.parametrize("shuffle", [lambda f: f, lambda f: f.repartition(7, "s"), lambda f: f.orderBy("x")])
def test_spark_frames(spark: Any, shuffle: Callable[[Any], Any]) -> None:
    table = pa.table(
        {"x": [0.0, -0.0, float("nan"), None, 2.5] * 20, "s": [f"v{i % 7}" for i in range(100)], "i": list(range(100))}
    )
    frame = shuffle(spark.createDataFrame(table))
    here, there = both(frame, "spark")
    rows = [
        sorted(zip(*(r.values(c).to_pylist() for c in range(3)), strict=True), key=lambda v: v[2])
        for r in (here, there)
    ]
    assert repr(rows[0]) == repr(rows[1])
    assert here.columns == there.columns


def test_what_spark_can_not_encode_is_done_here(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{'9' * 38},0.{'1' * 38}\n1,1.5\n")
    relation = load_with_spark(
        str(path), None, LoadOptions(types={"a": "decimal", "b": "decimal"}), None, None, lambda step: None, large=True
    )
    assert relation.codes.tolist() == [[3, 1], [0, 2]]
    assert any("encoded in one process" in note for note in relation.notes)
