"""The CUDA twin of checks over partitions in Numba's CUDA simulator: the definition's answer, the CPU twin's bytes.

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

from oracles import order as oracle  # noqa: E402
from order_cases import Case, assert_checked, random_case, same  # noqa: E402

from tuplewise.gpu_kernels.cpu import order as cpu  # noqa: E402
from tuplewise.gpu_kernels.cuda import grouping, primitives, violations  # noqa: E402
from tuplewise.gpu_kernels.cuda import order as cuda_order  # noqa: E402
from tuplewise.gpu_kernels.order import PartitionedRows, lay_out_orders  # noqa: E402
from tuplewise.gpu_kernels.order_types import CONSTANT, KEY, Checks  # noqa: E402


def laid_out(case: Case, device: str = "cuda") -> PartitionedRows:
    return lay_out_orders(case.codes, nulls=case.nulls, device=device)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(10))
def test_checks_by_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, [0, 1, 2, 3, 9, 20][seed % 6], int(rng.integers(1, 7)), checks=16)
    rows = laid_out(case)
    assert_checked(case, rows, seed % 3, 256)
    usual = laid_out(case, "cpu").check(*case.arguments, limit=2)
    assert same(rows.check(*case.arguments, limit=2), usual)


@pytest.mark.parametrize("seed", range(6))
def test_everything_is_cut_into_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one check or three, keys in two passes, many strips, few pairs of many."""
    monkeypatch.setattr(primitives, "SIMULATED_ROOM_BYTES", [0, 30_000, 1 << 26][seed % 3])
    monkeypatch.setattr(cuda_order, "MOST_CHECKS", 3)
    monkeypatch.setattr(grouping, "KEY_BITS", 10)
    monkeypatch.setattr(violations, "STRIP", 5)
    monkeypatch.setattr(violations, "MEMBERS", 1 + 2 * (seed % 3))
    for name in ("MOST_COMPARED", "LEAST_COMPARED"):
        monkeypatch.setattr(cpu, name, 3)
    case = random_case(np.random.default_rng(50 + seed), 40, 4, checks=10)
    assert_checked(case, laid_out(case), 2, 3)


def test_no_more_members_are_sorted_at_once_than_int32_can_number(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(np.random.default_rng(3), 40, 4, checks=10)
    rows = laid_out(case)
    usual = rows.check(*case.arguments, limit=2)
    batches: list[int] = []
    decide = cuda_order.PartitionedRows._decide

    def spy(self: cuda_order.PartitionedRows, checks: Checks, first: int, last: int, limit: int) -> object:
        batches.append(last - first)
        return decide(self, checks, first, last, limit)

    monkeypatch.setattr(cuda_order.PartitionedRows, "_decide", spy)
    monkeypatch.setattr(cuda_order, "MOST_MEMBERS", 1)
    assert same(rows.check(*case.arguments, limit=2), usual)
    assert set(batches) == {1}


@pytest.mark.parametrize("columns", [64, 65])
def test_wide_tables(columns: int) -> None:
    case = random_case(np.random.default_rng(columns), 12, columns, checks=6)
    case.checks.append((frozenset({0, columns - 1}), KEY, -1, -1))
    case.checks.append((frozenset({1}), CONSTANT, columns - 1, -1))
    assert_checked(case, laid_out(case), 1, cpu.compared_pairs(columns))


def test_removals_and_deadlines() -> None:
    case = random_case(np.random.default_rng(9), 10, 3, checks=10)
    rows = laid_out(case)
    expected = [oracle.removals(case.codes.tolist(), 10, check, case.strict) for check in case.checks]
    assert rows.removals(*case.arguments).rows.tolist() == expected
    assert not rows.check(*case.arguments, deadline=time.monotonic() - 1).complete
    told: list[float] = []
    assert rows.check(*case.arguments, progress=told.append).complete
    assert told[-1] == 1


def test_nothing_to_check() -> None:
    rows = lay_out_orders(np.zeros((2, 3), dtype=np.int32), device="cuda")
    assert rows.check(np.zeros((0, 1), dtype=np.uint64), [], [], [], []).complete
