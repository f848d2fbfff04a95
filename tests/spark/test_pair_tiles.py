"""All pairs compared in Spark's tasks: byte for byte what one process finds, however the triangle is cut."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from held import unread

import tuplewise as tw
from tuplewise.engine.cli import main as cli
from tuplewise.engine.errors import DeviceError, LimitReached
from tuplewise.engine.spark import jobs, pair_tiles
from tuplewise.engine.spark.pair_tiles import CountedClues, bucket_of, count_pairs
from tuplewise.engine.spark.resources import devices_of_tasks, gpu_number, kernel_resources, kernel_tasks, together
from tuplewise.gpu_kernels.evidence import ClueSet, collect_clues
from tuplewise.gpu_kernels.evidence_tiles import PairTriangle, pair_triangle
from tuplewise.gpu_kernels.words import make_layout

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
ROWS = "".join(f"{i // 2},{i % 7},{'AB'[i % 3 // 2]},{(i * 37) % 19},{i * 3 % 19 or ''}\n" for i in range(60))


@pytest.fixture
def places(tmp_path: Path) -> str:
    path = tmp_path / "places.csv"
    path.write_text("id,zip,city,pay,rate\n" + ROWS)
    return str(path)


@pytest.fixture
def many_tiles(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Small tables are cut as large ones are; how often that was done."""
    asked: list[int] = []

    def cut(*given: Any, **how: Any) -> CountedClues:
        asked.append(1)
        return count_pairs(*given, **{**how, "least_pairs": 200})

    monkeypatch.setattr(pair_tiles, "count_pairs", cut)
    return asked


def same(one: ClueSet, other: ClueSet) -> bool:
    assert one.counts is not None
    assert other.counts is not None
    return (one.clues.tobytes(), one.counts.tobytes(), one.ordered_pairs) == (
        other.clues.tobytes(), other.counts.tobytes(), other.ordered_pairs,
    )  # fmt: skip


def triangle(rows: int, seed: int = 0) -> tuple[PairTriangle, ClueSet]:
    codes = np.random.default_rng(seed).integers(-1, 6, (4, rows)).astype(np.int32)
    layout = make_layout([(0, 0, 0, True), (1, 2, 0, True), (3, 3, 0, False), (0, 1, 1, True)])
    return pair_triangle(codes, layout), collect_clues(codes, layout, device="cpu")


@pytest.mark.parametrize(("rows", "least_pairs"), [(2, 1), (3, 1), (70, 100), (70, 10**9), (1500, 10**5)])
def test_clues_are_those_of_one_process(spark: Any, rows: int, least_pairs: int) -> None:
    pairs, here = triangle(rows)
    shares: list[float] = []
    found = count_pairs(spark, pairs, device="cpu", least_pairs=least_pairs, progress=shares.append)
    assert same(found.clues, here)
    assert found.device == "cpu"
    assert found.device_reason == f"kernels run in the tasks of Spark ({spark.sparkContext.master}): asked for"
    assert all(0 <= share <= 1 for share in shares)


def test_clues_meet_in_one_bucket_and_are_spread() -> None:
    clues = np.random.default_rng(1).integers(0, 4**20, (5000, 2)).astype(np.uint64)
    buckets = bucket_of(clues, 7)
    assert np.bincount(buckets, minlength=7).min() > 500
    order = np.random.default_rng(2).permutation(5000)
    assert (bucket_of(clues[order], 7) == buckets[order]).all()
    assert (bucket_of(clues, 1) == 0).all()


@pytest.mark.parametrize("error", [0.0, 0.02])
def test_constraints_are_those_of_one_process(places: str, error: float, many_tiles: list[int]) -> None:
    asked: dict[str, Any] = {"algorithm": "evidence", "error": error, "device": "cpu"}
    here, there = (tw.discover_dcs(places, run_on=way, **asked).to_dict() for way in ("driver", "spark"))
    assert here["result"]["count"] > 5
    assert here["result"] == there["result"]
    assert unread(here["tables"]) == unread(there["tables"])
    assert here["notes"] == there["notes"]
    assert (there["options"]["run_on"], len(many_tiles)) == ("spark", 1)
    assert there["device_reason"].startswith("kernels run in the tasks of Spark")


def test_approximate_constraints_by_command(places: str, tmp_path: Path, many_tiles: list[int]) -> None:
    out = tmp_path / "found.json"
    argv = ["dc", "discover", places, "--error", "0.05", "--format", "json", "-o", str(out)]
    assert cli.run([*argv, "--run-on", "spark"]) == 0
    there = json.loads(out.read_text())
    assert cli.run(argv) == 0
    here = json.loads(out.read_text())
    for document in (here, there):  # why all pairs are compared: there is no choice in Spark's tasks
        assert document["result"].pop("algorithm_reason").startswith("auto: compares all pairs of rows once")
    assert here["result"] == there["result"]
    assert len(many_tiles) == 1


@pytest.mark.parametrize("rows", ["", "1,x\n", "1,x\n1,y\n"])
def test_hardly_any_rows(tmp_path: Path, rows: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + rows)
    here, there = (
        tw.discover_dcs(str(tmp_path / "t.csv"), algorithm="evidence", run_on=way)  # type: ignore[arg-type]
        for way in ("driver", "spark")
    )
    assert here.to_dict()["result"] == there.to_dict()["result"]
    assert here.notes == there.notes


def test_a_time_limit_ends_the_tasks(places: str, spark: Any) -> None:
    pairs, _ = triangle(20)
    with pytest.raises(TimeoutError):
        count_pairs(spark, pairs, deadline=time.monotonic() - 1)
    late = tw.discover_dcs(places, algorithm="evidence", run_on="spark", time_limit=1e-3)
    assert late.partial
    assert len(late) == 0
    assert any("while pairs were compared: no constraint is proven" in note for note in late.notes)


def test_what_progress_raises_ends_the_tasks(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "TELL_SECONDS", 0.01)
    monkeypatch.setattr(pair_tiles, "WAVES", 50)

    def full(share: float) -> None:
        raise LimitReached("memory limit of 1 bytes reached")

    pairs, _ = triangle(3000)
    with pytest.raises(LimitReached, match="memory limit"):
        count_pairs(spark, pairs, least_pairs=10**4, progress=full)
    assert not spark.sparkContext._jsc.sc().statusTracker().getActiveJobIds()
    tracker = spark.sparkContext.statusTracker()
    ended = tracker.getJobInfo(max(tracker.getJobIdsForGroup(None)))
    tiles = tracker.getStageInfo(min(ended.stageIds))
    assert ended.status == "FAILED"
    assert tiles.numCompletedTasks < tiles.numTasks
    assert not spark.sparkContext.getJobTags()


def test_a_gpu_that_tasks_lack_is_one_error(places: str, spark: Any) -> None:
    """Before any row is read."""
    for algorithm in ("evidence", "hybrid"):
        with pytest.raises(DeviceError, match=r"^in a task of Spark: device: 'cuda'; allowed: a GPU that") as raised:
            tw.discover_dcs(places, algorithm=algorithm, run_on="spark", device="cuda")  # type: ignore[arg-type]
        assert "\n" not in str(raised.value)
    assert devices_of_tasks(spark, "auto")[0] == "cpu"


class Elsewhere:
    """As much of a session on a cluster as resources are read from."""

    def __init__(self, **conf: str) -> None:
        named = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
        context = SimpleNamespace(isLocal=lambda: False)
        self.sparkContext = SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: context), getConf=lambda: named, defaultParallelism=32
        )


def test_what_a_stage_of_kernels_asks_for() -> None:
    whole = Elsewhere(executor_cores="8", executor_resource_gpu_amount="1")
    asked = kernel_resources(whole)  # type: ignore[arg-type]
    assert asked is not None
    assert {name: one.amount for name, one in asked.taskResources.items()} == {"cpus": 8.0, "gpu": 1.0}
    assert kernel_tasks(whole, asked) == 4  # type: ignore[arg-type]
    two = kernel_resources(Elsewhere(executor_cores="8", executor_resource_gpu_amount="2"))  # type: ignore[arg-type]
    assert two is not None
    assert two.taskResources["cpus"].amount == 4.0
    for conf in (
        {"executor_cores": "8"},
        {"executor_resource_gpu_amount": "1"},
        {"executor_cores": "8", "executor_resource_gpu_amount": "1", "dynamicAllocation_enabled": "true"},
    ):
        assert kernel_resources(Elsewhere(**conf)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["engine.errors.DeviceError", "gpu_kernels.device.OutOfDeviceMemory"])
def test_a_device_that_fails_in_a_task_is_one_line(spark: Any, name: str) -> None:
    trace = f"Traceback\n  File x\ntuplewise.{name}: device 'cuda:0': no room; Use device 'cpu'.\n\tat org.apache.spark"
    with pytest.raises(DeviceError) as raised, jobs.until(spark, None):
        raise RuntimeError(trace)
    assert str(raised.value) == "in a task of Spark: device 'cuda:0': no room; Use device 'cpu'."


def test_gpus_by_their_addresses(spark: Any) -> None:
    known = {("2", None): 2, ("3", "1, 3"): 1, ("1", "0,1"): 1, ("0", "GPU-a"): 0, ("GPU-b", "GPU-a,GPU-b"): 1}
    assert {given: gpu_number(*given) for given in known} == known
    with pytest.raises(DeviceError, match=r"none that a task sees: '5'; allowed: 2,3"):
        gpu_number("5", "2,3")
    assert kernel_resources(spark) is None, "local mode has no resource scheduling"
    assert together("there", {("cuda:0 A", "x"), ("cpu", "y")}) == ("cpu, cuda:0 A", "there: x; y")
    assert together("there", set()) == ("cpu", "there")
