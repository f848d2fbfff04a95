"""On a cluster of other processes: the same figures as in this one, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback import Loopback, loopback_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # five processes: a minute and more
HERE = Path(__file__).parent


def belonging_to(folder: Path) -> list[str]:
    """Processes that were started for a cluster: its folder stands in their command or their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            said = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if process.pid != psutil.Process().pid and any(str(folder) in part for part in said):
            found.append(" ".join(process.cmdline())[:200])
    return found


@pytest.mark.parametrize("fails", [False, True])
def test_rules_checked_on_a_cluster(tmp_path: Path, fails: bool) -> None:
    rng = np.random.default_rng(5)
    rows = 1200
    table = pa.table(
        {
            "zip": rng.integers(0, 40, rows),
            "city": pa.array(np.array(["A", "B", "C"])[(rng.random(rows) ** 3 * 3).astype(int)]),  # one heavy group
            "pay": rng.integers(0, 500, rows),
            "rate": pa.array(rng.integers(0, 50, rows), mask=rng.random(rows) < 0.05),
        }
    )
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=300)
    folder = tmp_path / "cluster"
    folder.mkdir()
    if fails:
        with pytest.raises(AssertionError, match=r"check_on_cluster\.py ended with 1: (?s:.*)no such file"):  # noqa: SIM117
            with loopback_cluster(folder) as cluster:
                cluster.run(HERE / "check_on_cluster.py", str(tmp_path / "missing.parquet"))
    else:
        with loopback_cluster(folder) as cluster:
            assert len(belonging_to(folder)) == 3
            check_there(cluster, tmp_path / "table.parquet")
    assert belonging_to(folder) == []


def check_there(cluster: Loopback, path: Path) -> None:
    found = cluster.run(HERE / "check_on_cluster.py", str(path))
    assert len(found["executors"]) == 2
    assert found["driver_process"] not in found["python"]
    here, there = found["driver"], found["spark"]
    assert [rule["violating_pairs"] > 0 for rule in here] == [True] * 2
    for a, b in zip(here, there, strict=True):
        assert {k: v for k, v in a.items() if k != "plan"} == {k: v for k, v in b.items() if k != "plan"}


def test_constraints_found_on_a_cluster(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    rows = 600
    codes = (rng.random(rows) ** 3 * 40).astype(np.int64)  # some heavy groups
    pay = rng.integers(0, 300, rows)
    table = pa.table(
        {
            "zip": codes,
            "city": pa.array(np.array(["A", "B", "C"])[codes % 3]),
            "pay": pay,
            "tax": pay // 7,
            "id": pa.array(rng.permutation(rows), mask=rng.random(rows) < 0.05),
        }
    )
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=150)
    folder = tmp_path / "cluster"
    folder.mkdir()
    with loopback_cluster(folder) as cluster:
        found = cluster.run(HERE / "discover_on_cluster.py", str(tmp_path / "table.parquet"))
    assert belonging_to(folder) == []
    here, there = found["driver"], found["spark"]
    assert here["count"] > 5
    assert here["constraints"] == there["constraints"]
    assert there["search"]["column_sets"]
    assert there["search"]["validated"] > 0


def test_order_dependencies_found_on_a_cluster(tmp_path: Path) -> None:
    rows = 400
    v = np.random.default_rng(8).permutation(rows)
    table = pa.table(
        {
            "week": v // 9,
            "month": pa.array(v // 36, mask=v < 36),
            "day": v % 7,
            "left": 50 - v // 10,
            "site": np.where(v % 40 == 0, v % 3, 5),  # one heavy group
        }
    )
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=100)
    folder = tmp_path / "cluster"
    folder.mkdir()
    with loopback_cluster(folder) as cluster:
        found = cluster.run(HERE / "order_on_cluster.py", str(tmp_path / "table.parquet"))
    assert belonging_to(folder) == []
    assert found["driver"]["count"] > 5
    for way in ("shared", "shuffled"):
        for name in ("constant", "order_compatible"):
            assert found[way][name] == found["driver"][name]
        assert found[way]["search"]["validated"] > 0


def test_inclusion_dependencies_on_a_cluster(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    names = [f"n{i}" for i in range(300)]
    customers = pa.table({"id": np.arange(300), "region": rng.integers(0, 9, 300), "name": names})
    orders = pa.table({"customer": rng.integers(0, 300, 900), "region": rng.integers(0, 9, 900), "by": ["n1"] * 900})
    for name, table in (("orders", orders), ("customers", customers)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100)
    folder = tmp_path / "cluster"
    folder.mkdir()
    with loopback_cluster(folder) as cluster:
        paths = [str(tmp_path / name) for name in ("orders.parquet", "customers.parquet", "state")]
        found = cluster.run(HERE / "ind_on_cluster.py", *paths)
    assert belonging_to(folder) == []
    for name in ("inds", "trivial", "count"):
        assert found["driver"][name] == found["spark"][name]
    assert len(found["built"]) == found["driver"]["count"] > 3
    assert "orders.customer <= customers.id" in found["lost"]
    assert found["gained"] == found["lost"]
    assert found["rows"] == {"orders": 900, "customers": 300}
