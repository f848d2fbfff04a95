"""FASTOD, HyFD and HyUCC of Desbordante, which order dependencies, FDs and keys are timed against.

Their quirks: every cell becomes text, from which FASTOD takes whole numbers again (so it is given tables of whole
numbers only); nulls are equal to each other, as under our rule "value"; FASTOD lists a pair of columns in both orders.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.answers import Dependency, digest_dependencies
from benchmarks.case import Case, Measurement
from benchmarks.datasets import ParquetTable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FASTOD, HYFD, HYUCC = "desbordante-fastod", "desbordante-hyfd", "desbordante-hyucc"
Run = Callable[["pd.DataFrame"], tuple[float, list[Dependency]]]
_CONSTANT = re.compile(r"\{([\d,]*)\} : \[\] -> (\d+)<=")
_PAIR = re.compile(r"\{([\d,]*)\} : (\d+)(<=|>=) ~ (\d+)<=")


def run_fastod(frame: pd.DataFrame) -> tuple[float, list[Dependency]]:
    """Minimal set-based order dependencies of a frame of whole numbers, and the seconds of `execute` alone."""
    import desbordante

    algorithm = desbordante.od.algorithms.Fastod()
    seconds = _seconds(algorithm, frame)
    texts = (*algorithm.get_simple_ods(), *algorithm.get_asc_ods(), *algorithm.get_desc_ods())
    return seconds, sorted({parse_order_dependency(str(text)) for text in texts})


def run_hyfd(frame: pd.DataFrame) -> tuple[float, list[Dependency]]:
    """Minimal functional dependencies, those with nothing on the left included, and the seconds of `execute` alone."""
    import desbordante

    algorithm = desbordante.fd.algorithms.HyFD()
    seconds = _seconds(algorithm, frame)
    return seconds, [(tuple(fd.lhs_indices), "constant", (fd.rhs_index,)) for fd in algorithm.get_fds()]


def run_hyucc(frame: pd.DataFrame) -> tuple[float, list[Dependency]]:
    """Minimal keys, and the seconds of `execute` alone. Of fewer than two rows each column is a key to it."""
    import desbordante

    algorithm = desbordante.ucc.algorithms.HyUCC()
    seconds = _seconds(algorithm, frame)
    return seconds, [(tuple(key.indices), "key", ()) for key in algorithm.get_uccs()]


def _seconds(algorithm: Any, frame: pd.DataFrame) -> float:
    """Give the frame to an algorithm and run it, with its default threads."""
    algorithm.load_data(table=frame)
    started = time.perf_counter()
    algorithm.execute()
    return time.perf_counter() - started


def parse_order_dependency(text: str) -> Dependency:
    """Read one order dependency as FASTOD prints it, its columns counted from 1.

    Examples
    --------
    >>> parse_order_dependency("{1,3} : [] -> 2<=")
    ((0, 2), 'constant', (1,))
    >>> parse_order_dependency("{} : 4>= ~ 3<=")
    ((), 'descending', (2, 3))
    """
    if match := _CONSTANT.fullmatch(text):
        return _positions(match[1]), "constant", _positions(match[2])
    if match := _PAIR.fullmatch(text):
        kind = "ascending" if match[3] == "<=" else "descending"
        return _positions(match[1]), kind, _positions(f"{match[2]},{match[4]}")
    raise ValueError(f"not an order dependency: {text!r}")


def _positions(numbers: str) -> tuple[int, ...]:
    return tuple(sorted(int(number) - 1 for number in numbers.split(",") if number))


def text_frame(table: pa.Table) -> pd.DataFrame:
    """Each value as text, nulls as None: all that FDs and keys need."""
    import pyarrow as pa

    return table.cast(pa.schema([(name, pa.string()) for name in table.column_names])).to_pandas()


def measure_with(run: Run) -> Callable[[Case, Path, int], Measurement]:
    """The measurement of a peer: `execute` on the same rows; reading and encoding are left out."""

    def measure(case: Case, path: Path, warm_runs: int) -> Measurement:
        import pandas as pd

        dataset = case.dataset
        frame = text_frame(dataset.read(path)) if isinstance(dataset, ParquetTable) else pd.read_csv(path)
        seconds: list[float] = []
        found: list[Dependency] = []
        for _ in range(warm_runs + 1):
            taken, found = run(frame)
            seconds.append(taken)
        count, digest = digest_dependencies(found)
        return {
            "cold_seconds": seconds[0],
            "warm_seconds": seconds[1:],
            "kernel_seconds": {},
            "answer": {"count": count, "digest": digest},
            "figures": {},
        }

    return measure
