"""The CPU twin of the refinements against the definition, and the front door's checks."""

from __future__ import annotations

import time

import numpy as np
import pytest
from refine_cases import (
    EVERY,
    JOINS,
    ORDERED,
    Case,
    check_join,
    check_refined,
    clusters_of,
    random_case,
    random_comparisons,
    same_bytes,
)

from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows, exchanged, restrict, rows_on_both_sides
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import bitmaps, grouping, kd_tree, refine
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Algorithm, Comparison
from tuplewise.gpu_kernels.refine import join, refine_equal


@pytest.mark.parametrize("seed", range(150))
def test_small_random_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, int(rng.integers(0, 13)), int(rng.integers(1, 6)))
    pairs = check_refined(case, "cpu")
    for algorithm in JOINS:
        for _ in range(2):
            check_join(case, pairs, random_comparisons(rng, algorithm), algorithm, "cpu")


@pytest.mark.parametrize("seed", range(12))
def test_larger_random_tables(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    case = random_case(rng, int(rng.integers(70, 180)), int(rng.choice([2, 40, 1000])))
    pairs = check_refined(case, "cpu")
    for algorithm in JOINS:
        check_join(case, pairs, random_comparisons(rng, algorithm), algorithm, "cpu")


@pytest.mark.parametrize(
    ("algorithm", "outcomes"),
    [*(("hsm", o) for o in EVERY), *(("bhsm", o) for o in EVERY), *(("kdtree", o) for o in ORDERED)],
)
def test_every_operator(algorithm: Algorithm, outcomes: int) -> None:
    rng = np.random.default_rng(outcomes)
    case = Case(rng.integers(-1, 20, (3, 90)).astype(np.int32), [(0, 0)] if outcomes & EQUAL else [])
    check_join(case, case.refined("cpu"), [Comparison(1, 2, outcomes)], algorithm, "cpu")


@pytest.mark.parametrize("second", ORDERED)
@pytest.mark.parametrize("first", ORDERED)
def test_every_pair_of_inequalities(first: int, second: int) -> None:
    rng = np.random.default_rng(10 * first + second)
    case = Case(rng.integers(-1, 9, (3, 70)).astype(np.int32), [(2, 2)])
    pairs = case.refined("cpu")
    for algorithm in ("iejoin", "kdtree", "bhsm"):
        check_join(case, pairs, [Comparison(0, 0, first), Comparison(1, 0, second)], algorithm, "cpu")


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 2047, 2048, 2049, 4097])
@pytest.mark.parametrize("algorithm", JOINS)
def test_right_sides_around_every_edge(algorithm: Algorithm, rows: int) -> None:
    """Words, leaves, blocks; the left side is small, so that the definition is quick."""
    rng = np.random.default_rng(rows)
    codes = rng.integers(-1, 3 * rows, (3, rows + 3)).astype(np.int32)
    case = Case(codes, [], np.arange(rows, rows + 3, dtype=np.int32), np.arange(rows, dtype=np.int32))
    number = {"hsm": 1, "iejoin": 2}.get(algorithm, 3)
    comparisons = [Comparison(d, d, (LESS, GREATER | EQUAL, LESS | EQUAL)[d]) for d in range(number)]
    check_join(case, case.refined("cpu"), comparisons, algorithm, "cpu")


def test_keys_that_need_more_than_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "KEY_BITS", 10)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        case = random_case(rng, 60, 12)
        pairs = check_refined(case, "cpu")
        check_join(case, pairs, random_comparisons(rng, "iejoin"), "iejoin", "cpu")


@pytest.mark.parametrize("algorithm", JOINS)
def test_largest_codes_do_not_overflow(algorithm: Algorithm) -> None:
    top = np.iinfo(np.int32).max - 2
    rng = np.random.default_rng(3)
    case = Case(rng.choice(np.array([-1, 0, top - 1, top], dtype=np.int32), (3, 12)), [])
    if algorithm in ("iejoin", "rangetree"):
        case.codes[case.codes > 0] -= top - 3  # their tables are as long as the span of codes
    for outcomes in ORDERED:
        number = {"hsm": 1, "iejoin": 2}.get(algorithm, 3)
        comparisons = [Comparison(d, d, outcomes) for d in range(number)]
        check_join(case, case.refined("cpu"), comparisons, algorithm, "cpu")


@pytest.mark.parametrize("algorithm", JOINS)
def test_nothing_on_one_side(algorithm: Algorithm) -> None:
    codes = np.zeros((3, 4), dtype=np.int32)
    some, none = np.arange(4, dtype=np.int32), np.empty(0, dtype=np.int32)
    comparisons = [Comparison(d, d, LESS | EQUAL) for d in range({"hsm": 1, "iejoin": 2}.get(algorithm, 3))]
    for left, right in ((some, none), (none, some), (none, none)):
        case = Case(codes, [], left, right)
        check_join(case, case.start(), comparisons, algorithm, "cpu")
    check_refined(Case(codes, [(0, 0), (1, 2)], some, none), "cpu")


def test_rows_that_are_asked_for_twice_or_are_in_no_cluster() -> None:
    codes = np.array([[0, 0, 1, 2, 2]], dtype=np.int32)
    pairs = refine_equal(all_rows(np.arange(5, dtype=np.int32)), codes, [(0, 0)], device="cpu")
    for algorithm, comparisons in (("hsm", []), ("bhsm", []), ("kdtree", [Comparison(0, 0, LESS | EQUAL)])):
        made = join(pairs, codes, comparisons, algorithm, device="cpu")
        offsets, right = made.emit(np.array([4, 2, 0, 4], dtype=np.int32))
        assert offsets.tolist() == [0, 2, 2, 4, 6]
        assert right.tolist() == [3, 4, 0, 1, 3, 4]


def test_a_tree_does_not_depend_on_how_medians_are_found() -> None:
    """Ties go by row: permuting rows of one code leaves which rows a node holds."""
    codes = np.zeros((2, 100), dtype=np.int32)
    codes[1] = np.arange(100) % 7
    case = Case(codes)
    made = kd_tree.KdTreeJoin(case.start(), codes, [Comparison(0, 0, LESS | EQUAL), Comparison(1, 1, LESS)], Control())
    rows, _, starts, ends, children, _, _ = made._trees
    leaves = [rows[s:e].tolist() for s, e, c in zip(starts, ends, children, strict=True) if c == 0 and e > s]
    assert all(leaf == sorted(leaf) for leaf in leaves)
    assert sorted(row for leaf in leaves for row in leaf) == list(range(100))
    halves = rows[:50].tolist(), rows[50:].tolist()
    assert (max(halves[0]), min(halves[1])) == (49, 50)


@pytest.mark.parametrize("algorithm", ["hsm", "iejoin", "kdtree", "bhsm"])
def test_threads_change_nothing(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kd_tree.KdTreeJoin, "task_rows", 50)
    monkeypatch.setattr(bitmaps.BitmapJoin, "task_rows", 50)
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 50, (3, 70_000 if algorithm in ("hsm", "iejoin") else 900)).astype(np.int32)
    comparisons = [Comparison(0, 0, LESS), Comparison(1, 1, GREATER)][: 1 if algorithm == "hsm" else 2]
    answers = []
    for threads in (1, 3):
        counts = np.zeros(codes.shape[1], dtype=np.int64)
        pairs = refine_equal(all_rows(np.arange(codes.shape[1], dtype=np.int32)), codes, [(2, 2)], device="cpu")
        made = join(pairs, codes, comparisons, algorithm, device="cpu", threads=threads)
        assert made.count(counts, 1) == counts.sum()
        answers.append(counts)
    same_bytes(*answers)


@pytest.mark.parametrize("algorithm", ["hsm", "iejoin", "kdtree", "bhsm", "rangetree"])
def test_the_deadline_ends_counting(algorithm: Algorithm) -> None:
    codes = np.arange(9, dtype=np.int32).reshape(1, 9)
    comparisons = [Comparison(0, 0, LESS)] * {"hsm": 1, "iejoin": 2}.get(algorithm, 3)
    pairs = all_rows(np.arange(9, dtype=np.int32))
    made = join(pairs, codes, comparisons, algorithm, device="cpu", deadline=time.monotonic() - 1)
    with pytest.raises(TimeoutError, match="the deadline came before all pairs were counted"):
        made.count(None, 1)


def test_permuted_rows_have_permuted_counts() -> None:
    rng = np.random.default_rng(8)
    codes = rng.integers(-1, 6, (3, 40)).astype(np.int32)
    order = rng.permutation(40)
    answers = []
    for table in (codes, np.ascontiguousarray(codes[:, order])):
        pairs = refine_equal(all_rows(np.arange(40, dtype=np.int32)), table, [(0, 0)], device="cpu")
        counts = np.zeros(40, dtype=np.int64)
        join(pairs, table, [Comparison(1, 1, GREATER), Comparison(2, 2, LESS)], "iejoin", device="cpu").count(counts, 1)
        answers.append(counts)
    assert answers[0][order].tolist() == answers[1].tolist()


def test_masks_exchange_and_rows_on_both_sides() -> None:
    codes = np.array([[0, 0, 1, 1, 0]], dtype=np.int32)
    pairs = refine_equal(all_rows(np.arange(5, dtype=np.int32)), codes, [(0, 0)], device="cpu")
    mask = np.array([True, True, True, False, False])
    both = restrict(pairs, mask, mask)
    assert both.reflexive
    assert clusters_of(both) == [([0, 1], [0, 1]), ([2], [2])]
    one = restrict(pairs, None, mask)
    assert not one.reflexive
    assert clusters_of(one) == [([0, 1, 4], [0, 1]), ([2, 3], [2])]
    assert clusters_of(exchanged(one)) == [([0, 1], [0, 1, 4]), ([2], [2, 3])]
    assert exchanged(both) is both
    assert rows_on_both_sides(one, 5).tolist() == [0, 1, 2]
    assert rows_on_both_sides(both, 5).tolist() == [0, 1, 2]
    everything = restrict(pairs, None, np.ones(5, dtype=np.bool_))
    assert not everything.reflexive
    assert (pairs.pairs, one.pairs) == (13, 8)


def test_what_does_not_fit_is_refused() -> None:
    codes = np.zeros((2, 3), dtype=np.int32)
    pairs = all_rows(np.arange(3, dtype=np.int32))
    less = Comparison(0, 0, LESS)
    with pytest.raises(
        ValueError, match=r"codes: int64 array of 1 dimensions; allowed: int32 \(columns, rows\), C order"
    ):
        refine_equal(pairs, np.zeros(3, dtype=np.int64), [], device="cpu")
    with pytest.raises(ValueError, match="a predicate names column 2 of 2"):
        refine_equal(pairs, codes, [(0, 2)], device="cpu")
    with pytest.raises(
        ValueError, match="algorithm: 'nested'; allowed: 'hsm', 'iejoin', 'bhsm', 'kdtree', 'rangetree'"
    ):
        join(pairs, codes, [less], "nested", device="cpu")  # type: ignore[arg-type]
    for algorithm, comparisons in (
        ("hsm", [less, less]),
        ("iejoin", [less]),
        ("iejoin", [less, Comparison(0, 0, EQUAL)]),
        ("kdtree", []),
        ("rangetree", [less, less]),
    ):
        with pytest.raises(ValueError, match=f"algorithm '{algorithm}' can't do these comparisons"):
            join(pairs, codes, comparisons, algorithm, device="cpu")  # type: ignore[arg-type]
    wrong = ClusterPairs(pairs.left, np.array([0, 2]), pairs.left, np.array([0, 2]))
    with pytest.raises(ValueError, match="offsets begin with 0 and end with the length of the side"):
        join(wrong, codes, [less], "hsm", device="cpu")
    uneven = ClusterPairs(pairs.left, np.array([0, 3]), pairs.left, np.array([0, 1, 3]))
    with pytest.raises(ValueError, match="1 left sets and 2 right sets"):
        join(uneven, codes, [less], "hsm", device="cpu")


def test_every_algorithm_has_a_twin() -> None:
    assert set(refine.JOINS) == set(JOINS) - {"rangetree"}
