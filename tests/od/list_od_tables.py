"""Small tables for tests of list order dependencies, and what a complete discovery of one would have found."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from oracles import od as oracle

from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, Dependencies, mask_of
from tuplewise.engine.od.implied import SavedOds
from tuplewise.engine.od.list_od import ListOd, OrderedColumn
from tuplewise.engine.table.relation import Column, Relation

Values = list[list[int | None]]

NAMES = ("M", "W", "DT", "AT", "ET", "MTOW", "CAP", "Type", "MC")
FLIGHTS: Values = [
    [1, 1, 1, 1, 1, 2],
    [2, 2, 3, 3, 4, 6],
    [734, 734, 734, 905, 622, 1010],
    [1022, 846, 846, 1210, 717, 1140],
    [168, 72, 72, 185, 55, 90],
    [233, 233, 233, 242, 89, 83],
    [253, 253, 253, 293, 204, 185],
    [330, 330, 330, 330, 738, 321],
    [1, 1, 1, 1, 2, 1],
]
"""The flight table of Li et al., "Efficient Set-based Order Dependency Discovery with a Level-wise Hybrid Strategy",
ICDE 2023, table I; types and countries by numbers in the order of their texts."""


def random_values(seed: int, columns: int, most_rows: int = 7) -> Values:
    """Columns of few values with ties and nulls; some follow another one, up or down, some are constant."""
    rng = random.Random(seed)
    rows = rng.choice([0, 1, 2, *range(3, most_rows + 1)])
    table: Values = []
    for _ in range(columns):
        values: list[int | None] = [rng.randrange(rng.choice([1, 2, 3, 6])) for _ in range(rows)]
        if table and rng.random() < 0.5:
            step, like = rng.choice([1, 2]), rng.choice(table)
            turned = rng.choice([1, -1])
            values = [None if v is None else turned * (v // step) for v in like]
        if rng.random() < 0.3:
            values = [None if rng.random() < 0.2 else v for v in values]
        table.append(values)
    return table


def relation_of(table: Values, names: Sequence[str] | None = None) -> Relation:
    """The table encoded, columns c0, c1, ... or as named."""
    names = names or [f"c{i}" for i in range(len(table))]
    values = sorted({v for column in table for v in column if v is not None})
    rank = {value: code for code, value in enumerate(values)}
    codes = np.array([[-1 if v is None else rank[v] for v in column] for column in table], dtype=np.int32)
    codes = codes.reshape(len(table), len(table[0]))
    columns = tuple(
        Column(name, "integer", "given", len({*column} - {None}), column.count(None))
        for name, column in zip(names, table, strict=True)
    )
    return Relation("table", None, columns, codes, {"number": pa.array(values, type=pa.int64())})


def discovered(table: Values, names: Sequence[str] | None = None, *, max_context: int | None = None) -> SavedOds:
    """All minimal set-based order dependencies, by definition."""
    constants, pairs = oracle.minimal_ods(table, max_context=max_context)
    kinds = {oracle.ASCENDING: ASCENDING, oracle.DESCENDING: DESCENDING}
    rows = [(context, CONSTANT, attribute, -1) for context, attribute in constants]
    rows += [(context, kinds[direction], left, right) for context, left, right, direction in pairs]
    return SavedOds(names or [f"c{i}" for i in range(len(table))], dependencies_of(rows), max_context=max_context)


def dependencies_of(rows: Sequence[tuple[frozenset[int], int, int, int]]) -> Dependencies:
    """Dependencies (context, kind, left, right) of up to 64 columns as arrays."""
    return Dependencies(
        np.array([mask_of(sorted(context), 1) for context, *_ in rows], dtype=np.uint64).reshape(len(rows), 1),
        np.array([kind for _, kind, _, _ in rows], dtype=np.int8),
        np.array([left for _, _, left, _ in rows], dtype=np.int32),
        np.array([right for *_, right in rows], dtype=np.int32),
    )


def list_od(left: Sequence[tuple[int, bool]], right: Sequence[tuple[int, bool]], names: Sequence[str]) -> ListOd:
    """A dependency of lists by position, with names."""
    sides = (tuple(OrderedColumn(names[c], "asc" if up else "desc") for c, up in side) for side in (left, right))
    return ListOd(*sides)
