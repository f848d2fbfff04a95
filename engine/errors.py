"""The errors that tuplewise raises: one clear message each, with the thing, its value, what is allowed and a hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TuplewiseError(Exception):
    """Base of every error that tuplewise raises on purpose."""

    exit_code = 2


class InputError(TuplewiseError, ValueError):
    """A table, option or file that can't be used as it is."""


class RuleError(InputError):
    """A rule that can't be read, or names something that isn't there."""


class DeviceError(TuplewiseError, RuntimeError):
    """A device that was asked for can't be used."""


class LimitReached(TuplewiseError):
    """A time or memory limit ended the work before it was done."""

    exit_code = 3


def message(what: str, value: object = None, allowed: str | None = None, hint: str | None = None) -> str:
    """One error text: the thing, its actual value, what is allowed, one hint."""
    text = what if value is None else f"{what}: {value!r}"
    if allowed:
        text += f"; allowed: {allowed}"
    if hint:
        text += f". {hint}"
    return text


def near_names(name: str, names: Iterable[str]) -> str | None:
    """A hint that lists the names most like `name`, or None where nothing is near."""
    known = list(names)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "Did you mean " + " or ".join(repr(n) for n in near) + "?"
    if known and len(known) <= 12:
        return "Known: " + ", ".join(repr(n) for n in known)
    return None
