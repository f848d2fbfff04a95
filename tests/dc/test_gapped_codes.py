"""Codes that keep the order of values and leave room for more: for values of every type, in any order of coming."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuplewise.engine.dc.incremental.columns import KeptColumn
from tuplewise.engine.dc.incremental.dictionaries import CODES, Additions, Dictionaries, GapsExhausted
from tuplewise.engine.relation.load import load
from tuplewise.engine.relation.relation import Relation, TypeName

UTC = datetime.UTC
SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1.5, -1.5, 1e308]


def decimals(most: int, places: int) -> st.SearchStrategy[Any]:
    return st.decimals(-most, most, places=places)


TYPES: dict[str, tuple[TypeName, pa.DataType, st.SearchStrategy[Any]]] = {
    "integer": ("integer", pa.int64(), st.integers(-20, 20) | st.integers(-(2**63), 2**63 - 1)),
    "decimal": ("decimal", pa.decimal128(20, 2), decimals(50, 2) | decimals(10**17, 1)),
    "fine decimal": ("decimal", pa.decimal128(38, 9), decimals(3, 9) | decimals(10**28, 3)),
    "wide decimal": ("decimal", pa.decimal256(76, 30), decimals(9, 1) | decimals(10**40, 30)),
    "double": ("double", pa.float64(), st.floats() | st.sampled_from(SPECIAL)),
    "date": ("date", pa.date32(), st.dates()),
    "timestamp": ("timestamp", pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(UTC))),
    "nanoseconds": ("timestamp", pa.timestamp("ns", tz="UTC"), st.integers(-5000, 5000) | st.integers(-(2**62), 2**62)),
    "boolean": ("boolean", pa.bool_(), st.booleans()),
    "text": ("text", pa.large_string(), st.text(alphabet="ab\0ÿé𝄞", max_size=4) | st.text(max_size=6)),
}


def order_of(kind: str, value: Any) -> Any:
    """A value as something that Python orders as the domain does."""
    if kind == "double":
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if kind == "text" else value


def table(kind: str, *columns: list[Any]) -> Relation:
    arrow = TYPES[kind][1]
    return load(pa.table({f"c{i}": pa.array(values, arrow) for i, values in enumerate(columns)}))


def values_of(kind: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | TYPES[kind][2], max_size=12)


def same(left: pa.Array, right: pa.Array) -> bool:
    """Whether two arrays have one type and the same values; doubles the same bits."""
    if pa.types.is_floating(left.type) and left.null_count == right.null_count:
        left, right = (pa.array(a.drop_null().to_numpy().view(np.int64)) for a in (left, right))
    return bool(left.type == right.type and left.equals(right))


def check(kind: str, known: dict[Any, int]) -> None:
    """Codes are in the order of the values, and no two values share one."""
    codes = [known[key] for key in sorted(known)]
    assert codes == sorted(set(codes))
    assert all(0 <= code < CODES for code in codes)


def take_in(kind: str, dictionaries: Dictionaries, batch: list[Any]) -> np.ndarray[Any, Any]:
    """Codes of a batch of one column, with room made where there is none; its additions go through their arrays."""
    relation = table(kind, batch)
    try:
        codes, additions = dictionaries.encode(relation)
    except GapsExhausted as full:
        for old, new in dictionaries.respread(full.wanted).values():
            assert (np.diff(old) > 0).all()
            assert (np.diff(new) > 0).all()
        codes, additions = dictionaries.encode(relation)
    dictionaries.add(Additions.of_arrays(additions.arrays()))
    again, none = dictionaries.encode(relation)
    assert (codes == again).all()
    assert not len(none)
    return codes[:, 0]


@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_codes_keep_the_order_of_values(kind: str, data: st.DataObject) -> None:
    first = data.draw(values_of(kind))
    dictionaries, codes = Dictionaries.of_relation(table(kind, first))
    known: dict[Any, int] = {}
    batches = [(first, codes[:, 0])]
    for batch in data.draw(st.lists(values_of(kind), max_size=5)):
        batches.append((batch, take_in(kind, dictionaries, batch)))
        if data.draw(st.booleans()):
            arrays = dictionaries.arrays()
            dictionaries = Dictionaries.of_arrays(arrays.__getitem__, arrays)
    for batch, found in batches:
        for value, code in zip(batch, found.tolist(), strict=True):
            if value is None:
                assert code == -1
            else:
                assert known.setdefault(order_of(kind, value), code) == code
    check(kind, known)
    everything = [value for batch, _ in batches for value in batch]
    found = np.concatenate([codes for _, codes in batches])
    expected = table(kind, everything)
    domain = expected.columns[0].domain
    assert same(dictionaries.values(domain, found), expected.values(0))
    kept = [KeptColumn("c0", TYPES[kind][0], expected.columns[0].why)]
    made = dictionaries.relation(kept, found[:, None], "table", None)
    assert made.columns == expected.columns
    assert (made.codes == expected.codes).all()
    assert same(made.dictionaries[domain], expected.dictionaries[domain])
