"""CPU twin of the pairwise evidence kernel between two sets of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import tiles
from tuplewise.gpu_kernels.cpu.evidence import (
    ThreadTables,
    compared_columns,
    loop_arrays,
    merge_tables,
    row_outcomes,
)
from tuplewise.gpu_kernels.cpu.plan import make_plan
from tuplewise.gpu_kernels.cpu.planes import TILE_ROWS
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.cpu.tiles import Table, TileScratch, make_scratch
from tuplewise.gpu_kernels.words import Comparisons

FEW_ROWS = 80  # rows up to which `few` is compared code by code, since ranking would cost more
TASK_PAIRS = 1 << 22  # approximate pairs of rows in a task
LEAST_TASK_ROWS, MOST_TASK_ROWS = 1 << 9, 1 << 15  # rows of the longer side in a task


def run(
    codes: NDArray[np.int32],
    many: NDArray[np.int64],
    few: NDArray[np.int64],
    comparisons: Comparisons,
    control: Control,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Distinct clues of all pairs of one row of `many` and one of `few`, each pair in one of its orders.

    Parameters
    ----------
    codes : int32 array (columns, rows)
        Codes of any size; -1 is null.
    many, few : int64 arrays
        Numbers of rows; few is not the longer one, and not empty.

    Returns
    -------
    clues : uint64 array (distinct, words), sorted; one order of each pair, so that clues and mirrors are complete
    counts : int64 array (distinct,), over unordered pairs
    complete : bool

    Notes
    -----
    A code of `many` matters only by its order among the codes of `few`, so it is replaced by its place among these, and
    no array grows with the largest code. Pairs are counted as in `cpu.evidence`, with `few` in tiles.

    Cost: a binary search for each row of `many` and column, and the pairs as in `cpu.evidence`. With at most FEW_ROWS
    rows a pair takes comparisons / 4 vector compares and one look-up in a hash table. Memory: the codes of a task.
    """
    sides = _Sides(codes, many, few, comparisons)
    rows = min(max(TASK_PAIRS // len(few), LEAST_TASK_ROWS), MOST_TASK_ROWS)
    cuts = range(0, len(many), rows)
    threads: list[ThreadTables] = []

    def make_worker() -> Callable[[int], None]:
        threads.append(ThreadTables(sides.plan))
        return _worker(sides, rows, threads[-1])

    complete = run_tasks([float(min(rows, len(many) - first)) for first in cuts], make_worker, control)
    return (*merge_tables(sides.plan, threads), complete)


class _Sides:
    """Data that all threads read: the rows of `few`, and the places of codes of `many` among theirs."""

    def __init__(
        self, codes: NDArray[np.int32], many: NDArray[np.int64], few: NDArray[np.int64], comparisons: Comparisons
    ) -> None:
        self.codes, self.many, self.comparisons = codes, many, comparisons
        self.used = np.unique(np.concatenate([comparisons.left, comparisons.right])).astype(np.int64)
        self.few = np.zeros((len(codes), len(few)), dtype=np.int32)
        self.few[self.used] = codes[np.ix_(self.used, few)]
        has_null = np.zeros(len(codes), dtype=np.bool_)
        if comparisons.unknown:
            has_null[self.used] = [codes[c].min() < 0 for c in self.used]
        distinct = np.array([len(np.unique(row)) for row in self.few], dtype=np.int64)
        self.plan = make_plan(comparisons, has_null, distinct)
        self.ranked = len(few) > FEW_ROWS
        self.values: dict[int, NDArray[np.int32]] = {}
        self.domain = np.full(len(codes), -1, dtype=np.int64)  # -1: nulls are unchanged where nothing is ranked
        if self.ranked:
            component = compared_columns(len(codes), comparisons)
            for name in np.unique(component[self.used]):
                values = np.unique(self.few[component == name])
                for c in np.flatnonzero(component == name):
                    self.values[int(c)] = values[values >= 0] if comparisons.unknown else values
                    self.domain[c] = 2 * len(self.values[int(c)]) + 1

    def data(self, first: int, last: int) -> Table:
        """Arguments of the compiled loops for rows `first` to `last` of `many`, followed by the rows of `few`."""
        count = last - first
        both = np.zeros((len(self.codes), count + self.few.shape[1]), dtype=np.int32)
        both[:, count:] = self.few
        rows = self.many[first:last]
        if rows[-1] - rows[0] == count - 1 and np.all(rows[1:] > rows[:-1]):  # adjacent rows, the usual case
            for c in self.used:
                both[c, :count] = self.codes[c, rows[0] : rows[-1] + 1]
        else:
            for c in self.used:
                np.take(self.codes[c], rows, out=both[c, :count], mode="clip")
        within = row_outcomes(both, self.comparisons)
        if self.ranked:
            for c in self.used:
                _rank_among(self.values[int(c)], self.comparisons.unknown, both[c])
        return loop_arrays(self.plan, both, self.domain, self.comparisons, *within)


def _worker(sides: _Sides, rows: int, tables: ThreadTables) -> Callable[[int], None]:
    """Function that runs a task on one thread: a portion of `many` with all of `few`."""
    scratch: TileScratch | None = None

    def run_task(task: int) -> None:
        nonlocal scratch
        first = task * rows
        count = min(rows, len(sides.many) - first)
        data = sides.data(first, first + count)
        few = sides.few.shape[1]
        if not sides.ranked:
            tables.count_few(data, few)
            return
        if scratch is None:
            scratch = make_scratch(data, sides.plan.planes, sides.plan.key_words)
        for start in range(count, count + few, TILE_ROWS):
            end = min(start + TILE_ROWS, count + few)
            tiles.rank_tile(data, scratch, start, end)
            tables.count_tile(data, scratch, 0, count, start, end)

    return run_task


@kernel("int32[::1], boolean, int32[::1]")
def _rank_among(values, nullable, codes):
    """Replace codes by places among ascending values: 2 i + 1 for values[i], 2 i for a code between values[i - 1] and
    values[i]. An unknown null becomes the number behind the last place."""
    for j in range(len(codes)):
        if nullable and codes[j] == -1:
            codes[j] = 2 * len(values) + 1
            continue
        low, high = 0, len(values)
        while low < high:
            middle = (low + high) >> 1
            if values[middle] < codes[j]:
                low = middle + 1
            else:
                high = middle
        codes[j] = 2 * low + (1 if low < len(values) and values[low] == codes[j] else 0)
