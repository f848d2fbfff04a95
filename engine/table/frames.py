"""Tables in memory: pandas, Polars and Arrow, brought to Arrow without loss and without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.encode import TypedColumn, indexed
from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.text_types import quote

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_FIRST_LOST = 2.0**53  # from here on neighbouring whole numbers share one double


def kind_of(source: object) -> str | None:
    """ "pandas", "polars", "arrow", "spark" or "connect", by the class of the frame; loads none of these packages."""
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


def arrow_table(source: Any, kind: str) -> tuple[list[str], list[pa.ChunkedArray], list[str], list[str]]:
    """Column names (as given, text), columns, a prefix to each column's `why`, and notes."""
    import pyarrow as pa

    if kind == "pandas":
        return _from_pandas(source)
    if kind == "polars":
        source = source.collect() if type(source).__name__ == "LazyFrame" else source
        source = source.to_arrow()
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    label = "Polars" if kind == "polars" else "Arrow"
    return list(source.column_names), list(source.columns), [label] * source.num_columns, []


def _from_pandas(frame: pd.DataFrame) -> tuple[list[str], list[pa.ChunkedArray], list[str], list[str]]:
    import pyarrow as pa

    names, columns, labels, notes = [], [], [], []
    for position, label in enumerate(frame.columns):
        name = label if isinstance(label, str) else str(label)
        series = frame.iloc[:, position]
        array, added = _from_series(series, name)
        names.append(name)
        columns.append(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))
        labels.append(f"pandas {series.dtype}")
        notes.extend(added)
    return names, columns, labels, notes


def _from_series(series: pd.Series[Any], name: str) -> tuple[pa.Array | pa.ChunkedArray, list[str]]:
    import pyarrow as pa

    notes: list[str] = []
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
        values = series.to_numpy()
        missing = int(np.isnan(values).sum())
        if missing:
            notes.append(f"column {name!r}: {missing} NaN taken as null (pandas writes missing numbers so)")
        if bool((np.abs(values) >= _FIRST_LOST).any()):
            notes.append(
                f"column {name!r}: whole numbers of 2**53 and more held as floats:"
                " precision may be lost before we saw it (use dtype 'Int64')"
            )
        return pa.array(values, from_pandas=True), notes
    try:
        return pa.array(series, from_pandas=True), notes
    except (pa.ArrowException, OverflowError):
        return _from_objects(series, name)


def _from_objects(series: pd.Series[Any], name: str) -> tuple[pa.Array, list[str]]:
    """Python objects of several types: exact decimals where all are numbers, else text with a note."""
    import decimal

    import pandas as pd
    import pyarrow as pa

    values = [None if v is None or v is pd.NA or v is pd.NaT or v != v else v for v in series.tolist()]
    present = [v for v in values if v is not None]
    if all(isinstance(v, (int, decimal.Decimal)) and not isinstance(v, bool) for v in present):
        try:
            exact = [None if v is None else decimal.Decimal(v) for v in values]
            return pa.array(exact), []
        except (pa.ArrowInvalid, ValueError):
            raise InputError(
                message(f"column {name!r} holds numbers of more than 76 digits", None, hint="Turn it into text")
            ) from None
    scalar = (str, bytes, int, float, decimal.Decimal)
    odd = next((v for v in present if not isinstance(v, scalar) and not hasattr(v, "isoformat")), None)
    if odd is not None:
        raise unusable(name, type(odd).__name__)
    examples = {type(v).__name__: quote(str(v)) for v in reversed(present)}
    listed = ", ".join(f"{kind} {example}" for kind, example in sorted(examples.items()))
    text = [
        None if v is None else v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else str(v) for v in values
    ]
    return pa.array(text, pa.large_string()), [f"column {name!r} mixes types ({listed}): read as text"]


def unusable(name: str, type_: str) -> InputError:
    return InputError(
        message(
            f"column {name!r} can't be compared value by value: its type is",
            type_,
            "numbers, text, dates, timestamps, booleans, times",
            f"Leave it out: --exclude {name}",
        )
    )


def typed_column(name: str, array: pa.Array | pa.ChunkedArray, label: str) -> tuple[TypedColumn, list[str]]:
    """A column with the type that its Arrow type stands for, and notes.

    Raises InputError for binary, nested and calendar-interval columns: they have no order and no equality that Spark,
    Arrow and NumPy share.
    """
    import pyarrow as pa

    given = array.type
    if isinstance(given, pa.BaseExtensionType):
        array = pa.chunked_array(
            [c.storage for c in pa.chunked_array([array] if isinstance(array, pa.Array) else array).chunks],
            given.storage_type,
        )
        return typed_column(name, array, label)
    if isinstance(given, pa.RunEndEncodedType):
        import pyarrow.compute as pc

        return typed_column(name, pc.run_end_decode(array), label)
    if pa.types.is_nested(given):
        raise unusable(name, str(given))
    if pa.types.is_dictionary(given):
        array = array.unify_dictionaries() if isinstance(array, pa.ChunkedArray) else array
    values, index = indexed(array)
    type_, typed, remark = _canonical(name, values)
    why = f"stored as {label}" if label.startswith("pandas") else f"stored as {label} {given}"
    return TypedColumn(name, type_, why + (f"; {remark}" if remark else ""), typed, index), []


def _canonical(name: str, values: pa.Array) -> tuple[TypeName, pa.Array, str]:
    """Type, values in the form that encoding takes, and what was done to them."""
    import pyarrow as pa

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
        elif not t.is_decimal128(given) and not t.is_decimal256(given):
            values = values.cast(pa.decimal128(given.precision, given.scale))
        return "decimal", values, ""
    if t.is_date(given):
        return "date", values.cast(pa.date32()), ""
    if t.is_timestamp(given):
        remark = "" if given.tz else "without a zone: taken as UTC"
        return "timestamp", values.cast(pa.timestamp(given.unit, tz="UTC")), remark
    return _canonical_rest(name, values)


def _canonical_rest(name: str, values: pa.Array) -> tuple[TypeName, pa.Array, str]:
    import pyarrow as pa

    t = pa.types
    given = values.type
    if t.is_string(given) or t.is_large_string(given) or t.is_string_view(given):
        return "text", values.cast(pa.large_string()), ""
    if t.is_time(given):
        return "text", values.cast(pa.large_string()), "a time of day as text of fixed width, so in order"
    if t.is_duration(given):
        return "integer", values.cast(pa.int64()), f"a duration as a number of {given.unit}"
    raise unusable(name, str(given))
