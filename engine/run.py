"""One run of a task: since when, until when, in how much memory, and whom it tells how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import Protocol, Self

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.placement import resident_bytes

Progress = Callable[[str, float], None]
TIME_LIMIT = "time limit reached"  # what a search that ended there says
SEARCHING = "searching"  # the stage of a search by chosen pairs


class Limits(Protocol):
    """Options that limit a run."""

    @property
    def time_limit(self) -> float | None: ...
    @property
    def memory_limit(self) -> int | None: ...


class Run:
    """What every search is given of the task that it is a part of.

    The run begins when it is made: a time limit counts reading too.

    Parameters
    ----------
    limits : options with a limit in seconds and one in bytes of this process; None: no limits
    progress : called with a stage and the share of it that is done
    deadline : when the work has to end, on the clock of time.monotonic, where options don't say so
    """

    def __init__(
        self, limits: Limits | None = None, progress: Progress | None = None, *, deadline: float | None = None
    ) -> None:
        self._start = time.monotonic()
        self.deadline, self.memory_limit, self._progress = deadline, None, progress
        if limits is not None:
            self.memory_limit = limits.memory_limit
            if limits.time_limit is not None:
                self.deadline = self._start + limits.time_limit

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._start

    def over(self) -> bool:
        """Whether the time is over."""
        return past(self.deadline)

    def mind(self) -> None:
        """Raise LimitReached where the time is over."""
        if self.over():
            raise LimitReached(TIME_LIMIT)

    def full(self) -> bool:
        """Whether this process holds more than the memory limit."""
        return self.memory_limit is not None and resident_bytes() > self.memory_limit

    def part(self, share: float) -> Self:
        """This run, which has to end when so much of the time that is left is over."""
        sooner = copy(self)
        if self.deadline is not None:
            sooner.deadline = self.deadline - (1 - share) * max(0.0, self.deadline - time.monotonic())
        return sooner

    def step(self, name: str) -> None:
        """A step begins."""

    def tell(self, stage: str, share: float) -> None:
        """So much of a stage is done."""
        if self._progress is not None:
            self._progress(stage, share)

    def stage(self, name: str) -> Callable[[float], None] | None:
        """What a kernel calls with the share that is done; None where nobody wants to know.

        It raises LimitReached at the memory limit.
        """
        if self._progress is None and self.memory_limit is None:
            return None

        def report(share: float) -> None:
            self.tell(name, share)
            if self.full():
                raise LimitReached(f"memory limit of {self.memory_limit:,} bytes reached")

        return report

    def minded(self, name: str) -> Callable[[float], None]:
        """As `stage`, for loops that look at no deadline themselves: it raises LimitReached at that, too."""
        report = self.stage(name)

        def mind(share: float) -> None:
            self.mind()
            if report is not None:
                report(share)

        return mind


def past(deadline: float | None) -> bool:
    """Whether a deadline, on the clock of time.monotonic, is over."""
    return deadline is not None and time.monotonic() >= deadline


class Clock:
    """Seconds of each stage, one after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
