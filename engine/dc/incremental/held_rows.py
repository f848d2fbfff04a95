"""Rows of a state in memory: gapped codes, liveness and names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.column_set_index import SPARE, SortedRows

Name = TypeVar("Name", int, bytes)
ROOM = 1 << 12  # spare room, in rows


class HeldRows:
    """Rows by number, in order of insertion. A deleted row keeps its number until a checkpoint.

    Attributes
    ----------
    codes : int32 (room, columns)
    alive : bool (room,)
    ids : int64 (room,), ids assigned by the state; ascending in the base
    used : how many row numbers are assigned
    base : number of rows of the last checkpoint; later rows are the tail
    scanned_from : rows from here on are also held by column, for comparing a row with all of them
    scanned : int32 (columns, rows from `scanned_from` on + SPARE or more); the last entries are padding
    living : number of rows that are alive
    """

    def __init__(
        self, codes: NDArray[np.int32], ids: NDArray[np.int64], sorted_rows: SortedRows, key_index: int,
        scanned_from: int,
    ) -> None:  # fmt: skip
        self.used = self.base = self.living = len(codes)
        self.scanned_from = scanned_from
        self.sorted_rows, self._key_index = sorted_rows, key_index
        room = len(codes) + ROOM
        self.codes = np.empty((room, codes.shape[1]), dtype=np.int32)
        self.codes[: self.used] = codes
        self.alive = np.zeros(room, dtype=np.bool_)
        self.alive[: self.used] = True
        self.ids = np.zeros(room, dtype=np.int64)
        self.ids[: self.used] = ids
        self.scanned = np.zeros((codes.shape[1], room - scanned_from + SPARE), dtype=np.int32)
        self.scanned[:, : self.used - scanned_from] = codes[scanned_from:].T
        self._tail_of_id: dict[int, int] = {}
        self._tail_of_key: dict[bytes, int] = {}

    @property
    def living_rows(self) -> NDArray[np.int64]:
        """Numbers of the living rows, in order of their ids."""
        rows = np.flatnonzero(self.alive[: self.used])
        return rows[np.argsort(self.ids[rows], kind="stable")]

    def append(self, codes: NDArray[np.int32], ids: NDArray[np.int64]) -> None:
        """Append rows, int32 (rows, columns)."""
        first, last = self.used, self.used + len(codes)
        if last > len(self.codes):
            self._grow(max(last, len(self.codes) + len(self.codes) // 4) + ROOM)
        self.codes[first:last], self.ids[first:last], self.alive[first:last] = codes, ids, True
        self.scanned[:, first - self.scanned_from : last - self.scanned_from] = codes.T
        key = self.key_columns
        for row in range(first, last):
            self._tail_of_id[int(self.ids[row])] = row
            if len(key):
                self._tail_of_key[self.codes[row, key].tobytes()] = row
        self.used = last
        self.living += len(codes)

    def _grow(self, room: int) -> None:
        def grown(array: NDArray[np.generic], shape: tuple[int, ...]) -> NDArray[np.generic]:
            more = np.zeros(shape, dtype=array.dtype)
            more[tuple(slice(0, size) for size in array.shape)] = array
            return more

        self.codes = grown(self.codes, (room, self.codes.shape[1]))  # type: ignore[assignment]
        self.alive, self.ids = grown(self.alive, (room,)), grown(self.ids, (room,))  # type: ignore[assignment]
        self.scanned = grown(self.scanned, (len(self.scanned), room - self.scanned_from + SPARE))  # type: ignore[assignment]

    def kill(self, rows: NDArray[np.int64]) -> None:
        """Mark rows as deleted."""
        self.alive[rows] = False
        self.living -= len(rows)

    @property
    def key_columns(self) -> NDArray[np.int32]:
        """Columns that name a row; none if rows are named by ids."""
        return self.sorted_rows.columns_of(self._key_index) if self._key_index >= 0 else np.zeros(0, dtype=np.int32)

    def rows_of_ids(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The living row of each id, -1 if there is none."""
        found = np.full(len(ids), -1, dtype=np.int64)
        if self.base:
            place = np.searchsorted(self.ids[: self.base], ids)
            place = np.minimum(place, self.base - 1)
            there = (self.ids[place] == ids) & self.alive[place]
            found[there] = place[there]
        return self._with_tail(found, self._tail_of_id, ids.tolist())

    def _with_tail(self, found: NDArray[np.int64], tail: dict[Name, int], names: Iterable[Name]) -> NDArray[np.int64]:
        """`found`, which it changes, with the living rows of the tail."""
        for i, name in enumerate(names if tail else ()):
            row = tail.get(name, -1)
            if row >= 0 and self.alive[row]:
                found[i] = row
        return found

    def rows_of_keys(self, keys: NDArray[np.int32]) -> NDArray[np.int64]:
        """The living row of each key, codes int32 (keys, key columns); -1 if there is none."""
        keys = np.ascontiguousarray(keys)
        found = self.sorted_rows.find(self._key_index, self.codes, self.alive, keys).astype(np.int64)
        return self._with_tail(found, self._tail_of_key, (key.tobytes() for key in keys))

    def recode(self, columns: Sequence[int], old: NDArray[np.int32], new: NDArray[np.int32]) -> None:
        """Recode some columns: each code of `old`, ascending, becomes that of `new`. Orders stay valid, zones don't: a
        checkpoint must follow."""
        for column in columns:
            values = self.codes[: self.used, column]
            there = values >= 0
            values[there] = new[np.searchsorted(old, values[there])]
