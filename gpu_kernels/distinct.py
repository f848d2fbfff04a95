"""Front door: distinct values of columns of bytes, and for each value the set of columns that hold it.

There are no CUDA twins: bytes come from files and from Arrow, each is read once, and copying them to a device would
take longer than the work takes here. On GPUs, Spark does this grouping with the RAPIDS plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control

PADDING = 8  # spare bytes at the end of an array of bytes, since words are read whole
_SLOTS, _WORDS, _NODES = 64, 256, 64
_MANY_SLOTS = 1 << 16  # slots from which a table doubles; smaller ones grow fourfold
_MANY_WORDS = 1 << 17  # words from which a store grows by an eighth; smaller ones double


class DistinctCells:
    """Distinct values of cells that come in parts, and the number of cells with each.

    Attributes
    ----------
    nulls : number of cells without a value

    Notes
    -----
    Cost: for each cell a hash of its bytes and one look-up in a table of hashes; bytes are always compared. Memory: for
    each distinct value its bytes, 8 to 15 more, and 12 to 24 for the table.
    """

    def __init__(self) -> None:
        self._table = np.zeros(_SLOTS, dtype=np.uint64)
        self._store = np.empty(_WORDS, dtype=np.uint64)
        self._state = np.zeros(3, dtype=np.int64)

    @property
    def used(self) -> int:
        """Number of used words of the store."""
        return int(self._state[0])

    @property
    def distinct(self) -> int:
        return int(self._state[1])

    @property
    def nulls(self) -> int:
        return int(self._state[2])

    @property
    def store(self) -> NDArray[np.uint64]:
        return self._store

    @property
    def held_bytes(self) -> int:
        return int(self._table.nbytes + self._store.nbytes)

    def add(self, data: NDArray[np.uint8], starts: NDArray[Any], sizes: NDArray[Any]) -> None:
        """Add cells.

        Parameters
        ----------
        data : uint8, with PADDING spare bytes at its end
        starts, sizes : int32 or int64 (cells,), first byte and number of bytes of each cell; size -1 is null
        """
        from tuplewise.gpu_kernels.cpu import distinct as cpu

        done = cpu.add_cells(data, starts, sizes, 0, self._table, self._store, self._state)
        while done < len(starts):
            self._table = _with_slots(self._table, self._store, self.used, self.distinct)
            _make_room(self._store, self.used, int(sizes[done]))
            done = cpu.add_cells(data, starts, sizes, done, self._table, self._store, self._state)

    def values(self) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Offsets int64 (distinct + 1,), bytes uint8 of all values, and cells with each value, int64 (distinct,)."""
        from tuplewise.gpu_kernels.cpu import distinct as cpu

        offsets = np.zeros(self.distinct + 1, dtype=np.int64)
        rows = np.empty(self.distinct, dtype=np.int64)
        cpu.list_values(self._store, self.used, offsets, rows)
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        cpu.copy_values(self._store, self.used, data)
        return offsets, data, rows

    def drop(self, value: bytes) -> None:
        """Treat a value as null. Nothing can be added afterwards."""
        from tuplewise.gpu_kernels.cpu import distinct as cpu

        words = np.frombuffer(value.ljust(-(-len(value) // 8) * 8, b"\0"), dtype=np.uint64)
        rows = cpu.drop_value(self._store, self.used, words, len(value))
        if rows >= 0:
            self._state -= np.array([cpu.HEAD + len(words), 1, -rows], dtype=np.int64)

    def finish(self) -> None:
        """Free the memory that only `add` needs."""
        self._table = np.zeros(0, dtype=np.uint64)


def padded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Copy with PADDING bytes at its end."""
    copy = np.zeros(len(data) + PADDING, dtype=np.uint8)
    copy[: len(data)] = data
    return copy


def _with_slots(table: NDArray[np.uint64], store: NDArray[np.uint64], used: int, values: int) -> NDArray[np.uint64]:
    """Return the table, or a larger one where it is full."""
    from tuplewise.gpu_kernels.cpu import distinct as cpu

    if (values + 1) * cpu.FULL <= 2 * len(table):
        return table
    larger = np.zeros(len(table) * (4 if len(table) < _MANY_SLOTS else 2), dtype=np.uint64)
    cpu.fill_table(store, used, larger)
    return larger


def _make_room(store: NDArray[np.uint64], used: int, size: int) -> None:
    """Lengthen a store in place where a value of so many bytes doesn't fit. Growing by an eighth copies nothing.

    Raises MemoryError beyond the number of words that places can address.
    """
    from tuplewise.gpu_kernels.cpu import distinct as cpu

    needed = used + cpu.HEAD + (size + 7) // 8
    if needed > cpu.MOST_WORDS:
        raise MemoryError(f"distinct values of more than {cpu.MOST_WORDS * 8 >> 30} GiB in one part")
    if needed > len(store):
        more = len(store) if len(store) < _MANY_WORDS else len(store) // 8
        store.resize(min(max(len(store) + more, needed), cpu.MOST_WORDS), refcheck=False)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sets of attributes, and the number of values of each; a set may occur more than once.

    Attributes
    ----------
    masks : uint64 (sets, words), attribute a is bit a % 64 of word a // 64
    values : int64 (sets,), at least 1
    """

    masks: NDArray[np.uint64]
    values: NDArray[np.int64]


class _Part:
    """Values whose hashes share some bits."""

    def __init__(self, parts: int, part: int) -> None:
        self._parts, self._part = parts, part
        self._table = np.zeros(_SLOTS, dtype=np.uint64)
        self._store = np.empty(_WORDS, dtype=np.uint64)
        self._tree = np.full((4 * _NODES, 2), -1, dtype=np.int64)
        self._nodes = np.empty((_NODES, 3), dtype=np.int64)
        self._nodes[0] = 0, -1, 0
        self._state = np.array([0, 0, 1], dtype=np.int64)

    @property
    def held_bytes(self) -> int:
        return int(self._table.nbytes + self._store.nbytes + self._tree.nbytes + self._nodes.nbytes)

    def merge(self, attribute: int, source: NDArray[np.uint64], used: int) -> None:
        from tuplewise.gpu_kernels.cpu import distinct as cpu

        done = 0
        while True:
            done = cpu.merge_values(
                source, done, used, attribute, self._parts, self._part, self._table, self._store, self._tree,
                self._nodes, self._state,
            )  # fmt: skip
            if done == used:
                return
            self._grow(int(source[done] & cpu.HALF))

    def _grow(self, size: int) -> None:
        from tuplewise.gpu_kernels.cpu import distinct as cpu

        words, values, nodes = (int(n) for n in self._state)
        self._table = _with_slots(self._table, self._store, words, values)
        _make_room(self._store, words, size)
        if nodes + 1 > len(self._nodes) or 2 * (nodes + 1) > len(self._tree):
            kept = self._nodes[:nodes]
            self._nodes = np.empty((2 * len(self._nodes), 3), dtype=np.int64)
            self._nodes[:nodes] = kept
            self._tree = np.full((2 * len(self._tree), 2), -1, dtype=np.int64)
            cpu.fill_tree(self._nodes, nodes, self._tree)

    def clusters(self, words: int) -> Clusters:
        from tuplewise.gpu_kernels.cpu import distinct as cpu

        used = int(self._state[2])
        chosen = np.flatnonzero(self._nodes[:used, 2] > 0)
        masks = np.zeros((len(chosen), words), dtype=np.uint64)
        cpu.fill_masks(self._nodes, used, chosen, masks)
        return Clusters(masks, self._nodes[chosen, 2].copy())


class ValueSets:
    """Set of attributes of each value. Attributes must be added in ascending order.

    Notes
    -----
    Sets are nodes of a tree that all values share. So a value takes the same memory whatever the number of attributes:
    its bytes, 16 more and its part of the table. Each value of an attribute costs two look-ups in tables.
    """

    def __init__(self, control: Control | None = None) -> None:
        self._control = control or Control()
        parts = 1 << max(0, self._control.threads - 1).bit_length()
        self._parts = [_Part(parts, part) for part in range(parts)]

    @property
    def held_bytes(self) -> int:
        return sum(part.held_bytes for part in self._parts)

    def add(self, attributes: Sequence[int], cells: Sequence[Sequence[DistinctCells]]) -> None:
        """Add attributes, ascending and greater than all before. The cells of each may be in several parts."""
        from tuplewise.gpu_kernels.cpu.threads import run_tasks

        def work(task: int) -> None:
            part = self._parts[task]
            for attribute, several in zip(attributes, cells, strict=True):
                for own in several:
                    part.merge(attribute, own.store, own.used)

        run_tasks([1.0] * len(self._parts), lambda: work, Control(threads=self._control.threads))

    def clusters(self, words: int) -> Clusters:
        """Sets of all values, as masks of so many words."""
        found = [part.clusters(words) for part in self._parts]
        return Clusters(np.concatenate([f.masks for f in found]), np.concatenate([f.values for f in found]))
