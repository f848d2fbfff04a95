"""Rows of a change: the values for each attribute, with counts, and the key of each row."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tuplewise.engine.ind.store import ROW, value_prefix
from tuplewise.engine.ind.values import Family, canonical_array, canonical_bytes
from tuplewise.engine.table.read_table import ReadTable
from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.rows import read_rows

_SIZE = struct.Struct("<I")
_NULL = _SIZE.pack(0xFFFFFFFF)
_ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Attributes:
    """The columns of a table of a state.

    Attributes
    ----------
    table : number of the table
    first : number of its first attribute; the others follow in order
    """

    table: int
    first: int
    names: tuple[str, ...]
    types: tuple[TypeName, ...]
    families: tuple[Family, ...]


@dataclass(frozen=True, eq=False)
class SortedValues:
    """Distinct values, ascending by name.

    Attributes
    ----------
    names : large_binary (values,)
    starts : int64 (values,), start of each value's entries
    attributes, counts : int32 and int64 (entries,), ascending within a value
    """

    names: pa.Array
    starts: NDArray[np.int64]
    attributes: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of attributes of each value."""
        return np.diff(np.append(self.starts, len(self.attributes)))

    @classmethod
    def of(
        cls, parts: Sequence[pa.Array], attributes: Sequence[NDArray[np.int32]], counts: Sequence[NDArray[np.int64]]
    ) -> SortedValues:
        """Build from names of values, column by column. A value may occur in several columns, and repeatedly in one."""
        names = pa.concat_arrays(list(parts))
        order = pc.sort_indices(names)
        names = names.take(order)
        places = order.to_numpy()
        own, held = np.concatenate(attributes)[places], np.concatenate(counts)[places]
        new = np.ones(len(names), dtype=np.bool_)
        if len(names):
            new[1:] = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy(zero_copy_only=False)
        starts = np.flatnonzero(new)
        names = names if len(starts) == len(names) else names.take(pa.array(starts))
        if not ((own[1:] <= own[:-1]) & ~new[1:]).any():
            return cls(names, starts, own, held)
        value = np.cumsum(new) - 1  # equal values of one column spelled in two ways, or columns out of order
        order = np.lexsort((own, value))
        own, held, value = own[order], held[order], value[order]
        entry = np.ones(len(value), dtype=np.bool_)
        entry[1:] = (value[1:] != value[:-1]) | (own[1:] != own[:-1])
        kept = np.flatnonzero(entry)
        return cls(
            names, np.searchsorted(value[kept], np.arange(len(starts))), own[kept], np.add.reduceat(held, kept)
        )

    def counts_of(self, values: NDArray[np.int64]) -> dict[bytes, dict[int, int]]:
        """Occurrences of the given values in each attribute, by name."""
        ends = self.starts[values] + self.sizes[values]
        attributes, counts = self.attributes, self.counts
        return {
            name: dict(zip(attributes[start:end].tolist(), counts[start:end].tolist(), strict=True))
            for name, start, end in zip(
                self.names.take(pa.array(values)).to_pylist(), self.starts[values].tolist(), ends.tolist(), strict=True
            )
        }


def cut(raw: bytes, places: NDArray[np.int64]) -> list[bytes]:
    """Slices between consecutive places."""
    return [raw[a:b] for a, b in pairwise(places.tolist())]


class ColumnRows:
    """Rows as columns of values, from a file or a frame.

    Attributes
    ----------
    count : number of rows
    locate : function from the number of a row to its position, as text
    """

    def __init__(self, table: ReadTable, attributes: Attributes) -> None:
        self._table, self._attributes = table, attributes
        self.count = table.rows
        self.locate = table.locate
        self._names = [
            _names(family, column.values) for family, column in zip(attributes.families, table.columns, strict=True)
        ]

    def columns(self) -> Iterator[tuple[int, pa.Array, Any]]:
        """For each column: its attribute, the names of values that occur (large_binary), and the number of rows with
        each (int64)."""
        for c, (names, column) in enumerate(zip(self._names, self._table.columns, strict=True)):
            counts = np.bincount(column.index.astype(np.int64) + 1, minlength=len(names) + 1)[1:]
            used = np.flatnonzero(counts)
            names = names if len(used) == len(names) else names.take(pa.array(used))
            yield self._attributes.first + c, names, counts[used]

    def filled(self) -> list[int]:
        """Number of non-null rows of each column."""
        return [int(np.count_nonzero(column.index >= 0)) for column in self._table.columns]

    def tally(self) -> SortedValues:
        """Number of occurrences of each value in each attribute, by the value's name."""
        numbers, parts, counts = zip(*self.columns(), strict=True)
        attributes = [np.full(len(names), number, dtype=np.int32) for number, names in zip(numbers, parts, strict=True)]
        return SortedValues.of(parts, attributes, counts)

    def hashes(self) -> Iterator[bytes]:
        """The key of each row: equal for equal rows."""
        pieces = [[*map(_piece, names.to_pylist()), _NULL] for names in self._names]  # index -1 is the last entry: null
        prefix = _row_prefix(self._attributes)
        for start in range(0, self.count, _ROWS_AT_ONCE):
            stop = start + _ROWS_AT_ONCE
            indexes = [column.index[start:stop].tolist() for column in self._table.columns]
            cells = [map(p.__getitem__, index) for p, index in zip(pieces, indexes, strict=True)]
            for row in zip(*cells, strict=True):
                yield prefix + hashlib.blake2b(b"".join(row), digest_size=16).digest()

    def place(self, name: bytes, attribute: int, nth: int) -> str:
        """Position of the row with the nth occurrence (from 0) of a value in an attribute."""
        c = attribute - self._attributes.first
        having = [i for i, n in enumerate(self._names[c].to_pylist()) if n == name]
        rows = np.flatnonzero(np.isin(self._table.columns[c].index, having))
        return self.locate(int(rows[nth]))


def _names(family: Family, values: pa.Array) -> pa.Array:
    """The names of values, large_binary: prefix of the family and canonical bytes."""
    canonical = canonical_array(family, values)
    prefix = pa.scalar(value_prefix(family), pa.large_binary())
    return pc.binary_join_element_wise(prefix, canonical, pa.scalar(b"", pa.large_binary()))


def _piece(name: bytes) -> bytes:
    """Encode a cell for a row's hash. No two lists of cells give the same bytes."""
    return _SIZE.pack(len(name)) + name


def _row_prefix(attributes: Attributes) -> bytes:
    return ROW + attributes.table.to_bytes(2, "big")


class PlainRows:
    """Rows as Python objects: mappings by column names, or sequences in column order. Methods: as of ColumnRows.

    Parameters
    ----------
    tokens : text that means null
    leave_out : leave out rows with a value that doesn't fit its column's type

    Attributes
    ----------
    left_out : numbers of the rows left out

    Raises
    ------
    InputError
        If a row has other columns, or a value doesn't fit and its row is not left out.
    """

    def __init__(
        self, rows: Sequence[Any], attributes: Attributes, tokens: Sequence[str], *, leave_out: bool = False
    ) -> None:
        self._attributes = attributes
        read, self.left_out = read_rows(rows, attributes.names, attributes.types, tokens, leave_out=leave_out)
        names = _name_writers(attributes.types, attributes.families)
        self._cells: list[list[bytes | None]] = [
            [None if v is None else prefix + write(v) for (prefix, write), v in zip(names, row, strict=True)]
            for row in read
        ]
        self.count = len(read)

    def filled(self) -> list[int]:
        if not self._cells:
            return [0] * len(self._attributes.names)
        return [sum([name is not None for name in column]) for column in zip(*self._cells, strict=True)]

    def tally(self) -> dict[bytes, dict[int, int]]:
        found: dict[bytes, dict[int, int]] = {}
        first = self._attributes.first
        for cells in self._cells:
            for attribute, name in enumerate(cells, start=first):
                if name is not None:
                    held = found.get(name)
                    if held is None:
                        found[name] = {attribute: 1}
                    else:
                        held[attribute] = held.get(attribute, 0) + 1
        return found

    def hashes(self) -> Iterator[bytes]:
        prefix = _row_prefix(self._attributes)
        for cells in self._cells:
            content = b"".join([_NULL if name is None else _piece(name) for name in cells])
            yield prefix + hashlib.blake2b(content, digest_size=16).digest()

    def place(self, name: bytes, attribute: int, nth: int) -> str:
        c = attribute - self._attributes.first
        rows = [row for row, cells in enumerate(self._cells) if cells[c] == name]
        return self.locate(rows[nth])

    def locate(self, row: int) -> str:
        for number in self.left_out:  # ascending
            row += number <= row
        return f"row {row}"


TypedRows = ColumnRows | PlainRows


@cache
def _name_writers(
    types: tuple[TypeName, ...], families: tuple[Family, ...]
) -> list[tuple[bytes, Callable[[Any], bytes]]]:
    """For each column, the prefix of its names and the function that writes the rest."""
    return [(value_prefix(family), canonical_bytes(type_)) for type_, family in zip(types, families, strict=True)]
