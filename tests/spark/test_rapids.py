"""What of loading, encoding and checking the RAPIDS Accelerator would leave to the CPU, by its own ExplainPlan."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tuplewise.engine.spark.session import rapids_jar

PROGRAM = Path(__file__).with_name("explain_plans.py")

# All that stays on the CPU. Parquet, ORC and CSV without doubled quotes: nothing (the hand-over to Python is no part
# of the plan). Doubled quotes, as RFC 4180 has them, need an escape that the plugin's CSV scan doesn't know; and where
# the scan is the CPU's, so is what asks it for file names.
STAYS_ON_CPU = {
    "csv_doubled": {
        "FileSourceScanExec": "does not support modified escape chars",
        "ProjectExec": "may get incorrect file name",
    },
    # Small tables of the driver's, sent to all tasks: splits, heavy groups, where blocks go. Nothing that grows with
    # the rows. The kernels run in Python, which the GPU feeds ("partially").
    "check": {"LocalTableScanExec": "does not currently support the operator class"},
    "orders": {"LocalTableScanExec": "does not currently support the operator class"},
    # A few witnesses are taken from the tasks that find them; the plugin leaves that to the CPU, unless told otherwise.
    "discover": {
        "LocalTableScanExec": "does not currently support the operator class",
        "CollectLimitExec": "disabled by default",
    },
}


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    jar = rapids_jar()
    if jar is None:
        pytest.skip("the RAPIDS jar is neither at TUPLEWISE_RAPIDS_JAR nor in the Maven cache")
    folder = tmp_path_factory.mktemp("tables")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(jar), str(folder)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[list[str]]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.rapids
@pytest.mark.spark
def test_plans_stay_on_the_gpu(explained: dict[str, list[list[str]]]) -> None:
    assert {case.split()[0] for case in explained} == {
        "check", "discover", "orders", "inclusions", "parquet", "orc", "csv", "csv_quoted", "csv_doubled",
    }  # fmt: skip
    for case, plans in explained.items():
        allowed = STAYS_ON_CPU.get(case.split()[0], {})
        assert len(plans) >= (2 if case.endswith("in-process") else 6)
        for line in (line for plan in plans for line in plan if line.startswith("!")):
            assert any(f"<{what}>" in line and why in line for what, why in allowed.items()), f"{case}: {line}"


@pytest.mark.rapids
@pytest.mark.spark
def test_rows_are_sent_to_tiles_on_the_gpu(explained: dict[str, list[list[str]]]) -> None:
    plans = [plan for case, plans in explained.items() if case.startswith(("check", "discover")) for plan in plans]
    kernels = [plan for plan in plans if any("<MapInArrowExec>" in line for line in plan)]
    assert kernels
    for plan in kernels:
        assert "*Exec <MapInArrowExec> will partially run on GPU" in "\n".join(plan)
        assert any("HashPartitioning" in line and "will run" in line for line in plan)


@pytest.mark.rapids
@pytest.mark.spark
def test_contexts_are_put_in_classes_and_sorted_on_the_gpu(explained: dict[str, list[list[str]]]) -> None:
    kernels = [plan for plan in explained["orders"] if any("<MapInArrowExec>" in line for line in plan)]
    assert all("*Exec <MapInArrowExec> will partially run on GPU" in "\n".join(plan) for plan in kernels)
    for what in ("<RangeExec>", "HashPartitioning", "RangePartitioning"):
        assert any(what in line and "will run" in line for plan in kernels for line in plan), what


@pytest.mark.rapids
@pytest.mark.spark
def test_encoding_has_no_single_partition(explained: dict[str, list[list[str]]]) -> None:
    plans = [plan for case, plans in explained.items() if case.endswith("in Spark") for plan in plans]
    windows = [plan for plan in plans if any("<WindowExec>" in line for line in plan)]
    assert windows
    assert not [line for plan in windows for line in plan if "SinglePartition" in line]
    assert any("RangePartitioning" in line for plan in plans for line in plan)
