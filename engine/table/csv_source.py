"""CSV through Spark: the scan of the bytes, the reader's options, and the header."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv_scan import CsvScan, Dialect, scan_csv
from tuplewise.engine.table.schema import numbered_names
from tuplewise.engine.table.source import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tuplewise.engine.table.spark_source import RawTable

BAD = "_bad"
# Spark takes any text as null that equals this option, quoted or not, so it must be one that no file holds.
_NO_TEXT = "\ue000tuplewise:null\ue001"
# Below this, one task reads a file in the time that it takes to start more.
SPLIT_BYTES = 128 << 20


@dataclass(frozen=True)
class CsvTable:
    """A CSV table before its types are known.

    Attributes
    ----------
    names : header, as it stands in the file
    scans : one for each file, in order
    """

    names: list[str]
    scans: list[CsvScan]
    dialect: Dialect
    notes: list[str]


def java_encoding(encoding: str) -> str:
    """The name that Java knows an encoding by. Raises InputError for one that Python doesn't know."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        raise InputError(message("encoding", encoding, "a name such as utf-8, latin-1, cp1252, utf-16")) from None
    known = {
        "iso8859-1": "ISO-8859-1",
        "utf-8-sig": "UTF-8",
        "ascii": "US-ASCII",
        "utf-16-le": "UTF-16LE",
        "utf-16-be": "UTF-16BE",
    }
    if name in known:
        return known[name]
    return (
        name.replace("iso8859-", "ISO-8859-").replace("_", "-").upper()
        if not name.startswith("cp125")
        else "windows-" + name[2:]
    )


def scan_table(source: Source, options: LoadOptions, spark: SparkSession | None) -> CsvTable:
    """Scans all files of a CSV table. Raises InputError where there is no data, or headers differ."""
    java_encoding(options.encoding)
    dialect = Dialect(options.sep or source.sep, options.quote, options.escape, codecs.lookup(options.encoding).name)
    scans = []
    paths = []
    for path, stream in _streams(source, spark):
        scans.append(scan_csv(stream, path, dialect))
        paths.append(path)
    filled = [i for i, s in enumerate(scans) if len(s.lines)]
    if not filled:
        hint = "A table without rows has a line of column names"
        raise InputError(message("this file is empty: it has no header and no rows", source.given, hint=hint))
    first = scans[filled[0]].first_record
    notes = []
    if options.header:
        for i in filled:
            if scans[i].first_record != first:
                hint = "Load files of one header together"
                raise InputError(
                    message(
                        f"the header of {paths[i]} is not that of {paths[filled[0]]}",
                        scans[i].first_record,
                        str(first),
                        hint,
                    )
                )
        names = first
        notes += separator_notes(first, options)
    else:
        names = numbered_names(len(first))
    table = CsvTable(names, scans, dialect, notes)
    if inner_returns(table) == "lost":
        notes.append("line ends inside of quotes are CR LF in places and LF in others: they are not told apart")
    return table


def separator_notes(header: list[str], options: LoadOptions) -> list[str]:
    """A note where a table of one column seems to have another separator."""
    if len(header) == 1 and options.sep is None:
        other = next((c for c in ";\t|" if c in header[0]), None)
        if other is not None:
            return [f"one column was found, and its name holds {other!r}: is that the separator? (option sep)"]
    return []


def blank_note(lines: int) -> list[str]:
    """A note on so many blank lines."""
    return [f"{lines} blank line{'s' if lines > 1 else ''} skipped"] if lines else []


def _streams(source: Source, spark: SparkSession | None):  # type: ignore[no-untyped-def]
    """Each file's path and its bytes, unpacked. Files behind a URL come through Spark."""
    import pyarrow as pa

    if source.local:
        for path in source.files:
            with pa.input_stream(path, compression="detect") as stream:
                yield path, stream
        return
    assert spark is not None
    table = spark.read.format("binaryFile").load(list(source.paths)).select("path", "content").toArrow().sort_by("path")
    for path, content in zip(table["path"].to_pylist(), table["content"], strict=True):
        stream = pa.BufferReader(content.as_buffer())
        ending = path.rsplit(".", 1)[-1]
        codec = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}.get(ending)
        yield path, pa.CompressedInputStream(stream, codec) if codec else stream


def read_text(spark: SparkSession, source: Source, table: CsvTable, options: LoadOptions, *, split: bool) -> DataFrame:
    """The table as text: columns c0, c1, ... and BAD, the record as it stands where its number of fields is wrong.

    `split` lets several tasks read one file, where its records don't span lines.
    """
    dialect = table.dialect
    schema = ", ".join(f"c{i} string" for i in range(len(table.names))) + f", {BAD} string"
    reader = spark.read.schema(schema).options(
        **plain_options(dialect),
        header=str(options.header).lower(),
        enforceSchema="true",
        multiLine=str(not (split and can_split(table))).lower(),
    )
    if dialect.escape is not None:
        reader = reader.option("escape", dialect.escape)
    elif any(s.needs_escape for s in table.scans):
        # RFC 4180's doubled quotes; left out where no file needs it, since the scan leaves the GPU with it.
        reader = reader.option("escape", dialect.quote)
    frame = reader.csv(list(source.paths))
    if inner_returns(table) != "restore":
        return frame
    from pyspark.sql import functions as f

    columns = [f.replace(c, f.lit("\n"), f.lit("\r\n")).alias(c) for c in frame.columns if c != BAD]
    return frame.select(*columns, BAD)


def plain_options(dialect: Dialect) -> dict[str, str]:
    """What Spark's reader must be told so that fields come as they stand in the file."""
    return {
        "sep": dialect.sep,
        "quote": dialect.quote,
        "nullValue": _NO_TEXT,
        "emptyValue": "",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": BAD,
        "columnPruning": "false",  # where columns are left out, a record's number of fields would not be checked
        "encoding": java_encoding(dialect.encoding),
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        "maxCharsPerColumn": "-1",
    }


def inner_returns(table: CsvTable) -> Literal["plain", "restore", "lost"]:
    """What becomes of CR LF inside of quotes: Spark's reader makes LF of it where records end with CR LF.

    It can be put back where all newlines inside of quotes were CR LF.
    """
    multiline = [s for s in table.scans if s.inner_newlines]
    if not any(s.returns and s.inner_returns for s in multiline):
        return "plain"
    return "restore" if all(s.returns and s.inner_newlines == s.inner_returns for s in multiline) else "lost"


def can_split(table: CsvTable) -> bool:
    """Whether lines are records in all files, and Spark's line reader sees the same ones as its record reader."""
    plain = not any(s.quoted_newlines for s in table.scans)
    return (
        plain and len(table.names) > 1 and java_encoding(table.dialect.encoding) == "UTF-8" and not _blank_like(table)
    )


def _blank_like(table: CsvTable) -> bool:
    """The line reader drops lines of white space, so rows of empty fields where the separator is a blank or a tab."""
    return table.dialect.sep.isspace()


@dataclass(frozen=True)
class RowPlaces:
    """Where the rows of a table stand, when Spark gives them in file order.

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


def row_places(table: CsvTable, header: bool) -> RowPlaces:
    """Positions and lines of all rows that Spark gives. In a table of one column a blank line is a row, of null."""
    one = len(table.names) == 1
    positions: list[NDArray[np.int64]] = []
    lines: list[NDArray[np.int64]] = []
    files: list[NDArray[np.int32]] = []
    before = blank = 0
    for i, scan in enumerate(table.scans):
        skip = 1 if header and len(scan.lines) else 0
        records = np.arange(len(scan.lines) - skip, dtype=np.int64)
        after_header = scan.blank_before[scan.blank_before >= skip] - skip if skip else scan.blank_before
        if one:
            positions.append(before + records + np.searchsorted(after_header, records, side="right"))
            blank += len(scan.blank_before) - len(after_header)
            before += len(records) + len(after_header)
        else:
            positions.append(before + records)
            blank += len(scan.blank_before)
            before += len(records)
        lines.append(scan.lines[skip:])
        files.append(np.full(len(records), i, dtype=np.int32))
    return RowPlaces(np.concatenate(positions), np.concatenate(lines), np.concatenate(files), before, blank)


def bad_rows(places: RowPlaces, rows: NDArray[np.int64], raw: RawTable, policy: str) -> str:
    """A note on the rows that can't be taken apart; an InputError where the policy is to fail.

    `rows`: int64, which rows of `places`.
    """
    shown = rows[:10]
    if len(raw.files) > 1:
        listed = ", ".join(f"{raw.files[places.file[i]]}:{places.line[i]}" for i in shown)
    else:
        listed = ", ".join(str(places.line[i]) for i in shown)
    more = f" and {len(rows) - len(shown)} more" if len(rows) > len(shown) else ""
    one = len(rows) == 1
    if raw.labels[0].startswith("JSON"):
        fault = "is not a JSON object" if one else "are not JSON objects"
    else:
        fault = f"{'does' if one else 'do'} not have {len(raw.names)} fields"
    what = f"{len(rows)} row{'' if one else 's'} {fault} (line{'' if one else 's'} {listed}{more})"
    if policy == "fail":
        raise InputError(message(what, hint="Mend them, or leave them out with --bad-rows report"))
    return f"{what}: left out; positions count them"


def with_blank_rows(table: pa.Table, places: RowPlaces, rows: int) -> pa.Table:
    """A one-column table with a row of nulls for each blank line; `rows`: how many rows were brought."""
    import pyarrow as pa

    position = places.position[:rows]
    size = places.data_rows if rows == len(places.position) else int(position[-1]) + 1 if rows else 0
    index = np.full(size, -1, dtype=np.int64)
    index[position] = np.arange(rows)
    return table.take(pa.array(index, mask=index < 0))
