"""Inclusion dependencies of several columns, against their definition."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import nary_ind as oracle

import tuplewise as tw
from benchmarks.outside import MissingData, package_program
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency, parse_ind
from tuplewise.engine.ind.found import FoundInd, FoundInds, TableFound
from tuplewise.engine.ind.nary import with_several_columns
from tuplewise.engine.ind.tables import options_of_tables
from tuplewise.engine.ind.tuples import MISSING, CodedTables, TupleSet
from tuplewise.engine.options import IndDiscoverOptions
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.engine.table.table import load

Tables = Mapping[str, Mapping[str, list[Any]]]


def relations_of(tables: Tables) -> dict[str, Relation]:
    return {name: load(pa.table({c: pa.array(v, pa.int64()) for c, v in t.items()})) for name, t in tables.items()}


def side(found: oracle.Side) -> tuple[Attribute, ...]:
    return tuple(Attribute(found[0], column) for column in found[1])


def unary_found(tables: Tables, relations: Mapping[str, Relation], options: IndDiscoverOptions) -> FoundInds:
    """What is found of single columns, by definition."""
    inds, trivial = oracle.listed(tables, 1, Fraction(options.error))
    listed = [
        FoundInd(
            InclusionDependency(side(a), side(b)),
            *(figures[name] for name in ("dependent_distinct", "referenced_distinct", "missing_values")),
        )
        for a, b, figures in inds
    ]
    described = tuple(TableFound(name, None, r.rows, r.columns) for name, r in relations.items())
    attributes = tuple(Attribute(name, c) for name, table in tables.items() for c in table)
    how: dict[str, Any] = {"work": "driver", "work_reason": "", "device": "cpu", "device_reason": ""}
    how |= {"tables": described, "attributes": attributes, "inds": tuple(listed), "trivial": trivial}
    return FoundInds(options=options, timings_seconds={}, **how)


def search(tables: Tables, error: str = "0", max_arity: int = 3, **how: Any) -> FoundInds:
    options = IndDiscoverOptions(error=Decimal(error), max_arity=max_arity)
    relations = relations_of(tables)
    return with_several_columns(
        unary_found(tables, relations, options), relations, options, options_of_tables(relations), **how
    )


def table(columns: int, rows: int) -> st.SearchStrategy[dict[str, list[int | None]]]:
    values = st.sampled_from([0, 0, 1, 1, 2, None])
    lists = st.lists(st.lists(values, min_size=rows, max_size=rows), min_size=columns, max_size=columns)
    return lists.map(lambda several: {f"c{i}": column for i, column in enumerate(several)})


@st.composite
def some_tables(draw: st.DrawFn) -> dict[str, dict[str, list[int | None]]]:
    """Two tables of few values, of which one often has rows of the other."""
    first = draw(table(draw(st.integers(1, 4)), draw(st.integers(0, 5))))
    second = draw(table(draw(st.integers(1, 4)), draw(st.integers(0, 5))))
    if draw(st.booleans()):
        shared = min(len(first), len(second))
        rows = list(zip(*list(first.values())[:shared], strict=True))
        for row in rows:
            for c, column in enumerate(second.values()):
                column.append(row[c] if c < shared else None)
    return {"t": first, "u": second}


@settings(max_examples=250, derandomize=True, deadline=None)
@given(some_tables(), st.sampled_from(["0", "0", "0.34", "0.5"]), st.integers(1, 4))
def test_those_that_are_found_are_those_of_the_definition(tables: Tables, error: str, max_arity: int) -> None:
    found = search(tables, error, max_arity)
    expected, trivial = oracle.listed(tables, max_arity, Fraction(Decimal(error)))
    assert [
        (f.ind, f.dependent_distinct, f.referenced_distinct, f.missing_values) for f in found.inds
    ] == [
        (InclusionDependency(side(a), side(b)), n["dependent_distinct"], n["referenced_distinct"], n["missing_values"])
        for a, b, n in expected
    ]  # fmt: skip
    assert found.trivial == trivial
    assert not found.partial


def test_an_order_of_two_columns_and_its_turned_one() -> None:
    tables = {"t": {"a": [1, 2], "b": [2, 1]}, "u": {"x": [1, 2, 3], "y": [2, 1, 3]}}
    found = [str(f.ind) for f in search(tables).inds if f.ind.size == 2]
    assert found == ["t[a, b] <= t[b, a]", "t[a, b] <= u[x, y]", "t[a, b] <= u[y, x]", "u[x, y] <= u[y, x]"]


def test_rows_with_a_null_are_left_out_on_both_sides() -> None:
    tables = {"t": {"a": [1, 1, None, 5], "b": [7, None, 9, None]}, "u": {"x": [1, None, 5], "y": [7, 9, None]}}
    found = {str(f.ind): f for f in search(tables).inds}
    assert found["t[a, b] <= u[x, y]"].dependent_distinct == 1
    assert found["t[a, b] <= u[x, y]"].referenced_distinct == 1


def test_the_levels_are_told() -> None:
    columns = {f"c{i}": [i, i + 1] for i in range(3)}
    found = search({"t": columns, "u": {f"x{i}": [i, i + 1, 9] for i in range(3)}}, max_arity=9)
    assert found.search["levels"] == [
        {"columns": 2, "candidates": 3, "checked": 3, "hold": 3},
        {"columns": 3, "candidates": 1, "checked": 1, "hold": 1},
    ]
    assert found.timings_seconds["several_columns"] > 0
    assert str(found.inds[-1].ind) == "t[c0, c1, c2] <= u[x0, x1, x2]"


def test_a_time_limit_ends_the_search() -> None:
    tables = {"t": {"a": [1], "b": [2], "c": [3]}, "u": {"x": [1], "y": [2], "z": [3]}}
    found = search(tables, run=Run(deadline=time.monotonic() - 1))
    assert found.partial
    assert found.notes == ("time limit reached: dependencies of 2 columns or more are not complete",)
    assert [f.ind.size for f in found.inds][:6] == [1] * 6


def test_a_memory_limit_ends_the_search() -> None:
    tables = {"t": {"a": [1], "b": [2]}, "u": {"x": [1], "y": [2]}}
    options = IndDiscoverOptions(max_arity=2, memory_limit=1)
    relations = relations_of(tables)
    read = options_of_tables(relations)
    found = with_several_columns(unary_found(tables, relations, options), relations, options, read)
    assert found.partial
    assert "memory limit of 1 bytes reached: dependencies of 2 columns or more are not complete" in found.notes


def test_progress_is_told() -> None:
    told: list[tuple[str, float]] = []
    tables = {"t": {"a": [1], "b": [2]}, "u": {"x": [1], "y": [2]}}
    search(tables, run=Run(progress=lambda *at: told.append(at)))
    assert told[-1] == ("several columns", 1.0)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.data())
def test_tuples_are_found_exactly(data: st.DataObject) -> None:
    """Codes of all sizes: two tuples are one only where all their codes are."""
    size = data.draw(st.integers(1, 4))
    codes = st.sampled_from([-1, 0, 1, 2, 2**31 - 1, 2**16, 2**31 - 2])
    rows = data.draw(st.lists(st.tuples(*[codes] * size), max_size=30))
    asked = data.draw(st.lists(st.tuples(*[codes | st.just(MISSING)] * size), max_size=30))
    nothing = [np.empty(0, np.int32)] * size
    referenced = TupleSet([np.array(c, dtype=np.int32) for c in zip(*rows, strict=True)] or nothing)
    there = {row: n for row, n in zip(rows, referenced.numbers.tolist(), strict=True) if min(row) >= 0}
    assert len(there) == len(set(there.values())) == referenced.distinct
    columns = [np.array(c, dtype=np.int32) for c in zip(*asked, strict=True)] or nothing
    found = referenced.find(columns).tolist()
    if size == 1:  # translated codes are there, or missing
        assert found == columns[0].tolist()
    else:
        assert found == [NULL_CODE if -1 in row else there.get(row, MISSING) for row in asked]
        stopped = referenced.find(columns, first_missing=True).tolist()
        assert (MISSING in stopped) == (MISSING in found)


def rows_of(tables: Mapping[str, pa.Table], **how: bool) -> CodedTables:
    return CodedTables(tables, options_of_tables(tables), {name: t.column_names for name, t in tables.items()}, **how)


def test_columns_of_other_families_have_no_value_in_common() -> None:
    tables = {"t": pa.table({"a": [1, None, 3]}), "u": pa.table({"b": ["1", "2", "3"]})}
    a, b = Attribute("t", "a"), Attribute("u", "b")
    assert rows_of(tables).translated(a, b).tolist() == [MISSING, NULL_CODE, MISSING]
    assert rows_of(tables, as_text=True).translated(a, b).tolist() == [0, NULL_CODE, 2]


def test_numbers_of_two_tables_are_compared_exactly() -> None:
    large = 2**53
    decimals = pa.array([Decimal(large), Decimal("5.00"), None], pa.decimal128(38, 2))
    rows = rows_of({"t": pa.table({"a": [large, large + 1, None, 5]}), "u": pa.table({"b": decimals})})
    found = rows.translated(Attribute("t", "a"), Attribute("u", "b"))
    assert found.tolist() == [0, MISSING, NULL_CODE, 1]
    assert rows.values(Attribute("u", "b"), found[[3, 0]].astype(np.int64)).to_pylist() == [5, large]


def test_a_limit_of_another_kind_is_not_swallowed() -> None:
    def stop(stage: str, share: float) -> None:
        raise LimitReached("enough")

    found = search({"t": {"a": [1], "b": [2]}, "u": {"x": [1], "y": [2]}}, run=Run(progress=stop))
    assert found.partial
    with pytest.raises(ZeroDivisionError):
        search({"t": {"a": [1], "b": [2]}, "u": {"x": [1], "y": [2]}}, run=Run(progress=lambda *_: 1 // 0))


@pytest.mark.outside
def test_those_of_tpch_are_those_of_mind(tmp_path: Path) -> None:
    """Desbordante's MIND lists none whose sides have a column in common; we do."""
    desbordante = pytest.importorskip("desbordante")
    try:
        program = package_program("tpchgen-cli")
    except MissingData as reason:
        pytest.skip(str(reason))
    command = [program, "csv", "-s", "0.002", "-o", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    paths = sorted(map(str, tmp_path.glob("*.csv")))
    mind = desbordante.aind.algorithms.Mind()
    mind.load_data(tables=[(path, ",", True) for path in paths])
    mind.execute(max_arity=2)
    found = tw.discover_inds(paths, as_text=True, max_arity=2)
    names = {table.name: [column.name for column in table.columns] for table in found.tables}
    theirs = {parts(parse_ind(str(ind), names)) for ind in mind.get_inds()}
    ours = {parts(one.ind) for one in found.inds if not set(one.ind.dependent) & set(one.ind.referenced)}
    assert ours == theirs


def parts(ind: InclusionDependency) -> tuple[tuple[Attribute, Attribute], ...]:
    """The pairs of columns, whichever order they stand in."""
    return tuple(sorted(zip(ind.dependent, ind.referenced, strict=True)))
