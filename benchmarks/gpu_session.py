"""All that is to be checked and measured on a borrowed GPU, in one go: right first, then fast.

    benchmarks/gpu_session.sh [--device cuda:0] [--budget-seconds 460]

The steps, the most valuable first; each has a budget of its own, and what doesn't fit is skipped, which is recorded.
Seconds are what a step is expected to take on an H200 and 16 cores, compiling included (nothing is kept there):

| step | expected | budget | what |
|---|---|---|---|
| check-evidence | 50 | 90 | twins, byte for byte: clues of all pairs, of pairs between rows, of pairs in clusters |
| check-joins | 35 | 60 | the same for refinements and joins |
| check-orders | 25 | 45 | the same for checks over partitions |
| check-inclusion | 5 | 15 | the same for intersections of clusters |
| evidence-1000000 | 75 | 110 | 10^6 rows x 15 columns, 10^2 to 10^6 distinct clues; CPU twin on two threads |
| tax | 60 | 90 | discovery of the denial constraints of Tax, 10^6 rows, from codes in memory to rules |
| sanitizer | 60 | 90 | compute-sanitizer, memcheck and racecheck, on small cases of each family |
| joins, orders, inclusion | 40 | 60 | timed cases with the CPU twin beside them |
| evidence-100000 | 35 | 50 | as above, of 10^5 rows |
| sizes | 30 | 40 | the evidence kernel compiled for other sizes |
| device-tests | 55 | 90 | the kernel tests marked `device`, where pytest is installed |

Timed cases record seconds, digests, the rate, the share of the floor that the kernels' docstrings state, and, in the
CPU's record, on how many threads it ran and how many times faster the GPU was.

Needs numpy, numba and numba-cuda, CuPy for all but evidence at full speed; no Spark, no network. Appends JSON
lines to `gpu_*.jsonl` in `benchmarks/results/gpu` or the folder of --out. Ends with 0 where all that ran was right, 1
where something was wrong, 2 where there is no such device.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import gpu_evidence, gpu_inclusion, gpu_order, gpu_refine, gpu_sanitizer, gpu_tax, records
from benchmarks.gpu_records import Session, say, simulated
from benchmarks.outside import REPOSITORY
from tuplewise.engine.errors import TuplewiseError
from tuplewise.gpu_kernels.device import pick_device

BUDGET_SECONDS = 460.0
LEAST_SECONDS = 5.0  # left of the budget, below which no step is begun
DEVICE_TESTS = (
    "test_evidence_device", "test_evidence_between_device", "test_refine_device", "test_clues_cuda", "test_order_cpu",
    "test_inclusion_device",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """What is done, for how long at most, and whether it belongs to checks or timings (`--only`)."""

    name: str
    budget_seconds: float
    run: Callable[[Session], None]
    kind: str


def run_device_tests(session: Session) -> None:
    """The tests marked `device`."""
    if session.device.kind != "cuda" or simulated():
        return session.skip("tests", "gpu_device_tests", "no GPU in this run")
    if importlib.util.find_spec("pytest") is None:
        return session.skip("tests", "gpu_device_tests", "no pytest")
    files = [f"tests/kernels/{name}.py" for name in DEVICE_TESTS]
    command = [sys.executable, "-m", "pytest", "-m", "device", *files, "-q", "-x", "-W", "default",
               "-p", "no:cacheprovider"]  # fmt: skip
    timeout = max(LEAST_SECONDS, session.left())
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return session.skip("tests", "gpu_device_tests", f"more than {timeout:.0f} seconds")
    last = done.stdout.strip().splitlines()[-1:] or [""]
    session.record("tests", group="gpu_device_tests", exit_code=done.returncode, summary=last[0])
    say(f"device tests: {last[0]}")
    if done.returncode != 0:
        session.fault(f"device tests: {done.stdout[-2500:]}")
    return None


def time_others(session: Session) -> None:
    gpu_refine.time_refinements(session)
    gpu_order.time_orders(session)
    gpu_inclusion.time_inclusions(session)


STEPS = (
    Step("check-evidence", 90, gpu_evidence.check_evidence, "checks"),
    Step("check-joins", 60, gpu_refine.check_refinements, "checks"),
    Step("check-orders", 45, gpu_order.check_orders, "checks"),
    Step("check-inclusion", 15, gpu_inclusion.check_inclusions, "checks"),
    Step("evidence-1000000", 110, partial(gpu_evidence.time_evidence, rows=10**6), "timings"),
    Step("tax", 90, gpu_tax.time_tax, "timings"),
    Step("sanitizer", 90, gpu_sanitizer.run_sanitizer, "checks"),
    Step("joins, orders, inclusion", 60, time_others, "timings"),
    Step("evidence-100000", 50, partial(gpu_evidence.time_evidence, rows=10**5), "timings"),
    Step("sizes", 40, gpu_evidence.compare_sizes, "timings"),
    Step("device-tests", 90, run_device_tests, "checks"),
)


def run_steps(session: Session, steps: tuple[Step, ...]) -> None:
    """One after another; one that fails is a fault and ends no other."""
    for step in steps:
        if session.has(LEAST_SECONDS, step.name, "gpu_steps"):
            with session.step(step.name, step.budget_seconds):
                try:
                    step.run(session)
                except Exception:
                    session.fault(f"step {step.name}: {traceback.format_exc()}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks and measures the CUDA kernels on a GPU.")
    parser.add_argument("--device", default="cuda", help="cuda (default), cuda:N, or cpu to try the session itself")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to try the session itself")
    kinds = sorted({step.kind for step in STEPS})
    parser.add_argument("--only", choices=[*kinds, *(step.name for step in STEPS)], help="one kind of steps, or one")
    parser.add_argument(
        "--out", type=Path, default=Path(os.environ.get("OUT") or records.RESULTS / "gpu"), help="folder of JSON lines"
    )
    parser.add_argument(
        "--budget-seconds", type=float, default=BUDGET_SECONDS, help="steps that would go beyond this are skipped"
    )
    parser.add_argument(
        "--small-case", choices=list(gpu_sanitizer.SMALL_CASES), help="only the small case for compute-sanitizer"
    )
    options = parser.parse_args(argv)
    ends = time.monotonic() + options.budget_seconds
    try:
        device = pick_device(options.device)
    except TuplewiseError as error:
        say(f"error: {error}")
        return error.exit_code
    if options.small_case:
        with device.active():
            gpu_sanitizer.SMALL_CASES[options.small_case]()
        return 0
    session = Session(device, options.smoke, options.out, ends)
    say(f"device: {device}; {device.reason}")
    with device.active():
        run_steps(session, tuple(s for s in STEPS if options.only in (None, s.kind, s.name)))
    say(f"{len(session.faults)} faults; {session.left():.0f} s of the budget left")
    return 1 if session.faults else 0


if __name__ == "__main__":
    sys.exit(main())
