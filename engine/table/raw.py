"""A table as its source holds it, before its types are settled: what every reader in this process gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Reading = Literal["infer", "dates", "typed", "nanoseconds"]
"""What is done with a column: all rules for text; those for dates only (JSON says which values are numbers); its
type is known; its type is a number of nanoseconds."""


CSV_LABEL = "CSV"
"""What columns of CSV files are called, where others have the name of a type."""


@dataclass(frozen=True)
class RowPlaces:
    """Where the rows of a table stand.

    Attributes
    ----------
    position : int64 (rows,), among data rows
    line : int64 (rows,), 1-based, in the file of the row
    file : int32 (rows,)
    data_rows : rows in all, blank ones of a one-column table included
    blank_lines : lines that were skipped
    """

    position: NDArray[np.int64]
    line: NDArray[np.int64]
    file: NDArray[np.int32]
    data_rows: int
    blank_lines: int

    def line_of(self, position: int, files: Sequence[str]) -> str:
        """Where the row at a position begins: its line, and its file where there are several."""
        at = int(np.searchsorted(self.position, position))
        where = f"line {int(self.line[at])}"
        return where if len(files) < 2 else f"{files[self.file[at]]}, {where}"


@dataclass(frozen=True)
class BadRows:
    """What is wrong with rows that can't be taken apart.

    Attributes
    ----------
    of_one, of_several : in words
    hint : says what to do about those at some positions (int64, ascending), where something is known; or None
    """

    of_one: str = ""
    of_several: str = ""
    hint: Callable[[RowPlaces, NDArray[np.int64]], str | None] | None = None


NO_BAD_ROWS = BadRows()


@dataclass(frozen=True, eq=False)
class RawRows:
    """Rows of some columns.

    Attributes
    ----------
    arrays : one for each column that was asked for, given out once, so that none is held longer than it is needed; only
        rows that could be taken apart
    bad : int64, ascending: positions of rows that couldn't
    places : says where rows stand, where lines are known
    """

    arrays: Iterator[pa.ChunkedArray]
    bad: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    places: Callable[[], RowPlaces] | None = None


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table that can be read here.

    Attributes
    ----------
    names : the names that the source gives the columns, in order
    readings, labels : for each column, what is done with it and what its source calls its type
    rows_of_files : how many rows each file has, also those that can't be taken apart
    read : gives the columns of some indexes
    files : local files in order; empty where there are none
    what_is_bad : what rows that can't be taken apart lack
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
    """What Arrow's threads allocate from while they read files.

    That is jemalloc where Arrow has it: with others, a thread keeps for itself what another thread has let go.
    """
    return pa.jemalloc_memory_pool() if "jemalloc" in pa.supported_memory_backends() else pa.default_memory_pool()


def give_memory_back() -> None:
    """Hand memory that Arrow holds without using it back to the system. It takes a millisecond."""
    for pool in (pa.default_memory_pool(), reading_pool()):
        pool.release_unused()


def joined(parts: Sequence[list[pa.ChunkedArray]], columns: int) -> Iterator[pa.ChunkedArray]:
    """Each column of all files, one after another; what has been given out is not held here. `parts`: of each file."""
    for _ in range(columns):
        arrays = [part.pop(0) for part in parts]
        if len({array.type for array in arrays}) > 1:  # text of a file that holds none of it has no dictionary
            arrays = [array.cast(pa.large_string()) for array in arrays]
        chunks = [chunk for array in arrays for chunk in array.chunks]
        yield pa.chunked_array(chunks, arrays[0].type if arrays else pa.large_string())
