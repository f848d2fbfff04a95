"""CUDA kernel that counts clues, and its two-level hash table.

Inside the kernel a clue is a row of 32-bit *digits*, each of 15 comparisons, made of sign bits only (a subtraction and
a funnel shift each). A digit begins with a one bit, so that 0 can mark an empty cell of a table.

Slots are claimed without locks. A thread claims the digits of a slot in order, each by compare-and-swap from 0. It goes
on to the next digit if the cell held 0 (it is now the thread's) or already held its digit; otherwise it goes to the
next slot. Cells never change once set (until the table is emptied between barriers). Therefore: - The thread that sets
digit i has found digits 0 to i - 1 equal to its own, so a complete slot is the clue of the
  thread that set its last digit.
- A thread that has set a digit either sets the next one or finds it set, so no slot stays half written, and no thread
  waits.
- Two threads with one clue meet the same unequal cells, so a clue takes at most one slot.
A plain read before the compare-and-swap sees 0 or the final value; a stale 0 only costs the swap.

Numba widens integers to 64 bits in mixed arithmetic; casts keep the inner loop at 32.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import cuda

# the simulator's jit, and that of older releases, lacks the option
INLINED: dict[str, Any] = {"forceinline": True} if "forceinline" in inspect.signature(cuda.jit).parameters else {}

PER_DIGIT = 15  # comparisons in a digit: two bits each at most, after the leading one
SHARED_LIMIT_BYTES = 48 * 1024  # shared memory that a block has on every card by default

ORDERED, ORDERED_NULLS, EQUALITY, EQUALITY_NULLS = range(4)  # kinds of comparison, in their order within a digit
SEGMENTS = 5  # bounds of the four kinds in one digit

STATE_FULL, STATE_USED, STATE_LOGGED, STATE_LOST, STATE_NEXT = range(5)  # cells of `state`
STATE_CELLS = 5

META_CELLS = 3
LOCAL_PROBES = 16  # slots tried in shared memory before a clue goes to the global table
GLOBAL_PROBES = 64  # slots tried in the global table before a clue goes to the log

SIGNATURE = (
    "int32[:,::1], int32[::1], int32[::1], int32[:,::1], int32[::1], int32[:,::1], "
    "uint32[:,::1], uint64[::1], uint32[:,::1], uint32[::1], int32[::1]"
)


@dataclass(frozen=True)
class Geometry:
    """Sizes for which a kernel is compiled.

    Attributes
    ----------
    threads : rows of the earlier side of a tile pair, one thread each
    tile_rows : rows of the later side that are in shared memory at a time
    batch : later rows that a thread compares at once, in registers; divides `tile_rows`, 16 at most
    slots : slots of a block's own hash table; a power of two
    copies : counters a slot, so that neighbouring threads with one clue don't wait for each other; a power of two
    """

    threads: int = 128
    tile_rows: int = 64
    batch: int = 8
    slots: int = 1024
    copies: int = 2

    def shared_bytes(self, digits: int) -> int:
        """Bytes of shared memory of a block."""
        codes = PER_DIGIT * digits * (self.threads + self.tile_rows)
        return 4 * (codes + SEGMENTS * digits + self.slots * (digits + self.copies) + META_CELLS)

    def log_entries_per_block(self) -> int:
        """Number of clues, at most, that a block may add once the table is full: one pair of tiles, two flushes, the
        last runs."""
        return self.threads * (self.tile_rows + 2) + 2 * self.slots


# On an H200 the first is 7 % faster than the second, since twice the rows share a tile and a table. The others are for
# wide clues.
GEOMETRIES = (
    Geometry(threads=256),
    Geometry(),
    Geometry(tile_rows=32, batch=4, copies=1),
    Geometry(threads=64, tile_rows=32, batch=4, slots=512, copies=1),
    Geometry(threads=32, tile_rows=32, batch=2, slots=256, copies=1),
    Geometry(threads=32, tile_rows=16, batch=2, slots=128, copies=1),
    Geometry(threads=32, tile_rows=8, batch=2, slots=64, copies=1),
)


def geometry_for(digits: int) -> Geometry | None:
    """Largest geometry that fits a block's shared memory for so many digits, or None beyond about 250."""
    return next((g for g in GEOMETRIES if g.shared_bytes(digits) <= SHARED_LIMIT_BYTES), None)


def _make_probe(digits: int) -> Any:
    """Make the device function that finds or claims the slot of a clue."""
    last = digits - 1

    @cuda.jit(device=True, **INLINED)
    def locate(keys, mask, key, probes):  # type: ignore[no-untyped-def]
        """Find the slot of `key`, and whether this call claimed it; -1 where none of `probes` slots, fewer than all, is
        free."""
        mixed = np.uint64(0)
        for d in range(digits):
            mixed = ((mixed ^ key[d]) * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
            mixed = mixed ^ (mixed >> np.uint64(15))
        slot = np.uint32(mixed) & np.uint32(mask)
        stop = np.uint32(np.uint64(slot) + np.uint64(probes)) & np.uint32(mask)
        while slot != stop:
            same = True
            fresh = False
            for d in range(digits):
                if same:
                    digit = cuda.atomic.cas(keys, (slot, d), np.uint32(0), key[d])
                    if digit == np.uint32(0):
                        fresh = d == last
                    else:
                        same = digit == key[d]
            if same:
                return np.int64(slot), fresh
            slot = np.uint32(np.uint64(slot) + np.uint64(1)) & np.uint32(mask)
        return np.int64(-1), False

    return locate


def _make_adders(digits: int, geometry: Geometry) -> tuple[Any, Any]:
    """Make the device functions that add a run of equal clues, and that empty a block's table into the global one."""
    threads, slots, copies = geometry.threads, geometry.slots, geometry.copies
    local_mask, copy_mask = slots - 1, copies - 1
    local_probes = min(LOCAL_PROBES, slots - 1)
    locate = _make_probe(digits)

    @cuda.jit(device=True, **INLINED)
    def add_global(key, count, table_keys, table_counts, log_keys, log_counts, state):  # type: ignore[no-untyped-def]
        """Add to the global table, or to the log where no nearby slot is free."""
        mask = table_counts.shape[0] - 1
        slot, fresh = locate(table_keys, mask, key, min(GLOBAL_PROBES, mask))
        if slot >= 0:
            cuda.atomic.add(table_counts, slot, np.uint64(count))
            if fresh and 2 * (cuda.atomic.add(state, STATE_USED, 1) + 1) >= table_counts.shape[0]:
                cuda.atomic.max(state, STATE_FULL, 1)
        else:
            cuda.atomic.max(state, STATE_FULL, 1)
            entry = cuda.atomic.add(state, STATE_LOGGED, 1)
            if entry < log_counts.shape[0]:
                for d in range(digits):
                    log_keys[entry, d] = key[d]
                log_counts[entry] = count
            else:
                cuda.atomic.max(state, STATE_LOST, 1)

    @cuda.jit(device=True, **INLINED)
    def add_local(  # type: ignore[no-untyped-def]
        key, count, thread, keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state
    ):
        """Add to the block's own table, or to the global one where no nearby slot is free."""
        slot, fresh = locate(keys, local_mask, key, local_probes)
        if slot >= 0:
            cuda.atomic.add(counts, slot * copies + (thread & copy_mask), count)
            if fresh:
                cuda.atomic.add(meta, 0, 1)
        else:
            add_global(key, count, table_keys, table_counts, log_keys, log_counts, state)

    @cuda.jit(device=True)
    def flush(  # type: ignore[no-untyped-def]
        thread, keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state
    ):
        """Empty the block's own table into the global one; there are barriers before and after."""
        key = cuda.local.array(digits, np.uint32)
        for slot in range(thread, slots, threads):
            if keys[slot, 0] != np.uint32(0):
                total = np.uint32(0)
                for c in range(copies):
                    total = np.uint32(total + counts[slot * copies + c])
                    counts[slot * copies + c] = np.uint32(0)
                for d in range(digits):
                    key[d] = keys[slot, d]
                    keys[slot, d] = np.uint32(0)
                add_global(key, total, table_keys, table_counts, log_keys, log_counts, state)
        if thread == 0:
            meta[0] = 0

    return add_local, flush


def _make_batch_adder(digits: int, batch: int, add_local: Any) -> Any:
    """Make the device function that merges equal neighbours of a batch and adds the runs that have ended."""

    @cuda.jit(device=True, **INLINED)
    def add_batch(  # type: ignore[no-untyped-def]
        current, run, found, first, last, thread,
        keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state,
    ):  # fmt: skip
        """Continue a run of `run` pairs of clue `current` through the pairs `first` to `last` of a batch; returns the
        new run.

        A bit mask first collects the pairs whose clue differs from that of the pair before (no branches, constant
        indices). A loop over its bits follows, so the threads of a warp meet at their first changes, second changes and
        so on.
        """
        low = max(first, 0)
        high = min(last, batch)
        changes = np.uint32(0)
        for j in range(batch):
            differs = False
            for d in range(digits):
                before = found[(j - 1) * digits + d] if j > 0 else current[d]
                differs = differs or found[j * digits + d] != before
            if differs:
                changes = np.uint32(changes | np.uint32(1 << j))
        if low > 0:  # the pair before isn't one of this row's, so its bit is ignored
            changes = np.uint32(changes | np.uint32(1 << low))
        changes = np.uint32(changes & np.uint32((1 << high) - (1 << low)))
        while changes != np.uint32(0):
            j = np.int32(cuda.ffs(changes)) - np.int32(1)  # type: ignore[assignment]
            changes = np.uint32(changes & np.uint32(changes - np.uint32(1)))
            run = np.uint32(run + np.uint32(j - low))
            low = j
            if run > np.uint32(0):
                add_local(
                    current, run, thread, keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state
                )
                run = np.uint32(0)
            for d in range(digits):
                current[d] = found[j * digits + d]
        return np.uint32(run + np.uint32(high - low))

    return add_batch


def _make_comparer(digits: int, geometry: Geometry) -> Any:
    """Make the device function that writes the digits of one batch of pairs."""
    threads, tile_rows, batch = geometry.threads, geometry.tile_rows, geometry.batch

    @cuda.jit(device=True, **INLINED)
    def shift_in(digit, number):  # type: ignore[no-untyped-def]
        """Append the sign bit of an int32 to a digit: one funnel shift."""
        return np.uint32(np.uint32(digit << np.uint32(1)) | np.uint32(np.uint32(number) >> np.uint32(31)))

    @cuda.jit(device=True, **INLINED)
    def compare(t_codes, u_codes, kinds, thread, column, digit, found):  # type: ignore[no-untyped-def]
        """Write the digits of the pairs of row `thread` with rows `column` to `column + batch` of the tile to `found`.

        Codes are -1 or more. a | b is negative where a or b is null, which decides the outcome. Otherwise the sign of a
        - b, which can't overflow, tells a < b, and (a ^ b) - 1 is negative where a == b.
        """
        for d in range(digits):
            for j in range(batch):
                digit[j] = np.uint32(1)
            for g in range(kinds[SEGMENTS * d], kinds[SEGMENTS * d + 1]):
                a = t_codes[np.uint64(g) * np.uint64(threads) + np.uint64(thread)]
                base = np.uint64(g) * np.uint64(tile_rows) + np.uint64(column)
                for j in range(batch):
                    b = u_codes[base + np.uint64(j)]
                    digit[j] = shift_in(shift_in(digit[j], np.int32(a - b)), np.int32(b - a))
            for g in range(kinds[SEGMENTS * d + 1], kinds[SEGMENTS * d + 2]):
                a = t_codes[np.uint64(g) * np.uint64(threads) + np.uint64(thread)]
                base = np.uint64(g) * np.uint64(tile_rows) + np.uint64(column)
                for j in range(batch):
                    b = u_codes[base + np.uint64(j)]
                    digit[j] = shift_in(shift_in(digit[j], np.int32(a - b) | a | b), np.int32(b - a) | a | b)
            for g in range(kinds[SEGMENTS * d + 2], kinds[SEGMENTS * d + 3]):
                a = t_codes[np.uint64(g) * np.uint64(threads) + np.uint64(thread)]
                base = np.uint64(g) * np.uint64(tile_rows) + np.uint64(column)
                for j in range(batch):
                    b = u_codes[base + np.uint64(j)]
                    digit[j] = shift_in(digit[j], np.int32((a ^ b) - 1))
            for g in range(kinds[SEGMENTS * d + 3], kinds[SEGMENTS * d + 4]):
                a = t_codes[np.uint64(g) * np.uint64(threads) + np.uint64(thread)]
                base = np.uint64(g) * np.uint64(tile_rows) + np.uint64(column)
                for j in range(batch):
                    b = u_codes[base + np.uint64(j)]
                    digit[j] = shift_in(shift_in(digit[j], a | b), np.int32((a ^ b) - 1))
            for j in range(batch):
                found[j * digits + d] = digit[j]

    return compare


@cache
def make_count_kernel(digits: int, geometry: Geometry) -> Any:
    """Make the kernel for clues of so many digits, as a plain function for `cuda.jit` or `compile_ptx`. Cached.

    `count_clues_kernel` adds the clues of all pairs of some strips of tile pairs to a table.

    One thread has one of the `threads` earlier rows of a strip. A block takes the next strip, from the counter
    STATE_NEXT, until none is left: the rows from `items[i, 0]` on against the later rows `items[i, 1]` to
    `items[i, 2]`, of which `tile_rows` at a time are in shared memory. Row t is compared with the rows u with
    t < u < row_end[t]. A thread compares `batch` rows at once in registers, merges equal neighbours, and adds each run
    to the block's own hash table, which goes to the global table when it is three quarters full and at the strip's end.

    Writes: `table_keys`, uint32 (slots, digits), claimed as the module says, and `table_counts`, uint64 (slots,);
    `log_keys`, `log_counts`; `state`; `items[i, 1]`, the first later row not yet counted.

    Nothing is lost or counted twice when the table fills up: STATE_FULL is set once half the slots are taken or a clue
    finds no slot. A block looks at it before each tile; if set, it empties its own table, writes down how far it came
    and stops, so that the strip goes on from there in the next launch. What a block still has to add by then, at most
    `Geometry.log_entries_per_block()`, goes to the log where the table has no room. The caller makes the log that long
    for every block of the grid; STATE_LOST would say that it didn't.

    Grid: any number of blocks of `Geometry.threads` threads; as many as fit leave none waiting. Races: atomics on all
    that a block shares with others and on its own table while clues are added; a cell of the log has one writer, whose
    index an atomic addition gave; thread 0 of the block that has a strip writes to it; the rest stands between
    barriers: one after a strip is taken; one before a tile is loaded (everyone is done with the last; nobody adds until
    the next one, so all threads read the same fill of the table), one after; one before and after the block's table is
    emptied. All conditions around barriers are the same in the whole block. Shared memory: `Geometry.shared_bytes` of
    the digits, 31,520 bytes for up to 15 comparisons; with their 64 registers a thread 1,024 threads are on a
    multiprocessor (compute capability 9.0; 512 on 8.0), with wider clues fewer. Assumes unchecked: codes of -1 or more;
    15 * digits comparisons at most; fewer than 2**32 pairs a strip; fewer than 2**31 rows; slots powers of two.
    """
    threads, tile_rows, batch = geometry.threads, geometry.tile_rows, geometry.batch
    slots, copies = geometry.slots, geometry.copies
    t_cells = PER_DIGIT * digits * threads
    u_cells = PER_DIGIT * digits * tile_rows
    kind_cells = SEGMENTS * digits
    counters = slots * copies
    found_cells = digits * batch
    busy = slots - slots // 4
    compare = _make_comparer(digits, geometry)
    add_local, flush = _make_adders(digits, geometry)
    add_batch = _make_batch_adder(digits, batch, add_local)

    def count_clues_kernel(  # type: ignore[no-untyped-def]
        operands, left, right, bounds, row_end, items, table_keys, table_counts, log_keys, log_counts, state
    ):
        t_codes = cuda.shared.array(t_cells, np.int32)
        u_codes = cuda.shared.array(u_cells, np.int32)
        kinds = cuda.shared.array(kind_cells, np.int32)
        keys = cuda.shared.array((slots, digits), np.uint32)
        counts = cuda.shared.array(counters, np.uint32)
        meta = cuda.shared.array(META_CELLS, np.int32)  # slots in use, stop, strip
        current = cuda.local.array(digits, np.uint32)
        found = cuda.local.array(found_cells, np.uint32)
        digit = cuda.local.array(batch, np.uint32)
        thread = cuda.threadIdx.x
        rows = row_end.shape[0]
        comparisons = left.shape[0]
        for k in range(thread, slots, threads):
            for d in range(digits):
                keys[k, d] = np.uint32(0)
        for k in range(thread, counters, threads):
            counts[k] = np.uint32(0)
        for k in range(thread, kind_cells, threads):
            kinds[k] = bounds[k // SEGMENTS, k % SEGMENTS]
        if thread == 0:
            meta[0] = 0
        stop = False
        while not stop:
            if thread == 0:
                meta[2] = cuda.atomic.add(state, STATE_NEXT, 1)
            cuda.syncthreads()
            i = meta[2]
            if i >= items.shape[0]:
                break
            t = items[i, 0] + thread
            u_tile = items[i, 1]
            u_end = items[i, 2]
            end = 0
            if t < rows:
                end = min(row_end[t], u_end)
                for g in range(comparisons):
                    t_codes[g * threads + thread] = operands[left[g], t]
            run = np.uint32(0)
            for d in range(digits):
                current[d] = np.uint32(0)
            while u_tile < u_end and not stop:
                cuda.syncthreads()
                if thread == 0:
                    meta[1] = cuda.atomic.max(state, STATE_FULL, 0)
                for k in range(thread, comparisons * tile_rows, threads):
                    u = u_tile + k % tile_rows
                    if u < u_end:
                        u_codes[k] = operands[right[k // tile_rows], u]
                    else:
                        u_codes[k] = 0
                full = meta[0] > busy
                cuda.syncthreads()
                if meta[1] != 0:
                    stop = True
                else:
                    if full:
                        flush(thread, keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state)
                        cuda.syncthreads()
                    first = np.int32(max(t + 1, u_tile) - u_tile)
                    last = np.int32(min(end, u_tile + tile_rows) - u_tile)
                    for column in range(first - first % batch, last, batch):
                        compare(t_codes, u_codes, kinds, thread, column, digit, found)
                        run = add_batch(
                            current, run, found, first - column, last - column, thread,
                            keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state,
                        )  # fmt: skip
                    u_tile += tile_rows
            if run > np.uint32(0):
                add_local(
                    current, run, thread, keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state
                )
            cuda.syncthreads()
            flush(thread, keys, counts, meta, table_keys, table_counts, log_keys, log_counts, state)
            if thread == 0:
                items[i, 1] = u_tile
            cuda.syncthreads()

    return count_clues_kernel
