"""Functions to call when this process ends; processes forked from it don't call them."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any


def at_exit(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Call a function when the current process ends."""
    atexit.register(_call_in, os.getpid(), function, *args, **options)


def _call_in(process: int, function: Callable[..., Any], *args: Any, **options: Any) -> None:
    if os.getpid() == process:
        function(*args, **options)
