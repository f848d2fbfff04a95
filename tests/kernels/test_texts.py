"""Ranking texts: the definition in plain Python, the CPU twin, and the CUDA twin over a stand-in for cuDF.

The stand-in answers the calls that the twin makes, with cuDF's signatures and column types, from Python's own order of
bytes. So this shows what the twin does with cuDF's answers, not that cuDF gives them.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import random
import sys
from bisect import bisect_left
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts_cases import AWKWARD, arrays, check, defined

from tuplewise.engine.errors import DeviceError
from tuplewise.engine.table.encode import TypedColumn, encode, indexed
from tuplewise.gpu_kernels import texts
from tuplewise.gpu_kernels.cpu import texts as cpu
from tuplewise.gpu_kernels.cuda import texts as cuda
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.texts import rank_texts

PARTS = st.lists(
    st.lists(st.text(max_size=3) | st.sampled_from(AWKWARD), max_size=12), min_size=1, max_size=4
)  # st.text makes no surrogates that UTF-8 can't hold


class Order(enum.Enum):
    ASCENDING = 0


class NullOrder(enum.Enum):
    BEFORE = 1


class NullEquality(enum.Enum):
    EQUAL = 0


class NanEquality(enum.Enum):
    ALL_EQUAL = 0


class DuplicateKeepOption(enum.Enum):
    KEEP_ANY = 0


class Column:
    def __init__(self, array: pa.Array) -> None:
        assert array.type in (pa.string(), pa.int32()), array.type
        assert array.null_count == 0
        self._array = array

    @staticmethod
    def from_arrow(array: pa.Array) -> Column:
        return Column(array)

    def to_arrow(self) -> pa.Array:
        return self._array

    def bytes(self) -> list[bytes]:
        return [value.encode() for value in self._array.to_pylist()]


class Table:
    def __init__(self, columns: list[Column]) -> None:
        (self._column,) = columns

    def columns(self) -> list[Column]:
        return [self._column]


def table_of(values: list[bytes]) -> Table:
    return Table([Column(pa.array([value.decode() for value in values], pa.string()))])


def distinct(
    table: Table, keys: list[int], keep: DuplicateKeepOption, nulls: NullEquality, nans: NanEquality
) -> Table:
    """In any order, as cuDF may."""
    assert (keys, keep, nulls, nans) == ([0], DuplicateKeepOption.KEEP_ANY, NullEquality.EQUAL, NanEquality.ALL_EQUAL)
    values = sorted(set(table.columns()[0].bytes()))
    random.Random(len(values)).shuffle(values)
    return table_of(values)


def sort(table: Table, order: list[Order], nulls: list[NullOrder]) -> Table:
    assert (order, nulls) == ([Order.ASCENDING], [NullOrder.BEFORE])
    return table_of(sorted(table.columns()[0].bytes()))


def lower_bound(haystack: Table, needles: Table, order: list[Order], nulls: list[NullOrder]) -> Column:
    assert (order, nulls) == ([Order.ASCENDING], [NullOrder.BEFORE])
    stack = haystack.columns()[0].bytes()
    return Column(pa.array([bisect_left(stack, needle) for needle in needles.columns()[0].bytes()], pa.int32()))


def part_of(package: ModuleType, name: str, **contents: Any) -> None:
    module = ModuleType(f"{package.__name__}.{name}")
    vars(module).update(contents)
    setattr(package, name, module)


@pytest.fixture
def cudf(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The stand-in, importable as cuDF's lower layer is."""
    package = ModuleType("pylibcudf")
    package.__spec__ = ModuleSpec("pylibcudf", None)
    vars(package).update(Column=Column, Table=Table)
    part_of(package, "types", Order=Order, NullOrder=NullOrder, NullEquality=NullEquality, NanEquality=NanEquality)
    part_of(package, "stream_compaction", distinct=distinct, DuplicateKeepOption=DuplicateKeepOption)
    part_of(package, "sorting", sort=sort)
    part_of(package, "search", lower_bound=lower_bound)
    monkeypatch.setitem(sys.modules, "pylibcudf", package)
    return package


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A GPU that every device but the CPU means; gives what was asked for. Two texts are worth it."""
    asked: list[str] = []

    def pick(spec: str) -> Device:
        asked.append(spec)
        return Device("cuda", 0, "stand-in", "asked for", 0, may_fall_back=spec.startswith("auto"))

    monkeypatch.setattr(texts, "pick_device", pick)
    monkeypatch.setattr(Device, "active", lambda self: contextlib.nullcontext())
    monkeypatch.setattr(texts, "LEAST_VALUES", 2)
    return asked


@given(parts=PARTS)
@settings(max_examples=200, deadline=None)
def test_cpu_is_the_definition(parts: list[list[str]]) -> None:
    check(cpu.run(arrays(parts)), parts)


@pytest.mark.parametrize("seed", range(20))
def test_cuda_is_the_definition(seed: int, cudf: ModuleType) -> None:
    rng = random.Random(seed)
    parts = [[rng.choice(AWKWARD) * rng.choice([1, 1, 2]) for _ in range(rng.choice([0, 1, 9, 40]))] for _ in range(3)]
    check(cuda.run(arrays(parts)), parts)


def test_slices_of_arrays(cudf: ModuleType) -> None:
    whole = pa.array(["z", "b", "a", "b"], pa.large_string())
    for twin in (cpu.run, cuda.run):
        check(twin([whole.slice(1, 2), whole.slice(3)]), [["b", "a"], ["b"]])


def test_what_arrow_orders_by_value() -> None:
    from decimal import Decimal

    given = [pa.array([Decimal("10.0"), Decimal("9.5")]), pa.array([Decimal("-1.0"), Decimal("9.5")])]
    found, ranks = cpu.run([part.cast(pa.decimal128(38, 1)) for part in given])
    assert (found.to_pylist(), [rank.tolist() for rank in ranks]) == (
        [Decimal("-1.0"), Decimal("9.5"), Decimal("10.0")],
        [[2, 1], [0, 1]],
    )
    nothing, (left, right) = cpu.run([pa.array([], pa.decimal128(38, 1))] * 2)
    assert (nothing.to_pylist(), left.tolist(), right.tolist()) == ([], [], [])


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:1"])
def test_cudf_ranks_where_it_is_there(device: str, cudf: ModuleType, gpu: list[str]) -> None:
    calls = []
    cudf.sorting.sort = lambda *given: calls.append(1) or sort(*given)
    check(rank_texts(arrays([AWKWARD, ["b", "x"]]), device=device), [AWKWARD, ["b", "x"]])
    assert (calls, gpu) == ([1], [device])


def test_no_gpu_is_looked_for_where_cudf_will_not_be_used(
    cudf: ModuleType, gpu: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cudf.Table = None  # any use of it would fail
    parts = [["b", "a"], ["b"]]
    check(rank_texts(arrays(parts), device="cpu"), parts)
    check(rank_texts(arrays([["b"]])), [["b"]])  # fewer than two
    with monkeypatch.context() as small:
        small.setattr(texts, "MOST_BYTES", 3 * 8)  # offsets of three values, and no byte of text
        check(rank_texts(arrays(parts)), parts)
    monkeypatch.setitem(sys.modules, "pylibcudf", None)
    monkeypatch.setattr(texts, "find_spec", lambda name: None)
    check(rank_texts(arrays(parts)), parts)
    assert gpu == []


def test_the_cpu_goes_on_where_no_gpu_works(cudf: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    cudf.Table = None
    monkeypatch.setattr(texts, "LEAST_VALUES", 2)
    monkeypatch.setattr(texts, "pick_device", lambda spec: Device("cpu", 0, "cpu", "no NVIDIA driver", 0))
    check(rank_texts(arrays([["b", "a"]])), [["b", "a"]])


OUT_OF_MEMORY = MemoryError("std::bad_alloc: out_of_memory: CUDA error at: somewhere.cpp\nmore lines")


@pytest.mark.parametrize("fault", [OUT_OF_MEMORY, ImportError("libcudf.so: no such file"), RuntimeError("")])
def test_auto_goes_on_when_cudf_fails(
    fault: Exception, cudf: ModuleType, gpu: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*given: Any) -> Table:
        raise fault

    cudf.stream_compaction.distinct = failing
    with caplog.at_level(logging.WARNING, "tuplewise"):
        check(rank_texts(arrays([AWKWARD])), [AWKWARD])
    first = str(fault).splitlines()[0] if str(fault) else "no reason given"
    said = f"cuDF failed while ranking texts: going on on the CPU ({type(fault).__name__}: {first})"
    assert [record.getMessage() for record in caplog.records] == [said]


def test_a_gpu_asked_for_by_name_does_not_fall_back(cudf: ModuleType, gpu: list[str]) -> None:
    def failing(*given: Any) -> Table:
        raise OUT_OF_MEMORY

    cudf.sorting.sort = failing
    with pytest.raises(DeviceError) as raised:
        rank_texts(arrays([AWKWARD]), device="cuda")
    assert str(raised.value) == (
        "device cuda:0 stand-in: cuDF failed while ranking texts: 'MemoryError: std::bad_alloc: out_of_memory: CUDA "
        "error at: somewhere.cpp'. Say 'auto' or 'cpu', or mend cuDF"
    )


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], "parts: none; allowed: at least one array"),
        ([pa.array(["a"])], "parts: string with 0 nulls; allowed: large_string without nulls"),
        ([*arrays([["a"]]), pa.array([None], pa.large_string())], "parts: large_string with 1 nulls"),
    ],
)
def test_what_is_not_taken(parts: list[pa.Array], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rank_texts(parts)


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_encoding_hands_its_device_on(device: str, cudf: ModuleType, gpu: list[str]) -> None:
    rows = ["b", None, "a", "\U00010000", "\ufffd", "b"]
    other = ["c", "a", None, "a", "c", "\0"]
    columns = [
        TypedColumn(name, "text", "", *indexed(pa.array(values, pa.large_string())))
        for name, values in (("x", rows), ("y", other))
    ]
    codes, dictionaries, described = encode(columns, len(rows), device)
    order, (x, y) = defined([[v for v in rows if v is not None], [v for v in other if v is not None]])
    assert dictionaries["text"].to_pylist() == order
    assert codes.tolist() == [[*x[:1], -1, *x[1:]], [*y[:2], -1, *y[2:]]]
    assert [(c.distinct, c.nulls) for c in described] == [(4, 1), (3, 1)]
    assert gpu == ([] if device == "cpu" else ["auto"])
