"""The prepared session for a borrowed GPU can be tried without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import gpu_evidence, gpu_inclusion, gpu_order, gpu_refine, gpu_sanitizer, gpu_session, gpu_tax
from benchmarks.generators import tax_numbers
from benchmarks.gpu_floors import Floor
from benchmarks.gpu_records import Session
from benchmarks.gpu_tables import EDGES, KINDS, LARGEST, hard_tables, ranked
from benchmarks.gpu_timing import Answer, Part, Timed, compare, on_cores, time_on_both
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.device import Device, pick_device

ROOT = Path(__file__).resolve().parents[2]


def session_in(folder: Path, kind: str = "cpu", ends: float = float("inf"), smoke: bool = True) -> Session:
    return Session(replace(pick_device("cpu"), kind=kind), smoke, folder, ends)  # type: ignore[arg-type]


def records_in(folder: Path, group: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{group}.jsonl").read_text().splitlines()]


def test_it_tries_itself_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_session.main(["--device", "cpu", "--smoke", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "0 faults" in said
    steps = records_in(tmp_path, "gpu_steps")
    assert [s["case"].split("/")[1] for s in steps] == [step.name for step in gpu_session.STEPS]
    assert all(s["seconds"] < s["budget_seconds"] and s["faults"] == 0 for s in steps)
    assert all(s["compared"] > 30 for s in steps if s["case"].startswith("gpu_steps/check-"))
    for group in ("gpu_evidence", "gpu_refine", "gpu_order", "gpu_inclusion", "gpu_tax"):
        timed = [entry for entry in records_in(tmp_path, group) if "cold_seconds" in entry]
        assert timed, group
        assert all(e["complete"] and e["threads"] == 2 and e["device"].startswith("cpu: ") for e in timed)
        assert all(any(key.endswith("_per_second") for key in e["figures"]) for e in timed)
    families = (
        "evidence: 15 columns", "evidence between rows: ties", "clues of pairs: codes far apart",
        "refinements: codes up to the largest", "checks over partitions: keys", "inclusion: 129",
    )  # fmt: skip
    for checked in families:
        assert f"checked: {checked}" in said
    assert {e["skipped"] for e in records_in(tmp_path, "gpu_sanitizer")} == {"no GPU in this run"}
    sizes = {e["case"].split("/")[1]: e["answer"]["size"] for e in records_in(tmp_path, "gpu_refine")}
    assert list(sizes) == [case.name for case in gpu_refine.timed_cases(True)]
    assert sizes["tax-phi7-exists"] == 0
    assert min(sizes["tax-phi7-count"], sizes["tax-phi7-listed"], sizes["tax-one-inequality-count"]) > 0
    assert len({size for name, size in sizes.items() if name.startswith("tax-three-inequalities")}) == 1


def test_what_it_is_expected_to_take_fits_the_budget() -> None:
    lines = [line.split("|") for line in str(gpu_session.__doc__).splitlines() if line.startswith("| ")][1:]
    stated = {line[1].strip(): (int(line[2]), int(line[3])) for line in lines}
    budgets = {step.name: step.budget_seconds for step in gpu_session.STEPS}
    assert {name: budget for name, (_, budget) in stated.items()} == budgets
    assert all(expected < budget for expected, budget in stated.values())
    assert sum(expected for expected, _ in stated.values()) < 480
    assert gpu_session.BUDGET_SECONDS < 480


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        (gpu_evidence.check_evidence,
         "twins differ: evidence: 15 columns, 6 ordered, 300 rows: nulls='unknown', clues"),
        (gpu_refine.check_refinements, "twins differ: refinements: ties, 300 rows: equalities: left"),
        (gpu_order.check_orders,
         "twins differ: checks over partitions: all kinds of columns, 300 rows: nulls='value', limit 0, holds"),
        (gpu_inclusion.check_inclusions, "twins differ: inclusion: 1 clusters, 6 attributes: intersections"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_a_fault(check: Any, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import gpu_timing

    monkeypatch.setattr(gpu_timing, "same", lambda one, two: False)
    monkeypatch.setitem(vars(gpu_refine), "hard_tables", lambda *_, **__: [])
    session = session_in(tmp_path)
    check(session)
    assert session.faults[0] == fault


def test_parts_are_compared_byte_for_byte(tmp_path: Path) -> None:
    session = session_in(tmp_path, "cuda")

    def answers(device: Device) -> Iterator[tuple[str, Part]]:
        yield "same", np.zeros(3)
        yield "type", np.zeros(2, dtype=np.int32 if device.kind == "cpu" else np.int64)
        yield "value", np.array([device.kind == "cpu"])

    compare(session, "made up", answers)
    assert session.faults == ["twins differ: made up: type", "twins differ: made up: value"]


def timed_case(work: Any, **more: Any) -> Timed:
    return Timed("case", "gpu_made_up", {"name": "none"}, work, "pairs", **more)


def test_both_devices_are_timed_and_compared(tmp_path: Path) -> None:
    """The GPU's share of the floor, and how many times faster it was than two threads of the CPU."""
    session = session_in(tmp_path, "cuda")
    cores: list[tuple[str, int]] = []

    def work(device: Device, deadline: float) -> Answer:
        cores.append((device.kind, usable_cores()))
        time.sleep(0.01 if device.kind == "cuda" else 0.05)
        return Answer([np.zeros(1)], 1, units=1000.0)

    time_on_both(session, timed_case(work, floor=Floor(1e-6, "made up"), cuda_runs=2))
    cuda, cpu = records_in(tmp_path, "gpu_made_up")
    assert (cuda["implementation"], cpu["implementation"], cpu["threads"]) == ("cuda", "cpu", 2)
    assert cuda["floor"] == {"seconds": pytest.approx(1e-3), "counted": "made up"}
    assert 0 < cuda["figures"]["share_of_floor"] <= 0.1
    assert cpu["figures"]["cuda_times_faster"] == pytest.approx(
        cuda["figures"]["pairs_per_second"] / cpu["figures"]["pairs_per_second"]
    )
    assert cpu["figures"]["cuda_times_faster"] > 1
    assert {number for kind, number in cores if kind == "cpu"} <= {1, 2}
    assert session.faults == []


@pytest.mark.parametrize(("complete", "faults"), [(True, ["twins differ: case"]), (False, [])])
def test_another_answer_is_a_fault_unless_it_was_stopped(complete: bool, faults: list[str], tmp_path: Path) -> None:
    session = session_in(tmp_path, "cuda")

    def work(device: Device, deadline: float) -> Answer:
        return Answer([np.array([device.kind == "cpu"])], 1, complete=complete or device.kind == "cuda")

    time_on_both(session, timed_case(work))
    assert session.faults == faults


def test_what_has_no_time_left_is_skipped(tmp_path: Path) -> None:
    session = session_in(tmp_path, smoke=False, ends=time.monotonic() + 100)
    with session.step("one", 5.0):
        time_on_both(session, timed_case(None, least_seconds=6.0))
        session.step_ends = time.monotonic() + 1
        compare(session, "made up too", None)  # type: ignore[arg-type]
    assert records_in(tmp_path, "gpu_made_up")[0]["skipped"] == "no time left"
    assert records_in(tmp_path, "gpu_checks")[0]["case"] == "gpu_checks/made up too"
    assert session.left() > 50  # the next step has its own budget
    session.ends = time.monotonic()
    gpu_session.run_steps(session, gpu_session.STEPS)
    skipped = [record for record in records_in(tmp_path, "gpu_steps") if "skipped" in record]
    assert len(skipped) == len(gpu_session.STEPS)


def test_a_step_that_fails_is_a_fault_and_ends_no_other(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    done: list[str] = []

    def fail(_: Session) -> None:
        raise RuntimeError("no more of this")

    good = gpu_session.Step("good", 1, lambda _: done.append("x"), "checks")
    gpu_session.run_steps(session, (gpu_session.Step("bad", 1, fail, "checks"), good))
    assert done == ["x"]
    assert len(session.faults) == 1
    assert "no more of this" in session.faults[0]


@pytest.mark.parametrize(
    ("exit_code", "output", "reason"),
    [
        (0, "========= ERROR SUMMARY: 0 errors", None),
        (86, "========= Invalid read, not supported", None),
        (1, "========= Error: Device not supported. Ask somebody", "Error: Device not supported. Ask somebody"),
        (1, "Traceback: unable to import", None),
        (255, "========= Internal Sanitizer Error: Unable to attach", "Internal Sanitizer Error: Unable to attach"),
    ],
)  # fmt: skip
def test_a_refusal_of_the_sanitizer_is_told_from_a_finding(exit_code: int, output: str, reason: str | None) -> None:
    assert gpu_sanitizer.why_refused(exit_code, output) == reason


def test_every_family_of_kernels_has_a_small_case() -> None:
    assert list(gpu_sanitizer.SMALL_CASES) == ["evidence", "between", "refine", "order", "inclusion"]


def test_hard_tables_have_all_edges_and_ranks_change_no_outcome() -> None:
    made = dict(hard_tables(False, columns=3))
    assert {f"{name}, 129 rows" for name in KINDS} <= set(made)
    assert {f"ties, {rows} rows" for rows in (*EDGES, 65535, 65536, 65537)} <= set(made)
    assert made["codes up to the largest, 129 rows"].max() == LARGEST
    for name in ("codes far apart, 129 rows", "codes up to the largest, 129 rows", "nulls only, 129 rows"):
        codes, dense = made[name], ranked(made[name])
        assert dense.max() < 129 * 3
        assert (np.sign(codes[0][:, None] - codes[1].astype(np.int64)) == np.sign(dense[0][:, None] - dense[1])).all()
        assert ((codes < 0) == (dense < 0)).all()


def test_tax_is_the_recorded_table() -> None:
    """Columns, types and rules as of the table that the other benchmarks load."""
    from benchmarks.generators import tax

    numbers, table = tax_numbers(400, seed=2), tax(400, seed=2)
    assert list(gpu_tax.TYPES) == table.column_names
    relation = gpu_tax.tax_relation(400)
    for i, name in enumerate(table.column_names):
        values, ranks = np.unique(table[name].to_numpy(zero_copy_only=False), return_inverse=True)
        assert len(values) == relation.columns[i].distinct
        if gpu_tax.TYPES[name] == "text":  # told apart as the names are
            assert len(np.unique(np.stack([ranks, relation.codes[i]]), axis=1).T) == len(values)
        else:
            assert np.array_equal(ranks, relation.codes[i])
            assert np.array_equal(np.asarray(numbers[name]), table[name].to_numpy())


def test_cores_are_given_back() -> None:
    before = usable_cores()
    with on_cores(1):
        assert usable_cores() == 1
    assert usable_cores() == before


@pytest.mark.skipif(pick_device("auto").kind == "cuda", reason="this machine has a GPU")
def test_without_a_gpu_it_ends_with_the_reason(tmp_path: Path) -> None:
    """Also without pyarrow, pandas and pyspark, which a borrowed machine need not have."""
    code = (
        "import sys; sys.modules.update({name: None for name in ('pyarrow', 'pandas', 'pyspark')}); "
        "from benchmarks.gpu_session import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "CUDA_VISIBLE_DEVICES": ""}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, env=environment, capture_output=True,
                              text=True, check=False)  # fmt: skip

    done = run()
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("error: device: 'cuda'; allowed: a GPU that works, 'auto' or 'cpu'. ")
    tried = run("--device", "cpu", "--smoke", "--only", "tax", "--out", str(tmp_path))
    assert tried.returncode == 0, tried.stdout + tried.stderr
