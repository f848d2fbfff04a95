"""The run of a task: its start, its limits of time and memory, and its progress."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from copy import copy
from typing import Protocol, Self

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.placement import resident_bytes

Progress = Callable[[str, float], None]
TIME_LIMIT = "time limit reached"  # what a search that ended there says
SEARCHING = "searching"  # the stage of comparing chosen pairs


class Limits(Protocol):
    """Options that limit a run."""

    @property
    def time_limit(self) -> float | None: ...
    @property
    def memory_limit(self) -> int | None: ...


class Run:
    """The run of a task, which every search of the task receives.

    It starts when it is created, so a time limit includes reading.

    Parameters
    ----------
    limits : options with a time limit in seconds and a memory limit of this process in bytes; None: no limits
    progress : called with a stage and its finished share
    deadline : the end of the run on the clock of time.monotonic, unless options have a time limit
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
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline; None where there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def over(self) -> bool:
        """Whether the deadline has passed."""
        return past(self.deadline)

    def mind(self) -> None:
        """Raise LimitReached if the deadline has passed."""
        if self.over():
            raise LimitReached(TIME_LIMIT)

    def full(self) -> bool:
        """Whether this process holds more than the memory limit."""
        return self.memory_limit is not None and resident_bytes() > self.memory_limit

    def part(self, share: float) -> Self:
        """A copy of this run that ends after so much of the remaining time."""
        sooner = copy(self)
        if self.deadline is not None:
            sooner.deadline = self.deadline - (1 - share) * max(0.0, self.deadline - time.monotonic())
        return sooner

    def step(self, name: str) -> None:
        """Report that a step starts."""

    def tell(self, stage: str, share: float) -> None:
        """Report the finished share of a stage."""
        if self._progress is not None:
            self._progress(stage, share)

    def found(self, count: int, hint: str) -> None:
        """Report how many constraints a search has found so far, and what would shorten it."""

    def warn(self, text: str) -> None:
        """Say something that can't wait for the result."""
        logging.getLogger("tuplewise").warning("%s", text)

    def stage(self, name: str) -> Callable[[float], None] | None:
        """A function that kernels call with the finished share of a stage; None if there is nothing to do.

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
        """See `stage`; for loops that don't check the deadline: it raises LimitReached at that, too."""
        report = self.stage(name)

        def mind(share: float) -> None:
            self.mind()
            if report is not None:
                report(share)

        return mind


def past(deadline: float | None) -> bool:
    """Whether a deadline on the clock of time.monotonic has passed."""
    return deadline is not None and time.monotonic() >= deadline


class Clock:
    """The seconds of consecutive stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def with_total(self) -> dict[str, float]:
        """The seconds of the stages, and of all of them together."""
        return {**self.seconds, "total": sum(self.seconds.values())}
