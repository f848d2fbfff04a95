"""Times `discover` on a loaded table: predicate space, search and ranking; loading and encoding are left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.answers import digest_constraints
from benchmarks.case import Case, Measurement, timed

if TYPE_CHECKING:
    from tuplewise.engine.dc.discover import DcDiscovery
    from tuplewise.engine.options import DcDiscoverOptions


def timed_discovery(
    case: Case, path: Path, options: DcDiscoverOptions, warm_runs: int
) -> tuple[Measurement, DcDiscovery]:
    """What was measured, without "figures", and the last result."""
    from tuplewise.engine.dc.discover import discover

    relation = case.dataset.load(path)
    kernels: dict[str, list[float]] = {}

    def work() -> DcDiscovery:
        found = discover(relation, options)
        for name, value in found.timings_seconds.items():
            kernels.setdefault(name, []).append(value)
        return found

    seconds, results = timed(work, warm_runs)
    found: DcDiscovery = results[-1]
    count, digest = digest_constraints(
        [(p.left, p.operator, str(p.right)) for p in constraint.predicates] for constraint in found.constraints
    )
    measured = {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": kernels,
        "answer": {"count": count, "digest": digest, "listed": len(found.constraints)},
    }
    return measured, found
