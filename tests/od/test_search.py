"""The hybrid search for keys, functional and order dependencies, forced to decide in each of its ways, against the
definition; and one comparison of pairs for several kinds of rule."""

from __future__ import annotations

import itertools
import math
import random
import time
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import numpy as np
import pandas as pd
import pytest
from dependency_tables import Column, as_set, encode, functional_and_keys, random_table
from numpy.typing import NDArray
from oracles import od as oracle

import tuplewise as tw
from tuplewise.engine import loop
from tuplewise.engine.errors import InputError
from tuplewise.engine.local_table import LocalTable, count_agreeing
from tuplewise.engine.od import candidates, discover, levelwise, search
from tuplewise.engine.od.dependency import Targets
from tuplewise.engine.od.found import Discovery, FoundDependencies
from tuplewise.engine.options import OdDiscoverOptions
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.gpu_kernels.device import pick_device

TABLES_A_SEED = 30
# Bounds that make a way of deciding the usual one. A sample is one pair of each of two rows, or nearly nothing.
CHOSEN = {"ALL_AT_ONCE": -1, "ALL_PAIRS_SHARE": math.inf}  # all pairs are never compared
SOON = {"ALL_PAIRS_SHARE": 0.0, "LEAST_PAIR_SECONDS": 0.0}
WAYS: dict[str, dict[str, Any]] = {
    "all at once": {"ALL_AT_ONCE": 1 << 20},
    "as it is": {"SAMPLED_ROWS": 4} | CHOSEN,
    "validated": {"SAMPLED_ROWS": 1, "WITNESSES": 1, "SETS_A_ROUND": 0} | CHOSEN,
    "exhausted": {"SAMPLED_ROWS": 1, "FIRST_VALIDATED": 1, "SETS_A_ROUND": 2} | CHOSEN,
    "all in the end": {"ALL_AT_ONCE": -1, "SAMPLED_ROWS": 1, "FIRST_VALIDATED": 1, "MEASURED_ROWS": 1} | SOON,
}


def strain(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    for name, value in WAYS[way].items():
        owners = [module for module in (search, candidates, loop) if hasattr(module, name)]
        assert owners
        for module in owners:
            monkeypatch.setattr(module, name, value)
    if way == "exhausted":  # a validation seems to take an hour
        monkeypatch.setattr(loop.Prices, "validation", 3600.0)


def find(codes: NDArray[np.int32], targets: Targets, nulls: Any = "value", **options: Any) -> FoundDependencies:
    names = [f"c{i}" for i in range(len(codes))]
    found = search.find(codes, targets, names, nulls=nulls, device=pick_device("cpu"), **options)
    assert found.reached is None
    assert found.undecided == 0
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_order_dependencies_are_those_of_the_definition(seed: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strain(monkeypatch, way)
    rng = random.Random(seed)
    for _ in range(TABLES_A_SEED):
        columns = random_table(rng)
        codes = encode(columns)
        most = rng.choice([None, None, 0, 1, 2])
        constants, compatible = oracle.minimal_ods(columns, max_context=most)
        found = find(codes, Targets.of_orders(len(codes)), max_context=most, seed=rng.randrange(3))
        assert as_set(found) == constants | compatible, columns


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("nulls", ["value", "unknown"])
@pytest.mark.parametrize("seed", range(4))
def test_functional_dependencies_and_keys(seed: int, nulls: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strain(monkeypatch, way)
    rng = random.Random(100 + seed)
    for _ in range(TABLES_A_SEED):
        columns = random_table(rng)
        codes = encode(columns)
        most = rng.choice([None, None, 0, 1, 2])
        wanted = oracle.minimal_fds(columns, nulls, max_context=most) | {
            (key,) for key in oracle.minimal_keys(columns, nulls, max_context=most)
        }
        found = find(codes, functional_and_keys(len(codes)), nulls, max_context=most, seed=rng.randrange(3))
        assert as_set(found) == wanted, columns


def test_each_way_of_deciding_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, v, 300) for v in (3, 5, 8, 40, 200)]).astype(np.int32)
    did = {}
    for way in WAYS:
        with monkeypatch.context() as patch:
            strain(patch, way)
            did[way] = find(codes, Targets.of_orders(5)).search
    assert did["all at once"]["validated"] == 0
    different = len(np.unique(codes, axis=1).T)
    assert did["all at once"]["compared_pairs"] == different * (different - 1) // 2
    assert did["validated"]["validated"] > did["exhausted"]["validated"]
    assert not did["validated"]["column_sets"]
    assert did["exhausted"]["column_sets"]
    assert did["validated"]["compared_pairs"] == 0
    assert 0 < did["as it is"]["compared_pairs"] < 300 * 299 / 2
    at_once = {"columns": [], "pairs": different * (different - 1) // 2, "decided": ANY}
    assert did["all in the end"]["column_sets"] == [at_once]


def test_all_pairs_are_compared_only_where_that_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price is what was measured, here an hour a pair; the answer is the same."""
    strain(monkeypatch, "all in the end")
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, v, 2000) for v in (3, 5, 8, 40, 200)]).astype(np.int32)
    cheap = find(codes, Targets.of_orders(5))
    compare_rows = LocalTable.compare_rows
    measured = []

    def slow(table: LocalTable, rows: NDArray[np.int32]) -> loop.ComparedPairs:
        measured.append(rows.tolist())
        compared = compare_rows(table, rows)
        return replace(compared, comparing_seconds=3600.0 * compared.pairs)

    monkeypatch.setattr(LocalTable, "compare_rows", slow)
    monkeypatch.setattr(loop, "ALL_PAIRS_SHARE", 1.0)
    dear = find(codes, Targets.of_orders(5))
    assert measured[0] == [0]
    assert [of_set["columns"] for of_set in cheap.search["column_sets"]] == [[]]
    assert all(of_set["columns"] for of_set in dear.search["column_sets"])
    assert as_set(cheap) == as_set(dear)


def test_results_are_the_same_for_every_order_of_rows_and_seed() -> None:
    rng = np.random.default_rng(8)
    codes = np.stack([rng.integers(-1, v, 2000) for v in (4, 9, 60, 500, 900, 3)]).astype(np.int32)
    wanted = find(codes, Targets.of_orders(6)).dependencies
    for seed in range(3):
        shuffled = np.ascontiguousarray(codes[:, rng.permutation(2000)])
        again = find(shuffled, Targets.of_orders(6), seed=seed).dependencies
        for part in ("contexts", "kind", "left", "right"):
            assert np.array_equal(getattr(wanted, part), getattr(again, part))


@pytest.mark.parametrize("attributes", [63, 64, 65, 129, 260])
def test_many_attributes(attributes: int) -> None:
    rng = np.random.default_rng(attributes)
    codes = rng.integers(0, 2, (attributes, 40)).astype(np.int32)
    codes[attributes - 1] = codes[0] * 2 + codes[1]
    found = find(codes, Targets.of_functional(attributes), max_context=2)
    listed = as_set(found)
    assert (frozenset([0, 1]), attributes - 1) in listed
    assert (frozenset([attributes - 1]), 0) in listed
    assert all(len(context) <= 2 for context, _ in listed)


def test_a_limit_leaves_what_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ALL_AT_ONCE", 0)
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, 30, 3000) for _ in range(12)]).astype(np.int32)
    whole = as_set(find(codes, Targets.of_orders(12)))
    calls = 0

    def stop(stage: str, share: float) -> None:
        nonlocal calls
        calls += 1
        if calls > 18:
            raise search.LimitReached("enough")

    found = search.find(
        codes, Targets.of_orders(12), ["c"] * 12, nulls="value", device=pick_device("cpu"), run=Run(progress=stop)
    )
    assert found.reached == "enough"
    assert found.undecided
    assert as_set(found) <= whole
    late = search.find(
        codes,
        Targets.of_orders(12),
        ["c"] * 12,
        nulls="value",
        device=pick_device("cpu"),
        run=Run(deadline=time.monotonic()),
    )
    assert late.reached == "time limit reached"
    assert not len(late.dependencies)


def test_a_limit_tells_which_sizes_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it comes: what is listed holds and is minimal, and of contexts of the sizes that are told all are."""
    strain(monkeypatch, "validated")
    rng = np.random.default_rng(6)
    codes = np.stack([rng.integers(0, v, 400) for v in (2, 3, 5, 9, 20, 30, 200)]).astype(np.int32)
    codes[6] = codes[5] // 3
    targets, device = Targets.of_orders(7), pick_device("cpu")
    whole = as_set(find(codes, targets))
    told = set()
    for way in (search, levelwise):
        names = [["c"] * 7] if way is search else []
        for most in range(0, 400, 5):
            calls = itertools.count()

            def stop(stage: str, share: float, most: int = most, calls: Any = calls) -> None:
                if next(calls) >= most:
                    raise search.LimitReached("enough")

            run = Run(progress=stop)
            found: FoundDependencies = way.find(codes, targets, *names, nulls="value", device=device, run=run)  # type: ignore[attr-defined]
            if found.reached is None:
                break
            listed, complete = as_set(found), found.complete_context
            assert listed <= whole
            assert {d for d in whole if len(d[0]) <= complete} <= listed
            told.add((way.__name__.rsplit(".", 1)[1], complete))
    assert told >= {("search", -1), ("search", 1)} | {("levelwise", size) for size in (-1, 0, 1, 2)}


def test_what_is_left_of_a_time_limit_is_for_small_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, v, 300) for i, v in enumerate((2, 5, 9, 40, 70))})
    relation = tw.load(frame.assign(c1=frame.c4 // 9, c2=-frame.c3 // 4))
    whole = as_set(found_of(discover.discover(relation, OdDiscoverOptions())))
    monkeypatch.setattr(discover, "SHARE_OF_LEVELS", 1.0)  # none is left for the search of all at once
    late = discover.discover(relation, OdDiscoverOptions(device="cpu", time_limit=60))
    assert (late.partial, late.complete_context, as_set(found_of(late))) == (False, None, whole)
    assert late.search["by_level"]["levels"]
    by_level = levelwise.find

    def two_levels(*given: Any, run: Any, **how: Any) -> FoundDependencies:
        found = by_level(*given, **{**how, "max_context": 1})
        return replace(found, reached=search.TIME_LIMIT, complete_context=1)

    monkeypatch.setattr(levelwise, "find", two_levels)
    some = discover.discover(relation, OdDiscoverOptions(device="cpu", time_limit=60))
    assert (some.partial, some.complete_context) == (True, 1)
    assert as_set(found_of(some)) == {d for d in whole if len(d[0]) <= 1}
    assert some.notes[-1].endswith(
        "undecided: all with sets of at most 1 column are listed (levels 0 to 1 are complete); of those with more each "
        "one listed holds and is minimal, others are missing"
    )
    found = FoundDependencies(some.dependencies.take(np.arange(2)), 3, {}, search.TIME_LIMIT, complete_context=0)
    early = FoundDependencies(some.dependencies, 0, {}, search.TIME_LIMIT, complete_context=1)
    both = discover.united(found, early)
    assert as_set(both) == as_set(found_of(some))
    assert (both.undecided, both.complete_context) == (3, 1)


def found_of(discovery: Discovery) -> FoundDependencies:
    return FoundDependencies(discovery.dependencies, 0, {}, None)


def test_samples_are_bounded() -> None:
    codes = np.stack([np.arange(100) % v for v in (2, 3)]).astype(np.int32)
    layout = search.clue_layout(2, ordered=True)
    table = LocalTable(
        codes, range(2), layout, nulls="value", device=pick_device("cpu"), run=Run(), pairs_a_row=2, sampled_rows=3
    )
    assert table.rows == 6
    assert table.sample().pairs == 3
    assert table.estimate_pairs(((0, 0),)) == 6


def test_estimates_leave_out_what_nulls_leave_out() -> None:
    codes = np.array([[-1, -1, 0, 0, 0]], dtype=np.int32)
    by_row = np.ascontiguousarray(np.concatenate([codes, np.arange(5, dtype=np.int32)[None]]).T)
    both: Column = [4, 3]
    columns = np.array([0], dtype=np.int64)
    assert [count_agreeing(by_row, columns, keep) for keep in (True, False)] == both


def test_wide_tables_need_a_bound() -> None:
    relation = tw.load(pd.DataFrame(np.zeros((3, 65), dtype=np.int64)))
    with pytest.raises(InputError, match=r"columns of the table: 65; allowed: 64 without a bound. Bound the search"):
        discover.discover(relation, OdDiscoverOptions())
    for bound in ({"max_context": 1}, {"time_limit": 60}):
        found = discover.discover(relation, OdDiscoverOptions(**bound))
        assert found.algorithm == "levelwise"
        assert len(found.dependencies) == 65
    assert discover.discover(relation.select(relation.column_names[:64]), OdDiscoverOptions()).algorithm == "hybrid"


@pytest.mark.parametrize("targets", [Targets.of_keys(), Targets.of_functional(4)], ids=["keys", "dependencies"])
def test_pairs_that_were_compared_but_not_learnt_decide_nothing(
    targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where time ends right after all pairs were compared."""
    codes = encode([[(c + 2) * i % 7 % (c + 2) for i in range(30)] for c in range(4)])
    compare = LocalTable._compare

    def slow(self: LocalTable, *given: Any) -> Any:
        compared = compare(self, *given)
        assert self._deadline is not None
        time.sleep(max(0.0, self._deadline - time.monotonic()))
        return compared

    monkeypatch.setattr(LocalTable, "_compare", slow)
    run = Run(deadline=time.monotonic() + 0.5)
    found = search.find(codes, targets, list("abcd"), nulls="value", device=pick_device("cpu"), run=run)
    assert found.reached == TIME_LIMIT
    assert len(found.dependencies) == 0
