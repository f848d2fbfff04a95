"""Control of a running kernel: deadline, progress, threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

Watch = Callable[[int, float], bool]
"""Follows a search: told how many sets were found so far and the share that is done; True ends the search."""


class Control:
    """Settings and stop flag that the threads of one kernel call share.

    Attributes
    ----------
    deadline : `time.monotonic()` value after which no new task starts
    progress : called with the share that is done, 0 to 1, after each task, from one thread at a time
    threads : threads that a CPU twin uses; where None is given, one for each usable core
    gpus : tuple of int
        Numbers of further GPUs that a CUDA twin may use beside the current one.
    stopped : threading.Event
        Set by the caller (Ctrl-C) to end the work after the running tasks.
    """

    def __init__(
        self,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
        threads: int | None = None,
        gpus: tuple[int, ...] = (),
        stopped: threading.Event | None = None,
    ) -> None:
        self.deadline, self.progress, self.gpus = deadline, progress, gpus
        self.threads = threads or usable_cores()
        self.stopped = stopped or threading.Event()

    def telling(self, progress: Callable[[float], None] | None) -> Control:
        """Copy with another progress callback, for a part of the work."""
        return Control(self.deadline, progress, self.threads, self.gpus, self.stopped)

    def over(self) -> bool:
        """Tell whether no new task may start."""
        return self.stopped.is_set() or (self.deadline is not None and time.monotonic() >= self.deadline)

    @contextmanager
    def alarm(self) -> Iterator[NDArray[np.bool_]]:
        """Flag for compiled loops, bool (1,), set at the deadline."""
        flag = np.zeros(1, dtype=np.bool_)
        if self.deadline is None:
            yield flag
            return
        timer = threading.Timer(max(0.0, self.deadline - time.monotonic()), flag.fill, (True,))
        timer.daemon = True
        timer.start()
        try:
            yield flag
        finally:
            timer.cancel()


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
