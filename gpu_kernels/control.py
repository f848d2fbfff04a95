"""What a caller may say to a running kernel: until when, whom to tell how far it is, on how many threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Control:
    """Shared by the threads of one kernel call.

    Attributes
    ----------
    deadline : float or None
        `time.monotonic()` value after which no new task starts.
    progress : callable or None
        Called with the share that is done, 0 to 1, after each task, from one thread at a time.
    threads : int
        Threads that a CPU twin uses.
    gpus : tuple of int
        Further GPUs that a CUDA twin may use beside the current one, by number.
    stopped : threading.Event
        Set from outside (Ctrl-C) to end the work after the running tasks.
    """

    deadline: float | None = None
    progress: Callable[[float], None] | None = None
    threads: int = field(default_factory=lambda: usable_cores())
    stopped: threading.Event = field(default_factory=threading.Event)
    gpus: tuple[int, ...] = ()

    def over(self) -> bool:
        """Whether no new task may start."""
        return self.stopped.is_set() or (self.deadline is not None and time.monotonic() >= self.deadline)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
