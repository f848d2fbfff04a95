"""Single values as Python objects, typed by the types of a state: each as a key of its domain."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from tuplewise.engine.dc.incremental.arrow_keys import keys_of_arrow
from tuplewise.engine.dc.incremental.columns import KeptColumn
from tuplewise.engine.dc.incremental.keys import PlainKey, key_of_bits
from tuplewise.engine.table.plain_rows import Misfit, row_values, typed_value, unfit
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, TypeName

Reader = Callable[[Any], PlainKey | None]

_FAULTS = (Misfit, ValueError, ArithmeticError, TypeError, AttributeError)  # of a value that doesn't fit
_BEYOND = 10**38  # numbers have at most 38 digits
_REMEMBERED = 1 << 14
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,36})", re.ASCII)
_PLAIN_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PLAIN_DATE = re.compile(_DAY, re.ASCII)
_PLAIN_TIME = re.compile(_DAY + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6}|\.[0-9]{3})?", re.ASCII)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_EPOCH = datetime(1970, 1, 1)
_DAY_SECONDS = 86_400
_BITS = struct.Struct("<d"), struct.Struct("<q")
_NOT_A_NUMBER = key_of_bits(_BITS[1].unpack(_BITS[0].pack(float("nan")))[0])


Cells = list[list[PlainKey | None]]


def read_cells(
    columns: Sequence[KeptColumn],
    rows: Sequence[Any],
    null_tokens: Sequence[str] = (),
    *,
    leave_out: bool = False,
) -> tuple[Cells, list[int]]:
    """Rows as keys.

    Parameters
    ----------
    rows : mappings by column names, or sequences in the order of the columns
    null_tokens : text that means null
    leave_out : leave rows out that have a value that doesn't fit its column's type

    Returns
    -------
    for each column the keys of its rows, None for null; and the numbers of the rows that were left out

    Raises
    ------
    InputError
        Where a row has other columns, or a value doesn't fit and is not left out.
    """
    names = [column.name for column in columns]
    given = [row_values(row, names, number) for number, row in enumerate(rows)]
    if not given:
        return [[] for _ in columns], []
    readers = [_READERS[column.type] for column in columns]
    nulls = frozenset(null_tokens)
    try:
        cells = zip(*given, strict=True)
        return [_keys(reader, values, nulls) for reader, values in zip(readers, cells, strict=True)], []
    except _FAULTS:
        keys, left_out = _fitting(columns, readers, given, nulls, leave_out)
        return [list(column) for column in zip(*keys, strict=True)] if keys else [[] for _ in columns], left_out


def _keys(reader: Reader, cells: Sequence[Any], nulls: frozenset[str]) -> list[PlainKey | None]:
    if nulls:
        return [None if v is None or (isinstance(v, str) and v in nulls) else reader(v) for v in cells]
    return [None if v is None else reader(v) for v in cells]


def _fitting(
    columns: Sequence[KeptColumn],
    readers: Sequence[Reader],
    rows: Sequence[Sequence[Any]],
    nulls: frozenset[str],
    leave_out: bool,
) -> tuple[Cells, list[int]]:
    """Rows of keys, one by one: those in which each value fits, and the numbers of the others."""
    found: Cells = []
    left_out = []
    for number, row in enumerate(rows):
        keys: list[PlainKey | None] = []
        try:
            for reader, value in zip(readers, row, strict=True):
                keys.extend(_keys(reader, (value,), nulls))
        except _FAULTS:
            if not leave_out:
                column = columns[len(keys)]
                raise unfit(column.name, column.type, row[len(keys)], number) from None
            left_out.append(number)
        else:
            found.append(keys)
    return found, left_out


def _text(value: Any) -> PlainKey | None:
    return value.encode() if type(value) is str else _general(value, "text")


def _integer(value: Any) -> PlainKey | None:
    if type(value) is int and -_BEYOND < value < _BEYOND:
        return value
    if type(value) is str and _WHOLE.fullmatch(value):
        return int(value)
    return _general(value, "integer")


def _decimal(value: Any) -> PlainKey | None:
    if type(value) is int and -_BEYOND < value < _BEYOND:
        return value
    text = str(value) if type(value) is Decimal else value
    if type(text) is str and _PLAIN_DECIMAL.fullmatch(text):
        number = Decimal(text)
        whole = int(number)
        return whole if whole == number else number
    return _general(value, "decimal")


def _double(value: Any) -> PlainKey | None:
    if type(value) is not float:
        return _general(value, "double")
    if value != value:
        return _NOT_A_NUMBER
    return key_of_bits(_BITS[1].unpack(_BITS[0].pack(value + 0.0))[0])  # 0.0 for -0.0


def _date(value: Any) -> PlainKey | None:
    day = date.fromisoformat(value) if type(value) is str and _PLAIN_DATE.fullmatch(value) else value
    return day.toordinal() - _FIRST_DAY if type(day) is date else _general(value, "date")


def _timestamp(value: Any) -> PlainKey | None:
    moment = datetime.fromisoformat(value) if type(value) is str and _PLAIN_TIME.fullmatch(value) else value
    if type(moment) is not datetime:
        return _general(value, "timestamp")
    since = moment - (_PLAIN_EPOCH if moment.tzinfo is None else _EPOCH)
    return (since.days * _DAY_SECONDS + since.seconds) * 1_000_000 + since.microseconds


def _boolean(value: Any) -> PlainKey | None:
    return int(value) if type(value) is bool else _general(value, "boolean")


_READERS: dict[TypeName, Reader] = {
    "text": _text,
    "integer": _integer,
    "decimal": _decimal,
    "double": _double,
    "date": _date,
    "timestamp": _timestamp,
    "boolean": _boolean,
}


@lru_cache(maxsize=_REMEMBERED, typed=True)
def _general(value: Any, type_: TypeName) -> PlainKey | None:
    """The key of a value by the rules that columns are read by; None of what pandas has for null. Raises Misfit."""
    values = typed_value(value, type_)
    return None if values is None else keys_of_arrow(DOMAIN_OF_TYPE[type_], values).plain()[0]
