"""Rows that come to a state: from any source, matched by name, typed by the state's types."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tuplewise.engine.dc.incremental.arrow_keys import arrow_of_keys
from tuplewise.engine.dc.incremental.dictionaries import Dictionaries
from tuplewise.engine.dc.incremental.rows import RowBatch, keys_of, read_batch
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.engine.table.table import load

UTC = datetime.UTC
FIRST = pa.table(
    {
        "id": pa.array([1, 2, 3]),
        "zip": pa.array(["01", "02", None]),
        "price": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(9, 2)),
        "rate": pa.array([0.5, float("nan"), None]),
        "day": pa.array([datetime.date(2020, 1, 1), datetime.date(2020, 2, 1), None]),
        "at": pa.array([datetime.datetime(2020, 1, 1, 12, tzinfo=UTC)] * 3, pa.timestamp("us", tz="UTC")),
        "open": pa.array([True, False, None]),
    }
)
NEW = {
    "id": 4, "zip": "03", "price": Decimal("1.75"), "rate": 0.25, "day": datetime.date(2021, 5, 5),
    "at": datetime.datetime(2021, 5, 5, 1, 2, 3, 4, tzinfo=UTC), "open": True,
}  # fmt: skip
TEXT = {
    "id": "4", "zip": "03", "price": "1.75", "rate": "0.25", "day": "2021-05-05", "at": "2021-05-05T01:02:03.000004Z",
    "open": "TRUE",
}  # fmt: skip


FIRST_DAY = datetime.date(2020, 1, 1)
MIDNIGHT = datetime.datetime(2020, 1, 1)


class State:
    def __init__(self, tokens: tuple[str, ...] = ()) -> None:
        relation = load(FIRST)
        self.dictionaries, self.codes = Dictionaries.of_relation(relation)
        self.columns = [KeptColumn(c.name, c.type, c.why) for c in relation.columns]
        self.tokens = tokens

    def read(self, source: Any, options: LoadOptions | None = None, **how: bool) -> RowBatch:
        return read_batch(source, self.columns, self.dictionaries, self.tokens, options, **how)

    def values(self, batch: RowBatch) -> list[dict[str, Any]]:
        """What the rows of a batch hold."""
        self.dictionaries.add(batch.additions)
        relation = self.dictionaries.relation(self.columns, batch.codes, "t")
        cells = [relation.values(c).to_pylist() for c in range(len(self.columns))]
        return [dict(zip(relation.column_names, row, strict=True)) for row in zip(*cells, strict=True)]


@pytest.fixture
def state() -> State:
    return State()


def written(folder: Path, text: str) -> str:
    path = folder / "rows.csv"
    path.write_text(text)
    return str(path)


def csv_of(*rows: dict[str, str]) -> str:
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n"


def sources(folder: Path) -> dict[str, Any]:
    turned = dict(reversed(NEW.items()))
    table = pa.Table.from_pylist([NEW], schema=FIRST.schema)
    parquet.write_table(table, folder / "rows.parquet")
    return {
        "mapping": NEW,
        "mapping in another order": turned,
        "list of mappings": [NEW],
        "list of sequences": [tuple(NEW.values())],
        "text": TEXT,
        "arrow": table.select(list(turned)),
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "relation": load(table),
        "csv": written(folder, csv_of(TEXT)),
        "csv in another order": written(folder / "..", csv_of(dict(reversed(TEXT.items())))),
        "path": folder / "rows.csv",
        "parquet": str(folder / "rows.parquet"),
    }


SOURCES = [
    "mapping", "mapping in another order", "list of mappings", "list of sequences", "text", "arrow", "pandas", "polars",
    "relation", "csv", "csv in another order", "path", "parquet",
]  # fmt: skip


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_rows(kind: str, state: State, tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    source = sources(folder)[kind]
    batch = state.read(source)
    assert batch.codes.dtype == np.int32
    assert batch.codes.flags.c_contiguous
    assert state.values(batch) == [NEW]
    assert state.read(source).codes.tolist() == batch.codes.tolist()
    assert not len(state.read(source).additions)
    assert state.read(FIRST).codes.tolist() == state.codes.tolist()
    assert batch.row_ids is None
    assert batch.notes == ()


def test_a_csv_file_is_read_without_spark(tmp_path: Path) -> None:
    path = written(tmp_path, "n\n1\n5\n")
    program = (
        "import sys, pyarrow as pa\n"
        "from tuplewise.engine.dc.incremental.dictionaries import Dictionaries\n"
        "from tuplewise.engine.dc.incremental.rows import read_batch\n"
        "from tuplewise.engine.table.rows import KeptColumn\n"
        "from tuplewise.engine.table.table import load\n"
        "dictionaries, _ = Dictionaries.of_relation(load(pa.table({'n': [1]})))\n"
        "batch = read_batch(sys.argv[1], [KeptColumn('n', 'integer', '')], dictionaries, ())\n"
        "print(len(batch.codes), len(batch.additions), 'pyspark' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1", "False"]


def test_nulls_and_tokens(tmp_path: Path) -> None:
    state = State(tokens=("NA",))
    nulls = dict.fromkeys(NEW)
    tokens = dict.fromkeys(NEW, "NA")
    path = written(tmp_path, csv_of(tokens))
    for source in (nulls, tokens, [[None] * 7], [["NA"] * 7], path, {**nulls, "day": pd.NaT, "id": pd.NA}):
        assert state.read(source).codes.tolist() == [[-1] * 7]


MISFITS = {
    "id": ("x", "integer"),
    "price": ("1,5", "decimal"),
    "rate": ("fast", "double"),
    "day": ("2021-02-30", "date"),
    "at": ("noon", "timestamp"),
    "open": ("yes", "boolean"),
}


@pytest.mark.parametrize("column", MISFITS)
@pytest.mark.parametrize("many", [False, True])
def test_a_value_that_does_not_fit(column: str, many: bool, state: State, tmp_path: Path) -> None:
    value, type_ = MISFITS[column]
    good = [TEXT] * (100 if many else 1)
    rows = [*good, {**TEXT, column: value}, TEXT, {**TEXT, column: value}]
    text = rf"column '{column}': a value doesn't fit type {type_} at row {len(good)}: '{value}'; allowed: "
    with pytest.raises(InputError, match=text):
        state.read(rows)
    with pytest.raises(InputError, match=rf"doesn't fit type {type_} at row {len(good)} and 1 more: '{value}'"):
        state.read(pa.Table.from_pylist(rows))
    path = written(tmp_path, csv_of(*rows).replace("1,5", '"1,5"'))
    line = len(good) + 2
    with pytest.raises(InputError, match=rf"type {type_} at line {line} and 1 more: '{value}'"):
        state.read(path)
    for source, place in ((rows, f"row {len(good)}"), (path, f"line {line}")):
        batch = state.read(source, leave_out=True)
        assert len(batch.codes) == len(good) + 1
        note = f"2 rows with a value that does not fit its column's type left out, the first at {place}"
        assert batch.notes == (note,)


@pytest.mark.parametrize("value", [1.5, "1.5", True, [1], object(), 10**39])
def test_what_is_no_whole_number(value: Any, state: State) -> None:
    with pytest.raises(InputError, match=r"column 'id': a value doesn't fit type integer at row 0"):
        state.read({**NEW, "id": value})


@pytest.mark.parametrize(
    ("column", "value", "same"),
    [
        ("id", 4.0, 4), ("id", "+4", 4), ("id", "004", 4), ("id", Decimal(4), 4), ("id", np.int32(4), 4),
        ("id", "-0", 0), ("id", str(10**30), 10**30), ("price", "1.5", Decimal("1.50")), ("price", 2, 2),
        ("price", "+01.50", Decimal("1.5")), ("price", 1.5, Decimal("1.5")), ("price", "-0.00", 0), ("rate", 1, 1.0),
        ("rate", "1e0", 1.0), ("rate", -0.0, 0.0), ("rate", "-inf", float("-inf")), ("rate", np.float32(0.5), 0.5),
        ("rate", Decimal("0.5"), 0.5), ("day", datetime.datetime(2020, 1, 1), FIRST_DAY),
        ("day", "2020-01-01", FIRST_DAY), ("at", FIRST_DAY, MIDNIGHT), ("at", "2020-01-01", MIDNIGHT),
        ("at", "2020-01-01 02:00+02:00", MIDNIGHT), ("at", MIDNIGHT.replace(tzinfo=UTC), MIDNIGHT),
        ("at", "2020-01-01 00:00:00.5", MIDNIGHT.replace(microsecond=500_000)),
        ("at", pd.Timestamp("2020-01-01"), MIDNIGHT), ("open", "true", True), ("open", np.bool_(True), True),
        ("zip", 7, "7"), ("zip", 1.0, "1.0"), ("zip", True, "true"), ("zip", "7", "7"),
    ],
)  # fmt: skip
def test_values_of_other_classes(column: str, value: Any, same: Any, state: State) -> None:
    """One by one, and as columns that are read."""
    batch = state.read({**NEW, column: value})
    assert batch.codes.tolist() == state.read({**NEW, column: same}).codes.tolist()
    if not isinstance(value, np.generic):
        assert state.read(pa.Table.from_pylist([{**NEW, column: value}])).codes.tolist() == batch.codes.tolist()


def test_text_of_numbers_is_as_they_are_written(state: State) -> None:
    for value, text in ((0.0, "0.0"), (-0.0, "-0.0"), (Decimal("1.5"), "1.5"), (Decimal("1.50"), "1.50"), (-7, "-7")):
        batch = state.read({**NEW, "zip": value})
        assert batch.codes.tolist() == state.read({**NEW, "zip": text}).codes.tolist()
        assert arrow_of_keys("text", batch.additions.runs["text"].keys).to_pylist()[0] == text


def test_other_columns(state: State, tmp_path: Path) -> None:
    less = {name: value for name, value in NEW.items() if name != "price"}
    listed = "allowed: id, zip, price, rate, day, at, open"
    with pytest.raises(InputError, match=rf"row 0 has other columns than the state: \"missing 'price'\"; {listed}$"):
        state.read(less)
    wrong = {**less, "prices": 1}
    text = rf"other columns than the state: \"missing 'price'; unknown 'prices'\"; {listed}. Did you mean 'price'\?"
    with pytest.raises(InputError, match=text):
        state.read(wrong)
    with pytest.raises(InputError, match=r"^the batch has other columns"):
        state.read(pa.Table.from_pylist([wrong]))
    path = written(tmp_path, "id,zip\n1,2\n")
    with pytest.raises(InputError, match=rf"^{path} has other columns than the state: \"missing 'price', 'rate'"):
        state.read(path)
    with pytest.raises(InputError, match=r"row 1 has another number of values: 2; allowed: 7"):
        state.read([NEW, [1, 2]])
    with pytest.raises(InputError, match="row 0 can't be read: 'int'; allowed: mappings by column names"):
        state.read([1])
    with pytest.raises(InputError, match="a table of this type can't be read: 'int'"):
        state.read(7)
    with pytest.raises(InputError, match=r"missing 'id'; unknown 'row_id'"):
        state.read({**{name: value for name, value in NEW.items() if name != "id"}, "row_id": 3})
    with pytest.raises(InputError, match=r"unknown 'row_id'"):
        state.read(pa.Table.from_pylist([{**NEW, "row_id": 3}]))


def test_ids_of_rows(state: State, tmp_path: Path) -> None:
    rows = [{"row_id": 7, **NEW}, {**NEW, "row_id": 2}]
    text = csv_of({"row_id": "7", **TEXT}, {"row_id": "2", **TEXT})
    for source in (rows, pa.Table.from_pylist(rows), written(tmp_path, text), load(pa.Table.from_pylist(rows))):
        batch = state.read(source, with_row_id=True)
        assert batch.row_ids is not None
        assert batch.row_ids.dtype == np.int64
        assert batch.row_ids.tolist() == [7, 2]
        assert batch.codes.shape == (2, 7)
    for plain in (NEW, [list(NEW.values())], pa.Table.from_pylist([NEW])):
        assert state.read(plain, with_row_id=True).row_ids is None
    for bad, shown in ((None, "'null'"), (-1, "-1"), (2**63, "9223372036854775808")):
        lines = [{"row_id": "1", **TEXT}, {"row_id": "" if bad is None else str(bad), **TEXT}]
        for source in ([NEW | {"row_id": 1}, NEW | {"row_id": bad}], written(tmp_path, csv_of(*lines))):
            said = rf"column 'row_id': no id of a row at (row 1|line 3).*: {shown}; allowed: ids"
            with pytest.raises(InputError, match=said):
                state.read(source, with_row_id=True)
    with pytest.raises(InputError, match=r"column 'row_id': a value doesn't fit type integer at row 0: 'x'"):
        state.read({**NEW, "row_id": "x"}, with_row_id=True)
    with pytest.raises(InputError, match=r"row 1 has other columns than the state: \"missing 'row_id'\""):
        state.read([{**NEW, "row_id": 1}, NEW], with_row_id=True)


def test_rows_that_are_left_out_take_their_ids_along(state: State) -> None:
    rows = [NEW | {"row_id": 5}, NEW | {"row_id": 6, "id": "x"}, NEW | {"row_id": 7}]
    batch = state.read(rows, leave_out=True, with_row_id=True)
    assert batch.row_ids is not None
    assert batch.row_ids.tolist() == [5, 7]


@pytest.mark.parametrize("whole", [False, True])
def test_keys(whole: bool, state: State, tmp_path: Path) -> None:
    columns = [state.columns[1], state.columns[0]]
    given = [("02", 2), ("02", 3), (None, 9), ("no", 1)]
    rest = dict(NEW) if whole else {}
    rows = [{**rest, "id": i, "zip": z} for z, i in given]
    codes = state.codes[:, [1, 0]]
    expected = [codes[1].tolist(), [codes[1, 0], codes[2, 1]], [-1, -2], [-2, codes[0, 1]]]
    text = "zip,id\n02,2\n02,3\n,9\nno,1\n"
    sources_ = [rows, pa.Table.from_pylist(rows), load(pa.Table.from_pylist(rows)), written(tmp_path, text), given]
    for source in sources_:
        found = keys_of(source, columns, state.dictionaries, ())
        assert found.tolist() == expected
        assert found.flags.c_contiguous
    with pytest.raises(InputError, match=r"row 0 has other columns than the state: \"missing 'id'"):
        keys_of([{"zip": "02"}], columns, state.dictionaries, ())
    with pytest.raises(InputError, match=r"missing 'id'"):
        keys_of(pa.table({"zip": ["02"]}), columns, state.dictionaries, ())
    with pytest.raises(InputError, match=r"column 'id': a value doesn't fit type integer at row 0: 'x'"):
        keys_of([("02", "x")], columns, state.dictionaries, ())


def test_no_rows(state: State, tmp_path: Path) -> None:
    nothing: list[Any] = [[], FIRST.slice(0, 0), written(tmp_path, ",".join(NEW) + "\n")]
    for source in nothing:
        batch = state.read(source)
        assert batch.codes.shape == (0, 7)
        assert not len(batch.additions)
    assert keys_of([], state.columns[:1], state.dictionaries, ()).shape == (0, 1)
