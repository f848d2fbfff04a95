"""Options from the keyword arguments of a Python function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from tuplewise.engine.errors import InputError, message, near_names

T = TypeVar("T")

READING = frozenset(("columns", "exclude", "types", "null_tokens", "sep", "encoding", "rows", "reader", "bad_rows"))
SHARES = frozenset({"error", "shared_values", "comparable_means"})


def exact_decimal(name: str, value: Any) -> Decimal:
    """A number as the decimal that it is written as: 0.1 is one tenth. Raises InputError for what is no number.

    Examples
    --------
    >>> exact_decimal("error", 0.1), exact_decimal("error", "1e-3")
    (Decimal('0.1'), Decimal('0.001'))
    """
    try:
        number = (
            value if isinstance(value, Decimal) else Decimal(value if isinstance(value, str) else repr(float(value)))
        )
    except (InvalidOperation, TypeError, ValueError):
        number = None
    if number is None or isinstance(value, bool) or not number.is_finite():
        raise InputError(message(name, value, "a decimal number"))
    return number


def texts(name: str, given: Any) -> tuple[str, ...]:
    """Names, or one name, as a tuple. Raises InputError for anything else."""
    texts = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(message(name, given, "text, or a list of texts"))
    return texts


def refuse_unknown(function: str, options: type, given: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, but with near names."""
    refuse_unknown_of(function, [f.name for f in fields(options)], given)


def refuse_unknown_of(function: str, known: Sequence[str], given: Mapping[str, Any]) -> None:
    """The same, where options of several kinds are known."""
    for name in given:
        if name not in known:
            reading = name in READING and function != "load"
            hint = f"Read the table with it first: tw.load(table, {name}=...)" if reading else near_names(name, known)
            raise TypeError(message(f"{function}() has no option", name, hint=hint))


def options_of(function: str, kind: type[T], given: Mapping[str, Any]) -> T:
    """Options of one kind from keyword arguments of a function; shares may be float, text or Decimal."""
    refuse_unknown(function, kind, given)
    values = {name: exact_decimal(name, value) if name in SHARES else value for name, value in given.items()}
    return kind(**values)
