"""CUDA twin of the pairwise evidence kernel: distinct clues of the pairs of tuples inside groups of rows, with counts.

Pairs are never materialised. The triangle of pairs is cut into *strips*, each some neighbouring rows (one thread each)
against a run of later rows; a launch takes as many strips as fill about a quarter of a second; clues are counted in
shared memory and then in one table on the device (see `clue_table`), which is emptied into host memory, and made
larger, whenever it is half full. Many small groups share a strip: a row only knows where its own group ends.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import config, cuda
from numpy.typing import NDArray

from tuplewise.engine.errors import DeviceError, message
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda.clue_table import (
    PER_DIGIT,
    STATE_CELLS,
    STATE_FULL,
    STATE_LOGGED,
    STATE_LOST,
    STATE_NEXT,
    STATE_USED,
    Geometry,
    geometry_for,
    make_count_kernel,
)
from tuplewise.gpu_kernels.cuda.digits import DigitPlan, make_plan, to_clue_words
from tuplewise.gpu_kernels.cuda.strips import (
    count_pairs,
    cut_operands,
    list_strips,
    local_ends,
    row_bands,
    row_ends,
    split_band,
    strip_areas,
)
from tuplewise.gpu_kernels.device import QUIET_BLOCKS
from tuplewise.gpu_kernels.words import clue_words, merge_clues

LAUNCH_SECONDS = 0.25  # aim of one launch: how late a deadline or Ctrl-C may be noticed
FIRST_LAUNCH_PAIRS = 1 << 28
BLOCKS_PER_MULTIPROCESSOR = 8
SHARE_OF_FREE_MEMORY = 0.7
MOST_UNMERGED_CLUES = 1 << 24  # clues emptied out of full tables before equal ones are merged on the host
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


@dataclass(frozen=True)
class Sizes:
    """What a run takes on the device; smaller where memory is short, tiny in tests.

    Attributes
    ----------
    geometry : Geometry
        Compile-time sizes of the kernel.
    blocks : int
        Blocks of a launch.
    table_slots, most_table_slots : int
        Slots of the global table at the start and at most; powers of two.
    band_rows : int
        Rows whose operands are on the device at a time (two bands of so many where not all fit).
    """

    geometry: Geometry
    blocks: int
    table_slots: int
    most_table_slots: int
    band_rows: int

    def halved(self) -> Sizes | None:
        """Smaller sizes for after an allocation failed, or None where nothing is left to halve."""
        smallest = 2 * self.geometry.threads
        if self.most_table_slots <= 1 << 10 and self.band_rows <= smallest and self.blocks <= 1:
            return None
        return Sizes(
            self.geometry,
            max(1, self.blocks // 2),
            max(1 << 10, self.table_slots // 2),
            max(1 << 10, self.most_table_slots // 2),
            max(smallest, self.band_rows // 2),
        )


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
    """Distinct clues of all pairs inside each group of rows, t the earlier row, on the current CUDA device.

    Parameters
    ----------
    codes : int32 array (columns, rows), C order
        Order-preserving codes, -1 for null; rows of a group stand together, ordered so that like rows are neighbours.
    left, right, scope, ordered : arrays (comparisons,)
        As in `ClueLayout`.
    nullable : bool
        True: a comparison with -1 is UNKNOWN. False: -1 is an ordinary lowest value.
    group_offsets : int64 array (groups + 1,)
        Group k is rows group_offsets[k] to group_offsets[k + 1].
    counting : bool
        Not used: counting costs the kernel nothing that it could leave out.
    control : Control
        Deadline, progress and stop are looked at between launches.

    Returns
    -------
    clues : uint64 array (distinct, words)
        Sorted, word 0 most significant.
    counts : int64 array (distinct,)
        Unordered pairs of each clue.
    complete : bool
        False where the deadline or a stop came first: then some pairs were not counted.

    Raises
    ------
    DeviceError
        More comparisons than the kernel has shared memory for, or less device memory than the smallest sizes need.

    Notes
    -----
    Cost: pairs x comparisons integer operations, O(distinct clues) memory on the device, strips and distinct clues on
    the host.

    Floor. An ordered comparison takes two subtractions and two funnel shifts a pair, an unordered one an exclusive or,
    a subtraction and a shift (nulls: one or two more each). An H100 SXM does 132 multiprocessors x 64 int32 operations
    a clock x 1.7 GHz = 1.4e13 a second: 15 ordered columns (60 operations) can't pass 2.4e11 unordered pairs a second,
    15 unordered ones (45) 3.2e11. On top come, per pair, one broadcast read of shared memory a comparison (one warp in
    a clock, so half of the floor's time, beside it), two operations to see whether the clue changed, and per change of
    clue a hash, a probe and an atomic in shared memory. Equal neighbours are merged in registers first, because shared
    atomics on one hot counter take turns. Goal: 1e11 pairs a second at 15 columns. Where nearly every pair of a tile
    has another clue the block's table is passed by and the rate is that of atomics in the second-level cache.

    The clue of FastADC (Xiao, Tan, Wang, Ma, "Fast Approximate Denial Constraint Discovery", PVLDB 16(2), 2022,
    section 4) is the model. Departures: every pair is compared, without position lists; only one direction of a pair
    is counted.
    """
    return count_clues(codes, left, right, scope, ordered, nullable, group_offsets, control)


def count_clues(
    codes: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    scope: NDArray[np.int8],
    ordered: NDArray[np.bool_],
    nullable: bool,
    group_offsets: NDArray[np.int64],
    control: Control,
    sizes: Sizes | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """`run` with sizes of one's own."""
    plan = make_plan(codes, left, right, scope, ordered, nullable)
    row_end = row_ends(group_offsets, codes.shape[1])
    total_pairs = count_pairs(group_offsets)
    return count_bands(plan, row_end, total_pairs, partial(row_bands, row_end), control, sizes)


def count_bands(
    plan: DigitPlan,
    row_end: NDArray[np.int32],
    total_pairs: int,
    bands: Callable[[int], Iterable[tuple[range, range]]],
    control: Control,
    sizes: Sizes | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Distinct clues of the rows of pairs of bands, as `run` returns them.

    `row_end`: int32 (rows,), where the later rows end that a row is compared with; `bands`: from the rows that a band
    may have, at most, to the pairs of bands.
    """
    parts: list[tuple[NDArray[np.uint32], NDArray[np.int64]]] = []
    complete = True
    if total_pairs:
        if sizes is None:
            sizes = default_sizes(plan, total_pairs)
        counter = _Counter(plan, row_end, total_pairs, sizes, control)
        complete = counter.run(bands(sizes.band_rows))
        parts = counter.parts
    if not parts:
        return np.zeros((0, clue_words(len(plan.order))), dtype=np.uint64), np.zeros(0, dtype=np.int64), complete
    keys = np.concatenate([part[0] for part in parts])
    clues, counts = merge_clues(to_clue_words(keys, plan), np.concatenate([part[1] for part in parts]))
    return clues, counts, complete


def default_sizes(plan: DigitPlan, total_pairs: int) -> Sizes:
    """Sizes for the current device and its free memory; small ones in the simulator."""
    digits = plan.digits
    rows = plan.operands.shape[1]
    if config.ENABLE_CUDASIM:
        return Sizes(Geometry(8, 4, 2, 16, 2), 2, 1 << 8, 1 << 14, max(1, rows))
    geometry = geometry_for(digits)
    if geometry is None:
        most = max(d for d in range(1, 64) if geometry_for(d)) * PER_DIGIT
        hint = "Use device 'cpu', or fewer columns."
        raise DeviceError(message("comparisons in a clue", len(plan.order), f"up to {most} on CUDA", hint))
    device = cuda.get_current_device()
    blocks = BLOCKS_PER_MULTIPROCESSOR * int(device.MULTIPROCESSOR_COUNT)
    budget = int(SHARE_OF_FREE_MEMORY * cuda.current_context().get_memory_info()[0])
    slot_bytes = 4 * digits + 8
    log_bytes = blocks * geometry.log_entries_per_block() * (4 * digits + 4)
    table_budget = max(1 << 16, (budget - log_bytes) // 4)
    most_slots = 1 << min(27, max(10, (table_budget // slot_bytes).bit_length() - 1))
    operand_budget = max(1 << 20, (budget - log_bytes) // 2)
    band_rows = min(rows, operand_budget // (4 * (len(plan.operands) + 1)))
    if band_rows < rows:
        band_rows //= 2
    first_slots = min(most_slots, 1 << min(17, max(10, int(total_pairs).bit_length())))
    return Sizes(geometry, blocks, first_slots, most_slots, max(1, band_rows))


class _Counter:
    """Device arrays and progress of one run. Owns all memory that it allocates on the device."""

    def __init__(
        self, plan: DigitPlan, row_end: NDArray[np.int32], total_pairs: int, sizes: Sizes, control: Control
    ) -> None:
        self.plan = plan
        self.row_end = row_end
        self.sizes = sizes
        self.control = control
        self.kernel = _jit(plan.digits, sizes.geometry)
        self.parts: list[tuple[NDArray[np.uint32], NDArray[np.int64]]] = []
        self.band_parts: list[tuple[NDArray[np.uint32], NDArray[np.int64]]] = []
        self.launch_work = FIRST_LAUNCH_PAIRS
        self.done_work = 0
        self.band_work = 0
        self.total_work = total_pairs

    def run(self, of_bands: Iterable[tuple[range, range]]) -> bool:
        """Count all pairs of these bands; False where the deadline or a stop came first."""
        bands = list(of_bands)
        while bands:
            earlier, later = bands[0]
            self.band_parts, self.band_work = [], 0
            try:
                finished = self._count_band(earlier, later)
            except Exception as error:  # what the band has counted so far is dropped, and it is counted anew
                if not _is_out_of_memory(error):
                    raise
                smaller = self.sizes.halved()
                if smaller is None:
                    hint = "Free memory on the device, or use device 'cpu'."
                    text = message("device memory for the smallest table", str(error), None, hint)
                    raise DeviceError(text) from error
                bands = [piece for band in bands for piece in split_band(band, smaller.band_rows)]
                self.sizes = smaller
                continue
            self.parts.extend(self.band_parts)
            self.done_work += self.band_work
            if not finished:
                return False
            bands.pop(0)
        return True

    def _count_band(self, earlier: range, later: range) -> bool:
        """Count the pairs of one band of rows with a later one, or with itself, into `band_parts`."""
        plan, sizes = self.plan, self.sizes
        same = earlier == later
        operands = (
            plan.operands
            if same and len(earlier) == plan.operands.shape[1]
            else cut_operands(plan.operands, earlier, later)
        )
        row_end = local_ends(self.row_end, earlier, later)
        arrays = [_to_device(a) for a in (operands, plan.left, plan.right, plan.bounds, row_end)]
        table = _DeviceTable(plan.digits, sizes)
        target = max(1, self.launch_work)
        for strips in list_strips(row_end, len(earlier), 0 if same else len(earlier), sizes.geometry, sizes.blocks):
            waiting = strips
            while len(waiting):
                if self.control.over():
                    self._drain(table)
                    return False
                work = np.cumsum(strip_areas(waiting, sizes.geometry.threads))
                taken = max(1, int(np.searchsorted(work, target, side="right")))
                begun = time.monotonic()
                left_over = table.count(self.kernel, arrays, waiting[:taken])
                seconds = time.monotonic() - begun
                if table.full:
                    self._drain(table)
                if len(left_over) == 0 and taken < len(work):
                    target = int(min(1 << 40, target * min(4.0, max(0.25, LAUNCH_SECONDS / max(seconds, 1e-4)))))
                waiting = np.concatenate([left_over, waiting[taken:]])
                self._tell(int(work[taken - 1]) - int(strip_areas(left_over, sizes.geometry.threads).sum()))
        self.launch_work = target
        self._drain(table)
        return True

    def _drain(self, table: _DeviceTable) -> None:
        self.band_parts.extend(table.drain())
        if sum(len(part[1]) for part in self.band_parts[1:]) > MOST_UNMERGED_CLUES:
            self.band_parts = [_merge_parts(self.band_parts)]

    def _tell(self, work: int) -> None:
        self.band_work += work
        if self.control.progress is not None:
            self.control.progress(min(1.0, (self.done_work + self.band_work) / self.total_work))


class _DeviceTable:
    """The global hash table and the log of what found no room in it."""

    def __init__(self, digits: int, sizes: Sizes) -> None:
        self.digits = digits
        self.sizes = sizes
        self.slots = sizes.table_slots
        entries = sizes.blocks * sizes.geometry.log_entries_per_block()
        self.log_keys = _empty((entries, digits), np.uint32)
        self.log_counts = _empty((entries,), np.uint32)
        self.state = _to_device(np.zeros(STATE_CELLS, dtype=np.int32))
        self.host_state = np.zeros(STATE_CELLS, dtype=np.int32)
        self._allocate(self.slots)

    @property
    def full(self) -> bool:
        return bool(self.host_state[STATE_FULL])

    def _allocate(self, slots: int) -> None:
        keys = _to_device(np.zeros((slots, self.digits), dtype=np.uint32))
        counts = _to_device(np.zeros(slots, dtype=np.uint64))
        self.keys, self.counts, self.slots = keys, counts, slots

    def count(self, kernel: Any, arrays: list[Any], strips: NDArray[np.int32]) -> NDArray[np.int32]:
        """Run the kernel over some strips. Returns what is left of them."""
        geometry = self.sizes.geometry
        items = _to_device(np.ascontiguousarray(strips))
        blocks = min(self.sizes.blocks, max(len(strips), QUIET_BLOCKS))
        operands, left, right, bounds, row_end = arrays
        # a small table makes a small grid, as does a small card: nothing that a user could change
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Grid size")
            launch = kernel[blocks, geometry.threads]
        self.host_state[STATE_NEXT] = 0
        self.state.copy_to_device(self.host_state)
        launch(
            operands, left, right, bounds, row_end, items,
            self.keys, self.counts, self.log_keys, self.log_counts, self.state,
        )  # fmt: skip
        self.host_state = self.state.copy_to_host()
        if self.host_state[STATE_LOST]:
            logged = int(self.host_state[STATE_LOGGED])
            raise DeviceError(message("clues that found no room in the device's log", logged))
        strips = items.copy_to_host()
        return strips[strips[:, 1] < strips[:, 2]]

    def drain(self) -> list[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Move all that was counted to the host. The table is empty afterwards, and larger if it was full."""
        parts = []
        if self.host_state[STATE_USED]:
            counts = self.counts.copy_to_host()
            used = np.flatnonzero(counts)
            parts.append((self.keys.copy_to_host()[used], counts[used].astype(np.int64)))
        logged = int(self.host_state[STATE_LOGGED])
        if logged:
            keys = self.log_keys[:logged].copy_to_host()
            parts.append(_merge_parts([(keys, self.log_counts[:logged].copy_to_host().astype(np.int64))]))
        slots = min(8 * self.slots, self.sizes.most_table_slots) if self.full else self.slots
        try:
            self._allocate(max(slots, self.slots))
        except Exception as error:  # the same size again: what is there is emptied in place
            if not _is_out_of_memory(error):
                raise
            self.keys.copy_to_device(np.zeros((self.slots, self.digits), dtype=np.uint32))
            self.counts.copy_to_device(np.zeros(self.slots, dtype=np.uint64))
        self.host_state = np.zeros(STATE_CELLS, dtype=np.int32)
        self.state.copy_to_device(self.host_state)
        return parts


def _merge_parts(
    parts: list[tuple[NDArray[np.uint32], NDArray[np.int64]]],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Distinct keys with summed counts, sorted by digits."""
    keys = np.concatenate([part[0] for part in parts])
    counts = np.concatenate([part[1] for part in parts])
    merged, totals = merge_clues(keys.astype(np.uint64), counts)
    return merged.astype(np.uint32), totals


def _jit(digits: int, geometry: Geometry) -> Any:
    """The compiled kernel of these sizes; one dispatcher a process and device."""
    key = (digits, geometry)
    if key not in _dispatchers:
        _dispatchers[key] = cuda.jit(make_count_kernel(digits, geometry))
    return _dispatchers[key]


_dispatchers: dict[tuple[int, Geometry], Any] = {}


def _to_device(array: NDArray[Any]) -> Any:
    """A copy in device memory."""
    return cuda.to_device(array)


def _empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """Device memory with nothing in particular in it."""
    return cuda.device_array(shape, dtype=dtype)


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation on the device failed for want of memory."""
    if isinstance(error, MemoryError) or getattr(error, "code", None) == OUT_OF_MEMORY:
        return True
    return "OUT_OF_MEMORY" in str(error)
