"""The refinements in a session on a borrowed GPU: CUDA twin against CPU twin, byte for byte, then timed cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import digest_bytes
from benchmarks.gpu_floors import by_bytes
from benchmarks.gpu_records import Session, simulated
from benchmarks.gpu_tables import hard_tables, ranked
from benchmarks.gpu_timing import Answer, Part, Timed, compare, same, time_on_both
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Algorithm, Comparison
from tuplewise.gpu_kernels.refine import join, refine_equal

GROUP = "gpu_refine"
STATE, SALARY, RATE, CLEAN_RATE, AREA, PHONE = range(6)
PHI7 = [Comparison(SALARY, SALARY, GREATER), Comparison(RATE, RATE, LESS)]
PHI7_CLEAN = [Comparison(SALARY, SALARY, GREATER), Comparison(CLEAN_RATE, CLEAN_RATE, LESS)]
LISTED_PAIRS = 2_000_000


def tax_codes(rows: int, seed: int = 7) -> NDArray[np.int32]:
    """Dense ranks like those of the Tax table, int32 (6, rows): state, salary, rate, rate without errors, area, phone.

    Within a state the clean rate never falls as the salary rises; one row in 1,000 (20 at least) has another rate. Area
    and phone are nearly a key.
    """
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 50, rows)
    salary = np.clip((rng.lognormal(10.8, 0.6, rows) / 50).round() * 50, 5_000, 500_000).astype(np.int64)
    bounds = np.sort(rng.integers(100, 3_000, (50, 7)) * 50, axis=1)
    steps = np.cumsum(rng.integers(5, 140, (50, 8)), axis=1)
    clean = steps[state, (salary[:, None] >= bounds[state]).sum(axis=1)]
    rate = clean.copy()
    wrong = rng.random(rows) < max(0.001, 20 / max(1, rows))
    rate[wrong] = rng.integers(0, int(steps.max()), int(wrong.sum()))
    area, phone = rng.integers(0, 300, rows), rng.integers(0, 8_000_000, rows)
    return np.stack([np.unique(c, return_inverse=True)[1] for c in (state, salary, rate, clean, area, phone)]).astype(
        np.int32
    )


def check_cases(rows: int) -> Iterator[tuple[str, ClusterPairs, NDArray[np.int32], list[tuple[int, int]]]]:
    """Random and adversarial tables of about so many rows: name, sets, codes, equalities."""
    rng = np.random.default_rng(30)
    everything = np.arange(rows, dtype=np.int32)
    ties = rng.integers(-1, 9, (4, rows)).astype(np.int32)
    wide = rng.integers(-1, 10 * rows, (4, rows)).astype(np.int32)
    some = [np.flatnonzero(rng.random(rows) < 0.6).astype(np.int32) for _ in range(2)]
    yield "ties", all_rows(everything), ties, []
    yield "ties in groups", all_rows(everything), ties, [(3, 3)]
    yield "many values", all_rows(everything), wide, []
    yield "two sides", all_rows(*some), wide, []
    yield "two sides in groups, columns crossed", all_rows(*some), ties, [(0, 1), (3, 3)]
    yield "constant columns", all_rows(everything), np.zeros((4, rows), dtype=np.int32), [(0, 0)]
    yield "small groups", all_rows(everything), (wide // 40).astype(np.int32), [(0, 0)]
    yield "two rows", all_rows(everything[:2]), ties, [(0, 0)]


def check_joins() -> Iterator[tuple[Algorithm, list[Comparison]]]:
    yield "hsm", []
    yield "hsm", [Comparison(0, 1, LESS | GREATER)]
    yield "hsm", [Comparison(0, 0, GREATER | EQUAL)]
    yield "iejoin", [Comparison(0, 0, GREATER), Comparison(1, 1, LESS)]
    yield "iejoin", [Comparison(0, 2, LESS | EQUAL), Comparison(1, 0, GREATER | EQUAL)]
    yield "kdtree", [Comparison(0, 0, LESS), Comparison(1, 1, GREATER), Comparison(2, 2, LESS | EQUAL)]
    yield "bhsm", [Comparison(0, 0, LESS), Comparison(1, 1, LESS | GREATER), Comparison(2, 1, EQUAL)]
    yield "rangetree", [Comparison(0, 0, LESS), Comparison(1, 1, GREATER), Comparison(2, 2, LESS | EQUAL)]


def answers_of(
    start: ClusterPairs, codes: NDArray[np.int32], equalities: list[tuple[int, int]], rows: int, device: Device
) -> Iterator[tuple[str, Part]]:
    """All that the refinements say about a case, by name."""
    codes = ranked(codes) if device.kind == "cpu" else codes  # which has tables over the codes
    fresh = ClusterPairs(start.left, start.left_offsets, start.right, start.right_offsets)
    pairs = refine_equal(fresh, codes, equalities, device=device)
    for name in ("left", "left_offsets", "right", "right_offsets"):
        yield f"equalities: {name}", getattr(pairs, name)
    asked = np.arange(0, codes.shape[1], max(1, codes.shape[1] // 40), dtype=np.int32)
    for place, (algorithm, comparisons) in enumerate(check_joins()):
        if algorithm in ("kdtree", "bhsm") and pairs.pairs > rows * rows // 4 and rows > 2000:
            continue  # quadratic on the CPU
        made = join(pairs, codes, comparisons, algorithm, device=device)
        counts = np.zeros(codes.shape[1], dtype=np.int64)
        total = made.count(counts, 1)
        offsets, right = made.emit(asked)
        parts = {"total": np.array([total]), "counts": counts, "offsets": offsets, "rows": right}
        for name, part in (parts | {"found": made.find(5)}).items():
            yield f"{algorithm} {place}: {name}", part


def check_refinements(session: Session) -> None:
    """CUDA twin against CPU twin."""
    rows = (20 if simulated() else 300) if session.smoke else 20_000
    for name, start, codes, equalities in check_cases(rows):
        compare(session, f"refinements: {name}, {rows} rows", partial(answers_of, start, codes, equalities, rows))
    for name, codes in hard_tables(session.smoke, columns=4):
        everything = all_rows(np.arange(codes.shape[1], dtype=np.int32))
        for equalities in ([], [(3, 3)]):
            compare(session, f"refinements: {name}, {len(equalities)} equalities",
                    partial(answers_of, everything, codes, equalities, codes.shape[1]))  # fmt: skip


Work = Callable[[ClusterPairs, NDArray[np.int32], Device], list[Part]]


@dataclass(frozen=True)
class Joined:
    """A case to time. `work` gets cluster pairs, new ones or those of the run before, and gives the answer.

    `row_bytes`: the fewest that a row moves, read off the kernels' table: keys that are written, sorted (read and
    written once) and split, 40 for a side; two places of a slice or of a tree, and what is found, 32 for a left row.
    """

    name: str
    rows: int
    work: Work
    row_bytes: int


def counted(
    equalities: list[tuple[int, int]], comparisons: list[Comparison], algorithm: Algorithm
) -> Callable[[ClusterPairs, NDArray[np.int32], Device], list[Part]]:
    def work(start: ClusterPairs, codes: NDArray[np.int32], device: Device) -> list[Part]:
        pairs = refine_equal(start, codes, equalities, device=device)
        return [np.array([join(pairs, codes, comparisons, algorithm, device=device).count(None, 1)])]

    return work


def found(start: ClusterPairs, codes: NDArray[np.int32], device: Device) -> list[Part]:
    """Existence of the rule that holds: no row has a partner."""
    pairs = refine_equal(start, codes, [(STATE, STATE)], device=device)
    return [join(pairs, codes, PHI7_CLEAN, "iejoin", device=device).find(1)]


def listed(start: ClusterPairs, codes: NDArray[np.int32], device: Device) -> list[Part]:
    """The pairs of the first rows that have any, some two million."""
    pairs = refine_equal(start, codes, [(STATE, STATE)], device=device)
    made = join(pairs, codes, PHI7, "iejoin", device=device)
    counts = np.zeros(codes.shape[1], dtype=np.int64)
    made.count(counts, 1)
    rows = np.flatnonzero(counts).astype(np.int32)
    return list(made.emit(rows[: int(np.searchsorted(np.cumsum(counts[rows]), LISTED_PAIRS))]))


def grouped(start: ClusterPairs, codes: NDArray[np.int32], device: Device) -> list[Part]:
    pairs = refine_equal(start, codes, [(AREA, AREA), (PHONE, PHONE)], device=device)
    return [pairs.left, pairs.left_offsets]


def timed_cases(smoke: bool) -> list[Joined]:
    rows, fewer = (30, 20) if simulated() else (2_000, 500) if smoke else (1_000_000, 100_000)
    three = [*PHI7, Comparison(PHONE, PHONE, LESS)]
    return [
        Joined("tax-phi7-count", rows, counted([(STATE, STATE)], PHI7, "iejoin"), 152),
        Joined("tax-phi7-exists", rows, found, 152),
        Joined("tax-phi7-listed", rows, listed, 152),
        Joined("tax-one-inequality-count", rows, counted([(STATE, STATE)], PHI7[:1], "hsm"), 112),
        Joined("tax-key-grouping", rows, grouped, 40),
        Joined("tax-two-inequalities-count", rows, counted([], PHI7, "iejoin"), 112),
        Joined("tax-three-inequalities-kdtree", fewer, counted([], three, "kdtree"), 152),
        Joined("tax-three-inequalities-bhsm", fewer, counted([], three, "bhsm"), 152),
        Joined("tax-three-inequalities-rangetree", fewer, counted([], three, "rangetree"), 152),
    ]


def time_refinements(session: Session) -> None:
    """Each case from codes in host memory, on the session's device and on the CPU; answers are compared."""
    tables: dict[int, NDArray[np.int32]] = {}
    for case in timed_cases(session.smoke):
        if case.rows not in tables:
            tables[case.rows] = tax_codes(case.rows)
        time_on_both(session, as_timed(session, case, tables[case.rows]))


def as_timed(session: Session, case: Joined, codes: NDArray[np.int32]) -> Timed:
    def work(device: Device, deadline: float) -> Answer:
        parts = case.work(all_rows(np.arange(case.rows, dtype=np.int32)), codes, device)
        return Answer(parts, int(parts[0][0]) if parts[0].shape == (1,) else len(parts[-1]), case.rows)

    def resident(device: Device) -> Callable[[], Any]:
        start = all_rows(np.arange(case.rows, dtype=np.int32))
        case.work(start, codes, device)
        return partial(case.work, start, codes, device)

    dataset = {"name": "tax-codes", "rows": case.rows, "columns": len(codes), "sha256": digest_bytes(codes.tobytes())}
    return Timed(case.name, GROUP, dataset, work, "rows", floor=by_bytes(session.device, case.row_bytes),
                 least_seconds=6.0, resident=resident)  # fmt: skip


def _small_case() -> None:
    """A twin that differs ends it with an error."""
    device, cpu = pick_device("cuda"), pick_device("cpu")
    for name, start, codes, equalities in check_cases(150):
        if name in ("ties in groups", "two sides", "small groups"):
            both = [dict(answers_of(start, codes, equalities, 150, d)) for d in (device, cpu)]
            if not all(same(answer, both[1][part]) for part, answer in both[0].items()):
                raise SystemExit(1)


SMALL_CASES = {"refine": _small_case}
