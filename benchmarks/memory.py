"""Memory that work takes on top of its input, in a process that does nothing else.

    python -m benchmarks.memory clues CLUES.npz ROWS       comparing all pairs of the first ROWS rows
    python -m benchmarks.memory check TABLE.npz RULE...    counting the violations of some rules

Prints bytes. CLUES.npz holds `codes` (int32, columns x rows) and the arrays of a clue layout, TABLE.npz `codes` and the
`columns` of a relation as JSON. The work is first done on a few rows, so that loading compiled code is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tuplewise.engine.table.relation import Relation
    from tuplewise.gpu_kernels.words import ClueLayout

WARM_UP_ROWS = 300


def extra_peak_bytes(codes: Any, layout: ClueLayout, rows: int) -> int:
    """Peak resident size while comparing the first `rows` rows, less the size before; in a new process."""
    stored = {f.name: getattr(layout, f.name) for f in fields(layout)}
    return _in_new_process("clues", {"codes": codes, **stored}, [str(rows)])


def extra_peak_bytes_of_check(relation: Relation, rules: Sequence[str]) -> int:
    """Peak resident size while counting the violations of rules without constants, less the size before."""
    columns = json.dumps([asdict(column) for column in relation.columns])
    return _in_new_process("check", {"codes": relation.codes, "columns": np.array(columns)}, rules)


def _in_new_process(mode: str, stored: dict[str, Any], arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="tuplewise-bench-") as folder:
        path = Path(folder) / "stored.npz"
        np.savez(path, **stored)
        command = [sys.executable, "-m", "benchmarks.memory", mode, str(path), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


def resident_bytes(peak: bool) -> int:
    """Resident size of this process, now or at its greatest (Linux)."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell how much memory a process holds")


def extra_bytes_of(work: Callable[[], object]) -> int:
    """Peak resident size of this process while it works, less the size before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak starts anew
    before = resident_bytes(peak=False)
    work()
    return resident_bytes(peak=True) - before


def _of_clues(stored: Any, rows: int) -> int:
    from tuplewise.gpu_kernels.evidence import collect_clues
    from tuplewise.gpu_kernels.words import ClueLayout

    layout = ClueLayout(**{f.name: stored[f.name] for f in fields(ClueLayout)})
    codes = stored["codes"]
    few = np.ascontiguousarray(codes[:, :WARM_UP_ROWS])
    codes = np.ascontiguousarray(codes[:, :rows])
    collect_clues(few, layout, device="cpu")
    return extra_bytes_of(lambda: collect_clues(codes, layout, device="cpu"))


def _of_check(stored: Any, texts: Sequence[str]) -> int:
    from tuplewise.engine.dc.rule_text.reading import read_rule
    from tuplewise.engine.dc.violations.detect import check_rules
    from tuplewise.engine.options import DcCheckOptions
    from tuplewise.engine.table.relation import Column, Relation

    columns = tuple(Column(**column) for column in json.loads(str(stored["columns"])))
    codes = stored["codes"]
    few = np.ascontiguousarray(codes[:, :WARM_UP_ROWS])
    rules, options = [read_rule(text) for text in texts], DcCheckOptions(count_only=True, device="cpu")
    check_rules(Relation("few", None, columns, few, {}), rules, options)
    relation = Relation("all", None, columns, codes, {})
    return extra_bytes_of(lambda: check_rules(relation, rules, options))


def main(arguments: list[str]) -> int:
    """Measure in this process; returns the exit code."""
    mode, path, *rest = arguments
    stored = np.load(path)
    measured = _of_clues(stored, int(rest[0])) if mode == "clues" else _of_check(stored, rest)
    sys.stdout.write(f"{measured}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
