"""What Spark changes in the process that starts a session, and leaves there when the session is stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from dataclasses import dataclass
from typing import Any

LEFT_VARIABLES = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")


@dataclass(frozen=True)
class Traces:
    """How these things were before: variables, places that Python imports from, and who is told of Ctrl-C."""

    variables: dict[str, str | None]
    import_path: tuple[str, ...]
    interrupted: Any

    @classmethod
    def before(cls) -> Traces:
        """As they are now."""
        variables = {name: os.environ.get(name) for name in LEFT_VARIABLES}
        return cls(variables, tuple(sys.path), signal.getsignal(signal.SIGINT))

    def remove(self) -> None:
        """Put back what Spark changed and nothing else: its folder of files is gone by now, and its handler of Ctrl-C
        asks a session that has ended."""
        for name, value in self.variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for place in set(sys.path) - set(self.import_path):
            if os.path.basename(place).startswith("userFiles-") and not os.path.exists(place):
                sys.path.remove(place)
        now = signal.getsignal(signal.SIGINT)
        asks_spark = getattr(now, "__qualname__", "").startswith("SparkContext.")
        if asks_spark and threading.current_thread() is threading.main_thread():
            with contextlib.suppress(TypeError):  # a handler that Python didn't set can't be put back
                signal.signal(signal.SIGINT, self.interrupted)
