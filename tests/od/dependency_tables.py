"""Random tables for keys, functional and order dependencies, and found ones as the oracle writes them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oracles import od as oracle

from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, KEY, Dependencies, Targets
from tuplewise.engine.od.found import FoundDependencies
from tuplewise.gpu_kernels.words import members

Column = list[int | None]


def random_table(rng: random.Random, most_columns: int = 5) -> list[Column]:
    """Ties, nulls, constants, duplicate rows and columns; 0, 1, 2 rows."""
    rows = rng.choice([0, 1, 2, 3, 5, 8, 10])
    columns: list[Column] = []
    for _ in range(rng.randint(1, most_columns)):
        values: Column = list(range(rng.choice([1, 2, 3, 9])))
        columns.append(rng.choices(values + [None] * rng.randint(0, 2), k=rows))
    if rng.random() < 0.2:
        columns[-1] = list(columns[0])
    if rows > 2 and rng.random() < 0.3:
        columns = [[*column[:-1], column[0]] for column in columns]
    return columns


def encode(columns: list[Column]) -> NDArray[np.int32]:
    codes = np.empty((len(columns), len(columns[0])), dtype=np.int32)
    for place, column in enumerate(columns):
        values = sorted({value for value in column if value is not None})
        codes[place] = [-1 if value is None else values.index(value) for value in column]
    return codes


def functional_and_keys(attributes: int) -> Targets:
    parts = Targets.of_functional(attributes), Targets.of_keys()
    return Targets(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("kind", "left", "right")))


def readable(dependencies: Dependencies, index: int) -> tuple[Any, ...]:
    """As the oracle has it; a key as a tuple of its context alone."""
    context = frozenset(members(dependencies.contexts[index]))
    kind, left, right = (int(a[index]) for a in (dependencies.kind, dependencies.left, dependencies.right))
    if kind == KEY:
        return (context,)
    if kind == CONSTANT:
        return context, left
    return context, left, right, oracle.ASCENDING if kind == ASCENDING else oracle.DESCENDING


def as_set(found: FoundDependencies) -> set[tuple[Any, ...]]:
    listed = [readable(found.dependencies, i) for i in range(len(found.dependencies))]
    assert len(set(listed)) == len(listed)
    return set(listed)
