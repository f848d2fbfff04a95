"""Keys and functional dependencies of tables of more than 64 columns, whose sets take several words."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dependency_tables import Column, as_set, encode, functional_and_keys
from numpy.typing import NDArray
from oracles import wide as oracle

import tuplewise as tw
from benchmarks.wide_tables import joined_dimensions
from tuplewise.engine.od import discover, near_rows, search, wide_search
from tuplewise.engine.od.dependency import Targets
from tuplewise.engine.od.found import FoundDependencies
from tuplewise.engine.options import FdDiscoverOptions, KeyDiscoverOptions
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.gpu_kernels.clusters import all_rows
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.near_pairs import nearest_pairs


def wide_table(rng: random.Random, *, varying: int | None) -> list[Column]:
    """A table of 65 to 200 columns and few rows; all columns vary, or so many of them."""
    rows, width = rng.randint(2, 6), rng.randint(65, 80 if varying is None else 200)
    free = set(range(width)) if varying is None else set(rng.sample(range(width), varying))
    columns: list[Column] = []
    for place in range(width):
        values: Column = list(range(rng.choice([2, 3, 9]))) if place in free else [0]
        nulls: Column = [None] * rng.choice([0, 0, 1])
        columns.append(rng.choices(values + (nulls if place in free else []), k=rows))
    if varying is not None and rng.random() < 0.5:
        columns[rng.choice(sorted(free))] = [None] * rows
    return columns


@pytest.mark.parametrize("way", ["all at once", "near rows first", "near rows missed"])
@pytest.mark.parametrize("nulls", ["value", "unknown"])
@pytest.mark.parametrize("seed", range(2))
def test_dependencies_are_those_of_the_definition(
    seed: int, nulls: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way != "all at once":
        monkeypatch.setattr(search, "ALL_AT_ONCE", -1)
        monkeypatch.setattr(search, "SAMPLED_ROWS", 2)
    if way == "near rows missed":
        none = np.zeros((0, 2), dtype=np.int32)
        monkeypatch.setattr(search, "pairs_of_near_rows", lambda *given, **how: none)
    rng = random.Random(seed)
    for bound in (None, 0, 1, 2):
        columns = wide_table(rng, varying=8 if bound is None else None)
        codes, names = encode(columns), [f"c{i}" for i in range(len(columns))]
        found = search.find(
            codes, functional_and_keys(len(codes)), names, nulls=nulls, device=pick_device("cpu"), max_context=bound
        )
        assert (found.reached, found.undecided) == (None, 0)
        assert as_set(found) == oracle.minimal_dependencies(columns, nulls, 99 if bound is None else bound)


def like_columns(rows: int = 4, width: int = 66) -> tuple[list[Column], tw.Table]:
    rng = random.Random(5)
    columns: list[Column] = [rng.choices([0, 1], k=rows) for _ in range(width)]
    return columns, tw.load(pd.DataFrame({f"c{i}": column for i, column in enumerate(columns)}))


def of_definition(columns: list[Column]) -> set[Any]:
    return {d for d in oracle.minimal_dependencies(columns, "value", 99) if len(d) == 2}


def listed(found: Any) -> set[Any]:
    return as_set(FoundDependencies(found.dependencies, 0, {}, None))


def test_without_a_bound_all_are_found() -> None:
    columns, relation = like_columns()
    found = discover.discover(relation, FdDiscoverOptions(nulls="value", device="cpu"))
    assert (found.partial, found.algorithm) == (False, "hybrid")
    assert listed(found) == of_definition(columns)
    keys = discover.discover(relation, KeyDiscoverOptions(nulls="value", device="cpu"))
    assert listed(keys) == {d for d in oracle.minimal_dependencies(columns, "value", 99) if len(d) == 1}


@pytest.mark.parametrize(("candidates", "complete"), [(100, 0), (2_000, 1), (6_000, 1)])
def test_the_shortest_are_listed_where_memory_ends(
    candidates: int, complete: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    columns, relation = like_columns()
    monkeypatch.setattr(wide_search, "MOST_BYTES", 16 * candidates)
    monkeypatch.setattr(wide_search, "MANY_DEPENDENCIES", 1_000)
    found = discover.discover(relation, FdDiscoverOptions(nulls="value", device="cpu"))
    assert (found.partial, found.complete_context) == (True, complete)
    assert f"limit of {candidates:,} candidates reached" in found.notes[-1]
    whole = of_definition(columns)
    assert len(whole) > candidates
    assert listed(found) <= whole
    assert listed(found) >= {d for d in whole if len(d[0]) <= complete}
    sizes = np.bitwise_count(found.dependencies.contexts).sum(axis=1).tolist()
    assert sizes == sorted(sizes)
    assert max(sizes) <= complete + 1
    if candidates > 100:
        assert "candidates for functional dependencies are to be expected; max_context=K makes fewer" in caplog.text


@pytest.mark.parametrize("levelwise", [False, True])
def test_small_sets_are_searched_where_time_ends(levelwise: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, relation = like_columns()
    monkeypatch.setattr(wide_search, "MOST_LEVELWISE_COLUMNS", len(columns) - (not levelwise))
    of_all = search.find
    given: list[int | None] = []

    def slow(*table: Any, max_context: int | None, run: Run, **how: Any) -> FoundDependencies:
        given.append(max_context)
        found = of_all(*table, max_context=2 if max_context is None else max_context, run=run, **how)
        return replace(found, reached=TIME_LIMIT, complete_context=-1) if max_context in (None, 2) else found

    monkeypatch.setattr(search, "find", slow)
    found = discover.discover(relation, FdDiscoverOptions(nulls="value", device="cpu", time_limit=600))
    if levelwise:
        assert (given, found.partial) == ([None], False)
        assert listed(found) == of_definition(columns)
        return
    assert given == [None, 0, 1, 2]
    assert (found.partial, found.complete_context) == (True, 1)
    assert listed(found) == {d for d in of_definition(columns) if len(d[0]) <= 2}


def test_joined_dimensions_have_few_dependencies() -> None:
    """Few minimal contexts, though a sample of pairs leaves far more of them than can be listed."""
    table = joined_dimensions(50_000, columns=66, seed=1)
    found = discover.discover(tw.load(table), FdDiscoverOptions(nulls="value", device="cpu"))
    assert not found.partial
    assert 300 < len(found.dependencies) < 1_000
    assert found.search["violated"] < len(found.dependencies)
    keys = discover.discover(tw.load(table), KeyDiscoverOptions(nulls="value", device="cpu"))
    names = [{table.column_names[c] for c in key} for (key,) in listed(keys)]
    assert {"id"} in names
    assert {"lot", "place"} in names
    assert len(names) < 10


# ---------------------------------------------------------------- pairs of near rows


@pytest.mark.parametrize("unknown", [False, True])
def test_nearest_pairs_differ_on_fewest_attributes(unknown: bool) -> None:
    rng = np.random.default_rng(3)
    for width in (1, 63, 64, 65, 130):
        codes = rng.integers(-1 if unknown else 0, 3, size=(width, 30)).astype(np.int32)
        attributes = rng.random(width) < 0.8
        everything = np.arange(30, dtype=np.int32)
        pairs, complete = nearest_pairs(
            codes, [partial(all_rows, everything)] * 2, unknown=unknown, attributes=attributes, any_attribute=True
        )
        assert complete
        columns: list[Column] = [[None if code < 0 else code for code in column] for column in codes.tolist()]
        nulls = "unknown" if unknown else "value"
        apart = {(t, u): oracle.apart(columns, t, u, nulls) for t, u in itertools.combinations(range(30), 2)}
        kept = [tuple(pair) for pair in pairs.tolist()]
        assert kept == sorted(set(kept))
        assert set(kept) <= set(apart)
        assert min(len(apart[pair]) for pair in kept) == min(map(len, apart.values()))
        for a in np.flatnonzero(attributes).tolist():
            violating = [pair for pair in apart if oracle.splits(columns[a], *pair, nulls)]
            if violating:
                least = min(len(apart[pair]) for pair in violating)
                assert least == min(len(apart[pair]) for pair in kept if pair in violating)


def test_column_sets_are_ones_that_few_pairs_agree_on() -> None:
    rng = np.random.default_rng(1)
    codes = np.stack([rng.permutation(4_000), *(rng.integers(0, 8, 4_000) for _ in range(9))]).astype(np.int32)
    chosen = near_rows.column_sets(codes, False, 0)
    assert len(chosen) == near_rows.TIMES_FIRST * 9
    for columns in chosen:
        assert 0 not in columns  # no rows agree on it
        same = np.unique(codes[columns], axis=1, return_counts=True)[1]
        assert 0 < np.sum(same * (same - 1) // 2) <= near_rows.PAIRS_A_ROW * 4_000


def test_pairs_of_near_rows_violate_what_they_are_kept_for() -> None:
    rng = np.random.default_rng(2)
    codes: NDArray[np.int32] = rng.integers(0, 2, size=(70, 200)).astype(np.int32)
    codes[:, 100] = codes[:, 99]
    codes[7, 100] ^= 1
    pairs = near_rows.pairs_of_near_rows(codes, Targets.of_functional(70), unknown=False, seed=0, deadline=None)
    assert [99, 100] in pairs.tolist()
