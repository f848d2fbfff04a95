"""All that is to be checked and measured on a borrowed GPU, in one go: right first, then fast.

    benchmarks/gpu_session.sh [--device cuda:0] [--budget-seconds 450]

1. CUDA twin against CPU twin, byte for byte, on random and adversarial tables.
   Then the refinements and the checks over partitions, timed cases included (see `gpu_refine.py`, `gpu_order.py`).
2. compute-sanitizer (memcheck, racecheck) on small cases; a refusal is recorded with its reason.
3. Sizes of the evidence kernel against each other.
4. Timed cases of it with the CPU twin beside them, with the share of the floor that `cuda/evidence.py` states.
5. The kernel tests marked `device`, where pytest is installed.

Needs numpy, numba and numba-cuda, CuPy for all but evidence at full speed; no Spark, no network. Appends JSON
lines to `gpu_evidence.jsonl`, `gpu_refine.jsonl` and `gpu_order.jsonl` in `benchmarks/results/gpu` or the folder of
--out. Ends with 0 where all that ran was right, 1 where something was wrong, 2 where there is no such device.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import gpu_order, gpu_refine, records
from benchmarks.answers import digest_bytes
from benchmarks.generators import table_with_clues
from benchmarks.gpu_records import Session, say, simulated
from benchmarks.outside import REPOSITORY
from tuplewise.engine.errors import TuplewiseError
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.evidence import ClueSet, collect_clues
from tuplewise.gpu_kernels.words import ClueLayout, make_layout

COLUMNS = 15
OPERATIONS_ORDERED = 4  # int32 operations a pair and comparison: two subtractions, two funnel shifts
INT32_LANES = 64  # a multiprocessor and clock, compute capability 8.0 and 9.0
CPU_SECONDS = 15.0  # after which the CPU twin is stopped: its rate is known by then
CUDA_SECONDS = 40.0
SANITIZED = {"refine": gpu_refine.sanitizer_case, "order": gpu_order.sanitizer_case}


def ordered_layout(columns: int, ordered: int | None = None) -> ClueLayout:
    """Each column with itself; the first `ordered` with order, all where None."""
    most = columns if ordered is None else ordered
    return make_layout([(c, c, 0, c < most) for c in range(columns)])


def same(a: ClueSet, b: ClueSet) -> bool:
    """Byte for byte."""
    return (a.clues.tobytes() == b.clues.tobytes() and a.ordered_pairs == b.ordered_pairs
            and a.counts is not None and b.counts is not None and a.counts.tobytes() == b.counts.tobytes())  # fmt: skip


def check_cases(rows: int) -> Iterator[tuple[str, NDArray[np.int32], ClueLayout, NDArray[np.int64] | None]]:
    """Random and adversarial tables with up to `rows` rows: name, codes, layout, group offsets."""
    rng = np.random.default_rng(20)

    def random(columns: int, values: int, of: int = rows) -> NDArray[np.int32]:
        return rng.integers(-1, values, (columns, of)).astype(np.int32)

    yield "15 columns, 6 ordered", random(15, 5), ordered_layout(15, 6), None
    yield "15 columns, many values", random(15, 10**6), ordered_layout(15), None
    yield "constant table", np.zeros((15, rows), dtype=np.int32), ordered_layout(15), None
    yield "nulls only", np.full((3, rows), -1, dtype=np.int32), ordered_layout(3, 1), None
    few = min(rows, 400)
    yield "each pair its own clue", np.eye(few, dtype=np.int32)[:128], ordered_layout(min(few, 128), 0), None
    mixed = [(a, b, s, (a + b) % 2 == 0) for a in range(5) for b in range(5) for s in (0, 1, 2)]
    yield "all scopes, 75 comparisons", random(5, 4, few), make_layout(mixed), None
    for wanted in (1, 2, few - 1, few):
        yield f"{wanted} rows", random(3, 3, wanted), ordered_layout(3, 2), None
    sizes = rng.integers(1, 9, rows)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    offsets = np.concatenate([offsets[offsets < rows], [rows]]).astype(np.int64)
    yield "many small groups", random(6, 3), ordered_layout(6, 3), offsets


def check_twins(session: Session) -> None:
    """CUDA twin against CPU twin."""
    rows = (24 if simulated() else 300) if session.smoke else 6000
    for name, codes, layout, offsets in check_cases(rows):
        members = None if offsets is None else np.arange(codes.shape[1], dtype=np.int32)
        for nulls in ("unknown", "value"):
            found = [collect_clues(codes, layout, nulls=nulls, members=members, group_offsets=offsets, device=device)
                     for device in (session.device, "cpu")]  # type: ignore[arg-type]  # fmt: skip
            if not same(*found):
                session.fault(f"twins differ: {name}, nulls={nulls!r}: {[len(f.clues) for f in found]} clues")
        say(f"checked: {name}, {codes.shape[1]} rows")


def sanitizer_case(peek: bool) -> None:
    """The small case that runs under compute-sanitizer; wrong counts end it with an error."""
    from tuplewise.gpu_kernels.cuda import evidence
    from tuplewise.gpu_kernels.cuda.clue_table import Geometry

    rng = np.random.default_rng(21)
    codes = rng.integers(-1, 4, (20, 500)).astype(np.int32)
    layout = ordered_layout(20, 10)
    sizes = evidence.Sizes(Geometry(64, 32, 4, 64, 2, peek), 8, 1 << 8, 1 << 12, 300)
    offsets = np.array([0, 100, 500], dtype=np.int64)
    _, counts, _ = evidence.count_clues(codes, layout.left, layout.right, layout.scope, layout.ordered, True, offsets,
                                        Control(), sizes)  # fmt: skip
    if int(counts.sum()) != 100 * 99 // 2 + 400 * 399 // 2:
        raise SystemExit(1)


def run_sanitizer(session: Session) -> None:
    """memcheck as shipped; racecheck with atomic access to keys only (a look before the swap is a benign race)."""
    tool = shutil.which("compute-sanitizer")
    for check, small in (("memcheck", "peek"), ("racecheck", "atomic"), ("memcheck", "refine"), ("memcheck", "order")):
        case = f"sanitizer-{check}" + (f"-{small}" if small in SANITIZED else "")
        if session.device.kind != "cuda" or simulated():
            reason: str | None = "no GPU in this run"
        elif tool is None:
            reason = "compute-sanitizer isn't installed"
        elif session.left() < 150:
            reason = "no time left"
        else:
            reason = None
        if reason is not None or tool is None:
            say(f"skipped: {case}: {reason}")
            session.record(case, skipped=reason)
            continue
        command = [tool, "--tool", check, "--error-exitcode", "86", "--print-limit", "20", sys.executable,
                   "-m", "benchmarks.gpu_session", "--sanitizer-case", small]  # fmt: skip
        begun = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
            output, code = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            output, code = "more than 90 seconds", None
        refused = code is None or "not supported" in output.lower() or "Unable to" in output
        said = "\n".join(line for line in output.splitlines() if line.startswith("===="))
        session.record(case, seconds=time.monotonic() - begun, exit_code=code, output=said[-3000:],
                       skipped="refused or too slow" if refused else None)  # fmt: skip
        if refused:
            say(f"skipped: {case}: {output.strip()[-200:]}")
        elif code != 0:
            session.fault(f"{case} ended with {code}: {output[-1500:]}")
        else:
            say(f"checked: {case}")


def run_device_tests(session: Session) -> None:
    """The tests marked `device`."""
    if session.device.kind != "cuda" or simulated():
        return say("skipped: device tests: no GPU in this run")
    if importlib.util.find_spec("pytest") is None or session.left() < 240:
        return say("skipped: device tests: no pytest, or no time left")
    names = (
        "test_evidence_device", "test_evidence_between_device", "test_refine_device", "test_clues_cuda",
        "test_order_cpu", "test_inclusion_device",
    )  # fmt: skip
    files = [f"tests/kernels/{name}.py" for name in names]
    command = [sys.executable, "-m", "pytest", "-m", "device", *files, "-q", "-x", "-W", "default",
               "-p", "no:cacheprovider"]  # fmt: skip
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=150, check=False)
    except subprocess.TimeoutExpired:
        return say("skipped: device tests: more than 150 seconds")
    last = done.stdout.strip().splitlines()[-1:] or [""]
    session.record("device-tests", exit_code=done.returncode, summary=last[0])
    say(f"device tests: {last[0]}")
    if done.returncode != 0:
        session.fault(f"device tests: {done.stdout[-2500:]}")
    return None


def floor_pairs_per_second(layout: ClueLayout) -> tuple[float, str]:
    """The stated floor on this GPU, and how it was counted."""
    from numba import cuda

    gpu = cuda.get_current_device()
    try:
        clock = float(gpu.CLOCK_RATE) * 1000.0
    except Exception:  # newer drivers no longer tell
        clock = 0.0
    clock = clock or 1.7e9
    operations = OPERATIONS_ORDERED * layout.comparisons
    rate = int(gpu.MULTIPROCESSOR_COUNT) * INT32_LANES * clock
    return rate / operations, f"{gpu.MULTIPROCESSOR_COUNT} x {INT32_LANES} x {clock:.3g} Hz / {operations} operations"


@contextmanager
def launches_timed() -> Iterator[dict[str, float]]:
    """Seconds in kernel launches (each waits for its end), their number, and the least free device memory seen."""
    from numba import cuda

    from tuplewise.gpu_kernels.cuda import evidence

    seen = {"seconds": 0.0, "launches": 0, "least_free_bytes": float("inf")}
    original = evidence._DeviceTable.count

    def count(table: Any, *arguments: Any) -> Any:
        begun = time.perf_counter()
        left = original(table, *arguments)
        seen["seconds"] += time.perf_counter() - begun
        seen["launches"] += 1
        free = float(cuda.current_context().get_memory_info()[0]) if not simulated() else 0.0
        seen["least_free_bytes"] = min(seen["least_free_bytes"], free)
        return left

    evidence._DeviceTable.count = count  # type: ignore[method-assign, assignment]
    try:
        yield seen
    finally:
        evidence._DeviceTable.count = original  # type: ignore[method-assign]


def timed(work: Callable[[], ClueSet]) -> tuple[float, ClueSet]:
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def case_table(rows: int, clues: int, independent: bool) -> NDArray[np.int32]:
    """A table of 15 columns with about so many distinct clues, int32 (15, rows).

    Few kinds of rows (long runs of one clue once sorted), or independent columns of three values and constant ones
    (nearly every pair has another clue than its neighbour).
    """
    if not independent:
        return table_with_clues(rows, clues, seed=22, columns=COLUMNS)
    codes = np.zeros((COLUMNS, rows), dtype=np.int32)
    free = min(COLUMNS, int(np.ceil(np.log(clues) / np.log(3))))
    codes[:free] = np.random.default_rng(22).integers(0, 3, (free, rows))
    return codes


def time_case(session: Session, rows: int, clues: int, independent: bool) -> None:
    """One table on the session's device and on the CPU."""
    codes = case_table(rows, clues, independent)
    layout = ordered_layout(COLUMNS)
    name = f"{'independent' if independent else 'kinds'}-{clues}"
    dataset = {"name": name, "rows": rows, "columns": COLUMNS, "sha256": digest_bytes(codes.tobytes())}
    case = f"{rows}-rows-{name}"
    answers: dict[str, ClueSet] = {}
    devices: list[tuple[str, Device, float]] = [("cpu", pick_device("cpu"), CPU_SECONDS)]
    if session.device.kind == "cuda":
        devices.insert(0, ("cuda", session.device, CUDA_SECONDS))
    for name, device, limit in devices:
        if session.left() < 10 + (limit if rows > 10**5 else 0):
            say(f"skipped: {case} on {name}: no time left")
            session.record(case, device, implementation=name, skipped="no time left")
            continue

        def work(device: Device = device, limit: float = limit) -> ClueSet:
            return collect_clues(codes, layout, device=device, deadline=time.monotonic() + limit)

        fields: dict[str, Any] = {}
        if name == "cuda":
            with launches_timed() as seen:
                cold, found = timed(work)
                seen["seconds"] = 0.0
                warm = [timed(work)[0] for _ in range(1 if cold > 5 else 3)]
            fields["kernel_seconds"] = {"launches": seen["seconds"] / len(warm)}
            fields["peak_bytes"] = max(0, session.device.memory_bytes - int(seen["least_free_bytes"]))
        else:
            cold, found = timed(work)
            warm = [timed(work)[0]] if cold < 5 else []
        answers[name] = found
        pairs = found.ordered_pairs // 2
        rate = pairs / float(np.median(warm or [cold]))
        figures = {"unordered_pairs": pairs, "pairs_per_second": rate, "distinct_clues": len(found.clues)}
        if name == "cuda" and not simulated():
            kernel_rate = pairs / max(1e-9, fields["kernel_seconds"]["launches"])
            floor, counted = floor_pairs_per_second(layout)
            figures |= {"kernel_pairs_per_second": kernel_rate, "share_of_floor": kernel_rate / floor}
            fields["floor"] = {"pairs_per_second": floor, "counted": counted}
        answer = {
            "digest": digest_bytes(found.clues.tobytes(), b"" if found.counts is None else found.counts.tobytes())
        }
        session.record(case, device, implementation=name, dataset=dataset, cold_seconds=cold, warm_seconds=warm,
                       answer=answer,
                       complete=found.complete, figures=figures, **fields)  # fmt: skip
        shown = "".join(f", {k} {v:.3g}" for k, v in figures.items())
        say(f"{case} on {name}: cold {cold:.3f} s, warm {warm}{shown}{'' if found.complete else ', stopped early'}")
    if len(answers) == 2 and all(a.complete for a in answers.values()) and not same(*answers.values()):
        session.fault(f"twins differ: {case}")


def time_cases(session: Session) -> None:
    """The timed cases of the evidence kernel."""
    if session.smoke:
        cases = [(40, 20, False)] if simulated() else [(2000, 100, False), (2000, 10_000, True)]
    else:
        kinds = [(10**2, False), (10**4, False), (2 * 10**4, True), (10**6, True)]
        cases = [(rows, *kind) for rows in (10**5, 10**6) for kind in kinds]
    for case in cases:
        time_case(session, *case)


def compare_sizes(session: Session) -> None:
    """The kernel compiled for other sizes, on one table: which geometry a card likes."""
    if session.device.kind != "cuda":
        return say("skipped: sizes: no GPU in this run")
    from tuplewise.gpu_kernels.cuda import evidence
    from tuplewise.gpu_kernels.cuda.clue_table import GEOMETRIES, SHARED_LIMIT_BYTES
    from tuplewise.gpu_kernels.cuda.digits import make_plan

    rows, clues = (40, 50) if session.smoke else (200_000, 20_000)
    codes = case_table(rows, clues, independent=True)
    codes = np.ascontiguousarray(codes[:, np.lexsort(codes[::-1])])
    layout = ordered_layout(COLUMNS)
    arguments = (codes, layout.left, layout.right, layout.scope, layout.ordered, True, np.array([0, rows]), Control())
    plan = make_plan(*arguments[:6])
    pairs = rows * (rows - 1) // 2
    usual = evidence.default_sizes(plan, pairs)
    first = usual.geometry if session.smoke else GEOMETRIES[0]
    changes: list[dict[str, Any]] = [{}, {"copies": 1}, {"copies": 4},
                                     {"slots": 2 * first.slots}, {"slots": first.slots // 2},
                                     {"threads": 2 * first.threads}, {"threads": first.threads // 2},
                                     {"tile_rows": 2 * first.tile_rows}, {"batch": first.batch // 2},
                                     {"peek": False}]  # fmt: skip
    for change in changes[:2] if session.smoke else changes:
        if session.left() < 200 and not session.smoke:
            say(f"skipped: sizes {change}: no time left")
            continue
        geometry = replace(first, **change)
        if geometry.shared_bytes(plan.digits) > SHARED_LIMIT_BYTES:
            continue
        sizes = replace(usual, geometry=geometry)
        evidence.count_clues(*arguments, sizes)
        with launches_timed() as seen:
            _, counts, _ = evidence.count_clues(*arguments, sizes)
        if int(counts.sum()) != pairs:
            session.fault(f"sizes {change}: {int(counts.sum())} pairs of {pairs}")
        rate = pairs / max(1e-9, seen["seconds"])
        session.record("sizes", parameters={"rows": rows, "clues": clues, **change},
                       kernel_seconds={"launches": seen["seconds"]},
                       figures={"kernel_pairs_per_second": rate})  # fmt: skip
        say(f"sizes {change or 'as shipped'}: {rate:.3g} pairs a second in {int(seen['launches'])} launches")
    return None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks and measures the CUDA kernels on a GPU.")
    parser.add_argument("--device", default="cuda", help="cuda (default), cuda:N, or cpu to try the session itself")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to try the session itself")
    parser.add_argument("--only", choices=["evidence", "refine", "order"], help="one part of the checks and timings")
    parser.add_argument(
        "--out", type=Path, default=Path(os.environ.get("OUT") or records.RESULTS / "gpu"), help="folder of JSON lines"
    )
    parser.add_argument(
        "--budget-seconds", type=float, default=450.0, help="steps that would go beyond this are skipped"
    )
    parser.add_argument(
        "--sanitizer-case", choices=["peek", "atomic", *SANITIZED], help="only the small case for compute-sanitizer"
    )
    options = parser.parse_args(argv)
    try:
        device = pick_device(options.device)
    except TuplewiseError as error:
        say(f"error: {error}")
        return error.exit_code
    if options.sanitizer_case:
        with device.active():
            if options.sanitizer_case in SANITIZED:
                SANITIZED[options.sanitizer_case]()
            else:
                sanitizer_case(options.sanitizer_case == "peek")
        return 0
    session = Session(device, options.smoke, options.out, time.monotonic() + options.budget_seconds)
    say(f"device: {device}; {device.reason}")
    with device.active():
        if options.only in (None, "evidence"):
            check_twins(session)
        if options.only in (None, "refine"):
            gpu_refine.check_refinements(session)
            gpu_refine.time_refinements(session)
        if options.only in (None, "order"):
            gpu_order.check_orders(session)
            gpu_order.time_orders(session)
        run_sanitizer(session)
        if options.only in (None, "evidence"):
            compare_sizes(session)
            time_cases(session)
    run_device_tests(session)
    say(f"{len(session.faults)} faults; {session.left():.0f} s of the budget left")
    return 1 if session.faults else 0


if __name__ == "__main__":
    sys.exit(main())
