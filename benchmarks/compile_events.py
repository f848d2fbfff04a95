"""What Numba compiles for some kernels, in this process and with an empty cache: a line of JSON.

    python -m benchmarks.compile_events NAME...      kernels or modules of kernels
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numba.core import event

from tuplewise.gpu_kernels import building, cache


class CompileTimes(event.Listener):  # type: ignore[misc]
    """Seconds of each function that is compiled, in all and without what it calls, and how often it is."""

    def __init__(self) -> None:
        self.functions: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
        self._open: list[list[float]] = []

    def on_start(self, started: Any) -> None:
        """A function begins; those that it calls come inside."""
        self._open.append([time.perf_counter(), 0.0])

    def on_end(self, ended: Any) -> None:
        """It is done."""
        started, inside = self._open.pop()
        seconds = time.perf_counter() - started
        function = ended.data["dispatcher"]
        function = getattr(function, "py_func", function)
        name = f"{function.__module__}.{function.__qualname__}".removeprefix(f"{cache.PACKAGE}.")
        of = self.functions[name]
        of[0], of[1], of[2] = of[0] + seconds, of[1] + seconds - inside, of[2] + 1
        if self._open:
            self._open[-1][1] += seconds


def compile_kernels(names: Sequence[str]) -> dict[str, Any]:
    """Compile kernels, one after the other, and tell what that took."""
    times = CompileTimes()
    with tempfile.TemporaryDirectory(prefix="tuplewise-kernels-") as folder:
        cache._prepared = cache.KernelCache(Path(folder), lasting=False)
        kernels = building.kernels_named(names)
        gc.disable()  # as where they are compiled beforehand
        event.register("numba:compile", times)
        started = time.perf_counter()
        for kernel in kernels:
            for types in kernel.signatures:
                kernel.compile(types)
        seconds = time.perf_counter() - started
        kept = sum(file.stat().st_size for file in Path(folder).glob(f"*{cache.SUFFIX}"))
    return {
        "seconds": seconds,
        "specialisations": sum(len(kernel.signatures) for kernel in kernels),
        "functions": sum(count for _, _, count in times.functions.values()),
        "kept_bytes": kept,
        "by_function": [
            {"name": name, "seconds": total, "own_seconds": own, "times": count}
            for name, (total, own, count) in sorted(times.functions.items(), key=lambda one: -one[1][1])
        ],
    }


if __name__ == "__main__":
    print(json.dumps(compile_kernels(sys.argv[1:] or building.kernel_modules())))
