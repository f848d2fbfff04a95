"""Approximate constraints from few pairs are those that all pairs say: random tables, errors, options and seeds."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuplewise.engine.dc import approximate
from tuplewise.engine.dc.approximate import FAILURE, find, most_in_sample
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import build_space
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import pick_device

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from dc_tables import encode, random_table

TABLES = 30
EVERY_WAY: dict[str, tuple[dict[str, float], set[str]]] = {  # prices, and the ways of counting that they lead to
    "mixed": (
        {"SECONDS_A_WEIGHTED_PAIR": 0.0, "MOST_COMBINATIONS": 5, "SECONDS_A_ROW": 1e-6},
        {"few", "column_sets", "validated"},
    ),
    "regions": ({"SECONDS_A_CHECKED_ROW": 1e3, "MOST_COMBINATIONS": 0}, {"column_sets"}),
    "checks": ({"SECONDS_A_ROW": 1e6, "CHECKED_AT_ONCE": 3, "MOST_COMBINATIONS": 0}, {"validated"}),
}


def options_of(rng: random.Random) -> DcDiscoverOptions:
    cross = rng.random() < 0.5
    return DcDiscoverOptions(
        error=Decimal(rng.choice(["0.003", "0.01", "0.03", "0.1", "0.3", "0.6"])),
        cross_columns=cross,
        single_tuple=cross and rng.random() < 0.4,
        nulls=rng.choice(["unknown", "value"]),
        minimality=rng.choice(["implication", "implication", "subset"]),
        max_predicates=rng.choice([None, None, 2, 3]),
        shared_values=Decimal(0),
        seed=rng.randrange(5),
        device="cpu",
    )


def relation_of(rng: random.Random) -> Relation:
    types = rng.choices(["integer", "decimal", "date", "boolean", "text"], k=rng.choice([1, 2, 2, 3, 3, 4]))
    rows = rng.randint(8, 45)
    return encode(
        random_table(
            rng.randrange(10**9), rows=rows, types=types, values=rng.randint(2, 7),
            null_share=rng.choice([0, 0, 0.2]), repeat_share=rng.choice([0, 0.3]),
        )
    )  # fmt: skip


def found_in(relation: Relation, options: DcDiscoverOptions, draws: int) -> FoundConstraints:
    """What the search finds with a sample of so many pairs, even if there are hardly more."""
    space = build_space(relation, options)
    return find(relation, space, device=pick_device("cpu"), run=Run(options), lap=lambda _: None, draws=draws)


def assert_same(found: ConstraintArrays, right: ConstraintArrays) -> None:
    for name in ("predicates", "sizes", "violations", "one_row"):
        assert np.array_equal(getattr(found, name), getattr(right, name)), name


@pytest.fixture(autouse=True)
def always_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuplewise.engine.dc.estimate.compares_all", lambda rows, pairs: False)


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("block", [0, 1, *(pytest.param(b, marks=pytest.mark.slow) for b in range(2, 40))])
def test_the_search_finds_what_all_pairs_say(block: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prices, ways = EVERY_WAY[way]
    for name, value in prices.items():
        monkeypatch.setattr(approximate, name, value)
    counted: dict[str, int] = {"column_sets": 0, "validated": 0, "violated": 0, "constraints": 0, "few": 0}
    for case in range(TABLES):
        rng = random.Random(f"{block}, {case}")
        relation, options = relation_of(rng), options_of(rng)
        right = discover(relation, replace(options, algorithm="evidence"))
        found = found_in(relation, options, max(rng.choice([40, 200, 1000]), int(6 / options.error)))
        assert found.reached is None
        assert_same(found.arrays, right.arrays)
        assert found.search is not None
        assert found.search["undecided"] == 0
        counted["constraints"] += len(right.arrays)
        counted["violated"] += found.search["violated"]
        counted["validated"] += found.search["validated"]
        counted["column_sets"] += len(found.search["column_sets"])
        counted["few"] += found.search["few_values"]["decided"]
    assert counted["constraints"] > TABLES
    assert counted["violated"] > TABLES
    used = {name for name in ("few", "column_sets", "validated") if counted[name]}
    assert used <= ways
    assert len(used) >= min(2, len(ways))


def test_constraints_at_the_very_bound() -> None:
    """Many constraints with exactly as many violations as allowed, or one more: no sample tells them apart."""
    rows = 60
    columns: list[tuple[str, str, list[Any]]] = []
    for number, twins in enumerate([3, 4, 5, 3, 4, 5]):  # columns of which so many pairs of rows are equal
        values = list(range(rows - twins)) + list(range(twins))
        random.Random(number).shuffle(values)
        columns.append((f"c{number}", "text", [f"{value:02}" for value in values]))
    relation = encode(columns)
    for twins in (3, 4, 5):
        error = Decimal(2 * twins) / Decimal(rows * (rows - 1))
        error = error.quantize(Decimal("1e-12"), rounding="ROUND_UP")
        options = DcDiscoverOptions(error=error, cross_columns=False, device="cpu")
        right = discover(relation, replace(options, algorithm="evidence"))
        found = found_in(relation, options, 300)
        assert_same(found.arrays, right.arrays)
        keys = [int(n) for n, size in zip(found.arrays.violations, found.arrays.sizes, strict=True) if size == 1]
        assert sorted(keys) == sorted(2 * t for t in (3, 4, 5, 3, 4, 5) if t <= twins)


def test_every_seed_finds_the_same() -> None:
    rng = random.Random(5)
    relation = relation_of(rng)
    options = DcDiscoverOptions(error=Decimal("0.05"), shared_values=Decimal(0), device="cpu")
    right = discover(relation, replace(options, algorithm="evidence"))
    assert len(right.arrays)
    for seed in range(30):
        assert_same(found_in(relation, replace(options, seed=seed), 150).arrays, right.arrays)


@pytest.mark.parametrize("draws", [50, 1000, 100_000])
@pytest.mark.parametrize("error", ["0.001", "0.02", "0.4"])
def test_a_constraint_that_holds_is_hardly_ever_above_the_bound(draws: int, error: str) -> None:
    """Exact tails: pairs that violate in both orders spread most, as a binomial; others less."""
    constraints = 1000
    most = most_in_sample(Decimal(error), draws, math.log(constraints))
    p = float(error)
    if most >= 2 * draws:
        return
    above = range(most // 2 + 1, draws + 1)  # drawn pairs, of two violations each, beyond the bound
    logs = [
        math.lgamma(draws + 1) - math.lgamma(k + 1) - math.lgamma(draws - k + 1)
        + k * math.log(p) + (draws - k) * math.log1p(-p)
        for k in above
    ]  # fmt: skip
    assert sum(math.exp(one) for one in logs) <= FAILURE / constraints
    assert most >= 2 * p * draws
    assert most_in_sample(Decimal(error), draws, 0.0) <= most


def test_a_time_limit_lists_what_is_counted() -> None:
    rng = random.Random(11)
    relation = relation_of(rng)
    options = DcDiscoverOptions(error=Decimal("0.05"), time_limit=1e-9, device="cpu")
    found = found_in(relation, options, 500)
    assert found.reached is not None
    assert found.reached.startswith("time limit reached")
    assert not len(found.arrays)


def test_listed_before_a_limit_are_some_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that comes after some rounds: what is listed holds and is minimal."""
    rng = random.Random(23)
    relation = relation_of(rng)
    options = DcDiscoverOptions(error=Decimal("0.02"), shared_values=Decimal(0), device="cpu")
    right = discover(relation, replace(options, algorithm="evidence"))
    every = {tuple(one) for one in right.arrays.predicates.tolist()}
    partial = 0
    for calls in range(1, 12):
        run = Run(options)
        left = [calls]

        def over(left: list[int] = left) -> bool:
            left[0] -= 1
            return left[0] < 0

        monkeypatch.setattr(run, "over", over)
        space = build_space(relation, options)
        found = find(relation, space, device=pick_device("cpu"), run=run, lap=lambda _: None, draws=100)
        width = right.arrays.predicates.shape[1]
        for one in found.arrays.predicates.tolist():
            assert (*one, *[-1] * (width - len(one))) in every
        partial += found.reached is not None
    assert partial


def test_what_the_search_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="algorithm with error_measure 'lift': 'hybrid'"):
        DcDiscoverOptions(error=Decimal("0.1"), error_measure="lift", algorithm="hybrid")
    with pytest.raises(InputError, match="algorithm with error above 0: 'hydra'"):
        DcDiscoverOptions(error=Decimal("0.1"), algorithm="hydra")
