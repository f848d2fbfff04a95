"""Results as CSV: a line for each constraint or dependency, for each violating pair, or for each rule checked."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuplewise.engine.report.cells import texts

if TYPE_CHECKING:
    import pyarrow as pa


def pieces(entries: Iterable[Mapping[str, Any]], fields: Sequence[str]) -> Iterator[str]:
    """A header, then a line for each constraint, or other record: these fields of it; None is an empty field."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(fields)
    yield buffer.getvalue()
    for entry in entries:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([_cell(entry[name]) for name in fields])
        yield buffer.getvalue()


def _cell(value: Any) -> Any:
    """Booleans as JSON and Arrow have them; several names as `--columns` takes them."""
    if isinstance(value, (list, tuple)):
        return names(value)
    return str(value).lower() if isinstance(value, bool) else value


def names(several: Sequence[str]) -> str:
    """Column names with commas between them; a name that holds a comma or quotes stands in double quotes.

    Examples
    --------
    >>> names(["zip", "first, last"]), names([])
    ('zip,"first, last"', '')
    """
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(several)  # so that a name with either stands in quotes
    return buffer.getvalue().removesuffix("\r\n")


def table_pieces(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[bytes]:
    """A header, then a line for each row of some tables of one schema, in UTF-8.

    Text and names stand in quotes; null is an empty field without them.
    """
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    def written(table: pa.Table, with_names: bool) -> bytes:
        columns = [texts(c) if pa.types.is_timestamp(c.type) else c for c in table.columns]
        sink = pa.BufferOutputStream()
        write_csv(pa.table(columns, names=schema.names), sink, WriteOptions(include_header=with_names))
        return bytes(sink.getvalue())

    yield written(schema.empty_table(), True)
    for table in tables:
        yield written(table, False)
