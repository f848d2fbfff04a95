"""CPU twin: checks of keys, constancies and order compatibility over stripped partitions, on all cores.

Checks are sorted by context, and contexts with a common prefix are together. A task is a stretch of checks in that
order. Each thread keeps the partitions that it made (see `partitions`) between calls.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.arrays import copy_rows
from tuplewise.gpu_kernels.cpu.partitions import (
    COLUMNS,
    FEW_CLASSES,
    KEPT,
    SCRATCH,
    Columns,
    Kept,
    PartitionScratch,
    make_kept,
    make_scratch,
    order_column,
    partition_of,
    path_of,
)
from tuplewise.gpu_kernels.cpu.removals import outside_longest_runs, outside_majorities
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.cpu.violations import (
    any_different,
    any_swaps,
    any_swaps_by_order,
    best_pairs,
    number_classes,
    sort_classes,
)
from tuplewise.gpu_kernels.order_types import ASCENDING, CHECKS, CONSTANT, DESCENDING, KEY, Checks
from tuplewise.gpu_kernels.words import mask_words

COMPARED_CODES = 1 << 14  # approximate number of codes compared for the agreement of a violated check's pairs
MOST_COMPARED, LEAST_COMPARED = 256, 64  # pairs
FOUND_SHARE = 4  # collected pairs, at most, for each compared pair
TASK_ROWS = 1 << 22  # approximate number of rows that a task reads
MOST_TASKS_A_THREAD = 256


def compared_pairs(columns: int) -> int:
    """Number of pairs of a violated check to compare, at most: COMPARED_CODES / columns, within LEAST_COMPARED and
    MOST_COMPARED."""
    return max(LEAST_COMPARED, min(MOST_COMPARED, COMPARED_CODES // max(1, columns)))


@helper
def context_partition(columns, checks, k, strict, everything, scratch, kept):
    """Partition of check k's context. For the empty context it is `everything`: all rows in order, with their
    bounds."""
    path, prefixes = path_of(checks.contexts[checks.which[k]], checks.by_rank)
    if len(path) == 0:
        rows, bounds = everything
        return rows, bounds, len(rows) if len(bounds) else 0
    return partition_of(columns, path, prefixes, strict, scratch, kept)


@kernel(
    f"{COLUMNS}, {CHECKS}, int64, int64, int64, int64, boolean, Tuple((int32[::1], int32[:, ::1])), "
    f"{SCRATCH}, {KEPT}, boolean[::1], int64[::1]"
)
def check_range(columns, checks, first, last, limit, compared, strict, everything, scratch, kept, holds, counts):
    """Decide checks first to last - 1: write holds[k] and counts[k], the pairs of check k; return the pairs, int32
    (any, 2)."""
    pairs = np.empty((16, 2), dtype=np.int32)
    used = 0
    rows, bounds, members = context_partition(columns, checks, first, strict, everything, scratch, kept)
    ordered, marks = rows, scratch.marks[:0]
    numbered = by_order = is_sorted = False
    k = first
    while k < last:
        if k > first and checks.which[k] != checks.which[k - 1]:
            rows, bounds, members = context_partition(columns, checks, k, strict, everything, scratch, kept)
            numbered = is_sorted = False
        kind, left, right = checks.kind[k], checks.left[k], checks.right[k]
        end = k + 1  # checks k to end - 1 share a pass
        if kind == KEY:
            rises, falls = members > 0, False
        elif kind == CONSTANT:
            rises, falls = any_different(rows, bounds, columns.codes[left], strict), False
        else:
            if not numbered:
                by_order = number_classes(rows, bounds, members, columns.codes.shape[1], scratch)
                numbered = True
            is_sorted = is_sorted and checks.left[k - 1] == left
            up, down = kind == ASCENDING, kind == DESCENDING
            while end < last and same_sort(checks, k, end) and checks.right[end] == right:
                up |= checks.kind[end] == ASCENDING
                down |= checks.kind[end] == DESCENDING
                end += 1
            order, order_marks = columns.order[left], columns.marks[left]
            alone = by_order and not is_sorted and len(bounds) <= FEW_CLASSES
            if alone and (end == last or not same_sort(checks, k, end)):
                rises, falls = any_swaps_by_order(
                    order, order_marks, scratch.numbers, columns.codes[right], up, down, scratch.states[: len(bounds)]
                )
            else:
                alone = False
            if not is_sorted and not (alone and (limit == 0 or not ((rises and up) or (falls and down)))):
                ordered, marks = sort_classes(
                    rows, bounds, members, columns.codes[left], order, order_marks, by_order, scratch
                )
                is_sorted = True
            if not alone:
                rises, falls = any_swaps(ordered, marks, columns.codes[right], up, down)
        while k < end:
            kind = checks.kind[k]
            holds[k] = not (falls if kind == DESCENDING else rises)
            if limit > 0 and not holds[k]:
                number = best_pairs(
                    ordered if kind >= ASCENDING else rows, bounds, marks,
                    columns.codes[max(0, right if kind >= ASCENDING else left)], kind, strict, columns.codes,
                    compared, limit, scratch.found,
                )  # fmt: skip
                pairs = with_room(pairs, used, number)
                copy_rows(scratch.found, pairs[used:], number)
                used += number
                counts[k] = number
            k += 1
    return pairs[:used]


@helper
def with_room(pairs, used, number):
    """Return the pairs used so far in an array with room for so many more."""
    if used + number <= len(pairs):
        return pairs
    grown = np.empty((2 * (used + number), 2), dtype=np.int32)
    copy_rows(pairs, grown, used)
    return grown


@helper
def same_sort(checks, k, other):
    """Tell whether a later check is of order compatibility with the same context and left column."""
    return (
        checks.which[k] == checks.which[other]
        and checks.kind[other] >= ASCENDING
        and checks.left[k] == checks.left[other]
    )


@kernel(
    f"{COLUMNS}, {CHECKS}, int64, int64, int64, boolean, Tuple((int32[::1], int32[:, ::1])), {SCRATCH}, "
    f"{KEPT}, int64[::1]"
)
def removals_range(columns, checks, first, last, most, strict, everything, scratch, kept, removed):
    """Write removed[k] = rows to remove, at most `most` + 1, for checks first to last - 1."""
    rows, bounds, members = context_partition(columns, checks, first, strict, everything, scratch, kept)
    ordered, marks = rows, scratch.marks[:0]
    numbered = by_order = is_sorted = False
    for k in range(first, last):
        if k > first and checks.which[k] != checks.which[k - 1]:
            rows, bounds, members = context_partition(columns, checks, k, strict, everything, scratch, kept)
            numbered = is_sorted = False
        kind, left = checks.kind[k], checks.left[k]
        if kind == KEY:
            removed[k] = min(members - len(bounds), most + 1)
        elif kind == CONSTANT:
            removed[k] = outside_majorities(rows, bounds, columns.codes[left], strict, most, scratch.counts)
        else:
            if not numbered:
                by_order = number_classes(rows, bounds, members, columns.codes.shape[1], scratch)
                numbered = True
            if not is_sorted or checks.left[k - 1] != left:
                ordered, marks = sort_classes(
                    rows, bounds, members, columns.codes[left], columns.order[left], columns.marks[left], by_order,
                    scratch,
                )  # fmt: skip
                is_sorted = True
            removed[k] = outside_longest_runs(
                ordered, marks, columns.codes[checks.right[k]], kind == ASCENDING, most, scratch.seen,
                scratch.keys.view(np.int32),
            )  # fmt: skip


class PartitionedRows:
    """Columns of a table, their orders (made when needed), and the working memory and kept partitions of each
    thread."""

    def __init__(self, codes: NDArray[np.int32], strict: bool, cache_bytes: int, threads: int) -> None:
        width, rows = codes.shape
        self._codes, self._strict, self._words = codes, strict, mask_words(width)
        values = codes.max(axis=1, initial=-1).astype(np.int64) + 1
        self._values = values
        self.by_rank = np.lexsort((np.arange(width), -values))
        room = np.minimum(values + 1, rows // 2 + 1)
        self._columns = Columns(
            codes,
            np.empty((width, rows), dtype=np.int32),
            np.empty((width, rows), dtype=np.uint8),
            np.empty((int(room.sum()), 2), dtype=np.int32),
            np.concatenate([[0], np.cumsum(room)])[:-1].astype(np.int64),
            np.zeros(width, dtype=np.int64),
            np.zeros(width, dtype=np.int64),
        )
        self._ready = np.zeros(width, dtype=np.bool_)
        whole = np.array([[0, rows]] if rows > 1 else np.zeros((0, 2)), dtype=np.int32)
        self._everything = np.arange(rows, dtype=np.int32), whole
        self._cache_bytes, self._threads = max(0, cache_bytes) // max(1, threads), threads
        self._spare: list[tuple[PartitionScratch, Kept]] = []

    def check(
        self, checks: Checks, limit: int, control: Control
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], bool]:
        """Check as the front door does: holds bool (K,), counts int64 (K,), pairs int32 (P, 2) check by check,
        complete."""
        holds, counts = np.zeros(len(checks.which), dtype=np.bool_), np.zeros(len(checks.which), dtype=np.int64)
        compared = compared_pairs(len(self._codes))

        def run(bounds: tuple[int, int], scratch: PartitionScratch, kept: Kept) -> NDArray[np.int32]:
            found: NDArray[np.int32] = check_range(
                self._columns, checks, *bounds, limit, compared, self._strict, self._everything, scratch, kept,
                holds, counts,
            )  # fmt: skip
            return found

        parts, complete = self._run(checks, run, control)
        return holds, counts, np.concatenate([np.zeros((0, 2), dtype=np.int32), *parts]), complete

    def removals(self, checks: Checks, most: int, control: Control) -> tuple[NDArray[np.int64], bool]:
        """Count removals as the front door does: rows int64 (K,), complete."""
        removed = np.zeros(len(checks.which), dtype=np.int64)

        def run(bounds: tuple[int, int], scratch: PartitionScratch, kept: Kept) -> NDArray[np.int32]:
            removals_range(
                self._columns, checks, *bounds, most, self._strict, self._everything, scratch, kept, removed
            )  # fmt: skip
            return self._everything[0][:0]

        return removed, self._run(checks, run, control)[1]

    def _run(
        self,
        checks: Checks,
        run: Callable[[tuple[int, int], PartitionScratch, Kept], NDArray[np.int32]],
        control: Control,
    ) -> tuple[list[NDArray[np.int32]], bool]:
        """Results of `run` for all stretches of checks, in order, and whether it ran for all."""
        if len(checks.which) == 0 or not self._order_columns(self._asked(checks), control):
            return [], len(checks.which) == 0
        cuts, costs = self._tasks(checks, control.threads)
        parts: list[NDArray[np.int32] | None] = [None] * len(costs)
        used: list[tuple[PartitionScratch, Kept]] = []

        def make_worker() -> Callable[[int], None]:
            own = self._spare.pop() if self._spare else self._room()
            used.append(own)

            def work(task: int) -> None:
                parts[task] = run((cuts[task], cuts[task + 1]), *own)

            return work

        complete = run_tasks(costs, make_worker, control)
        self._spare.extend(used)
        return [part for part in parts if part is not None], complete

    def _room(self) -> tuple[PartitionScratch, Kept]:
        """Working memory and kept partitions for one more thread."""
        found = FOUND_SHARE * compared_pairs(len(self._codes))
        codes = int(self._values.max(initial=0)) + 1
        return make_scratch(self._codes.shape[1], codes, found), make_kept(self._cache_bytes, self._words)

    def _asked(self, checks: Checks) -> NDArray[np.int64]:
        """Columns whose order is needed: first columns of contexts, and left columns of pairs."""
        ranked = np.unique(checks.which)
        begins = np.full(len(ranked), -1, dtype=np.int64)
        for w in range(self._words - 1, -1, -1):
            word = checks.contexts[ranked, w]
            lowest = word & (~word + np.uint64(1))
            begins = np.where(word != 0, 64 * w + np.bitwise_count(lowest - np.uint64(1)).astype(np.int64), begins)
        wanted = np.zeros(len(self._codes), dtype=np.bool_)
        wanted[checks.by_rank[begins[begins >= 0]]] = True
        wanted[checks.left[checks.kind >= ASCENDING]] = True
        return np.flatnonzero(wanted & ~self._ready)

    def _order_columns(self, wanted: NDArray[np.int64], control: Control) -> bool:
        """Make orders and classes of columns. Returns False where the deadline passed first."""
        columns = self._columns

        def work(task: int) -> None:
            c = int(wanted[task])
            bounds = columns.bounds[columns.first[c] : columns.first[c + 1] if c + 1 < len(columns.first) else None]
            columns.classes[c], columns.members[c] = order_column(
                columns.codes[c], self._values[c], self._strict, columns.order[c], columns.marks[c], bounds
            )
            self._ready[c] = True

        return run_tasks([1.0] * len(wanted), lambda: work, control.telling(None))

    def _tasks(self, checks: Checks, threads: int) -> tuple[list[int], list[float]]:
        """Cut checks into tasks: boundaries among the checks, and approximate rows that each task reads. A check reads
        rows x (1 + columns of its context), without the columns where the context is that of the check before."""
        rows = self._codes.shape[1] + 64
        changes = np.concatenate([[True], checks.which[1:] != checks.which[:-1]])
        depth = np.bitwise_count(checks.contexts).sum(axis=1, dtype=np.int64)[checks.which]
        costs = rows * (1.0 + np.where(changes, depth, 0))
        ends = np.cumsum(costs)
        tasks = max(1, min(int(ends[-1]) // TASK_ROWS, MOST_TASKS_A_THREAD * threads, len(costs)))
        cuts = np.unique(np.searchsorted(ends, ends[-1] / tasks * np.arange(tasks + 1)))
        cuts = np.unique(np.concatenate([[0], cuts, [len(costs)]]))
        before = np.concatenate([[0.0], ends])
        return cuts.tolist(), np.diff(before[cuts]).tolist()
