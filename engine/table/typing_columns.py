"""Types of columns in this process: inferred for text, or requested by the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.table.arrow_text import count_spellings, one_number_twice, parse
from tuplewise.engine.table.encode import TypedColumn
from tuplewise.engine.table.relation import NULL_CODE, TypeName
from tuplewise.engine.table.text_types import WHAT_FITS, Decision, as_codes, decide, may_be_codes
from tuplewise.engine.table.to_text import to_spark_text

Locate = Callable[[int], str]
"""A function that returns the place in the source of the row at an index: "line 7" or "row 5"."""

ASKED_FOR = "asked for with types"


def infer_text_column(
    name: str, values: pa.Array, index: NDArray[np.int32], *, dates_only: bool = False
) -> tuple[TypedColumn, list[str]]:
    """Infer the type of a text column. Returns the typed column and notes. `values`: distinct large_string.

    `dates_only`: the source marks numbers and booleans itself, so text is never read as one.
    """
    rows = np.bincount(index.astype(np.int64) + 1, minlength=len(values) + 1)[1:]
    used = np.flatnonzero(rows)
    spelled = values if len(used) == len(values) else values.take(pa.array(used))
    counts = count_spellings(spelled, rows[used])
    decision = decide(name, counts)
    twice = one_number_twice(spelled) if may_be_codes(decision, counts) else None
    if twice is not None:
        decision = as_codes(name, *twice)
    if dates_only and decision.type not in ("date", "timestamp"):
        decision = Decision("text", "text in its source")
    typed, misfits = parse(values, decision.type)
    if rows[misfits].any():  # null tokens are still among the values, but no row has them
        raise AssertionError(f"column {name!r}: {values[int(misfits[0])]} was counted as {decision.type}")
    return TypedColumn(name, decision.type, decision.why, typed, index), [decision.note] if decision.note else []


def fitted(column: TypedColumn, type_: TypeName) -> tuple[TypedColumn, NDArray[np.int64]]:
    """Convert a column to a type. Returns it with the indexes of values that don't fit (int64, ascending; now null)."""
    if column.type == type_:
        return replace(column, why=ASKED_FOR), np.empty(0, dtype=np.int64)
    typed, misfits = parse(column.values, type_) if column.type == "text" else _convert(column, type_)
    return replace(column, type=type_, why=ASKED_FOR, values=typed), misfits


_OTHER_TYPE = Wording("Leave the type out, or name the text that means null: {null_tokens}")
LEAVE_OUT = Wording("Nothing was applied; {bad_rows} leaves such rows out", bad_rows="report")
"""A hint for rows that are applied to a state."""


def misfit(
    column: TypedColumn, type_: TypeName, misfits: NDArray[np.int64], locate: Locate, hint: str = _OTHER_TYPE
) -> InputError:
    """The error for the first row with a value that doesn't fit."""
    bad = np.zeros(len(column.values) + 1, dtype=np.bool_)
    bad[misfits] = True
    rows = np.flatnonzero(bad[column.index])
    value = column.values[int(column.index[rows[0]])].as_py()
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return unfit(column.name, type_, value, f"{locate(int(rows[0]))}{more}", hint)


def unfit(column: str, type_: TypeName, value: Any, place: str, hint: str) -> InputError:
    """The error for a value that doesn't fit, with its place."""
    shown = value if len(str(value)) <= 40 else str(value)[:40]
    fault = f"column {column!r}: a value doesn't fit type {type_} at {place}"
    return InputError(message(fault, shown, WHAT_FITS.get(type_), hint))


def _convert(column: TypedColumn, type_: TypeName) -> tuple[pa.Array, NDArray[np.int64]]:
    """Convert typed values to another type without loss. Returns them with the indexes of values that don't fit."""
    values = column.values
    nothing = np.empty(0, dtype=np.int64)
    if type_ == "text":
        return to_spark_text(column.type, values), nothing
    if (column.type, type_) == ("integer", "decimal"):
        return values, nothing
    numbers = ("integer", "decimal", "double")
    if column.type in numbers and type_ in numbers:
        return _convert_numbers(values, type_)
    if (column.type, type_) == ("date", "timestamp"):
        return values.cast(pa.timestamp("s")).cast(pa.timestamp("us", tz="UTC")), nothing
    if (column.type, type_) == ("timestamp", "date"):
        return _each(values, lambda v: v.cast(pa.timestamp(v.type.unit)).cast(pa.date32()), pa.date32())
    used = column.index[column.index != NULL_CODE]
    if len(used) == 0:
        return pa.nulls(len(values), pa.int64()), nothing
    raise InputError(
        message(
            f"column {column.name!r} is {column.type} in its source and can't be read as",
            type_,
            f"{column.type} or text",
        )
    )


def _convert_numbers(values: pa.Array, type_: TypeName) -> tuple[pa.Array, NDArray[np.int64]]:
    import decimal

    if type_ == "double":
        if pa.types.is_decimal(values.type):
            return pa.array([float(v) for v in values.to_pylist()], pa.float64()), np.empty(0, dtype=np.int64)
        return _each(values, lambda v: v.cast(pa.float64()), pa.float64())
    if not pa.types.is_floating(values.type):
        return _each(values, lambda v: v.cast(pa.decimal128(38, 0)), pa.decimal128(38, 0))
    exact = [decimal.Decimal(repr(v)) if v == v and abs(v) < 1e38 else None for v in values.to_pylist()]
    if type_ == "integer":
        exact = [v if v is not None and v == v.to_integral_value() else None for v in exact]
    misfits = np.array([i for i, v in enumerate(exact) if v is None], dtype=np.int64)
    if type_ == "integer":
        return pa.array([None if v is None else decimal.Decimal(int(v)) for v in exact], pa.decimal128(38, 0)), misfits
    return pa.array(exact), misfits


def _each(
    values: pa.Array, cast: Callable[[pa.Array], pa.Array], type_: pa.DataType
) -> tuple[pa.Array, NDArray[np.int64]]:
    """Cast all values at once; if that fails, one by one to find those that don't fit."""
    try:
        return cast(values), np.empty(0, dtype=np.int64)
    except pa.ArrowInvalid:
        misfits = []
        for i in range(len(values)):
            try:
                cast(values.slice(i, 1))
            except pa.ArrowInvalid:
                misfits.append(i)
        return pa.nulls(len(values), type_), np.array(misfits, dtype=np.int64)


def without_tokens(column: TypedColumn, tokens: tuple[str, ...]) -> TypedColumn:
    """The column with tokens replaced by null if it is text; other columns are unchanged."""
    if column.type != "text":
        return column
    return replace(column, index=null_tokens(column.values, column.index, tokens))


def null_tokens(values: pa.Array, index: NDArray[np.int32], tokens: tuple[str, ...]) -> NDArray[np.int32]:
    """`index` with -1 where the value is one of the tokens."""
    if not tokens:
        return index
    hit = pc.is_in(values, value_set=pa.array(tokens, values.type)).to_numpy(zero_copy_only=False)
    lookup = np.append(np.where(hit, NULL_CODE, np.arange(len(values))), NULL_CODE).astype(np.int32)
    return np.asarray(lookup[index], dtype=np.int32)
