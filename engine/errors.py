"""The errors that tuplewise raises: one clear message each, with the thing, its value, what is allowed and a hint.

A message may name options. `Wording` keeps them apart from the text, and the face that shows the message spells them.
"""

from __future__ import annotations

import difflib
import shlex
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Face = Callable[[str, Any], str]
"""Where a text is shown: spells an option as it is given there, by its name in Python and its value.

The value None asks for the name alone.
"""


def python_option(name: str, value: Any) -> str:
    """An option as the Python functions take it.

    Examples
    --------
    >>> python_option("time_limit", None), python_option("run_on", "driver"), python_option("header", False)
    ('time_limit', "run_on='driver'", 'header=False')
    """
    return name if value is None else f"{name}={value!r}"


def command_line_option(name: str, value: Any) -> str:
    """An option as the command line takes it.

    Examples
    --------
    >>> command_line_option("time_limit", None), command_line_option("run_on", "driver")
    ('--time-limit', '--run-on driver')
    >>> command_line_option("header", False), command_line_option("types", {"zip code": "text"})
    ('--no-header', "--types 'zip code=text'")
    """
    option = _COMMAND_LINE_NAMES.get(name, name).replace("_", "-")
    if isinstance(value, bool):
        return f"--{option}" if value else f"--no-{option}"
    if isinstance(value, Mapping):
        return " ".join(f"--{option} {shlex.quote(f'{key}={of}')}" for key, of in value.items())
    return f"--{option}" if value is None else f"--{option} {shlex.quote(str(value))}"


_COMMAND_LINE_NAMES = {"null_tokens": "null_token"}
"""Options that the command line calls by another name."""


class Placeholder(str):
    """What stands for a value in a text, such as the N of `--rows N`."""

    __repr__ = str.__str__


class Wording(str):
    """A text that names options. It spells them as Python does; `spelled` gives what another face shows.

    It is a str, so that notes and messages stay plain text for callers from Python. An f-string or `+` makes a plain
    text of it, which no face can spell any more: build a longer text as a Wording that has it among its parts.

    Parameters
    ----------
    template : the text. `{rows}` names an option, or shows it with its value of `options`; `{rows:N}` shows it with N
        in place of a value; `{}` stands for the next of `parts`.
    parts : what goes into the text as it is; a Wording among them is spelled together with the rest
    options : values of options that the template names

    Examples
    --------
    >>> hint = Wording("Look at fewer rows ({rows}), or do it in {}: {run_on}", "this process", run_on="driver")
    >>> print(hint)
    Look at fewer rows (rows), or do it in this process: run_on='driver'
    >>> print(hint.spelled(command_line_option))
    Look at fewer rows (--rows), or do it in this process: --run-on driver
    """

    _made_of: tuple[str, tuple[str, ...], dict[str, Any]]

    def __new__(cls, template: str, *parts: object, **options: Any) -> Wording:
        texts = tuple(part if isinstance(part, str) else str(part) for part in parts)
        self = super().__new__(cls, _filled(template, texts, options, python_option))
        self._made_of = (template, texts, options)
        return self

    def spelled(self, face: Face) -> str:
        """The text with its options as a face spells them."""
        return _filled(*self._made_of, face)

    def __getnewargs_ex__(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        template, parts, options = self._made_of
        return (template, *parts), options


def _filled(template: str, parts: tuple[str, ...], options: dict[str, Any], face: Face) -> str:
    """The text of a Wording with its options as a face spells them."""
    left = iter(parts)
    text = ""
    for before, name, placeholder, _ in string.Formatter().parse(template):
        text += before
        if name == "":
            text += spelled(next(left), face)
        elif name is not None:
            text += face(name, options.get(name, Placeholder(placeholder) if placeholder else None))
    return text


def spelled(text: str, face: Face) -> str:
    """A text with its options as a face spells them."""
    return text.spelled(face) if isinstance(text, Wording) else text


def all_spelled(texts: Iterable[str], face: Face) -> list[str]:
    """Each text with its options as a face spells them."""
    return [spelled(text, face) for text in texts]


def placed(place: str, texts: Iterable[str]) -> list[str]:
    """Each text with what it is about in front, options kept apart."""
    return [Wording("{}: {}", place, text) for text in texts]


def joined(texts: Iterable[str], between: str) -> str:
    """Several texts as one, options kept apart."""
    parts = list(texts)
    return Wording(between.join(["{}"] * len(parts)), *parts)


class TuplewiseError(Exception):
    """Base of every error that tuplewise raises on purpose. Its text spells options as Python does."""

    exit_code = 2

    @property
    def wording(self) -> str:
        """What it says, for a text that is made of it: a Wording where it names options."""
        return self.args[0] if self.args else ""

    def spelled(self, face: Face) -> str:
        """What it says, with its options as a face spells them."""
        return spelled(self.wording, face)


class InputError(TuplewiseError, ValueError):
    """A table, option or file that can't be used as it is."""


class RuleError(InputError):
    """A rule that can't be read, or names something that isn't there.

    Parameters
    ----------
    said : what is wrong
    accepted : the forms that can be read, which the message ends with; "" where that isn't in question
    """

    def __init__(self, said: str, accepted: str = "") -> None:
        super().__init__(joined((said, accepted), "\n") if accepted else said)
        self.said, self.accepted = said, accepted


class DeviceError(TuplewiseError, RuntimeError):
    """A device that was asked for can't be used."""


class LimitReached(TuplewiseError):
    """A time or memory limit ended the work before it was done."""

    exit_code = 3


def message(what: str, value: object = None, allowed: str | None = None, hint: str | None = None) -> str:
    """One error text: the thing, its actual value, what is allowed, one hint."""
    said = [what]
    said += [] if value is None else [f": {value!r}"]
    said += ["; allowed: ", allowed] if allowed else []
    said += [". ", hint] if hint else []
    return joined(said, "")


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
    return joined(
        (
            Wording("{}, position {}: {}\n{}", place, f.at + 1, message(f.what, hint=f.hint), _pointed(text, f.at))
            for f in faults
        ),
        "\n",
    )


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
