"""The run of a command: opens its table, and prepares the kernels at the same time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

from tuplewise.engine.cli.kernels import Kernels
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import command_line_option, spelled
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.run import Limits
from tuplewise.engine.tasks import TaskRun

if TYPE_CHECKING:
    from tuplewise.engine.table.in_spark import Table


def keep_pandas_out() -> None:
    """Hide pandas from Arrow, which imports it at the first conversion of a value and takes half a second for that.

    For a process of our own, which never returns data frames.
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
    """The run of a command: shows progress on the terminal, and prepares kernels while a table is read.

    Parameters
    ----------
    command : the command whose kernels are prepared; None: no kernels
    """

    def __init__(
        self, command: str | None, progress: Progress, invocation: Invocation, limits: Limits | None = None
    ) -> None:
        super().__init__(limits, progress.share)
        self.face = command_line_option
        if invocation.own_process:
            keep_pandas_out()
        self._shown, self._invocation = progress, invocation
        self._kernels = None if command is None else Kernels(command, progress)

    @property
    def verbose(self) -> bool:
        """Whether --verbose is given."""
        return self._invocation.verbose > 0

    def step(self, name: str) -> None:
        self._shown.step(name)

    def found(self, count: int, hint: str) -> None:
        self._shown.found(count, spelled(hint, self.face))

    def warn(self, text: str) -> None:
        self._shown.say(f"note: {spelled(text, self.face)}")

    def get_ready(self) -> None:
        """Wait for the kernels before anything is read, for commands whose reading calls some."""
        if self._kernels is not None:
            self._kernels.start()
            self._wait_for_kernels()

    def _wait_for_kernels(self) -> None:
        if self._kernels is not None:
            self._kernels.wait()
            self.notes += self._kernels.notes

    def _open(self, source: Any, options: LoadOptions | None, how: Mapping[str, Any]) -> Table:
        """Open the table while the kernels are prepared, and wait for both."""
        from tuplewise.engine.table.table import open_table

        if how["device"] not in ("auto", "cpu"):  # an unavailable device is an error before the table is read
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
        """Stop Spark once the table is in memory, in a process of our own."""
        from tuplewise.engine.table.relation import Relation

        if self._invocation.own_process and isinstance(table, Relation) and table.spark is not None:
            from tuplewise.engine.spark.session import stop

            threading.Thread(target=stop, name="stop Spark").start()
