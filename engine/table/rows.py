"""Rows as Python objects, read one by one as plain values, with the same meaning as columns in `read_table`.

A plain value is a str, a bool, a float (double) or a number: an int, or a Decimal where it has a fraction. A date is
the number of its days since 1970, a timestamp that of its microseconds since 1970 in UTC; nanoseconds are a fraction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.arrow_text import parse
from tuplewise.engine.table.read_table import other_columns
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, Domain, TypeName
from tuplewise.engine.table.typing_columns import ASKED_FOR, LEAVE_OUT, fitted, unfit

PlainValue = str | bool | float | int | Decimal
PlainRow = list[PlainValue | None]
_Reader = Callable[[Any], PlainValue | None]

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


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column of a state: its name, its fixed type, and the reason for that type."""

    name: str
    type: TypeName
    why: str

    @property
    def domain(self) -> Domain:
        """Columns of one domain share a dictionary, so their codes can be compared."""
        return DOMAIN_OF_TYPE[self.type]

    @property
    def was_inferred(self) -> bool:
        """Whether the column became text because of its values, and not by request or because its source stores it
        so."""
        return self.type == "text" and self.why != ASKED_FOR and not self.why.startswith("stored as")


class Misfit(Exception):
    """A value doesn't fit a type."""


_FAULTS = (Misfit, ValueError, ArithmeticError, TypeError, AttributeError)  # of a value that doesn't fit


def plain_rows(source: Any) -> Sequence[Any] | None:
    """The rows of a list, or of a mapping, which is one row; None for a table."""
    if isinstance(source, Mapping):
        return [source]
    return source if isinstance(source, (list, tuple)) else None


def read_rows(
    rows: Sequence[Any],
    names: Sequence[str],
    types: Sequence[TypeName],
    null_tokens: Sequence[str] = (),
    *,
    leave_out: bool = False,
) -> tuple[list[PlainRow], list[int]]:
    """Read rows as plain values.

    Parameters
    ----------
    rows : mappings by column names, or sequences in the order of the columns
    names, types : of the columns
    null_tokens : text that means null
    leave_out : leave out rows with a value that doesn't fit its column's type

    Returns
    -------
    the values of each row in the order of the columns, None for null; and the numbers of the omitted rows

    Raises
    ------
    InputError
        Where a row has other columns, or a value doesn't fit and is not left out.
    """
    nulls = frozenset(null_tokens)
    readers = [_READERS[type_] for type_ in types]
    found: list[PlainRow] = []
    left_out = []
    for number, row in enumerate(rows):
        values = _row_values(row, names, number)
        if nulls:
            values = [None if isinstance(value, str) and value in nulls else value for value in values]
        try:
            found.append([None if v is None else read(v) for read, v in zip(readers, values, strict=True)])
        except _FAULTS:
            if not leave_out:
                raise _unfit(readers, names, types, values, number) from None
            left_out.append(number)
    return found, left_out


def _row_values(row: Any, names: Sequence[str], number: int) -> Sequence[Any]:
    """The values of a row in the order of the columns."""
    if isinstance(row, Mapping):
        if len(row) == len(names):
            try:
                return [row[name] for name in names]
            except KeyError:
                pass
        raise other_columns(f"row {number}", [str(n) for n in row], names)
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)):
        if len(row) != len(names):
            raise InputError(message(f"row {number} has another number of values", len(row), f"{len(names)}"))
        return row
    allowed = "mappings by column names, or sequences of values"
    raise InputError(message(f"row {number} can't be read", type(row).__name__, allowed))


def _unfit(
    readers: Sequence[_Reader], names: Sequence[str], types: Sequence[TypeName], values: Sequence[Any], number: int
) -> InputError:
    """The error for the first value of a row that doesn't fit."""
    for reader, name, type_, value in zip(readers, names, types, values, strict=True):
        try:
            _ = None if value is None else reader(value)
        except _FAULTS:
            return unfit(name, type_, value, f"row {number}", LEAVE_OUT)
    raise AssertionError(f"each value of row {number} fits")


def _text(value: Any) -> PlainValue | None:
    if type(value) is str:
        if not value.isascii():
            value.encode()  # raises where it has half of a surrogate pair
        return value
    return str(value) if type(value) is int else _general(value, "text")


def _integer(value: Any) -> PlainValue | None:
    if type(value) is int and -_BEYOND < value < _BEYOND:
        return value
    if type(value) is str and _WHOLE.fullmatch(value):
        return int(value)
    return _general(value, "integer")


def _decimal(value: Any) -> PlainValue | None:
    if type(value) is int and -_BEYOND < value < _BEYOND:
        return value
    return _written_decimal(value) if type(value) in (Decimal, str) else _general(value, "decimal")


@lru_cache(maxsize=_REMEMBERED, typed=True)
def _written_decimal(value: Decimal | str) -> PlainValue | None:
    text = str(value)
    return _number(Decimal(text)) if _PLAIN_DECIMAL.fullmatch(text) else _by_column(value, "decimal")


def _number(value: Decimal) -> int | Decimal:
    whole = int(value)
    return whole if whole == value else value


def _double(value: Any) -> PlainValue | None:
    return value if type(value) is float else _general(value, "double")


def _date(value: Any) -> PlainValue | None:
    day = date.fromisoformat(value) if type(value) is str and _PLAIN_DATE.fullmatch(value) else value
    return day.toordinal() - _FIRST_DAY if type(day) is date else _general(value, "date")


def _timestamp(value: Any) -> PlainValue | None:
    moment = datetime.fromisoformat(value) if type(value) is str and _PLAIN_TIME.fullmatch(value) else value
    if type(moment) is not datetime:
        return _general(value, "timestamp")
    since = moment - (_PLAIN_EPOCH if moment.tzinfo is None else _EPOCH)
    return (since.days * _DAY_SECONDS + since.seconds) * 1_000_000 + since.microseconds


def _boolean(value: Any) -> PlainValue | None:
    return value if type(value) is bool else _general(value, "boolean")


_READERS: dict[TypeName, _Reader] = {
    "text": _text,
    "integer": _integer,
    "decimal": _decimal,
    "double": _double,
    "date": _date,
    "timestamp": _timestamp,
    "boolean": _boolean,
}


def _general(value: Any, type_: TypeName) -> PlainValue | None:
    """A value, read by the rules for columns; None for a null of pandas. Raises Misfit."""
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):  # NumPy's scalars
        value = value.item()
    if type_ == "text":  # equal values may be written in several ways
        return _by_column(value, type_)
    return _remembered(value, type_)


def _by_column(value: Any, type_: TypeName) -> PlainValue | None:
    values = _typed(value, type_)
    if values is None:
        return None
    if type_ == "timestamp":
        return _microseconds(values, getattr(value, "nanosecond", 0))
    plain: Any = values[0].as_py()
    if type_ == "date":
        return int(plain.toordinal()) - _FIRST_DAY
    return _number(plain) if isinstance(plain, Decimal) else plain  # type: ignore[no-any-return]


_remembered = lru_cache(maxsize=_REMEMBERED, typed=True)(_by_column)


def _microseconds(values: pa.Array, nanoseconds: int) -> int | Decimal:
    """The microseconds of the only value of an array. `nanoseconds`: those of a pandas Timestamp, which Arrow drops."""
    if values.type.unit == "ns":
        micro, nanoseconds = divmod(values.cast(pa.int64())[0].as_py(), 1000)
    else:
        micro = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())[0].as_py()
    return Decimal(1000 * micro + nanoseconds).scaleb(-3) if nanoseconds else int(micro)


def _typed(value: Any, type_: TypeName) -> pa.Array | None:
    """A value as an array (1,) of one of the types of a Relation's columns."""
    from tuplewise.engine.table.frames import typed_column

    if isinstance(value, str):
        values, misfits = parse(pa.array([value], pa.large_string()), type_)
    else:
        try:
            if isinstance(value, datetime) and value.tzinfo is not None:
                value = value.astimezone(UTC)  # Arrow drops other offsets where PYARROW_IGNORE_TIMEZONE is set
            array = pa.array([value], from_pandas=type_ != "double")
            if array.null_count:
                return None
            column = typed_column("value", array, "Python")
            column, misfits = fitted(column, type_)
        except (pa.ArrowException, OverflowError, InputError):
            raise Misfit from None
        values = column.values
    if len(misfits) or len(values) != 1:
        raise Misfit
    return values
