"""Front door: exact counts of how well classes of rows, equal on some columns, agree on other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control

FRACTION_BITS = 16


@dataclass(frozen=True, eq=False)
class Agreement:
    """Figures of each target over the given classes. Rows with a null in the target are left out.

    Attributes
    ----------
    rows : int64 (targets,), rows with a value
    classes : int64 (targets,), classes with such a row
    majority : int64 (targets,), rows with their class's most frequent value
    differing_pairs : int64 (targets,), ordered pairs of rows of one class that differ
    contradictions : float64 (targets,)
        Sum over classes of (ordered pairs that differ) / (rows of the class) = n - (sum of n_a^2) / n, where the class
        has n rows, n_a of them with value a. Each class is rounded down to a multiple of 2^-16, so that every device
        gives the same number.
    complete : False where the deadline passed first; the numbers then mean nothing
    """

    rows: NDArray[np.int64]
    classes: NDArray[np.int64]
    majority: NDArray[np.int64]
    differing_pairs: NDArray[np.int64]
    contradictions: NDArray[np.float64]
    complete: bool


def count_agreement(
    classes: ClusterPairs,
    codes: NDArray[np.int32],
    targets: Sequence[int],
    *,
    copies: NDArray[np.int64] | None = None,
    deadline: float | None = None,
    threads: int | None = None,
) -> Agreement:
    """Count how well the rows of each class agree on each target.

    Parameters
    ----------
    classes : reflexive: the left sets are the classes, each of rows of the table
    codes : int32 (columns, rows), C order, -1 is null
    targets : columns
    copies : int64 (rows,) or None
        How often each row counts: it stands for so many that are equal. None: once.
    deadline : on the clock of time.monotonic
    threads : None: one for each core

    Raises
    ------
    ValueError
        Where the sets are not reflexive, a target is no column, or copies are not one for each row.

    Notes
    -----
    Cost: two gathers of a code for each row of a class and each target, about 5 ns a row while columns are in cache.
    Memory: 8 bytes for each code and thread. There is no CUDA twin: one pass over a column costs less than copying the
    classes to a device.

    Source of the figures: Kivinen, Mannila, "Approximate inference of functional dependencies from relations",
    Theoretical Computer Science 149(1), 1995 (g1, g3); Piatetsky-Shapiro, Matheus, "Measuring data dependencies in
    large databases", KDD workshop 1993 (pdep).

    Examples
    --------
    >>> from tuplewise.gpu_kernels.clusters import all_rows
    >>> codes = np.array([[0, 0, 1, -1]], dtype=np.int32)
    >>> found = count_agreement(all_rows(np.arange(4, dtype=np.int32)), codes, [0])
    >>> int(found.rows[0]), int(found.majority[0]), int(found.differing_pairs[0]), float(found.contradictions[0])
    (3, 2, 4, 1.3333282470703125)
    """
    from tuplewise.gpu_kernels.cpu import agreement as cpu

    if not classes.reflexive:
        raise ValueError("classes: pairs of two different sets; allowed: reflexive pairs")
    wanted = np.asarray(targets, dtype=np.int32)
    if len(wanted) and not (wanted.min() >= 0 and wanted.max() < len(codes)):
        raise ValueError(f"targets: {list(targets)}; allowed: 0 to {len(codes) - 1}")
    each = np.zeros(0, dtype=np.int64) if copies is None else np.ascontiguousarray(copies, dtype=np.int64)
    if copies is not None and len(each) != codes.shape[1]:
        raise ValueError(f"copies: {len(each)} for {codes.shape[1]} rows; allowed: one for each row")
    figures = np.zeros((len(wanted), 5), dtype=np.int64)
    largest = max((int(codes[c].max(initial=-1)) for c in set(wanted.tolist())), default=-1)
    control = Control(deadline=deadline, threads=threads)
    complete = cpu.run(classes.left, classes.left_offsets, codes, wanted, each, largest, figures, control)
    rows, count, majority, differing, steps = np.ascontiguousarray(figures.T)
    return Agreement(rows, count, majority, differing, steps / float(1 << FRACTION_BITS), complete)
