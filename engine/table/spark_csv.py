"""CSV through Spark: its reader's options, and what its reader does to line ends."""

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
# Spark takes any text as null that equals this option, quoted or not, so it must be one that no file holds.
_NO_TEXT = "\ue000tuplewise:null\ue001"
# Below this, one task reads a file in the time that it takes to start more.
SPLIT_BYTES = 128 << 20


def java_encoding(encoding: str) -> str:
    """The name that Java knows one of Python's encodings by."""
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
    """`scan_table` of files behind a URL, whose bytes come through Spark."""
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


def with_blank_rows(table: pa.Table, places: RowPlaces, rows: int) -> pa.Table:
    """A one-column table with a row of nulls for each blank line; `rows`: how many rows were brought."""
    position = places.position[:rows]
    size = places.data_rows if rows == len(places.position) else int(position[-1]) + 1 if rows else 0
    index = np.full(size, -1, dtype=np.int64)
    index[position] = np.arange(rows)
    return table.take(pa.array(index, mask=index < 0))
