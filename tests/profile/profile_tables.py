"""Tables for tests of profiles: lists of columns, as oracles and as relations have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

import tuplewise as tw
from tuplewise.engine.options import Nulls, ProfileOptions
from tuplewise.engine.profile.rows import CountedRelation
from tuplewise.engine.profile.table import TableHere
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import pick_device

Table = list[list[Any]]

CPU = pick_device("cpu")


def relation_of(table: Sequence[Sequence[Any]], names: Sequence[str] | None = None) -> Relation:
    """The table encoded, columns c0, c1, ... or as named."""
    names = names or [f"c{i}" for i in range(len(table))]
    return tw.load(pa.table({name: pa.array(column) for name, column in zip(names, table, strict=True)}))


def numbers_of(table: Sequence[Sequence[int | None]]) -> Relation:
    """The same of whole numbers, also where a column has none."""
    return tw.load(pa.table({f"c{i}": pa.array(column, type=pa.int64()) for i, column in enumerate(table)}))


def table_of(relation: Relation, run: Run | None = None, **options: Any) -> TableHere:
    """A relation as the search takes it."""
    return TableHere(relation, ProfileOptions(**options), CPU, run or Run())


def rows_of(table: Sequence[Sequence[int | None]], nulls: Nulls = "unknown") -> CountedRelation:
    return CountedRelation(numbers_of(table), nulls, CPU)


def without_none(table: Table, value: Any = -1) -> Table:
    """Nulls as values: a value of their own, lower than all others."""
    return [[value if v is None else v for v in column] for column in table]


@st.composite
def tables(draw: st.DrawFn, columns: int = 3, most_rows: int = 12, nulls: bool = True) -> Table:
    """Whole numbers from 0, of few and of many kinds, so that there are ties, keys, constants, and all-null columns."""
    count = draw(st.integers(0, most_rows))
    table: Table = []
    for _ in range(columns):
        value = st.integers(0, draw(st.sampled_from([0, 1, 2, 5, 30])))
        column = draw(st.lists(st.none() | value if nulls else value, min_size=count, max_size=count))
        table.append(column)
    return table


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({name: np.asarray(values) for name, values in columns.items()})
