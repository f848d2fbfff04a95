"""Bringing a command's table here, and meanwhile getting the kernels ready that it will need."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import KERNELS_THREAD, State
from tuplewise.engine.options import LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.relation.relation import Relation

COMPILING = "compiling kernels (once for this version of tuplewise on this machine; up to a minute)"


class Loading:
    """Loads one table. Its clock starts when it is made: a time limit counts loading too.

    Attributes
    ----------
    notes : what is to be said beside the table's own notes; complete once `relation` has returned

    `read`: what reads the table instead of `load`.
    """

    def __init__(
        self,
        table: str,
        options: LoadOptions,
        device: str,
        progress: Progress,
        state: State,
        *,
        read: Callable[..., Relation] | None = None,
    ) -> None:
        self._start = time.monotonic()
        self._read_table = read
        self._table, self._options, self._device = table, options, device
        self._progress, self._state = progress, state
        self._kernels: threading.Thread | None = None
        self._deadline: float | None = None
        self.notes: list[str] = []

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return time.monotonic() - self._start

    def deadline(self, time_limit: float | None) -> float | None:
        """When a time limit ends the work, on the monotonic clock."""
        self._deadline = None if time_limit is None else self._start + time_limit
        return self._deadline

    def relation(self, warm_up: Callable[[Relation], Any] | None = None, *, most_bytes: int | None = None) -> Relation:
        """The table, when the kernels are ready too.

        `warm_up` is called meanwhile with a table of three rows, and does with it what the command does with its own:
        so kernels are loaded, or compiled, while Spark starts. `most_bytes` as in `load`: what it raises comes when the
        kernels are ready, too.
        """
        try:
            return self._read(warm_up, most_bytes)
        finally:
            from tuplewise.engine.watch import late_loading

            self.notes += late_loading(self._deadline, self.seconds)

    def _read(self, warm_up: Callable[[Relation], Any] | None, most_bytes: int | None) -> Relation:
        """See `relation`."""
        if warm_up is None:
            return self._load(self._progress.step, most_bytes)
        if self._device not in ("auto", "cpu"):  # a device that can't be had is known before the table is read
            from tuplewise.gpu_kernels.device import pick_device

            pick_device(self._device)

        def loading(step: str) -> None:
            self._progress.step(step)
            if self._kernels is None:
                self._kernels = threading.Thread(
                    target=self._get_kernels_ready, args=(warm_up,), name=KERNELS_THREAD, daemon=True
                )
                self._kernels.start()

        try:
            return self._load(loading, most_bytes)
        finally:
            self._wait_for_kernels()

    def _load(self, report: Callable[[str], None], most_bytes: int | None) -> Relation:
        """The table. What Spark leaves behind is cleared away: it is not needed any more."""
        from tuplewise.engine.relation.load import load

        read = self._read_table or load
        relation = read(self._table, self._options, progress=report, most_bytes=most_bytes, device=self._device)
        if self._state.own_process and relation.spark is not None:
            from tuplewise.engine.spark.session import stop

            threading.Thread(target=stop, name="stop Spark").start()
        return relation

    def _get_kernels_ready(self, warm_up: Callable[[Relation], Any]) -> None:
        from tuplewise.gpu_kernels import cache

        cache.announce_compiling(lambda: self._progress.say(COMPILING))
        if note := cache.prepare().note:
            self.notes.append(note)
            self._progress.say(f"note: {note}")
        import pyarrow as pa

        from tuplewise.engine.relation.load import load

        few = pa.table({"a": [1, 2, 2], "b": ["x", "y", None], "c": [3, 1, 3]})
        with contextlib.suppress(Exception):  # the command's own work meets it again, and will say it
            warm_up(load(few))

    def _wait_for_kernels(self) -> None:
        if self._kernels is not None and self._kernels.is_alive():
            self._progress.step("loading kernels")
            while self._kernels.is_alive():  # in short waits, so that Ctrl-C is heard
                self._kernels.join(timeout=0.1)
