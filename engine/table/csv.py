"""CSV files: headers, and rows read by Arrow, or by our own parser where Arrow would read a file differently.

Each file is scanned first (csv_scan). The scan finds where records begin, which gives each row its position and line
and makes sure that no record is lost: if Arrow finds another number of records, or has no option for the file's
dialect, `split_fields` parses the file instead. It is slower and follows the rules exactly.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from tuplewise.engine.errors import InputError, Wording, message, number_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv_front import Front, front_of
from tuplewise.engine.table.csv_hints import hint_on_bad_rows
from tuplewise.engine.table.csv_scan import CsvScan, Dialect, TableExtent, scan_csv
from tuplewise.engine.table.raw import CSV_LABEL, BadRows, RawRows, RawTable, RowPlaces, joined, reading_pool
from tuplewise.engine.table.schema import numbered_names
from tuplewise.engine.table.source import Source, opened, packing_of

_BLOCK_BYTES = 4 << 20
_MOST_BLOCK_BYTES = (1 << 31) - 1
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*")
_MARK_BYTES = 3  # of a byte order mark in UTF-8


@dataclass(frozen=True)
class CsvTable:
    """A CSV table before its types are known.

    Attributes
    ----------
    names : header, as it stands in the file
    scans : one for each file, in order
    texts : the decoded text of each file that is packed or not in UTF-8; None for other files
    """

    names: list[str]
    scans: list[CsvScan]
    dialect: Dialect
    notes: list[str]
    texts: list[bytes | None]


def dialect_of(source: Source, options: LoadOptions) -> Dialect:
    """The dialect of the files. Raises InputError for an unknown encoding."""
    try:
        encoding = codecs.lookup(options.encoding).name
    except LookupError:
        allowed = "a name such as utf-8, latin-1, cp1252, utf-16"
        raise InputError(message("encoding", options.encoding, allowed)) from None
    return Dialect(options.sep or source.sep, options.quote, options.escape, encoding)


def scan_table(source: Source, options: LoadOptions, *, keep: bool = False) -> CsvTable:
    """Scan the local files of a CSV table.

    `keep`: keep the text of files that are packed or not in UTF-8, so that they are unpacked only once. Raises
    InputError if there is no data or headers differ.
    """
    dialect = dialect_of(source, options)
    plain = dialect.encoding in ("utf-8", "ascii")
    front = front_of(source.files, opened, dialect, options)
    scans, texts = [], []
    for path, skip in zip(source.files, front.skipped, strict=True):
        kept: list[bytes] | None = [] if keep and not (plain and packing_of(path) is None) else None
        part = TableExtent(skip, options.skip_footer, options.header)
        with opened(path) as stream:
            scans.append(scan_csv(stream, path, front.dialect, kept, part))
        texts.append(None if kept is None else b"".join(kept))
    return with_header(source.given, list(source.files), scans, texts, front, options)


def with_header(
    given: str, paths: Sequence[str], scans: list[CsvScan], texts: list[bytes | None], front: Front,
    options: LoadOptions,
) -> CsvTable:  # fmt: skip
    """Join scanned files into one table. Raises InputError if there is no data or headers differ."""
    filled = [i for i, s in enumerate(scans) if len(s.lines)]
    if not filled:
        if options.lines_in_front or options.skip_footer:
            fewer = Wording("Leave out fewer lines: {skip_rows}, {skip_footer}")
            raise InputError(message("nothing is left of this file without what is passed over", given, hint=fewer))
        hint = "A table without rows has a line of column names"
        raise InputError(message("this file is empty: it has no header and no rows", given, hint=hint))
    first = scans[filled[0]].first_record
    notes = [*front.notes, *empty_note([path for path, scan in zip(paths, scans, strict=True) if not len(scan.lines)])]
    controls = next((path for path, scan in zip(paths, scans, strict=True) if scan.controls), None)
    if controls is not None:
        text = (
            "{} holds control characters in latin-1, which are quotes and dashes in Windows' encoding: "
            "is it cp1252? ({encoding})"
        )
        notes.append(Wording(text, controls, encoding="cp1252"))
    if options.header:
        for i in filled:
            if scans[i].first_record != first:
                what = f"the header of {paths[i]} is not that of {paths[filled[0]]}"
                hint = "Load files of one header together"
                raise InputError(message(what, scans[i].first_record, str(first), hint))
        names = first
        notes += [] if front.named else separator_notes(first, options)
        notes += header_notes(first)
    else:
        names = numbered_names(len(first))
    return CsvTable(names, scans, front.dialect, notes, texts)


def separator_notes(header: list[str], options: LoadOptions) -> list[str]:
    """A note if a table of one column seems to use another separator."""
    if len(header) == 1 and options.sep is None:
        other = next((c for c in ";\t|" if c in header[0]), None)
        if other is not None:
            return [f"one column was found, and its name holds {other!r}: is that the separator? (option sep)"]
    return []


def header_notes(header: list[str]) -> list[str]:
    """A note if all column names are numbers: the header may be a data row."""
    if all(_NUMBER.fullmatch(name.strip()) for name in header):
        shown = ", ".join(map(repr, header[:3])) + (", ..." if len(header) > 3 else "")
        return [Wording("the header holds numbers only ({}): is it a row? ({header})", shown, header=False)]
    return []


def empty_note(paths: Sequence[str]) -> list[str]:
    """A note on the empty files of a table."""
    return [f"{number_of(len(paths), 'empty file')} passed over, e.g. {paths[0]}"] if paths else []


def blank_note(lines: int) -> list[str]:
    """A note on skipped blank lines."""
    return [f"{number_of(lines, 'blank line')} skipped"] if lines else []


def row_places(table: CsvTable, header: bool) -> RowPlaces:
    """Positions and lines of all records. In a table of one column a blank line is a row of null that has no record."""
    one = len(table.names) == 1
    positions: list[NDArray[np.int64]] = []
    lines: list[NDArray[np.int64]] = []
    files: list[NDArray[np.int32]] = []
    before = 0
    for i, scan in enumerate(table.scans):
        skip = 1 if header and len(scan.lines) else 0
        records = np.arange(len(scan.lines) - skip, dtype=np.int64)
        after_header = scan.blank_before[scan.blank_before >= skip] - skip if skip else scan.blank_before
        if one:
            positions.append(before + records + np.searchsorted(after_header, records, side="right"))
            before += len(records) + len(after_header)
        else:
            positions.append(before + records)
            before += len(records)
        lines.append(scan.lines[skip:])
        files.append(np.full(len(records), i, dtype=np.int32))
    blank = _blank_lines(table, header)
    return RowPlaces(np.concatenate(positions), np.concatenate(lines), np.concatenate(files), before, blank)


def _blank_lines(table: CsvTable, header: bool) -> int:
    """The number of blank lines that are not rows. In a table of one column these are the ones before the header."""
    if len(table.names) > 1:
        return sum(len(scan.blank_before) for scan in table.scans)
    return sum(int(np.count_nonzero(scan.blank_before == 0)) for scan in table.scans if header and len(scan.lines))


def lacks_fields(table: CsvTable, files: Sequence[str], options: LoadOptions) -> BadRows:
    """The fault of rows with a wrong number of fields. `files`: the local files, if any."""
    columns = len(table.names)
    fields = number_of(columns, "field")

    def hint(places: RowPlaces, bad: NDArray[np.int64]) -> str | None:
        return hint_on_bad_rows(files, table.scans, table.dialect, options, places, bad)

    return BadRows(f"does not have {fields}", f"do not have {fields}", hint if files else None)


def bad_rows_note(
    places: RowPlaces, bad: NDArray[np.int64], faults: BadRows, files: Sequence[str], policy: str
) -> str:
    """A note on malformed rows. Raises InputError if the policy is to fail.

    `bad`: int64, their positions.
    """
    rows = np.searchsorted(places.position, bad)
    shown = rows[:10]
    if len(files) > 1:
        listed = ", ".join(f"{files[places.file[i]]}:{places.line[i]}" for i in shown)
    else:
        listed = ", ".join(str(places.line[i]) for i in shown)
    more = f" and {len(rows) - len(shown)} more" if len(rows) > len(shown) else ""
    one = len(rows) == 1
    fault = faults.of_one if one else faults.of_several
    what = f"{number_of(len(rows), 'row')} {fault} (line{'' if one else 's'} {listed}{more})"
    if policy == "fail":
        hint = faults.hint(places, bad) if faults.hint is not None else None
        leave_out = Wording("Mend them, or leave them out with {bad_rows}", bad_rows="report")
        raise InputError(message(what, hint=hint or leave_out))
    return f"{what}: left out; positions count them"


def csv_table(source: Source, options: LoadOptions) -> RawTable:
    """A CSV table, ready to be read in this process."""
    table = scan_table(source, options, keep=True)
    count = len(table.names)
    rows_of_files = [_rows_of(scan, options.header, count) for scan in table.scans]

    def read(kept: Sequence[int]) -> RawRows:
        parts, bad = [], []
        before = 0
        for i, path in enumerate(source.files):
            if rows_of_files[i]:
                part, own = _read_file(path, table, i, kept, rows_of_files[i], options.header)
                parts.append(part)
                bad.append(own + before)
            before += rows_of_files[i]
        return RawRows(joined(parts, len(kept)), np.concatenate([np.empty(0, np.int64), *bad]), places)

    @cache
    def places() -> RowPlaces:
        return row_places(table, options.header)

    notes = (*table.notes, *blank_note(_blank_lines(table, options.header)))
    return RawTable(
        list(table.names), ["infer"] * count, [CSV_LABEL] * count, rows_of_files, read, source.files, notes,
        lacks_fields(table, source.files, options),
    )  # fmt: skip


def _rows_of(scan: CsvScan, header: bool, columns: int) -> int:
    """The number of data rows of a file. In a table of one column blank lines after the header count too."""
    if not len(scan.lines):
        return 0
    rows = len(scan.lines) - int(header)
    if columns > 1:
        return rows
    return rows + int(np.count_nonzero(scan.blank_before >= int(header)))


def _read_file(
    path: str, table: CsvTable, file: int, kept: Sequence[int], rows: int, header: bool
) -> tuple[list[pa.ChunkedArray], NDArray[np.int64]]:
    """The columns of one file, and the numbers of its malformed rows."""
    scan, dialect = table.scans[file], table.dialect
    start = scan.header_end if header else scan.begin
    sep, quote = dialect.sep.encode(), dialect.quote.encode()
    ordinary = dialect.escape is None and len(sep) == 1 and len(quote) <= 1 and not scan.stray_returns
    if ordinary and sep not in (b"\r", b"\n", b"\0", quote):
        found = _by_arrow(path, table, file, kept, start)
        if found is not None and (len(found[0][0]) if kept else 0) + len(found[1]) == rows:
            return found
    return _by_the_letter(path, table, file, kept, start)


def _by_arrow(
    path: str, table: CsvTable, file: int, kept: Sequence[int], start: int
) -> tuple[list[pa.ChunkedArray], NDArray[np.int64]] | None:
    """See `_read_file`. None if Arrow can't read the file. The columns are dictionary-encoded, block by block."""
    scan, dialect, columns = table.scans[file], table.dialect, len(table.names)
    names = [f"c{i}" for i in range(columns)]
    text = pa.dictionary(pa.int32(), pa.large_string())
    bad: list[int | None] = []

    def skip(row: arrow_csv.InvalidRow) -> str:
        bad.append(row.number)
        return "skip"

    def attempt(block_bytes: int, threads: bool) -> pa.Table:
        bad.clear()
        with _body(path, table, file, start) as stream:
            return arrow_csv.read_csv(
                stream,
                memory_pool=reading_pool(),
                read_options=arrow_csv.ReadOptions(column_names=names, block_size=block_bytes, use_threads=threads),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=dialect.sep, quote_char=dialect.quote or False, double_quote=bool(dialect.quote),
                    newlines_in_values=scan.quoted_newlines, ignore_empty_lines=columns > 1, invalid_row_handler=skip,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, text), strings_can_be_null=True, null_values=[""],
                    quoted_strings_can_be_null=False, include_columns=[names[i] for i in kept], check_utf8=False,
                ),
            )  # fmt: skip

    block_bytes = _BLOCK_BYTES
    try:
        try:
            found = attempt(block_bytes, True)
        except pa.ArrowInvalid:  # a record that is longer than a block
            block_bytes = _MOST_BLOCK_BYTES
            found = attempt(block_bytes, True)
        if bad:
            found = attempt(block_bytes, False)  # by one thread, the numbers of rows are known
    except pa.ArrowInvalid:
        return None
    arrays = list(found.columns)
    if columns - 1 in kept:
        last = list(kept).index(columns - 1)
        arrays[last] = _with_last_null(arrays[last], path, table, file)
    return arrays, np.array([number - 1 for number in bad if number is not None], dtype=np.int64)


def _body(path: str, table: CsvTable, file: int, start: int) -> pa.NativeFile:
    """A stream of a file's text from a byte on, without a byte order mark or footer."""
    text, end = table.texts[file], table.scans[file].end
    if text is not None:
        return pa.BufferReader(pa.py_buffer(text)[start:end])
    stream = pa.OSFile(path)
    mark = _MARK_BYTES if table.scans[file].marked else 0
    if end is not None:
        return stream.get_stream(start + mark, end - start)
    stream.seek(start + mark)
    return stream


def _with_last_null(last: pa.ChunkedArray, path: str, table: CsvTable, file: int) -> pa.ChunkedArray:
    """The last column, with a null as its last value if the file ends with a separator.

    After a quoted field Arrow reads such a field as an empty string.
    """
    if not len(last) or last[-1].as_py() != "" or table.scans[file].end is not None:
        return last
    sep, text = table.dialect.sep.encode(), table.texts[file]
    if text is None:
        with open(path, "rb") as stream:
            stream.seek(-len(sep), 2)
            text = stream.read()
    if not text.endswith(sep):
        return last
    return pa.chunked_array([*last.slice(0, len(last) - 1).chunks, pa.nulls(1, last.type)])


def _by_the_letter(
    path: str, table: CsvTable, file: int, kept: Sequence[int], start: int
) -> tuple[list[pa.ChunkedArray], NDArray[np.int64]]:
    """See `_read_file`. Parses record by record."""
    columns = len(table.names)
    with _body(path, table, file, start) as stream:
        text = stream.read().decode()
    cells: list[list[str | None]] = [[] for _ in kept]
    bad = []
    for row, fields in enumerate(split_fields(text, table.dialect, columns, table.scans[file].returns)):
        if len(fields) != columns:
            bad.append(row)
            continue
        for own, i in zip(cells, kept, strict=True):
            own.append(fields[i])
    arrays = [pa.chunked_array([pa.array(own, pa.large_string())]) for own in cells]
    return arrays, np.array(bad, dtype=np.int64)


def split_fields(text: str, dialect: Dialect, columns: int, returns: bool) -> Iterator[list[str | None]]:
    """The records of a text as lists of fields. An empty field without quotes is None.

    `columns`: the fields that a record should have; a blank line is a record if that is one, else it is skipped.
    `returns`: lines end with CR LF.

    Examples
    --------
    >>> list(split_fields('1,"a""b"\\n\\n,""\\n', Dialect(",", '"', None, "utf-8"), 2, False))
    [['1', 'a"b'], [None, '']]
    """
    newline = "\r" if "\n" not in text and "\r" in text else "\n"
    sep, quote, escape = re.escape(dialect.sep), re.escape(dialect.quote), re.escape(dialect.own_escape or "")
    quoted_part = rf"(?:({quote})({dialect.quoted}){quote})?" if quote else "()()"
    field = re.compile(rf"{quoted_part}((?:(?!{sep})[^{newline}])*+)(?:({sep})|{newline}|\Z)")
    at, record = 0, list[str | None]()
    while at < len(text) or record:
        found = field.match(text, at)
        assert found is not None, "the scan has found quotes that don't close"
        opening, quoted, plain, goes_on = found.groups()
        last = not goes_on
        if last and returns and found.end() > found.end(3):
            plain = plain.removesuffix("\r")
        if opening:
            if escape:
                quoted = re.sub(rf"{escape}([{quote}{escape}])", r"\1", quoted)
            else:
                quoted = quoted.replace(dialect.quote * 2, dialect.quote)
            record.append(quoted + plain)
        else:
            record.append(plain or None)
        at = found.end()
        if last:
            if columns == 1 or record != [None]:
                yield record
            record = []
