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
