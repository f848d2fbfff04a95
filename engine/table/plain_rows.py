"""Rows as Python objects, mappings by column names or sequences: their values, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.arrow_text import parse
from tuplewise.engine.table.read_table import other_columns
from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.text_types import WHAT_FITS
from tuplewise.engine.table.typing_columns import fitted

if TYPE_CHECKING:
    import pyarrow as pa


class Misfit(Exception):
    """A value doesn't fit a type."""


def row_values(row: Any, names: Sequence[str], number: int) -> Sequence[Any]:
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


def unfit(column: str, type_: TypeName, value: Any, number: int) -> InputError:
    """The error that names row and column of a value that doesn't fit."""
    shown = value if len(str(value)) <= 40 else str(value)[:40]
    hint = "Nothing was applied"
    return InputError(
        message(
            f"column {column!r}: a value doesn't fit type {type_} at row {number}", shown, WHAT_FITS.get(type_), hint
        )
    )


def typed_value(value: Any, type_: TypeName) -> pa.Array | None:
    """A value by the rules that columns are read by.

    Returns
    -------
    array (1,) of a type that columns of a Relation have; None of what pandas has for null

    Raises
    ------
    Misfit
        Where the value doesn't fit the type.
    """
    import pyarrow as pa

    from tuplewise.engine.table.frames import typed_column

    if hasattr(value, "item") and not isinstance(value, (str, bytes)):  # NumPy's scalars
        value = value.item()
    if isinstance(value, str):
        values, misfits = parse(pa.array([value], pa.large_string()), type_)
    else:
        try:
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
