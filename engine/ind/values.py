"""Families of comparable values, and canonical bytes that are equal exactly when values are.

Only values of the same *family* are compared. Whole numbers and decimals form one family (compared exactly), dates and
timestamps another: a date is its midnight in UTC, so Spark's common type of the two loses nothing. Doubles stand alone,
as 64-bit integers do not fit a double. Text is never compared with others. With `as_text` all are one family: text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.to_text import decimal_digits

if TYPE_CHECKING:
    import pyarrow as pa

Family = Literal["number", "double", "instant", "boolean", "text"]
FAMILIES: tuple[Family, ...] = get_args(Family)
FAMILY_OF_TYPE: dict[TypeName, Family] = {
    "integer": "number",
    "decimal": "number",
    "double": "double",
    "date": "instant",
    "timestamp": "instant",
    "boolean": "boolean",
    "text": "text",
}
_DAY_MICROSECONDS = 86_400_000_000
_DOUBLE = struct.Struct(">d")
_NAN = _DOUBLE.pack(float("nan"))


def family_of(type_name: TypeName, as_text: bool = False) -> Family:
    """The family of a type.

    Examples
    --------
    >>> family_of("decimal"), family_of("date"), family_of("date", as_text=True)
    ('number', 'instant', 'text')
    """
    return "text" if as_text else FAMILY_OF_TYPE[type_name]


def canonical_bytes(type_: TypeName) -> Callable[[Any], bytes]:
    """Function from plain values (`engine.table.rows`) of a type to bytes. Bytes of two values of a family are equal
    exactly when the values are.

    Notes
    -----
    number: digits without redundant zeros, `-1.5`, `100`. double: its 8 bytes, most significant first, one NaN,
    0.0 for -0.0. instant: whole microseconds since 1970 as digits; with nanoseconds, three more digits after a
    point. boolean: `true`, `false`. text: UTF-8.

    Examples
    --------
    >>> [canonical_bytes("decimal")(value) for value in (1, Decimal("-0.50"))]
    [b'1', b'-0.5']
    >>> canonical_bytes("date")(1) == canonical_bytes("timestamp")(86_400_000_000)
    True
    """
    return _WRITERS[type_]


def _number(value: int | Decimal) -> bytes:
    return b"%d" % value if type(value) is int else format(value, "f").rstrip("0").encode()


def _double(value: float) -> bytes:
    return _NAN if value != value else _DOUBLE.pack(value + 0.0)


def _date(days: int) -> bytes:
    return b"%d" % (days * _DAY_MICROSECONDS)


def _timestamp(microseconds: int | Decimal) -> bytes:
    if type(microseconds) is int:
        return b"%d" % microseconds
    return b"%d.%03d" % divmod(int(1000 * microseconds), 1000)


def _boolean(value: bool) -> bytes:
    return b"true" if value else b"false"


_WRITERS: dict[TypeName, Callable[[Any], bytes]] = {
    "integer": _number,
    "decimal": _number,
    "double": _double,
    "date": _date,
    "timestamp": _timestamp,
    "boolean": _boolean,
    "text": str.encode,
}


def canonical_array(family: Family, values: pa.Array) -> pa.Array:
    """The canonical bytes of many values.

    Parameters
    ----------
    values : pyarrow array (values,), no nulls
        int64 or decimal (number), float64, date32 or timestamp (instant), bool, large_string: the types of a
        relation's columns.

    Returns
    -------
    large_binary (values,)
    """
    import pyarrow as pa

    if family == "number":
        return _numbers(values).cast(pa.large_binary())
    if family == "double":
        plain = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64) + 0.0
        plain[np.isnan(plain)] = np.nan
        return _fixed_width(plain.astype(">f8"))
    if family == "instant":
        return _instants(values).cast(pa.large_binary())
    return values.cast(pa.large_string()).cast(pa.large_binary())


def _fixed_width(values: np.ndarray[Any, Any]) -> pa.Array:
    import pyarrow as pa

    size = values.dtype.itemsize
    offsets = np.arange(len(values) + 1, dtype=np.int64) * size
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def _numbers(values: pa.Array) -> pa.Array:
    """Plain digits, without trailing zeros of a fraction."""
    import pyarrow as pa

    if not pa.types.is_decimal(values.type):
        return values.cast(pa.large_string())
    return decimal_digits(values, trim=True)


def _instants(values: pa.Array) -> pa.Array:
    """Microseconds; three more digits if a value has nanoseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_date(values.type):
        days = values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        return pc.multiply(days, _DAY_MICROSECONDS).cast(pa.large_string())
    zone = values.type.tz
    if values.type.unit != "ns":
        micro = values.cast(pa.timestamp("us", tz=zone)).cast(pa.int64())
        return micro.cast(pa.large_string())
    nano = np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)
    micro, rest = np.floor_divide(nano, 1000), np.mod(nano, 1000)
    text = pa.array(micro).cast(pa.large_string())
    if not rest.any():
        return text
    digits = pc.utf8_lpad(pa.array(rest).cast(pa.large_string()), 3, "0")
    long = pc.binary_join_element_wise(text, digits, pa.scalar(".", pa.large_string()))
    return pc.if_else(pa.array(rest == 0), text, long)
