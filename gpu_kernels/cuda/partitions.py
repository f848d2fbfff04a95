"""Stripped partitions of many contexts on the device, level by level of the trie of their paths.

The partitions of a level are stored one after another: `rows` and `numbers` (the class, numbered over all partitions).
The next level copies the members of each parent to its children, gathers the codes of each child's column and sorts by
(class, code, place), with one sort for all contexts of the level.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from tuplewise.gpu_kernels.cuda.grouping import (
    cluster_numbers,
    first_above,
    flag_changes_kernel,
    measure_runs_kernel,
    order_by,
    runs_of,
    scatter_offsets_kernel,
    scatter_runs_kernel,
)
from tuplewise.gpu_kernels.cuda.primitives import empty, kernel, launch, output, running_sums, to_device, to_host

BEGIN, NUMBERS, COLUMN = 0, 1, 2  # columns of the jobs of a `Spread`
MEMBERS, CLASSES = 0, 1  # columns of what `locate_jobs_kernel` writes


@dataclass(frozen=True, eq=False)
class Level:
    """Partitions of a level on the device.

    Attributes
    ----------
    rows, numbers : int32 device arrays, the members of all partitions and the class of each
    members : int64 (partitions + 1,), offsets of each partition's members
    classes : int64 (partitions + 1,), offsets of each partition's classes
    """

    rows: Any
    numbers: Any
    members: NDArray[np.int64]
    classes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spread:
    """Members of partitions of a level, copied once for each job. A job is a partition and a column.

    Attributes
    ----------
    offsets : int64 (jobs + 1,), offsets of each job's members
    jobs : int64 device array (jobs, 3): start of the partition's members (BEGIN); number added to its classes, so that
        no two jobs share a class (NUMBERS); column (COLUMN; -1: none)
    classes : int, number of classes of all jobs
    """

    offsets: NDArray[np.int64]
    jobs: Any
    classes: int

    @property
    def items(self) -> int:
        return int(self.offsets[-1])


def spread(level: Level, partitions: NDArray[np.int64], columns: NDArray[np.int64]) -> Spread:
    """Make jobs on partitions of a level, each with a column."""
    sizes, classes = np.diff(level.members)[partitions], np.diff(level.classes)[partitions]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    before = np.cumsum(classes) - classes
    jobs = np.stack([level.members[partitions], before - level.classes[partitions], columns], axis=1)
    return Spread(offsets, to_device(jobs.astype(np.int64)), int(classes.sum()))


@kernel("int64[::1], int64[:,::1], int32[:,::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]")
def spread_members_kernel(offsets, jobs, codes, rows, numbers, new_rows, new_numbers, new_codes):
    """Row, class and code of each member of each job, int32. One thread a member. Arrays as in `Spread` and `Level`.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: each job has a column.
    """
    for i in range(cuda.grid(1), new_rows.shape[0], cuda.gridsize(1)):
        job = first_above(offsets, 0, offsets.shape[0], i) - 1
        place = jobs[job, BEGIN] + i - offsets[job]
        row = rows[place]
        new_rows[i] = row
        new_numbers[i] = numbers[place] + jobs[job, NUMBERS]
        new_codes[i] = codes[jobs[job, COLUMN], row]


@kernel("int64[::1], int32[::1], int32[::1], int64[::1], int64[::1]")
def drop_nulls_kernel(starts, order, codes, kept, sizes):
    """kept[r] = sizes[r] = 0, int64, where run r is of nulls. One thread a run.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: a run is of one code.
    """
    for r in range(cuda.grid(1), kept.shape[0], cuda.gridsize(1)):
        if codes[order[starts[r]]] < 0:
            kept[r] = 0
            sizes[r] = 0


@kernel("int64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1]")
def locate_jobs_kernel(offsets, run_numbers, classes_before, rows_before, begins):
    """begins[j] = members, classes that are left of the jobs before job j, int64 (jobs + 1, 2). One thread a job.

    A run begins where a job does: `run_numbers`, int64 (members + 1,), are the runs before each place.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: no two jobs share a class.
    """
    for j in range(cuda.grid(1), offsets.shape[0], cuda.gridsize(1)):
        r = run_numbers[offsets[j]]
        begins[j, MEMBERS] = rows_before[r]
        begins[j, CLASSES] = classes_before[r]


def spread_members(level: Level, jobs: Spread, codes: Any) -> tuple[Any, Any, Any]:
    """Rows, class numbers and codes of the members of all jobs, int32; there must be at least one member."""
    made = tuple(empty(jobs.items, np.int32) for _ in range(3))
    where = to_device(jobs.offsets), jobs.jobs
    launch(spread_members_kernel, jobs.items, *where, codes, level.rows, level.numbers, *made)
    return made


def whole_table(rows: int) -> Level:
    """Partition of the empty context."""
    members = np.array([0, rows if rows > 1 else 0], dtype=np.int64)
    everything = to_device(np.arange(max(1, rows), dtype=np.int32))
    return Level(everything, to_device(np.zeros(max(1, rows), dtype=np.int32)), members, np.minimum(members, 1))


def next_level(level: Level, parents: NDArray[np.int64], columns: NDArray[np.int64], codes: Any, strict: bool) -> Level:
    """Split partitions of a level, each by a column: one result for each of `parents`, in order."""
    jobs = spread(level, parents, columns)
    nothing = np.zeros(len(parents) + 1, dtype=np.int64)
    if jobs.items == 0:
        return Level(level.rows, level.numbers, nothing, nothing)
    n = jobs.items
    rows, numbers, of_column = spread_members(level, jobs, codes)
    order = order_by(numbers, jobs.classes, of_column)
    run_numbers, starts, runs = runs_of(output(flag_changes_kernel, n, np.int32, numbers, of_column, order))
    kept, sizes, unused = (empty(runs, np.int64) for _ in range(3))
    launch(measure_runs_kernel, runs, starts, order, rows, n, kept, sizes, unused)
    if strict:
        launch(drop_nulls_kernel, runs, starts, order, of_column, kept, sizes)
    classes_before, rows_before = running_sums(kept), running_sums(sizes)
    begins = empty((len(parents) + 1, 2), np.int64)
    launch(
        locate_jobs_kernel, len(parents) + 1, to_device(jobs.offsets), run_numbers, classes_before, rows_before, begins
    )
    members, classes = np.ascontiguousarray(to_host(begins).T)
    if members[-1] == 0:
        return Level(level.rows, level.numbers, nothing, nothing)
    new_rows = empty(int(members[-1]), np.int32)
    launch(scatter_runs_kernel, n, starts, order, rows, run_numbers, kept, rows_before, rows_before, 0, new_rows)
    offsets = empty(int(classes[-1]) + 1, np.int64)
    launch(scatter_offsets_kernel, runs + 1, classes_before, rows_before, offsets)
    return Level(new_rows, cluster_numbers(offsets, int(members[-1])), members, classes)
