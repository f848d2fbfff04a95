"""The CUDA twin of the refinements in Numba's CUDA simulator: the definition's answer, and the CPU twin's bytes.

Run as `NUMBA_ENABLE_CUDASIM=1 python -m pytest -m cuda tests/kernels`: set before numba is imported.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from refine_cases import (  # noqa: E402
    EVERY,
    JOINS,
    ORDERED,
    Case,
    check_join,
    check_refined,
    check_same,
    random_case,
    random_comparisons,
)

from tuplewise.gpu_kernels.clusters import all_rows  # noqa: E402
from tuplewise.gpu_kernels.cpu.refine import JOINS as CPU_JOINS  # noqa: E402
from tuplewise.gpu_kernels.cuda import (  # noqa: E402
    bitmaps,
    extremes,
    grouping,
    joins,
    kd_tree,
    primitives,
    refine,
    resident,
)
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Algorithm, Comparison  # noqa: E402
from tuplewise.gpu_kernels.refine import join, refine_equal  # noqa: E402


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that few rows are cut into stretches, pieces, blocks and bins, and keys into two passes."""
    monkeypatch.setattr(grouping, "KEY_BITS", 10)
    monkeypatch.setattr(primitives, "SIMULATED_ROOM_BYTES", 1500)
    monkeypatch.setattr(joins, "FIND_ROWS", 3)
    monkeypatch.setattr(extremes, "FIND_ROWS", 5)
    for made in (joins.DeviceJoin, kd_tree.KdTreeJoin, bitmaps.BitmapJoin):
        monkeypatch.setattr(made, "first_rows", 7)
    for name, value in {"WORDS": 2, "BLOCK": 128, "BIN": 16, "FEW": 5}.items():
        monkeypatch.setattr(bitmaps, name, value)


def cases(seed: int, rows: int, values: int) -> tuple[np.random.Generator, Case]:
    rng = np.random.default_rng(seed)
    return rng, random_case(rng, rows, values)


@pytest.mark.parametrize("seed", range(14))
def test_small_random_tables(seed: int) -> None:
    rng, case = cases(seed, seed % 13, 1 + seed % 5)
    pairs = check_refined(case, "cuda")
    for algorithm in JOINS:
        check_join(case, pairs, random_comparisons(rng, algorithm), algorithm, "cuda")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("tiny")
def test_everything_is_cut_into_pieces(seed: int) -> None:
    rng, case = cases(100 + seed, 40, 3 + 4 * (seed % 2))
    pairs = check_refined(case, "cuda")
    for algorithm in ("hsm", "iejoin", "kdtree", "bhsm"):
        check_join(case, pairs, random_comparisons(rng, algorithm, most=2), algorithm, "cuda")


@pytest.mark.parametrize("algorithm", JOINS)
def test_the_cpu_twins_bytes(algorithm: Algorithm) -> None:
    for seed in range(3):
        rng, case = cases(200 + seed, 30, 6)
        check_same(case, random_comparisons(rng, algorithm), algorithm, "cuda", "cpu")


@pytest.mark.parametrize("outcomes", EVERY)
def test_every_operator(outcomes: int) -> None:
    rng = np.random.default_rng(outcomes)
    case = Case(rng.integers(-1, 6, (3, 14)).astype(np.int32), [(0, 0)] if outcomes & EQUAL else [])
    pairs = case.refined("cuda")
    check_join(case, pairs, [Comparison(1, 2, outcomes)], "hsm", "cuda")
    check_join(case, pairs, [Comparison(1, 2, outcomes)], "bhsm", "cuda")


@pytest.mark.parametrize("first", ORDERED)
def test_every_pair_of_inequalities(first: int) -> None:
    for second in ORDERED:
        rng = np.random.default_rng(10 * first + second)
        case = Case(rng.integers(-1, 4, (3, 12)).astype(np.int32), [(2, 2)])
        pairs = case.refined("cuda")
        for algorithm in ("iejoin", "kdtree"):
            check_join(case, pairs, [Comparison(0, 0, first), Comparison(1, 0, second)], algorithm, "cuda")


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 33, 63, 64, 65, 127, 128, 129])
def test_right_sides_around_every_edge(rows: int) -> None:
    """Words of bitmaps and of the matrix, leaves, bins, blocks; the left side is small."""
    rng = np.random.default_rng(rows)
    codes = rng.integers(-1, 3 * rows, (2, rows + 2)).astype(np.int32)
    case = Case(codes, [], np.arange(rows, rows + 2, dtype=np.int32), np.arange(rows, dtype=np.int32))
    comparisons = [Comparison(0, 0, LESS), Comparison(1, 1, GREATER | EQUAL)]
    for algorithm in ("iejoin", "kdtree", "bhsm"):
        check_join(case, case.refined("cuda"), comparisons, algorithm, "cuda")


def test_largest_codes_do_not_overflow() -> None:
    top = np.iinfo(np.int32).max
    case = Case(np.array([[-1, 0, top, top, -1], [top, 0, -1, top, 0]], dtype=np.int32), [])
    kinds: list[tuple[Algorithm, int]] = [("hsm", 1), ("iejoin", 2), ("kdtree", 2), ("bhsm", 2), ("rangetree", 3)]
    for algorithm, number in kinds:
        for outcomes in ORDERED:
            comparisons = [Comparison(d % 2, d // 2, outcomes) for d in range(number)]
            check_join(case, case.refined("cuda"), comparisons, algorithm, "cuda")
    check_refined(Case(case.codes, [(0, 1), (0, 0)]), "cuda")


def test_nothing_on_one_side() -> None:
    codes = np.zeros((3, 4), dtype=np.int32)
    some, none = np.arange(4, dtype=np.int32), np.empty(0, dtype=np.int32)
    for left, right in ((some, none), (none, some), (none, none)):
        case = Case(codes, [], left, right)
        for algorithm in JOINS:
            number = {"hsm": 1, "iejoin": 2}.get(algorithm, 3)
            comparisons = [Comparison(d, d, LESS | EQUAL) for d in range(number)]
            check_same(case, comparisons, algorithm, "cuda", "cpu")
    check_refined(Case(codes, [(0, 0), (1, 2)], some, none), "cuda")
    check_refined(Case(codes[:, :0].copy(), [(0, 0), (1, 2)]), "cuda")
    unlike = np.arange(8, dtype=np.int32).reshape(2, 4)
    check_refined(Case(unlike, [(0, 0), (0, 1)]), "cuda")


def test_rows_that_are_asked_for_twice_or_are_in_no_cluster() -> None:
    codes = np.array([[0, 0, 1, 2, 2]], dtype=np.int32)
    pairs = refine_equal(all_rows(np.arange(5, dtype=np.int32)), codes, [(0, 0)], device="cuda")
    either = [Comparison(0, 0, LESS | EQUAL)]
    kinds: list[tuple[Algorithm, list[Comparison]]] = [
        ("hsm", []), ("bhsm", []), ("bhsm", either), ("kdtree", either), ("iejoin", either * 2),
    ]  # fmt: skip
    for algorithm, comparisons in kinds:
        made = join(pairs, codes, comparisons, algorithm, device="cuda")
        offsets, right = made.emit(np.array([4, 2, 0, 4], dtype=np.int32))
        assert offsets.tolist() == [0, 2, 2, 4, 6]
        assert right.tolist() == [3, 4, 0, 1, 3, 4]


def test_the_deadline_ends_counting() -> None:
    codes = np.arange(9, dtype=np.int32).reshape(1, 9)
    pairs = all_rows(np.arange(9, dtype=np.int32))
    for algorithm, number in (("hsm", 1), ("iejoin", 2), ("kdtree", 1), ("bhsm", 1)):
        comparisons = [Comparison(0, 0, LESS)] * number
        late = join(pairs, codes, comparisons, algorithm, device="cuda", deadline=time.monotonic() - 1)
        with pytest.raises(TimeoutError, match="the deadline came before all pairs were counted"):
            late.count(None, 1)


def test_columns_are_uploaded_once_for_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    uploaded: list[tuple[int, ...]] = []

    def spy(array: np.ndarray) -> Any:
        uploaded.append(array.shape)
        return primitives.to_device(array)

    monkeypatch.setattr(resident, "to_device", spy)
    codes = np.random.default_rng(1).integers(0, 3, (3, 20)).astype(np.int32)
    pairs = refine_equal(all_rows(np.arange(20, dtype=np.int32)), codes, [(0, 0)], device="cuda")
    assert uploaded == [(20,), (2,), (20,)]  # rows, offsets and the column
    for _ in range(2):
        comparisons = [Comparison(1, 1, LESS), Comparison(2, 2, GREATER)]
        made = join(pairs, codes, comparisons, "iejoin", device="cuda")
        made.count(None, 1)
        made.find(1)
        made.emit(np.arange(20, dtype=np.int32))
    assert uploaded[3:] == [(20,), (20,)]
    other = codes.copy()  # other codes: nothing of the old ones may be used
    assert join(pairs, other, [Comparison(1, 1, LESS)], "hsm", device="cuda").count(None, 1) > 0
    assert len(uploaded) == 8


def test_every_algorithm_has_a_twin() -> None:
    assert set(refine.JOINS) == set(CPU_JOINS)
