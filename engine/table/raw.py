"""A table as its source stores it, before types are decided: the result of every reader in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Reading = Literal["infer", "dates", "typed", "nanoseconds"]
"""How a column gets its type: by all rules for text; by those for dates only (JSON marks numbers itself); from the
source; from the source as a number of nanoseconds."""


CSV_LABEL = "CSV"
"""The label of columns of CSV files, in place of a type name."""


@dataclass(frozen=True)
class RowPlaces:
    """The places of rows in their files.

    Attributes
    ----------
    position : int64 (rows,), position among the data rows
    line : int64 (rows,), 1-based line in the row's file
    file : int32 (rows,), number of the file
    data_rows : all rows, including the blank ones of a one-column table
    blank_lines : skipped lines
    """

    position: NDArray[np.int64]
    line: NDArray[np.int64]
    file: NDArray[np.int32]
    data_rows: int
    blank_lines: int

    def line_of(self, position: int, files: Sequence[str]) -> str:
        """The line on which the row at a position begins, with the file if there are several."""
        at = int(np.searchsorted(self.position, position))
        where = f"line {int(self.line[at])}"
        return where if len(files) < 2 else f"{files[self.file[at]]}, {where}"


@dataclass(frozen=True)
class BadRows:
    """The fault of malformed rows.

    Attributes
    ----------
    of_one, of_several : the fault in words, for one row and for several
    hint : a function from the positions of the rows (int64, ascending) to a hint, or None
    """

    of_one: str = ""
    of_several: str = ""
    hint: Callable[[RowPlaces, NDArray[np.int64]], str | None] | None = None


NO_BAD_ROWS = BadRows()


@dataclass(frozen=True, eq=False)
class RawRows:
    """The rows of some columns.

    Attributes
    ----------
    arrays : an iterator over the requested columns without malformed rows; each is released as soon as it is consumed
    bad : int64, ascending: positions of malformed rows
    places : a function that returns the places of rows, if lines are known
    """

    arrays: Iterator[pa.ChunkedArray]
    bad: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    places: Callable[[], RowPlaces] | None = None


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table that can be read in this process.

    Attributes
    ----------
    names : the column names of the source, in order
    readings, labels : for each column, how it gets its type, and the source's name for its type
    rows_of_files : number of rows of each file, malformed ones included
    read : reads the columns at some indexes
    files : the local files in order, if any
    what_is_bad : the fault of malformed rows
    """

    names: list[str]
    readings: list[Reading]
    labels: list[str]
    rows_of_files: Sequence[int]
    read: Callable[[Sequence[int]], RawRows]
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    what_is_bad: BadRows = NO_BAD_ROWS

    @property
    def rows(self) -> int:
        return sum(self.rows_of_files)


def reading_pool() -> pa.MemoryPool:
    """The memory pool for reading files: jemalloc if Arrow has it.

    With other pools, threads keep memory that other threads have freed.
    """
    return pa.jemalloc_memory_pool() if "jemalloc" in pa.supported_memory_backends() else pa.default_memory_pool()


def give_memory_back() -> None:
    """Return the memory that Arrow holds but does not use to the system. It takes a millisecond."""
    for pool in (pa.default_memory_pool(), reading_pool()):
        pool.release_unused()


def joined(parts: Sequence[list[pa.ChunkedArray]], columns: int) -> Iterator[pa.ChunkedArray]:
    """Concatenate the columns of all files, one at a time; yielded columns are released. `parts`: one list per file."""
    for _ in range(columns):
        arrays = [part.pop(0) for part in parts]
        if len({array.type for array in arrays}) > 1:  # text of a file that holds none of it has no dictionary
            arrays = [array.cast(pa.large_string()) for array in arrays]
        chunks = [chunk for array in arrays for chunk in array.chunks]
        yield pa.chunked_array(chunks, arrays[0].type if arrays else pa.large_string())
