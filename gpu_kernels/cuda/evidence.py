"""CUDA twin of the pairwise evidence kernel: distinct clues of the pairs of tuples inside groups of rows, with counts.

Pairs are never materialised. The triangle of pairs is cut into pairs of *bands* of rows, which GPUs take from a queue
(a single pair where everything fits one GPU). These are cut into *strips*: some neighbouring rows, one thread each,
against a run of later rows (see `clue_counter`). Many small groups share a strip, since a row only needs the end of its
own group.
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

    Parameters and results are those of the CPU twin. Deadline, progress and stop are handled between launches. Further
    GPUs (`control.gpus`) help where there is work for them. `sizes` None: chosen by each GPU's memory.

    Raises
    ------
    OutOfDeviceMemory
        No GPU has room for the smallest sizes.
    DeviceError
        There are more comparisons than the kernel has shared memory for, or a GPU failed.

    Notes
    -----
    Cost: pairs x comparisons integer operations. Memory: O(distinct clues) on the device; strips and distinct clues on
    the host. Several GPUs share the pairs, each with a table of its own. The host merges the tables, so the answer
    doesn't depend on which GPU counted what.

    Floor: an ordered comparison takes two subtractions and two funnel shifts a pair, an unordered one an exclusive or,
    a subtraction and a shift (with nulls one or two more each). An H100 SXM does 132 multiprocessors x 64 int32
    operations a clock x 1.7 GHz = 1.4e13 a second. So 15 ordered columns (60 operations) can't pass 2.4e11 unordered
    pairs a second, and 15 unordered ones (45) 3.2e11. Each pair also takes, for each comparison, one broadcast read of
    shared memory (one warp a clock, half of the floor's time, in parallel with it), and two operations to detect a
    change of clue. Each change of clue takes a hash, a probe and an atomic in shared memory. Equal neighbours are
    merged in registers first, because shared atomics on one hot counter are serialised. Where nearly every pair of a
    tile has another clue, the block's table is bypassed, and the rate is that of atomics in the second-level cache, or
    in memory where the table exceeds the cache.

    Recorded on an H200 (floor at 1.98 GHz: 2.8e11 pairs a second), kernels alone, 1,000,000 rows, 15 ordered columns:
    2.4e11 pairs a second, 87 % of the floor, with up to 10,000 clues in long runs; 1.4e11, 52 %, with 59,049 clues of
    independent columns; 1.8e10, 6 %, with 1,594,323 clues, whose table takes 100 MB (twice the second-level cache).
    Blocks had 128 threads, and each compare-and-swap came after a plain read.

    Source: the clue of FastADC (Xiao, Tan, Wang, Ma, "Fast Approximate Denial Constraint Discovery", PVLDB 16(2), 2022,
    section 4). Departures: every pair is compared, without position lists; only one direction of a pair is counted.
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
    """Count the distinct clues of pairs of bands, as `run` returns them.

    `row_end`: int32 (rows,), end of the later rows that a row is compared with. `bands`: function from the largest
    number of rows of a band to the pairs of bands.
    """
    parts, complete = count_on_gpus(plan, row_end, total_pairs, bands, control, sizes) if total_pairs else ([], True)
    if not parts:
        return np.zeros((0, clue_words(len(plan.order))), dtype=np.uint64), np.zeros(0, dtype=np.int64), complete
    keys = np.concatenate([part[0] for part in parts])
    clues, counts = merge_clues(to_clue_words(keys, plan), np.concatenate([part[1] for part in parts]))
    return clues, counts, complete
