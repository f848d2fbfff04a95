"""The CUDA twin of the refinements on a real GPU: the definition's answer, and the CPU twin's byte for byte."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tuplewise.gpu_kernels.device import pick_device

pytestmark = pytest.mark.device
if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator is no device", allow_module_level=True)
if pick_device("auto").kind != "cuda":
    pytest.skip(f"no GPU: {pick_device('auto').reason}", allow_module_level=True)

from refine_cases import (  # noqa: E402
    JOINS,
    ORDERED,
    Case,
    check_join,
    check_refined,
    check_same,
    random_case,
    random_comparisons,
)

from tuplewise.gpu_kernels.cuda import grouping, joins  # noqa: E402
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Algorithm, Comparison  # noqa: E402
from tuplewise.gpu_kernels.refine import join  # noqa: E402


@pytest.mark.parametrize("seed", range(40))
def test_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, int(rng.integers(0, 120)), int(rng.choice([1, 3, 30, 1000])))
    pairs = check_refined(case, "cuda")
    for algorithm in JOINS:
        check_join(case, pairs, random_comparisons(rng, algorithm), algorithm, "cuda")


@pytest.mark.parametrize("rows", [1, 2, 16, 17, 63, 64, 65, 1023, 1024, 1025, 2049])
def test_right_sides_around_every_edge(rows: int) -> None:
    rng = np.random.default_rng(rows)
    codes = rng.integers(-1, 3 * rows, (3, rows + 3)).astype(np.int32)
    case = Case(codes, [], np.arange(rows, rows + 3, dtype=np.int32), np.arange(rows, dtype=np.int32))
    for algorithm in JOINS:
        number = {"hsm": 1, "iejoin": 2}.get(algorithm, 3)
        comparisons = [Comparison(d, d, (LESS, GREATER | EQUAL, LESS | EQUAL)[d]) for d in range(number)]
        check_join(case, case.refined("cuda"), comparisons, algorithm, "cuda")


@pytest.mark.parametrize("algorithm", JOINS)
@pytest.mark.parametrize("values", [3, 200, 100_000])
def test_cpu_twin_byte_for_byte(algorithm: Algorithm, values: int) -> None:
    rng = np.random.default_rng(values)
    rows = 60_000 if algorithm in ("hsm", "iejoin") else 8_000
    codes = rng.integers(-1, values, (4, rows)).astype(np.int32)
    codes[3] = rng.integers(0, 40, rows)
    half = np.flatnonzero(rng.random(rows) < 0.5).astype(np.int32)
    for case in (Case(codes, [(3, 3)]), Case(codes), Case(codes, [(3, 3), (0, 1)], half)):
        check_same(case, random_comparisons(rng, algorithm), algorithm, "cuda", "cpu")


@pytest.mark.parametrize("first", ORDERED)
def test_every_pair_of_inequalities(first: int) -> None:
    for second in ORDERED:
        rng = np.random.default_rng(10 * first + second)
        case = Case(rng.integers(-1, 300, (3, 3000)).astype(np.int32), [(2, 2)])
        for algorithm in ("iejoin", "kdtree"):
            comparisons = [Comparison(0, 0, first), Comparison(1, 0, second)]
            check_same(case, comparisons, algorithm, "cuda", "cpu")


@pytest.mark.parametrize("algorithm", JOINS)
def test_everything_is_cut_into_pieces(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "room_bytes", lambda: 100_000)
    monkeypatch.setattr(grouping, "KEY_BITS", 20)
    rng = np.random.default_rng(5)
    case = Case(rng.integers(-1, 50, (4, 3000)).astype(np.int32), [(3, 3)])
    check_same(case, random_comparisons(rng, algorithm), algorithm, "cuda", "cpu")


def test_counts_beyond_32_bits() -> None:
    rows = 130_000
    case = Case(np.zeros((3, rows), dtype=np.int32))
    wanted = rows * rows
    either = [Comparison(d, d, LESS | EQUAL) for d in range(3)]
    for algorithm, comparisons in (("hsm", either[:1]), ("iejoin", either[:2]), ("kdtree", either)):
        counts = np.zeros(rows, dtype=np.int64)
        made = join(case.start(), case.codes, comparisons, algorithm, device="cuda")
        assert made.count(counts, 1) == wanted
        assert (counts == rows).all()
