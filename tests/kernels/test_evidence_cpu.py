"""The CPU twin of the evidence kernel, through the front door, against the definition."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import clues as oracle

from tuplewise.gpu_kernels import words
from tuplewise.gpu_kernels.cpu import evidence as cpu
from tuplewise.gpu_kernels.evidence import collect_clues

WAYS = {"direct": (1, 1 << 23), "hashed": (1, 0), "small groups": (1 << 20, 0)}


def both_orders(layout: words.ClueLayout) -> list[tuple[int, int, int, bool]]:
    return [
        (int(a), int(b), int(s), bool(o))
        for a, b, s, o in zip(layout.left, layout.right, layout.scope, layout.ordered, strict=True)
    ]


def expected(codes: NDArray[np.int32], layout: words.ClueLayout, groups: list[list[int]], nullable: bool) -> dict:
    """Counts over ordered pairs: those of the rows in order, and of the rows in the opposite order."""
    comparisons = both_orders(layout)
    total: dict[tuple[int, ...], int] = {}
    for ordering in (groups, [list(reversed(g)) for g in groups]):
        for clue, count in oracle.count_clues(codes.tolist(), comparisons, ordering, nullable).items():
            total[clue] = total.get(clue, 0) + count
    return total


def found(codes: NDArray[np.int32], layout: words.ClueLayout, nullable: bool, **more: object) -> dict:
    clues = collect_clues(codes, layout, nulls="unknown" if nullable else "value", device="cpu", **more)  # type: ignore[arg-type]
    assert clues.complete
    assert clues.counts is not None
    rows = [tuple(int(w) for w in row) for row in clues.clues]
    assert rows == sorted(set(rows))
    assert clues.ordered_pairs == int(clues.counts.sum())
    return dict(zip(rows, clues.counts.tolist(), strict=True))


def random_table(rng: np.random.Generator, columns: int, rows: int) -> NDArray[np.int32]:
    """Ties, constants, nulls in some columns, and duplicate rows."""
    codes = np.array([rng.integers(-int(rng.integers(2)), int(rng.integers(1, 9)), rows) for _ in range(columns)])
    codes = codes.astype(np.int32).reshape(columns, rows)
    if rows > 2:
        codes[:, 1] = codes[:, 0]
    return codes


def random_layout(rng: np.random.Generator, columns: int) -> words.ClueLayout:
    comparisons = [(c, c, words.ACROSS, bool(rng.integers(2))) for c in range(columns)]
    taken = {(a, b, s) for a, b, s, _ in comparisons}
    for _ in range(int(rng.integers(0, 4)) if columns > 1 else 0):
        a, b = sorted(int(x) for x in rng.choice(columns, 2, replace=False))
        scope = int(rng.integers(2))
        if (a, b, scope) not in taken:
            taken.add((a, b, scope))
            comparisons.append((a, b, scope, bool(rng.integers(2))))
    return words.make_layout(comparisons)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_equals_definition(seed: int, nullable: bool, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "SMALL_GROUP_ROWS", WAYS[way][0])
    monkeypatch.setattr(cpu, "DIRECT_COMBINATIONS", WAYS[way][1])
    rng = np.random.default_rng(seed)
    columns, rows = int(rng.integers(1, 7)), int(rng.integers(0, 40))
    codes, layout = random_table(rng, columns, rows), random_layout(rng, columns)
    assert found(codes, layout, nullable) == expected(codes, layout, [list(range(rows))], nullable)
    members = rng.permutation(rows).astype(np.int32)
    offsets = np.concatenate([[0], np.sort(rng.integers(0, rows + 1, 3)), [rows]]).astype(np.int64)
    groups = [members[offsets[k] : offsets[k + 1]].tolist() for k in range(4)]
    inside = found(codes, layout, nullable, members=members, group_offsets=offsets)
    assert inside == expected(codes, layout, groups, nullable)


@pytest.mark.parametrize("rows", [0, 1, 2, 247, 248, 249, 255, 256, 257, 511, 512, 513])
@pytest.mark.parametrize("way", ["direct", "hashed"])
def test_rows_around_every_block_edge(rows: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, an ordered key, and a column of few values with nulls; the oracle in NumPy, outcome by outcome."""
    monkeypatch.setattr(cpu, "SMALL_GROUP_ROWS", 1)
    monkeypatch.setattr(cpu, "DIRECT_COMBINATIONS", WAYS[way][1])
    rng = np.random.default_rng(rows)
    codes = np.array([rng.permutation(rows), rng.permutation(rows), rng.integers(-1, 3, rows)], dtype=np.int32)
    layout = words.make_layout([(0, 0, 0, False), (1, 1, 0, True), (2, 2, 0, True)])
    clue = np.zeros((rows, rows), dtype=np.int64)
    for g in range(3):
        t, u = codes[g][:, None], codes[g][None, :]
        outcome = np.where(t == u, words.EQUAL, np.where((t > u) & bool(g), words.GREATER, words.LESS))
        outcome = np.where((t == -1) | (u == -1), words.UNKNOWN, outcome)
        clue |= outcome << (2 * g)
    pairs = clue[~np.eye(rows, dtype=bool)]
    value, count = np.unique(pairs, return_counts=True)
    assert found(codes, layout, True) == {(int(v),): int(c) for v, c in zip(value, count, strict=True)}


def expected_by_outcome(codes: NDArray[np.int32], layout: words.ClueLayout, nullable: bool) -> dict:
    """The definition in NumPy, outcome by outcome, for hundreds of rows. Row t is above, row u beside."""
    rows = codes.shape[1]
    clues = np.zeros((layout.words, rows, rows), dtype=np.uint64)
    for g, (a, b, scope, ordered) in enumerate(both_orders(layout)):
        t, u = codes[:, :, None], codes[:, None, :]
        x, y = {words.ACROSS: (t[a], u[b]), words.WITHIN_T: (t[a], t[b]), words.WITHIN_U: (u[a], u[b])}[scope]
        outcome = np.where(x == y, words.EQUAL, np.where((x > y) & ordered, words.GREATER, words.LESS))
        outcome = np.where(nullable & ((x == -1) | (y == -1)), words.UNKNOWN, outcome)
        clues[g // 32] |= outcome.astype(np.uint64) << np.uint64(2 * (g % 32))
    pairs = clues[:, ~np.eye(rows, dtype=bool)]
    number = np.zeros(pairs.shape[1], dtype=np.int64)
    for word in pairs:
        value, place = np.unique(word, return_inverse=True)
        number = np.unique(number * len(value) + place, return_inverse=True)[1]
    _, example, count = np.unique(number, return_index=True, return_counts=True)
    return {tuple(v): c for v, c in zip(pairs[:, example].T.tolist(), count.tolist(), strict=True)}


def keys_and_few_values(rng: np.random.Generator, rows: int) -> NDArray[np.int32]:
    """Keys, sparse columns and columns of few values, of which one at most varies over most tiles."""
    sparse = np.where(rng.random((3, rows)) < 0.01, rng.integers(1, 4, (3, rows)), 0)
    few = [rng.permutation(rows), np.arange(rows), np.arange(rows) // 250, rng.integers(0, 2, rows)]
    codes = np.array([*few, *sparse], dtype=np.int32)
    codes[1, rng.integers(rows, size=rows // 300)] = -1
    codes[4, : rows // 2] = -1
    return codes


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("way", ["direct", "hashed"])
@pytest.mark.parametrize("rows", [249, 520])
def test_tuples_for_which_few_comparisons_vary(
    rows: int, way: str, nullable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "SMALL_GROUP_ROWS", 1)
    monkeypatch.setattr(cpu, "DIRECT_COMBINATIONS", WAYS[way][1])
    codes = keys_and_few_values(np.random.default_rng(rows), rows)
    for chosen in ((0, 1), (1, 2), (2, 3), (2, 4), (4, 5, 6), (0, 2, 5, 6), range(7)):
        for ordered in (False, True):
            layout = words.make_layout([(c, c, 0, ordered) for c in chosen])
            assert found(codes, layout, nullable) == expected_by_outcome(codes, layout, nullable)


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("way", ["direct", "hashed"])
@pytest.mark.parametrize("columns", [4, 14, 40])
def test_one_two_and_more_planes_that_vary(
    columns: int, way: str, nullable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders and equalities, also of two columns and within a row, with nulls in some tiles, in one block and two."""
    monkeypatch.setattr(cpu, "SMALL_GROUP_ROWS", 1)
    monkeypatch.setattr(cpu, "DIRECT_COMBINATIONS", WAYS[way][1])
    rng = np.random.default_rng(columns)
    codes = rng.integers(0, rng.integers(2, 9, (columns, 1)), (columns, 530)).astype(np.int32)
    codes[1, :3] = codes[2, :300] = -1
    codes[3, rng.integers(530, size=200)] = -1
    comparisons = [(c, c, words.ACROSS, c % 3 > 0) for c in range(columns)]
    more = [(0, 1, words.ACROSS, True), (2, 3, words.WITHIN_T, True), (0, 3, words.WITHIN_T, False)]
    for layout in (words.make_layout(comparisons), words.make_layout(comparisons[:3] + more)):
        assert found(codes, layout, nullable) == expected_by_outcome(codes, layout, nullable)


def test_counters_of_one_block_hold_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all of the 127,000 pairs of a block and a tile have one clue, though ten comparisons vary."""
    monkeypatch.setattr(cpu, "SMALL_GROUP_ROWS", 1)
    codes = np.zeros((10, 992), dtype=np.int32)
    codes[np.arange(10), np.arange(982, 992)] = 1
    layout = words.make_layout([(c, c, 0, c % 2 == 0) for c in range(10)])
    assert found(codes, layout, True) == expected_by_outcome(codes, layout, True)


@pytest.mark.parametrize("comparisons", [1, 8, 9, 31, 32, 33, 63, 64, 65, 128, 129, 260])
@pytest.mark.parametrize("ordered", [True, False])
def test_comparisons_around_every_plane_and_word(comparisons: int, ordered: bool) -> None:
    rng = np.random.default_rng(comparisons)
    codes = rng.integers(-1, 4, (comparisons, 9)).astype(np.int32)
    layout = words.make_layout([(c, c, 0, ordered) for c in range(comparisons)])
    assert found(codes, layout, True) == expected(codes, layout, [list(range(9))], True)
    assert found(codes, layout, False) == expected(codes, layout, [list(range(9))], False)


def test_any_order_of_rows_and_number_of_threads_gives_the_same() -> None:
    rng = np.random.default_rng(11)
    codes = np.array([rng.integers(0, d, 2000) for d in (2, 3, 40, 900, 2000)], dtype=np.int32)
    layout = words.make_layout([(c, c, 0, c > 1) for c in range(5)])
    first = collect_clues(codes, layout, device="cpu", threads=1)
    again = collect_clues(codes[:, rng.permutation(2000)], layout, device="cpu", threads=2)
    np.testing.assert_array_equal(first.clues, again.clues)
    np.testing.assert_array_equal(first.counts, again.counts)


def test_counts_beyond_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 equal rows: 9,999,900,000 ordered pairs of one clue, and the 32-bit table is emptied on the way."""
    layout = words.make_layout([(0, 0, 0, True)])
    assert found(np.zeros((1, 100_000), dtype=np.int32), layout, True) == {(words.EQUAL,): 9_999_900_000}
    monkeypatch.setattr(cpu, "FLUSH_PAIRS", 3_000_000)
    codes = (np.arange(5_000, dtype=np.int32) % 2)[None, :]
    assert found(codes, layout, True) == {
        (words.LESS,): 2_500 * 2_500,
        (words.EQUAL,): 2 * 2_500 * 2_499,
        (words.GREATER,): 2_500 * 2_500,
    }


def test_every_pair_another_clue(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash table grows and loses nothing: on 80 columns of many values no two pairs have the same clue."""
    monkeypatch.setattr(cpu, "DIRECT_COMBINATIONS", 0)
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 1_000, (80, 300)).astype(np.int32)
    layout = words.make_layout([(c, c, 0, True) for c in range(80)])
    clues = collect_clues(codes, layout, device="cpu")
    assert clues.counts is not None
    assert len(clues.clues) == 300 * 299
    assert (clues.counts == 1).all()


def test_uncounted_clues_are_the_same() -> None:
    codes = np.random.default_rng(6).integers(0, 5, (3, 50)).astype(np.int32)
    layout = words.make_layout([(c, c, 0, True) for c in range(3)])
    counted = collect_clues(codes, layout, device="cpu")
    plain = collect_clues(codes, layout, device="cpu", counting=False)
    assert plain.counts is None
    assert plain.ordered_pairs == counted.ordered_pairs == 50 * 49
    np.testing.assert_array_equal(plain.clues, counted.clues)


def test_a_deadline_in_the_past_compares_nothing_and_says_so() -> None:
    codes = np.zeros((1, 5_000), dtype=np.int32)
    layout = words.make_layout([(0, 0, 0, True)])
    clues = collect_clues(codes, layout, device="cpu", deadline=time.monotonic() - 1)
    assert not clues.complete
    assert clues.ordered_pairs == 0


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    layout = words.make_layout([(0, 0, 0, True)])
    collect_clues(np.arange(5_000, dtype=np.int32)[None, :], layout, device="cpu", progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"codes": np.zeros((1, 3), dtype=np.int64)}, "allowed: int32"),
        ({"codes": np.zeros((0, 3), dtype=np.int32)}, "names column 0 of 0"),
        ({"members": np.zeros(3, dtype=np.int32)}, "give both or neither"),
        (
            {"members": np.zeros(3, dtype=np.int32), "group_offsets": np.array([0, 2], dtype=np.int64)},
            "end with the number of members",
        ),
        (
            {"members": np.zeros(3, dtype=np.int32), "group_offsets": np.array([0, 4, 3], dtype=np.int64)},
            "must not fall",
        ),
    ],
)
def test_bad_arguments(change: dict[str, object], says: str) -> None:
    arguments = {"codes": np.zeros((1, 3), dtype=np.int32), "layout": words.make_layout([(0, 0, 0, True)])}
    with pytest.raises(ValueError, match=says):
        collect_clues(**(arguments | change), device="cpu")  # type: ignore[arg-type]
