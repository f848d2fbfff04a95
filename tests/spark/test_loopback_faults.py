"""On a cluster: workers and executors that are lost in mid-job, tasks that fail and tasks that run twice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import on_cluster
import pytest
from cluster_tables import Twice
from loopback import GPU_CONF, Cluster, Driver, wait_until
from watched import Call, calls

pytestmark = pytest.mark.cluster
RULES = "not(t.city == u.city and t.pay > u.pay and t.rate < u.rate)"
BEFORE_THE_FAULT = 2  # tiles that are done by then
# Every task that takes longer than most gets a second attempt
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.efficiency.enabled": "false",
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(scope="module")
def driver(cluster: Cluster, watched: Path) -> Iterator[Driver]:
    with cluster.driver("faults", {**GPU_CONF, "spark.executorEnv.WATCHED_FOLDER": str(watched)}) as started:
        assert len(started.call(on_cluster.open_here)["executor"]) == 2
        yield started


@pytest.fixture
def folder(watched: Path) -> Path:
    for path in watched.iterdir():
        path.unlink()
    return watched


JOBS = {
    "all pairs": (partial(on_cluster.discover_dcs, algorithm="evidence", error="0.01"), "constraints"),
    "rules": (partial(on_cluster.check_rules, rules=RULES, count_only=True), "rules"),
}


def lose_in_mid_job(driver: Driver, folder: Path, places: Twice, job: str, lose: Callable[[int], None]) -> None:
    """The answer is that of this process, and only what the lost executor had done or begun was begun anew."""
    asked, name = JOBS[job]
    (folder / "hold").write_text(str(BEFORE_THE_FAULT))
    driver.begin(on_cluster.watching, asked, places.path, run_on="spark")
    wait_until(lambda: len(calls(folder, "done")) >= BEFORE_THE_FAULT and len(held(folder)) == 2)
    lost = held(folder)[0]
    lose(lost.process)
    before = calls(folder, "begun")
    (folder / "hold").unlink()
    found = driver.answer()
    assert json.dumps(found[name]) == json.dumps(asked(places.table, run_on="driver")[name])
    mine = {call.tile for call in before if call.executor == lost.executor}
    kept = {call.tile for call in before if call.executor != lost.executor}
    assert mine
    assert kept
    begun = defaultdict(list)
    for call in calls(folder, "begun"):
        begun[call.tile].append(call)
    assert {tile for tile, each in begun.items() if len(each) > 1} <= mine - kept
    assert len(begun[lost.tile]) == 2
    assert begun.keys() == {call.tile for call in calls(folder, "done")}


def held(folder: Path) -> list[Call]:
    """One call that is begun and not done for each executor."""
    done = {call.attempt for call in calls(folder, "done")}
    running = {call.executor: call for call in calls(folder, "begun") if call.attempt not in done}
    return list(running.values())


def test_a_lost_worker_costs_its_tiles(cluster: Cluster, driver: Driver, folder: Path, places_twice: Twice) -> None:
    lose_in_mid_job(driver, folder, places_twice, "all pairs", cluster.lose_worker)
    cluster.start_workers(1)
    wait_until(lambda: len(driver.call(on_cluster.who_runs)["executor"]) == 2)


@pytest.mark.slow
def test_a_lost_executor_costs_its_tiles(cluster: Cluster, driver: Driver, folder: Path, places_twice: Twice) -> None:
    lose_in_mid_job(driver, folder, places_twice, "rules", cluster.lose_executor)
    wait_until(lambda: len(driver.call(on_cluster.who_runs)["executor"]) == 2)


@pytest.fixture(scope="module")
def twice_driver(driver: Driver) -> Driver:
    """With a session of its own, in which tasks may run twice."""
    driver.call(on_cluster.close_here)
    driver.call(on_cluster.open_here, **SPECULATION)
    return driver


@pytest.mark.parametrize("job", JOBS)
def test_what_runs_twice_counts_once(twice_driver: Driver, folder: Path, places_twice: Twice, job: str) -> None:
    asked, name = JOBS[job]
    (folder / "fail").touch()
    (folder / "slow").touch()
    found = twice_driver.call(on_cluster.watching, asked, places_twice.path, run_on="spark")
    assert json.dumps(found[name]) == json.dumps(asked(places_twice.table, run_on="driver")[name])
    assert not {path.name for path in folder.iterdir()} & {"fail", "slow"}
    attempts = defaultdict(set)
    for call in calls(folder, "begun"):
        attempts[call.tile].add(call.attempt)
    assert sum(len(each) > 1 for each in attempts.values()) >= 2, "one failed, one was slow"
