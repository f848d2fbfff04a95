"""CPU twin of the pairwise evidence kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import block_counts, by_code, tiles
from tuplewise.gpu_kernels.cpu.block_counts import LocalCounts
from tuplewise.gpu_kernels.cpu.plan import Plan, clues_of_planes, make_plan
from tuplewise.gpu_kernels.cpu.planes import LANES, TILE_ROWS
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.cpu.tiles import Table, TileScratch, make_scratch
from tuplewise.gpu_kernels.words import ACROSS, Comparisons, clue_words, merge_clues, outcomes_within

DIRECT_COMBINATIONS = 1 << 23  # entries of the largest direct table: 32 MiB a thread
SMALL_GROUP_ROWS = 1024  # rows of a group below which ranking a tile costs more than it saves
SMALL_TASK_PAIRS = 1 << 22  # pairs of small groups in one task
FLUSH_PAIRS = (1 << 32) - 1  # the most that a 32-bit counter of the direct table holds


def run(
    codes: NDArray[np.int32],
    comparisons: Comparisons,
    group_offsets: NDArray[np.int64],
    control: Control,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Distinct clues of the unordered pairs inside each group of rows.

    Parameters
    ----------
    codes : int32 array (columns, rows), C order
        Ranks; -1 is null. Rows of a group are neighbours and sorted by the front door; the pair (t, u) has t first.
    group_offsets : int64 array (groups + 1,)

    Returns
    -------
    clues : uint64 array (distinct, words), sorted
    counts : int64 array (distinct,), over unordered pairs
    complete : bool

    Notes
    -----
    Cost: pairs x varying comparisons / 32 vector instructions, and one increment a pair, of a table that stays near the
    processor where the comparisons that vary over a block of 512 rows and a tile of 248 fit two planes. Pairs of a row
    for which one comparison at most varies over the tile are counted at once. The floor is the increment (about one
    cycle a pair) where most clues differ, and a look-up a row, tile and column where few do. Memory: for each thread
    a table of at most 32 MiB, or a hash table of the distinct clues. It doesn't depend on the number of pairs.

    Source: clues with one or two bits a column pair and their counting follow FastADC (Xiao, Tan, Wang, Ma, "Fast
    Approximate Denial Constraint Discovery", PVLDB 16(2), 2022). Departures: outcomes are computed by comparing, not by
    inverted lists; only one of the two mirrored clues of a pair is computed; rows are sorted so that a pair of tiles
    has few clues, and comparisons that are constant over a pair of tiles are skipped.
    """
    work = DenseTable(codes, comparisons)
    return count_jobs(work, *_tasks(group_offsets), group_offsets, control)


def count_jobs(
    work: DenseTable,
    costs: list[float],
    jobs: list[tuple[int, int, int]],
    group_offsets: NDArray[np.int64],
    control: Control,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Count the pairs of some jobs, see `_tasks`; returns the same as `run`."""
    threads: list[ThreadTables] = []

    def make_worker() -> Callable[[int], None]:
        threads.append(ThreadTables(work.plan))
        return _worker(work, jobs, group_offsets, threads[-1])

    complete = run_tasks(costs, make_worker, control)
    return (*merge_tables(work.plan, threads if complete else []), complete)  # a part of the counts tells nothing


class DenseTable:
    """Data that all threads read: the columns in dense codes, and the plan."""

    def __init__(self, codes: NDArray[np.int32], comparisons: Comparisons) -> None:
        dense, domain, distinct, has_null = _dense_codes(codes, comparisons)
        self.plan: Plan = make_plan(comparisons, has_null, distinct)
        self.data = loop_arrays(self.plan, dense, domain, comparisons, *row_outcomes(codes, comparisons))


def loop_arrays(
    plan: Plan,
    dense: NDArray[np.int32],
    domain: NDArray[np.int64],
    comparisons: Comparisons,
    within: NDArray[np.uint8],
    row_of: NDArray[np.int64],
) -> Table:
    """Arguments of compiled loops. `dense`: int32 (columns, rows), codes of at most `domain`; `within`, `row_of`: see
    `row_outcomes`."""
    left, right, scope, _, _ = comparisons
    used = np.unique(right[scope == ACROSS]).astype(np.int64)
    size = np.zeros(len(dense), dtype=np.int64)
    size[used] = domain[used] + 2
    offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    if plan.combinations <= DIRECT_COMBINATIONS:
        word, scale = np.zeros_like(plan.plane), plan.multipliers()[plan.plane].astype(np.uint64)
    else:
        word, scale = plan.plane // 8, np.uint64(1) << (8 * (plan.plane % 8)).astype(np.uint64)
    return Table(
        dense, domain, offsets, used, within, left.astype(np.int64), right.astype(np.int64), plan.kind, plan.plane,
        plan.weight, row_of, plan.order, word, plan.weight.astype(np.uint64) * scale,
    )  # fmt: skip


def _tasks(group_offsets: NDArray[np.int64]) -> tuple[list[float], list[tuple[int, int, int]]]:
    """Costs and jobs: (first row of the group, first and last row of the tile), or (-1, first and last small group)."""
    costs: list[float] = []
    jobs: list[tuple[int, int, int]] = []
    sizes = np.diff(group_offsets)
    for g in np.flatnonzero(sizes >= SMALL_GROUP_ROWS):
        start, end = int(group_offsets[g]), int(group_offsets[g + 1])
        own_costs, own_jobs = tile_jobs(start, start, end)
        costs += own_costs
        jobs += own_jobs
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


def tile_jobs(start: int, first: int, last: int) -> tuple[list[float], list[tuple[int, int, int]]]:
    """Costs and jobs of the pairs of a row from `first` to `last` with a row before it, from `start` on. The job of the
    rows b to e stands for about (e - b) * (e - start) pairs."""
    costs, jobs = [], []
    for begin in reversed(range(first, last, TILE_ROWS)):  # most costly jobs first
        end = min(begin + TILE_ROWS, last)
        jobs.append((start, begin, end))
        costs.append(float((end - begin) * (end - start)))
    return costs, jobs


def _worker(
    work: DenseTable, jobs: list[tuple[int, int, int]], group_offsets: NDArray[np.int64], tables: ThreadTables
) -> Callable[[int], None]:
    """Function that runs a task on one thread."""
    scratch: TileScratch | None = None

    def run_task(task: int) -> None:
        nonlocal scratch
        start, first, last = jobs[task]
        if start < 0:
            tables.count_groups(work.data, group_offsets, first, last)
            return
        if scratch is None:
            scratch = make_scratch(work.data, work.plan.planes, work.plan.key_words)
        tiles.rank_tile(work.data, scratch, first, last)
        tables.count_tile(work.data, scratch, start, last, first, last)

    return run_task


class ThreadTables:
    """Counts of one thread so far: a direct table over plane bytes, in 32 and 64 bits, and a hash table of plane
    bytes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.narrow: NDArray[np.uint32] | None = None
        self.wide: NDArray[np.int64] | None = None
        self.narrow_pairs = 0
        self.row_keys = np.zeros((plan.key_words, LANES), dtype=np.uint64)
        self.hashes = np.zeros(LANES, dtype=np.uint64)
        self.local: LocalCounts | None = None
        self.keys = np.zeros((1 << 12, plan.key_words), dtype=np.uint64)
        self.counts = np.zeros(1 << 12, dtype=np.int64)
        self.used = 0

    def count_tile(self, data: Any, scratch: Any, t_first: int, t_last: int, u_first: int, u_last: int) -> None:
        """Count the pairs t < u of some rows and the ranked tile."""
        if self.local is None:
            self.local = block_counts.make_local()
        if self.plan.combinations <= DIRECT_COMBINATIONS:
            counts = self._direct_table((u_last - u_first) * (t_last - t_first))
            block_counts.count_direct(data, scratch, self.local, counts, t_first, t_last, u_first, u_last)
        else:
            self.keys, self.counts, self.used = block_counts.count_hashed(
                data, scratch, self.local, self.keys, self.counts, self.used, self.row_keys, self.hashes, t_first,
                t_last, u_first, u_last,
            )  # fmt: skip

    def _direct_table(self, pairs: int) -> NDArray[np.uint32]:
        """Direct table in 32 bits, emptied into the 64-bit one before a counter could overflow."""
        if self.narrow is None:
            self.narrow = np.zeros(self.plan.combinations, dtype=np.uint32)
        if self.narrow_pairs + pairs > FLUSH_PAIRS:
            if self.wide is None:
                self.wide = np.zeros(len(self.narrow), dtype=np.int64)
            self.wide += self.narrow
            self.narrow[:] = 0
            self.narrow_pairs = 0
        self.narrow_pairs += pairs
        return self.narrow

    def count_groups(self, data: Any, group_offsets: NDArray[np.int64], first: int, last: int) -> None:
        """Count the pairs of the small groups among `first` to `last`."""
        self.keys, self.counts, self.used = by_code.add_small_groups(
            data, self.keys, self.counts, self.used, self.row_keys, self.hashes, group_offsets, first, last,
            SMALL_GROUP_ROWS,
        )  # fmt: skip

    def count_few(self, data: Any, few: int) -> None:
        """Count the pairs of the last `few` rows with all rows before them."""
        self.keys, self.counts, self.used = by_code.add_few(
            data, self.keys, self.counts, self.used, self.row_keys, self.hashes, few
        )

    def hashed(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Plane bytes and counts of the hash table."""
        slots = np.flatnonzero(self.counts)
        planes = self.keys[slots].astype("<u8").view(np.uint8).reshape(len(slots), -1)[:, : self.plan.planes]
        return np.ascontiguousarray(planes), self.counts[slots]


def merge_tables(plan: Plan, threads: list[ThreadTables]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Merge the clues that threads have counted: uint64 (distinct, words), sorted, with counts."""
    found = [tables.hashed() for tables in threads if tables.used]
    direct = [table for tables in threads for table in (tables.narrow, tables.wide) if table is not None]
    if direct:
        total = np.asarray(direct[0] if len(direct) == 1 else np.sum(direct, axis=0, dtype=np.int64))
        index = np.flatnonzero(total)
        planes = np.empty((len(index), plan.planes), dtype=np.uint8)
        for p, (size, step) in enumerate(zip(plan.size, plan.multipliers(), strict=True)):
            planes[:, p] = index // step % size
        found.append((planes, total[index].astype(np.int64)))
    if not found:
        return np.empty((0, clue_words(len(plan.kind))), dtype=np.uint64), np.empty(0, dtype=np.int64)
    clues = np.concatenate([clues_of_planes(planes, plan) for planes, _ in found])
    return merge_clues(clues, np.concatenate([counts for _, counts in found]))


def _dense_codes(
    codes: NDArray[np.int32], comparisons: Comparisons
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Make codes dense among the columns that are compared with each other.

    A null that is a value keeps the lowest code; an unknown null gets the code behind the last. Returns codes, size of
    the domain by column, distinct values by column, and which columns have unknown nulls.
    """
    columns = len(codes)
    component = compared_columns(columns, comparisons)
    dense = np.empty_like(codes)
    domain = np.zeros(columns, dtype=np.int64)
    distinct = np.zeros(columns, dtype=np.int64)
    has_null = np.zeros(columns, dtype=np.bool_)
    if comparisons.unknown:
        has_null = np.any(codes == -1, axis=1)
    for name in np.unique(component):
        members = np.flatnonzero(component == name)
        highest = int(codes[members].max(initial=-1)) + 2
        present = np.zeros(highest, dtype=np.bool_)
        for c in members:
            seen = np.zeros(highest, dtype=np.bool_)
            seen[codes[c] + 1] = True
            if comparisons.unknown:
                seen[0] = False
            distinct[c] = np.count_nonzero(seen)
            present |= seen
        rank: NDArray[np.int32] = (np.cumsum(present) - present).astype(np.int32)
        total = int(np.count_nonzero(present))
        if comparisons.unknown:
            rank[0] = total
        domain[members] = total
        for c in members:
            dense[c] = rank[codes[c] + 1]
    return dense, domain, distinct, has_null


def compared_columns(columns: int, comparisons: Comparisons) -> NDArray[np.int64]:
    """A number for each column, int64 (columns,), the same where columns are compared with each other across rows."""
    left, right, scope, _, _ = comparisons
    component = np.arange(columns)
    for a, b in zip(left[scope == ACROSS], right[scope == ACROSS], strict=True):
        component[component == component[b]] = component[a]
    return component


def row_outcomes(
    codes: NDArray[np.int32], comparisons: Comparisons
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Outcomes of the comparisons within one row: uint8 (comparisons of that kind, rows), and which is whose."""
    left, right, scope, ordered, nullable = comparisons
    row_of = np.full(len(left), -1, dtype=np.int64)
    rows: list[NDArray[np.uint8]] = []
    for g in np.flatnonzero(scope != ACROSS):
        row_of[g] = len(rows)
        rows.append(outcomes_within(codes, left[g], right[g], bool(ordered[g]), nullable))
    stacked = np.array(rows, dtype=np.uint8) if rows else np.zeros((0, codes.shape[1]), dtype=np.uint8)
    return stacked, row_of

