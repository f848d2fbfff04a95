"""The choice of a table's reader, Arrow in this process or Spark, and reading in this process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.spark.session import SUBMITTED
from tuplewise.engine.table.csv import csv_table
from tuplewise.engine.table.files import json_lines, typed_files, with_folder_columns
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.in_spark import IN_PROCESS_BYTES
from tuplewise.engine.table.raw import RawTable
from tuplewise.engine.table.read_table import ReadTable, of_frame, of_raw, of_relation, other_columns
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.source import Source, find_source, packing_of, why_not_spark

ROOM_SHARE = 0.5
"""Share of this machine's memory that a table may take while Arrow reads it. Spark reads larger tables in pieces."""
_BYTES_OF_A_BYTE = {"csv": 3, "json": 8, "parquet": 8, "orc": 8}
_NAMES = {"csv": "CSV", "json": "JSON lines", "parquet": "Parquet", "orc": "ORC"}
_PACKED = 5


@dataclass(frozen=True)
class Reader:
    """The reader of a file, and the reason for it."""

    name: Literal["arrow", "spark"]
    reason: str


def choose_reader(source: Source, options: LoadOptions, *, session: bool = False) -> Reader:
    """Choose the reader of a table. `session`: the caller has a Spark session for it.

    Raises InputError if the requested reader can't read it.
    """
    requested = f"asked for with reader={options.reader}"
    if not source.local:
        if options.reader == "arrow":
            raise InputError(message("reader 'arrow' for a table that only Spark reads", source.given, "local files"))
        _refuse_odd(source, options, "Read a local copy")
        what = "a catalog table" if source.format == "table" else "a URL"
        return Reader("spark", requested if options.reader == "spark" else f"{what}: only Spark reads it")
    if options.reader == "spark":
        _refuse_odd(source, options, "Leave the reader out")
        return Reader("spark", requested)
    if options.reader == "arrow":
        return Reader("arrow", requested)
    reason = _why_spark(source, options, session)
    if reason is None:
        return Reader("arrow", f"local {_NAMES[source.format]} that fits in memory")
    odd = why_not_spark(source, options)
    return Reader("spark", reason) if odd is None else Reader("arrow", odd)


def _refuse_odd(source: Source, options: LoadOptions, hint: str) -> None:
    """Raise InputError if Spark can't read the source as it is."""
    odd = why_not_spark(source, options)
    if odd is not None:
        raise InputError(message(f"Spark can't read {source.given}", odd, hint=hint))


def _why_spark(source: Source, options: LoadOptions, session: bool) -> str | None:
    """The reason to read local files by Spark if no reader was chosen; None: Arrow reads them."""
    if SUBMITTED in os.environ:
        return "the command runs under spark-submit"
    setting = next((name for name in ("master", "profile", "conf") if getattr(options, name)), None)
    if session or setting is not None:
        return "a Spark session was given" if setting is None else f"Spark was asked for with {setting}"
    needed, room = _bytes_needed(source), _room()
    if needed > room:
        return f"about {needed >> 20:,} MiB would be needed here, and {room >> 20:,} MiB may be taken"
    return None


def _bytes_needed(source: Source) -> int:
    """An estimate of the most memory that reading takes."""
    needed = 0
    for path in source.files:
        packed = source.format in ("csv", "json") and packing_of(path) is not None
        needed += os.path.getsize(path) * (_PACKED if packed else 1)
    return needed * _BYTES_OF_A_BYTE[source.format]


def _room() -> int:
    import psutil

    return int(ROOM_SHARE * psutil.virtual_memory().total)


def open_here(source: Source, options: LoadOptions) -> RawTable:
    """Open a local table in this process. Raises InputError if it can't be read."""
    if source.format == "csv":
        table = csv_table(source, options)
    elif source.format == "json":
        table = json_lines(source, options)
    else:
        table = typed_files(source)
    idle = [] if source.format == "csv" else options.for_csv(source.format)
    said = [f"{', '.join(idle)}: for CSV only, without effect here"] if idle else []
    return replace(with_folder_columns(table, source), notes=(*source.notes, *said, *table.notes))


def read_table(source: Any, options: LoadOptions, name: str, *, fixed: bool = False) -> ReadTable:
    """The columns of a table as the source stores them.

    Parameters
    ----------
    source : path, frame or Relation
    fixed : all types are known already; options for types don't matter

    Raises
    ------
    InputError
        Where it can't be read.
    """
    if isinstance(source, Relation):
        return of_relation(source, name)
    kind = kind_of(source)
    if kind in ("pandas", "polars", "arrow"):
        return of_frame(source, kind, options, name)
    reader = None
    if isinstance(source, (str, os.PathLike)):
        source = os.fspath(source)
        found = find_source(source)
        reader = choose_reader(found, options)
        if reader.name == "arrow":
            return replace(of_raw(open_here(found, options), options, name, found.given), reader=reader)
    elif kind is None:
        raise unreadable(source)
    if fixed:
        options = replace(options, types={})
    from tuplewise.engine.table.spark_load import bring_here, open_with_spark, read_here, spark_failures

    opened = open_with_spark(source, kind, options, name, None, lambda step: None, reader=reader)
    if opened.size_bytes > IN_PROCESS_BYTES:  # of such a table only codes and dictionaries come here
        return of_relation(bring_here(opened, lambda step: None), name)
    with spark_failures(name):
        return read_here(opened)


def unreadable(source: Any) -> InputError:
    """The error for an object that is not a table."""
    allowed = "a path, or a pandas, Polars, Arrow or Spark DataFrame"
    return InputError(message("a table of this type can't be read", type(source).__name__, allowed))


def read_columns(
    source: Any,
    columns: Sequence[str],
    options: LoadOptions,
    name: str,
    what: str,
    *,
    beside: str | None = None,
    others: bool = False,
) -> ReadTable:
    """A table with the columns of a state, in the state's order. The state also decides types and null tokens.

    Parameters
    ----------
    what : the name of a source without a path, for messages
    beside : an additional column that is allowed, and comes last
    others : ignore further columns

    Raises
    ------
    InputError
        Where columns are missing or unknown.
    """
    read = read_table(source, replace(options, null_tokens=(), types={}), name, fixed=True)
    given = [c.name for c in read.columns]
    wanted = [*columns, beside] if beside is not None and beside in given else list(columns)
    if sorted(given) != sorted(wanted) and not (others and set(wanted) <= set(given)):
        shown = os.fspath(source) if isinstance(source, (str, os.PathLike)) else what
        raise other_columns(shown, [c for c in given if c != beside], columns)
    return replace(read, columns=tuple(read.columns[given.index(n)] for n in wanted), index=None)
