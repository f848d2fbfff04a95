"""CPU twin of the pairwise evidence kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import tiles
from tuplewise.gpu_kernels.cpu.plan import Plan, clues_of_planes, make_plan
from tuplewise.gpu_kernels.cpu.planes import LANES, TILE_ROWS
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.words import ACROSS, EQUAL, GREATER, UNKNOWN, clue_words, merge_clues

DIRECT_COMBINATIONS = 1 << 23  # largest direct table: 32 MiB a thread
SMALL_GROUP_ROWS = 1024  # below this, ranking a tile costs more than it saves
SMALL_TASK_PAIRS = 1 << 22  # pairs of small groups that make one task
FLUSH_PAIRS = (1 << 32) - 1  # what a 32-bit counter of the direct table holds

Found = list[tuple[NDArray[np.uint8], NDArray[np.int64]]]


def run(
    codes: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    scope: NDArray[np.int8],
    ordered: NDArray[np.bool_],
    nullable: bool,
    group_offsets: NDArray[np.int64],
    counting: bool,
    control: Control,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Distinct clues of the unordered pairs inside each group of rows.

    Parameters
    ----------
    codes : int32 array (columns, rows), C order
        Ranks; -1 is null. Rows of a group are neighbours and sorted by the front door; the pair (t, u) has t first.
    left, right, scope, ordered : arrays (comparisons,)
        As in `words.ClueLayout`.
    nullable : bool
        True: an outcome with a null operand is UNKNOWN. False: -1 is an ordinary lowest value.
    group_offsets : int64 array (groups + 1,)
    counting : bool
        Counts come for nothing here and are always exact.

    Returns
    -------
    clues : uint64 array (distinct, words), sorted
    counts : int64 array (distinct,), over unordered pairs
    complete : bool

    Notes
    -----
    Cost: comparisons x pairs byte compares at 32 an instruction, and one table increment a pair; the floor is one
    increment a pair (about one cycle). Memory: one table of at most 32 MiB a thread, or a hash table of the distinct
    clues; independent of the number of pairs.

    Source: clues with one or two bits a column pair and their counting follow FastADC (Xiao, Tan, Wang, Ma, "Fast
    Approximate Denial Constraint Discovery", PVLDB 16(2), 2022). Departures: outcomes are computed by comparing, not
    by inverted lists; only one of the two mirrored clues of a pair is computed; rows are sorted so that a tile pair
    holds few clues, and comparisons that are constant over a tile pair are left out.
    """
    words = clue_words(len(left))
    work = _Work(codes, left, right, scope, ordered, nullable)
    costs, jobs = _tasks(group_offsets)
    direct = work.plan.combinations <= DIRECT_COMBINATIONS
    complete = run_tasks(costs, lambda: _worker(work, jobs, group_offsets, direct), control)
    pieces = [(clues_of_planes(planes, work.plan), counts) for planes, counts in work.collect()]
    if not pieces:
        return np.empty((0, words), dtype=np.uint64), np.empty(0, dtype=np.int64), complete
    clues = np.concatenate([p[0] for p in pieces])
    counts = np.concatenate([p[1] for p in pieces])
    return (*merge_clues(clues, counts), complete)


class _Work:
    """What all threads read: the columns in dense codes, the plan, and where each thread leaves what it found."""

    def __init__(
        self,
        codes: NDArray[np.int32],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        scope: NDArray[np.int8],
        ordered: NDArray[np.bool_],
        nullable: bool,
    ) -> None:
        dense, domain, distinct, has_null = _dense_codes(codes, left, right, scope, nullable)
        self.plan: Plan = make_plan(left, right, scope, ordered, has_null, distinct)
        across = scope == ACROSS
        used = np.unique(right[across]).astype(np.int64)
        size = np.zeros(len(codes), dtype=np.int64)
        size[used] = domain[used] + 2
        offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        rows, row_of = _row_outcomes(codes, left, right, scope, ordered, nullable)
        self.data = (
            dense, domain, offsets, used, rows,
            left.astype(np.int64), right.astype(np.int64), self.plan.kind, self.plan.plane, self.plan.weight, row_of,
            self.plan.equal, self.plan.multipliers(), self.plan.size,
        )  # fmt: skip
        self.threads: list[_ThreadState] = []

    def scratch(self) -> Any:
        dense, offsets, row_outcomes = self.data[0], self.data[2], self.data[4]
        return tiles.make_scratch(len(dense), self.plan.planes, int(offsets[-1]), len(row_outcomes))

    def collect(self) -> Found:
        """Plane bytes and counts of all threads: the sum of their direct tables, and each hash table."""
        found = [state.hashed() for state in self.threads if state.used]
        tables = [table for state in self.threads for table in (state.narrow, state.wide) if table is not None]
        if tables:
            total = np.asarray(tables[0] if len(tables) == 1 else np.sum(tables, axis=0, dtype=np.int64))
            index = np.flatnonzero(total)
            planes = np.empty((len(index), self.plan.planes), dtype=np.uint8)
            for p, (size, step) in enumerate(zip(self.plan.size, self.plan.multipliers(), strict=True)):
                planes[:, p] = index // step % size
            found.append((planes, total[index].astype(np.int64)))
        return found


def _tasks(group_offsets: NDArray[np.int64]) -> tuple[list[float], list[tuple[int, int, int]]]:
    """Costs and jobs: (first row of the group, first and last row of the tile), or (-1, first and last small group)."""
    costs: list[float] = []
    jobs: list[tuple[int, int, int]] = []
    sizes = np.diff(group_offsets)
    for g in np.flatnonzero(sizes >= SMALL_GROUP_ROWS):
        start, end = int(group_offsets[g]), int(group_offsets[g + 1])
        tile_count = -(-(end - start) // TILE_ROWS)
        for tile in range(tile_count - 1, -1, -1):  # the costly ones first
            first = start + tile * TILE_ROWS
            last = min(first + TILE_ROWS, end)
            jobs.append((start, first, last))
            costs.append(float((last - first) * (last - start)))
    pairs = np.where(sizes < SMALL_GROUP_ROWS, sizes * (sizes - 1) // 2 + 1, 0)
    if pairs.any():
        ends = np.cumsum(pairs)
        cuts = np.searchsorted(ends, np.arange(SMALL_TASK_PAIRS, int(ends[-1]) + SMALL_TASK_PAIRS, SMALL_TASK_PAIRS))
        first_group = 0
        for cut in np.minimum(cuts + 1, len(sizes)):
            if cut > first_group:
                jobs.append((-1, first_group, int(cut)))
                costs.append(4.0 * float(pairs[first_group:cut].sum()))
                first_group = int(cut)
    return costs, jobs


def _worker(
    work: _Work, jobs: list[tuple[int, int, int]], group_offsets: NDArray[np.int64], direct: bool
) -> Callable[[int], None]:
    """One thread's way of running a task; its tables are registered with `work`."""
    state = _ThreadState(work, direct)
    work.threads.append(state)

    def run_task(task: int) -> None:
        start, first, last = jobs[task]
        if start < 0:
            state.small_groups(group_offsets, first, last)
        else:
            state.tile(start, first, last)

    return run_task


class _ThreadState:
    def __init__(self, work: _Work, direct: bool) -> None:
        self.work = work
        self.direct = direct
        self.scratch: Any = None
        self.narrow: NDArray[np.uint32] | None = None
        self.wide: NDArray[np.int64] | None = None
        self.narrow_pairs = 0
        self.row_keys = np.zeros((work.plan.key_words, LANES), dtype=np.uint64)
        self.hashes = np.zeros(LANES, dtype=np.uint64)
        self.keys = np.zeros((1 << 12, work.plan.key_words), dtype=np.uint64)
        self.counts = np.zeros(1 << 12, dtype=np.int64)
        self.used = 0

    def tile(self, start: int, first: int, last: int) -> None:
        if self.scratch is None:
            self.scratch = self.work.scratch()
        tiles.rank_tile(self.work.data, self.scratch, first, last)
        pairs = (last - first) * (last - start)
        if self.direct:
            counts = self._direct_table(pairs)
        for t_first in range(start, last, tiles.BLOCK_ROWS):
            t_last = min(t_first + tiles.BLOCK_ROWS, last)
            if self.direct:
                tiles.count_direct(self.work.data, self.scratch, counts, t_first, t_last, first, last)
            else:
                self.keys, self.counts, self.used = tiles.count_hashed(
                    self.work.data, self.scratch, self.keys, self.counts, self.used, self.row_keys, self.hashes,
                    t_first, t_last, first, last,
                )  # fmt: skip

    def _direct_table(self, pairs: int) -> NDArray[np.uint32]:
        """The 32-bit table, emptied into a 64-bit one before a counter could overflow."""
        if self.narrow is None:
            self.narrow = np.zeros(self.work.plan.combinations, dtype=np.uint32)
        if self.narrow_pairs + pairs > FLUSH_PAIRS:
            if self.wide is None:
                self.wide = np.zeros(len(self.narrow), dtype=np.int64)
            self.wide += self.narrow
            self.narrow[:] = 0
            self.narrow_pairs = 0
        self.narrow_pairs += pairs
        return self.narrow

    def small_groups(self, group_offsets: NDArray[np.int64], first: int, last: int) -> None:
        self.keys, self.counts, self.used = tiles.add_small_groups(
            self.work.data, self.keys, self.counts, self.used, self.row_keys, self.hashes, group_offsets, first, last,
            SMALL_GROUP_ROWS,
        )  # fmt: skip

    def hashed(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """What the hash table holds, as plane bytes."""
        slots = np.flatnonzero(self.counts)
        planes = self.keys[slots].astype("<u8").view(np.uint8).reshape(len(slots), -1)[:, : self.work.plan.planes]
        return np.ascontiguousarray(planes), self.counts[slots]


def _dense_codes(
    codes: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    scope: NDArray[np.int8],
    nullable: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Codes made dense among the columns that are compared with each other.

    A null keeps the lowest code where it is a value; where it is unknown it gets the code past the last.
    Returns codes, number of values by column, distinct values by column, and which columns have an unknown null.
    """
    columns = len(codes)
    component = np.arange(columns)
    for a, b in zip(left[scope == ACROSS], right[scope == ACROSS], strict=True):
        component[component == component[b]] = component[a]
    dense = np.empty_like(codes)
    domain = np.zeros(columns, dtype=np.int64)
    distinct = np.zeros(columns, dtype=np.int64)
    has_null = np.zeros(columns, dtype=np.bool_)
    if nullable:
        has_null = np.any(codes == -1, axis=1)
    for name in np.unique(component):
        members = np.flatnonzero(component == name)
        highest = int(codes[members].max(initial=-1)) + 2
        present = np.zeros(highest, dtype=np.bool_)
        for c in members:
            seen = np.zeros(highest, dtype=np.bool_)
            seen[codes[c] + 1] = True
            if nullable:
                seen[0] = False
            distinct[c] = np.count_nonzero(seen)
            present |= seen
        rank: NDArray[np.int32] = (np.cumsum(present) - present).astype(np.int32)
        total = int(np.count_nonzero(present))
        if nullable:
            rank[0] = total
        domain[members] = total
        for c in members:
            dense[c] = rank[codes[c] + 1]
    return dense, domain, distinct, has_null


def _row_outcomes(
    codes: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    scope: NDArray[np.int8],
    ordered: NDArray[np.bool_],
    nullable: bool,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Outcomes of the comparisons within one row: uint8 (comparisons of that kind, rows), and which is whose."""
    row_of = np.full(len(left), -1, dtype=np.int64)
    rows: list[NDArray[np.uint8]] = []
    for g in np.flatnonzero(scope != ACROSS):
        a, b = codes[left[g]], codes[right[g]]
        outcome = np.where(a == b, EQUAL, np.where((a > b) & ordered[g], GREATER, 0)).astype(np.uint8)
        if nullable:
            outcome[(a == -1) | (b == -1)] = UNKNOWN
        row_of[g] = len(rows)
        rows.append(outcome)
    stacked = np.array(rows, dtype=np.uint8) if rows else np.zeros((0, codes.shape[1]), dtype=np.uint8)
    return stacked, row_of

