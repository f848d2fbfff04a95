"""Checks of given inclusion dependencies, against their definition."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import nary_ind as oracle

from tuplewise.engine.errors import InputError, RuleError
from tuplewise.engine.ind.check import check_dependencies
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency
from tuplewise.engine.ind.found import CheckedInds, IndCheck
from tuplewise.engine.options import IndCheckOptions, LoadOptions
from tuplewise.engine.report.ind_texts import read_all_inds
from tuplewise.engine.run import Run
from tuplewise.engine.table.table import load

COUNTS = ("dependent_distinct", "referenced_distinct", "missing_values", "rows_missing", "rows_null")


def checked(tables: Mapping[str, Any], *inds: Any, load: LoadOptions | None = None, **options: Any) -> CheckedInds:
    how = {name: options.pop(name) for name in ("run",) if name in options}
    return check_dependencies(
        tables, lambda names: read_all_inds(list(inds), names)[0], IndCheckOptions(**options), load, **how
    )


def one(tables: Mapping[str, Any], ind: str, **options: Any) -> IndCheck:
    return checked(tables, ind, **options).checks[0]


def arrow(tables: oracle.Tables) -> dict[str, pa.Table]:
    return {name: pa.table({c: pa.array(v, pa.int64()) for c, v in table.items()}) for name, table in tables.items()}


def side(of: oracle.Side) -> tuple[Attribute, ...]:
    return tuple(Attribute(of[0], column) for column in of[1])


@st.composite
def questions(draw: st.DrawFn) -> tuple[dict[str, dict[str, list[int | None]]], oracle.Side, oracle.Side]:
    """Two tables of three columns and few values, and two sides of as many columns."""
    tables = {}
    for name in ("t", "u"):
        rows = draw(st.integers(0, 9))
        values = st.sampled_from([0, 0, 1, 2, 3, None])
        tables[name] = {c: draw(st.lists(values, min_size=rows, max_size=rows)) for c in ("a", "b", "c")}
    size = draw(st.integers(1, 3))
    sides = [(draw(st.sampled_from("tu")), tuple(draw(st.permutations("abc"))[:size])) for _ in range(2)]
    return tables, sides[0], sides[1]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(questions(), st.sampled_from(["0", "0.25", "0.5"]))
def test_counts_are_those_of_the_definition(
    question: tuple[oracle.Tables, oracle.Side, oracle.Side], error: str
) -> None:
    tables, dependent, referenced = question
    found = checked(
        arrow(tables), InclusionDependency(side(dependent), side(referenced)), error=Decimal(error), examples=100
    ).checks[0]
    expected = oracle.counted(tables, dependent, referenced)
    assert {name: getattr(found, name) for name in COUNTS} == {name: expected[name] for name in COUNTS}
    assert found.holds == (expected["missing_values"] <= Fraction(error) * expected["dependent_distinct"])
    assert found.reason is None
    rows = oracle.tuples(tables, dependent)
    assert found.examples is not None
    values = list(zip(*(column.to_pylist() for column in found.examples.values), strict=True))
    assert len(values) == len(set(values)) == expected["missing_values"]
    for value, count, places in zip(values, found.examples.counts.tolist(), found.examples.rows, strict=True):
        assert count == rows.count(value)
        assert list(places) == [i for i, row in enumerate(rows) if row == value][:5]
    order = [(-count, places[0]) for count, places in zip(found.examples.counts, found.examples.rows, strict=True)]
    assert order == sorted(order)


def test_at_most_so_many_examples_are_listed() -> None:
    tables = {"t": pa.table({"a": [1, 2, 2, 3, 3, 3]}), "u": pa.table({"b": [9]})}
    found = one(tables, "t.a <= u.b", examples=2)
    assert found.missing_values == 3
    assert found.examples is not None
    assert found.examples.values[0].to_pylist() == [3, 2]
    assert found.examples.counts.tolist() == [3, 2]
    none = one(tables, "t.a <= u.b", examples=0).examples
    assert none is not None
    assert len(none.counts) == 0


def test_values_of_every_type_are_compared() -> None:
    days = pa.array([0, 1], pa.date32())
    left = {
        "n": [1, 2], "d": pa.array([1.5, float("nan")]), "z": pa.array([-0.0, 1.0]), "b": [True, False],
        "w": ["x", "é"], "day": days, "m": pa.array([Decimal("1.00"), Decimal("2.50")]),
    }  # fmt: skip
    right = {
        "n": pa.array([Decimal("2.0"), Decimal("1.0")]), "d": pa.array([float("nan"), 1.5]), "z": pa.array([0.0, 1.0]),
        "b": [False, True], "w": ["é", "x"], "day": pa.array([86_400_000_000, 0], pa.timestamp("us")), "m": [1, 2],
    }  # fmt: skip
    tables = {"t": pa.table(left), "u": pa.table(right)}
    found = checked(tables, *(f"t.{name} <= u.{name}" for name in left))
    assert [check.missing_values for check in found.checks] == [0, 0, 0, 0, 0, 0, 1]
    lacking = found.checks[-1].examples
    assert lacking is not None
    assert lacking.values[0].to_pylist() == [Decimal("2.50")]


@pytest.mark.parametrize(("right", "type_"), [([1.0], "double"), ([True], "boolean"), (["1"], "text")])
def test_types_that_are_not_compared_have_no_value_in_common(right: list[Any], type_: str) -> None:
    tables = {"t": pd.DataFrame({"a": [1, 2], "ok": [1, 2]}), "u": pd.DataFrame({"b": right * 2, "c": [2, 1]})}
    found = checked(tables, "t.a <= u.b", "t.ok <= u.c")
    assert (found.checks[0].holds, found.checks[0].missing_values) == (False, 2)
    reason = found.checks[0].reason
    assert reason == (
        f"t.a is integer and u.b is {type_}: values of these types are not compared. As text they are: as_text"
    )
    assert found.checks[1].holds


def test_a_column_without_values_is_included_anywhere() -> None:
    tables = {"t": pa.table({"a": pa.array([None, None], pa.int64())}), "u": pa.table({"b": ["x"]})}
    found = one(tables, "t.a <= u.b")
    assert (found.holds, found.missing_values, found.rows_null, found.reason) == (True, 0, 2, None)


def test_a_time_limit_leaves_the_rest_undecided() -> None:
    tables = {"t": pa.table({"a": [1]}), "u": pa.table({"b": [1]})}
    found = checked(tables, "t.a <= u.b", "u.b <= t.a", run=Run(deadline=time.monotonic() - 1))
    assert found.partial
    assert [check.holds for check in found.checks] == [None, None]
    assert found.checks[0].missing_values is None
    assert found.notes == ("time limit reached: 2 of 2 dependencies are undecided",)


def test_only_what_dependencies_name_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "u.csv").write_text("c\n1\n2\n")
    (tmp_path / "bad.csv").write_text("d,e\n1\n")
    paths = {name: str(tmp_path / f"{name}.csv") for name in ("t", "u", "bad")}
    found = checked(paths, "t.a <= u.c")
    assert [(t.name, [c.name for c in t.columns]) for t in found.tables] == [("t", ["a"]), ("u", ["c"])]
    assert found.notes == ("table 'bad' is in no dependency: it was not read",)
    assert found.tables[0].columns[0].distinct == 2


def test_options_name_columns_of_any_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n01,x\n1,y\n")
    (tmp_path / "u.csv").write_text("a,c\n1,5\n2,6\n")
    paths = {name: str(tmp_path / f"{name}.csv") for name in ("t", "u")}
    assert one(paths, "u.a <= t.a").reason is not None  # 01 makes t.a text
    assert one(paths, "u.a <= t.a", load=LoadOptions(types={"u.a": "text"})).missing_values == 1
    assert one(paths, "u.a <= t.a", load=LoadOptions(columns=("a",)), as_text=True).missing_values == 1
    with pytest.raises(RuleError, match="table 't' has no column of the name 'a'"):
        one(paths, "u.a <= t.a", load=LoadOptions(exclude=("t.a",)))
    with pytest.raises(InputError, match=r"no table has a column of that name: 'custommer'.*; no table has .*: 'u.b'"):
        one(paths, "u.a <= t.a", load=LoadOptions(exclude=("custommer", "u.b")))
    with pytest.raises(InputError, match=r"no column of table 'u' is asked for: \['b'\]"):
        one(paths, "u.a <= t.a", load=LoadOptions(columns=("b",)))


def test_rows_are_named_by_their_positions() -> None:
    """Rows that were left out as bad count."""
    child = replace(load(pa.table({"a": [1, 7, 7]})), positions=np.array([0, 2, 5]))
    found = one({"t": child, "u": pa.table({"b": [1]})}, "t.a <= u.b")
    assert found.examples is not None
    assert found.examples.rows == ((2, 5),)


def test_a_repeated_dependency_is_checked_once() -> None:
    names = {"t": ["a"], "u": ["b"]}
    found, notes = read_all_inds(["t.a <= u.b", "t.a⊆u.b"], names)
    assert len(found) == 1
    assert notes == ["'t.a <= u.b' is the same dependency as 't.a <= u.b': it is checked once"]
    with pytest.raises(InputError, match="an inclusion dependency of this type can't be read: 'int'"):
        read_all_inds([3], names)
    with pytest.raises(RuleError, match="inclusion dependencies: \\[\\]; allowed: one or more"):
        read_all_inds([], names)
    with pytest.raises(RuleError, match="table 't' has no column of the name 'z'"):
        read_all_inds(InclusionDependency((Attribute("t", "z"),), (Attribute("u", "b"),)), names)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# nothing\n", "no inclusion dependencies in file: 'f.txt'"),
        ("t.a <= u.b\n\nt.q <= u.b\n", "f.txt line 3: inclusion dependency, position 3: table 't' has no column"),
        ('{"result": ', "file 'f.txt' begins as JSON and isn't"),
        ('{"command": "od check", "result": {"ods": []}}', "no list of inclusion dependencies in JSON file: 'f.txt'"),
        ('{"result": {"inds": [3]}}', "f.txt entry 1 is no inclusion dependency: 3"),
        ('{"result": {"inds": [{"dependent": "t.a", "referenced": []}]}}', "'referenced' of an inclusion dependency"),
    ],
)
def test_faults_of_files_are_told_with_their_place(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(content)
    with pytest.raises(RuleError) as caught:
        read_all_inds(path, {"t": ["a"], "u": ["b"]})
    assert said in str(caught.value), str(caught.value)


def test_a_device_is_not_pretended() -> None:
    with pytest.raises(InputError, match="device of a check of inclusion dependencies: 'cuda'; allowed: 'auto' or"):
        IndCheckOptions(device="cuda")


def test_a_file_may_end_with_an_empty_field_behind_a_quoted_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n"x","3"\n"y",')
    (tmp_path / "u.csv").write_text("b\n3\n")
    tables = {"t": str(tmp_path / "t.csv"), "u": str(tmp_path / "u.csv")}
    check = one(tables, "t.b <= u.b")
    assert (check.holds, check.dependent_distinct, check.rows_null) == (True, 1, 1)
    (tmp_path / "t.csv").write_text('a,b\n"x","3"\n"y",""')
    assert (one(tables, "t.b <= u.b").holds, one(tables, "t.b <= u.b").rows_null) == (False, 0)
