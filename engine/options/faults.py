"""Faults of options: all of one set are said in one error."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from operator import index
from typing import Any, get_args

from tuplewise.engine.errors import InputError, joined, message


def raise_faults(problems: list[str]) -> None:
    if problems:
        raise InputError(joined(problems, "; "))


def choice_faults(options: Any, **choices: Any) -> list[str]:
    """One message for each option that is none of its choices."""
    faults = []
    for name, allowed in choices.items():
        known = get_args(allowed)
        if getattr(options, name) not in known:
            faults.append(message(name, getattr(options, name), " or ".join(map(repr, known))))
    return faults


def number_faults(options: Any, **least: int) -> list[str]:
    """One message for each option that is no whole number, or less than its least; whole numbers become `int`."""
    faults = []
    for name, bound in least.items():
        value = getattr(options, name)
        if value is None and options.__dataclass_fields__[name].default is None:
            continue
        number = _whole(value)
        if number is None:
            faults.append(message(name, "None" if value is None else value, f"a whole number, {bound} or more"))
        elif number < bound:
            faults.append(message(name, value, f"{bound} or more"))
        else:
            object.__setattr__(options, name, number)
    return faults


def _whole(value: Any) -> int | None:
    """A whole number of any type (NumPy's too); None for anything else."""
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None


def flag_faults(options: Any, *names: str) -> list[str]:
    """One message for each option that is neither true nor false: text such as "no" would count as true."""
    given = {name: getattr(options, name) for name in names}
    return [message(n, v, "True or False") for n, v in given.items() if not isinstance(v, bool)]


def limit_faults(options: Any) -> list[str]:
    """Faults in time_limit (any real number) and memory_limit (a whole one); both None or above 0."""
    faults = []
    limit, size = options.time_limit, options.memory_limit
    real = isinstance(limit, (Real, Decimal)) and not isinstance(limit, bool)
    if limit is not None and not (real and limit > 0):
        faults.append(message("time_limit", limit, "seconds above 0"))
    elif limit is not None:
        object.__setattr__(options, "time_limit", float(limit))
    if size is not None and (_whole(size) or 0) <= 0:
        faults.append(message("memory_limit", size, "bytes above 0, a whole number"))
    elif size is not None:
        object.__setattr__(options, "memory_limit", _whole(size))
    return faults
