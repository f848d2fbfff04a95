"""The prepared session for a borrowed GPU can be tried without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import gpu_order, gpu_refine, gpu_session
from benchmarks.gpu_records import Session
from benchmarks.gpu_refine import timed_cases
from tuplewise.gpu_kernels.device import pick_device

ROOT = Path(__file__).resolve().parents[2]


def test_it_tries_itself_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_session.main(["--device", "cpu", "--smoke", "--out", str(tmp_path)]) == 0
    assert "0 faults" in capsys.readouterr().out
    entries = [json.loads(line) for line in (tmp_path / "gpu_evidence.jsonl").read_text().splitlines()]
    timed = [entry for entry in entries if "cold_seconds" in entry]
    assert [entry["complete"] for entry in timed] == [True, True]
    assert all(entry["device"].startswith("cpu: ") and entry["answer"]["digest"] for entry in timed)
    assert {entry["skipped"] for entry in entries if "skipped" in entry} == {"no GPU in this run"}
    refinements = [json.loads(line) for line in (tmp_path / "gpu_refine.jsonl").read_text().splitlines()]
    assert [entry["case"] for entry in refinements] == [f"gpu_refine/{case.name}" for case in timed_cases(True)]
    orders = [json.loads(line) for line in (tmp_path / "gpu_order.jsonl").read_text().splitlines()]
    assert [entry["parameters"]["contexts"] for entry in orders] == [1, 10, 45, 120]
    sizes = {entry["case"].split("/")[1]: entry["answer"]["size"] for entry in refinements}
    assert sizes["tax-phi7-exists"] == 0
    assert min(sizes["tax-phi7-count"], sizes["tax-phi7-listed"], sizes["tax-one-inequality-count"]) > 0
    three = {size for name, size in sizes.items() if name.startswith("tax-three-inequalities")}
    assert len(three) == 1


def test_a_wrong_answer_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_session, "same", lambda a, b: False)
    session = Session(pick_device("cpu"), True, tmp_path, float("inf"))
    gpu_session.check_twins(session)
    assert session.faults
    assert session.faults[0].startswith("twins differ: 15 columns, 6 ordered")


def test_a_wrong_refinement_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_refine, "same", lambda a, b: False)
    session = Session(pick_device("cpu"), True, tmp_path, float("inf"))
    gpu_refine.check_refinements(session)
    assert session.faults[0] == "twins differ: ties, 300 rows: equalities: left"


def test_a_timed_case_with_another_answer_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = iter("ab" * 50)
    monkeypatch.setattr(gpu_refine, "digest_bytes", lambda *parts: next(digests))
    session = Session(replace(pick_device("cpu"), kind="cuda"), True, tmp_path, float("inf"))
    monkeypatch.setattr(gpu_refine, "pick_device", lambda spec: pick_device("cpu"))
    case = gpu_refine.Timed("grouping", 9, lambda start, codes, device: [codes[0]], cpu_runs=1)
    gpu_refine.time_case(session, case, gpu_refine.tax_codes(9))
    assert session.faults == ["twins differ: grouping"]


@pytest.mark.skipif(pick_device("auto").kind == "cuda", reason="this machine has a GPU")
def test_without_a_gpu_it_ends_with_the_reason() -> None:
    """Also without pyarrow, pandas and pyspark, which a borrowed machine need not have."""
    code = (
        "import sys; sys.modules.update({name: None for name in ('pyarrow', 'pandas', 'pyspark')}); "
        "from benchmarks.gpu_session import main; sys.exit(main([]))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("error: device: 'cuda'; allowed: a GPU that works, 'auto' or 'cpu'. ")


def test_a_wrong_check_over_partitions_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(range(1000))
    monkeypatch.setattr(gpu_order, "bytes_of", lambda checked: next(answers))
    session = Session(pick_device("cpu"), True, tmp_path, float("inf"))
    gpu_order.check_orders(session)
    assert session.faults[0] == (
        "twins differ: checks over partitions, all kinds of columns, 300 rows: nulls='value', limit 0"
    )
