"""Parquet, ORC and JSON lines in this process. The files of a table may lack columns or differ in types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import orc, parquet

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv import empty_note
from tuplewise.engine.table.csv_scan import scan_lines
from tuplewise.engine.table.frames import BYTES_AS_HEX, is_bytes, is_text
from tuplewise.engine.table.raw import CSV_LABEL, BadRows, RawRows, RawTable, Reading, RowPlaces, joined
from tuplewise.engine.table.source import Source, opened

FIRST_OBJECTS = 100
"""Columns appear in the order of the keys in so many objects; keys of later objects follow, sorted."""
NOT_OBJECTS = BadRows("is not a JSON object", "are not JSON objects")
ONE_A_LINE = "one JSON object a line"
_MOST_DIGITS = 76
_CELLS_AT_ONCE = 1 << 21
"""Columns are read in portions of so many cells, at least two columns; each portion is encoded before the next."""


class _Field(NamedTuple):
    """A column of a file: its name, its number among the columns of that name in the file, and its type."""

    name: str
    number: int
    type: pa.DataType

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.number


class Schema(NamedTuple):
    """The common schema of the files of a table.

    Attributes
    ----------
    fields : all fields, in order of first appearance
    own : the fields of each file
    notes : on columns that some files lack
    """

    fields: list[_Field]
    own: list[list[_Field]]
    notes: list[str]

    @property
    def same(self) -> bool:
        """Whether all files have the same columns of the same types."""
        return all(own == self.fields for own in self.own)


def common_schema(source: Source, schemas: Sequence[pa.Schema] | None = None) -> Schema:
    """The columns of Parquet or ORC files. A column is null where a file lacks it; types are widened without loss.

    `schemas`: the schema of each file, if already read. Raises InputError, naming both files, if names differ in case
    only or types have no common type.
    """
    if schemas is None:
        schemas = [_opened_file(path, source.format).schema for path in source.files]
    own = [_fields(schema) for schema in schemas]
    fields: dict[tuple[str, int], _Field] = {}
    first: dict[tuple[str, int], str] = {}
    for path, found in zip(source.files, own, strict=True):
        for field in found:
            if field.key not in fields:
                fields[field.key], first[field.key] = field, path
                continue
            both = wider(fields[field.key].type, field.type)
            if both is None:
                raise InputError(
                    message(
                        f"column {field.name!r} is {fields[field.key].type} in {first[field.key]} and {field.type} in"
                        f" {path}, which have no common type",
                        hint="Load the files apart, or write them with one type",
                    )
                )
            fields[field.key] = field._replace(type=both)
    _refuse_cases(source.files, own, list(fields.values()), first)
    notes = []
    for field in fields.values():
        lacking = [p for p, found in zip(source.files, own, strict=True) if field.key not in {f.key for f in found}]
        if lacking:
            where = f"{len(lacking)} of {len(source.files)} files"
            notes.append(f"column {field.name!r} is not in {where}, e.g. {lacking[0]}: null there")
    return Schema(list(fields.values()), own, notes)


def _refuse_cases(
    files: Sequence[str], own: Sequence[Sequence[_Field]], fields: Sequence[_Field], first: dict[tuple[str, int], str]
) -> None:
    """Raise InputError if two names differ in case only and no file has both."""
    together = [{f.name for f in found} for found in own]
    by_fold: dict[str, _Field] = {}
    for field in fields:
        other = by_fold.setdefault(field.name.casefold(), field)
        if other.name != field.name and not any({other.name, field.name} <= names for names in together):
            what = f"columns differ in case only: {other.name!r} in {first[other.key]}, {field.name!r} in"
            raise InputError(message(what, first[field.key], hint="Write them with one name, or load the files apart"))


def _fields(schema: pa.Schema) -> list[_Field]:
    seen: dict[str, int] = {}
    found = []
    for field in schema:
        seen[field.name] = number = seen.get(field.name, -1) + 1
        type_ = pa.decimal128(20, 0) if field.type == pa.uint64() else field.type  # as Spark reads it
        found.append(_Field(field.name, number, type_))
    return found


class _TypedFile(NamedTuple):
    """An open Parquet or ORC file."""

    file: Any
    schema: pa.Schema
    rows: int

    def read(self, kept: Sequence[int]) -> list[pa.ChunkedArray]:
        """Columns by position; the whole file is read if it repeats a column name."""
        names = self.schema.names
        if len(set(names)) < len(names):
            table = self.file.read()
            return [table.column(i) for i in kept]
        table = self.file.read(columns=[names[i] for i in kept])
        return [table.column(names[i]) for i in kept]


def _opened_file(path: str, format_: str) -> _TypedFile:
    """An open file. Raises InputError if it is damaged."""
    try:
        if format_ == "orc":
            file = orc.ORCFile(path)
            return _TypedFile(file, file.schema, file.nrows)
        plain = parquet.ParquetFile(path, coerce_int96_timestamp_unit="us")
        # Distinct texts once a row group: their rows hold numbers.
        how: dict[str, Any] = {"read_dictionary": [f.name for f in plain.schema_arrow if is_text(f.type)]}
        file = parquet.ParquetFile(path, metadata=plain.metadata, coerce_int96_timestamp_unit="us", **how)
        return _TypedFile(file, plain.schema_arrow, plain.metadata.num_rows)
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise _damaged(path, format_) from problem


def _damaged(path: str, format_: str) -> InputError:
    return InputError(message(f"this file is not {'Parquet' if format_ == 'parquet' else 'ORC'}, or is damaged", path))


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """A type that holds the values of both types exactly; None if there is none."""
    t = pa.types
    if one == other or t.is_null(other):
        return one
    if t.is_null(one):
        return other
    if is_text(one) and is_text(other):
        return pa.large_string()
    for a, b in ((one, other), (other, one)):
        if t.is_dictionary(a):
            return wider(a.value_type, b)
        if t.is_floating(a) and t.is_integer(b):
            return pa.float64() if b.bit_width <= 32 else None
    if t.is_floating(one) and t.is_floating(other):
        return pa.float64()
    if t.is_timestamp(one) and t.is_timestamp(other) and (one.tz is None) == (other.tz is None):
        units = ["s", "ms", "us", "ns"]
        return pa.timestamp(max(one.unit, other.unit, key=units.index), one.tz)
    if t.is_integer(one) and t.is_integer(other):
        return pa.int64()
    digits = [_digits(type_) for type_ in (one, other)]
    if digits[0] and digits[1]:
        scale = max(digits[0][1], digits[1][1])
        precision = max(d[0] - d[1] for d in digits if d) + scale
        if precision <= _MOST_DIGITS:
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return None


def _digits(type_: pa.DataType) -> tuple[int, int] | None:
    """Precision and scale of a whole number or decimal type."""
    if pa.types.is_decimal(type_):
        return type_.precision, type_.scale
    return (20, 0) if pa.types.is_integer(type_) else None


def stored_as(label: str, type_: pa.DataType) -> str:
    """The type as notes show it, by its SQL name where it has one. All readers use the same words."""
    t = pa.types
    names = {
        pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
        pa.uint8(): "smallint", pa.uint16(): "int", pa.uint32(): "bigint",
        pa.float32(): "float", pa.float64(): "double", pa.date32(): "date", pa.date64(): "date", pa.null(): "void",
    }  # fmt: skip
    if t.is_dictionary(type_):
        return stored_as(label, type_.value_type)
    if type_ in names:
        return f"{label} {names[type_]}"
    if is_text(type_):
        return f"{label} string"
    if is_bytes(type_):
        return f"{label} binary; {BYTES_AS_HEX}"
    if t.is_time(type_):
        return f"{label} time; as text of fixed width, so in order"
    if isinstance(type_, pa.BaseExtensionType):
        return stored_as(label, type_.storage_type)
    if t.is_decimal(type_):
        return f"{label} decimal({type_.precision},{type_.scale})"
    if t.is_timestamp(type_):
        return f"{label} timestamp{'' if type_.tz else '; without a zone: taken as UTC'}"
    return f"{label} {type_}"


def typed_files(source: Source) -> RawTable:
    """A table of Parquet or ORC files, ready to be read in this process."""
    files = [_opened_file(path, source.format) for path in source.files]
    schema = common_schema(source, [file.schema for file in files])
    label = "Parquet" if source.format == "parquet" else "ORC"

    places = [{field.key: i for i, field in enumerate(own)} for own in schema.own]
    twice = any(field.number for field in schema.fields)

    def portion(kept: Sequence[int]) -> Iterator[pa.ChunkedArray]:
        """A portion of the columns, read together."""
        parts = []
        for path, file, place_of in zip(source.files, files, places, strict=True):
            present = [i for i in kept if schema.fields[i].key in place_of]
            try:
                found = dict(zip(present, file.read([place_of[schema.fields[i].key] for i in present]), strict=True))
                lacking = pa.chunked_array([pa.nulls(file.rows)])
                parts.append([_as(found.pop(i, lacking), schema.fields[i].type) for i in kept])
            except (pa.ArrowException, OSError) as problem:
                raise _damaged(path, source.format) from problem
        return joined(parts, len(kept))

    def read(kept: Sequence[int]) -> RawRows:
        step = len(kept) if twice else max(2, _CELLS_AT_ONCE // max(1, sum(rows)))
        return RawRows(chain.from_iterable(portion(kept[i : i + step]) for i in range(0, len(kept), step or 1)))

    labels = [stored_as(label, field.type) for field in schema.fields]
    readings: list[Reading] = ["typed"] * len(labels)
    rows = [file.rows for file in files]
    names = [field.name for field in schema.fields]
    return RawTable(names, readings, labels, rows, read, source.files, tuple(schema.notes))


def _as(array: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """The array cast to a wider type; dictionary-encoded text stays encoded."""
    if pa.types.is_dictionary(array.type) and is_text(type_):
        return array.cast(pa.dictionary(pa.int32(), pa.large_string()))
    return array if array.type == type_ else array.cast(type_)


def with_folder_columns(table: RawTable, source: Source) -> RawTable:
    """The table with the columns from folder names appended."""
    if not source.folder_columns:
        return table
    own = len(table.names)
    label = {"parquet": "Parquet", "orc": "ORC", "json": "JSON"}.get(source.format, CSV_LABEL)

    def read(kept: Sequence[int]) -> RawRows:
        found = table.read([i for i in kept if i < own])
        good = np.ones(table.rows, dtype=np.bool_)
        good[found.bad] = False
        both = (next(found.arrays) if i < own else text_of(i - own).filter(pa.array(good)) for i in kept)
        return replace(found, arrays=both)

    def text_of(column: int) -> pa.ChunkedArray:
        values = source.folder_values[column]
        place = np.repeat(np.arange(len(values)), table.rows_of_files)
        return pa.chunked_array([pa.array(values, pa.large_string()).take(pa.array(place))])

    count = len(source.folder_columns)
    readings: list[Reading] = ["infer"] * count
    return replace(
        table, names=[*table.names, *source.folder_columns], readings=[*table.readings, *readings],
        labels=[*table.labels, *[f"{label} folder name"] * count], read=read,
    )  # fmt: skip


class _Number(str):
    """A number as written in JSON."""

    __slots__ = ()


class _Keys:
    """The values of one key of JSON objects."""

    def __init__(self, rows: int) -> None:
        self.values: list[str | None] = [None] * rows
        self.kinds: set[str] = set()

    def add(self, value: Any, rows: int) -> None:
        self.values += [None] * (rows - len(self.values))
        if value is None:
            self.values.append(None)
            return
        kind = _KINDS[type(value)]
        self.kinds.add(kind)
        if kind == "boolean":
            value = "true" if value else "false"
        self.values.append(value if kind != "nested" else None)

    @property
    def reading(self) -> Reading:
        if "nested" in self.kinds:
            return "typed"
        return "infer" if self.kinds in ({"number"}, {"boolean"}) else "dates"


_KINDS = {_Number: "number", bool: "boolean", str: "text", dict: "nested", list: "nested"}


def json_lines(source: Source, options: LoadOptions) -> RawTable:
    """A table of JSON lines, ready to be read in this process. Each line is an object, each object a row.

    Numbers and booleans stay as written until their type is known. Raises InputError if there is no object.
    """
    keys: dict[str, _Keys] = {}
    lines: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    bad: list[int] = []
    in_order: list[str] = []
    rows = position = 0
    for path in source.files:
        numbers = []
        for number, content in _lines(path, options.encoding):
            numbers.append(number)
            parsed = _parsed(content)
            if parsed is None:
                bad.append(position)
            else:
                for key, value in parsed.items():
                    if key not in keys:
                        keys[key] = _Keys(rows)
                    keys[key].add(value, rows)
                rows += 1
                if rows <= FIRST_OBJECTS:
                    in_order += [key for key in parsed if key not in in_order]
            position += 1
        lines.append(np.array(numbers, dtype=np.int64))
    if not keys:
        what = "no JSON object was found" if position else "this file is empty"
        hint = "An array, or an object over several lines, is to be written as one object a line" if bad else None
        raise InputError(message("the JSON objects have no keys" if rows else what, source.given, ONE_A_LINE, hint))
    names = [*in_order, *sorted(key for key in keys if key not in set(in_order))]

    def read(kept: Sequence[int]) -> RawRows:
        arrays = []
        for i in kept:
            own = keys[names[i]]
            own.values += [None] * (rows - len(own.values))
            if own.reading == "typed":
                arrays.append(pa.chunked_array([pa.nulls(rows, pa.list_(pa.null()))]))
                continue
            try:
                arrays.append(pa.chunked_array([pa.array(own.values, pa.large_string())]))
            except UnicodeEncodeError as problem:
                what = f"column {names[i]!r} holds text that is not Unicode (half of a surrogate pair)"
                raise InputError(message(what, source.given)) from problem
        return RawRows(iter(arrays), np.array(bad, dtype=np.int64), cache(partial(json_places, lines)))

    readings = [keys[name].reading for name in names]
    labels = ["JSON" if reading != "typed" else "JSON object or array" for reading in readings]
    notes = empty_files(source, lines)
    return RawTable(names, readings, labels, [len(n) for n in lines], read, source.files, notes, NOT_OBJECTS)


def empty_files(source: Source, lines: Sequence[np.ndarray[Any, np.dtype[np.int64]]]) -> tuple[str, ...]:
    """A note on empty JSON-lines files. `lines`: the numbers of the non-blank lines of each file."""
    return tuple(empty_note([path for path, own in zip(source.files, lines, strict=False) if not len(own)]))


def _lines(path: str, encoding: str) -> Iterator[tuple[int, bytes]]:
    with opened(path) as stream:
        yield from scan_lines(stream, path, encoding)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated keys. Raises ValueError for a repeated key: one of its values would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is repeated")
    return found


def _parsed(content: bytes) -> dict[str, Any] | None:
    """The object of a line; None if the line is no JSON object."""
    loads: Callable[..., Any] = json.loads
    try:
        found = loads(
            content, parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=_once
        )
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_places(lines: list[np.ndarray[Any, np.dtype[np.int64]]]) -> RowPlaces:
    """The places of the objects, from the line numbers in each file."""
    rows = sum(len(n) for n in lines)
    files = np.repeat(np.arange(len(lines), dtype=np.int32), [len(n) for n in lines])
    return RowPlaces(np.arange(rows, dtype=np.int64), np.concatenate(lines), files, rows, 0)
