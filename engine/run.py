"""One run of a task: when it began and has to end, whom it tells how far it is, and how it opens tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import LoadOptions
from tuplewise.engine.watch import Progress

if TYPE_CHECKING:
    from tuplewise.engine.table.read_table import Needed
    from tuplewise.engine.table.relation import Relation
    from tuplewise.engine.table.table import Table


class Run:
    """One run of a task. Its clock starts when it is made: a time limit counts reading too.

    Parameters
    ----------
    time_limit : seconds, or None
    progress : called with a stage and the share of it that is done

    Attributes
    ----------
    deadline : when the time limit ends the work, on the clock of time.monotonic, or None
    notes : what is to be said beside what is found
    """

    def __init__(self, time_limit: float | None = None, progress: Progress | None = None) -> None:
        self._start = time.monotonic()
        self.deadline = None if time_limit is None else self._start + time_limit
        self.progress = progress
        self.notes: list[str] = []

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._start

    @property
    def how(self) -> dict[str, Any]:
        """What every task takes of a run."""
        return {"step": self.step, "progress": self.progress, "deadline": self.deadline}

    def step(self, name: str) -> None:
        """A step begins."""

    def open(
        self, source: Any, options: LoadOptions | None, most_bytes: int | None, device: str, needed: Needed = None
    ) -> Table:
        """A table, wherever its rows lie; see `open_table`.

        A note says where the time was over by then: neither Spark's start nor reading heeds it.
        """
        began = time.monotonic()
        how: dict[str, Any] = {"most_bytes": most_bytes, "device": device, "needed": needed}
        table = self._open(source, options, how)
        late = self.deadline is not None and time.monotonic() >= self.deadline
        if late and table is not source:  # else it was read before
            seconds = time.monotonic() - began
            over = f"the time limit was over before the table was read ({seconds:.1f} s), which it does not interrupt"
            self.notes.append(over)
        return table

    def load(self, source: Any, options: LoadOptions | None, device: str) -> Relation:
        """A table, whatever its size, here."""
        from tuplewise.engine.table.relation import Relation

        table = self.open(source, options, None, device)
        assert isinstance(table, Relation), "tables of any size come here"
        return table

    def _open(self, source: Any, options: LoadOptions | None, how: Mapping[str, Any]) -> Table:
        from tuplewise.engine.table.table import open_table

        return open_table(source, options, progress=self.step, **how)

    def handed_on(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """What a result is told beside what was found. `options`: those it shows; None: the task's own."""
        return {"options": options, "notes": self.notes, "total_seconds": self.seconds}
