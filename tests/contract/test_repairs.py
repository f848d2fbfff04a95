"""Suggestions: as few as the check counts, and with them done the rules hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_contract_check import RULES, TABLES, by_definition, checked, contract_of, frame

import tuplewise as tw
from tuplewise.engine.errors import InputError

SUGGESTED = {name: rule for name, rule in RULES.items() if rule[0] in ("key", "fd", "od", "row", "values", "range")}


@settings(deadline=None, max_examples=25)
@given(TABLES, st.sampled_from(["unknown", "value"]))
def test_rows_are_the_fewest_and_without_them_rules_hold(table: list[tuple[Any, ...]], nulls: Any) -> None:
    found = checked(frame(table), contract_of(SUGGESTED, nulls))
    suggested = found.repairs()
    as_counted = table if nulls == "unknown" else [tuple(-1 if v is None else v for v in row) for row in table]
    for rule in found.rules:
        rows = suggested[suggested["rule_id"] == rule["id"]]["row"].tolist()
        assert len(rows) == rule["exceptions"]
        kept = [row for number, row in enumerate(as_counted) if number not in rows]
        if kept:
            assert by_definition(kept)[rule["id"]] == 0


@settings(deadline=None, max_examples=25)
@given(TABLES)
def test_cells_of_an_fd_make_it_hold(table: list[tuple[Any, ...]]) -> None:
    found = checked(frame(table), contract_of({"fd": RULES["fd"]}))
    changed = [list(row) for row in table]
    for one in found.repairs().itertuples():
        assert (one.column, one.action) == ("b", "change")
        changed[one.row][1] = int(one.suggested)
    assert by_definition([tuple(row) for row in changed])["fd"] == 0


def test_what_is_suggested() -> None:
    orders = pd.DataFrame(
        {
            "a": [1, 2, 3, 4, 5, 6],
            "b": [10, 20, 99, 30, 40, 50],
            "state": ["open", "closed", "opne", "open", None, "gone"],
        }
    )
    rules: Any = {
        "od": ("od", "a ~ b"),
        "state": ("values", "state in ('open', 'closed')"),
        "full": ("not_null", "state is not null"),
        "dc": ("dc", "not(t.a < u.a and t.b > u.b)"),
    }
    found = checked(orders, contract_of(rules))
    told = [
        (one.rule_id, one.row, one.value, one.suggested if isinstance(one.suggested, str) else None)
        for one in found.repairs().itertuples()
    ]
    assert told == [
        ("od", 2, "99", "from 20 to 30"),
        ("state", 2, "opne", "open"),
        ("state", 5, "gone", None),
        ("full", 4, None, None),
    ]


def test_files(tmp_path: Path) -> None:
    found = checked(pd.DataFrame({"a": [1, 1, 1], "b": [2, 2, 3]}), contract_of({"fd": ("fd", "a -> b")}))
    for name in ("s.csv", "s.parquet"):
        assert found.write_repairs(str(tmp_path / name)) == [f"1 suggestion written to {str(tmp_path / name)!r}"]
    assert pq.read_table(tmp_path / "s.parquet").to_pylist() == [
        {
            "rule_id": "fd", "table": "t", "kind": "fd", "row": 2, "action": "change", "column": "b", "value": "3",
            "suggested": "2", "why": "2 of 3 rows have it",
        }
    ]  # fmt: skip
    assert pd.read_csv(tmp_path / "s.csv")["row"].tolist() == [2]
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        found.write_repairs(str(tmp_path / "s.txt"))


def test_positions_are_those_of_the_source() -> None:
    table = tw.load(pd.DataFrame({"a": [1, 2, 1, 1], "b": [2, 5, 2, 3]}))
    found = tw.check_contract(table, contract_of({"fd": ("fd", "a -> b")}), sample=4)
    assert found.repairs()["row"].tolist() == [3]
