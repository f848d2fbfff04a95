"""Every reader gives the same table, or the same words: Arrow, Spark, and rows one by one."""

from __future__ import annotations

import os
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from table_inputs import INPUTS, Input, Rows

from tuplewise.engine.dc.incremental.arrow_keys import keys_of_arrow
from tuplewise.engine.dc.incremental.keys import keys_of_rows
from tuplewise.engine.errors import InputError
from tuplewise.engine.ind import unary
from tuplewise.engine.ind.values import canonical_array, canonical_bytes, family_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.rows import read_rows
from tuplewise.engine.table.table import load

BY_NAME = [pytest.param(given, id=given.name) for given in INPUTS]
SPARK_TOO = [pytest.param(given, id=given.name) for given in INPUTS if given.spark is None or not given.error]


def read(given: Input, folder: Path, reader: str) -> Relation:
    path = given.write(folder)
    return load(str(path), LoadOptions(**given.options, reader=reader))  # type: ignore[arg-type]


def rows_of(relation: Relation) -> Rows:
    columns = [relation.values(c).to_pylist() for c in range(len(relation.columns))]
    return list(zip(*columns, strict=True))


def plain(rows: Rows) -> str:
    """Rows as text, a number of whatever type by its value, an instant whatever its zone is called."""

    def cell(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        exact = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
        return format(Decimal(value).normalize(), "f") + " exactly" if exact else value

    return repr([tuple(map(cell, row)) for row in rows])


def shown(relation: Relation) -> dict[str, Any]:
    """All that a reader decides."""
    return {
        "columns": relation.columns,
        "codes": relation.codes.tolist(),
        "dictionaries": {d: repr(values.to_pylist()) for d, values in relation.dictionaries.items()},
        "positions": [relation.position_of(row) for row in range(relation.rows)],
        "notes": relation.notes,
        "name": relation.name,
    }


def outcome(given: Input, folder: Path, reader: str) -> dict[str, Any] | str:
    try:
        return shown(read(given, folder, reader))
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("given", BY_NAME)
def test_arrow_reads_what_is_there(given: Input, tmp_path: Path) -> None:
    if given.error is not None:
        with pytest.raises(InputError, match=f"(?s){given.error}"):
            read(given, tmp_path, "arrow")
        return
    relation = read(given, tmp_path, "arrow")
    assert given.names is None or relation.column_names == given.names
    assert given.types is None or [c.type for c in relation.columns] == given.types
    assert given.rows is None or plain(rows_of(relation)) == plain(given.rows)
    positions = [relation.position_of(row) for row in range(relation.rows)]
    assert positions == (given.positions or list(range(relation.rows)))
    assert len(relation.notes) == len(given.notes), relation.notes
    for note, pattern in zip(relation.notes, given.notes, strict=True):
        assert re.search(pattern, note)
    assert relation.spark is None
    assert relation.reader is not None
    assert relation.reader.name == "arrow"


@pytest.mark.spark
@pytest.mark.parametrize("given", SPARK_TOO)
def test_spark_gives_the_same(given: Input, tmp_path: Path, spark: object) -> None:
    found = outcome(given, tmp_path, "spark")
    if given.spark is None:
        assert found == outcome(given, tmp_path, "arrow")
    elif given.spark.startswith("differs: "):
        assert found != outcome(given, tmp_path, "arrow")
    else:
        assert isinstance(found, str)
        assert re.search(given.spark, found)


@pytest.mark.parametrize("given", [p for p in BY_NAME if p.values[0].rows and not p.values[0].error])  # type: ignore[union-attr]
def test_rows_one_by_one_are_the_same_values(given: Input, tmp_path: Path) -> None:
    """What the reader of Python rows gives makes the keys and canonical bytes that the states make of whole columns."""
    relation = read(given, tmp_path, "arrow")
    types = [c.type for c in relation.columns]
    rows, left_out = read_rows(rows_of(relation), relation.column_names, types)
    assert left_out == []
    keys = keys_of_rows(types, rows)
    for c, column in enumerate(relation.columns):
        values = relation.values(c).drop_null()
        found = [row[c] for row in rows if row[c] is not None]
        assert [row[c] is None for row in rows] == relation.values(c).is_null().to_pylist()
        assert [key for key in keys[c] if key is not None] == keys_of_arrow(column.domain, values).plain()
        written = canonical_array(family_of(column.type), values).to_pylist()
        assert list(map(canonical_bytes(column.type), found)) == written


@pytest.mark.parametrize("given", [p for p in BY_NAME if p.id is not None and p.id.startswith("csv")])
def test_the_splitter_of_inclusion_dependencies_gives_the_same(
    given: Input, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types, values, notes and words of the fast path are those of Arrow."""
    path, options = str(given.write(tmp_path)), LoadOptions(**given.options)

    def found() -> tuple[object, ...] | str:
        try:
            clustered = unary.cluster_tables({"t": path}, options)
        except InputError as error:
            return str(error)
        clustering = clustered.clustering
        return clustered.tables, clustered.notes, clustering.masks.tolist(), clustering.values.tolist()

    fast = found()
    monkeypatch.setattr(unary, "read_csv_cells", lambda *args, **kwargs: None)
    assert fast == found()


def test_files_are_read_by_the_reader_of_this_run(tmp_path: Path) -> None:
    """`make test-readers` lets Spark read what the default tests read by Arrow."""
    (tmp_path / "t.csv").write_text("a\n1\n")
    reader = load(str(tmp_path / "t.csv")).reader
    assert reader is not None
    assert reader.name == os.environ.get("TUPLEWISE_TEST_READER", "arrow")
