"""Changes that Spark makes to a process when a session starts, and that it leaves behind when the session stops."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEFT_VARIABLES = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")


@dataclass(frozen=True)
class Traces:
    """The state before a session: environment variables, Python's import path, and the handler of Ctrl-C."""

    variables: dict[str, str | None]
    import_path: tuple[str, ...]
    interrupted: Any

    @classmethod
    def before(cls) -> Traces:
        """The present state."""
        variables = {name: os.environ.get(name) for name in LEFT_VARIABLES}
        return cls(variables, tuple(sys.path), signal.getsignal(signal.SIGINT))

    def remove(self) -> None:
        """Undo Spark's changes and nothing else. Its folder of files is gone by now, and its handler of Ctrl-C would
        call a session that has ended."""
        restore_variables(self.variables)
        for place in set(sys.path) - set(self.import_path):
            if os.path.basename(place).startswith("userFiles-") and not os.path.exists(place):
                sys.path.remove(place)
        now = signal.getsignal(signal.SIGINT)
        asks_spark = getattr(now, "__qualname__", "").startswith("SparkContext.")
        if asks_spark and threading.current_thread() is threading.main_thread():
            with contextlib.suppress(TypeError):  # a handler that Python didn't set can't be put back
                signal.signal(signal.SIGINT, self.interrupted)


def restore_variables(variables: Mapping[str, str | None]) -> None:
    """Set environment variables; None: the variable goes."""
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
