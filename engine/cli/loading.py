"""The run of a command: opening its table, and meanwhile getting the kernels ready that it will need."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

from tuplewise.engine.cli.kernels import Kernels
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.errors import command_line_option
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.run import Limits
from tuplewise.engine.tasks import TaskRun

if TYPE_CHECKING:
    from tuplewise.engine.table.table import Table


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


class CommandRun(TaskRun):
    """The run of a command: it tells the terminal how far it is, and gets kernels ready while a table is read.

    Parameters
    ----------
    command : whose kernels are needed; None: none are
    """

    def __init__(self, command: str | None, progress: Progress, state: State, limits: Limits | None = None) -> None:
        super().__init__(limits, progress.share)
        self.face = command_line_option
        if state.own_process:
            keep_pandas_out()
        self._shown, self._state = progress, state
        self._kernels = None if command is None else Kernels(command, progress)

    @property
    def verbose(self) -> bool:
        """Whether more than usual is to be said."""
        return self._state.verbose > 0

    def step(self, name: str) -> None:
        self._shown.step(name)

    def get_ready(self) -> None:
        """Get the kernels ready before anything is read, where reading calls some of them."""
        if self._kernels is not None:
            self._kernels.start()
            self._wait_for_kernels()

    def _wait_for_kernels(self) -> None:
        if self._kernels is not None:
            self._kernels.wait()
            self.notes += self._kernels.notes

    def _open(self, source: Any, options: LoadOptions | None, how: Mapping[str, Any]) -> Table:
        """The table, when the kernels are ready too: they get ready while it is read."""
        from tuplewise.engine.table.table import open_table

        if how["device"] not in ("auto", "cpu"):  # a device that can't be had is known before the table is read
            from tuplewise.gpu_kernels.device import pick_device

            pick_device(how["device"])
        kernels = self._kernels

        def reading(step: str) -> None:
            self.step(step)
            if kernels is not None:
                kernels.start()  # not before the table is known to be there

        try:
            table = open_table(source, options, progress=reading, **how)
            self._let_spark_go(table)
            return table
        finally:
            self._wait_for_kernels()

    def _let_spark_go(self, table: Table) -> None:
        """Clear away what Spark leaves behind, where the table is here and the process ours: it is needed no more."""
        from tuplewise.engine.table.relation import Relation

        if self._state.own_process and isinstance(table, Relation) and table.spark is not None:
            from tuplewise.engine.spark.session import stop

            threading.Thread(target=stop, name="stop Spark").start()
