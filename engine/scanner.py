"""A place in a text, and the reading that all texts of rules share: signs, words, quoted names, lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from tuplewise.engine.errors import Fault, RuleError, describe
from tuplewise.engine.table.schema import quoted_text

T = TypeVar("T")

PLAIN = re.compile(r"[^\W\d]\w*")
BRACKETS = {"[": "]", "(": ")"}
_NO_NAME = re.compile(r"[`\"\[\]()]")


class Scanner:
    """A text with a place in it.

    Attributes
    ----------
    WORD : what an error quotes as the text found at a place
    QUOTED : what stands in quotes, for the hint about a quote that is not closed
    text, at : the text, and the index of the next character
    unknown : faults that did not stop the reading, such as the name of a column that does not exist
    """

    WORD: re.Pattern[str] = PLAIN
    QUOTED = "name"

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.unknown: list[Fault] = []

    def whole(self, read: Callable[[], T], kind: str, accepted: str) -> T:
        """What `read` makes of the whole text.

        Parameters
        ----------
        kind : what an error calls the text
        accepted : the accepted spellings, which end an error

        Raises
        ------
        RuleError : with all faults
        """
        faults = self.unknown
        try:
            found = read()
            self.finish()
        except Fault as fault:
            faults = [*faults, fault]
        if faults:
            raise RuleError(describe(self.text, faults, kind), accepted)
        return found

    def skip_blanks(self) -> int:
        """Move past blanks; the new place."""
        while self.at < len(self.text) and (self.text[self.at].isspace() or self.text[self.at] == "\ufeff"):
            self.at += 1
        return self.at

    def at_end(self) -> bool:
        """Whether only blanks are left."""
        return self.skip_blanks() == len(self.text)

    def finish(self) -> None:
        """Raise Fault unless only blanks are left."""
        if not self.at_end():
            raise self.fault("expected a comma or the end")

    def sees(self, *signs: str) -> bool:
        """Whether one of the signs is next, after blanks."""
        return self.text.startswith(signs, self.skip_blanks())

    def take(self, *signs: str) -> str | None:
        """Move past the first of the signs that is next, after blanks."""
        at = self.skip_blanks()
        sign = next((s for s in signs if self.text.startswith(s, at)), None)
        self.at += len(sign or "")
        return sign

    def expect(self, sign: str, what: str) -> None:
        """Move past a sign. Raises Fault where something else is next."""
        if not self.take(sign):
            raise self.fault(f"expected {what}")

    def fault(self, what: str, hint: str | None = None) -> Fault:
        """A fault at this place. It quotes the text found here."""
        at = self.skip_blanks()
        match = self.WORD.match(self.text, at)
        found = match.group() if match else self.text[at : at + 2].strip()
        return Fault(f"{what}, found {found!r}" if found else f"{what}, but the text ends", at, hint)

    def separated(self, one: Callable[[], T], closing: str | None) -> list[T]:
        """One or more things with commas between them, and the bracket that closes them, if any."""
        found = [one()]
        while self.take(","):
            found.append(one())
        if closing is not None:
            self.expect(closing, f"a comma or {closing}")
        return found

    def quoted(self) -> str:
        """The text between the quotes that are next; see `quote_text`."""
        found = quoted_text(self.text, self.at)
        if found is None:
            quote = self.text[self.at]
            hint = f"Double it where it belongs to the {self.QUOTED}: {quote * 2}"
            raise Fault(f"a {quote} that is not closed", self.at, hint)
        text, self.at = found
        return text

    def ends_of(self, at: int, names: Iterable[str], follows: re.Pattern[str]) -> list[int]:
        """Where known names at a place end, if `follows` comes next: a plain word first, then the longest."""
        plain = PLAIN.match(self.text, at)
        word = plain.group() if plain else ""
        matching = sorted({n for n in names if n and self.text.startswith(n, at)}, key=lambda n: (n != word, -len(n)))
        return [at + len(n) for n in matching if follows.match(self.text, at + len(n))]

    def bare_name(self, names: Iterable[str], follows: re.Pattern[str], until: re.Pattern[str]) -> str:
        """The name of a column without quotes: a known one that `follows` comes after, else all text before `until`."""
        at = self.skip_blanks()
        ends = self.ends_of(at, names, follows)
        end = until.search(self.text, at)
        stop = ends[0] if ends else end.start() if end else len(self.text)
        name = self.text[at:stop]
        if not ends and (not name or _NO_NAME.search(name)):
            raise self.fault("expected the name of a column")
        self.at = stop
        return name
