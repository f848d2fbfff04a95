"""The column names of a table before it is read, so that faults in rules are reported first."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from typing import IO, Any

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv import dialect_of
from tuplewise.engine.table.csv_front import front_of, front_text
from tuplewise.engine.table.csv_scan import scan_csv
from tuplewise.engine.table.files import common_schema
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import numbered_names, repair_names, selected_columns
from tuplewise.engine.table.source import Source, find_source, opened

_FIRST_CHARACTERS = 1 << 20


def known_columns(table: Any, options: LoadOptions) -> list[str] | None:
    """The names of the columns that will be read; None if only reading can tell.

    Raises InputError if there is no such file, or no column of a requested name.
    """
    if isinstance(table, Relation):
        return table.column_names
    if isinstance(table, (str, os.PathLike)):
        source = find_source(os.fspath(table))
        names, name = _header(source, options), source.name
    else:
        kind = kind_of(table)
        lazy = hasattr(table, "collect_schema")  # Polars warns where the columns of a lazy frame are asked for
        frame = table.collect_schema().names() if lazy else getattr(table, "columns", ())
        given = () if kind is None else table.schema.names if kind == "arrow" else frame
        names, name = [str(label) for label in given], "table"
    if not names:
        return None
    repaired, _ = repair_names(names)
    return [repaired[i] for i in selected_columns(repaired, options, name)]


def _header(source: Source, options: LoadOptions) -> list[str] | None:
    import pyarrow as pa

    if not source.local or source.format == "json":
        return None
    try:
        if source.format != "csv":
            own = [field.name for field in common_schema(source).fields]
        else:
            with opened(source.files[0]) as stream:
                found = _csv_header(stream, source, options)
            if found is None:
                return None
            own = found
    except (InputError, LookupError, OSError, pa.ArrowException):  # reading will say it
        return None
    return [*own, *source.folder_columns]


def _csv_header(stream: IO[bytes], source: Source, options: LoadOptions) -> list[str] | None:
    written = dialect_of(source, options)
    front = front_of(source.files, opened, written, options)
    text, _ = front_text(stream, written.encoding, front.skipped[0], _FIRST_CHARACTERS)
    record = _first_record(text, options.quote)
    if "\ufffd" in record:  # a byte that the encoding doesn't allow
        return None
    dialect = replace(front.dialect, encoding="utf-8")
    first = scan_csv(io.BytesIO(record.encode()), source.files[0], dialect).first_record
    return first if options.header else numbered_names(len(first))


def _first_record(text: str, quote: str) -> str:
    """The lines up to the end of the first non-blank record. Later lines may be cut off inside a field."""
    end, inside = 0, False
    while end < len(text):
        start, end = end, text.find("\n", end) + 1 or len(text)
        inside ^= bool(quote) and text.count(quote, start, end) % 2 == 1
        if not inside and text[:end].strip("\r\n\ufeff"):
            break
    return text[:end]
