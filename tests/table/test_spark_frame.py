"""A table as codes in Spark: the same order and equality as in-process, constants in the same places, the same rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tuplewise.engine.dc.constraint import Constant
from tuplewise.engine.dc.rule_text.constants import place_constant
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table import spark_encode, spark_frame, spark_ranks
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.spark_frame import EncodedFrame, encode_as_frame
from tuplewise.engine.table.spark_load import load_with_spark, open_with_spark

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

NAMES = ["text", "whole", "wide", "exact", "double", "day", "at", "flag"]


def table(rows: int, seed: int) -> pa.Table:
    """Values of each type, nulls, NaN, both zeros; whole numbers that fit a range of codes and ones that don't."""
    rng = np.random.default_rng(seed)

    def drawn(values: list[Any], type_: pa.DataType) -> pa.Array:
        index = rng.integers(-1, len(values), rows)
        return pa.array(values, type_).take(pa.array(index, mask=index < 0))

    return pa.table(
        {
            "text": drawn(["a", "B", "é", "", "zz", "名", "a "], pa.string()),
            "whole": drawn([-7, 0, 3, 9, 2**20], pa.int32()),
            "wide": drawn([-(2**62), -1, 5, 2**62], pa.int64()),
            "exact": drawn([Decimal("1.50"), Decimal("-0.25"), Decimal("7.00")], pa.decimal128(8, 2)),
            "double": drawn([0.0, -0.0, float("nan"), 2.5, float("-inf")], pa.float64()),
            "day": drawn([0, 1, 19000], pa.int32()).cast(pa.date32()),
            "at": drawn([0, 10**15, 5], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "flag": drawn([True, False], pa.bool_()),
        }
    )


def encoded(source: Any, names: list[str], **options: Any) -> tuple[Relation, EncodedFrame]:
    """The table in-process and as a frame."""
    chosen = LoadOptions(**options)
    kind = None if isinstance(source, str) else "spark"
    here = load_with_spark(source, kind, chosen, None, None, lambda step: None, large=False).select(names)
    opened = open_with_spark(source, kind, chosen, None, None, lambda step: None)
    return here, encode_as_frame(opened, names, lambda step: None)


def codes_of(frame: EncodedFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    found = frame.frame.toArrow().sort_by("position")
    codes = np.stack([found[f"c{i}"].to_numpy() for i in range(len(frame.header.columns))])
    return found["position"].to_numpy(), codes


def assert_alike(here: Relation, there: EncodedFrame) -> None:
    positions, codes = codes_of(there)
    assert positions.tolist() == [here.position_of(r) for r in range(here.rows)]
    assert there.rows == here.rows
    assert [(c.name, c.type, c.why, c.distinct, c.nulls) for c in there.header.columns] == [
        (c.name, c.type, c.why, c.distinct, c.nulls) for c in here.columns
    ]
    for domain in {c.domain for c in here.columns}:
        members = [i for i, c in enumerate(here.columns) if c.domain == domain]
        dense, given = here.codes[members].ravel(), codes[members].ravel()
        assert np.array_equal(dense < 0, given == -1)
        order = np.argsort(dense, kind="stable")
        assert np.array_equal(np.sign(np.diff(dense[order])), np.sign(np.diff(given[order].astype(np.int64))))
        for i in members[:1]:
            row = here.codes[i] >= 0
            for rank in np.unique(codes[i][row])[:3].tolist():
                known = here.dictionaries[domain][int(here.codes[i][codes[i] == rank][0])]
                assert repr(there.header.dictionaries[domain][rank].as_py()) == repr(known.as_py())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files, the second by name larger than the first."""
    path = tmp_path_factory.mktemp("parts")
    pq.write_table(table(40, seed=1), path / "a.parquet")
    pq.write_table(table(300, seed=2), path / "b.parquet", row_group_size=50)
    return path


def test_all_types(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_ranks, "BUCKET_VALUES", 2)
    monkeypatch.setattr(spark_ranks, "PAGE_VALUES", 3)
    here, there = encoded(str(folder), NAMES)
    assert_alike(here, there)
    assert isinstance(there.header.dictionaries["number"], spark_ranks.RankedValues)  # 2**62 is beyond a code's range
    assert isinstance(there.header.dictionaries["date"], spark_ranks.RangeOfValues)
    wanted = np.array([0, 3, 39, 40, 41, 339], dtype=np.int64)
    some = there.excerpt(wanted)
    assert some.positions is not None
    assert some.positions.tolist() == wanted.tolist()
    for i in range(len(NAMES)):
        assert repr(some.values(i).to_pylist()) == repr(here.values(i, wanted).to_pylist())
    values = there.values({"text": "t.text", "exact": "x"}).toArrow().sort_by("position")
    assert values["t.text"].to_pylist() == here.values(0).to_pylist()
    there.close()
    assert not there.frame.is_cached


def test_ranges_and_constants(folder: Path) -> None:
    here, there = encoded(str(folder), ["text", "whole", "exact", "day", "flag"], rows=200)
    assert_alike(here, there)
    number = there.header.dictionaries["number"]
    assert isinstance(number, spark_ranks.RangeOfValues)
    assert number.scale == 2
    _, codes = codes_of(there)
    constants = {
        0: ["B", "b", "", "~"],
        1: ["3", "3.5", "-8", "99999999", "0.001"],
        2: ["1.50", "1.495", "7"],
        3: ["1970-01-02", "1969-01-01", "2030-01-01"],
    }
    for column, texts in constants.items():
        for text in texts:
            constant = Constant(text, "text" if column in (0, 3) else "decimal")
            (rank, there_too), (known, present) = (
                place_constant(header, column, constant) for header in (there.header, here)
            )
            assert (codes[column] >= rank).tolist() == (here.codes[column] >= known).tolist()
            if present:
                assert there_too
    there.close()


def test_long_decimals_in_a_small_range(tmp_path: Path) -> None:
    given = [Decimal("12345678901234567890.12345"), Decimal("12345678901234567890.12346"), None]
    pq.write_table(pa.table({"d": pa.array(given, pa.decimal128(30, 5)), "n": [1, 2, 2]}), tmp_path / "t.parquet")
    _, there = encoded(str(tmp_path / "t.parquet"), ["d"])
    assert codes_of(there)[1].tolist() == [[0, 1, -1]]
    assert [there.header.dictionaries["number"][i].as_py() for i in range(2)] == given[:2]
    there.close()


def test_caller_frames_and_bad_rows(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(pa.table({"x": [3, 1, None, 1], "s": ["b", "a", "b", None]})).repartition(3)
    here, there = encoded(frame, ["x", "s"])
    positions, codes = codes_of(there)
    rows = sorted(zip(*there.excerpt(positions).codes.tolist(), strict=True))
    assert rows == sorted(zip(*here.codes.tolist(), strict=True))
    assert codes.shape == (2, 4)
    there.close()
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2\n3,y\n2,x\n")
    here, there = encoded(str(tmp_path / "t.csv"), ["a", "b"], bad_rows="report")
    assert_alike(here, there)
    assert codes_of(there)[0].tolist() == [0, 2, 3]
    assert any("left out" in note for note in there.header.notes)
    there.close()


def test_nothing_is_held_after_a_failure(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held = spark.sparkContext._jsc.getPersistentRDDs().size()
    frame = spark.createDataFrame(pa.table({"x": [1, 2]}))
    opened = open_with_spark(frame, "spark", LoadOptions(), None, None, lambda step: None)

    def fail(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(spark_frame, "_count_codes", fail)
    with pytest.raises(RuntimeError, match="no"):
        encode_as_frame(opened, ["x"], lambda step: None)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == held


def test_columns_that_are_only_shown(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"k": ["x", "y", None], "a": [3, 1, 1], "d": [0.0, -0.0, None]}))
    opened = open_with_spark(frame, "spark", LoadOptions(), None, None, lambda step: None)
    there = encode_as_frame(opened, ["a"], lambda step: None, shown=["k", "d"])
    assert there.frame.columns == ["position", "c1"]
    assert [(c.name, c.distinct, c.nulls) for c in there.header.columns] == [("k", 2, 1), ("a", 2, 0), ("d", 1, 1)]
    some = there.excerpt(np.arange(3))
    assert sorted(some.values(0).to_pylist(), key=str) == [None, "x", "y"]
    there.close()


def test_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    here, there = encoded(str(tmp_path / "t.csv"), ["a", "b"])
    assert (there.rows, here.rows) == (0, 0)
    assert len(there.header.dictionaries["text"]) == 0
    assert there.excerpt(np.zeros(0, dtype=np.int64)).rows == 0
    assert spark_encode.MOST_BUCKETS > 0
    there.close()
