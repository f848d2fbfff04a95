"""On a cluster of other processes: the same figures as in this one, and the truth about the device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import on_cluster
import pytest
from cluster_tables import Twice
from loopback import GPU_CONF, Cluster, Driver

pytestmark = pytest.mark.cluster
RULES = "zip -> city; not(t.city == u.city and t.pay > u.pay and t.rate < u.rate and t.city != 'C')"


@pytest.fixture(scope="module")
def driver(cluster: Cluster) -> Iterator[Driver]:
    """Its executors have a GPU each, says Spark; its session is open."""
    with cluster.driver("same", GPU_CONF) as started:
        ran = started.call(on_cluster.open_here)
        assert len(ran["executor"]) == 2
        assert ran["driver"] not in ran["python"]
        assert set(ran["gpu"]) <= {"0", "1"}
        yield started


def both(driver: Driver, function: Callable[..., Any], table: Twice, *given: Any, **named: Any) -> list[dict[str, Any]]:
    """What is found in this process, and by the driver in tasks."""
    here = function(table.table, *given, run_on="driver", **named)
    return [here, driver.call(function, table.path, *given, run_on="spark", **named)]


def same(here: dict[str, Any], there: dict[str, Any], *names: str) -> None:
    for name in names:
        assert json.dumps(here[name]) == json.dumps(there[name]), name


def test_rules_checked(driver: Driver, places_twice: Twice) -> None:
    here, there = both(driver, on_cluster.check_rules, places_twice, RULES)
    assert [rule["violating_pairs"] > 0 for rule in here["rules"]] == [False, True]
    same(here, there, "rules")


def test_constraints_by_few_pairs(driver: Driver, places_twice: Twice, tmp_path: Path) -> None:
    narrow = Twice.of(places_twice.table.select(["zip", "tax", "rate"]), tmp_path / "table.parquet")
    here = on_cluster.discover_dcs(narrow.table, "evidence", "driver")
    there = driver.call(on_cluster.discover_dcs, narrow.path, "hybrid", "spark")
    assert here["count"] > 5
    same(here, there, "constraints", "count", "pairs", "predicate_space")
    assert there["search"]["column_sets"]
    assert there["search"]["validated"] > 0


@pytest.mark.parametrize("error", ["0", "0.01"])
def test_constraints_by_all_pairs(driver: Driver, places_twice: Twice, error: str) -> None:
    here, there = both(driver, on_cluster.discover_dcs, places_twice, "evidence", error=error, nulls="value")
    assert here["count"] > 5
    same(here, there, *here.keys() - {"device", "device_reason"})


def test_order_dependencies(driver: Driver, days_twice: Twice) -> None:
    here, shuffled = both(driver, on_cluster.discover_ods, days_twice)
    shared = driver.call(on_cluster.discover_ods, days_twice.path, "spark", tile_rows=10_000)
    assert here["count"] > 5
    for there in (shuffled, shared):
        same(here, there, "constant", "order_compatible")
        assert there["search"]["validated"] > 0


def test_order_dependencies_checked(driver: Driver, days_twice: Twice) -> None:
    ods = ["week -> month", "left desc -> week", "day, week -> left"]
    found = both(driver, on_cluster.check_ods, days_twice, ods)
    here, there = ([one["holds"] for one in told["ods"]] for told in found)
    assert here == there
    assert set(here) == {True, False}


@pytest.mark.parametrize("what", ["fds", pytest.param("keys", marks=pytest.mark.slow)])
def test_functional_dependencies_and_keys(driver: Driver, days_twice: Twice, what: str) -> None:
    here, there = both(driver, getattr(on_cluster, f"discover_{what}"), days_twice)
    same(here, there, what, "count", "measure")
    assert here["count"] > 0


def test_inclusion_dependencies(driver: Driver, shop: dict[str, Twice], tmp_path: Path) -> None:
    tables, paths = ({name: getattr(one, how) for name, one in shop.items()} for how in ("table", "path"))
    here = on_cluster.discover_inds(tables, "driver")
    there = driver.call(on_cluster.discover_inds, paths, "spark")
    same(here, there, "inds", "trivial", "count")
    inds = ["orders.customer <= customers.id", "customers.id <= orders.customer"]
    checked = on_cluster.check_inds(tables, inds, "driver")
    assert driver.call(on_cluster.check_inds, paths, inds, "spark") == checked
    assert [one["holds"] for one in checked] == [True, False]
    kept = driver.call(on_cluster.keep_inds, paths, "customers", str(tmp_path / "state"))
    assert len(kept["built"]) == here["count"] > 3
    assert "orders.customer <= customers.id" in kept["lost"]
    assert kept["gained"] == kept["lost"]
    assert kept["rows"] == {"orders": 900, "customers": 300}


def test_a_fault_of_the_caller_is_told_as_in_process(driver: Driver, tmp_path: Path) -> None:
    asked = on_cluster.check_rules, str(tmp_path / "missing.parquet"), RULES, "spark"
    kind, text = driver.call(on_cluster.fault_of, *asked)
    assert kind == "InputError"
    assert "no such file" in text


def on_devices(places: Twice, days: Twice) -> dict[str, partial[dict[str, Any]]]:
    """Calls whose kernels run in tasks; `device` is left to be said."""
    return {
        "rules": partial(on_cluster.check_rules, places.path, RULES, "spark"),
        "all pairs": partial(on_cluster.discover_dcs, places.path, "evidence", "spark"),
        "orders": partial(on_cluster.check_ods, days.path, ["week -> month"], "spark"),
        "keys": partial(on_cluster.discover_keys, days.path, "spark"),
    }


@pytest.mark.parametrize(
    "name", ["all pairs", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rules", "orders", "keys"))]
)
def test_a_gpu_that_a_task_is_given_and_cannot_use(
    driver: Driver, places_twice: Twice, days_twice: Twice, name: str
) -> None:
    asked = on_devices(places_twice, days_twice)[name]
    found = driver.call(asked, device="auto")
    assert found["device"] == "cpu"
    assert found["device_reason"].startswith("kernels run in the tasks of Spark (spark://127.0.0.1:")
    reason = found["device_reason"].partition("): ")[2]
    assert "numba-cuda isn't installed" in reason or "driver" in reason, "what each task was told"
    kind, text = driver.call(on_cluster.fault_of, asked, device="cuda")
    assert kind == "DeviceError"
    assert text.startswith("in a task of Spark: device: 'cuda:")
    assert reason[1:] in text
    assert "\n" not in text
