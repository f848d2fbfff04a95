"""Names of rows in a state with a key: the values of the key, in JSON form."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.arrow_keys import arrow_of_keys
from tuplewise.engine.dc.incremental.dictionaries import Additions, Dictionaries
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, TypeName
from tuplewise.engine.table.rows import KeptColumn


def key_of_row(
    columns: list[KeptColumn], codes: NDArray[np.int32], dictionaries: Dictionaries, additions: Additions
) -> dict[str, Any]:
    """Values of a key by column names.

    Parameters
    ----------
    columns : columns of the key
    codes : int32 (columns,), none is null
    additions : new values that are not in the dictionaries yet
    """
    name = {}
    for column, code in zip(columns, codes.tolist(), strict=True):
        name[column.name] = plain_value(_value(column, code, dictionaries, additions), column.type)
    return name


def _value(column: KeptColumn, code: int, dictionaries: Dictionaries, additions: Additions) -> Any:
    """The value of a code."""
    domain = DOMAIN_OF_TYPE[column.type]
    new = additions.runs.get(domain)
    if new is not None:
        at = np.flatnonzero(new.codes == code)
        if len(at):
            return arrow_of_keys(domain, new.keys.take(at))[0].as_py()
    return dictionaries.values(domain, np.array([code], dtype=np.int32))[0].as_py()


def plain_value(value: Any, type_: TypeName) -> Any:
    """A value of a column in JSON form: whole numbers, doubles and booleans unchanged, others as text.

    Columns of numbers share a dictionary, so a whole number may be given as a decimal.

    Examples
    --------
    >>> plain_value(Decimal("7.00"), "integer"), plain_value(Decimal("1.50"), "decimal")
    (7, '1.5')
    """
    if type_ == "integer":
        return int(value)
    if isinstance(value, (int, Decimal)) and type_ == "decimal":
        return format(Decimal(value).normalize(), "f")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value
