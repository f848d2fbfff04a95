"""Tables and files of changes as columns of values and row indexes, before or after types are known."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, Wording, message, near_names, number_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.arrow_text import NO_NUMBER, in_plain_notation
from tuplewise.engine.table.csv import bad_rows_note
from tuplewise.engine.table.encode import TypedColumn, encode, indexed
from tuplewise.engine.table.frames import UnusableColumn, arrow_columns, notes_on_index, typed_column
from tuplewise.engine.table.raw import CSV_LABEL, RawRows, RawTable, Reading, give_memory_back
from tuplewise.engine.table.relation import NULL_CODE, Relation, TypeName
from tuplewise.engine.table.schema import repair_names, selected_columns, type_overrides
from tuplewise.engine.table.typing_columns import LEAVE_OUT, Locate, fitted, infer_text_column, misfit, without_tokens

if TYPE_CHECKING:
    from tuplewise.engine.table.reader import Reader

_MANY_ROWS = 1 << 16
_NUMBERS = ("integer", "decimal", "double")
_EXAMPLE = re.compile(r"(?:(?<=e\.g\. )|(?<=, ))'([^']*)'")
_SHOWN_NO_NUMBER = repr(NO_NUMBER)[1:-1]


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table before or after its types are known.

    Attributes
    ----------
    columns : values, and each row's index into them
    readings : how each column gets its type
    locate : returns the place of the row at an index, in words
    positions : int64 (rows,), 0-based positions among the data rows of the source; None if they equal the indexes
    path : the path as given, or None
    spark : version and master of the session that read it, or None
    reader : the reader of the file and the reason for it; None for frames
    notations : decimal and thousands separators of text columns that don't use plain numbers, by column name
    index : int32 (columns, rows), C order, whose rows are the columns' indexes; `encoded` overwrites it with codes.
        None if each column has an array of its own
    """

    name: str
    columns: tuple[TypedColumn, ...]
    readings: tuple[Reading, ...]
    rows: int
    locate: Callable[[int], str]
    notes: tuple[str, ...] = ()
    path: str | None = None
    spark: Mapping[str, str] | None = None
    positions: NDArray[np.int64] | None = None
    reader: Reader | None = None
    notations: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    index: NDArray[np.int32] | None = None

    @property
    def inferred(self) -> list[bool]:
        """Whether each column is text whose type is inferred from its values."""
        return [reading == "infer" for reading in self.readings]


Needed = frozenset[str] | None
"""The columns that a task needs. Others are left out with a note if they can't be compared. None: all columns."""


def of_raw(raw: RawTable, options: LoadOptions, name: str, path: str | None, needed: Needed = None) -> ReadTable:
    """The requested columns as the source stores them.

    Raises InputError for unknown names and types, for malformed rows (see `bad_rows`), and for columns that can't be
    compared.
    """
    names, renamed = repair_names(raw.names)
    kept = selected_columns(names, options, name)
    type_overrides(names, options.types, name)
    found = raw.read(kept)
    positions, notes = _positions(raw, found, options)
    rows = raw.rows if positions is None else len(positions)
    if options.rows is not None:
        rows = min(rows, options.rows)
    notation = options.notation
    notations = {} if notation is None else {names[i]: notation for i in kept if raw.labels[i] == CSV_LABEL}
    columns: list[TypedColumn] = []
    readings = []
    index = np.empty((len(kept), rows), dtype=np.int32)
    for i, array in zip(kept, found.arrays, strict=True):
        try:
            column = _as_it_stands(names[i], array.slice(0, rows), raw.readings[i], raw.labels[i])
        except UnusableColumn as problem:
            notes.append(note_unless_needed(names[i], problem, needed))
            continue
        own = index[len(columns)]
        own[:] = column.index
        columns.append(replace(column, index=own))
        readings.append(raw.readings[i])
        if rows >= _MANY_ROWS:
            give_memory_back()

    def locate(row: int) -> str:
        at = row if positions is None else int(positions[row])
        return f"row {at}" if found.places is None else found.places().line_of(at, raw.files)

    return ReadTable(
        name, tuple(columns), tuple(readings), rows, locate, (*renamed, *raw.notes, *notes), path,
        positions=positions, notations=notations, index=index[: len(columns)],
    )  # fmt: skip


def _as_it_stands(name: str, array: Any, reading: Reading, label: str) -> TypedColumn:
    if reading in ("infer", "dates"):
        return TypedColumn(name, "text", "", *indexed(array))
    return replace(typed_column(name, array, label), why=f"stored as {label}")


def note_unless_needed(name: str, problem: UnusableColumn, needed: Needed) -> str:
    """A note on a column that is left out because it can't be compared. Raises the problem if the column is needed."""
    if needed is None or name in needed:
        raise problem
    return f"column {name!r} is {problem.type}, which can't be compared value by value: left out"


def _positions(raw: RawTable, found: RawRows, options: LoadOptions) -> tuple[NDArray[np.int64] | None, list[str]]:
    """The positions of the rows that remain (None: all rows from the first on), and a note on the others."""
    most = raw.rows if options.rows is None else min(raw.rows, options.rows)
    bad = found.bad[found.bad < most]
    if not len(bad):
        return None if most == raw.rows else np.arange(most, dtype=np.int64), []
    assert found.places is not None
    note = bad_rows_note(found.places(), bad, raw.what_is_bad, raw.files, options.bad_rows)
    good = np.ones(most, dtype=np.bool_)
    good[bad] = False
    return np.flatnonzero(good), [note]


def of_frame(source: Any, kind: str, options: LoadOptions, name: str, needed: Needed = None) -> ReadTable:
    """The columns of a pandas, Polars or Arrow frame. See `of_raw`."""
    given, rows, column_of = arrow_columns(source, kind)
    names, notes = repair_names(given)
    notes += notes_on_index(source) if kind == "pandas" else []
    kept = selected_columns(names, options, name)
    type_overrides(names, options.types, name)
    rows = rows if options.rows is None else min(rows, options.rows)
    columns = []
    for i in kept:
        try:
            array, label, added = column_of(i)
            columns.append(typed_column(names[i], array.slice(0, rows), label))
            notes += added
        except UnusableColumn as problem:
            notes.append(note_unless_needed(names[i], problem, needed))
    readings: tuple[Reading, ...] = tuple("typed" for _ in columns)
    return ReadTable(name, tuple(columns), readings, rows, _row, tuple(notes))


def _row(row: int) -> str:
    return f"row {row}"


def of_relation(relation: Relation, name: str) -> ReadTable:
    """The columns of a Relation."""
    columns = []
    for c, column in enumerate(relation.columns):
        codes, places = np.unique(relation.codes[c], return_inverse=True)
        nulls = int(len(codes) > 0 and codes[0] == NULL_CODE)
        values = relation.dictionaries[column.domain].take(pa.array(codes[nulls:]))
        index = (places - nulls).astype(np.int32)  # null's place was the first: -1 now
        columns.append(TypedColumn(column.name, column.type, column.why, values, index))
    readings: tuple[Reading, ...] = tuple("typed" for _ in columns)
    return ReadTable(
        name, tuple(columns), readings, relation.rows, lambda row: f"row {relation.position_of(row)}", relation.notes,
        relation.path, relation.spark, relation.positions,
    )  # fmt: skip


def encoded(table: ReadTable, seconds: Mapping[str, float], device: str) -> Relation:
    """Encode a typed table as a Relation. `seconds`: timings of the steps before; `device`: see `encode`."""
    codes, dictionaries, described = encode(table.columns, table.rows, device, table.index)
    positions = table.positions
    if positions is not None and (not table.rows or int(positions[-1]) == table.rows - 1):
        positions = None
    return Relation(
        name=table.name, path=table.path, columns=described, codes=codes, dictionaries=dictionaries,
        positions=positions, notes=table.notes, timings_seconds=seconds, spark=table.spark, reader=table.reader,
    )  # fmt: skip


def typed(table: ReadTable, options: LoadOptions, *, as_text: bool = False) -> ReadTable:
    """The table with inferred types, or those that options name. `as_text`: all columns as text."""
    names = [c.name for c in table.columns]
    overrides = type_overrides(names, options.types, table.name)
    columns, notes = [], []
    for column, reading in zip(table.columns, table.readings, strict=True):
        wanted: TypeName | None = "text" if as_text else overrides.get(column.name)
        column = without_tokens(column, options.null_tokens)
        if wanted is not None:
            found, misfits = _fitted(table, column, wanted)
            if np.isin(column.index, misfits).any():
                raise misfit(column, wanted, misfits, table.locate)
            columns.append(_without_nulls(found))
        elif column.name in table.notations:
            inferred, added = _inferred(column, *table.notations[column.name])
            columns.append(inferred)
            notes += added
        elif reading in ("infer", "dates"):
            dates_only = reading == "dates"
            inferred, added = infer_text_column(column.name, column.values, column.index, dates_only=dates_only)
            columns.append(inferred)
            notes += added
        else:
            columns.append(column)
    return replace(table, columns=tuple(columns), notes=(*table.notes, *notes))


def _fitted(table: ReadTable, column: TypedColumn, type_: TypeName) -> tuple[TypedColumn, NDArray[np.int64]]:
    """See `fitted`; numbers are read in the notation of the table."""
    notation = table.notations.get(column.name)
    if notation is None or column.type != "text" or type_ not in _NUMBERS:
        return fitted(column, type_)
    return fitted(replace(column, values=in_plain_notation(column.values, *notation)), type_)


def _inferred(column: TypedColumn, decimal: str, thousands: str | None) -> tuple[TypedColumn, list[str]]:
    """The column with the type that its values have in a notation, and notes. Text stays as written."""
    values = in_plain_notation(column.values, decimal, thousands)
    found, notes = infer_text_column(column.name, values, column.index)
    if found.type != "text":
        return found, notes

    def as_written(example: re.Match[str]) -> str:
        spelled = pa.scalar(example[1].replace(_SHOWN_NO_NUMBER, NO_NUMBER), values.type)
        at = pc.index(values, spelled).as_py()
        return example[0] if at < 0 else repr(column.values[at].as_py())

    notes = [note if isinstance(note, Wording) else _EXAMPLE.sub(as_written, note) for note in notes]
    return replace(found, values=column.values, why=_EXAMPLE.sub(as_written, found.why)), notes


def fit_types(table: ReadTable, types: Sequence[TypeName], tokens: Sequence[str], *, leave_out: bool) -> ReadTable:
    """The table with given types, one a column.

    Parameters
    ----------
    tokens : text that means null
    leave_out : leave out rows with a value that doesn't fit, and add a note

    Raises
    ------
    InputError
        With column, row and value, if a value doesn't fit and rows are not left out.
    """
    columns = []
    bad = np.zeros(table.rows, dtype=np.bool_)
    for column, type_ in zip(table.columns, types, strict=True):
        column = without_tokens(column, tuple(tokens))
        found, misfits = _fitted(table, column, type_)
        if len(misfits):
            hit = np.isin(column.index, misfits)
            if hit.any() and not leave_out:
                raise misfit(column, type_, misfits, table.locate, LEAVE_OUT)
            bad |= hit
        columns.append(found)
    left_out = np.flatnonzero(bad)
    if len(left_out):
        keep = np.flatnonzero(~bad)
        locate = table.locate
        columns = [_without_nulls(replace(c, index=c.index[keep])) for c in columns]
        notes = (*table.notes, *left_out_note(left_out.tolist(), locate))
        table = replace(table, rows=len(keep), index=None, locate=lambda row: locate(int(keep[row])), notes=notes)
    return replace(table, columns=tuple(columns))


def other_columns(what: str, given: Sequence[str], names: Sequence[str]) -> InputError:
    """An error that lists all missing and unknown columns, with names close to the first unknown one."""
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    faults = [f"missing {', '.join(map(repr, missing))}"] if missing else []
    faults += [f"unknown {', '.join(map(repr, unknown))}"] if unknown else []
    near = unknown and difflib.get_close_matches(unknown[0], missing, n=1, cutoff=0.5)
    hint = near_names(unknown[0], missing) if near else None
    return InputError(message(f"{what} has other columns than the state", "; ".join(faults), ", ".join(names), hint))


def left_out_note(rows: Sequence[int], locate: Locate) -> tuple[str, ...]:
    """A note on rows that were left out, if any."""
    note = f"{number_of(len(rows), 'row')} with a value that does not fit its column's type left out, the first at "
    return (note + locate(rows[0]),) if rows else ()


def _without_nulls(column: TypedColumn) -> TypedColumn:
    """The column without the values that didn't fit; no row refers to them."""
    if not column.values.null_count:
        return column
    valid = np.asarray(column.values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    moved = np.append(np.cumsum(valid) - 1, NULL_CODE).astype(np.int32)
    return replace(column, values=column.values.drop_null(), index=moved[column.index])
