"""Distinct values of each column of local CSV files, in one pass over the bytes, on all cores, without a JVM.

This reader takes only files that it reads exactly as loading does (docs/concepts/types.md). Odd files
and all errors are left to loading, so that there is one reading and one message.
"""

from __future__ import annotations

import codecs
import io
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import IO

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv import blank_note, header_notes, separator_notes
from tuplewise.engine.table.csv_front import OTHER_SEPARATORS, named_separator
from tuplewise.engine.table.csv_scan import Dialect, scan_csv
from tuplewise.engine.table.schema import numbered_names
from tuplewise.engine.table.source import Source, opened
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.distinct import PADDING, DistinctCells

BLOCK_BYTES = 1 << 20  # read at once; the cells of a block stay in the cache while each column takes its own
BLOCK_BYTES_PER_COLUMN = 1 << 12
MOST_BLOCK_BYTES = 1 << 30  # of one record; longer ones are left to loading
_SEPARATOR, _NEWLINE, _QUOTE, _RETURN = 1, 2, 3, 4


class _Odd(Exception):
    """A file that is left to another reader."""


@dataclass(frozen=True, eq=False)
class CsvCells:
    """The distinct values of a CSV table.

    Attributes
    ----------
    names : the header as it stands in the file
    columns : values of each requested column, in parts; other columns have none
    rows : number of rows, without blank ones unless the table has one column
    blank_rows : number of blank (so null) rows in a table of one column; else 0
    notes : the notes of loading such a file
    """

    names: list[str]
    columns: list[list[DistinctCells]]
    rows: int
    blank_rows: int
    notes: list[str]


def read_csv_cells(
    source: Source,
    options: LoadOptions,
    kept: Callable[[list[str]], Sequence[int]],
    tell: Callable[[float], None] | None = None,
    *,
    threads: int | None = None,
) -> CsvCells | None:
    """Read the distinct values of the columns of CSV files.

    Parameters
    ----------
    kept : returns the wanted columns, given the header
    tell : called with the fraction of bytes read so far; an exception from it ends the reading

    Returns
    -------
    CsvCells, or None if loading has to read the table: files that aren't local or aren't UTF-8, an escape character, a
    number of rows, a separator of several bytes; invalid UTF-8, NUL, quotes inside fields or left open, carriage
    returns inside lines, mixed line endings, headers that differ, records of differing lengths

    Notes
    -----
    Each byte is read three times (to check the text, find record ends and find field ends), each cell once. Memory:
    the distinct values of each thread (see DistinctCells) and a block for each thread.
    """
    if not _readable(source, options):
        return None
    reading = _Reading(source, options, kept, tell)
    try:
        reading.run(threads or usable_cores())
    except _Odd:
        return None
    return reading.result()


def _readable(source: Source, options: LoadOptions) -> bool:
    sep = (options.sep or source.sep).encode()
    try:
        encoding = codecs.lookup(options.encoding).name
    except LookupError:
        return False
    here = source.local and not source.folder_columns and not options.for_arrow and options.reader != "spark"
    plain = here and options.escape is None and options.rows is None and encoding in ("utf-8", "ascii")
    ordinary = len(sep) == 1 and len(options.quote.encode()) <= 1 and sep != options.quote.encode()
    return plain and ordinary and not {sep, options.quote.encode()} & {b"\r", b"\n", b"\0"}


@dataclass(eq=False)
class _Worker:
    """Results of one thread."""

    cells: list[DistinctCells]
    rows: int = 0
    figures: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, dtype=np.int64))


class _Reading:
    def __init__(
        self,
        source: Source,
        options: LoadOptions,
        kept: Callable[[list[str]], Sequence[int]],
        tell: Callable[[float], None] | None,
    ) -> None:
        self._source, self._options, self._kept = source, options, kept
        self._share_read = tell
        self._sep = options.sep or source.sep
        self._ascii = codecs.lookup(options.encoding).name == "ascii"
        self._quote = ord(options.quote) if options.quote else -1
        self._header: list[str] | None = None
        self._columns: list[int] = []
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._blank_in_front = 0
        self._read_bytes = 0

    def run(self, threads: int) -> None:
        for path in self._source.files:
            with opened(path) as stream:
                self._run_file(_File(stream, os.path.getsize(path), self._quote), threads)

    def _run_file(self, file: _File, threads: int) -> None:
        first = file.first_record()
        if first is None:
            raise _Odd
        self._take_header(first, file)
        if not self._workers:
            self._workers = [_Worker([DistinctCells() for _ in self._columns]) for _ in range(threads)]
        workers = self._workers if file.more() else self._workers[:1]
        with ThreadPoolExecutor(len(workers)) as pool:
            try:
                for one in as_completed([pool.submit(self._work, worker, file) for worker in workers]):
                    one.result()
            finally:
                file.stop()

    def _take_header(self, record: bytes, file: _File) -> None:
        dialect = Dialect(self._sep, self._options.quote, None, "utf-8")
        try:
            scan = scan_csv(io.BytesIO(record), "", dialect)
        except InputError:
            raise _Odd from None
        if len(scan.lines) != 1 or scan.inner_newlines or b"\0" in record:
            raise _Odd
        header = scan.first_record
        if self._options.sep is None:  # loading may detect another separator
            other = self._sep == "," and len(header) == 1 and any(sep in header[0] for sep in OTHER_SEPARATORS)
            if other or named_separator(record.decode(), dialect.quote):
                raise _Odd
        if self._header is None:
            self._header = header if self._options.header else numbered_names(len(header))
            self._columns = list(self._kept(self._header))
        elif (self._options.header and header != self._header) or len(header) != len(self._header):
            raise _Odd
        self._blank_in_front += file.blank
        if self._options.header:
            file.skip(record)

    def _work(self, worker: _Worker, file: _File) -> None:
        from tuplewise.gpu_kernels.cpu import distinct_csv as cpu

        assert self._header is not None
        fields = len(self._header)
        block = max(BLOCK_BYTES, BLOCK_BYTES_PER_COLUMN * fields)
        data = np.zeros(2 * block + PADDING, dtype=np.uint8)
        starts = sizes = np.empty((fields, 0), dtype=np.int32)
        kinds = np.zeros(256, dtype=np.uint8)
        kinds[ord("\n")], kinds[ord("\r")], kinds[ord(self._sep)] = _NEWLINE, _RETURN, _SEPARATOR
        if self._quote >= 0:
            kinds[self._quote] = _QUOTE
        while True:
            data, used = file.block(data, block)
            if used == 0:
                return
            room = used // fields + 2
            if starts.shape[1] < room:
                starts, sizes = np.empty((fields, room), dtype=np.int32), np.empty((fields, room), dtype=np.int32)
            self._check_bytes(data[:used])
            rows = cpu.split_records(data, used, kinds, starts, sizes, worker.figures)
            if rows < 0:
                raise _Odd
            worker.rows += rows
            for cells, c in zip(worker.cells, self._columns, strict=True):
                cells.add(data, starts[c, :rows], sizes[c, :rows])
            self._tell(used, file)

    def _check_bytes(self, data: NDArray[np.uint8]) -> None:
        """Raise _Odd for invalid UTF-8 (or ASCII), and for NUL."""
        import pyarrow as pa

        lowest, highest = int(data.min()), int(data.max())
        if lowest == 0:
            raise _Odd
        if highest < 0x80:
            return
        if self._ascii:
            raise _Odd
        offsets = np.array([0, len(data)], dtype=np.int64)
        text = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            raise _Odd from None

    def _tell(self, used: int, file: _File) -> None:
        if self._share_read is not None:
            with self._lock:
                self._read_bytes += used
                self._share_read(min(1.0, self._read_bytes / max(1, file.size)))

    def result(self) -> CsvCells | None:
        assert self._header is not None
        figures = np.sum([w.figures for w in self._workers], axis=0)
        blank, plain, returned = (int(n) for n in figures)
        if plain and returned:
            return None
        rows = sum(w.rows for w in self._workers)
        columns: list[list[DistinctCells]] = [[] for _ in self._header]
        for i, c in enumerate(self._columns):
            columns[c] = [w.cells[i] for w in self._workers if w.cells[i].distinct + w.cells[i].nulls]
        nulls = blank if len(self._header) == 1 else 0
        notes = [*self._source.notes]
        if self._options.header:
            notes += [*separator_notes(self._header, self._options), *header_notes(self._header)]
        notes += blank_note(blank - nulls + self._blank_in_front)
        return CsvCells(self._header, columns, rows + nulls, nulls, notes)


class _File:
    """Source of blocks of whole records of a file, for several threads."""

    def __init__(self, stream: IO[bytes], size: int, quote: int) -> None:
        self._stream, self.size, self._quote = stream, size, quote
        self._lock = threading.Lock()
        self._rest = np.empty(0, dtype=np.uint8)
        self._ended = False
        self.blank = 0

    def stop(self) -> None:
        """Hand out no more blocks."""
        with self._lock:
            self._ended, self._rest = True, self._rest[:0]

    def more(self) -> bool:
        return not self._ended

    def first_record(self) -> bytes | None:
        """The first record that isn't blank, with its line end, or None. Nothing is consumed."""
        from tuplewise.gpu_kernels.cpu import distinct_csv as cpu

        data = self._read(BLOCK_BYTES)
        if data[:3] == b"\xef\xbb\xbf":
            data = data[3:]
        begin = 0
        while data[begin : begin + 1] in (b"\n", b"\r"):
            if data[begin : begin + 1] == b"\r" and data[begin + 1 : begin + 2] != b"\n":
                raise _Odd
            begin += 1 if data[begin : begin + 1] == b"\n" else 2
            self.blank += 1
        self._rest = np.frombuffer(data[begin:], dtype=np.uint8)
        if not len(self._rest):
            return None
        end = cpu.first_record_end(self._rest, 0, len(self._rest), self._quote)
        if end == len(self._rest) and not self._ended:
            raise _Odd  # a header of a megabyte
        return self._rest[:end].tobytes()

    def skip(self, record: bytes) -> None:
        self._rest = self._rest[len(record) :]

    def _read(self, wanted: int) -> bytes:
        data = bytes(self._stream.read(wanted))
        if len(data) < wanted:  # a read of a compressed stream may be short before its end
            parts = [data]
            while parts[-1]:
                parts.append(bytes(self._stream.read(wanted)))
            data = b"".join(parts)
            self._ended = True
        return data

    def block(self, data: NDArray[np.uint8], size: int) -> tuple[NDArray[np.uint8], int]:
        """Read whole records to the front of `data` or a larger array; returns it and their bytes, 0 at the end."""
        from tuplewise.gpu_kernels.cpu import distinct_csv as cpu

        with self._lock:
            used = len(self._rest)
            while True:
                more = b"" if self._ended else self._read(size)
                if used + len(more) + PADDING > len(data):
                    data = np.zeros(2 * (used + len(more)) + PADDING, dtype=np.uint8)
                data[: len(self._rest)] = self._rest
                data[used : used + len(more)] = np.frombuffer(more, dtype=np.uint8)
                used += len(more)
                end = used if self._ended else cpu.last_record_end(data, used, self._quote)
                if end or self._ended:
                    self._rest = data[end:used].copy()
                    return data, end
                if used > MOST_BLOCK_BYTES:
                    raise _Odd
                self._rest = data[:used].copy()
