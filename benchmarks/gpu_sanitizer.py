"""compute-sanitizer over small cases of each family of kernels, in a session on a borrowed GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks import gpu_evidence, gpu_inclusion, gpu_order, gpu_refine
from benchmarks.gpu_records import Session, say, simulated

GROUP = "gpu_sanitizer"
SMALL_CASES: dict[str, Callable[[], None]] = {
    **gpu_evidence.SMALL_CASES, **gpu_refine.SMALL_CASES, **gpu_order.SMALL_CASES, **gpu_inclusion.SMALL_CASES,
}  # fmt: skip
CHECKS = ("memcheck", "racecheck")
TIMEOUT_SECONDS = 60
LEAST_SECONDS = 15.0
FOUND = 86  # the exit status that compute-sanitizer is asked for where it found something
REFUSALS = ("not supported", "unable to", "permission", "debugger", "failed to initialize", "insufficient privilege")


def run_sanitizer(session: Session) -> None:
    """Out-of-bounds accesses everywhere; races in shared memory, which only the counting of clues has."""
    tool = shutil.which("compute-sanitizer")
    for small in SMALL_CASES:
        for check in CHECKS:
            case = f"{check}-{small}"
            if session.device.kind != "cuda" or simulated():
                session.skip(case, GROUP, "no GPU in this run")
            elif tool is None:
                session.skip(case, GROUP, "compute-sanitizer isn't installed")
            elif session.has(LEAST_SECONDS, case, GROUP):
                _run(session, tool, check, small)


def _run(session: Session, tool: str, check: str, small: str) -> None:
    case = f"{check}-{small}"
    command = [tool, "--tool", check, "--error-exitcode", str(FOUND), "--print-limit", "20", sys.executable,
               "-m", "benchmarks.gpu_session", "--small-case", small]  # fmt: skip
    begun = time.monotonic()
    timeout = min(TIMEOUT_SECONDS, max(LEAST_SECONDS, session.left()))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return session.skip(case, GROUP, f"more than {timeout:.0f} seconds")
    output = done.stdout + done.stderr
    said = "\n".join(line for line in output.splitlines() if line.startswith("===="))
    if reason := why_refused(done.returncode, output):
        return session.skip(case, GROUP, f"refused: {reason}")
    session.record(case, group=GROUP, seconds=time.monotonic() - begun, exit_code=done.returncode, output=said[-3000:])
    if done.returncode != 0:
        return session.fault(f"{case} ended with {done.returncode}: {output[-1500:]}")
    return say(f"checked: {case}")


def why_refused(exit_code: int, output: str) -> str | None:
    """The line in which the tool says that it can't work here; None where it worked, whatever it found."""
    if exit_code in (0, FOUND):
        return None
    lines = [line.strip("= \t") for line in output.splitlines() if line.startswith("====")]
    return next((line for line in lines if any(word in line.lower() for word in REFUSALS)), None)
