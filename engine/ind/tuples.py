"""Rows of tables as tuples of codes that can be compared across tables: which tuples of one side the other lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.values import Family, canonical_array, family_of
from tuplewise.engine.relation.relation import NULL_CODE, Column, Relation

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = -2
"""Stands for a value, or a tuple, that the other side lacks."""

_KEPT_BYTES = 1 << 28  # of translations between columns, which are used again
_LOAD = 2  # slots of a hash table for each tuple that it may get


class Rows:
    """The rows of some tables.

    Parameters
    ----------
    relations : by the names that attributes use
    as_text : values of all types are compared as text
    """

    def __init__(self, relations: Mapping[str, Relation], as_text: bool = False) -> None:
        self.relations, self.as_text = relations, as_text
        self._distinct: dict[Attribute, tuple[NDArray[np.int32], pa.Array]] = {}
        self._tables: dict[tuple[Attribute, Attribute], NDArray[np.int32]] = {}
        self._table_bytes = 0

    def relation(self, attribute: Attribute) -> Relation:
        return self.relations[attribute.table]

    def column(self, attribute: Attribute) -> Column:
        """Name, type, distinct values and nulls of a column."""
        relation = self.relation(attribute)
        return relation.columns[relation.index_of(attribute.column)]

    def family(self, attribute: Attribute) -> Family:
        """What its values are compared with."""
        return family_of(self.column(attribute).type, self.as_text)

    def codes(self, attribute: Attribute) -> NDArray[np.int32]:
        """A column's codes, int32 (rows,), `NULL_CODE` for null; a copy."""
        relation = self.relation(attribute)
        return np.array(relation.codes[relation.index_of(attribute.column)])

    def translated(self, dependent: Attribute, referenced: Attribute) -> NDArray[np.int32]:
        """The code that each value of a column has in another one.

        Returns
        -------
        int32 (rows of the dependent table,)
            `NULL_CODE` for null, `MISSING` for a value that the referenced column lacks: each value, where the two are
            of families that are not compared.
        """
        codes = self.codes(dependent)
        if self.family(dependent) != self.family(referenced):
            return np.where(codes == NULL_CODE, np.int32(NULL_CODE), np.int32(MISSING))
        table = self._tables.get((dependent, referenced))
        if table is None:
            table = self._tables[dependent, referenced] = self._translation(dependent, referenced)
            self._table_bytes += table.nbytes
            while self._table_bytes > _KEPT_BYTES and len(self._tables) > 1:
                self._table_bytes -= self._tables.pop(next(iter(self._tables))).nbytes
        return table[codes]

    def _translation(self, dependent: Attribute, referenced: Attribute) -> NDArray[np.int32]:
        """By code of the dependent column, the referenced column's code; the last entry is null's, whose code is -1."""
        if self._share_codes(dependent, referenced):
            own, theirs = np.unique(self.codes(dependent)), np.unique(self.codes(referenced))
            own = own[own != NULL_CODE]
            translated = np.where(np.isin(own, theirs), own, MISSING)
        else:
            own, values = self._values(dependent)
            theirs, others = self._values(referenced)
            found = _places(values, others)
            translated = np.append(theirs, np.int32(MISSING))[found]
        table = np.full(int(own[-1]) + 2 if len(own) else 1, NULL_CODE, dtype=np.int32)
        table[own] = translated
        return table

    def _share_codes(self, dependent: Attribute, referenced: Attribute) -> bool:
        """Whether equal codes are equal values, and different codes different ones."""
        left, right = self.column(dependent), self.column(referenced)
        return self.relation(dependent) is self.relation(referenced) and (
            left.type == right.type or (left.domain == right.domain and not self.as_text)
        )

    def _values(self, attribute: Attribute) -> tuple[NDArray[np.int32], pa.Array]:
        """The codes of a column, ascending without null, and their values as bytes that are equal where values are."""
        if attribute not in self._distinct:
            relation, column = self.relation(attribute), self.column(attribute)
            codes = np.unique(self.codes(attribute))
            codes = codes[codes != NULL_CODE]
            values = relation.dictionaries[column.domain].take(codes)
            self._distinct[attribute] = codes, canonical_array(self.family(attribute), values)
        return self._distinct[attribute]


def _places(values: pa.Array, others: pa.Array) -> NDArray[np.int64]:
    """Where each of some values stands among others; -1 where it doesn't."""
    import pyarrow.compute as pc

    places = pc.fill_null(pc.index_in(values, value_set=others), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)


class TupleSet:
    """The different tuples of some columns of one table; rows with a null in one of them are left out.

    Parameters
    ----------
    columns : int32 (rows,) each, at least one: codes, negative ones are nulls. Kept, not changed.

    Notes
    -----
    Tuples are numbered column by column: a tuple's number and the next column's code are a key of 64 bits, so that
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
        """Of each row its tuple's number, int32 (rows,); negative where it has a null. Codes, of a single column."""

    @cached_property
    def distinct(self) -> int:
        """How many tuples there are."""
        if self._count >= 0:
            return self._count
        return int(np.count_nonzero(np.unique(self.numbers) >= 0))

    def find(self, columns: Sequence[NDArray[np.int32]], *, first_missing: bool = False) -> NDArray[np.int32]:
        """The numbers that tuples of another table have here.

        Parameters
        ----------
        columns : int32 (rows,) each, as `Rows.translated` gives them
        first_missing : stop at the first tuple that is missing; entries behind it are not set

        Returns
        -------
        int32 (rows,)
            `NULL_CODE` where a column is null, `MISSING` where the tuple is not here.
        """
        numbers = columns[0]
        for i, (column, (keys, kept)) in enumerate(zip(columns[1:], self._steps, strict=True)):
            out = np.full(len(column), NULL_CODE, dtype=np.int32)
            find_pairs(numbers, column, keys, kept, first_missing and i == len(self._steps) - 1, out)
            numbers = out
        return numbers


def _table(rows: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """An empty hash table: keys, and the numbers of those that are there (-1: none)."""
    slots = 1 << max(4, int(_LOAD * rows - 1).bit_length())
    return np.empty(slots, dtype=np.uint64), np.full(slots, -1, dtype=np.int32)


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _slot(key: np.uint64, slots: int) -> np.int64:
    """Where to look for a key first. `slots`: a power of two."""
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(slots - 1))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def number_pairs(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    out: NDArray[np.int32],
) -> int:
    """out[i] = the number of (left[i], right[i]) by first appearance; -1 where one is negative. Returns how many."""
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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def find_pairs(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    first_missing: bool,
    out: NDArray[np.int32],
) -> None:
    """out[i] = the number of (left[i], right[i]); -1 where one is null (-1), -2 where it is not in the table, or one is
    missing (-2). With `first_missing` it ends there."""
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
