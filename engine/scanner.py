"""What readers of dependencies share: a place in a text, moved along by signs and names, with faults that name it."""

from __future__ import annotations

import re

from tuplewise.engine.errors import Fault
from tuplewise.engine.table.schema import quoted_text

PLAIN = re.compile(r"[^\W\d]\w*")
BRACKETS = {"[": "]", "(": ")"}


class Scanner:
    """A text with a place in it.

    Attributes
    ----------
    text, at : the text, and the place from its start
    unknown : faults that were met and read past, such as a name that no column has
    """

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.unknown: list[Fault] = []

    def skip_blanks(self) -> int:
        while self.at < len(self.text) and (self.text[self.at].isspace() or self.text[self.at] == "\ufeff"):
            self.at += 1
        return self.at

    def take(self, *signs: str) -> str | None:
        """Move past the first of the signs that is next, after blanks."""
        at = self.skip_blanks()
        sign = next((s for s in signs if self.text.startswith(s, at)), None)
        self.at += len(sign or "")
        return sign

    def fault(self, what: str) -> Fault:
        """A fault here that says what stands here instead."""
        at = self.skip_blanks()
        match = PLAIN.match(self.text, at)
        found = match.group() if match else self.text[at : at + 2].strip()
        return Fault(f"{what}, found {found!r}" if found else f"{what}, but the text ends", at)

    def finish(self) -> None:
        """Nothing but blanks may be left."""
        if self.skip_blanks() < len(self.text):
            raise self.fault("expected a comma or the end")

    def quoted(self) -> str:
        """The text between the quotes that are next; see `quote_text`."""
        found = quoted_text(self.text, self.at)
        if found is None:
            quote = self.text[self.at]
            hint = f"Double it where it belongs to the name: {quote * 2}"
            raise Fault(f"a {quote} that is not closed", self.at, hint)
        text, self.at = found
        return text
