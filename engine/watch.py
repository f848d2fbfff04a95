"""What every task keeps an eye on: seconds of its stages, its progress, the memory limit; and what fits here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from tuplewise.engine.errors import InputError, LimitReached, message
from tuplewise.engine.options import RunOn

SHARE_HERE = 0.25
"""Share of this machine's memory that codes may take before work goes to Spark: kernels take a few times as much."""
Progress = Callable[[str, float], None]
Step = Callable[[str], None]


def silent(step: str) -> None:
    """Hears of a step that begins, and says nothing."""


TIME_LIMIT = "time limit reached"  # what a search that ended there says


class Clock:
    """Seconds of each stage, one after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


class Watch:
    """Passes progress on and holds the memory limit."""

    def __init__(self, progress: Progress | None, memory_limit: int | None) -> None:
        self._progress, self._memory_limit = progress, memory_limit

    def stage(self, name: str) -> Callable[[float], None] | None:
        """What a kernel calls with the share that is done; None where nobody wants to know."""
        if self._progress is None and self._memory_limit is None:
            return None

        def report(share: float) -> None:
            if self._progress is not None:
                self._progress(name, share)
            if self._memory_limit is not None and resident_bytes() > self._memory_limit:
                raise LimitReached(f"memory limit of {self._memory_limit:,} bytes reached")

        return report


class Placed(Protocol):
    """Options that say where work is done."""

    @property
    def run_on(self) -> RunOn: ...
    @property
    def memory_limit(self) -> int | None: ...


def refuse_spark(options: Placed, table: str) -> None:
    """Raise InputError where Spark is asked for and the table is held in this process."""
    if options.run_on == "spark":
        allowed = "a table that Spark reads: a path, spark:db.table, or a Spark DataFrame"
        raise InputError(message("run_on 'spark' for a table that is held here", table, allowed))


def most_bytes_unless(only_here: tuple[str, str, str] | None, options: Placed) -> int | None:
    """`most_bytes_here`, where an option is for this process alone: its name, its value, what Spark allows; or None.

    Raises InputError where Spark is asked for with it.
    """
    if only_here is None:
        return most_bytes_here(options)
    if options.run_on == "spark":
        name, value, allowed = only_here
        raise InputError(message(f"run_on 'spark' with {name}", value, allowed, "Leave run_on out, or take 'driver'"))
    return None


def most_bytes_here(options: Placed) -> int | None:
    """Bytes that the codes of a table may take for work in this process; None: any. See `load`."""
    if options.run_on == "driver":
        return None
    return 0 if options.run_on == "spark" else bytes_for_codes(options.memory_limit)


def bytes_for_codes(memory_limit: int | None = None) -> int:
    """Bytes that the codes of a table may take here, of this machine's memory or of what work is limited to."""
    import psutil

    memory = int(psutil.virtual_memory().total)
    return int(SHARE_HERE * min(memory, memory_limit or memory))


def available_bytes() -> int:
    import psutil

    return int(psutil.virtual_memory().available * 0.9)


def resident_bytes() -> int:
    """Memory that this process holds now."""
    import psutil

    return int(psutil.Process().memory_info().rss)
