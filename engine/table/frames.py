"""Frames of pandas, Polars and Arrow, converted to Arrow without loss and without a JVM."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.table.encode import TypedColumn, indexed
from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.text_types import quote

if TYPE_CHECKING:
    import pandas as pd
BYTES_AS_HEX = "bytes as hexadecimal text"
_FIRST_LOST = 2.0**53  # from here on neighbouring whole numbers share one double


def kind_of(source: object) -> str | None:
    """ "pandas", "polars", "arrow", "spark" or "connect", by the class of the frame. Imports none of these packages."""
    for class_ in type(source).__mro__:
        module, name = class_.__module__, class_.__qualname__
        top = module.partition(".")[0]
        if top == "pandas" and name == "DataFrame":
            return "pandas"
        if top == "polars" and name in ("DataFrame", "LazyFrame"):
            return "polars"
        if top == "pyarrow" and name in ("Table", "RecordBatch"):
            return "arrow"
        if module.startswith("pyspark.sql.connect") and name == "DataFrame":
            return "connect"
        if module.startswith("pyspark.sql") and name == "DataFrame":
            return "spark"
    return None


ArrowColumn = tuple["pa.Array | pa.ChunkedArray", str, list[str]]
"""A column, the start of its `why`, and notes."""


def arrow_columns(source: Any, kind: str) -> tuple[list[str], int, Callable[[int], ArrowColumn]]:
    """The column names of a frame as text, its number of rows, and a function that converts one column to Arrow."""
    if kind == "pandas":
        names = [label if isinstance(label, str) else str(label) for label in source.columns]

        def from_pandas(i: int) -> ArrowColumn:
            series = source.iloc[:, i]
            array, notes = _from_series(series, names[i])
            return array, f"pandas {series.dtype}", notes

        return names, len(source), from_pandas
    if kind == "polars":
        source = source.collect() if type(source).__name__ == "LazyFrame" else source
        label = "Polars"
    else:
        source = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        label = "Arrow"
    names = list(source.columns if kind == "polars" else source.column_names)

    def as_it_is(i: int) -> ArrowColumn:
        if kind == "arrow":
            return source.column(i), label, []
        series = source.to_series(i)
        if str(series.dtype) == "Object":
            raise unusable(names[i], "Object")
        try:
            return series.to_arrow(), label, []
        except pa.ArrowException as problem:
            what = f"column {names[i]!r} can't be read: its type is"
            hint = Wording("Convert it, or leave it out: {exclude}", exclude=names[i])
            raise InputError(message(what, str(series.dtype), hint=hint)) from problem

    return names, len(source), as_it_is


def notes_on_index(frame: pd.DataFrame) -> list[str]:
    """A note on a named index, which is not read as a column."""
    named = [repr(str(name)) for name in frame.index.names if name is not None]
    return [f"the index ({', '.join(named)}) is no column: reset_index() makes one of it"] if named else []


def _from_series(series: pd.Series[Any], name: str) -> tuple[pa.Array | pa.ChunkedArray, list[str]]:
    import pandas as pd
    if isinstance(series.dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
        return _from_floats(series.to_numpy().astype(np.float64), name)
    if series.dtype == object and _loses_by_type(series):
        return _from_objects(series, name)
    try:
        return pa.array(series, from_pandas=True), []
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return _from_objects(series, name)


def _from_floats(values: np.ndarray[Any, Any], name: str) -> tuple[pa.Array, list[str]]:
    """Convert floats. Whole numbers with missing values, which pandas stores as floats, become integers again."""
    present = ~np.isnan(values)
    missing = int(len(values) - np.count_nonzero(present))
    kept = values[present]
    large = bool((np.abs(kept[np.isfinite(kept)]) >= _FIRST_LOST).any())
    whole_numbers = bool(np.isfinite(kept).all()) and not large
    if missing and len(kept) and whole_numbers and bool((kept == np.floor(kept)).all()):
        whole = np.where(present, values, 0).astype(np.int64)
        note = f"column {name!r}: {missing} NaN taken as null, the others as whole numbers, held as floats"
        return pa.array(whole, mask=~present), [note]
    notes = [f"column {name!r}: {missing} NaN taken as null (pandas writes missing numbers so)"] if missing else []
    if large:
        notes.append(
            f"column {name!r}: whole numbers of 2**53 and more held as floats:"
            " precision may be lost before we saw it (use dtype 'Int64')"
        )
    return pa.array(values, from_pandas=True), notes


def _loses_by_type(series: pd.Series[Any]) -> bool:
    """Whether Arrow would lose information: in mixtures of dates and timestamps, or of bytes and text, whose type it
    takes from the first value; of timestamps with a zone, whose offset it drops where PYARROW_IGNORE_TIMEZONE is set
    (importing pandera or pyspark.pandas sets it); and of nanoseconds."""
    kinds = set()
    for value in series:
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None or bool(getattr(value, "nanosecond", 0)):
                return True
            kinds.add("instant")
        elif isinstance(value, (dt.date, bytes, str)):
            kinds.add(type(value).__name__)
    return len(kinds) > 1


def _from_objects(series: pd.Series[Any], name: str) -> tuple[pa.Array, list[str]]:
    """Convert Python objects of several types: numbers to exact decimals, dates and timestamps to timestamps, other
    mixtures to text with a note."""
    import pandas as pd
    given = [v.item() if isinstance(v, np.generic) else v.value if isinstance(v, Enum) else v for v in series.tolist()]
    values = [None if v is None or v is pd.NA or v is pd.NaT or v != v else v for v in given]
    present = [v for v in values if v is not None]
    if all(isinstance(v, (int, decimal.Decimal)) and not isinstance(v, bool) for v in present):
        return _exact(values, name)
    if all(isinstance(v, dt.date) for v in present):
        return _instants(values, name)
    if all(isinstance(v, bool) for v in present):
        return pa.array(values, pa.bool_()), []
    if all(isinstance(v, bytes) for v in present):
        return pa.array(values, pa.large_binary()), []
    scalar = (str, bytes, int, float, decimal.Decimal, uuid.UUID)
    odd = next((v for v in present if not isinstance(v, scalar) and not hasattr(v, "isoformat")), None)
    if odd is not None:
        raise unusable(name, type(odd).__name__)
    text = [
        None if v is None else v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else str(v) for v in values
    ]
    try:
        array = pa.array(text, pa.large_string())
    except UnicodeEncodeError:
        row = next(i for i, v in enumerate(text) if v is not None and not _is_unicode(v))
        what = f"column {name!r} holds text that is not Unicode (half of a surrogate pair) at row {row}"
        raise InputError(message(what, text[row])) from None
    examples = {type(v).__name__: quote(str(v)) for v in reversed(present)}
    if len(examples) == 1:
        return array, []
    listed = ", ".join(f"{kind} {example}" for kind, example in sorted(examples.items()))
    return array, [f"column {name!r} mixes types ({listed}): read as text"]


def _instants(values: list[Any], name: str) -> tuple[pa.Array, list[str]]:
    """Convert dates and timestamps to timestamps, with a note if kinds are mixed."""
    import pandas as pd
    present = [v for v in values if v is not None]
    instants = [None if v is None else pd.Timestamp(v) for v in values]
    zoned = [v if v is None or v.tzinfo else v.tz_localize("UTC") for v in instants]
    fine = any(v is not None and v.nanosecond for v in zoned)
    notes = []
    if any(not isinstance(v, dt.datetime) for v in present):
        notes.append(
            f"column {name!r} mixes dates and timestamps: a date is taken as its midnight, without a zone as UTC"
        )
    elif len({v.tzinfo is None for v in present}) > 1:
        notes.append(f"column {name!r} mixes timestamps with and without a zone: the latter are taken as UTC")
    if not fine:
        in_utc = [None if v is None else v.tz_convert("UTC").to_pydatetime() for v in zoned]
        return pa.array(in_utc, pa.timestamp("us", tz="UTC")), notes
    try:
        counts = [None if v is None else v.value for v in zoned]
    except OverflowError:
        what = f"column {name!r} holds nanoseconds beside instants that are too far away for them"
        raise InputError(message(what, hint="Round them to microseconds")) from None
    return pa.array(counts, pa.int64()).cast(pa.timestamp("ns", tz="UTC")), notes


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _exact(values: list[Any], name: str) -> tuple[pa.Array, list[str]]:
    """Convert whole numbers and decimals to decimals."""
    for row, v in enumerate(values):
        if isinstance(v, decimal.Decimal) and not v.is_finite():
            hint = "Turn the column into floats or text"
            raise InputError(
                message(f"column {name!r} holds a decimal that is no number at row {row}", str(v), hint=hint)
            )
    try:
        return pa.array([None if v is None else decimal.Decimal(v) for v in values]), []
    except (pa.ArrowInvalid, ValueError):
        what = f"column {name!r} holds numbers of more than 76 digits"
        raise InputError(message(what, None, hint="Turn it into text")) from None


class UnusableColumn(InputError):
    """The error for a column whose values can't be compared; `type` is the name of its type."""

    def __init__(self, text: str, type_: str) -> None:
        super().__init__(text)
        self.type = type_


def unusable(name: str, type_: str) -> UnusableColumn:
    return UnusableColumn(
        message(
            f"column {name!r} can't be compared value by value: its type is",
            type_,
            "numbers, text, bytes, dates, timestamps, booleans, times",
            Wording("Leave it out: {exclude}", exclude=name),
        ),
        type_,
    )


def typed_column(name: str, array: pa.Array | pa.ChunkedArray, label: str) -> TypedColumn:
    """A column with the type that corresponds to its Arrow type.

    Raises UnusableColumn for nested and calendar-interval columns: Spark, Arrow and NumPy don't agree on how to compare
    them.
    """
    given = array.type
    if isinstance(given, pa.BaseExtensionType):
        if given.extension_name == "arrow.uuid":
            label = f"{label} UUID,"
        array = pa.chunked_array(
            [c.storage for c in pa.chunked_array([array] if isinstance(array, pa.Array) else array).chunks],
            given.storage_type,
        )
        return typed_column(name, array, label)
    if isinstance(given, pa.RunEndEncodedType):
        return typed_column(name, pc.run_end_decode(array), label)
    if pa.types.is_nested(given):
        raise unusable(name, str(given))
    if pa.types.is_decimal(given) and given.bit_width < 128:  # Arrow finds no distinct values of these
        array = array.cast(pa.decimal128(given.precision, given.scale))
    if pa.types.is_dictionary(given):
        array = array.unify_dictionaries() if isinstance(array, pa.ChunkedArray) else array
    try:
        values, index = indexed(array)
        type_, typed, remark = _canonical(name, values)
    except pa.ArrowException as problem:
        hint = Wording("Convert it, or leave it out: {exclude}", exclude=name)
        raise InputError(message(f"column {name!r} can't be read: its type is", str(given), hint=hint)) from problem
    why = f"stored as {label}" if label.startswith("pandas") else f"stored as {label} {given}"
    return TypedColumn(name, type_, why + (f"; {remark}" if remark else ""), typed, index)


def is_text(type_: pa.DataType) -> bool:
    """Whether a type is one of text."""
    t = pa.types
    return bool(t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """Whether a type is one of raw bytes."""
    t = pa.types
    kinds = (t.is_binary, t.is_large_binary, t.is_fixed_size_binary, t.is_binary_view)
    return any(kind(type_) for kind in kinds)


def _canonical(name: str, values: pa.Array) -> tuple[TypeName, pa.Array, str]:
    """The type, the values in the form that encoding needs, and a remark on the conversion."""
    t = pa.types
    given = values.type
    if t.is_null(given):
        return "text", pa.array([], pa.large_string()), "no values"
    if t.is_boolean(given):
        return "boolean", values, ""
    if t.is_uint64(given):
        try:
            return "integer", values.cast(pa.int64()), ""
        except pa.ArrowInvalid:
            return "integer", values.cast(pa.decimal128(20, 0)), "some beyond 64 bits with a sign: compared as decimals"
    if t.is_integer(given):
        return "integer", values.cast(pa.int64()), ""
    if t.is_floating(given):
        return "double", values.cast(pa.float64()), "" if t.is_float64(given) else "widened exactly"
    if t.is_decimal(given):
        if given.scale < 0:
            values = values.cast(pa.decimal256(76, 0))
        return "decimal", values, ""
    if t.is_date(given):
        return "date", values.cast(pa.date32()), ""
    if t.is_timestamp(given):
        remark = "" if given.tz else "without a zone: taken as UTC"
        return "timestamp", values.cast(pa.timestamp(given.unit, tz="UTC")), remark
    if is_text(given):
        text = values.cast(pa.large_string())
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            hint = Wording("Mend it, or leave it out: {exclude}", exclude=name)
            raise InputError(message(f"column {name!r} holds text that is not UTF-8", hint=hint)) from None
        return "text", text, ""
    if t.is_time(given):
        return "text", values.cast(pa.large_string()), "a time of day as text of fixed width, so in order"
    if is_bytes(given):
        return "text", pa.array([v.hex() for v in values.to_pylist()], pa.large_string()), BYTES_AS_HEX
    if t.is_duration(given):
        return "integer", values.cast(pa.int64()), f"a duration as a number of {given.unit}"
    raise unusable(name, str(given))
