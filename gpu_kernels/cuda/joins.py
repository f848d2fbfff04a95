"""Common part of all joins on a device: counting in stretches of left rows, listing in pieces, finding the first pairs.

An algorithm implements three methods: `ask` looks up left rows, `sizes` counts their partners and `write` lists them.
Its structures for the right side stay on the device. Work that grows with the left rows or the pairs is cut to fit free
memory.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda.grouping import gathered
from tuplewise.gpu_kernels.cuda.primitives import (
    device_index,
    empty,
    kernel,
    output,
    room_bytes,
    sort,
    to_device,
    to_host,
    total,
)
from tuplewise.gpu_kernels.cuda.resident import Resident, resident
from tuplewise.gpu_kernels.join_types import Comparison

LAUNCH_SECONDS = 0.25  # aim of one stretch: the longest delay before a deadline is noticed
FIND_ROWS = 1 << 10  # left rows of the first search for a few pairs; each next search takes four times as many
PAIR_BYTES = 24  # bytes of a listed pair on the device: its key, room to sort it, and its row
ROW_BYTES = 96  # bytes of a left row on the device while its partners are counted, plus 16 for each comparison
EVERY = (1 << 63) - 1  # no limit on the partners of a row


@kernel("uint64[::1], int32[::1]")
def unpack_keys_kernel(keys, rows):  # type: ignore[no-untyped-def]
    """rows[i] = the lower 32 bits of keys[i], uint64 to int32. One thread a key.

    Grid: any size. Races: own item. Shared memory: 0 bytes. Assumes unchecked: these bits are a row.
    """
    for i in range(cuda.grid(1), rows.shape[0], cuda.gridsize(1)):
        rows[i] = np.int32(keys[i] & np.uint64(0xFFFFFFFF))


class DeviceJoin(ABC):
    """Join on the device that was current when it was made."""

    first_rows = 1 << 20  # left rows of the first stretch that is counted

    def __init__(
        self, pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: list[Comparison], control: Control
    ) -> None:
        self.pairs, self.codes, self.comparisons, self.control = pairs, codes, comparisons, control
        self.empty = not len(pairs.left) or not len(pairs.right)
        self._index = device_index()

    @abstractmethod
    def ask(self, rows: Any, clusters: Any) -> Any:
        """Look up left rows, int32 on the device, of these clusters (-1: of none)."""

    @abstractmethod
    def sizes(self, query: Any, limit: int) -> Any:
        """Count the partners of each left row of a query, stopping soon beyond `limit`, int64 on the device."""

    @abstractmethod
    def write(self, query: Any, offsets: Any, keys: Any) -> None:
        """List the partners of the k-th row from offsets[k] to offsets[k + 1], as k << 32 | right row.

        offsets int64 and keys uint64, on the device. Where the room is short, the first partners are listed.
        """

    def walk(self) -> tuple[Any, Any]:
        """Left rows, int32 on the device, in the order of `find`, and their clusters."""
        left = self.there.left
        return left.rows, left.numbers

    def by_code(self) -> tuple[Any, Any]:
        """Left rows in order of the first comparison, and their clusters."""
        left, column = self.there.left, self.comparisons[0].left
        return left.ordered(column, self.there.column(column)).rows, left.numbers

    @property
    def there(self) -> Resident:
        """Cluster pairs on the device."""
        return resident(self.pairs, self.codes)

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        if self.empty:
            return 0
        found = 0
        with cuda.gpus[self._index]:
            rows, clusters = self.walk()
            for first, last in self._stretches(rows.shape[0]):
                partners = self.sizes(self.ask(rows[first:last], clusters[first:last]), EVERY)
                if counts is None or not len(counts):
                    found += total(partners)
                    continue
                here = to_host(partners)
                found += int(here.sum())
                counts[to_host(rows[first:last])] += sign * here
        return found

    def emit(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        if self.empty or not len(rows):
            return offsets, np.empty(0, dtype=np.int32)
        with cuda.gpus[self._index]:
            most = self._most_rows()
            for first in range(0, len(rows), most):
                query = self.ask_rows(rows[first : first + most])
                offsets[first + 1 : first + most + 1] = to_host(self.sizes(query, EVERY))
            np.cumsum(offsets, out=offsets)
            partners = np.empty(int(offsets[-1]), dtype=np.int32)
            for first, last in self._pieces(offsets, most):
                low, high = int(offsets[first]), int(offsets[last])
                keys = self._written(self.ask_rows(rows[first:last]), offsets[first : last + 1] - low)
                sort(keys)
                partners[low:high] = to_host(output(unpack_keys_kernel, high - low, np.int32, keys))
        return offsets, partners

    def find(self, limit: int) -> NDArray[np.int32]:
        """First pairs of different rows: left rows in the order of `walk`, each with its partners in the order of
        `write`."""
        found = np.empty((0, 2), dtype=np.int32)
        if self.empty or limit < 1:
            return found
        with cuda.gpus[self._index]:
            rows, clusters = self.walk()
            first, wanted = 0, FIND_ROWS
            while first < rows.shape[0] and len(found) < limit:
                last = min(rows.shape[0], first + wanted)
                found = np.concatenate([found, self._first_pairs(rows[first:last], clusters[first:last], limit)])
                most_rows = max(1, room_bytes() // (PAIR_BYTES * (limit + 1)))
                first, wanted = last, min(4 * wanted, self._most_rows(), max(FIND_ROWS, most_rows))
        return found[:limit]

    def _first_pairs(self, rows: Any, clusters: Any, limit: int) -> NDArray[np.int32]:
        """First pairs of different rows of these left rows: `limit` or more, or all where there are fewer."""
        query = self.ask(rows, clusters)
        # a row may be its own partner, which doesn't count, so one more is looked up
        sizes = np.minimum(to_host(self.sizes(query, limit + 1)), limit + 1)
        enough = int(np.searchsorted(np.cumsum(np.maximum(sizes - 1, 0)), limit)) + 1
        sizes[enough:] = 0
        offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if not offsets[-1]:
            return np.empty((0, 2), dtype=np.int32)
        keys = to_host(self._written(query, offsets))
        lefts, rights = to_host(rows)[(keys >> np.uint64(32)).astype(np.int64)], keys & np.uint64(0xFFFFFFFF)
        pairs = np.stack([lefts, rights.astype(np.int32)], axis=1)
        different: NDArray[np.int32] = pairs[pairs[:, 0] != pairs[:, 1]]
        return different

    def _written(self, query: Any, offsets: NDArray[np.int64]) -> Any:
        keys = empty(int(offsets[-1]), np.uint64)
        self.write(query, to_device(offsets), keys)
        return keys

    def ask_rows(self, rows: NDArray[np.int32]) -> Any:
        """Query of any rows of the table."""
        there, asked = self.there, to_device(rows)
        return self.ask(asked, gathered(there.left.by_row(self.codes.shape[1]), asked))

    def _most_rows(self) -> int:
        """Number of left rows to look up at a time."""
        return max(1, min(1 << 28, room_bytes() // (ROW_BYTES + 16 * len(self.comparisons))))

    def _stretches(self, left_rows: int) -> Iterator[tuple[int, int]]:
        """Stretches of the left side, about a quarter of a second each.

        Raises TimeoutError where the deadline passed first, since a partial count is useless.
        """
        most = self._most_rows()
        first, rows = 0, min(most, self.first_rows)
        while first < left_rows:
            if self.control.over():
                raise TimeoutError("the deadline came before all pairs were counted")
            begun = time.monotonic()
            last = min(left_rows, first + rows)
            yield first, last
            seconds = max(1e-4, time.monotonic() - begun)
            first, rows = last, int(max(1, min(most, rows * min(4.0, max(0.25, LAUNCH_SECONDS / seconds)))))

    def _pieces(self, offsets: NDArray[np.int64], most_rows: int) -> Iterator[tuple[int, int]]:
        """Stretches of rows whose pairs fit the device (at least one row each); none where there are no pairs."""
        most_pairs = max(1, room_bytes() // PAIR_BYTES)
        first = 0
        while first < len(offsets) - 1:
            last = int(np.searchsorted(offsets, offsets[first] + most_pairs, side="right")) - 1
            last = min(max(first + 1, last), first + most_rows)
            if offsets[last] > offsets[first]:
                yield first, last
            first = last
