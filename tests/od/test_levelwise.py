"""Dependencies found level by level against the definition: every kind, null rule, limit and error budget."""

from __future__ import annotations

import random
import time
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from dependency_tables import Column, as_set, encode, functional_and_keys, random_table, readable
from numpy.typing import NDArray
from oracles import od as oracle

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.od import levelwise
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, Targets
from tuplewise.engine.od.found import FoundDependencies
from tuplewise.engine.run import Run

TABLES_A_SEED = 40


def find(codes: NDArray[np.int32], targets: Targets, **options: Any) -> FoundDependencies:
    return levelwise.find(codes, targets, **{"device": "cpu", **options})


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample so small that it says little, and many calls of the checks."""
    monkeypatch.setattr(levelwise, "SAMPLED_ROWS", 2)
    monkeypatch.setattr(levelwise, "PAIRS_OF_A_VIOLATION", 1)
    monkeypatch.setattr(levelwise, "CHECKED_AT_ONCE", 5)
    monkeypatch.setattr(levelwise._LevelwiseSearch, "_at_once", 3)


# ---------------------------------------------------------------- against the definition


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("small_steps")
def test_orders_equal_definition(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(TABLES_A_SEED):
        columns = random_table(rng)
        most = rng.choice([None, None, 0, 1, 2])
        found = find(encode(columns), Targets.of_orders(len(columns)), max_context=most, seed=number)
        constants, compatible = oracle.minimal_ods(columns, max_context=most)
        assert as_set(found) == constants | compatible, columns
        assert (found.reached, found.undecided, found.removals) == (None, 0, None)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("small_steps")
def test_functional_dependencies_and_keys_equal_definition(seed: int, nulls: str) -> None:
    rng = random.Random(100 + seed)
    for number in range(TABLES_A_SEED):
        columns = random_table(rng)
        most = rng.choice([None, None, 0, 1, 2])
        keys = {(context,) for context in oracle.minimal_keys(columns, nulls, max_context=most)}
        dependencies = oracle.minimal_fds(columns, nulls, max_context=most)
        options: dict[str, Any] = {"nulls": nulls, "max_context": most, "seed": number}
        codes, attributes = encode(columns), len(columns)
        assert as_set(find(codes, functional_and_keys(attributes), **options)) == keys | dependencies, columns
        assert as_set(find(codes, Targets.of_functional(attributes), **options)) == dependencies, columns
        assert as_set(find(codes, Targets.of_keys(), **options)) == keys, columns


@pytest.mark.parametrize("rows_of_parts", [2, levelwise.ROWS_OF_PARTS])
@pytest.mark.parametrize("allowed", [0, 1, 2, 4])
@pytest.mark.usefixtures("small_steps")
def test_with_rows_to_remove_equals_definition(
    allowed: int, rows_of_parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levelwise, "ROWS_OF_PARTS", rows_of_parts)
    monkeypatch.setattr(levelwise, "PARTS", (0.4, 0.7))
    rng = random.Random(200 + allowed)
    for _ in range(TABLES_A_SEED):
        columns = random_table(rng, 4)
        most = rng.choice([None, None, 1])
        codes, attributes = encode(columns), len(columns)
        limits: dict[str, Any] = {"allowed": allowed, "max_context": most}
        found = find(codes, Targets.of_orders(attributes), allowed_removals=allowed, max_context=most)
        constants, compatible = oracle.minimal_ods(columns, **limits)
        assert as_set(found) == constants | compatible, columns
        assert removals(found) == removals_by_definition(columns, found, "value")
        for nulls in ("unknown", "value"):
            found = find(
                codes, functional_and_keys(attributes), nulls=nulls, allowed_removals=allowed, max_context=most
            )
            keys = {(context,) for context in oracle.minimal_keys(columns, nulls, **limits)}
            assert as_set(found) == keys | oracle.minimal_fds(columns, nulls, **limits), columns
            assert removals(found) == removals_by_definition(columns, found, nulls)


def removals(found: FoundDependencies) -> list[int]:
    assert found.removals is not None
    return [int(rows) for rows in found.removals]


def removals_by_definition(columns: list[Column], found: FoundDependencies, nulls: str) -> list[int]:
    counted = []
    for index in range(len(found.dependencies)):
        context, *target = readable(found.dependencies, index)
        if not target:
            counted.append(oracle.key_removals(columns, context, nulls))
        elif len(target) == 1:
            counted.append(oracle.constant_removals(columns, context, target[0], nulls))
        else:
            counted.append(oracle.pair_removals(columns, context, *target))
    return counted


def test_any_of_the_targets() -> None:
    """Pairs alone, and beside the constancies of some columns: only these prune them."""
    rng = random.Random(300)
    for _ in range(TABLES_A_SEED):
        columns = random_table(rng)
        every = Targets.of_orders(len(columns))
        wanted = np.array([rng.random() < 0.5 for _ in range(len(every))], dtype=np.bool_)
        some = Targets(every.kind[wanted], every.left[wanted], every.right[wanted])
        constants = oracle.minimal_fds(columns, "value")
        asked = set(some.left[some.kind == CONSTANT].tolist())
        expected: set[tuple[Any, ...]] = {(context, a) for context, a in constants if a in asked}
        for kind, left, right in zip(some.kind.tolist(), some.left.tolist(), some.right.tolist(), strict=True):
            if kind >= ASCENDING:
                direction = oracle.ASCENDING if kind == ASCENDING else oracle.DESCENDING
                pruning = [context for context, a in constants if a in asked & {left, right}]
                expected |= pairs_of(columns, left, right, direction, pruning)
        assert as_set(find(encode(columns), some)) == expected, (columns, some)


def pairs_of(
    columns: list[Column], left: int, right: int, direction: str, constancies: list[frozenset[int]]
) -> set[tuple[Any, ...]]:
    others = [c for c in range(len(columns)) if c not in (left, right)]
    contexts = oracle.minimal_contexts(
        others, lambda context: oracle.pair_removals(columns, context, left, right, direction) == 0, None
    )
    return {(c, left, right, direction) for c in contexts if not any(smaller <= c for smaller in constancies)}


def test_flights_of_the_paper() -> None:
    """Table I and examples 1 and 3."""
    m, w, dt, at, et, mtow, cap, model, mc = range(9)
    rows = [
        (1, 2, 734, 1022, 168, 233, 253, 330, 0),
        (1, 2, 734, 846, 72, 233, 253, 330, 0),
        (1, 3, 734, 846, 72, 233, 253, 330, 0),
        (1, 3, 905, 1210, 185, 242, 293, 330, 0),
        (1, 4, 622, 717, 55, 89, 204, 738, 1),
        (2, 6, 1010, 1140, 90, 83, 185, 321, 0),
    ]
    found = as_set(find(encode([list(column) for column in zip(*rows, strict=True)]), Targets.of_orders(9)))
    assert (frozenset({mtow}), cap) in found
    assert (frozenset(), mtow, cap, oracle.ASCENDING) in found
    assert (frozenset({model}), mc) in found
    assert (frozenset(), m, w, oracle.ASCENDING) in found
    assert (frozenset({dt}), at, et, oracle.ASCENDING) in found


# ---------------------------------------------------------------- what changes nothing


@pytest.mark.usefixtures("small_steps")
def test_order_of_rows_and_columns_changes_nothing() -> None:
    rng = random.Random(400)
    for number in range(TABLES_A_SEED):
        columns = random_table(rng)
        codes, targets = encode(columns), Targets.of_orders(len(columns))
        found = find(codes, targets)
        shuffle = np.random.default_rng(number)
        again = find(np.ascontiguousarray(codes[:, shuffle.permutation(codes.shape[1])]), targets, seed=number)
        for name in ("contexts", "kind", "left", "right"):
            assert np.array_equal(getattr(found.dependencies, name), getattr(again.dependencies, name))
        order = shuffle.permutation(len(codes))
        moved = find(np.ascontiguousarray(codes[order]), targets, seed=number)
        assert {renamed(d, order) for d in as_set(moved)} == as_set(found)


def renamed(dependency: tuple[Any, ...], order: NDArray[np.int64]) -> tuple[Any, ...]:
    context, *target = dependency
    named = frozenset(int(order[a]) for a in context)
    if len(target) == 1:
        return named, int(order[target[0]])
    left, right = sorted((int(order[target[0]]), int(order[target[1]])))
    return named, left, right, target[2]


@pytest.mark.parametrize("attributes", [63, 64, 65, 129, 257])
def test_many_columns(attributes: int) -> None:
    """Contexts in every word: all columns are constant but a few, each of which is the exclusive or of two others."""
    rng = np.random.default_rng(attributes)
    varying = sorted({0, 1, 62, 63, 64, 127, 128, attributes - 2, attributes - 1} & set(range(attributes)))
    codes = np.zeros((attributes, 200), dtype=np.int32)
    codes[varying[:2]] = rng.integers(0, 2, (2, 200))
    for one, two, three in zip(varying, varying[1:], varying[2:], strict=False):
        codes[three] = codes[one] ^ codes[two]  # so every third of them is the same
    every = [varying[start::3] for start in range(3)]
    expected: set[tuple[Any, ...]] = {(frozenset(), a) for a in range(attributes) if a not in varying}
    for alike, second, third in zip(every, every[1:] + every[:1], every[2:] + every[:2], strict=True):
        for a in alike:
            expected |= {(frozenset({b}), a) for b in alike if b != a}
            expected |= {(frozenset({b, c}), a) for b in second for c in third}
    assert as_set(find(codes, functional_and_keys(attributes))) == expected
    pairs = as_set(find(codes, Targets.of_orders(attributes))) - expected
    same = {frozenset(two) for alike in every for two in combinations(alike, 2)}
    assert {frozenset(p[1:3]) for p in pairs if not p[0] and p[3] == oracle.ASCENDING} == same


def test_equal_rows_leave_no_key_to_look_for() -> None:
    codes = np.random.default_rng(7).integers(0, 2, (40, 30)).astype(np.int32)
    codes[:, 29] = codes[:, 0]
    found = find(codes, Targets.of_keys())
    assert (len(found.dependencies), found.search["levels"]) == (0, [])
    assert len(find(codes, Targets.of_keys(), allowed_removals=1, max_context=2).search["levels"]) == 3


def test_in_result_order_and_nothing_implied() -> None:
    rng = random.Random(500)
    for _ in range(TABLES_A_SEED):
        columns = random_table(rng)
        dependencies = find(encode(columns), Targets.of_orders(len(columns))).dependencies
        assert len(dependencies.without_implied()) == len(dependencies)
        ordered = dependencies.in_result_order()
        assert np.array_equal(ordered.contexts, dependencies.contexts)
        assert np.array_equal(ordered.kind, dependencies.kind)


# ---------------------------------------------------------------- limits and figures


def table_of(rows: int, columns: int) -> NDArray[np.int32]:
    return np.random.default_rng(6).integers(0, 6, (columns, rows)).astype(np.int32)


def test_search_counts_by_level() -> None:
    found = find(table_of(2000, 6), Targets.of_orders(6), max_context=3)
    levels = found.search["levels"]
    assert [level["level"] for level in levels] == [0, 1, 2, 3, 4]
    assert [level["candidates"] for level in levels[:2]] == [6, 30 + 30]
    sizes = [level["sample_rows"] for level in levels]
    assert sizes == sorted(sizes)
    assert sizes[0] == 100
    assert sizes[-1] <= found.search["sample_rows"] <= 2000
    assert found.search["checked_on_sample"] == sum(level["candidates"] for level in levels)
    assert found.search["validated"] == sum(level["validated"] for level in levels)
    assert sum(level["valid"] for level in levels) == len(found.dependencies)
    assert found.search["violated"] == found.search["validated"] - len(found.dependencies)


def test_laps_name_every_stage() -> None:
    laps: list[str] = []
    find(table_of(500, 4), Targets.of_orders(4), lap=laps.append)
    assert set(laps) == {"candidates", "sample", "validation"}


@pytest.mark.parametrize("allowed", [None, 20])
def test_a_limit_keeps_what_is_decided(allowed: int | None) -> None:
    """Raised ever later: what is listed is part of the whole, with every level that was finished."""
    codes, targets = table_of(300, 6), Targets.of_orders(6)
    whole = as_set(find(codes, targets, allowed_removals=allowed))
    calls = undecided = 0

    def progress(stage: str, share: float) -> None:
        nonlocal left, calls
        assert 0 <= share <= 1
        calls += 1
        left -= 1
        if left < 0:
            raise LimitReached("memory limit reached")

    for allowance in range(0, 200, 3):
        left = allowance
        found = find(codes, targets, allowed_removals=allowed, run=Run(progress=progress))
        assert as_set(found) <= whole
        if found.reached is None:
            break
        assert found.reached == "memory limit reached"
        undecided = max(undecided, found.undecided)
        done = [level["level"] for level in found.search["levels"]][-1]
        assert {d for d in whole if len(d[0]) + (len(d) > 2) < done} <= as_set(found)
        if allowed is not None:
            assert len(removals(found)) == len(found.dependencies)
    assert undecided > 0
    assert calls > 10


def test_a_deadline_that_is_over() -> None:
    found = find(table_of(300, 6), Targets.of_orders(6), run=Run(deadline=time.monotonic() - 1))
    assert (len(found.dependencies), found.undecided, found.reached) == (0, 6, "time limit reached")


def test_pairs_under_unknown_are_refused() -> None:
    with pytest.raises(ValueError, match="'unknown' is for keys and constancies; allowed for pairs: 'value'"):
        find(table_of(3, 2), Targets.of_orders(2), nulls="unknown")
