"""Codes that keep the order of values and leave room for more: for values of every type, in any order of coming."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.dictionaries import CODES, Additions, Dictionaries, GapsExhausted
from tuplewise.engine.dc.incremental.rows import read_keys
from tuplewise.engine.errors import InputError
from tuplewise.engine.table.relation import Relation, TypeName
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.engine.table.table import load

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


def encode_rows(
    dictionaries: Dictionaries, columns: list[KeptColumn], rows: list[Any]
) -> tuple[NDArray[np.int32], Additions]:
    return dictionaries.encode_keys([column.domain for column in columns], read_keys(columns, rows)[0])


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


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_plain_rows_are_encoded_as_columns_are(data: st.DataObject) -> None:
    """Of values as Python objects, few or many, all types beside each other."""
    kinds = [kind for kind in TYPES if kind not in ("nanoseconds", "wide decimal", "fine decimal")]

    def drawn(most: int) -> list[tuple[Any, ...]]:
        return data.draw(st.lists(st.tuples(*(st.none() | TYPES[kind][2] for kind in kinds)), max_size=most))

    def relation(rows: list[tuple[Any, ...]]) -> Relation:
        columns = [[row[c] for row in rows] for c in range(len(kinds))]
        arrays = [pa.array(values, TYPES[kind][1]) for kind, values in zip(kinds, columns, strict=True)]
        return load(pa.table(arrays, names=[f"c{c}" for c in range(len(kinds))]))

    first = relation(drawn(6))
    columns = [KeptColumn(column.name, column.type, column.why) for column in first.columns]
    one, _ = Dictionaries.of_relation(first)
    other, _ = Dictionaries.of_relation(first)
    for repeat in (1, 1, 40):
        rows = drawn(6) * repeat
        found, additions = encode_rows(one, columns, rows)
        expected, same_additions = other.encode(relation(rows))
        assert (found == expected).all()
        assert additions.runs.keys() == same_additions.runs.keys()
        for domain, run in additions.runs.items():
            assert run.codes.tolist() == same_additions.runs[domain].codes.tolist()
        one.add(additions)
        other.add(same_additions)
        assert (one.known(relation(rows)) == found).all()


def integers(values: list[int]) -> Relation:
    return load(pa.table({"n": pa.array(values, pa.int64())}))


def test_codes_are_spread_evenly_and_new_ones_in_their_gap() -> None:
    dictionaries, codes = Dictionaries.of_relation(integers(list(range(0, 4000, 1000))))
    assert len(set(np.diff(codes[:, 0]).tolist())) == 1
    assert codes.min() > CODES // 8
    assert codes.max() < CODES - CODES // 8
    low, high = codes[1:3, 0]
    new = dictionaries.encode(integers(list(range(1001, 1010))))[0][:, 0]
    steps = np.diff([low, *new, high])
    assert steps.max() - steps.min() <= 1


@pytest.mark.parametrize("way", [1, -1])
def test_there_is_room_beyond_the_last_and_before_the_first(way: int) -> None:
    dictionaries, _ = Dictionaries.of_relation(integers(list(range(1000))))
    for start in range(1000, 41_000, 1000):
        values = [v if way > 0 else 999 - v for v in range(start, start + 1000)]
        dictionaries.add(dictionaries.encode(integers(values))[1])
    assert len(dictionaries.arrays()["dictionary/number/codes"]) == 41_000


def test_an_exhausted_gap_is_told_and_made_room_for() -> None:
    column = [KeptColumn("n", "integer", "test")]
    dictionaries, _ = Dictionaries.of_relation(integers([0, 1 << 60, (1 << 60) + 1]))
    added = 0
    full = None
    for _ in range(100):
        try:
            additions = encode_rows(dictionaries, column, [[(1 << 60) - 1 - added]])[1]
            dictionaries.add(additions)
        except GapsExhausted as error:
            full = error
            break
        added += 1
    assert full is not None
    assert 20 < added < 40
    assert str(full) == "no room for new values: number"
    before = dictionaries.arrays()["dictionary/number/numbers"].tolist()
    ((old, new),) = dictionaries.respread(full.wanted).values()
    assert len(old) == len(new) == len(before) == added + 3
    assert (np.diff(new) > 0).all()
    assert dictionaries.arrays()["dictionary/number/numbers"].tolist() == before
    assert dictionaries.arrays()["dictionary/number/codes"].tolist() == new.tolist()
    codes, additions = encode_rows(dictionaries, column, [[(1 << 60) - 1 - added]])
    assert new[0] < codes[0, 0] < new[1]
    dictionaries.add(additions)
    assert dictionaries.values("number", codes[:, 0]).to_pylist() == [(1 << 60) - 1 - added]


def test_a_batch_that_no_gap_holds_finds_room() -> None:
    dictionaries, _ = Dictionaries.of_relation(integers([0, 5_000_000, *range(5_000_001, 5_600_000)]))
    batch = integers(list(range(1, 4_000, 2)))
    with pytest.raises(GapsExhausted) as told:
        dictionaries.encode(batch)
    dictionaries.respread(told.value.wanted)
    codes = dictionaries.encode(batch)[0][:, 0]
    assert (np.diff(codes) > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_many_values_in_many_batches(seed: int) -> None:
    """Lists of values that came since the base are merged; the order stays, and values come back."""
    rng = np.random.default_rng(seed)
    first = pa.table({"t": [f"v{v}" for v in rng.integers(0, 10**6, 5000)], "n": rng.integers(0, 10**6, 5000)})
    dictionaries, _ = Dictionaries.of_relation(load(first))
    columns = [KeptColumn("t", "text", "test"), KeptColumn("n", "integer", "test")]
    tables = [first]
    for size in [1, 700, 30, 2000, *rng.integers(1, 90, 100).tolist(), 4000]:
        n = rng.integers(0, 10**6, size)
        batch = pa.table({"t": [f"v{v}" for v in rng.integers(0, 10**6, size)], "n": n})
        rows = list(zip(*batch.to_pydict().values(), strict=True))
        codes, additions = encode_rows(dictionaries, columns, rows) if size < 50 else dictionaries.encode(load(batch))
        dictionaries.add(additions)
        assert (dictionaries.encode(load(batch))[0] == codes).all()
        tables.append(batch)
    everything = load(pa.concat_tables(tables))
    codes, none = dictionaries.encode(everything)
    assert not len(none)
    for c, column in enumerate(everything.columns):
        ranks = np.unique(codes[:, c], return_inverse=True)[1]
        assert (ranks == np.unique(everything.codes[c], return_inverse=True)[1]).all()
        assert same(dictionaries.values(column.domain, codes[:, c]), everything.values(c))


def test_columns_of_a_domain_share_codes() -> None:
    table_ = pa.table({"a": pa.array([1, 2]), "b": pa.array(["2.0", "3.5"]).cast(pa.decimal128(5, 1))})
    dictionaries, codes = Dictionaries.of_relation(load(table_))
    assert codes[1, 0] == codes[0, 1]
    fine = pa.table({"a": pa.array([2]), "b": pa.array(["2.000001"]).cast(pa.decimal128(12, 6))})
    ((two, more),) = dictionaries.encode(load(fine))[0].tolist()
    assert two == codes[1, 0]
    assert codes[1, 0] < more < codes[1, 1]


def test_codes_of_values_that_are_not_known() -> None:
    dictionaries, codes = Dictionaries.of_relation(integers([5, 7]))
    assert dictionaries.known(load(pa.table({"n": [7, 6, None]}))).tolist() == [[codes[1, 0]], [-2], [-1]]
    assert dictionaries.known_keys(["number"], [[7, 6, None]]).tolist() == [[codes[1, 0]], [-2], [-1]]
    with pytest.raises(KeyError, match="no number has the code 12"):
        dictionaries.values("number", np.array([12], dtype=np.int32))


def test_no_rows() -> None:
    empty = pa.table({"n": pa.array([], pa.int64()), "t": pa.array([], pa.string())})
    dictionaries, codes = Dictionaries.of_relation(load(empty))
    columns = [KeptColumn("n", "integer", "test"), KeptColumn("t", "text", "test")]
    assert codes.shape == (0, 2)
    assert dictionaries.relation(columns, codes, "t").codes.shape == (2, 0)
    assert encode_rows(dictionaries, columns, [])[0].shape == (0, 2)
    codes, additions = encode_rows(dictionaries, columns, [[3, "x"], [4, None]])
    dictionaries.add(additions)
    assert dictionaries.relation(columns, codes, "t").values(0).to_pylist() == [3, 4]


def test_nanoseconds_and_far_years_do_not_go_together() -> None:
    nano = pa.table({"c": pa.array([1], pa.timestamp("ns", tz="UTC"))})
    far = pa.table({"c": pa.array([datetime.datetime(3000, 1, 1)], pa.timestamp("us", tz="UTC"))})
    for first, then in ((nano, far), (far, nano)):
        dictionaries, _ = Dictionaries.of_relation(load(first))
        with pytest.raises(InputError, match="timestamps in nanoseconds and others outside of the years 1677 to 2262"):
            dictionaries.encode(load(then))


def test_numbers_that_no_decimal_holds() -> None:
    fine = pa.table({"c": pa.array([Decimal("0." + "3" * 70)], pa.decimal256(71, 70))})
    large = pa.table({"c": pa.array([Decimal("1" * 60), Decimal("2" * 50)], pa.decimal256(60, 0))})
    text = "numbers that need more than 76 digits together, 70 of them behind the point; allowed: up to 76 digits"
    for first, then in ((fine, large), (large, fine)):
        dictionaries, _ = Dictionaries.of_relation(load(first))
        with pytest.raises(InputError, match=text):
            dictionaries.encode(load(then))
        with pytest.raises(InputError, match=text):
            dictionaries.encode_keys(["number"], [[*then["c"].to_pylist()]])
    dictionaries, _ = Dictionaries.of_relation(integers([1]))
    with pytest.raises(InputError, match=text):
        dictionaries.encode_keys(["number"], [[*fine["c"].to_pylist(), *large["c"].to_pylist()]])
