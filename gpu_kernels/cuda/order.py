"""CUDA twin: checks of keys, constancies and order compatibility, with many contexts and checks a launch.

The contexts of a batch are partitioned together, level by level of the trie of their paths (`partitions`). A few
launches then decide all checks of a level (`violations`): constancies by the members of classes, order compatibility by
one sort of all members by (class, A) and a segmented scan over strips of them. Candidate pairs are copied to the host,
which ranks them as the CPU twin does.

Removals run on the CPU. In a longest run of a class the search of each row depends on that of the row before, so a
class is work for one thread, and a CPU core does it many times faster. Constancies and keys use the same partitions
there.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import order as cpu
from tuplewise.gpu_kernels.cpu.violations import EVERY_ROW, choose_all
from tuplewise.gpu_kernels.cuda.grouping import order_by
from tuplewise.gpu_kernels.cuda.partitions import Level, next_level, spread, spread_members, whole_table
from tuplewise.gpu_kernels.cuda.primitives import empty, launch, room_bytes, to_device
from tuplewise.gpu_kernels.cuda.violations import arrange_members_kernel, find_different, find_swaps
from tuplewise.gpu_kernels.order_types import ASCENDING, KEY, Checks
from tuplewise.gpu_kernels.words import as_flags

CONTEXT_BYTES, ORDER_BYTES, CHECK_BYTES = 192, 64, 8  # bytes a row: while a context is refined; of an order; of a check
MOST_MEMBERS = (1 << 31) - 1  # members sorted at once: their places are int32
MOST_CHECKS = 4096  # checks of a batch: their pairs are in host memory, and deadlines are tested between batches
Run = Callable[[NDArray[np.int64], NDArray[np.int64], int], tuple[NDArray[np.int64], NDArray[np.int32]]]
Found = tuple[NDArray[np.int64], NDArray[np.int32]]


class PartitionedRows:
    """Table on the device. Removals are those of the CPU twin."""

    def __init__(self, codes: NDArray[np.int32], strict: bool) -> None:
        self._codes, self._strict = codes, strict
        self._compared = cpu.compared_pairs(len(codes))
        self._on_device: Any = None

    def check(
        self, checks: Checks, limit: int, control: Control
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], bool]:
        """Check as the CPU twin does.

        Notes
        -----
        Floor, in bytes a row: 12 for a check of constancy or key (row, class, code), 40 for a context (a key that is
        written, sorted and split), 40 for an order in a context, 15 for a check of order compatibility. 1,320
        constancies and keys in 120 contexts of 300,000 rows take at least 1.3 ms on an H200 (4.8e12 bytes a second).
        Gathers of codes take 32 bytes for 4 where classes are small. No run on a device is recorded yet.
        """
        if self._on_device is None:
            self._on_device = to_device(self._codes)
        total = len(checks.which)
        holds, numbers = np.zeros(total, dtype=np.bool_), np.zeros(total, dtype=np.int64)
        parts = [np.zeros((0, 2), dtype=np.int32)]
        cuts = self._batches(checks, limit)
        for first, last in pairwise(cuts):
            if control.over():
                return holds, numbers, np.concatenate(parts), False
            violations, counts, found = self._decide(checks, first, last, limit)
            holds[first:last] = violations == 0
            parts.append(
                choose_all(self._codes, self._strict, self._compared, limit, counts, found, numbers[first:last])
            )
            if control.progress is not None:
                control.progress(last / total)
        return holds, numbers, np.concatenate(parts), True

    def _batches(self, checks: Checks, limit: int) -> list[int]:
        """Cut checks into batches that fit the device: boundaries among the checks."""
        rows = self._codes.shape[1] + 64
        fresh = np.diff(checks.which, prepend=-1) != 0
        ordered = checks.kind >= ASCENDING
        sorts = ordered & (fresh | (np.diff(checks.left, prepend=-1) != 0) | ~np.concatenate([[False], ordered[:-1]]))
        pairs = 32 * cpu.FOUND_SHARE * self._compared if limit else 0
        costs = rows * (CONTEXT_BYTES * fresh + ORDER_BYTES * sorts + CHECK_BYTES) + pairs
        room = min(room_bytes(), MOST_MEMBERS * ORDER_BYTES)
        cuts, used = [0], 0
        ends = np.cumsum(costs)
        while cuts[-1] < len(costs):
            cut = int(np.searchsorted(ends, used + room, side="right"))
            cuts.append(max(min(cut, cuts[-1] + MOST_CHECKS), cuts[-1] + 1))
            used = int(ends[cuts[-1] - 1])
        return cuts

    def _decide(
        self, checks: Checks, first: int, last: int, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Decide a batch: violations of each check, number of its pairs found, and the pairs, (checks, room, 2)."""
        contexts, at = np.unique(checks.which[first:last], return_inverse=True)
        room = cpu.FOUND_SHARE * self._compared if limit else 0
        violations, counts = np.zeros(last - first, dtype=np.int64), np.zeros(last - first, dtype=np.int64)
        found = np.zeros((last - first, room, 2), dtype=np.int32)
        paths, lengths = paths_of(checks.contexts[contexts], checks.by_rank)
        level, node = whole_table(self._codes.shape[1]), np.zeros(len(contexts), dtype=np.int64)
        for depth in range(int(lengths.max()) + 1):
            here = lengths[at] == depth
            ordered = checks.kind[first:last] >= ASCENDING
            for chosen, run in ((here & ~ordered, self._plain), (here & ordered, self._ordered)):
                index = np.flatnonzero(chosen)
                if len(index):
                    violations[index], answer = run(level, node[at[index]], _taken(checks, first + index), room)
                    counts[index], found[index] = answer
            alive = np.flatnonzero(lengths > depth)
            if len(alive) == 0:
                break
            columns = paths[alive, depth]
            new = (np.diff(node[alive], prepend=-1) != 0) | (np.diff(columns, prepend=-1) != 0)
            level = next_level(level, node[alive][new], columns[new], self._on_device, self._strict)
            node[alive] = np.cumsum(new) - 1
        return violations, counts, found

    def _plain(
        self, level: Level, partitions: NDArray[np.int64], checks: Checks, room: int
    ) -> tuple[NDArray[np.int64], Found]:
        """Decide the keys and constancies of a level."""
        columns = np.where(checks.kind == KEY, -1, checks.left).astype(np.int64)

        def run(index: NDArray[np.int64], bounds: NDArray[np.int64], room: int) -> Found:
            jobs = spread(level, partitions[index], columns[index])
            if jobs.items == 0:
                return np.zeros(len(index), dtype=np.int64), np.zeros((len(index), room, 2), dtype=np.int32)
            return find_different(level, jobs, self._on_device, self._strict, bounds, room)

        return self._found(run, len(columns), room)

    def _ordered(
        self, level: Level, partitions: NDArray[np.int64], checks: Checks, room: int
    ) -> tuple[NDArray[np.int64], Found]:
        """Decide order compatibility of a level: one sort for each partition and left column, one job for each right
        column."""
        asked = np.stack([partitions, checks.left, checks.right], axis=1).astype(np.int64)
        jobs, job = np.unique(asked, axis=0, return_inverse=True)
        sorts, of_job = np.unique(jobs[:, :2], axis=0, return_inverse=True)
        job, of_job, way = job.ravel(), of_job.ravel(), (checks.kind - ASCENDING).astype(np.int64)
        members = spread(level, sorts[:, 0], sorts[:, 1])
        if members.items == 0:
            nothing = np.zeros(len(job), dtype=np.int64)
            return nothing, (nothing, np.zeros((len(job), room, 2), dtype=np.int32))
        rows, numbers, codes = spread_members(level, members, self._on_device)
        order = order_by(numbers, members.classes, codes)
        sorted_rows, marks = empty(members.items, np.int32), empty(members.items, np.int8)
        launch(arrange_members_kernel, members.items, order, rows, numbers, codes, sorted_rows, marks)
        begins, ends = members.offsets[of_job], members.offsets[of_job + 1]
        table = np.stack([begins, ends, jobs[:, 2]], axis=1)  # BEGIN, END, COLUMN

        def run(index: NDArray[np.int64], bounds: NDArray[np.int64], room: int) -> Found:
            needed, place = np.unique(job[index], return_inverse=True)
            both = np.full((len(needed), 2), -1, dtype=np.int64)
            both[place, way[index]] = bounds
            counts, found = find_swaps(sorted_rows, marks, table[needed], self._on_device, both, room)
            return counts[place, way[index]], found[place, way[index]]

        return self._found(run, len(job), room)

    def _found(self, run: Run, checks: int, room: int) -> tuple[NDArray[np.int64], Found]:
        """Violations of each check and, with room, enough of their pairs: those whose mixed row number is at most a
        bound."""
        everything = np.full(checks, EVERY_ROW, dtype=np.int64)
        violations, _ = run(np.arange(checks), everything, 0)
        numbers, pairs = np.zeros(checks, dtype=np.int64), np.zeros((checks, room, 2), dtype=np.int32)
        low, high, bounds = np.full(checks, -1, dtype=np.int64), everything.copy(), everything.copy()
        many = violations > room
        bounds[many] = EVERY_ROW // violations[many] * 2 * self._compared
        wanted = np.minimum(self._compared, violations)
        open_ = np.flatnonzero(violations > 0) if room else np.zeros(0, dtype=np.int64)
        while len(open_):
            counts, found = run(open_, bounds[open_], room)
            over, under = counts > room, counts < wanted[open_]
            fits = ~(over | under)
            numbers[open_[fits]], pairs[open_[fits]] = counts[fits], found[fits]
            high[open_[over]], low[open_[under]] = bounds[open_[over]], bounds[open_[under]]
            open_ = open_[~fits]
            bounds[open_] = (low[open_] + high[open_] + 1) >> 1
        return violations, (numbers, pairs)


def _taken(checks: Checks, index: NDArray[np.int64]) -> Checks:
    """Select some of the checks."""
    own = (getattr(checks, name)[index] for name in ("which", "kind", "left", "right"))
    return Checks(checks.contexts, checks.by_rank, *own)


def paths_of(contexts: NDArray[np.uint64], by_rank: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns, by rank, of contexts whose bits are ranks: int64 (contexts, longest), padded with -1; and their
    number."""
    context, rank = np.nonzero(as_flags(contexts, len(by_rank)))
    lengths = np.bincount(context, minlength=len(contexts)).astype(np.int64)
    paths = np.full((len(contexts), int(lengths.max(initial=0))), -1, dtype=np.int64)
    paths[context, np.arange(len(context)) - (np.cumsum(lengths) - lengths)[context]] = by_rank[rank]
    return paths, lengths
