"""The names of a local table's columns before it is loaded: what is wrong with a rule is said before Spark starts."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import IO

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv import dialect_of
from tuplewise.engine.table.csv_front import front_of, front_text
from tuplewise.engine.table.csv_scan import scan_csv
from tuplewise.engine.table.schema import numbered_names, repair_names, selected_columns
from tuplewise.engine.table.source import Source, find_source, opened

_FIRST_CHARACTERS = 1 << 20


def column_names(given: str, options: LoadOptions) -> list[str] | None:
    """The columns that loading will give, by their names; None where they can't be told without loading.

    Raises InputError where there is no such file, or no column of a name that was asked for.
    """
    source = find_source(given)
    names = _header(source, options)
    if not names:
        return None
    repaired, _ = repair_names(names)
    return [repaired[i] for i in selected_columns(repaired, options, source.name)]


def _header(source: Source, options: LoadOptions) -> list[str] | None:
    import pyarrow as pa

    if not source.local:
        return None
    try:
        if source.format == "csv":
            with opened(source.files[0]) as stream:
                return _csv_header(stream, source, options)
        if source.format == "parquet" and len(source.files) == 1 and "=" not in source.files[0]:
            import pyarrow.parquet as pq

            return list(pq.read_schema(source.files[0]).names)
    except (InputError, LookupError, OSError, pa.ArrowException):  # loading will say it
        return None
    return None


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
    """The lines up to the end of the first record that isn't blank: those behind it may break off in a field."""
    end, inside = 0, False
    while end < len(text):
        start, end = end, text.find("\n", end) + 1 or len(text)
        inside ^= bool(quote) and text.count(quote, start, end) % 2 == 1
        if not inside and text[:end].strip("\r\n\ufeff"):
            break
    return text[:end]
