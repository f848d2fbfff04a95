"""Tables without any rule show none, and rules that are planted show the more, the more rows and the less noise.

Shuffling each column on its own keeps its values and takes away what it has to do with the others: what is shown then,
but keys of one column and constants, which are about one column, is chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tuplewise as tw

GOLDEN = ("airport", "cars", "gapminder", "iata", "planes", "seattle", "tax", "weather")
ROWS = (50, 300, 2000, None)
SHAPES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {}


def shape(make: Callable[[np.random.Generator], pd.DataFrame]) -> Callable[[np.random.Generator], pd.DataFrame]:
    SHAPES[make.__name__] = make
    return make


def named(columns: list[np.ndarray]) -> pd.DataFrame:
    return pd.DataFrame({f"c{i}": column for i, column in enumerate(columns)})


@shape
def skewed(rng: np.random.Generator) -> pd.DataFrame:
    return named([np.minimum(rng.zipf(exponent, 1500), 10**6) for exponent in (1.2, 1.3, 1.5, 1.8, 2.0, 2.5, 3.0, 4.0)])


@shape
def binary(rng: np.random.Generator) -> pd.DataFrame:
    return named([rng.random(800) < share for share in (0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.005, 0.5, 0.2, 0.01)])


@shape
def with_many_nulls(rng: np.random.Generator) -> pd.DataFrame:
    columns = []
    for share in (0.1, 0.3, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99):
        column = pd.Series(rng.integers(0, 30, 1000), dtype="Int64")
        column[rng.random(1000) < share] = pd.NA
        columns.append(column)
    return named(columns)


@shape
def wide(rng: np.random.Generator) -> pd.DataFrame:
    return named([rng.integers(0, int(rng.choice([2, 5, 20, 200, 5000])), 400) for _ in range(40)])


@shape
def tall(rng: np.random.Generator) -> pd.DataFrame:
    return named([rng.integers(0, int(rng.choice([2, 5, 20, 200, 5000, 10**6])), 10_000) for _ in range(20)])


@shape
def of_rare_values(rng: np.random.Generator) -> pd.DataFrame:
    """Columns that have one value but for a few rows, and columns that nearly are keys."""
    rare = [np.where(rng.random(2000) < share, rng.integers(1, 5, 2000), 0) for share in (0.002, 0.005, 0.01, 0.03)]
    return named([*rare, *(rng.integers(0, high, 2000) for high in (500, 2000, 20_000, 10**6))])


@shape
def few_rows(rng: np.random.Generator) -> pd.DataFrame:
    return named([rng.integers(0, high, 12) for high in (2, 2, 3, 4, 6, 12, 100, 1000)])


def shuffled(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame({name: column.to_numpy()[rng.permutation(len(frame))] for name, column in frame.items()})


def shown_by_chance(frame: pd.DataFrame) -> list[str]:
    """What is shown but keys of one column and constants."""
    found = tw.profile(frame)
    return [
        f"{rule.rule} ({rule.rows} rows, {rule.exceptions} exceptions, evidence {rule.evidence}, {rule.strength})"
        for rule in found.rules
        if rule.kind != "constant" and not (rule.kind == "key" and len(rule.columns["columns"]) == 1)
    ]


def random_tables(seeds: range, shared: Path, sizes: tuple[int | None, ...]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each golden table with its columns shuffled, at several sizes, and each made-up shape; by name."""
    for seed in seeds:
        for i, (name, make) in enumerate(SHAPES.items()):
            yield f"{name}, seed {seed}", make(np.random.default_rng([seed, i]))
        for i, name in enumerate(GOLDEN):
            frame = pd.read_csv(shared / f"data/golden/{name}.csv")
            for rows in sizes:
                rng = np.random.default_rng([seed, 100 + i, rows or 0])
                part = frame if rows is None else frame.iloc[rng.permutation(len(frame))[:rows]]
                yield f"{name}, {rows} rows, seed {seed}", shuffled(part, rng)


def test_columns_that_have_nothing_to_do_with_each_other_show_no_rule(shared: Path) -> None:
    shown = {name: shown_by_chance(frame) for name, frame in random_tables(range(1), shared, (50, 300))}
    assert {name: rules for name, rules in shown.items() if rules} == {}


@pytest.mark.slow
def test_at_most_one_in_a_hundred_shows_a_rule_by_chance(shared: Path) -> None:
    shown = {name: shown_by_chance(frame) for name, frame in random_tables(range(13), shared, ROWS)}
    assert len(shown) == 507
    by_chance = {name: rules for name, rules in shown.items() if rules}
    assert len(by_chance) <= len(shown) / 100, by_chance


NOISE = (0.0, 0.001, 0.005, 0.02, 0.1)
PLANTED_ROWS = (100, 1000, 10_000)


def planted(kind: str, count: int, noise: float, seed: int) -> pd.DataFrame:
    """A rule between a and b that so many rows break, the same ones of more noise too, beside three random columns."""
    rng = np.random.default_rng([seed, count])
    others = {f"x{i}": rng.integers(0, high, count) for i, high in enumerate((3, 12, 50))}
    broken = rng.permutation(count)[: int(np.ceil(noise * count))]
    if kind == "fd":
        a = rng.integers(0, 20, count)
        b, wrong = a * 7 % 13, (a * 7 + 1 + rng.integers(0, 12, count)) % 13
    elif kind == "od":
        a = rng.normal(0, 100, count).round(2)
        b, wrong = (a * 3 + 5).round(1), rng.normal(0, 300, count).round(1)
    elif kind == "key":
        a, b = np.arange(count) // 20, np.arange(count) % 20
        wrong = (b + 1) % 20
    else:
        a = rng.integers(0, 1000, count)
        b, wrong = a + rng.integers(0, 1000, count), a - 1 - rng.integers(0, 1000, count)
    b[broken] = wrong[broken]
    return pd.DataFrame({"a": a, "b": b, **others})


def score_of(kind: str, frame: pd.DataFrame) -> float:
    """The score of the rule that was planted; 0 where it isn't shown."""
    texts = {"fd": ("a -> b",), "od": ("[]: a ~ b",), "key": ("[a, b]",), "row": ("a <= b", "a < b")}[kind]
    return next((rule.score for rule in tw.profile(frame) if rule.rule in texts), 0.0)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["fd", "od", "key", "row"])
def test_planted_rules_score_more_with_more_rows_and_less_with_noise(kind: str, seed: int) -> None:
    scores = np.array(
        [[score_of(kind, planted(kind, count, noise, seed)) for noise in NOISE] for count in PLANTED_ROWS]
    )
    assert (scores[:, 0] > 0).all()
    assert (np.diff(scores, axis=1) <= 0).all(), scores
    assert (scores[1:, 0] > scores[1:, 1]).all(), scores
    # Near the least strength that is shown, the luck of a hundred rows decides whether a rule is shown at all.
    shown_with_more = scores[1:] > 0
    assert (np.diff(scores, axis=0) > 0)[shown_with_more].all(), scores
    assert (scores[-1] > 0).sum() >= 2
