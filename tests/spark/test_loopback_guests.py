"""On a cluster: callers' sessions stay as they were, drivers don't disturb each other, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import guest
import on_cluster
import psutil
import pyspark
import pytest
from cluster_tables import Twice
from loopback import Cluster, Driver, belonging_to, wait_until

pytestmark = pytest.mark.cluster


def test_a_session_of_the_caller_stays_as_it_was(cluster: Cluster, places_twice: Twice, days_twice: Twice) -> None:
    with cluster.driver("guest") as driver:
        told = driver.call(guest.call_with_own_session, places_twice.path, days_twice.path)
    for before, after in zip(told["before"], told["after"], strict=True):
        for name, state in before.items():
            assert after[name] == state, name
    session = told["before"][0]
    assert session["active"]
    assert session["tables"] == [("days", False), ("places", True)]
    assert session["persisted"]
    assert session["tags"] == ["my-tag"]
    assert told["rows"] == places_twice.table.num_rows
    assert told["found"]["constraints"] > 5


def listening(driver: Driver) -> set[tuple[str, str, int]]:
    """Addresses at which a driver and what it started can be reached: name of the process, host, port."""
    own = psutil.Process(driver.process.pid)
    return {
        (process.name(), connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for process in (own, *own.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def test_a_session_that_is_stopped_leaves_nothing(cluster: Cluster, places_twice: Twice) -> None:
    others = belonging_to(cluster.folder)
    pyspark_files = sorted(path.name for path in Path(pyspark.__file__).parent.iterdir())
    with cluster.driver("leaving") as driver:
        before = driver.call(guest.process_state)
        assert not listening(driver)
        driver.call(on_cluster.open_here)
        opened = listening(driver)
        assert len(opened) >= 3
        assert {host for _, host, _ in opened} == {"127.0.0.1"}
        driver.call(on_cluster.check_rules, places_twice.path, guest.RULES, "spark")
        driver.call(on_cluster.close_here)
        assert driver.call(guest.process_state) == before
        assert len(listening(driver)) == 1, "the JVM's, for Python"
        assert driver.end() == 0
        assert {path.name for path in driver.folder.iterdir()} == {"log", "tmp", "local"}
        assert not list((driver.folder / "tmp").iterdir())
        assert not list((driver.folder / "local").iterdir())
        assert driver.log == ""
    wait_until(lambda: sorted(belonging_to(cluster.folder)) == sorted(others))
    assert sorted(path.name for path in Path(pyspark.__file__).parent.iterdir()) == pyspark_files


@pytest.mark.slow
def test_two_drivers_at_once(cluster: Cluster, places_twice: Twice) -> None:
    known: dict[str, Any] = on_cluster.discover_dcs(places_twice.table, "evidence", "driver")
    with cluster.driver("one") as one, cluster.driver("other") as other:
        for driver in (one, other):
            driver.begin(on_cluster.open_here)
        workers = [driver.answer()["executor"] for driver in (one, other)]
        assert [len(each) for each in workers] == [2, 2]
        assert not set(workers[0]) & set(workers[1])
        for driver in (one, other):
            driver.begin(on_cluster.discover_dcs, places_twice.path, "evidence", "spark")
        assert [driver.answer()["constraints"] for driver in (one, other)] == [known["constraints"]] * 2
