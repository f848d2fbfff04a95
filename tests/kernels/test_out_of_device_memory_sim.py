"""Too little device memory, pretended in the simulator: smaller pieces first, then the CPU; the same answers.

Run as `NUMBA_ENABLE_CUDASIM=1 python -m pytest -m cuda tests/kernels`: set before numba is imported.
"""

from __future__ import annotations

import logging
import os
import weakref
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from tuplewise.gpu_kernels import inclusion, order, refine  # noqa: E402
from tuplewise.gpu_kernels.clues import lay_out  # noqa: E402
from tuplewise.gpu_kernels.clusters import all_rows  # noqa: E402
from tuplewise.gpu_kernels.cuda import primitives  # noqa: E402
from tuplewise.gpu_kernels.device import Device, OutOfDeviceMemory, pick_device  # noqa: E402
from tuplewise.gpu_kernels.evidence import collect_clues  # noqa: E402
from tuplewise.gpu_kernels.join_types import GREATER, LESS, Comparison  # noqa: E402
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, KEY  # noqa: E402
from tuplewise.gpu_kernels.words import make_layout  # noqa: E402

CPU = pick_device("cpu")
ALLOCATED = primitives._allocated


class Memory:
    """A device with room for arrays of so many bytes, each by itself; what was put there, and how often it was full."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.failures, self.largest = most_bytes, 0, 0
        self.arrays: list[weakref.ref[Any]] = []

    def held(self) -> int:
        """Arrays that are still there."""
        return sum(array() is not None for array in self.arrays)

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> Any:
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if nbytes > self.most_bytes:
            self.failures += 1
            raise RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
        self.largest = max(self.largest, nbytes)
        array = ALLOCATED(shape, dtype)
        self.arrays.append(weakref.ref(array))
        return array


def memory_of(monkeypatch: pytest.MonkeyPatch, most_bytes: int, room_bytes: int = 1 << 26) -> Memory:
    memory = Memory(most_bytes)
    monkeypatch.setattr(primitives, "_allocated", memory.allocate)
    monkeypatch.setattr(primitives, "SIMULATED_ROOM_BYTES", room_bytes)
    return memory


def simulated(may_fall_back: bool) -> Device:
    return Device("cuda", 0, "simulator", "pretended", 0, may_fall_back=may_fall_back)


def codes_of(seed: int, columns: int, rows: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 7, (columns, rows)).astype(np.int32)


COMPARISONS = [Comparison(0, 0, LESS), Comparison(1, 1, GREATER)]


def joined(codes: np.ndarray, device: Device, algorithm: Any) -> list[np.ndarray]:
    """All that a join is asked."""
    comparisons = COMPARISONS[:1] if algorithm == "hsm" else COMPARISONS
    pairs = all_rows(np.arange(codes.shape[1], dtype=np.int32))
    join = refine.join(pairs, codes, comparisons, algorithm, device=device)
    counts = np.full(codes.shape[1], 100, dtype=np.int64)
    total = join.count(counts, 1)
    return [np.array([total, join.count(None, 1)]), counts, *join.emit(np.arange(codes.shape[1], dtype=np.int32))]


@pytest.mark.parametrize("algorithm", ["hsm", "iejoin", "kdtree"])
def test_joins_list_in_smaller_pieces(monkeypatch: pytest.MonkeyPatch, algorithm: Any) -> None:
    codes = codes_of(1, 2, 50)
    expected = joined(codes, CPU, algorithm)
    memory = memory_of(monkeypatch, 2_400, room_bytes=40_000)  # a thousand pairs at a time; 8 bytes each
    device = simulated(may_fall_back=True)
    for mine, its in zip(joined(codes, device, algorithm), expected, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert memory.failures
    assert not device.fallen


@pytest.mark.parametrize("algorithm", ["hsm", "iejoin", "kdtree", "bhsm"])
def test_joins_go_on_on_the_cpu(monkeypatch: pytest.MonkeyPatch, algorithm: Any) -> None:
    codes = codes_of(2, 2, 50)
    expected = joined(codes, CPU, algorithm)
    memory_of(monkeypatch, 150)
    device = simulated(may_fall_back=True)
    for mine, its in zip(joined(codes, device, algorithm), expected, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert device.fallen == ["joining clusters"]
    with pytest.raises(OutOfDeviceMemory, match=r"device memory: '\d+ bytes more'\. Free memory on the device, or use"):
        joined(codes, simulated(may_fall_back=False), algorithm)


def test_a_count_that_fails_midway_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches of left rows that were counted before memory ran out are not counted twice."""
    codes = codes_of(3, 2, 50)
    expected = joined(codes, CPU, "hsm")[1]
    device = simulated(may_fall_back=True)
    join = refine.join(all_rows(np.arange(50, dtype=np.int32)), codes, COMPARISONS[:1], "hsm", device=device)
    here = primitives.room_bytes
    asked = []
    from tuplewise.gpu_kernels.cuda import joins

    sizes = joins.DeviceJoin.count

    def count(self: Any, counts: Any, sign: int) -> int:
        found = sizes(self, counts, sign)
        asked.append(here())
        if len(asked) == 1:
            raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")
        return int(found)

    monkeypatch.setattr(joins.DeviceJoin, "count", count)
    counts = np.full(50, 100, dtype=np.int64)
    join.count(counts, 1)
    np.testing.assert_array_equal(counts, expected)
    assert asked[1] < asked[0]  # the second time in less room
    assert not device.fallen


def test_refinement_goes_on_on_the_cpu_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from tuplewise.gpu_kernels.cpu import refine as cpu

    codes = codes_of(4, 2, 60)
    expected = refine.refine_equal(all_rows(np.arange(60, dtype=np.int32)), codes, [(0, 0), (1, 1)], device=CPU)
    memory = memory_of(monkeypatch, 400)  # rows and codes fit, keys of 64 bits don't
    run, held = cpu.refine_equal, []

    def look(*arguments: Any) -> Any:
        held.append(memory.held())
        return run(*arguments)

    monkeypatch.setattr(cpu, "refine_equal", look)
    device = simulated(may_fall_back=True)
    pairs = all_rows(np.arange(60, dtype=np.int32))
    with caplog.at_level(logging.WARNING, "tuplewise"):
        found = refine.refine_equal(pairs, codes, [(0, 0), (1, 1)], device=device)
        refine.refine_equal(pairs, codes, [(0, 0)], device=device)
    for mine, its in ((found.left, expected.left), (found.left_offsets, expected.left_offsets)):
        assert mine.tobytes() == its.tobytes()
    assert memory.largest > 0
    assert held == [0, 0]
    assert not pairs.kept
    assert len(caplog.records) == 1
    with pytest.raises(OutOfDeviceMemory):
        refine.refine_equal(pairs, codes, [(0, 0), (1, 1)], device=simulated(may_fall_back=False))


def checked(codes: np.ndarray, device: Device) -> list[np.ndarray]:
    rows = order.lay_out_orders(codes, device=device)
    contexts = np.array([[0b000], [0b001], [0b011], [0b110]], dtype=np.uint64)
    which = [0, 1, 1, 2, 2, 3]
    kind = [KEY, CONSTANT, ASCENDING, KEY, CONSTANT, CONSTANT]
    found = rows.check(contexts, which, kind, [-1, 1, 1, -1, 2, 0], [-1, -1, 2, -1, -1, -1], limit=2)
    again = rows.check(contexts, which[:2], kind[:2], [-1, 1], [-1, -1])
    return [found.holds, found.pairs, found.first, again.holds]


def test_checks_go_on_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = codes_of(5, 3, 40)
    expected = checked(codes, CPU)
    memory_of(monkeypatch, 300)
    device = simulated(may_fall_back=True)
    for mine, its in zip(checked(codes, device), expected, strict=True):
        assert mine.tobytes() == its.tobytes()
    assert device.fallen == ["checking orders"]
    assert device.reason == "pretended; out of device memory while checking orders: went on on the CPU"
    for mine, its in zip(checked(codes, device), expected, strict=True):  # a table laid out afterwards
        assert mine.tobytes() == its.tobytes()
    with pytest.raises(OutOfDeviceMemory):
        checked(codes, simulated(may_fall_back=False))


def included(device: Device) -> list[np.ndarray]:
    rng = np.random.default_rng(6)
    masks = rng.integers(0, 1 << 9, (300, 1)).astype(np.uint64)
    values = rng.integers(1, 9, 300)
    common = inclusion.intersect_clusters(masks, 9, device=device)
    return [common, inclusion.count_common(masks, values, 9, device=device)]


def test_clusters_are_taken_in_parts_and_then_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = included(CPU)
    for most_bytes, room_bytes, fallen in (
        (1_000, 5_000, []),  # 3,000 bytes of room ask for arrays of about 1,200
        (50, 5_000, ["intersecting clusters", "counting common values"]),
    ):
        memory = memory_of(monkeypatch, most_bytes, room_bytes)
        device = simulated(may_fall_back=True)
        for mine, its in zip(included(device), expected, strict=True):
            assert mine.tobytes() == its.tobytes()
        assert memory.failures
        assert device.fallen == fallen
    with pytest.raises(OutOfDeviceMemory):
        included(simulated(may_fall_back=False))


def test_pairs_go_on_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = codes_of(7, 3, 30)
    layout = make_layout([(0, 0, 0, True), (1, 2, 0, True)])
    expected = collect_clues(codes, layout, device=CPU)
    clues = lay_out(codes, layout, device=CPU).within(all_rows(np.arange(30, dtype=np.int32))).clues
    memory_of(monkeypatch, 100)
    device = simulated(may_fall_back=True)
    found = collect_clues(codes, layout, device=device)
    assert found.clues.tobytes() == expected.clues.tobytes()
    assert device.fallen == ["comparing pairs"]
    again = simulated(may_fall_back=True)
    rows = lay_out(codes, layout, device=again)
    assert rows.within(all_rows(np.arange(30, dtype=np.int32))).clues.tobytes() == clues.tobytes()
    assert again.fallen == ["comparing pairs"]


def test_room_is_bounded_by_what_the_user_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = primitives.room_bytes()
    monkeypatch.setenv("TUPLEWISE_DEVICE_MEMORY", "0.25")
    assert primitives.room_bytes() == everything // 4
    monkeypatch.setenv("TUPLEWISE_DEVICE_MEMORY", "1m")
    assert primitives.room_bytes() == int(primitives.SHARE_OF_FREE_MEMORY * (1 << 20))


def test_less_room_is_tried_while_it_is_asked_for() -> None:
    rooms: list[int] = []

    def ask() -> None:
        rooms.append(primitives.room_bytes())
        raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")

    def just_fail() -> None:
        rooms.append(0)
        raise primitives.NoRoom("device memory: 'too much'")

    with pytest.raises(OutOfDeviceMemory):
        primitives.with_less_room(ask)
    assert [rooms[0] // room for room in rooms] == [1, 4, 16, 64]
    assert primitives.room_bytes() == rooms[0]
    rooms.clear()
    with pytest.raises(OutOfDeviceMemory, match="too much"):
        primitives.with_less_room(just_fail)
    assert len(rooms) == 2  # once more, after what nothing used was given back
