"""Rows as tuples of codes, comparable across tables, to find tuples of one side that are missing from the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.tables import options_for_columns
from tuplewise.engine.ind.values import Family, canonical_array, family_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.encode import TypedColumn
from tuplewise.engine.table.read_table import ReadTable, typed
from tuplewise.engine.table.reader import read_table
from tuplewise.engine.table.relation import NULL_CODE, Relation, TypeName
from tuplewise.gpu_kernels.compiled import inlined, kernel
from tuplewise.gpu_kernels.cpu.hashing import mix_word

MISSING = -2
"""Code of a value, or number of a tuple, that is missing from the other side."""

_KEPT_BYTES = 1 << 28  # of translations between columns, for reuse
_LOAD = 2  # hash table slots for each tuple that may come


class CodedTables:
    """Rows of tables. Only the needed columns of a table are read, on first use.

    Parameters
    ----------
    tables : paths, frames or Relations, by the names that attributes use
    options : how each is read, by name
    needed : the columns used of each
    as_text : compare values of all types as text
    """

    def __init__(
        self,
        tables: Mapping[str, Any],
        options: Mapping[str, LoadOptions],
        needed: Mapping[str, Sequence[str]],
        *,
        as_text: bool = False,
    ) -> None:
        self._sources, self._options, self._needed, self.as_text = tables, options, needed, as_text
        self._read: dict[str, ReadTable] = {}
        self._positions: dict[str, NDArray[np.int64]] = {}
        self._columns: dict[Attribute, _Codes] = {}
        self._tables: dict[tuple[Attribute, Attribute], NDArray[np.int32]] = {}
        self._table_bytes = 0

    def table(self, name: str) -> ReadTable:
        """A table with its types."""
        if name not in self._read:
            options = options_for_columns(self._options[name], self._needed[name])
            source = self._sources[name]
            if isinstance(source, Relation):
                source = source.select(self._needed[name])
            table = typed(read_table(source, options, name), options, as_text=self.as_text)
            if table.positions is not None:
                self._positions[name] = table.positions
            self._read[name] = table
        return self._read[name]

    def positions(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of rows of a table in its source."""
        return self._positions[name][rows] if name in self._positions else rows

    def type_of(self, attribute: Attribute) -> TypeName:
        return self._column(attribute).type

    def family(self, attribute: Attribute) -> Family:
        """The family of an attribute's values."""
        return family_of(self.type_of(attribute), self.as_text)

    def distinct(self, attribute: Attribute) -> int:
        """Number of distinct values of a column, without null."""
        return len(self._coded(attribute).values)

    def codes(self, attribute: Attribute) -> NDArray[np.int32]:
        """Code of each row's value, int32 (rows,), from 0; `NULL_CODE` for null. Equal values have equal codes."""
        return self._coded(attribute).of_place[self._column(attribute).index]

    def values(self, attribute: Attribute, rows: NDArray[np.int64]) -> pa.Array:
        """The values of a column at given non-null rows, of the column's type."""
        column = self._column(attribute)
        return column.values.take(pa.array(column.index[rows]))

    def translated(self, dependent: Attribute, referenced: Attribute) -> NDArray[np.int32]:
        """The code that each value of a column has in another one.

        Returns
        -------
        int32 (rows of the dependent table,)
            `NULL_CODE` for null, `MISSING` for a value missing from the referenced column: every value, if the two
            columns are of different families.
        """
        table = self._tables.get((dependent, referenced))
        if table is None:
            table = self._tables[dependent, referenced] = self._translation(dependent, referenced)
            self._table_bytes += table.nbytes
            while self._table_bytes > _KEPT_BYTES and len(self._tables) > 1:
                self._table_bytes -= self._tables.pop(next(iter(self._tables))).nbytes
        return table[self._column(dependent).index]

    def _translation(self, dependent: Attribute, referenced: Attribute) -> NDArray[np.int32]:
        """The referenced column's code for each place of the dependent column's values; the last entry is null's."""
        own, theirs = self._coded(dependent), self._coded(referenced)
        if self.family(dependent) == self.family(referenced):
            translated = _places(own.values, theirs.values)
        else:
            translated = np.full(len(own.values), MISSING, dtype=np.int32)
        return np.append(translated, np.int32(NULL_CODE))[own.of_place]  # an unused place's code is null's

    def _column(self, attribute: Attribute) -> TypedColumn:
        table = self.table(attribute.table)
        return next(c for c in table.columns if c.name == attribute.column)

    def _coded(self, attribute: Attribute) -> _Codes:
        if attribute not in self._columns:
            self._columns[attribute] = _code(self._column(attribute), self.family(attribute))
        return self._columns[attribute]


@dataclass(frozen=True, eq=False)
class _Codes:
    """Numbers for the values of a column.

    Attributes
    ----------
    values : large_binary (distinct,), each value in use once, as bytes that are equal if the values are
    of_place : int32 (places + 1,), the code of each place of the column's values, `NULL_CODE` if no row has it; the
        last entry is null's
    """

    values: pa.Array
    of_place: NDArray[np.int32]


def _code(column: TypedColumn, family: Family) -> _Codes:
    used = np.zeros(len(column.values) + 1, dtype=np.bool_)
    used[column.index] = True  # null's index, -1, is the last entry
    places = np.flatnonzero(used[:-1])
    encoded = canonical_array(family, column.values.take(pa.array(places))).dictionary_encode()
    of_place = np.full(len(used), NULL_CODE, dtype=np.int32)
    of_place[places] = encoded.indices.to_numpy(zero_copy_only=False)
    return _Codes(encoded.dictionary, of_place)


def _places(values: pa.Array, others: pa.Array) -> NDArray[np.int32]:
    """Index of each value among others; `MISSING` if it isn't there."""
    places = pc.fill_null(pc.index_in(values, value_set=others), MISSING)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int32)


class TupleSet:
    """The distinct tuples of some columns of one table, without rows that have a null in one of them.

    Parameters
    ----------
    columns : int32 (rows,) each, at least one: codes; negative ones are nulls. Kept, not modified.

    Notes
    -----
    Tuples are numbered column by column: a tuple's number and the next column's code form a key of 64 bits, so that
    tuples of any length are compared exactly. Expected time and memory: rows times columns.
    """

    def __init__(self, columns: Sequence[NDArray[np.int32]]) -> None:
        self._steps: list[tuple[NDArray[np.uint64], NDArray[np.int32]]] = []
        numbers, self._count = columns[0], -1
        for column in columns[1:]:
            keys, kept = _table(len(column))
            out = np.empty(len(column), dtype=np.int32)
            self._count = number_pairs(numbers, column, keys, kept, out)
            self._steps.append((keys, kept))
            numbers = out
        self.numbers = numbers
        """Tuple number of each row, int32 (rows,); negative if it has a null. For a single column, its codes."""

    @cached_property
    def distinct(self) -> int:
        """Number of distinct tuples."""
        if self._count >= 0:
            return self._count
        return int(np.count_nonzero(np.unique(self.numbers) >= 0))

    def find(self, columns: Sequence[NDArray[np.int32]], *, first_missing: bool = False) -> NDArray[np.int32]:
        """Look up the numbers of tuples of another table.

        Parameters
        ----------
        columns : int32 (rows,) each, from `CodedTables.translated`
        first_missing : stop at the first missing tuple; later entries are not set

        Returns
        -------
        int32 (rows,)
            `NULL_CODE` if a column is null, `MISSING` if the tuple is not in this set.
        """
        numbers = columns[0]
        for i, (column, (keys, kept)) in enumerate(zip(columns[1:], self._steps, strict=True)):
            out = np.full(len(column), NULL_CODE, dtype=np.int32)
            find_pairs(numbers, column, keys, kept, first_missing and i == len(self._steps) - 1, out)
            numbers = out
        return numbers


def _table(rows: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """An empty hash table: keys, and their numbers (-1: empty slot)."""
    slots = 1 << max(4, int(_LOAD * rows - 1).bit_length())
    return np.empty(slots, dtype=np.uint64), np.full(slots, -1, dtype=np.int32)


@inlined
def _slot(key: np.uint64, slots: int) -> np.int64:
    """First slot to probe for a key. `slots`: a power of two."""
    return np.int64(mix_word(mix_word(np.uint64(0), key), np.uint64(0)) & np.uint64(slots - 1))


@kernel("int32[::1], int32[::1], uint64[::1], int32[::1], int32[::1]")
def number_pairs(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    out: NDArray[np.int32],
) -> int:
    """out[i] = the number of (left[i], right[i]) by first appearance; -1 if one is negative. Returns how many."""
    count = 0
    for i in range(len(left)):
        if left[i] < 0 or right[i] < 0:
            out[i] = -1
            continue
        key = (np.uint64(left[i]) << np.uint64(32)) | np.uint64(right[i])
        slot = _slot(key, len(keys))
        while numbers[slot] >= 0 and keys[slot] != key:
            slot = (slot + 1) & (len(keys) - 1)
        if numbers[slot] < 0:
            keys[slot] = key
            numbers[slot] = count
            count += 1
        out[i] = numbers[slot]
    return count


@kernel("int32[::1], int32[::1], uint64[::1], int32[::1], boolean, int32[::1]")
def find_pairs(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    first_missing: bool,
    out: NDArray[np.int32],
) -> None:
    """out[i] = the number of (left[i], right[i]); -1 if one is null (-1), -2 if the pair is not in the table, or
    one is missing (-2). With `first_missing` it stops there."""
    for i in range(len(left)):
        if left[i] == -1 or right[i] == -1:
            out[i] = -1
            continue
        out[i] = -2
        if left[i] >= 0 and right[i] >= 0:
            key = (np.uint64(left[i]) << np.uint64(32)) | np.uint64(right[i])
            slot = _slot(key, len(keys))
            while numbers[slot] >= 0 and keys[slot] != key:
                slot = (slot + 1) & (len(keys) - 1)
            out[i] = numbers[slot] if numbers[slot] >= 0 else -2
        if first_missing and out[i] == -2:
            return
