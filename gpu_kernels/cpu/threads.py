"""Running tasks on threads. Tasks are compiled code that releases the GIL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tuplewise.gpu_kernels.control import Control


def run_tasks(costs: Sequence[float], make_worker: Callable[[], Callable[[int], None]], control: Control) -> bool:
    """Run tasks 0 to len(costs) - 1, each once, starting them in that order.

    `make_worker` is called once in each thread and returns the function that runs a task; its local state needs no
    lock. Returns whether every task ran: False where the deadline or a stop came first. The first exception of a worker
    is raised here, after the other workers have finished their running tasks. Ctrl-C does the same.
    """
    total = float(sum(costs)) or 1.0
    lock = threading.Lock()
    failures: list[BaseException] = []
    state = {"next": 0, "finished": 0, "cost": 0.0}
    halt = threading.Event()

    def take() -> int | None:
        with lock:
            task = int(state["next"])
            if task >= len(costs) or halt.is_set() or control.over():
                return None
            state["next"] = task + 1
            return task

    def work() -> None:
        try:
            worker = make_worker()
            while (task := take()) is not None:
                worker(task)
                with lock:
                    state["finished"] += 1
                    state["cost"] += costs[task]
                    if control.progress is not None:
                        control.progress(state["cost"] / total)
        except BaseException as failure:
            failures.append(failure)
            halt.set()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(control.threads, len(costs)) - 1)]
    for thread in threads:
        thread.start()
    try:
        work()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        halt.set()
        for thread in threads:
            thread.join()
        raise
    if failures:
        raise failures[0]
    return int(state["finished"]) == len(costs)
