"""Denial constraints kept current on real tables: published numbers of rules, and what discovery finds afresh."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tuplewise as tw
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.incremental.applied import AppliedRevision
from tuplewise.engine.dc.incremental.initial import build
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from dc_tables import Table, read_table
from histories import ARROW, as_oracle, texts
from oracles import dc as oracle

pytestmark = pytest.mark.outside
SHARED = Path(os.environ.get("TUPLEWISE_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))


def shared_table(name: str, rows: int | None = None, encoding: str = "utf-8") -> pa.Table:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"outside data {path} is not here (TUPLEWISE_SHARED names its folder)")
    table: Table = read_table(path, rows=rows, encoding=encoding)
    for i, (column, _, values) in enumerate(table):
        if column.endswith("(Double)"):
            table[i] = (column, "double", [None if v is None else float(v) for v in values])
    return pa.table({column: pa.array(values, ARROW[type_]) for column, type_, values in table})


def as_discovered(state: DcState) -> int:
    """The number of rules, which are those that discovery finds on the rows that are there."""
    relation = state.relation()
    found = discover(relation, state.options.discover, space=state.space)
    arrays = state.arrays()
    for name in ("predicates", "sizes", "violations", "one_row"):
        assert np.array_equal(getattr(arrays, name), getattr(found.arrays, name)), name
    assert texts(state.constraints()) == texts(found.constraints)
    return len(arrays)


def each_is_broken(applied: AppliedRevision, state: DcState, table: pa.Table, nulls: Any) -> None:
    """The pairs that are told break their rules. `table`: a row for each id ever given out."""
    names = [column.name for column in state.columns]
    types = [column.type for column in state.columns]
    for lost in applied.lost:
        if lost.broken_by is not None:
            pair = table.take([int(i) for i in lost.broken_by]).to_pylist()
            columns = [(n, t, [row[n] for row in pair]) for n, t in zip(names, types, strict=True)]
            rule = as_oracle(lost.rule, names)
            assert all(oracle.holds_for(columns, p, 0, 1, nulls) for p in rule), lost


@pytest.mark.parametrize("index", ["zones", "published"])
def test_airport_has_31_then_28_then_26_rules_and_31_again(tmp_path: Path, index: Any) -> None:
    """Published for this table and its increment (incremental DC discovery, The VLDB Journal 2023, table 10)."""
    table = shared_table("airport_original.csv", None, "latin-1")
    more = shared_table("airport_incremental.csv", None, "latin-1").cast(table.schema)
    options = DcStateOptions(discover=DcDiscoverOptions(nulls="value"), index=index)
    build(tmp_path / "s", tw.load(table, name="airport"), options, written_by="test")
    everything = pa.concat_tables([table, more])
    with DcState(tmp_path / "s") as state:
        assert as_discovered(state) == 31
        applied = state.insert(state.read(more.slice(0, 10_000)))
        assert as_discovered(state) == 28
        assert applied.row_ids[[0, -1]].tolist() == [30_000, 39_999]
        each_is_broken(applied, state, everything, "value")
        last = state.insert(state.read(more.slice(10_000)))
        assert as_discovered(state) == 26
        each_is_broken(last, state, everything, "value")
    with DcState(tmp_path / "s") as state:
        gone = state.delete(np.concatenate((applied.row_ids, last.row_ids)))
        assert as_discovered(state) == 31
        assert (gone.revision, gone.rows) == (3, 30_000)
        assert texts(state.constraints()) == texts(state.constraints(0))
        changes = state.changes(0)
        assert (len(changes.gained), len(changes.lost)) == (0, 0)
        since = state.changes(0, 2)
        assert len(since.lost) - len(since.gained) == 5


@pytest.mark.parametrize("index", ["zones", "published"])
@pytest.mark.parametrize(("name", "columns", "cross"), [("adult.csv", 11, True), ("uce.csv", 8, False)])
def test_a_tenth_in_and_out_again(tmp_path: Path, name: str, columns: int, cross: bool, index: Any) -> None:
    """The last columns of the first rows."""
    rows, more = 500, 50
    table = shared_table(name, rows + more)
    table = table.select(table.column_names[-columns:])
    options = DcStateOptions(discover=DcDiscoverOptions(cross_columns=cross), index=index)
    build(tmp_path / "s", tw.load(table.slice(0, rows)), options, written_by="test")
    with DcState(tmp_path / "s") as state:
        first = texts(state.constraints())
        assert as_discovered(state) == len(first) > 1000
        applied = state.insert(state.read(table.slice(rows)))
        as_discovered(state)
        each_is_broken(applied, state, table, "unknown")
        some = list(range(0, 25, 5))
        parts = table.slice(rows, 5), table.take(some)
        moved, back = (part.append_column("row_id", pa.array(some)) for part in parts)
        state.update(state.read(moved, with_row_id=True))
        as_discovered(state)
        state.update(state.read(back, with_row_id=True))
        state.delete(applied.row_ids)
        assert as_discovered(state) == len(first)
        assert texts(state.constraints()) == first
