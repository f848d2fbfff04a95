"""Ordering and grouping rows by cluster and codes on the device: 64-bit keys, a sort, flags, running sums, scatters."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from tuplewise.gpu_kernels.cuda.primitives import empty, filled, kernel, launch, output, running_sums, sort, to_device

KEY_BITS = 64
HIGHEST_CODE, LOWEST_CODE = 2147483647, -2147483648
REDUCING_THREADS = 1 << 16  # threads of a reduction, each with two atomics on the same two cells, which are serialised


def bits_for(values: int) -> int:
    """Number of bits that distinguish `values` values."""
    return max(0, int(values - 1).bit_length()) if values > 0 else 0


@cuda.jit(device=True)
def first_above(values, low, high, wanted):
    """First place in values[low:high], ascending, that holds more than `wanted`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@kernel("int64[::1], int32[::1]")
def number_clusters_kernel(offsets, numbers):
    """numbers[i] = the set that member i is in, int32, by offsets int64 (sets + 1,). One thread a member.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: offsets ascend from 0 to the members.
    """
    for i in range(cuda.grid(1), numbers.shape[0], cuda.gridsize(1)):
        numbers[i] = first_above(offsets, 0, offsets.shape[0], i) - 1


@kernel("int32[::1], int32[::1], int32[::1]")
def gather_codes_kernel(column, rows, codes):
    """codes[i] = column[rows[i]], int32. One thread a row.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: rows are places of the column.
    """
    for i in range(cuda.grid(1), codes.shape[0], cuda.gridsize(1)):
        codes[i] = column[rows[i]]


@kernel("int32[::1], int32[::1], int32[::1]")
def scatter_clusters_kernel(rows, numbers, clusters):
    """clusters[rows[i]] = numbers[i], int32. One thread a row.

    Grid: any size. Races: one source, since no row is there twice. Shared memory: 0 bytes. Assumes unchecked: that, and
    that rows are places of clusters.
    """
    for i in range(cuda.grid(1), rows.shape[0], cuda.gridsize(1)):
        clusters[rows[i]] = numbers[i]


@kernel("int32[::1], int32[::1]")
def reduce_extremes_kernel(codes, extremes):
    """extremes[0] = the least code, extremes[1] the largest; int32 (2,), given as the largest and the least int32.

    One thread all codes that are a grid's width apart, so that a warp reads neighbours.

    Grid: any size; REDUCING_THREADS are enough. Races: atomic minimum and maximum, one each a thread. Shared memory: 0
    bytes. Assumes unchecked: nothing.
    """
    first = cuda.grid(1)
    if first < codes.shape[0]:
        smallest = codes[first]
        largest = codes[first]
        for i in range(first, codes.shape[0], cuda.gridsize(1)):
            smallest = min(smallest, codes[i])
            largest = max(largest, codes[i])
        cuda.atomic.min(extremes, 0, smallest)
        cuda.atomic.max(extremes, 1, largest)


@kernel("int32[::1], uint64[::1]")
def begin_keys_kernel(numbers, keys):
    """keys[i] = numbers[i], int32 to uint64. One thread a key.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: numbers of 0 or more.
    """
    for i in range(cuda.grid(1), keys.shape[0], cuda.gridsize(1)):
        keys[i] = np.uint64(numbers[i])


@kernel("int32[::1], int64, int64, uint64[::1]")
def append_codes_kernel(codes, lowest, bits, keys):
    """keys[i] = keys[i] | code above the lowest, in so many bits, uint64. One thread a key.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: the bits hold it, and 64 hold the key.
    """
    for i in range(cuda.grid(1), keys.shape[0], cuda.gridsize(1)):
        keys[i] = (keys[i] << np.uint64(bits)) | np.uint64(np.int64(codes[i]) - lowest)


@kernel("int64, uint64[::1]")
def append_places_kernel(bits, keys):
    """keys[i] = keys[i] | i, in so many bits, uint64. One thread a key.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: the bits hold it, and 64 hold the key.
    """
    for i in range(cuda.grid(1), keys.shape[0], cuda.gridsize(1)):
        keys[i] = (keys[i] << np.uint64(bits)) | np.uint64(i)


@kernel("uint64[::1], int64, int32[::1], int32[::1]")
def split_keys_kernel(keys, bits, order, flags):
    """order[k] = the place that sorted key k ends with; flags[k] = 1 where what stands before it is new; int32.

    One thread a key.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: keys ascend; fewer than 2**31 of them.
    """
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for k in range(cuda.grid(1), keys.shape[0], cuda.gridsize(1)):
        order[k] = np.int32(keys[k] & mask)
        if k == 0 or (keys[k] >> np.uint64(bits)) != (keys[k - 1] >> np.uint64(bits)):
            flags[k] = 1
        else:
            flags[k] = 0


@kernel("int32[::1], int32[::1], int64, uint64[::1]")
def regroup_keys_kernel(numbers, order, bits, keys):
    """keys[k] = cluster of the member that stands k-th by code | k, uint64: the second of two passes. One thread a key.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: order holds places of numbers.
    """
    for k in range(cuda.grid(1), keys.shape[0], cuda.gridsize(1)):
        keys[k] = (np.uint64(numbers[order[k]]) << np.uint64(bits)) | np.uint64(k)


@kernel("uint64[::1], int64, int32[::1], int32[::1]")
def regroup_order_kernel(keys, bits, by_code, order):
    """order[k] = by_code at the place that key k of the second pass ends with, int32. One thread a key.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: keys end with places of by_code.
    """
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for k in range(cuda.grid(1), keys.shape[0], cuda.gridsize(1)):
        order[k] = by_code[np.int64(keys[k] & mask)]


@kernel("int32[::1], int32[::1], int32[::1], int32[::1]")
def flag_changes_kernel(numbers, codes, order, flags):
    """flags[k] = 1 where the k-th member has another cluster or code than the one before, int32. One thread a member.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: order holds places of the others.
    """
    for k in range(cuda.grid(1), order.shape[0], cuda.gridsize(1)):
        flags[k] = 1
        if k > 0:
            i, j = order[k], order[k - 1]
            if numbers[i] == numbers[j] and codes[i] == codes[j]:
                flags[k] = 0


@kernel("int32[::1], int64[::1], int64[::1]")
def start_runs_kernel(flags, run_numbers, starts):
    """starts[r] = first place of run r, starts[runs] = places in all, int64 (runs + 1,). One thread a place.

    flags int32 (n,); run_numbers int64 (n + 1,), flags before each place.

    Grid: any size. Races: one source, the flagged place of each run. Shared memory: 0 bytes. Assumes unchecked: place 0
    is flagged.
    """
    n = flags.shape[0]
    for k in range(cuda.grid(1), n, cuda.gridsize(1)):
        if flags[k]:
            starts[run_numbers[k]] = k
        if k == n - 1:
            starts[run_numbers[n]] = n


@kernel("int64[::1], int32[::1], int32[::1], int64, int64[::1], int64[::1], int64[::1]")
def measure_runs_kernel(starts, order, members, split, kept, left_sizes, right_sizes):
    """Left and right rows of each run, int64 (runs,), and whether it holds a pair of different rows. One thread a run.

    Members below `split` are left rows, the others right rows; without right rows (`split` = all) a run is a pair of
    one set with itself. A run that isn't kept has sizes 0.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: in a run the places in order ascend.
    """
    sided = split < order.shape[0]
    for r in range(cuda.grid(1), kept.shape[0], cuda.gridsize(1)):
        start, end = starts[r], starts[r + 1]
        if sided:
            middle = first_above(order, start, end, split - 1)
            lefts, rights = middle - start, end - middle
            good = lefts > 0 and rights > 0
            if lefts == 1 and rights == 1:
                good = members[order[start]] != members[order[middle]]
        else:
            lefts, rights = end - start, 0
            good = lefts > 1
        kept[r] = 1 if good else 0
        left_sizes[r] = lefts if good else 0
        right_sizes[r] = rights if good else 0


@kernel("int64[::1], int32[::1], int32[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int32[::1]")
def scatter_runs_kernel(starts, order, members, run_numbers, kept, left_before, right_before, left_rows, new_members):
    """Write the rows of the kept runs, all left rows first, then all right rows (from `left_rows` on).

    One thread a place of `order`; its run and its place in the run say where it goes.

    Grid: any size. Races: one source. Shared memory: 0 bytes. Assumes unchecked: the sums are those of the runs' sizes.
    """
    for k in range(cuda.grid(1), order.shape[0], cuda.gridsize(1)):
        r = run_numbers[k + 1] - 1
        if kept[r]:
            place = k - starts[r]
            lefts = left_before[r + 1] - left_before[r]
            if place < lefts:
                new_members[left_before[r] + place] = members[order[k]]
            else:
                new_members[left_rows + right_before[r] + place - lefts] = members[order[k]]


@kernel("int64[::1], int64[::1], int64[::1]")
def scatter_offsets_kernel(kept_before, before, offsets):
    """offsets[c] = rows before the c-th kept run, and at the end all rows; int64 (kept + 1,).

    One thread a run. kept_before, before int64 (runs + 1,): kept runs and their rows before each run.

    Grid: any size. Races: one source, the c-th run that is kept. Shared memory: 0 bytes. Assumes unchecked: the sums.
    """
    runs = kept_before.shape[0] - 1
    for r in range(cuda.grid(1), runs + 1, cuda.gridsize(1)):
        if r == runs or kept_before[r + 1] > kept_before[r]:
            offsets[kept_before[r]] = before[r]


def cluster_numbers(offsets: Any, members: int) -> Any:
    """Number of each member's cluster, int32, by offsets int64 on the device."""
    return output(number_clusters_kernel, members, np.int32, offsets)


def gathered(column: Any, rows: Any) -> Any:
    """Gather the codes of rows, int32."""
    return output(gather_codes_kernel, rows.shape[0], np.int32, column, rows)


def extremes_of(codes: Any) -> tuple[int, int]:
    """Lowest and highest code, of at least one."""
    extremes = to_device(np.array([HIGHEST_CODE, LOWEST_CODE], dtype=np.int32))
    launch(reduce_extremes_kernel, min(codes.shape[0], REDUCING_THREADS), codes, extremes)
    lowest, highest = extremes.copy_to_host()
    return int(lowest), int(highest)


def order_by(numbers: Any, clusters: int, codes: Any) -> Any:
    """Order members by (cluster, code, place): their places, int32.

    numbers, codes : int32 (n,), n above 0; cluster and code of each member.
    """
    n = codes.shape[0]
    lowest, highest = extremes_of(codes)
    code_bits, place_bits = bits_for(highest - lowest + 1), bits_for(n)
    if bits_for(clusters) + code_bits + place_bits > KEY_BITS:
        return two_pass_order(numbers, codes, lowest, code_bits, place_bits)
    keys = output(begin_keys_kernel, n, np.uint64, numbers)
    launch(append_codes_kernel, n, codes, lowest, code_bits, keys)
    return sorted_keys(keys, place_bits)[0]


def sorted_keys(keys: Any, place_bits: int) -> tuple[Any, Any]:
    """Sort keys (in place): places in order of their keys, and flags where a new key begins; int32."""
    n = keys.shape[0]
    order, flags = empty(n, np.int32), empty(n, np.int32)
    launch(append_places_kernel, n, place_bits, keys)
    sort(keys)
    launch(split_keys_kernel, n, keys, place_bits, order, flags)
    return order, flags


def two_pass_order(numbers: Any, codes: Any, lowest: int, code_bits: int, place_bits: int) -> Any:
    """Order places by (cluster, code, place) where one key can't hold these: a sort by code, then one by cluster."""
    n = codes.shape[0]
    keys = filled(n, 0, np.uint64)
    launch(append_codes_kernel, n, codes, lowest, code_bits, keys)
    by_code, _ = sorted_keys(keys, place_bits)
    launch(regroup_keys_kernel, n, numbers, by_code, place_bits, keys)
    sort(keys)
    return output(regroup_order_kernel, n, np.int32, keys, place_bits, by_code)


def runs_of(flags: Any) -> tuple[Any, Any, int]:
    """Run number of each place plus 1, int64 (n + 1,) from entry 1 on; starts, int64 (runs + 1,); number of runs."""
    run_numbers = running_sums(flags)
    runs = int(run_numbers[-1:].copy_to_host()[0])
    starts = empty(runs + 1, np.int64)
    launch(start_runs_kernel, flags.shape[0], flags, run_numbers, starts)
    return run_numbers, starts, runs
