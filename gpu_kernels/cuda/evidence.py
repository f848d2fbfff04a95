"""CUDA twin of the pairwise evidence kernel: distinct clues of the pairs of tuples inside groups of rows, with counts.

Pairs are never materialised. The triangle of pairs is cut into pairs of *bands* of rows, which GPUs take from one queue
(one where all fits one GPU), and those into *strips*, each some neighbouring rows (one thread each) against a run of
later rows (see `clue_counter`). Many small groups share a strip: a row only knows where its own group ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda.band_queue import count_on_gpus
from tuplewise.gpu_kernels.cuda.clue_counter import Sizes
from tuplewise.gpu_kernels.cuda.digits import DigitPlan, make_plan, to_clue_words
from tuplewise.gpu_kernels.cuda.strips import count_pairs, row_bands, row_ends
from tuplewise.gpu_kernels.words import Comparisons, clue_words, merge_clues


def run(
    codes: NDArray[np.int32],
    comparisons: Comparisons,
    group_offsets: NDArray[np.int64],
    control: Control,
    *,
    sizes: Sizes | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Distinct clues of all pairs inside each group of rows, t the earlier row, on the current CUDA device.

    Parameters and what is returned as for the CPU twin. Deadline, progress and stop are looked at between launches;
    further GPUs (`control.gpus`) help where there is work for them. `sizes` None: by the memory of each.

    Raises
    ------
    OutOfDeviceMemory
        No GPU has room for the smallest sizes.
    DeviceError
        More comparisons than the kernel has shared memory for, or a GPU failed.

    Notes
    -----
    Cost: pairs x comparisons integer operations, O(distinct clues) memory on the device, strips and distinct clues on
    the host. Several GPUs share the pairs, each with a table of its own; what they found is merged on the host, so that
    the answer doesn't depend on who counted what.

    Floor. An ordered comparison takes two subtractions and two funnel shifts a pair, an unordered one an exclusive or,
    a subtraction and a shift (nulls: one or two more each). An H100 SXM does 132 multiprocessors x 64 int32 operations
    a clock x 1.7 GHz = 1.4e13 a second: 15 ordered columns (60 operations) can't pass 2.4e11 unordered pairs a second,
    15 unordered ones (45) 3.2e11. On top come, per pair, one broadcast read of shared memory a comparison (one warp in
    a clock, so half of the floor's time, beside it), two operations to see whether the clue changed, and per change of
    clue a hash, a probe and an atomic in shared memory. Equal neighbours are merged in registers first, because shared
    atomics on one hot counter take turns. Where nearly every pair of a tile has another clue the block's table is
    passed by and the rate is that of atomics in the second-level cache, or in memory where the table is larger than it.

    Distance, recorded on an H200 (1.98 GHz: 2.8e11 pairs a second) at 1,000,000 rows and 15 ordered columns, in
    kernels: 2.4e11 pairs a second, 87 % of the floor, with up to 10,000 clues in long runs; 1.4e11, 52 %, with 59,049
    clues of independent columns; 1.8e10, 6 %, with 1,594,323, whose table takes 100 MB (twice the second-level cache).
    That was with 128 threads a block and a plain look before each compare-and-swap.

    The clue of FastADC (Xiao, Tan, Wang, Ma, "Fast Approximate Denial Constraint Discovery", PVLDB 16(2), 2022,
    section 4) is the model. Departures: every pair is compared, without position lists; only one direction of a pair
    is counted.
    """
    plan = make_plan(codes, comparisons)
    row_end = row_ends(group_offsets, codes.shape[1])
    total_pairs = count_pairs(group_offsets)
    return count_bands(plan, row_end, total_pairs, partial(row_bands, row_end), control, sizes)


def count_bands(
    plan: DigitPlan,
    row_end: NDArray[np.int32],
    total_pairs: int,
    bands: Callable[[int], Iterable[tuple[range, range]]],
    control: Control,
    sizes: Sizes | None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Distinct clues of the rows of pairs of bands, as `run` returns them.

    `row_end`: int32 (rows,), where the later rows end that a row is compared with; `bands`: from the rows that a band
    may have, at most, to the pairs of bands.
    """
    parts, complete = count_on_gpus(plan, row_end, total_pairs, bands, control, sizes) if total_pairs else ([], True)
    if not parts:
        return np.zeros((0, clue_words(len(plan.order))), dtype=np.uint64), np.zeros(0, dtype=np.int64), complete
    keys = np.concatenate([part[0] for part in parts])
    clues, counts = merge_clues(to_clue_words(keys, plan), np.concatenate([part[1] for part in parts]))
    return clues, counts, complete
