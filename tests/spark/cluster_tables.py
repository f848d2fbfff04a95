"""Tables of the tests on a cluster: as they are, for what is done in this process, and as files of several parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Twice:
    """A table, and the path of a Parquet file that holds it."""

    table: pa.Table
    path: str

    @classmethod
    def of(cls, table: pa.Table, path: Path) -> Twice:
        pq.write_table(table, path, row_group_size=len(table) // 3)
        return cls(table, str(path))


def make_places(path: Path) -> Twice:
    """Some rules hold in it, some don't; heavy groups, and nulls."""
    rng = np.random.default_rng(6)
    rows = 600
    codes = (rng.random(rows) ** 3 * 40).astype(np.int64)
    pay = rng.integers(0, 300, rows)
    columns = {
        "zip": codes,
        "city": pa.array(np.array(["A", "B", "C"])[codes % 3]),
        "pay": pay,
        "tax": pay // 7,
        "rate": pa.array(rng.integers(0, 50, rows), mask=rng.random(rows) < 0.05),
    }
    return Twice.of(pa.table(columns), path)


def make_days(path: Path) -> Twice:
    """Orders hold in it; a heavy group, and nulls."""
    rows = 400
    v = np.random.default_rng(8).permutation(rows)
    columns = {
        "week": v // 9,
        "month": pa.array(v // 36, mask=v < 36),
        "day": v % 9,
        "left": 50 - v // 10,
        "site": np.where(v % 40 == 0, v % 3, 5),
    }
    return Twice.of(pa.table(columns), path)


def make_shop(folder: Path) -> dict[str, Twice]:
    """Two tables; columns of the one are included in the other's."""
    rng = np.random.default_rng(9)
    customers = {"id": np.arange(300), "region": rng.integers(0, 9, 300), "name": [f"n{i}" for i in range(300)]}
    orders = {"customer": rng.integers(0, 300, 900), "region": rng.integers(0, 9, 900), "by": ["n1"] * 900}
    return {
        "orders": Twice.of(pa.table(orders), folder / "orders.parquet"),
        "customers": Twice.of(pa.table(customers), folder / "customers.parquet"),
    }
