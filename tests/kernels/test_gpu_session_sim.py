"""The prepared session for a borrowed GPU, with Numba's simulator in place of one: all steps that run kernels.

Run as `NUMBA_ENABLE_CUDASIM=1 python -m pytest -m cuda tests/kernels`: set before numba is imported.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from benchmarks import gpu_session  # noqa: E402

STEPS = [step.name for step in gpu_session.STEPS if step.name not in ("sanitizer", "device-tests", "evidence-100000")]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_finds_no_fault(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = gpu_session.main(["--device", "cuda", "--smoke", "--only", name, "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert done == 0, said
    assert said.startswith("device: cuda:0 simulator")
    assert "skipped" not in said
    records = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    timed = [record for record in records if record.get("implementation") == "cpu"]
    assert all("cuda_times_faster" in record["figures"] for record in timed)
    assert bool(timed) == (not name.startswith("check-") and name != "sizes")
