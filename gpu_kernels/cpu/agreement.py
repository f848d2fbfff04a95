"""Agreement of classes of rows on targets: one pass over the classes for each target, targets in parallel."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.threads import run_tasks

ROWS, CLASSES, MAJORITY, DIFFERING, CONTRADICTIONS = range(5)  # figures of a target, as `agreement.Agreement` has them


@kernel("const int32[::1], const int64[::1], const int32[::1], const int64[::1], int64[::1], int64[::1]")
def add_classes(rows, offsets, codes, copies, counts, figures):
    """Add up the figures of one target over all classes. `counts` is all zeros before and after.

    copies : int64 (rows,), number of equal rows that each row of the table stands for; (0,): 1 each
    figures : int64 (5,), see `gpu_kernels.agreement.Agreement`
    """
    once = len(copies) == 0
    for c in range(len(offsets) - 1):
        first, last = offsets[c], offsets[c + 1]
        members = most = squares = 0
        for i in range(first, last):
            code = codes[rows[i]]
            if code < 0:
                continue
            more = 1 if once else copies[rows[i]]
            squares += more * (2 * counts[code] + more)
            counts[code] += more
            members += more
            most = max(most, counts[code])
        if members == 0:
            continue
        for i in range(first, last):
            code = codes[rows[i]]
            if code >= 0:
                counts[code] = 0
        differing = members * members - squares
        figures[ROWS] += members
        figures[CLASSES] += 1
        figures[MAJORITY] += most
        figures[DIFFERING] += differing
        # floor(differing * 2^16 / members): the integral part first, so that nothing overflows
        figures[CONTRADICTIONS] += ((differing // members) << 16) + ((differing % members) << 16) // members


def run(
    rows: NDArray[np.int32],
    offsets: NDArray[np.int64],
    codes: NDArray[np.int32],
    targets: NDArray[np.int32],
    copies: NDArray[np.int64],
    largest: int,
    figures: NDArray[np.int64],
    control: Control,
) -> bool:
    """Fill `figures`. Returns False where the deadline passed first."""

    def make_worker() -> Callable[[int], None]:
        counts = np.zeros(largest + 1, dtype=np.int64)

        def work(task: int) -> None:
            add_classes(rows, offsets, codes[targets[task]], copies, counts, figures[task])

        return work

    return run_tasks([1.0] * len(targets), make_worker, control)
