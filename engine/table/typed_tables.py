"""Tables and files of changes as columns of values with the rows that have them, without a JVM where that is possible.

Local CSV and Parquet files are read by Arrow, by the rules that loading has (semantics.md); what Arrow can't read so,
and every other format, comes through Spark.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message, near_names, shortened
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.spelled import spark_texts
from tuplewise.engine.table.encode import TypedColumn
from tuplewise.engine.table.frames import arrow_table, kind_of, typed_column
from tuplewise.engine.table.load import load
from tuplewise.engine.table.relation import NULL_CODE, Relation, TypeName
from tuplewise.engine.table.schema import numbered_names, repair_names, selected_columns, type_overrides
from tuplewise.engine.table.source import Source, find_source
from tuplewise.engine.table.typing_columns import ASKED_FOR, fitted, infer_text_column, misfit, without_tokens

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table before or after its types are known.

    Attributes
    ----------
    columns : values, and which of them each row has
    texts : whether each column is text of a file whose types are to be inferred
    locate : says where the row at an index stands
    path : as it was given, or None
    spark : version and master of the session that read it, or None
    """

    name: str
    columns: tuple[TypedColumn, ...]
    texts: tuple[bool, ...]
    rows: int
    locate: Callable[[int], str]
    notes: tuple[str, ...] = ()
    path: str | None = None
    spark: Mapping[str, str] | None = None


def read_table(source: Any, options: LoadOptions, name: str, *, fixed: bool = False) -> ReadTable:
    """A table's columns as they stand in the source.

    Parameters
    ----------
    source : path, frame or Relation
    fixed : options name the type of every column that is known

    Raises
    ------
    InputError
        Where it can't be read.
    """
    if isinstance(source, Relation):
        return _from_relation(source, name)
    kind = kind_of(source)
    if kind in ("pandas", "polars", "arrow"):
        names, arrays, labels, notes = arrow_table(source, kind)
        return _from_arrays(names, arrays, labels, notes, options, name, None)
    if isinstance(source, (str, os.PathLike)):
        found = find_source(os.fspath(source))
        read = _read_here(found, options)
        if read is not None:
            names, arrays, labels, notes, locate = read
            table = _from_arrays(names, arrays, labels, notes, options, name, found.given)
            return replace(table, locate=locate)
    if fixed:
        options = replace(options, types={})
    return _from_relation(load(source, options, name=name), name)


def typed(table: ReadTable, options: LoadOptions, as_text: bool) -> tuple[ReadTable, list[str]]:
    """The table with the types that its values spell, or that options ask for, and notes."""
    names = [c.name for c in table.columns]
    overrides = type_overrides(names, options.types, table.name)
    columns, notes = [], []
    for column, text in zip(table.columns, table.texts, strict=True):
        wanted: TypeName | None = "text" if as_text else overrides.get(column.name)
        column = without_tokens(column, options.null_tokens)
        if wanted is not None:
            columns.append(_fit(column, wanted, table.locate))
        elif text:
            inferred, added = infer_text_column(column.name, column.values, column.index)
            columns.append(inferred)
            notes.extend(added)
        else:
            columns.append(column)
    return replace(table, columns=tuple(columns)), notes


def _fit(column: TypedColumn, type_: TypeName, locate: Callable[[int], str]) -> TypedColumn:
    found, misfits = fit(column, type_)
    if len(misfits):
        raise misfit(column, type_, misfits, locate)
    return found


def fit(column: TypedColumn, type_: TypeName) -> tuple[TypedColumn, NDArray[np.int64]]:
    """`fitted`; as text, typed values are as Spark casts them."""
    if type_ == "text" and column.type != "text":
        values = spark_texts(column.type, column.values)
        return replace(column, type=type_, why=ASKED_FOR, values=values), np.empty(0, dtype=np.int64)
    return fitted(column, type_)


def fit_types(
    table: ReadTable, types: Sequence[TypeName], tokens: Sequence[str], *, leave_out: bool
) -> tuple[ReadTable, NDArray[np.int64]]:
    """The table with given types, one a column.

    Parameters
    ----------
    tokens : text that means null
    leave_out : leave rows out that have a value that doesn't fit

    Returns
    -------
    table, and the indexes of the rows that were left out (int64, ascending)

    Raises
    ------
    InputError
        With column, row and value, where one doesn't fit and rows are not left out.
    """
    columns = []
    bad = np.zeros(table.rows, dtype=np.bool_)
    for column, type_ in zip(table.columns, types, strict=True):
        column = without_tokens(column, tuple(tokens))
        found, misfits = fit(column, type_)
        if len(misfits):
            hit = np.isin(column.index, misfits)
            if hit.any() and not leave_out:
                hint = "Nothing was applied; --bad-rows report leaves such rows out"
                raise misfit(column, type_, misfits, table.locate, hint)
            bad |= hit
        columns.append(found)
    left_out = np.flatnonzero(bad)
    if len(left_out):
        keep = np.flatnonzero(~bad)
        locate = table.locate
        columns = [_without_nulls(replace(c, index=c.index[keep])) for c in columns]
        table = replace(table, rows=len(keep), locate=lambda row: locate(int(keep[row])))
    return replace(table, columns=tuple(columns)), left_out


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
    """A table whose columns are those of a state, in their order; types and text that means null are the state's.

    Parameters
    ----------
    what : what a message calls a source that has no path
    beside : a column that may be there besides, and is then the last
    others : further columns are passed over

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
    return replace(read, columns=tuple(read.columns[given.index(n)] for n in wanted))


def other_columns(what: str, given: Sequence[str], names: Sequence[str]) -> InputError:
    """One error that names every column that is missing or unknown, with names near to the first unknown one."""
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    faults = [f"missing {', '.join(map(repr, missing))}"] if missing else []
    faults += [f"unknown {', '.join(map(repr, unknown))}"] if unknown else []
    near = unknown and difflib.get_close_matches(unknown[0], missing, n=1, cutoff=0.5)
    hint = near_names(unknown[0], missing) if near else None
    return InputError(message(f"{what} has other columns than the state", "; ".join(faults), ", ".join(names), hint))


def left_out_note(rows: int, first: str) -> str:
    """What is said of rows that were left out."""
    many = f"{rows} row{'s' if rows > 1 else ''}"
    return f"{many} with a value that does not fit its column's type left out, the first at {first}"


def _without_nulls(column: TypedColumn) -> TypedColumn:
    """The column without the values that didn't fit, which no row has any more."""
    if not column.values.null_count:
        return column
    valid = np.asarray(column.values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    moved = np.append(np.cumsum(valid) - 1, NULL_CODE).astype(np.int32)
    return replace(column, values=column.values.drop_null(), index=moved[column.index])


def _from_arrays(
    given: list[str],
    arrays: Sequence[Any],
    labels: Sequence[str],
    notes: Sequence[str],
    options: LoadOptions,
    name: str,
    path: str | None,
) -> ReadTable:
    names, renamed = repair_names(given)
    kept = selected_columns(names, options, name)
    rows = len(arrays[0]) if arrays else 0
    rows = rows if options.rows is None else min(rows, options.rows)
    columns = []
    added: list[str] = []
    for i in kept:
        column, more = typed_column(names[i], arrays[i].slice(0, rows), labels[i])
        columns.append(column)
        added.extend(more)
    texts = tuple(labels[i] == "CSV" for i in kept)
    return ReadTable(name, tuple(columns), texts, rows, _row, (*renamed, *notes, *added), path)


def _row(row: int) -> str:
    return f"row {row}"


def _from_relation(relation: Relation, name: str) -> ReadTable:
    import pyarrow as pa

    columns = []
    for c, column in enumerate(relation.columns):
        codes, places = np.unique(relation.codes[c], return_inverse=True)
        nulls = int(len(codes) > 0 and codes[0] == NULL_CODE)
        values = relation.dictionaries[column.domain].take(pa.array(codes[nulls:]))
        index = (places - nulls).astype(np.int32)  # null's place was the first: -1 now
        columns.append(TypedColumn(column.name, column.type, column.why, values, index))
    texts = (False,) * len(columns)

    def locate(row: int) -> str:
        return f"row {relation.position_of(row)}"

    return ReadTable(
        name, tuple(columns), texts, relation.rows, locate, relation.notes, relation.path, relation.spark
    )  # fmt: skip


def _read_here(source: Source, options: LoadOptions) -> tuple[Any, ...] | None:
    """Names, columns, labels, notes and a way to say where rows stand; None where Spark has to read it."""
    if not source.local or tuple(source.paths) != tuple(_uris(source)):
        return None
    if source.format == "csv":
        return _read_csv(source, options)
    if source.format == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        try:
            parts = [parquet.ParquetFile(path).read() for path in source.files]
            table = pa.concat_tables(parts)
        except pa.ArrowInvalid:  # files of several schemas, or one that is no Parquet: Spark says what it is
            return None
        return list(table.column_names), list(table.columns), ["Parquet"] * table.num_columns, [], _row
    return None


def _uris(source: Source) -> list[str]:
    """What Spark is told to read where it is told of files, not of a folder whose names hold columns."""
    return list(source.paths) if len(source.paths) == len(source.files) else []


def _read_csv(source: Source, options: LoadOptions) -> tuple[Any, ...] | None:
    """By Arrow. None where a file needs what its reader lacks: an escape character, several headers, none at all."""
    import pyarrow as pa

    sep = options.sep or source.sep
    if options.escape is not None or len(sep.encode()) != 1 or len(options.quote.encode()) > 1:
        return None
    try:
        headers = [_first_record(path, options, sep) for path in source.files]
    except (UnicodeDecodeError, LookupError, csv.Error):
        return None
    first = headers[0]
    if not first or any(h != first for h in headers):
        return None
    names = list(first) if options.header else numbered_names(len(first))
    bad: list[str] = []
    try:
        parts = [_arrow_csv(path, options, sep, len(first), bad) for path in source.files]
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None  # Spark's reader, after a scan of the bytes, says on which line what is wrong
    table = pa.concat_tables(parts)
    notes = []
    if bad:
        rows = f"{len(bad)} row{'s' if len(bad) != 1 else ''}"
        notes.append(f"{rows} of {source.given} without {len(first)} fields left out, e.g. {bad[0]}")
    return names, list(table.columns), ["CSV"] * len(names), notes, _csv_places(source, options, sep, bool(bad))


def _first_record(path: str, options: LoadOptions, sep: str) -> list[str]:
    """The fields of the first record; none where the file begins with a blank line or holds nothing."""
    import pyarrow as pa

    encoding = "utf-8-sig" if codecs.lookup(options.encoding).name == "utf-8" else options.encoding
    with pa.input_stream(path, compression="detect") as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding=encoding, newline="")  # type: ignore[arg-type]
        if options.quote:
            return next(csv.reader(text, delimiter=sep, quotechar=options.quote), [])
        return next(csv.reader(text, delimiter=sep, quoting=csv.QUOTE_NONE), [])


def _arrow_csv(path: str, options: LoadOptions, sep: str, columns: int, bad: list[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    def skip(row: Any) -> str:
        if options.bad_rows == "fail":
            return "error"
        bad.append(shortened(row.text, 60))
        return "skip"

    names = [f"c{i}" for i in range(columns)]
    with pa.input_stream(path, compression="detect") as stream:
        table = arrow_csv.read_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                column_names=names, skip_rows_after_names=int(options.header), encoding=options.encoding,
                block_size=_BLOCK_BYTES,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=sep, quote_char=options.quote or False, double_quote=bool(options.quote),
                newlines_in_values=bool(options.quote), ignore_empty_lines=columns > 1, invalid_row_handler=skip,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=True, null_values=[""],
                quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
    return _with_last_null(table, path, sep.encode(options.encoding))


def _with_last_null(table: pa.Table, path: str, sep: bytes) -> pa.Table:
    """The table with a null at its end where its file ends with a separator.

    Arrow takes such a field for a quoted one, so the empty string, where the field before it is quoted.
    """
    import pyarrow as pa

    last = table.column(table.num_columns - 1)
    if not len(last) or last[-1].as_py() != "":
        return table
    end = b""
    with pa.input_stream(path, compression="detect") as stream:
        while part := stream.read(_BLOCK_BYTES):
            end = (end + part)[-len(sep) :]
    if end != sep:
        return table
    chunks = [*last.slice(0, len(last) - 1).chunks, pa.nulls(1, last.type)]
    return table.set_column(table.num_columns - 1, table.column_names[-1], pa.chunked_array(chunks))


def _csv_places(source: Source, options: LoadOptions, sep: str, dropped: bool) -> Callable[[int], str]:
    """Says on which line of its file a row begins, by a scan of the bytes where that is asked."""

    def locate(row: int) -> str:
        import pyarrow as pa

        from tuplewise.engine.table.csv_scan import Dialect, scan_csv

        if dropped:
            return f"row {row} of those with the right number of fields"
        dialect = Dialect(sep, options.quote, options.escape, codecs.lookup(options.encoding).name)
        left = row
        for path in source.files:
            with pa.input_stream(path, compression="detect") as stream:
                scan = scan_csv(stream, path, dialect)
            lines = scan.lines[int(options.header) :]
            if left < len(lines) and len(scan.first_record) > 1:
                where = f" of {path}" if len(source.files) > 1 else ""
                return f"row {row} (line {lines[left]}{where})"
            left -= len(lines)
        return f"row {row}"

    return locate
