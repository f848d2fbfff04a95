"""FastADC of Desbordante, the implementation that ours is timed against.

Its quirks: it reads CSV files only; types come from brackets in the header (`age(Long)`); it refuses nulls; a shard
may not be longer than the table; one constraint may come out as either of its two mirrors, so digests are taken
modulo the exchange of tuples.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from benchmarks.answers import Triple

NAME = "desbordante-fastadc"
SHARD_ROWS = 350  # what its paper found best, and its default
_PREDICATE = re.compile(r"([ts])\.(.+) (==|!=|<=|>=|<|>) ([ts])\.(.+)")
_REVERSED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def run_fastadc(path: Path, *, rows: int, cross_columns: bool, threads: int = 0) -> tuple[float, list[list[Triple]]]:
    """Exact minimal denial constraints by FastADC.

    Parameters
    ----------
    path : CSV file with typed header
    rows : rows of the table
    cross_columns : whether predicates may name two columns
    threads : 0 for its default, all cores

    Returns
    -------
    seconds : time of `execute` alone (evidence and inversion; reading the file is left out)
    constraints : predicates as (column of t, operator, column of u)
    """
    import desbordante

    algorithm = desbordante.dc.algorithms.FastADC()
    algorithm.load_data(table=(str(path), ",", True))
    started = time.perf_counter()
    algorithm.execute(
        shard_length=min(SHARD_ROWS, rows),
        allow_cross_columns=cross_columns,
        minimum_shared_value=0.3,
        comparable_threshold=0.1,
        evidence_threshold=0.0,
        threads=threads,
    )
    seconds = time.perf_counter() - started
    return seconds, [parse_constraint(str(c)) for c in algorithm.get_dcs()]


def parse_constraint(text: str) -> list[Triple]:
    """Read one constraint as FastADC prints it.

    Examples
    --------
    >>> parse_constraint("¬{ t.zip == s.zip ∧ t.city != s.city }")
    [('zip', '==', 'zip'), ('city', '!=', 'city')]
    """
    found: list[Triple] = []
    for part in text.removeprefix("¬{ ").removesuffix(" }").split(" ∧ "):
        match = _PREDICATE.fullmatch(part)
        if match is None or match[1] == match[4]:
            raise ValueError(f"not a predicate over two tuples: {part!r}")
        left, operator, right = match[2], match[3], match[5]
        found.append((left, operator, right) if match[1] == "t" else (right, _REVERSED[operator], left))
    return found
