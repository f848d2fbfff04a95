"""Bringing a command's table here, and meanwhile getting the kernels ready that it will need."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

from tuplewise.engine.cli.kernels import Kernels
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.table.relation import Relation


def keep_pandas_out() -> None:
    """Tell Arrow that there is no pandas, which it imports when first it converts a value: half a second for nothing.

    For a process of our own, which hands frames to nobody.
    """
    if "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    nowhere = _NoPandas()
    sys.meta_path.insert(0, nowhere)
    try:
        import pyarrow

        pyarrow.scalar(0)  # here it looks, once
    finally:
        sys.meta_path.remove(nowhere)


class _NoPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


class Loading:
    """Loads one table. Its clock starts when it is made: a time limit counts loading too.

    Attributes
    ----------
    notes : what is to be said beside the table's own notes; complete once `relation` has returned

    `command`: whose kernels are needed. `read`: what reads the table instead of `load`.
    """

    def __init__(
        self,
        table: str,
        options: LoadOptions,
        device: str,
        progress: Progress,
        state: State,
        *,
        command: str,
        read: Callable[..., Relation] | None = None,
    ) -> None:
        self._start = time.monotonic()
        if state.own_process:
            keep_pandas_out()
        self._read_table = read
        self._table, self._options, self._device = table, options, device
        self._progress, self._state = progress, state
        self._kernels = Kernels(command, progress)
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

    def relation(self, *, most_bytes: int | None = None, kernels: bool = True) -> Relation:
        """The table, when the kernels are ready too, unless none are wanted: they get ready while Spark starts.

        `most_bytes` as in `load`: what it raises comes when the kernels are ready, too.
        """
        try:
            return self._read_with_kernels(most_bytes) if kernels else self._load(self._progress.step, most_bytes)
        finally:
            from tuplewise.engine.watch import late_loading

            self.notes += late_loading(self._deadline, self.seconds)

    def _read_with_kernels(self, most_bytes: int | None) -> Relation:
        """See `relation`."""
        if self._device not in ("auto", "cpu"):  # a device that can't be had is known before the table is read
            from tuplewise.gpu_kernels.device import pick_device

            pick_device(self._device)

        def loading(step: str) -> None:
            self._progress.step(step)
            self._kernels.start()  # not before the table is known to be there

        try:
            return self._load(loading, most_bytes)
        finally:
            self._kernels.wait()
            self.notes += self._kernels.notes

    def _load(self, report: Callable[[str], None], most_bytes: int | None) -> Relation:
        """The table. What Spark leaves behind is cleared away: it is not needed any more."""
        from tuplewise.engine.table.load import load

        read = self._read_table or load
        relation = read(self._table, self._options, progress=report, most_bytes=most_bytes, device=self._device)
        if self._state.own_process and relation.spark is not None:
            from tuplewise.engine.spark.session import stop

            threading.Thread(target=stop, name="stop Spark").start()
        return relation
