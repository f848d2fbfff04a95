"""The errors that tuplewise raises: one clear message each, with the thing, its value, what is allowed and a hint."""

from __future__ import annotations

import difflib
import re
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


_OPTION = re.compile(
    r"(?<![\w'\"`-])(?:"  # in quotes it is somebody's value
    r"--(?P<typed>types|conf) (?P<key>[^,;]+?)=(?P<of>[^\s,;)]+)"
    r"|--(?P<valued>run-on|bad-rows|rules-syntax|encoding) (?P<value>[\w-]+)"
    r"|--(?P<left_out>exclude) (?P<column>.+)$"
    r"|--no-(?P<flag>header|cross-columns)"
    r"|--(?P<name>[a-z]+(?:-[a-z]+)*)(?: (?P<number>N|\d+)\b)?)"
)
_LISTS = {"null-token": "null_tokens"}


def python_names(text: str) -> str:
    """A message with options as the Python functions call them, not as the command line does.

    Examples
    --------
    >>> python_names("Look at fewer rows (--rows), or set --time-limit")
    'Look at fewer rows (rows), or set time_limit'
    >>> python_names("Check it in this process: --run-on driver"), python_names("Read it as text: --types zip=text")
    ("Check it in this process: run_on='driver'", "Read it as text: types={'zip': 'text'}")
    """

    def named(found: re.Match[str]) -> str:
        part = {name: value for name, value in found.groupdict().items() if value is not None}
        if "typed" in part:
            return f"{part['typed']}={{{part['key']!r}: {part['of']!r}}}"
        if "valued" in part:
            return f"{part['valued'].replace('-', '_')}={part['value']!r}"
        if "left_out" in part:
            return f"{part['left_out']}={part['column']!r}"
        if "flag" in part:
            return f"{part['flag'].replace('-', '_')}=False"
        name = _LISTS.get(part["name"], part["name"].replace("-", "_"))
        return f"{name}={part['number']}" if "number" in part else name

    return _OPTION.sub(named, text)
