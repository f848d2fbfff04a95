"""Times `discover` on a loaded table: predicate space, search and ranking; loading and encoding are left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.answers import digest_constraints
from benchmarks.case import Case, Measurement, timed

if TYPE_CHECKING:
    from tuplewise.engine.dc.discovery import DcDiscovery
    from tuplewise.engine.options import DcDiscoverOptions

Found = TypeVar("Found", bound=Any)


def timed_phases(discover: Callable[[], Found], warm_runs: int) -> tuple[Measurement, Found]:
    """Seconds of a discovery, in all and by phase (its `timings_seconds`), and the last result."""
    phases: dict[str, list[float]] = {}

    def work() -> Found:
        found = discover()
        for name, value in found.timings_seconds.items():
            phases.setdefault(name, []).append(value)
        return found

    seconds, results = timed(work, warm_runs)
    return {"cold_seconds": seconds[0], "warm_seconds": seconds[1:], "kernel_seconds": phases}, results[-1]


def timed_discovery(
    case: Case, path: Path, options: DcDiscoverOptions, warm_runs: int
) -> tuple[Measurement, DcDiscovery]:
    """What was measured, without "figures", and the last result."""
    from tuplewise.engine.dc.discover import discover

    measured, found = timed_phases(partial(discover, case.dataset.load(path), options), warm_runs)
    count, digest = digest_constraints(
        [(p.left, p.operator, str(p.right)) for p in constraint.predicates] for constraint in found.constraints
    )
    return measured | {"answer": {"count": count, "digest": digest, "listed": len(found.constraints)}}, found
