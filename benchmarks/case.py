"""Cases of benchmarks, and timing."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.datasets import Source

OURS = "tuplewise"
Measurement = dict[str, Any]
Measure = Callable[["Case", Path, int], Measurement]


@dataclass(frozen=True)
class Peer:
    """Implementation that ours is compared with on a case.

    Attributes
    ----------
    measure : measures in a process of its own
    warm_runs : runs after the first
    slow : it takes minutes, so it is run only when asked for by name
    """

    measure: Measure
    warm_runs: int = 2
    slow: bool = False


@dataclass(frozen=True)
class Case:
    """One thing to time.

    Attributes
    ----------
    name : group and name, `evidence/adult`
    dataset : the table
    parameters : what it is run with, as recorded
    ours : measures in a process of its own
    peers : by the name of the implementation in the records
    warm_runs : runs after the first
    """

    name: str
    dataset: Source
    ours: Measure
    parameters: dict[str, Any] = field(default_factory=dict)
    peers: Mapping[str, Peer] = field(default_factory=dict)
    warm_runs: int = 5


def timed(work: Callable[[], Any], warm_runs: int) -> tuple[list[float], list[Any]]:
    """Seconds and results of `warm_runs + 1` runs, the first cold; only the last two results are kept alive."""
    seconds: list[float] = []
    results: list[Any] = []
    for _ in range(warm_runs + 1):
        gc.collect()
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
        results = [*results[-1:], result]
    return seconds, results
