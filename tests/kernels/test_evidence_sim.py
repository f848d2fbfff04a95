"""The CUDA twin of the evidence kernel in Numba's CUDA simulator, against the definition.

Run as `NUMBA_ENABLE_CUDASIM=1 python -m pytest -m cuda tests/kernels`: set before numba is imported.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from evidence_cases import (  # noqa: E402
    COPIED,
    SMALL,
    TINY,
    Case,
    all_different,
    all_scopes,
    check,
    count,
    same_columns,
    sizes,
    table,
    wide,
)

from tuplewise.engine.errors import DeviceError  # noqa: E402
from tuplewise.gpu_kernels.control import Control  # noqa: E402
from tuplewise.gpu_kernels.cuda import clue_counter, clue_table, evidence, strips  # noqa: E402
from tuplewise.gpu_kernels.cuda.clue_table import STATE_FULL, STATE_USED, Geometry  # noqa: E402
from tuplewise.gpu_kernels.evidence import collect_clues  # noqa: E402
from tuplewise.gpu_kernels.words import make_layout  # noqa: E402


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_tables_with_all_scopes(seed: int, nulls: bool, nullable: bool) -> None:
    codes = table(seed, 4, 17, nulls=nulls)
    check(Case(codes, all_scopes(4), nullable=nullable))


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13])
def test_rows_around_every_tile_edge(rows: int) -> None:
    codes = table(rows, 3, rows)
    check(Case(codes, same_columns(3, 2)), sizes(TINY))
    check(Case(codes, same_columns(3, 2)), sizes(SMALL, blocks=1))


@pytest.mark.parametrize("comparisons", [1, 14, 15, 16, 30, 31, 32, 33, 64, 65, 130])
def test_comparisons_around_every_digit_and_word(comparisons: int) -> None:
    codes = table(comparisons, 7, 6)
    check(Case(codes, wide(comparisons, 7)), sizes(TINY))


def test_constant_and_duplicate_rows() -> None:
    codes = np.zeros((3, 14), dtype=np.int32)
    check(Case(codes, same_columns(3, 1)), sizes(SMALL))
    codes[2] = -1
    check(Case(codes, same_columns(3, 1), nullable=True), sizes(SMALL))
    check(Case(codes, same_columns(3, 1), nullable=False), sizes(SMALL))


def test_largest_codes_do_not_overflow() -> None:
    for nullable in (True, False):
        top = np.iinfo(np.int32).max - nullable  # numpy's integers don't wrap, as a GPU's do beside a null
        codes = np.array([[-1, 0, top, top, -1]], dtype=np.int32)
        check(Case(codes, [(0, 0, 0, True)], nullable=nullable), sizes(TINY))
        check(Case(codes, [(0, 0, 0, False)], nullable=nullable), sizes(TINY))


@pytest.mark.parametrize("group_sizes", [[4, 9, 7], [1, 1, 1, 2, 3, 1, 5, 6], [20], [0, 8, 0, 12]])
def test_pairs_stay_inside_their_group(group_sizes: list[int]) -> None:
    codes = table(5, 3, 20)
    check(Case(codes, same_columns(3, 2), group_sizes), sizes(SMALL))


def test_rows_outside_all_groups_are_left_out() -> None:
    case = Case(table(6, 3, 12), same_columns(3, 2))
    offsets = np.array([2, 5, 9], dtype=np.int64)
    clues, counts, _ = evidence.run(case.codes, case.layout(), offsets, Control(), sizes=sizes(TINY))
    inner = Case(np.ascontiguousarray(case.codes[:, 2:9]), case.comparisons, [3, 4])
    assert {tuple(map(int, c)): int(n) for c, n in zip(clues, counts, strict=True)} == inner.expected()


@pytest.mark.parametrize("geometry", [TINY, COPIED])
@pytest.mark.parametrize("slots", [2, 8])
def test_nothing_is_lost_when_the_tables_overflow(geometry: Geometry, slots: int) -> None:
    case = all_different(13)  # 78 pairs, 78 clues
    fixed = sizes(geometry, slots=slots, most=slots)  # may never grow: emptied again and again, and the log is used
    assert count(case, fixed) == case.expected()
    assert count(case, sizes(geometry, slots=slots, most=64)) == case.expected()


def test_the_log_takes_what_finds_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = []
    drain = clue_counter.DeviceTable.drain

    def spy(self: clue_counter.DeviceTable) -> list[tuple[np.ndarray, np.ndarray]]:
        logged.append(int(self.host_state[clue_table.STATE_LOGGED]))
        return drain(self)

    monkeypatch.setattr(clue_counter.DeviceTable, "drain", spy)
    case = all_different(9)
    assert count(case, sizes(TINY, slots=2, most=2)) == case.expected()
    assert max(logged) > 0


def test_a_short_log_is_an_error_not_a_wrong_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Geometry, "log_entries_per_block", lambda self: 1)
    with pytest.raises(DeviceError, match="clues that found no room in the device's log"):
        count(all_different(9), sizes(TINY, slots=2, most=2))


def test_counts_beyond_32_bits() -> None:
    """The accumulation of 64-bit counters, from counters that are already large."""
    case = Case(np.zeros((1, 6), dtype=np.int32), [(0, 0, 0, True)])
    plan = evidence.make_plan(case.codes, case.layout())
    of = sizes(TINY)
    device_table = clue_counter.DeviceTable(plan.digits, of)
    row_end = np.full(6, 6, dtype=np.int32)
    arrays = [clue_counter.to_device(a) for a in (plan.operands, plan.left, plan.right, plan.bounds, row_end)]
    some = next(strips.list_strips(row_end, 6, 0, of.geometry, of.blocks))
    kernel = clue_counter.compiled(plan.digits, of.geometry)
    assert len(device_table.count(kernel, arrays, some)) == 0
    counts = device_table.counts.copy_to_host()
    counts[counts > 0] = (1 << 40) + 3
    device_table.counts.copy_to_device(counts)
    device_table.count(kernel, arrays, some)
    assert device_table.host_state[STATE_USED] == 1
    assert device_table.host_state[STATE_FULL] == 0
    ((_, totals),) = device_table.drain()
    assert totals.tolist() == [(1 << 40) + 3 + 15]


def test_pairs_are_counted_in_whole_numbers_beyond_64_bits() -> None:
    assert strips.count_pairs(np.array([0, 2**33])) == 2**33 * (2**33 - 1) // 2


@pytest.mark.parametrize("band", [5, 8, 16])
def test_rows_in_bands_give_the_same(band: int) -> None:
    codes = table(8, 3, 21)
    check(Case(codes, same_columns(3, 2)), sizes(SMALL, band=band))
    check(Case(codes, same_columns(3, 2), [3, 13, 5]), sizes(SMALL, band=band))


def test_sizes_are_halved_when_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allocations fail until the table is small, also in the middle of a band: nothing is lost or counted twice."""
    to_device, zeros = clue_counter.to_device, clue_counter.zeros
    failures = []

    def fail(nbytes: int) -> None:
        failures.append(nbytes)
        raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")

    def short(array: np.ndarray) -> object:
        if array.ndim == 2 and array.shape[1] == 3 and len(failures) == 2 and bool(array[0, 0]):
            fail(array.nbytes)
        return to_device(array)

    def small(shape: int | tuple[int, ...], dtype: type) -> object:
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if nbytes > 40_000:
            fail(nbytes)
        return zeros(shape, dtype)

    monkeypatch.setattr(clue_counter, "to_device", short)
    monkeypatch.setattr(clue_counter, "zeros", small)
    monkeypatch.setattr(clue_counter, "FIRST_LAUNCH_PAIRS", 1)
    case = Case(table(9, 3, 30), same_columns(3, 2))
    assert count(case, sizes(SMALL, slots=1 << 14, most=1 << 14)) == case.expected()
    assert len(failures) == 3


def test_too_little_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(array: np.ndarray) -> object:
        raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(clue_counter, "to_device", none)
    with pytest.raises(DeviceError, match=r"memory for the smallest table: 'CUDA_ERROR_OUT.*use device 'cpu'"):
        count(Case(table(9, 3, 30), same_columns(3, 2)), sizes(SMALL))


def test_a_deadline_gives_back_what_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clue_counter, "FIRST_LAUNCH_PAIRS", 1)
    case = Case(table(10, 3, 24), same_columns(3, 2))
    shares: list[float] = []
    control = Control()

    def stop_at_second(share: float) -> None:
        shares.append(share)
        if len(shares) == 2:
            control.stopped.set()

    control.progress = stop_at_second
    _, counts, complete = evidence.run(case.codes, case.layout(), case.offsets(), control, sizes=sizes(SMALL))
    assert not complete
    assert 0 < counts.sum() < 24 * 23 // 2
    late = Control(deadline=time.monotonic() - 1)
    clues, counts, complete = evidence.run(case.codes, case.layout(), case.offsets(), late, sizes=sizes(SMALL))
    assert (len(clues), len(counts), complete) == (0, 0, False)


def test_progress_rises_to_one() -> None:
    shares: list[float] = []
    case = Case(table(11, 3, 24), same_columns(3, 2), [10, 14])
    count(case, sizes(TINY), Control(progress=shares.append))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_equality_clues_do_not_depend_on_row_order() -> None:
    codes = table(12, 3, 15)
    case = Case(codes, same_columns(3, 0))
    shuffled = Case(np.ascontiguousarray(codes[:, np.random.default_rng(12).permutation(15)]), case.comparisons)
    assert count(case, sizes(SMALL)) == count(shuffled, sizes(SMALL))


def test_run_is_the_twin_interface() -> None:
    case = Case(table(13, 3, 12), same_columns(3, 2))
    clues, counts, complete = evidence.run(case.codes, case.layout(), case.offsets(), Control())
    assert complete
    assert {tuple(map(int, c)): int(n) for c, n in zip(clues, counts, strict=True)} == case.expected()


def test_the_front_door_reaches_the_twin() -> None:
    """The front door's answer on simulated CUDA is the CPU's, byte for byte."""
    codes = table(14, 4, 19)
    layout = make_layout([(0, 0, 0, True), (1, 1, 0, False), (2, 3, 0, True), (0, 1, 1, True)])
    for nulls in ("unknown", "value"):
        cuda, cpu = (collect_clues(codes, layout, nulls=nulls, device=name) for name in ("cuda", "cpu"))
        assert cuda.clues.tobytes() == cpu.clues.tobytes()
        assert cuda.counts is not None
        assert cpu.counts is not None
        assert cuda.counts.tobytes() == cpu.counts.tobytes()
