"""What is wrong with a rule's text, where, and how that is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from tuplewise.engine.errors import RuleError, near_names

ACCEPTED = (
    "Accepted: not(t.a == u.a and t.b != u.b) | !(s.A == t.A and s.B < 5) | ¬{ t.a = t'.a ∧ t.b ≠ t'.b } | "
    "∀t,u: ¬(...) | t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b) | a, b -> c | [a, b]. "
    "Names that are no plain word stand in `...` or \"...\", text in '...'."
)
_WIDEST = 100


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


def rule_error(text: str, faults: Iterable[Fault]) -> RuleError:
    """The error of one text, with the forms that are accepted."""
    return RuleError(f"{describe(text, faults)}\n{ACCEPTED}")


def near_hint(name: str, columns: Sequence[str]) -> str | None:
    """Names near to one that is unknown; one that differs in case only goes first."""
    same = [c for c in columns if c.casefold() == name.casefold()]
    return near_names(name, same or columns) if same or columns else None


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
