"""Inputs that break tools of this kind (notes on cases, A10, A11, B1, B10), through the public functions."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.errors import InputError, RuleError

ODD = ("Phone No.", "a.b", "a`b", "my col", "select", "naïve 名", "r and d", "[x]", "")


def written(folder: Path, **tables: str) -> list[str]:
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return [str(folder / f"{name}.csv") for name in tables]


def test_b1_a_null_in_the_parent_hides_no_orphan(tmp_path: Path) -> None:
    paths = written(tmp_path, child="a\n1\n\n9\n", parent="b\n1\n\n")  # a blank line is a null row of one column
    found = tw.check_inds(paths, "child.a <= parent.b").inds[0]
    assert (found.holds, found.missing_values, found.rows_missing, found.rows_null) == (False, 1, 1, 1)
    assert found.examples is not None
    assert (found.examples.values[0].to_pylist(), found.examples.rows) == ([9], ((2,),))


def test_b10_text_against_whole_numbers_is_told_and_stops_nothing(tmp_path: Path) -> None:
    paths = written(tmp_path, t="A,C\n1,1\nx,2\n", u="B\n1\n2\n")
    found = tw.check_inds(paths, ["t.A <= u.B", "t.C <= u.B"])
    assert [one.holds for one in found.inds] == [False, True]
    said = "values of these types are not compared. As text they are: as_text"
    message = f"t.A <= u.B: t.A is text and u.B is integer: {said}"
    assert [note for note in found.notes if note.startswith("t.A")] == [message]
    as_text = tw.check_inds(paths, "t.A <= u.B", as_text=True).inds[0]
    assert (as_text.missing_values, as_text.reason) == (1, None)
    assert [str(one.ind) for one in tw.discover_inds(paths)] == ["t.C <= u.B", "u.B <= t.C"]


def test_a10_repeated_names_are_told_apart(tmp_path: Path) -> None:
    paths = written(tmp_path, t="x,x,y\n1,2,a\n3,2,b\n", u="k\n2\n")
    found = tw.check_inds(paths, "t.x_2 <= u.k")
    assert found.holds
    assert any("repeats the name 'x': called 'x_2'" in note for note in found.notes)


def test_a11_odd_names_are_usable_and_printed_back(tmp_path: Path) -> None:
    header = ",".join('"' + name.replace('"', '""') + '"' for name in ODD)
    rows = "\n".join(",".join(str(10 * r + c) for c in range(len(ODD))) for r in range(3))
    paths = written(tmp_path, **{"my t": f"{header}\n{rows}\n", "u": f"{header}\n{rows}\n"})
    found = tw.discover_inds(paths)
    assert len(found) == 2 * len(ODD)
    saved = tmp_path / "found.json"
    saved.write_text(found.to_json())
    for given in (saved, [str(one.ind) for one in found.inds], found):
        checked = tw.check_inds(paths, given)
        assert [one.ind for one in checked.inds] == [one.ind for one in found.inds]
        assert checked.holds
    assert "`my t`.`a``b` <= u.`a``b`" in [str(one.ind) for one in found.inds]


def test_tables_of_one_name_need_names(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    [new] = written(tmp_path, t="a\n1\n")
    [old] = written(tmp_path / "old", t="a\n1\n2\n")
    with pytest.raises(InputError, match="two tables are called 't'"):
        tw.discover_inds([new, old])
    found = tw.discover_inds({"new": new, "old": old})
    assert [str(one.ind) for one in found] == ["new.a <= old.a"]


def test_columns_without_values_are_counted_not_listed() -> None:
    nothing = pd.Series([None, None], dtype="Int64")
    found = tw.discover_inds({"t": pd.DataFrame({"a": [1, 2], "none": nothing}), "u": pd.DataFrame({"b": [1, 2]})})
    assert [str(one.ind) for one in found] == ["t.a <= u.b", "u.b <= t.a"]
    assert found.trivial == 2


def test_an_error_is_a_share_of_distinct_values() -> None:
    tables = {"t": pd.DataFrame({"a": [1, 2, 3, 4, 5, 5, 5]}), "u": pd.DataFrame({"b": [1, 2, 3, 4, 9]})}
    assert [str(one.ind) for one in tw.discover_inds(tables)] == []
    found = tw.discover_inds(tables, error=0.2)
    assert [(str(one.ind), one.missing_values) for one in found] == [("t.a <= u.b", 1), ("u.b <= t.a", 1)]
    assert len(tw.discover_inds(tables, error="0.19")) == 0
    assert json.loads(found.to_json())["result"]["measure"] == "share of distinct values missing"


def test_several_columns() -> None:
    prices = pd.DataFrame({"shop": [1, 1, 2], "item": ["a", "b", "a"], "price": [3, 4, 5]})
    sales = pd.DataFrame({"shop": [1, 2, 2], "item": ["a", "a", None]})
    found = tw.discover_inds({"sales": sales, "prices": prices}, max_arity=2)
    assert "sales[shop, item] <= prices[shop, item]" in [str(one.ind) for one in found]
    best = found.ranked(1)[0]
    assert (str(best.ind), best.evidence.unique) == ("sales[shop, item] <= prices[shop, item]", True)


def test_options_are_named_as_python_does() -> None:
    tables = {"t": pd.DataFrame({"a": [1]}), "u": pd.DataFrame({"b": ["x"]})}
    with pytest.raises(TypeError, match=r"discover_inds\(\) has no option: 'max_aritty'. Did you mean 'max_arity'"):
        tw.discover_inds(tables, max_aritty=2)  # type: ignore[call-arg]
    with pytest.raises(RuleError, match="no table of the name 'v'"):
        tw.check_inds(tables, "t.a <= v.b")


def test_whole_numbers_that_pandas_made_doubles() -> None:
    """A column of whole numbers with a null is one of doubles in pandas: it is compared as whole numbers, with a note.
    Doubles that are not all whole are no candidate for whole numbers, and a note says so."""
    child, parent = pd.DataFrame({"x": [1.0, 2.0, None]}), pd.DataFrame({"y": [1, 2]})
    found = tw.discover_inds({"child": child, "parent": parent})
    assert "child.x <= parent.y" in [str(one.ind) for one in found]
    assert any("1 NaN taken as null, the others as whole numbers" in note for note in found.to_dict()["notes"])
    child = pd.DataFrame({"x": [1.5, 2.0, None]})
    found = tw.discover_inds({"child": child, "parent": parent})
    assert len(found) == 0
    assert any("doubles (child.x) are compared with doubles only" in note for note in found.to_dict()["notes"])
    told = tw.check_inds({"child": child, "parent": parent}, "child.x <= parent.y").to_sql()
    assert "-- tuplewise does not compare double with integer, which a database may\n" in told


def test_what_pandas_has_for_null_is_null_in_rows_of_a_state(tmp_path: Path) -> None:
    table = pd.DataFrame({"k": [1, 2], "s": ["x", None]})
    with tw.maintain_inds(tmp_path / "state", {"t": table}) as state:
        state.insert([{"k": pd.NA, "s": float("nan")}, {"k": pd.NaT, "s": None}], table="t")
        assert state.rows == {"t": 4}
        with pytest.raises(InputError, match="more rows to delete have no value than the table has"):
            state.delete([{"k": None, "s": None}] * 3, table="t")
        state.delete([{"k": None, "s": None}, {"k": float("nan"), "s": None}], table="t")
        assert state.rows == {"t": 2}
