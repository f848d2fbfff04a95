"""The CPU twin of checks over partitions: the definition's answers, whatever is kept, on any number of threads."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from oracles import order as oracle
from order_cases import Case, assert_checked, masks, random_case, random_codes, same

from tuplewise.gpu_kernels.cpu import order as cpu
from tuplewise.gpu_kernels.cpu import violations
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.order import PartitionedRows, lay_out_orders
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, DESCENDING, KEY

COMPARED = 256


def laid_out(case: Case, **options: Any) -> PartitionedRows:
    return lay_out_orders(case.codes, nulls=case.nulls, device="cpu", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40))
def test_checks_by_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, int(rng.choice([0, 1, 2, 3, 9, 20, 31])), int(rng.integers(1, 8)))
    rows = laid_out(case, cache_bytes=int(rng.choice([0, 100, 1 << 20])))
    for limit in (1, 0, 3, 100):  # the same object: what is kept is used
        assert_checked(case, rows, limit, COMPARED)


@pytest.mark.parametrize("columns", [63, 64, 65, 129])
def test_wide_tables(columns: int) -> None:
    case = random_case(np.random.default_rng(columns), 24, columns, checks=60)
    last = frozenset({0, columns - 1})
    case.checks.extend([(last, KEY, -1, -1), (last, CONSTANT, columns - 2, -1)])
    case.checks.append((frozenset({1}), CONSTANT, columns - 1, -1))
    assert_checked(case, laid_out(case), 2, cpu.compared_pairs(columns))


@pytest.mark.parametrize("seed", range(3))
def test_large_classes_are_sorted_by_a_pass_over_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, 4, 120)
    codes[0] = np.minimum(rng.integers(0, 9, 120), 3)
    contexts = [frozenset({0}), frozenset({0, 1}), frozenset({2}), frozenset()]
    assert_checked(Case(codes, False, ordered_checks(contexts)), lay_out_orders(codes, device="cpu"), 2, COMPARED)


def test_a_large_class_among_few_rows_is_sorted_by_keys() -> None:
    rng = np.random.default_rng(3)
    codes = random_codes(rng, 4, 400)
    codes[0] = np.arange(400)
    codes[0, rng.permutation(400)[:30]] = 5
    case = Case(codes, False, [(frozenset({0}), *rest) for rest in ((2, 1, 2), (2, 3, 1), (3, 1, 2), (3, 2, 3))])
    assert_checked(case, laid_out(case), 2, COMPARED)


def ordered_checks(contexts: list[frozenset[int]]) -> list[oracle.Check]:
    """Both directions of some pairs of columns in each context."""
    pairs = [(0, 1), (1, 2), (1, 3), (2, 0), (3, 2), (3, 3)]
    return [(x, kind, *pair) for x in contexts for pair in pairs for kind in (ASCENDING, DESCENDING)]


@pytest.mark.parametrize("seed", range(6))
def test_few_of_the_met_pairs_are_compared(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "MOST_COMPARED", 4)
    monkeypatch.setattr(cpu, "LEAST_COMPARED", 4)
    case = random_case(np.random.default_rng(seed), 60, 4)
    assert_checked(case, laid_out(case), 3, 4)


def test_a_mixed_row_is_a_bijection() -> None:
    rows = [0, 1, 2, 12345, 2**31 - 1]
    assert [int(violations.mixed(row)) for row in rows] == [oracle.mixed(row) for row in rows]
    assert len({oracle.mixed(row) for row in range(20_000)}) == 20_000


@pytest.mark.parametrize("seed", range(25))
def test_removals_by_definition(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    case = random_case(rng, int(rng.integers(0, 12)), int(rng.integers(1, 5)), checks=20)
    rows = laid_out(case)
    table, n = case.codes.tolist(), case.codes.shape[1]
    expected = [oracle.removals(table, n, check, case.strict) for check in case.checks]
    assert rows.removals(*case.arguments).rows.tolist() == expected
    assert rows.removals(*case.arguments, most=2).rows.tolist() == [min(3, e) for e in expected]
    assert rows.removals(*case.arguments, most=0).rows.tolist() == [min(1, e) for e in expected]


def large_case() -> Case:
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(-1, values, 5000) for values in (2, 5, 30, 400, 3000, 5000)]).astype(np.int32)
    codes[2] = codes[3] // 14
    return Case(codes, False, random_case(rng, 0, 6, checks=400).checks)


def test_threads_and_kept_partitions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = large_case()
    usual = laid_out(case, threads=1).check(*case.arguments, limit=5)
    assert not usual.holds.all()
    monkeypatch.setattr(cpu, "TASK_ROWS", 20_000)
    for threads, cache_bytes in ((2, 1 << 26), (2, 30_000), (1, 0), (3, 200_000)):
        rows = laid_out(case, threads=threads, cache_bytes=cache_bytes)
        assert same(rows.check(*case.arguments, limit=5), usual)
        assert same(rows.check(*case.arguments, limit=5), usual)
        assert np.array_equal(rows.check(*case.arguments, limit=0).holds, usual.holds)


def test_renaming_columns_and_the_order_of_checks_change_nothing() -> None:
    case = large_case()
    usual = laid_out(case).check(*case.arguments, limit=0)
    turn = np.random.default_rng(1).permutation(6)
    there = {int(old): new for new, old in enumerate(turn)} | {-1: -1}
    renamed = [(frozenset(there[c] for c in x), kind, there[a], there[b]) for x, kind, a, b in reversed(case.checks)]
    other = Case(np.ascontiguousarray(case.codes[turn]), False, renamed)
    assert np.array_equal(laid_out(other).check(*other.arguments, limit=0).holds[::-1], usual.holds)


def test_a_deadline_ends_the_work() -> None:
    case = large_case()
    rows = laid_out(case)
    assert not rows.check(*case.arguments, deadline=time.monotonic() - 1).complete
    assert not rows.removals(*case.arguments, deadline=time.monotonic() - 1).complete
    assert rows.check(*case.arguments).complete


def test_progress_ends_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "TASK_ROWS", 20_000)
    case, told = large_case(), []
    laid_out(case).check(*case.arguments, progress=told.append)
    assert told == sorted(told)
    assert len(told) > 10
    assert told[-1] == pytest.approx(1)


def test_nothing_to_check() -> None:
    rows = lay_out_orders(np.zeros((2, 3), dtype=np.int32), device="cpu")
    checked = rows.check(np.zeros((0, 1), dtype=np.uint64), [], [], [], [])
    assert (len(checked.holds), checked.pairs.shape, checked.first.tolist(), checked.complete) == (0, (0, 2), [0], True)
    assert rows.removals(np.zeros((0, 1), dtype=np.uint64), [], [], [], []).complete
    none = lay_out_orders(np.zeros((0, 3), dtype=np.int32), device="cpu")
    assert none.check(np.zeros((1, 1), dtype=np.uint64), [0], [KEY], [-1], [-1]).pairs.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"contexts": np.zeros((1, 2), dtype=np.uint64)}, r"contexts: uint64 array of shape \(1, 2\); allowed: uint64"),
        ({"contexts": np.zeros((1, 1), dtype=np.int64)}, r"contexts: int64 array of shape \(1, 1\)"),
        ({"contexts": np.array([[4]], dtype=np.uint64)}, "contexts: a column beyond the last of 2; allowed: bits 0"),
        ({"which": [1]}, "which: 1; allowed: 0 to 0"),
        ({"which": [0.5]}, r"which: float64 array of 1 dimensions; allowed: whole numbers \(checks,\)"),
        ({"kind": [4]}, "kind: 4; allowed: 0 to 3"),
        ({"left": [-1]}, "left: -1; allowed: 0 to 1"),
        ({"right": [2]}, "right: 2; allowed: 0 to 1"),
        ({"right": [0, 1]}, r"which, kind, left, right: arrays of lengths \[1, 1, 1, 2\]; allowed: one length"),
        ({"limit": -1}, "limit: -1; allowed: 0 and above"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(change: dict[str, Any], text: str) -> None:
    rows = lay_out_orders(np.zeros((2, 3), dtype=np.int32), device="cpu")
    usual = {"contexts": masks([frozenset()], 2), "which": [0], "kind": [ASCENDING], "left": [0], "right": [1]}
    with pytest.raises(ValueError, match=text):
        rows.check(**(usual | change))


def test_tables_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"codes: int64 array of shape \(2, 3\); allowed: int32"):
        lay_out_orders(np.zeros((2, 3), dtype=np.int64), device="cpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"codes: -2; allowed: -1 \(null\), 0 and above"):
        lay_out_orders(np.full((2, 3), -2, dtype=np.int32), device="cpu")
    codes = np.zeros((2, 3), dtype=np.int32)
    with pytest.raises(ValueError, match="nulls: 'none'; allowed: 'unknown', 'value'"):
        lay_out_orders(codes, nulls="none", device="cpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads: 0; allowed: 1 and above"):
        lay_out_orders(codes, threads=0, device="cpu")
    with pytest.raises(ValueError, match="cache_bytes: -1; allowed: 0 and above"):
        lay_out_orders(codes, cache_bytes=-1, device="cpu")
    rows = lay_out_orders(codes, nulls="unknown", device="cpu")
    with pytest.raises(ValueError, match="kind: order compatibility where nulls are unknown; allowed: nulls='value'"):
        rows.check(masks([frozenset()], 2), [0], [DESCENDING], [0], [1])
    with pytest.raises(ValueError, match="most: -1; allowed: None, or 0 and above"):
        rows.removals(masks([frozenset()], 2), [0], [KEY], [-1], [-1], most=-1)


@pytest.mark.device
def test_a_device_finds_what_the_cpu_finds() -> None:
    device = pick_device("auto")
    if device.kind != "cuda":
        pytest.skip(f"no GPU: {device.reason}")
    case = large_case()
    for limit in (0, 1, 5):
        rows = [lay_out_orders(case.codes, device=where) for where in ("cpu", device)]
        assert same(*(made.check(*case.arguments, limit=limit) for made in rows))
