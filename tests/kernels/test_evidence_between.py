"""Evidence between two sets of rows on the CPU, through the front door, against the definition."""

from __future__ import annotations

import time

import numpy as np
import pytest
from evidence_between_cases import LARGEST, check, counts_of, expected, gapped_table, layout_of

from tuplewise.gpu_kernels.cpu import evidence as counting
from tuplewise.gpu_kernels.cpu import evidence_between as cpu
from tuplewise.gpu_kernels.evidence import collect_clues, collect_clues_between
from tuplewise.gpu_kernels.words import make_layout

WAYS = {"code by code": (1 << 20, 0), "direct": (0, 1 << 23), "hashed": (0, 0)}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    few_rows, combinations = WAYS[request.param]
    monkeypatch.setattr(cpu, "FEW_ROWS", few_rows)
    monkeypatch.setattr(counting, "DIRECT_COMBINATIONS", combinations)
    monkeypatch.setattr(cpu, "LEAST_TASK_ROWS", 7)
    monkeypatch.setattr(cpu, "TASK_PAIRS", 50)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(100))
def test_equals_definition(seed: int) -> None:
    check(seed, "cpu", 40)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("many", "few"), [(1, 1), (300, 247), (512, 248), (513, 249), (256, 256), (257, 1)])
def test_rows_around_every_block_edge(many: int, few: int) -> None:
    """What all pairs leave, less what the pairs of each side leave."""
    rng = np.random.default_rng(many + few)
    codes, layout = gapped_table(rng, 4, many + few), make_layout([(0, 0, 0, True), (1, 2, 0, True), (3, 3, 0, False)])
    codes[0, 0] = -1  # so that the lowest place is that of a null
    order = rng.permutation(many + few)
    dense = np.unique(codes, return_inverse=True)[1].reshape(codes.shape).astype(np.int32) - 1
    left = counts_of(collect_clues_between(codes, layout, order[:many], order[many:], device="cpu"))
    total = counts_of(collect_clues(dense, layout, device="cpu"))
    for side in (order[:many], order[many:]):
        for clue, count in counts_of(collect_clues(dense[:, side], layout, device="cpu")).items():
            total[clue] -= count
    assert left == {clue: count for clue, count in total.items() if count}


@pytest.mark.parametrize("comparisons", [1, 31, 32, 33, 64, 65, 130])
@pytest.mark.usefixtures("way")
def test_comparisons_around_every_word(comparisons: int) -> None:
    rng = np.random.default_rng(comparisons)
    codes = rng.integers(-1, 3, (comparisons, 9)).astype(np.int32)
    layout = make_layout([(c, c, 0, c % 2 == 0) for c in range(comparisons)])
    left, right = [3, 5], [0, 1, 2, 4, 6, 7, 8]
    for nulls in ("unknown", "value"):
        found = collect_clues_between(codes, layout, np.array(left), np.array(right), nulls=nulls, device="cpu")
        assert counts_of(found) == expected(codes, layout, left, right, nulls == "unknown")


def test_any_layout_of_the_codes_in_memory_and_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    codes, layout = gapped_table(rng, 5, 3000), layout_of(rng, 5)
    monkeypatch.setattr(cpu, "TASK_PAIRS", 1)
    for few in (1, 200):
        left, right = np.arange(3000 - few, dtype=np.int32), np.arange(3000 - few, 3000, dtype=np.int32)
        first = collect_clues_between(codes, layout, left, right, device="cpu", threads=1)
        readonly = np.asfortranarray(codes)
        readonly.flags.writeable = False
        again = collect_clues_between(readonly, layout, right[::-1], left, device="cpu", threads=2)
        np.testing.assert_array_equal(first.clues, again.clues)
        np.testing.assert_array_equal(first.counts, again.counts)


def test_nothing_between_and_uncounted() -> None:
    codes, layout = np.array([[0, LARGEST, -1]], dtype=np.int32), make_layout([(0, 0, 0, True)])
    none = collect_clues_between(codes, layout, np.arange(3), np.arange(0), device="cpu")
    assert (none.clues.shape, none.ordered_pairs, none.complete) == ((0, 1), 0, True)
    plain = collect_clues_between(codes, layout, np.array([0]), np.array([1, 2]), counting=False, device="cpu")
    assert plain.counts is None
    assert plain.ordered_pairs == 4
    assert plain.clues.ravel().tolist() == [0, 2, 3]


def test_a_deadline_in_the_past_compares_nothing_and_says_so() -> None:
    codes, layout = np.zeros((1, 500), dtype=np.int32), make_layout([(0, 0, 0, True)])
    found = collect_clues_between(
        codes, layout, np.arange(200), np.arange(200, 500), device="cpu", deadline=time.monotonic() - 1
    )
    assert not found.complete
    assert found.ordered_pairs == len(found.clues) == 0


def test_progress_rises_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "TASK_PAIRS", 1)
    seen: list[float] = []
    codes, layout = np.arange(5000, dtype=np.int32)[None, :], make_layout([(0, 0, 0, True)])
    collect_clues_between(codes, layout, np.arange(9), np.arange(9, 5000), device="cpu", progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 1
    assert seen[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"codes": np.zeros((1, 3), dtype=np.int64)}, "^codes: int64 array of 2 dimensions; allowed: int32"),
        ({"codes": np.zeros((0, 3), dtype=np.int32)}, "names column 0 of 0"),
        ({"left": np.zeros(1)}, "^left: float64 array of 1 dimensions; allowed: integers"),
        ({"right": np.array([1, 3])}, "^right: rows 1 to 3; allowed: 0 to 2"),
    ],
)
def test_bad_arguments(change: dict[str, object], says: str) -> None:
    arguments = {"codes": np.zeros((1, 3), dtype=np.int32), "layout": make_layout([(0, 0, 0, True)])}
    arguments |= {"left": np.array([0]), "right": np.array([1])} | change
    with pytest.raises(ValueError, match=says):
        collect_clues_between(**arguments, device="cpu")  # type: ignore[arg-type]
