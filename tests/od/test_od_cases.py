"""Inputs that break such tools, and the flight table of the paper, through the public functions."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from list_od_tables import FLIGHTS, NAMES

import tuplewise as tw

ALGORITHMS = ("hybrid", "levelwise")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nan_is_above_all_numbers_and_takes_part(algorithm: str) -> None:
    """Case A3: a kernel of floating-point comparisons would never compare the row of NaN."""
    table = pa.table({"x": [1.0, math.inf, math.nan], "y": [1, 2, 3], "z": [3, 2, 1]})
    found = tw.discover_ods(table, algorithm=algorithm, device="cpu")
    compatible = {(tuple(o.context), o.left, o.right, o.direction) for o in found.order_compatible}
    assert compatible == {((), "x", "y", "ascending"), ((), "x", "z", "descending"), ((), "y", "z", "descending")}
    assert tw.check_ods(table, "x -> y", device="cpu").holds
    assert not tw.check_ods(table, "x -> z", device="cpu").holds
    swapped = pa.table({"x": [1.0, math.inf, math.nan], "y": [1, 3, 2]})
    assert not tw.discover_ods(swapped, algorithm=algorithm, device="cpu").order_compatible


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_key_may_hold_nulls_under_unknown_only(algorithm: str) -> None:
    """Case A4."""
    rows = {"a": ["p", "q", "p", "p"], "b": [None, None, 1, None]}
    for count, nulls, wanted in ((3, "unknown", True), (3, "value", True), (4, "unknown", True), (4, "value", False)):
        table = pa.table({name: pa.array(values[:count]) for name, values in rows.items()})
        found = tw.discover_keys(table, nulls=nulls, algorithm=algorithm, device="cpu")
        keys = [set(key.columns) for key in found.keys]
        assert any(key <= {"a", "b"} for key in keys) == wanted, (count, nulls, keys)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_flight_table_of_the_paper(algorithm: str) -> None:
    table = pa.table(dict(zip(NAMES, FLIGHTS, strict=True)))
    found = tw.discover_ods(table, algorithm=algorithm, device="cpu")
    constants = {(tuple(c.context), c.attribute) for c in found.constants}
    compatible = {(tuple(o.context), o.left, o.right, o.direction) for o in found.order_compatible}
    assert (("MTOW",), "CAP") in constants
    assert (("Type",), "MC") in constants
    assert ((), "M", "W", "ascending") in compatible
    assert (("DT",), "AT", "ET", "ascending") in compatible
    assert ((), "MTOW", "CAP", "ascending") in compatible
    assert not any(not context and {left, right} == {"AT", "ET"} for context, left, right, _ in compatible)
