"""The errors that tuplewise raises: one clear message each, with the thing, its value, what is allowed and a hint."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence


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


def number_of(count: int, thing: str, things: str | None = None) -> str:
    """A count with what is counted: `1 row`, `2,000 rows`. `things`: the plural, where it isn't `thing` with an s."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def shortened(text: str, most: int = 80) -> str:
    """A text to be shown: of a longer one the beginning."""
    return text if len(text) <= most else text[: most - 3] + "..."


def near_names(name: str, names: Iterable[str]) -> str | None:
    """A hint that lists the names most like `name`, or None where nothing is near."""
    known = list(names)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "Did you mean " + " or ".join(repr(n) for n in near) + "?"
    if known and len(known) <= 12:
        return "Known: " + ", ".join(repr(n) for n in known)
    return None


def near_hint(name: str, columns: Sequence[str]) -> str | None:
    """Names near to one that is unknown; one that differs in case only goes first."""
    same = [c for c in columns if c.casefold() == name.casefold()]
    return near_names(name, same or columns) if same or columns else None


class Fault(Exception):
    """Something wrong at one place of a text.

    Attributes
    ----------
    what : what was found or expected, one sentence without a full stop
    at : index into the text
    hint : what to do, or None
    """

    def __init__(self, what: str, at: int, hint: str | None = None) -> None:
        super().__init__(what)
        self.what, self.at, self.hint = what, at, hint


class Faults(Exception):
    """All that is wrong with one text."""

    def __init__(self, found: Sequence[Fault]) -> None:
        super().__init__(*(f.what for f in found))
        self.found = tuple(found)


def describe(text: str, faults: Iterable[Fault], place: str = "rule") -> str:
    """Each fault with its position (1-based, in characters), the text, and a caret below the place."""
    parts = []
    for fault in faults:
        hint = f". {fault.hint}" if fault.hint else ""
        parts.append(f"{place}, position {fault.at + 1}: {fault.what}{hint}\n{_pointed(text, fault.at)}")
    return "\n".join(parts)


_WIDEST = 100


def _pointed(text: str, at: int) -> str:
    """The part of the text round a place, and a caret below it."""
    start = max(0, min(at - _WIDEST // 2, len(text) - _WIDEST))
    end = start + _WIDEST
    front, back = "..." if start else "", "..." if end < len(text) else ""
    shown = front + "".join(map(_visible, text[start:end])) + back
    width = len(front) + sum(_width(_visible(c)) for c in text[start:at])
    return f"    {shown}\n    {' ' * width}^"


def _visible(char: str) -> str:
    """The character; a blank for one that would move the line or hide."""
    return char if char.isprintable() or unicodedata.combining(char) else " "


def _width(char: str) -> int:
    """Cells that a terminal gives a character."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


_OPTION = re.compile(
    r"(?<![\w'\"`-])(?:"  # in quotes it is somebody's value
    r"--(?P<typed>types|conf) (?P<key>[^,;]+?)=(?P<of>[^\s,;)]+)"
    r"|--(?P<valued>run-on|bad-rows|rules-syntax|encoding|decimal|thousands) (?P<value>[\w-]+|[.,](?!\S))"
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
