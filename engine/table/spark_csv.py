"""CSV through Spark: options of its reader, and its treatment of line ends."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv import CsvTable, dialect_of, with_header
from tuplewise.engine.table.csv_front import front_of
from tuplewise.engine.table.csv_scan import Dialect, scan_csv
from tuplewise.engine.table.raw import RowPlaces
from tuplewise.engine.table.source import Source

BAD = "_bad"
# Spark reads text equal to this option as null, even if quoted, so it must be text that occurs in no file.
_NO_TEXT = "\ue000tuplewise:null\ue001"
# One task reads a smaller file in the time that it takes to start more tasks.
SPLIT_BYTES = 128 << 20


def java_encoding(encoding: str) -> str:
    """Java's name for one of Python's encodings."""
    name = codecs.lookup(encoding).name
    known = {
        "iso8859-1": "ISO-8859-1",
        "utf-8-sig": "UTF-8",
        "ascii": "US-ASCII",
        "utf-16-le": "UTF-16LE",
        "utf-16-be": "UTF-16BE",
    }
    if name in known:
        return known[name]
    if name.startswith("cp125"):
        return "windows-" + name[2:]
    return name.replace("iso8859-", "ISO-8859-").replace("_", "-").upper()


def scan_remote(spark: SparkSession, source: Source, options: LoadOptions) -> CsvTable:
    """See `csv.scan_table`; for files behind a URL, whose bytes are read through Spark."""
    table = spark.read.format("binaryFile").load(list(source.paths)).select("path", "content").toArrow().sort_by("path")
    paths = table["path"].to_pylist()

    @contextmanager
    def content_of(path: str) -> Iterator[IO[bytes]]:
        stream = pa.BufferReader(table["content"][paths.index(path)].as_buffer())
        codec = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}.get(path.rsplit(".", 1)[-1])
        yield pa.CompressedInputStream(stream, codec) if codec else stream

    front = front_of(paths, content_of, dialect_of(source, options), options)
    if front.named:
        what = f"Spark can't pass over the first line of {source.given}, which names the separator"
        raise InputError(message(what, front.dialect.sep, hint="Take that line out, or read a local copy"))
    scans = []
    for path in paths:
        with content_of(path) as stream:
            scans.append(scan_csv(stream, path, front.dialect))
    return with_header(source.given, paths, scans, [None] * len(scans), front, options)


def read_text(spark: SparkSession, source: Source, table: CsvTable, options: LoadOptions, *, split: bool) -> DataFrame:
    """The table as text: columns c0, c1, ..., and in BAD the whole record if its number of fields is wrong.

    `split`: several tasks may read one file, if no record spans lines.
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
        # RFC 4180's doubled quotes. Only set if a file needs it, since it moves the scan off the GPU.
        reader = reader.option("escape", dialect.quote)
    frame = reader.csv(list(source.paths))
    if inner_returns(table) != "restore":
        return frame
    columns = [f.replace(c, f.lit("\n"), f.lit("\r\n")).alias(c) for c in frame.columns if c != BAD]
    return frame.select(*columns, BAD)


def plain_options(dialect: Dialect) -> dict[str, str]:
    """Options that make Spark's reader return fields unchanged."""
    return {
        "sep": dialect.sep,
        "quote": dialect.quote,
        "nullValue": _NO_TEXT,
        "emptyValue": "",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": BAD,
        "columnPruning": "false",  # with pruning, the number of fields would not be checked
        "encoding": java_encoding(dialect.encoding),
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        "maxCharsPerColumn": "-1",
    }


def inner_returns(table: CsvTable) -> Literal["plain", "restore", "lost"]:
    """The fate of CR LF inside quotes. If records end with CR LF, Spark's reader turns it into LF.

    It can be restored if all newlines inside quotes were CR LF.
    """
    multiline = [s for s in table.scans if s.inner_newlines]
    if not any(s.returns and s.inner_returns for s in multiline):
        return "plain"
    return "restore" if all(s.returns and s.inner_newlines == s.inner_returns for s in multiline) else "lost"


def can_split(table: CsvTable) -> bool:
    """Whether lines are records in all files, and Spark's line reader finds the same ones as its record reader.

    The line reader drops lines of white space: rows of empty fields, if the separator is a blank or a tab.
    """
    if any(s.quoted_newlines for s in table.scans) or table.dialect.sep.isspace():
        return False
    return len(table.names) > 1 and java_encoding(table.dialect.encoding) == "UTF-8"


def with_blank_rows(table: pa.Table, places: RowPlaces, rows: int) -> pa.Table:
    """A one-column table with a null row for each blank line. `rows`: the rows that Spark returned."""
    position = places.position[:rows]
    size = places.data_rows if rows == len(places.position) else int(position[-1]) + 1 if rows else 0
    index = np.full(size, -1, dtype=np.int64)
    index[position] = np.arange(rows)
    return table.take(pa.array(index, mask=index < 0))
