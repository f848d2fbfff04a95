"""Several pretended GPUs, in the simulator, against the CPU: the same bytes whoever counts what, and whoever fails.

Run as `NUMBA_ENABLE_CUDASIM=1 python -m pytest -m cuda tests/kernels`: set before numba is imported.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from tuplewise.engine.errors import DeviceError  # noqa: E402
from tuplewise.gpu_kernels.cuda import band_queue, clue_counter  # noqa: E402
from tuplewise.gpu_kernels.device import Device, OutOfDeviceMemory  # noqa: E402
from tuplewise.gpu_kernels.evidence import ClueSet, collect_clues, collect_clues_between  # noqa: E402
from tuplewise.gpu_kernels.faults import Fault  # noqa: E402
from tuplewise.gpu_kernels.words import ClueLayout, make_layout  # noqa: E402

COUNT = clue_counter.Counter.count


class DriverError(Exception):
    """As numba-cuda's."""


DriverError.__module__ = "numba.cuda.cudadrv.driver"


def three(may_fall_back: bool = False) -> Device:
    return Device("cuda", 0, "simulator", "pretended", 0, more=(1, 2), may_fall_back=may_fall_back)


def table(seed: int, rows: int) -> tuple[np.ndarray, ClueLayout]:
    codes = np.random.default_rng(seed).integers(-1, 4, (4, rows)).astype(np.int32)
    return codes, make_layout([(0, 0, 0, True), (1, 1, 0, False), (2, 3, 0, True), (0, 1, 1, True)])


def same(one: ClueSet, other: ClueSet) -> None:
    assert one.clues.tobytes() == other.clues.tobytes()
    assert one.counts is not None
    assert other.counts is not None
    assert one.counts.tobytes() == other.counts.tobytes()
    assert one.ordered_pairs == other.ordered_pairs
    assert one.complete


@pytest.fixture(autouse=True)
def little_work_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(band_queue, "PAIRS_WORTH_A_GPU", 1)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that counted a band, one entry each band. Nobody begins before all three have one."""
    names: list[str] = []
    begun = threading.Barrier(3)

    def count(counter: clue_counter.Counter, earlier: range, later: range) -> bool:
        name = threading.current_thread().name
        if name not in names:
            begun.wait(60)
        names.append(name)
        return COUNT(counter, earlier, later)

    monkeypatch.setattr(clue_counter.Counter, "count", count)
    return names


def on_thread(monkeypatch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Call `act` with the thread's name before each table on a device is made."""
    made = clue_counter.DeviceTable.__init__

    def make(self: Any, *arguments: Any) -> None:
        act(threading.current_thread().name)
        made(self, *arguments)

    monkeypatch.setattr(clue_counter.DeviceTable, "__init__", make)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_all_count_and_the_answer_is_that_of_the_cpu(counted: list[str], nulls: Any) -> None:
    codes, layout = table(1, 41)
    there = collect_clues(codes, layout, nulls=nulls, device=three())
    assert {"gpu-1", "gpu-2", "MainThread"} == set(counted)
    assert len(counted) == 21  # six bands of rows
    same(there, collect_clues(codes, layout, nulls=nulls, device="cpu"))


def test_pairs_inside_groups(counted: list[str]) -> None:
    codes, layout = table(2, 44)
    groups = {
        "members": np.random.default_rng(2).permutation(44).astype(np.int32),
        "group_offsets": np.array([0, 3, 3, 20, 21, 44], dtype=np.int64),
    }
    there = collect_clues(codes, layout, device=three(), **groups)
    assert len(set(counted)) == 3
    same(there, collect_clues(codes, layout, device="cpu", **groups))


def test_pairs_between_two_sets(counted: list[str]) -> None:
    codes, layout = table(3, 45)
    sides = np.arange(31), np.arange(31, 45)
    there = collect_clues_between(codes, layout, *sides, device=three())
    assert len(set(counted)) == 3
    same(there, collect_clues_between(codes, layout, *sides, device="cpu"))


def test_one_that_runs_out_of_memory_cuts_its_band(monkeypatch: pytest.MonkeyPatch, counted: list[str]) -> None:
    codes, layout = table(4, 99)
    failures: list[str] = []

    def three_times(name: str) -> None:
        if name == "gpu-2" and len(failures) < 3:
            failures.append(name)
            raise DriverError("CUDA_ERROR_OUT_OF_MEMORY")

    on_thread(monkeypatch, three_times)
    there = collect_clues(codes, layout, device=three())
    assert len(failures) == 3  # 99 rows at a time, 49, 24, then 16: the least, and bands have 17
    assert len(counted) > 21 + 3
    same(there, collect_clues(codes, layout, device="cpu"))


def test_one_without_memory_leaves_the_work_to_the_others(monkeypatch: pytest.MonkeyPatch, counted: list[str]) -> None:
    codes, layout = table(5, 41)

    def fail(name: str) -> None:
        if name in ("gpu-1", "MainThread"):
            raise DriverError("CUDA_ERROR_OUT_OF_MEMORY")

    on_thread(monkeypatch, fail)
    same(collect_clues(codes, layout, device=three()), collect_clues(codes, layout, device="cpu"))


def test_no_memory_anywhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    codes, layout = table(6, 41)

    def fail(name: str) -> None:
        raise DriverError("CUDA_ERROR_OUT_OF_MEMORY")

    on_thread(monkeypatch, fail)
    with pytest.raises(OutOfDeviceMemory, match="memory for the smallest table: 'CUDA_ERROR_OUT_OF_MEMORY'"):
        collect_clues(codes, layout, device=three())
    device = three(may_fall_back=True)
    with caplog.at_level(logging.WARNING, "tuplewise"):
        same(collect_clues(codes, layout, device=device), collect_clues(codes, layout, device="cpu"))
    assert "out of device memory while comparing pairs: going on on the CPU" in caplog.text
    assert device.described == "cuda:0,1,2 simulator, then cpu"
    assert device.reason == "pretended; out of device memory while comparing pairs: went on on the CPU"


@pytest.mark.parametrize("which", ["gpu-2", "MainThread"])
def test_one_that_fails_otherwise_ends_the_work_with_one_error(
    monkeypatch: pytest.MonkeyPatch, counted: list[str], which: str
) -> None:
    codes, layout = table(7, 41)

    def fail(name: str) -> None:
        if name == which:
            raise DriverError("[214] Call to cuLaunchKernel results in CUDA_ERROR_ECC_UNCORRECTABLE")

    on_thread(monkeypatch, fail)
    number = {"gpu-2": 2, "MainThread": 0}[which]
    with pytest.raises(DeviceError) as caught:
        collect_clues(codes, layout, device=three(may_fall_back=True))
    assert str(caught.value) == (
        f"GPU {number}: \"the GPU doesn't answer\". See what nvidia-smi says of it; a restart of the machine may help."
    )
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gpu-")]
    assert len(counted) < 21


def test_one_that_cannot_be_used_does_not_help(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    codes, layout = table(8, 41)
    monkeypatch.setattr(band_queue, "gpu", lambda index: Fault("another process has it", "Choose another."))
    with caplog.at_level(logging.WARNING, "tuplewise"):
        same(collect_clues(codes, layout, device=three()), collect_clues(codes, layout, device="cpu"))
    assert sorted(record.getMessage() for record in caplog.records) == [
        "GPU 1 doesn't help: another process has it. Choose another.",
        "GPU 2 doesn't help: another process has it. Choose another.",
    ]


def test_little_work_stays_on_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, layout = table(9, 41)
    monkeypatch.setattr(band_queue, "PAIRS_WORTH_A_GPU", 41 * 40 // 2 + 1)
    monkeypatch.setattr(band_queue, "gpu", lambda index: pytest.fail("another GPU was asked"))
    same(collect_clues(codes, layout, device=three()), collect_clues(codes, layout, device="cpu"))


def test_a_deadline_ends_all(counted: list[str]) -> None:
    codes, layout = table(10, 41)
    found = collect_clues(codes, layout, device=three(), deadline=time.monotonic() - 1)
    assert not found.complete
    assert len(found.clues) == 0
    assert len(counted) == 3


def test_progress_comes_from_one_thread_at_a_time_and_ends_at_one(counted: list[str]) -> None:
    codes, layout = table(11, 41)
    shares: list[float] = []
    inside = threading.Lock()

    def tell(share: float) -> None:
        assert inside.acquire(blocking=False)
        time.sleep(0.001)
        shares.append(share)
        inside.release()

    collect_clues(codes, layout, device=three(), progress=tell)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_ctrl_c_ends_all(counted: list[str]) -> None:
    codes, layout = table(12, 41)

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect_clues(codes, layout, device=three(), progress=interrupt)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gpu-")]
    assert len(counted) <= 6
