"""Counting the clues of bands of pairs on one device: memory, the table, and the launches.

A launch takes as many strips as need about a quarter of a second. Clues are counted in shared memory and then in one
table on the device (see `clue_table`). Whenever the table is half full it is emptied into host memory and enlarged.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import config, cuda
from numpy.typing import NDArray

from tuplewise.engine.errors import DeviceError, message
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
from tuplewise.gpu_kernels.cuda.digits import DigitPlan
from tuplewise.gpu_kernels.cuda.primitives import empty, room_bytes, to_device, zeros
from tuplewise.gpu_kernels.cuda.strips import cut_operands, list_strips, local_ends, strip_areas
from tuplewise.gpu_kernels.device import QUIET_BLOCKS
from tuplewise.gpu_kernels.faults import is_out_of_memory
from tuplewise.gpu_kernels.words import merge_clues

LAUNCH_SECONDS = 0.25  # aim of one launch: the longest delay before a deadline or Ctrl-C is noticed
FIRST_LAUNCH_PAIRS = 1 << 28
BLOCKS_PER_MULTIPROCESSOR = 8
MOST_UNMERGED_CLUES = 1 << 24  # clues from full tables before equal ones are merged on the host

Part = tuple[NDArray[np.uint32], NDArray[np.int64]]  # clues as digits (any, digits), and the number of pairs of each

_simulated_turn = threading.Lock()  # the simulator runs one kernel at a time
_compiling = threading.Lock()


@dataclass(frozen=True)
class Sizes:
    """Sizes of a run on the device; smaller where memory is short, tiny in tests.

    Attributes
    ----------
    geometry : compile-time sizes of the kernel
    blocks : blocks of a launch
    table_slots, most_table_slots : slots of the global table at the start and at most; powers of two
    band_rows : rows whose operands are on the device at a time (two bands of so many where not all fit)
    """

    geometry: Geometry
    blocks: int
    table_slots: int
    most_table_slots: int
    band_rows: int

    def halved(self) -> Sizes | None:
        """Smaller sizes to try after a failed allocation, or None where nothing is left to halve."""
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
    budget = room_bytes()
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


class Counter:
    """Counter of the clues of bands of pairs on the current device, one band after the other.

    Owns all memory that it allocates there. Calls `over` before each launch, and `tell` after it with the approximate
    number of pairs compared.
    """

    def __init__(
        self,
        plan: DigitPlan,
        row_end: NDArray[np.int32],
        sizes: Sizes,
        over: Callable[[], bool],
        tell: Callable[[int], None],
    ) -> None:
        self.plan, self.row_end, self.sizes, self.over, self.tell = plan, row_end, sizes, over, tell
        self.kernel = compiled(plan.digits, sizes.geometry)
        self.parts: list[Part] = []
        self.launch_work = FIRST_LAUNCH_PAIRS
        self._told = 0

    def count(self, earlier: range, later: range) -> bool:
        """Count the pairs of one band of rows with a later one, or with itself, into `parts`.

        Returns False where `over` came first. Where it raises, nothing of the band is counted.
        """
        parts: list[Part] = []
        self._told = 0
        try:
            finished = self._count(earlier, later, parts)
        except BaseException:
            self.tell(-self._told)
            raise
        self.parts = _merged_if_many([*self.parts, *parts])
        return finished

    def _count(self, earlier: range, later: range, parts: list[Part]) -> bool:
        """Do the work of `count`; results go to `parts`."""
        plan, sizes = self.plan, self.sizes
        same = earlier == later
        whole = same and len(earlier) == plan.operands.shape[1]
        operands = plan.operands if whole else cut_operands(plan.operands, earlier, later)
        row_end = local_ends(self.row_end, earlier, later)
        arrays = [to_device(a) for a in (operands, plan.left, plan.right, plan.bounds, row_end)]
        table = DeviceTable(plan.digits, sizes)
        target = max(1, self.launch_work)
        for strips in list_strips(row_end, len(earlier), 0 if same else len(earlier), sizes.geometry, sizes.blocks):
            waiting = strips
            while len(waiting):
                if self.over():
                    parts.extend(table.drain())
                    return False
                work = np.cumsum(strip_areas(waiting, sizes.geometry.threads))
                taken = max(1, int(np.searchsorted(work, target, side="right")))
                begun = time.monotonic()
                left_over = table.count(self.kernel, arrays, waiting[:taken])
                seconds = time.monotonic() - begun
                if table.full:
                    parts[:] = _merged_if_many([*parts, *table.drain()])
                if len(left_over) == 0 and taken < len(work):
                    target = int(min(1 << 40, target * min(4.0, max(0.25, LAUNCH_SECONDS / max(seconds, 1e-4)))))
                waiting = np.concatenate([left_over, waiting[taken:]])
                self._tell(int(work[taken - 1]) - int(strip_areas(left_over, sizes.geometry.threads).sum()))
        self.launch_work = target
        parts.extend(table.drain())
        return True

    def _tell(self, work: int) -> None:
        self._told += work
        self.tell(work)


class DeviceTable:
    """Global hash table, and the log of clues that found no room in it."""

    def __init__(self, digits: int, sizes: Sizes) -> None:
        self.digits = digits
        self.sizes = sizes
        self.slots = sizes.table_slots
        entries = sizes.blocks * sizes.geometry.log_entries_per_block()
        self.log_keys = empty((entries, digits), np.uint32)
        self.log_counts = empty((entries,), np.uint32)
        self.state = to_device(np.zeros(STATE_CELLS, dtype=np.int32))
        self.host_state = np.zeros(STATE_CELLS, dtype=np.int32)
        self._allocate(self.slots)

    @property
    def full(self) -> bool:
        return bool(self.host_state[STATE_FULL])

    def _allocate(self, slots: int) -> None:
        keys, counts = zeros((slots, self.digits), np.uint32), zeros(slots, np.uint64)
        self.keys, self.counts, self.slots = keys, counts, slots

    def count(self, kernel: Any, arrays: list[Any], strips: NDArray[np.int32]) -> NDArray[np.int32]:
        """Run the kernel over some strips. Returns the parts of strips left to count."""
        geometry = self.sizes.geometry
        items = to_device(np.ascontiguousarray(strips))
        blocks = min(self.sizes.blocks, max(len(strips), QUIET_BLOCKS))
        operands, left, right, bounds, row_end = arrays
        self.host_state[STATE_NEXT] = 0
        self.state.copy_to_device(self.host_state)
        with _simulated_turn if config.ENABLE_CUDASIM else nullcontext():
            _configured(kernel, blocks, geometry.threads)(
                operands, left, right, bounds, row_end, items,
                self.keys, self.counts, self.log_keys, self.log_counts, self.state,
            )  # fmt: skip
        self.host_state = self.state.copy_to_host()
        if self.host_state[STATE_LOST]:
            logged = int(self.host_state[STATE_LOGGED])
            raise DeviceError(message("clues that found no room in the device's log", logged))
        strips = items.copy_to_host()
        return strips[strips[:, 1] < strips[:, 2]]

    def drain(self) -> list[Part]:
        """Move all counts to the host. The table is empty afterwards, and larger if it was full."""
        parts = []
        if self.host_state[STATE_USED]:
            counts = self.counts.copy_to_host()
            used = np.flatnonzero(counts)
            parts.append((self.keys.copy_to_host()[used], counts[used].astype(np.int64)))
        logged = int(self.host_state[STATE_LOGGED])
        if logged:
            keys = self.log_keys[:logged].copy_to_host()
            parts.append(merged([(keys, self.log_counts[:logged].copy_to_host().astype(np.int64))]))
        slots = min(8 * self.slots, self.sizes.most_table_slots) if self.full else self.slots
        try:
            self._allocate(max(slots, self.slots))
        except Exception as error:  # no room for a larger table: empty this one in place
            if not is_out_of_memory(error):
                raise
            self.keys.copy_to_device(np.zeros((self.slots, self.digits), dtype=np.uint32))
            self.counts.copy_to_device(np.zeros(self.slots, dtype=np.uint64))
        self.host_state = np.zeros(STATE_CELLS, dtype=np.int32)
        self.state.copy_to_device(self.host_state)
        return parts


def merged(parts: list[Part]) -> Part:
    """Merge equal keys and sum their counts; sorted by digits."""
    keys = np.concatenate([part[0] for part in parts])
    counts = np.concatenate([part[1] for part in parts])
    clues, totals = merge_clues(keys.astype(np.uint64), counts)
    return clues.astype(np.uint32), totals


def _merged_if_many(parts: list[Part]) -> list[Part]:
    """Merge parts into one where those after the first have many clues."""
    return [merged(parts)] if sum(len(part[1]) for part in parts[1:]) > MOST_UNMERGED_CLUES else parts


def compiled(digits: int, geometry: Geometry) -> Any:
    """Kernel of these sizes; one dispatcher a process, with a program for each device."""
    key = (digits, geometry)
    with _compiling:
        if key not in _dispatchers:
            _dispatchers[key] = cuda.jit(make_count_kernel(digits, geometry))
        return _dispatchers[key]


_dispatchers: dict[tuple[int, Geometry], Any] = {}


def _configured(kernel: Any, blocks: int, threads: int) -> Any:
    """Kernel with its grid. A small table or a small card makes a small grid, which the user can't change, so Numba's
    warning is suppressed; a lock is needed, since only one thread at a time may change warnings."""
    with _compiling, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Grid size")
        return kernel[blocks, threads]
