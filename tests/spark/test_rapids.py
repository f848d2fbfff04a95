"""What of all that Spark plans the RAPIDS Accelerator would leave to the CPU, by its own words, against our list.

All that is asked of a session with the plugin is asked of one: it takes ten seconds to start.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from explain_only import TABLE, assert_as_here

from tuplewise.engine.spark.gpu_plans import STAYS_ON_CPU, Line, entry_of, lines_of, summary
from tuplewise.spark_conf.plugin import rapids_jar

PROGRAM = Path(__file__).with_name("explain_plans.py")
ONLY_ON_CPU = {"frame_ntz", "frame_failfast"}
"""Frames that callers hand over, with what no GPU reads."""
Plans = dict[str, list[list[Line]]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("explain_only") / "pay.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory, table: str) -> dict[str, Any]:
    """What the program found in its session."""
    if rapids_jar() is None:
        pytest.skip("the RAPIDS jar is neither at TUPLEWISE_RAPIDS_JAR nor in the Maven cache")
    folder = tmp_path_factory.mktemp("tables")
    command = [sys.executable, str(PROGRAM), str(folder), table]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def explained(printed: dict[str, Any]) -> Plans:
    """What the plugin says of each plan, by what was done: the plan's name and what it was about."""
    return {case: [[Line(**line) for line in plan] for plan in plans] for case, plans in printed["plans"].items()}


def plan_of(case: str) -> str:
    """The plan's name: a case is called "od discover by 9"."""
    words = case.split()
    return " ".join(words[: 1 if words[0] in ("load", "encode") else 2])


def about(explained: Plans, *plans: str) -> list[list[Line]]:
    return [plan for case, own in explained.items() if plan_of(case) in plans for plan in own]


def says(plan: list[Line], what: str) -> str:
    return " ".join(line.says for line in plan if line.name == what)


@pytest.mark.rapids
@pytest.mark.spark
def test_what_stays_on_the_cpu_is_listed(explained: Plans) -> None:
    assert {plan_of(case) for case in explained} == {
        "load", "encode", "dc check", "dc discover", "od discover", "ind discover", "ind state",
    }  # fmt: skip
    for case, plans in explained.items():
        assert plans, f"{case}: nothing was planned"
        if case.split()[-1] in ONLY_ON_CPU:
            continue
        assert any(line.on_gpu and line.kind == "Exec" for plan in plans for line in plan), case
        for line in (line for plan in plans for line in plan if not line.on_gpu):
            assert entry_of(line, plan_of(case)) is not None, f"{case}: {line}"


@pytest.mark.rapids
@pytest.mark.spark
def test_what_is_listed_does_stay_on_the_cpu(explained: Plans) -> None:
    for entry in STAYS_ON_CPU:
        for plan in entry.plans:
            lines = [line for one in about(explained, plan) for line in one if not line.on_gpu]
            assert any(entry_of(line, plan) is entry for line in lines), f"{plan} never has {entry}"


@pytest.mark.rapids
@pytest.mark.spark
@pytest.mark.parametrize(
    ("case", "why"),
    [("frame_failfast", "GpuCSVScan only supports Permissive CSV parsing"), ("frame_ntz", "TimestampNTZ")],
)
def test_what_a_caller_leaves_to_the_cpu_is_unexpected(explained: Plans, case: str, why: str) -> None:
    found = summary("load", explained[f"load {case}"])
    assert not all(one.listed for one in found.on_cpu)
    assert any(why in one.why for one in found.on_cpu if not one.listed), found.on_cpu


@pytest.mark.rapids
@pytest.mark.spark
def test_rows_are_sent_to_tiles_on_the_gpu(explained: Plans) -> None:
    kernels = [plan for plan in about(explained, "dc check", "dc discover") if says(plan, "MapInArrowExec")]
    assert kernels
    for plan in kernels:
        assert "will partially run on GPU" in says(plan, "MapInArrowExec")
    assert any("will run" in says(plan, "HashPartitioning") for plan in kernels)


@pytest.mark.rapids
@pytest.mark.spark
def test_contexts_are_put_in_classes_and_sorted_on_the_gpu(explained: Plans) -> None:
    kernels = [plan for plan in about(explained, "od discover") if says(plan, "MapInArrowExec")]
    assert all("will partially run on GPU" in says(plan, "MapInArrowExec") for plan in kernels)
    for what in ("RangeExec", "HashPartitioning", "RangePartitioning"):
        assert any("will run" in says(plan, what) for plan in kernels), what


@pytest.mark.rapids
@pytest.mark.spark
def test_encoding_has_no_single_partition(explained: Plans) -> None:
    plans = about(explained, "encode")
    windows = [plan for plan in plans if says(plan, "WindowExec")]
    assert windows
    assert not [plan for plan in windows if says(plan, "SinglePartition$")]
    assert any(says(plan, "RangePartitioning") for plan in plans)


@pytest.mark.rapids
@pytest.mark.spark
def test_held_frames_are_explained_and_read_on_the_gpu(explained: Plans) -> None:
    reading = [plan for plan in about(explained, "dc check") if says(plan, "InMemoryTableScanExec")]
    assert reading
    assert all(line.on_gpu for plan in reading for line in plan if line.name == "InMemoryTableScanExec")
    assert any(says(plan, "FileSourceScanExec") for plan in about(explained, "encode"))


@pytest.mark.rapids
@pytest.mark.spark
def test_answers_are_those_of_the_laptop(spark: Any, printed: dict[str, Any], table: str) -> None:
    """Of work in one process on tables that Spark loads; `test_explain_only` has the rest."""
    assert_as_here(printed, table, "driver")


def test_the_words_of_the_plugin_are_read() -> None:
    text = (
        "!Exec <CollectLimitExec> cannot run on GPU because it is off\n"
        "  @Partitioning <SinglePartition$> could run on GPU\n"
        "  *Exec <ProjectExec> will run on GPU\n"
        "    *Expression <Alias> a#1 AS b#2 will run on GPU\n"
        "      ! <UnknownExec> cannot run on GPU because GPU does not currently support the operator class X\n"
    )
    lines = lines_of(text)
    assert [(line.name, line.on_gpu) for line in lines] == [
        ("CollectLimitExec", False), ("ProjectExec", True), ("Alias", True), ("UnknownExec", False),
    ]  # fmt: skip
    found = summary("load", [lines])
    assert (found.queries, found.on_gpu) == (1, 1)
    assert [(one.operator, one.listed) for one in found.on_cpu] == [("CollectLimitExec", False), ("UnknownExec", False)]
    assert found.to_dict()["on_cpu"] == [asdict(one) for one in found.on_cpu]


def test_each_entry_has_its_reason() -> None:
    for entry in STAYS_ON_CPU:
        assert entry.operator.endswith("Exec")
        assert entry.says
        assert entry.plans
        assert len(entry.why) > 20, entry
