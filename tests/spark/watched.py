"""Kernels of tasks that tests watch. Each call leaves two files in the folder WATCHED_FOLDER, when it begins and when
it is done, and waits or fails where a file there says so. Workers of the cluster in `loopback.py` find this module.

    hold     while it is there, calls wait as soon as as many are done as it says
    fail     the first call that takes it away fails
    slow     the first call that takes it away doesn't end for minutes: another attempt has to do its work
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tuplewise.engine.spark.pair_tiles import TileCounter

LONGEST_SECONDS = 150
_calls: Counter[int] = Counter()


class Call(NamedTuple):
    """One call. `tile`: stage, partition and number within; `executor`: its number, which it ran in."""

    tile: str
    attempt: int
    executor: str
    process: int


def calls(folder: Path, what: str) -> list[Call]:
    """Those that are "begun", or "done"."""
    named = (path.name.split(".") for path in folder.glob(f"*.{what}"))
    return [Call(tile, int(attempt), executor, int(process)) for tile, attempt, executor, process, _ in named]


@contextmanager
def watched() -> Iterator[None]:
    """Around the work on one tile, in a task."""
    from pyspark import TaskContext

    folder = Path(os.environ["WATCHED_FOLDER"])
    context = TaskContext.get()
    assert context is not None
    attempt = context.taskAttemptId()
    tile = f"{context.stageId()}-{context.partitionId()}-{_calls[attempt]}"
    _calls[attempt] += 1
    name = f"{tile}.{attempt}.{Path.cwd().name}.{os.getpid()}"  # executors run in a folder of their number
    (folder / f"{name}.begun").touch()
    deadline = time.monotonic() + LONGEST_SECONDS
    while _held(folder):
        if time.monotonic() > deadline:
            raise RuntimeError("held for too long")
        time.sleep(0.02)
    if _taken(folder / "fail"):
        raise RuntimeError("asked to fail")
    if _taken(folder / "slow"):
        time.sleep(LONGEST_SECONDS)
    yield
    (folder / f"{name}.done").touch()


def _held(folder: Path) -> bool:
    with suppress(FileNotFoundError):
        return len(calls(folder, "done")) >= int((folder / "hold").read_text())
    return False


def _taken(path: Path) -> bool:
    with suppress(FileNotFoundError):
        path.unlink()
        return True
    return False


@dataclass(frozen=True)
class Watched:
    """A kernel that is watched."""

    kernel: Callable[..., Any]

    def __call__(self, *given: Any, **named: Any) -> Any:
        with watched():
            return self.kernel(*given, **named)


@dataclass(frozen=True, eq=False)
class WatchedCounter(TileCounter):
    """Tiles of all pairs, watched."""

    def count(self, tile: tuple[int, int]) -> Iterator[Any]:
        with watched():
            found = list(super().count(tile))
        yield from found
