"""Cases behind the planner of rule checks: seconds a left row by algorithm, rows that agree, and inequalities.

The constants in `engine/dc/violations/planner.py` are taken from these figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import datasets
from benchmarks.answers import digest_counts
from benchmarks.case import Case, Measurement, timed

if TYPE_CHECKING:
    from tuplewise.gpu_kernels.join_types import Algorithm, Comparison

ALGORITHMS: dict[int, tuple[Algorithm, ...]] = {
    2: ("iejoin", "kdtree", "bhsm"),
    3: ("rangetree", "kdtree", "bhsm"),
    4: ("rangetree", "kdtree", "bhsm"),
}
SLOW_PAIRS = 1 << 33  # a k-d tree over random codes visits much of them: left out beyond


def measure_choice(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Count pairs of random codes inside random clusters, on one thread; every algorithm must count the same."""
    import numpy as np

    from tuplewise.gpu_kernels.clusters import all_rows
    from tuplewise.gpu_kernels.join_types import GREATER, LESS, Comparison
    from tuplewise.gpu_kernels.refine import join, refine_equal

    rows, agreeing, inequalities = (case.parameters[name] for name in ("rows", "agreeing_rows", "inequalities"))
    rng = np.random.default_rng(case.parameters["seed"])
    group = rng.integers(0, max(1, rows // agreeing), rows)
    columns = [group, *(rng.integers(0, rows, rows) for _ in range(inequalities))]
    codes = np.ascontiguousarray(np.stack(columns).astype(np.int32))
    everything = all_rows(np.arange(rows, dtype=np.int32))
    pairs = refine_equal(everything, codes, [(0, 0)], device="cpu")
    compared: list[Comparison] = [Comparison(c, c, LESS if c % 2 else GREATER) for c in range(1, inequalities + 1)]
    per_row: dict[str, float] = {}
    counts: set[int] = set()
    total: list[float] = [0.0] * (warm_runs + 1)
    for algorithm in ALGORITHMS[inequalities]:
        if algorithm == "kdtree" and pairs.pairs > SLOW_PAIRS:
            continue

        def work(algorithm: Algorithm = algorithm) -> int:
            pairs.kept.clear()
            return join(pairs, codes, compared, algorithm, device="cpu", threads=1).count(None, 1)

        seconds, results = timed(work, warm_runs)
        counts.add(results[-1])
        per_row[algorithm] = min(seconds) / len(pairs.left)
        total = [a + b for a, b in zip(total, seconds, strict=True)]
    if len(counts) != 1:
        raise RuntimeError(f"the algorithms count differently: {sorted(counts)}")
    return {
        "cold_seconds": total[0],
        "warm_seconds": total[1:],
        "kernel_seconds": {},
        "answer": {"count": next(iter(counts)), "digest": digest_counts(counts)},
        "figures": {"seconds_for_a_left_row": per_row},
    }


CHOICE_CASES = tuple(
    Case(
        f"check_choice/{inequalities}-inequalities-{agreeing}-rows",
        datasets.TAX_1000,
        measure_choice,
        {"rows": 100_000, "agreeing_rows": agreeing, "inequalities": inequalities, "seed": 3},
        warm_runs=2,
    )
    for inequalities in (2, 3, 4)
    for agreeing in (4, 64, 2_000, 100_000)
)
