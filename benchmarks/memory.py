"""How much memory the evidence kernel takes on top of its input, in a process that does nothing else.

    python -m benchmarks.memory CLUES.npz ROWS      prints bytes

CLUES.npz holds `codes` (int32, columns x rows) and the arrays of a clue layout. The kernel first runs on a few rows, so
that loading the compiled code is not counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tuplewise.gpu_kernels.words import ClueLayout

WARM_UP_ROWS = 300


def extra_peak_bytes(codes: Any, layout: ClueLayout, rows: int) -> int:
    """Peak resident size while comparing the first `rows` rows, less the size before; in a new process."""
    with tempfile.TemporaryDirectory(prefix="tuplewise-bench-") as folder:
        path = Path(folder) / "clues.npz"
        np.savez(path, codes=codes, **{f.name: getattr(layout, f.name) for f in fields(layout)})
        command = [sys.executable, "-m", "benchmarks.memory", str(path), str(rows)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


def resident_bytes(peak: bool) -> int:
    """Resident size of this process, now or at its greatest (Linux)."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell how much memory a process holds")


def main(arguments: list[str]) -> int:
    """Measure in this process; returns the exit code."""
    from tuplewise.gpu_kernels.evidence import collect_clues
    from tuplewise.gpu_kernels.words import ClueLayout

    stored = np.load(arguments[0])
    layout = ClueLayout(**{f.name: stored[f.name] for f in fields(ClueLayout)})
    codes = stored["codes"]
    few = np.ascontiguousarray(codes[:, :WARM_UP_ROWS])
    codes = np.ascontiguousarray(codes[:, : int(arguments[1])])
    collect_clues(few, layout, device="cpu")
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak starts anew
    before = resident_bytes(peak=False)
    collect_clues(codes, layout, device="cpu")
    sys.stdout.write(f"{resident_bytes(peak=True) - before}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
