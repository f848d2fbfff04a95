"""Small tables for tests of constraints: seeded random ones, and encoding of Python lists into a Relation."""

from __future__ import annotations

import csv
import datetime
import itertools
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from oracles.dc import sort_key

from tuplewise.engine.dc.constraint import OPERATORS
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, Column, Domain, Relation
from tuplewise.gpu_kernels.words import ACROSS

if TYPE_CHECKING:
    from tuplewise.engine.dc.inversion import ConstraintArrays
    from tuplewise.engine.dc.predicate import PredicateSpace

Table = list[tuple[str, str, list[Any]]]


def encode(table: Table, name: str = "table") -> Relation:
    """A Relation of Python columns; dictionaries are ascending, one a domain."""
    rows = len(table[0][2]) if table else 0
    codes = np.full((len(table), rows), -1, dtype=np.int32)
    dictionaries: dict[Domain, pa.Array] = {}
    for domain in {DOMAIN_OF_TYPE[t] for _, t, _ in table}:  # type: ignore[index]
        members = [i for i, (_, t, _) in enumerate(table) if DOMAIN_OF_TYPE[t] == domain]  # type: ignore[index]
        by_key = {sort_key(v): v for i in members for v in table[i][2] if v is not None}
        ranks = {key: rank for rank, key in enumerate(sorted(by_key))}
        values = [by_key[key] for key in ranks]
        if any(isinstance(v, Decimal) for v in values):
            values = [Decimal(v) for v in values]
        dictionaries[domain] = pa.array(values) if values else pa.array([], type=pa.string())
        for i in members:
            codes[i] = [-1 if v is None else ranks[sort_key(v)] for v in table[i][2]]
    columns = tuple(
        Column(n, t, "given", len({sort_key(v) for v in vs if v is not None}), sum(v is None for v in vs))  # type: ignore[arg-type]
        for n, t, vs in table
    )
    codes.setflags(write=False)
    return Relation(name=name, path=None, columns=columns, codes=codes, dictionaries=dictionaries)


POOLS: dict[str, Sequence[Any]] = {
    "integer": (-3, -2, -1, 1, 2, 3, 4, 40, 2**62),
    "decimal": (Decimal("-1.5"), Decimal("1.0"), Decimal("2.0"), Decimal("2.5"), Decimal("30.25")),
    "double": (float("nan"), float("inf"), -0.0, 0.0, 1.5, 2.5, -7.25, 30.0),
    "date": tuple(datetime.date(2024, 1, d) for d in (1, 2, 3, 4)),
    "timestamp": tuple(datetime.datetime(2024, 1, 1, h) for h in (0, 1, 2)),
    "boolean": (False, True),
    "text": ("", "a", "B", "b", "ä", "z z"),
}


def random_table(
    seed: int,
    *,
    rows: int,
    types: Sequence[str],
    values: int = 4,
    fewest: int = 1,
    null_share: float = 0.0,
    repeat_share: float = 0.2,
) -> Table:
    """Columns c0, c1, ... drawn from `fewest` to `values` values each: ties, constants and equal rows."""
    rng = random.Random(seed)
    pools = []
    for t in types:
        pool = list(POOLS[t])
        rng.shuffle(pool)
        pools.append(pool[: rng.randint(fewest, values)])
    table_rows: list[list[Any]] = []
    for _ in range(rows):
        if table_rows and rng.random() < repeat_share:
            table_rows.append(list(rng.choice(table_rows)))
        else:
            table_rows.append([None if rng.random() < null_share else rng.choice(p) for p in pools])
    return [(f"c{i}", t, [row[i] for row in table_rows]) for i, t in enumerate(types)]


def groups(space: PredicateSpace) -> list[tuple[int, int, str, bool]]:
    """A space's groups as the oracle writes them."""
    scopes = ["across" if s == ACROSS else "within" for s in space.scope]
    return list(zip(space.left.tolist(), space.right.tolist(), scopes, space.ordered.tolist(), strict=True))


def constraints(space: PredicateSpace, arrays: ConstraintArrays) -> dict[tuple[Any, ...], int]:
    """Constraints as the oracle writes them, with violations, in order."""
    listed = groups(space)
    found = {}
    for row, count in zip(arrays.predicates.tolist(), arrays.violations.tolist(), strict=True):
        numbers = [p for p in row if p >= 0]
        key = tuple((*listed[space.predicate_group[p]][:3], OPERATORS[space.predicate_operator[p]]) for p in numbers)
        found[key] = count
    assert len(found) == len(arrays)
    return found


def read_table(path: Path, *, rows: int | None = None, encoding: str = "utf-8", sep: str = ",") -> Table:
    """A CSV file whose header names types in brackets; an empty field is null. Read without the project's loader."""
    with path.open(encoding=encoding, newline="") as file:
        reader = csv.reader(file, delimiter=sep)
        header = next(reader)
        lines = list(itertools.islice(reader, rows))
    table: Table = []
    for name, cells in zip(header, zip(*lines, strict=True), strict=True):
        number = name.endswith(("(Integer)", "(Long)"))
        values = [None if c == "" else int(c) if number else c for c in cells]
        table.append((name, "integer" if number else "text", values))
    return table
