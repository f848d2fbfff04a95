"""Violations inside classes on the device, as `cpu.violations` defines them: many checks of many contexts a launch.

A kernel counts, for each check, the violating rows whose mixed number is at most a bound. It writes as many of their
pairs as there is room for, in unspecified order; without room it only counts.

A failing check may have as many violating rows as its context has rows. All of them add to one cell, and atomics on one
cell are serialised. So a thread goes through several members or places and adds once for each check that it met. Where
there is room for pairs, the bound leaves few rows, and each takes its place by its own atomic addition.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from tuplewise.gpu_kernels.cuda.grouping import HIGHEST_CODE, first_above
from tuplewise.gpu_kernels.cuda.partitions import BEGIN, COLUMN, NUMBERS, Level, Spread
from tuplewise.gpu_kernels.cuda.primitives import empty, filled, kernel, launch, to_device, to_host

MEMBERS = 16  # members of jobs for one thread
STRIP = 64  # places of a sorted job for one thread, at least
NOTHING = -(1 << 63)  # below every extreme
LOW_HALF = (1 << 31) - 1
END = 1  # column of sorted jobs, beside BEGIN and COLUMN
BEGUN, HIGH, LOW, BEFORE_HIGH, BEFORE_LOW = 0, 1, 2, 3, 4  # columns of the state of a strip


@cuda.jit(device=True)
def mixed(row):
    """Mix a row number by the bijection of 32 bits of the CPU twin."""
    x = np.uint64(row)
    x ^= x >> np.uint64(16)
    x = (x * np.uint64(0x7FEB352D)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(15)
    x = (x * np.uint64(0x846CA68B)) & np.uint64(0xFFFFFFFF)
    return np.int64(x ^ (x >> np.uint64(16)))


@kernel("int64[::1], int64[:,::1], int32[:,::1], int32[::1], int32[::1], int64, int32[::1]")
def find_firsts_kernel(offsets, jobs, codes, rows, numbers, least, firsts):
    """firsts[class of a job] = its lowest row whose code is at least `least`, int32, given as the highest int32.

    One thread MEMBERS members of jobs, a block's width apart, so that a warp reads neighbours. A job without a column
    takes every row.

    Grid: any size of one dimension. Races: atomic minimum, one for each class that a thread meets. Shared memory: 0
    bytes. Assumes unchecked: the members of a class stand together; rows below 2**31 - 1.
    """
    members = offsets[offsets.shape[0] - 1]
    span = MEMBERS * cuda.blockDim.x
    for begin in range(cuda.blockIdx.x * span, members, cuda.gridDim.x * span):
        job = first_above(offsets, 0, offsets.shape[0], begin + cuda.threadIdx.x) - 1
        current = np.int64(-1)
        lowest = np.int32(HIGHEST_CODE)
        for i in range(begin + cuda.threadIdx.x, min(members, begin + span), cuda.blockDim.x):
            while offsets[job + 1] <= i:
                job += 1
            place = jobs[job, BEGIN] + i - offsets[job]
            number = numbers[place] + jobs[job, NUMBERS]
            if number != current:
                if lowest < HIGHEST_CODE:
                    cuda.atomic.min(firsts, current, lowest)
                current = number
                lowest = np.int32(HIGHEST_CODE)
            row = rows[place]
            if jobs[job, COLUMN] < 0 or codes[jobs[job, COLUMN], row] >= least:
                lowest = min(lowest, row)
        if lowest < HIGHEST_CODE:
            cuda.atomic.min(firsts, current, lowest)


@kernel(
    "int64[::1], int64[:,::1], int32[:,::1], int32[::1], int32[::1], int64, int32[::1], int64[::1], int64, "
    "int32[:,:,::1], int64[::1]"
)
def find_different_kernel(offsets, jobs, codes, rows, numbers, least, firsts, bounds, room, found, counts):
    """counts[job] += rows with another code than the first of their class; of a job without a column, all but it.

    Codes below `least` don't differ; only rows that are mixed to at most bounds[job], int64, count. found[job, k] =
    (first, row), int32 (jobs, room, 2), in any order; with no room, nothing.

    One thread MEMBERS members of jobs, as in `find_firsts_kernel`.

    Grid: any size of one dimension. Races: atomic addition, whose answer is the pair's place where there is room, else
    one for each job that a thread meets. Shared memory: 0 bytes. Assumes unchecked: firsts are there.
    """
    members = offsets[offsets.shape[0] - 1]
    span = MEMBERS * cuda.blockDim.x
    for begin in range(cuda.blockIdx.x * span, members, cuda.gridDim.x * span):
        job = first_above(offsets, 0, offsets.shape[0], begin + cuda.threadIdx.x) - 1
        met = np.int64(0)
        for i in range(begin + cuda.threadIdx.x, min(members, begin + span), cuda.blockDim.x):
            if offsets[job + 1] <= i:
                if met:
                    cuda.atomic.add(counts, job, met)
                    met = np.int64(0)
                while offsets[job + 1] <= i:
                    job += 1
            place = jobs[job, BEGIN] + i - offsets[job]
            row = rows[place]
            first = firsts[numbers[place] + jobs[job, NUMBERS]]
            column = jobs[job, COLUMN]
            if column < 0:
                different = row != first
            else:
                different = codes[column, row] >= least and codes[column, row] != codes[column, first]
            if different and mixed(row) <= bounds[job]:
                if room == 0:
                    met += 1
                    continue
                k = cuda.atomic.add(counts, job, 1)
                if k < room:
                    found[job, k, 0] = first
                    found[job, k, 1] = row
        if met:
            cuda.atomic.add(counts, job, met)


@kernel("int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int8[::1]")
def arrange_members_kernel(order, rows, numbers, codes, sorted_rows, marks):
    """The k-th member in order of (class, code, row), int32, and its mark, int8: 2 a new class, 1 a new code, else 0.

    One thread a member.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: order holds each member once.
    """
    for k in range(cuda.grid(1), order.shape[0], cuda.gridsize(1)):
        i = order[k]
        sorted_rows[k] = rows[i]
        marks[k] = 2
        if k > 0:
            j = order[k - 1]
            if numbers[i] == numbers[j]:
                marks[k] = 1 if codes[i] != codes[j] else 0


@cuda.jit(device=True)
def packed(code, place):
    """Pack a code and its place into an int64 in whose order, of equal codes, the first place is largest."""
    return (np.int64(code) << np.int64(32)) | (np.int64(LOW_HALF) - np.int64(place))


@cuda.jit(device=True)
def place_of(extreme):
    """Unpack the place."""
    return np.int64(LOW_HALF) - (extreme & np.int64(LOW_HALF))


@kernel("int64[::1], int64, int64[:,::1], int32[:,::1], int32[::1], int8[::1], int64[:,::1]")
def summarize_strips_kernel(strips, places, jobs, codes, rows, marks, state):
    """state[s] = what strip s alone leaves, int64 (strips, 5): the last kind of beginning, extremes, those before it.

    One thread a strip of so many `places`. strips int64 (jobs + 1,): where those of a job begin; jobs int64 (jobs, 3):
    where its sorted members begin and end, and its column B. Extremes are of B and of -B, of the class so far and over
    strictly smaller A, packed with their place in the job.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: codes of -2**31 + 1 or more.
    """
    for s in range(cuda.grid(1), strips[strips.shape[0] - 1], cuda.gridsize(1)):
        job = first_above(strips, 0, strips.shape[0], s) - 1
        begin = jobs[job, BEGIN] + (s - strips[job]) * places
        column = jobs[job, COLUMN]
        begun = np.int64(0)
        high = low = before_high = before_low = np.int64(NOTHING)
        for k in range(begin, min(begin + places, jobs[job, END])):
            mark = marks[k]
            if mark == 2:
                high = low = np.int64(NOTHING)
            if mark > 0:
                begun = max(begun, np.int64(mark))
                before_high, before_low = high, low
            code = np.int64(codes[column, rows[k]])
            high = max(high, packed(code, k - jobs[job, BEGIN]))
            low = max(low, packed(-code, k - jobs[job, BEGIN]))
        state[s, BEGUN] = begun
        state[s, HIGH] = high
        state[s, LOW] = low
        state[s, BEFORE_HIGH] = before_high
        state[s, BEFORE_LOW] = before_low


@kernel("int64[::1], int64[:,::1]")
def carry_strips_kernel(strips, state):
    """state[s, HIGH:] = the extremes at the beginning of strip s, int64. One thread a job goes through its strips.

    Grid: any size. Races: own strips. Shared memory: 0 bytes. Assumes unchecked: an earlier launch summarized them.
    """
    for job in range(cuda.grid(1), strips.shape[0] - 1, cuda.gridsize(1)):
        high = low = before_high = before_low = np.int64(NOTHING)
        for s in range(strips[job], strips[job + 1]):
            begun = state[s, BEGUN]
            own_high, own_low = state[s, HIGH], state[s, LOW]
            own_before_high, own_before_low = state[s, BEFORE_HIGH], state[s, BEFORE_LOW]
            state[s, HIGH] = high
            state[s, LOW] = low
            state[s, BEFORE_HIGH] = before_high
            state[s, BEFORE_LOW] = before_low
            if begun == 2:
                high, low, before_high, before_low = own_high, own_low, own_before_high, own_before_low
            else:
                if begun == 1:
                    before_high = max(high, own_before_high)
                    before_low = max(low, own_before_low)
                high = max(high, own_high)
                low = max(low, own_low)


@cuda.jit(device=True)
def note_swap(job, way, row, first, bounds, room, found, counts):
    """Note a swap: return 1 where the caller must still count it; where there is room for pairs, count and write it
    here."""
    if mixed(row) > bounds[job, way]:
        return 0
    if room == 0:
        return 1
    k = cuda.atomic.add(counts, (job, way), 1)
    if k < room:
        found[job, way, k, 0] = first
        found[job, way, k, 1] = row
    return 0


@kernel(
    "int64[::1], int64, int64[:,::1], int32[:,::1], int32[::1], int8[::1], int64[:,::1], int64[:,::1], int64, "
    "int32[:,:,:,::1], int64[:,::1]"
)
def find_swaps_kernel(strips, places, jobs, codes, rows, marks, state, bounds, room, found, counts):
    """counts[job, way] += swaps, ascending and descending, int64 (jobs, 2), of rows mixed to at most bounds[job, way].

    found[job, way, k] = (row of the extreme, row), int32 (jobs, 2, room, 2), in any order; with no room, nothing.

    One thread a strip; arrays as `summarize_strips_kernel`, state after `carry_strips_kernel`.

    Grid: any size. Races: atomic addition, whose answer is the pair's place where there is room, else one for each way
    of a strip. Shared memory: 0 bytes. Assumes unchecked: as `summarize_strips_kernel`.
    """
    for s in range(cuda.grid(1), strips[strips.shape[0] - 1], cuda.gridsize(1)):
        job = first_above(strips, 0, strips.shape[0], s) - 1
        first = jobs[job, BEGIN]
        begin = first + (s - strips[job]) * places
        column = jobs[job, COLUMN]
        up = down = np.int64(0)
        high, low = state[s, HIGH], state[s, LOW]
        before_high, before_low = state[s, BEFORE_HIGH], state[s, BEFORE_LOW]
        for k in range(begin, min(begin + places, jobs[job, END])):
            mark = marks[k]
            if mark == 2:
                high = low = np.int64(NOTHING)
            if mark > 0:
                before_high, before_low = high, low
            row = rows[k]
            code = np.int64(codes[column, row])
            if code < (before_high >> np.int64(32)):
                up += note_swap(job, 0, row, rows[first + place_of(before_high)], bounds, room, found, counts)
            if -code < (before_low >> np.int64(32)):
                down += note_swap(job, 1, row, rows[first + place_of(before_low)], bounds, room, found, counts)
            high = max(high, packed(code, k - first))
            low = max(low, packed(-code, k - first))
        if up:
            cuda.atomic.add(counts, (job, 0), up)
        if down:
            cuda.atomic.add(counts, (job, 1), down)


def find_different(
    level: Level, jobs: Spread, codes: Any, strict: bool, bounds: NDArray[np.int64], room: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find violations of constancies and keys: counts (jobs,) and, with room, pairs (jobs, room, 2); needs at least one
    member."""
    offsets, least = to_device(jobs.offsets), 0 if strict else -1
    firsts = filled(jobs.classes, HIGHEST_CODE, np.int32)
    threads = -(-jobs.items // MEMBERS)
    launch(find_firsts_kernel, threads, offsets, jobs.jobs, codes, level.rows, level.numbers, least, firsts)
    found, counts = empty((len(bounds), room, 2), np.int32), filled(len(bounds), 0, np.int64)
    launch(
        find_different_kernel, threads, offsets, jobs.jobs, codes, level.rows, level.numbers, least, firsts,
        to_device(bounds), room, found, counts,
    )  # fmt: skip
    return to_host(counts), to_host(found) if room else np.zeros((len(bounds), 0, 2), dtype=np.int32)


def find_swaps(
    rows: Any, marks: Any, jobs: NDArray[np.int64], codes: Any, bounds: NDArray[np.int64], room: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find swaps over sorted members: counts (jobs, 2) and, with room, pairs (jobs, 2, room, 2)."""
    sizes = jobs[:, END] - jobs[:, BEGIN]
    # one thread carries extremes through all strips of a job, so a job has at most as many strips as a strip has places
    places = max(STRIP, isqrt(int(sizes.max())))
    strips = np.concatenate([[0], np.cumsum(-(-sizes // places))]).astype(np.int64)
    total = int(strips[-1])
    on_device = to_device(strips), to_device(jobs)
    state = empty((total, 5), np.int64)
    launch(summarize_strips_kernel, total, on_device[0], places, on_device[1], codes, rows, marks, state)
    launch(carry_strips_kernel, len(jobs), on_device[0], state)
    found, counts = empty((len(jobs), 2, room, 2), np.int32), to_device(np.zeros((len(jobs), 2), dtype=np.int64))
    launch(find_swaps_kernel, total, on_device[0], places, on_device[1], codes, rows, marks, state, to_device(bounds),
           room, found, counts)  # fmt: skip
    return to_host(counts), to_host(found) if room else np.zeros((len(jobs), 2, 0, 2), dtype=np.int32)
