"""A place in the text of a rule, and the reading of words, constants, operators and columns there."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from tuplewise.engine.dc.constraint import Constant, Operator
from tuplewise.engine.dc.rule_text.draft import DraftLiteral, DraftReference
from tuplewise.engine.errors import Fault
from tuplewise.engine.scanner import PLAIN, Scanner

OPERATOR_SIGNS: dict[str, Operator] = {
    "==": "==",
    "!=": "!=",
    "<>": "!=",
    "¬=": "!=",
    "<=": "<=",
    ">=": ">=",
    "=": "==",
    "≠": "!=",
    "<": "<",
    "≤": "<=",
    "⩽": "<=",
    ">": ">",
    "≥": ">=",
    "⩾": ">=",
}
MOST_DIGITS = 38

_NO_BARE = r"\s()\[\]{}'\"`=<>!≠≤≥⩽⩾¬~,;&|^∧⋀→∀∈"
_BARE = re.compile(f"[^{_NO_BARE}]+")
_PRIMES = re.compile("['′’]+")
_NUMBER = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_ODD_NAME = re.compile(rf"[{_NO_BARE.removeprefix(chr(92) + 's')}]|(?i:\b(?:and|or|is)\b)")


def spells_number(text: str) -> bool:
    """Whether a bare text is a number literal of rules."""
    return _NUMBER.fullmatch(text) is not None


def number_constant(text: str, at: int = 0) -> Constant:
    """The constant of a number literal, normalised: no plus, a digit before the point, a plain exponent.

    Raises Fault for leading zeros (such a text is a code, not a number) and for numbers that no type can hold.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise Fault(f"{text!r} is no number", at)
    sign, digits, exponent = match.groups()
    if re.match("0[0-9]", digits):
        raise Fault("a number with leading zeros", at, f"Write '{text}' in quotes if it is text, else leave them out")
    if digits.startswith("."):
        digits = "0" + digits
    if len(digits.replace(".", "").lstrip("0")) > MOST_DIGITS:
        raise Fault(f"a number of more than {MOST_DIGITS} digits", at)
    is_zero = not digits.strip("0.")
    plain = ("-" if sign == "-" and not is_zero else "") + digits
    if exponent is None:
        return Constant(plain, "decimal" if "." in digits else "integer")
    if len(exponent) > 6 or not math.isfinite(value := float(text)) or (value == 0 and not is_zero):
        raise Fault("a number that is too large or too small for a double", at)
    return Constant(f"{plain}e{int(exponent)}", "double")


class Cursor(Scanner):
    """A rule's text with a place in it. `columns`: the known names of columns, or None."""

    WORD = _BARE
    QUOTED = "text"

    def __init__(self, text: str, columns: Sequence[str] | None = None) -> None:
        super().__init__(text)
        self.columns = columns
        longest_first = sorted((c for c in columns or () if c), key=len, reverse=True)
        self._plain = [c for c in longest_first if not _ODD_NAME.search(c)]
        self._odd = [c for c in longest_first if _ODD_NAME.search(c)]

    def word(self) -> str | None:
        """The word that is next, after blanks, without moving."""
        match = PLAIN.match(self.text, self.skip_blanks())
        return match.group() if match else None

    def take_word(self, *words: str) -> str | None:
        """Move past one of these words, in any case, if it is the next whole word."""
        found = self.word()
        if found is None or found.lower() not in words:
            return None
        self.at += len(found)
        return found.lower()

    def variable(self) -> str | None:
        """Move past the name of a tuple (`t`, `t1`, `t'`), if one is next. Subscripts and primes become plain signs."""
        match = PLAIN.match(self.text, self.skip_blanks())
        if match is None:
            return None
        self.at = match.end()
        primes = _PRIMES.match(self.text, self.at)
        if primes:
            self.at = primes.end()
        return unicodedata.normalize("NFKC", match.group()) + "'" * len(primes.group() if primes else "")

    def reference(self) -> DraftReference | None:
        """Move past `variable.name`, if one is next."""
        start = self.skip_blanks()
        variable = self.variable()
        if variable is None or not self.take("."):
            self.at = start
            return None
        at = self.skip_blanks()
        if self.sees("`", '"'):
            return DraftReference(variable, self.quoted(), start, at, quoted=True)
        name = self._known_name(at)
        if name is not None:
            self.at = at + len(name)
            return DraftReference(variable, name, start, at, quoted=True)
        if variable in ("t0", "t1") and (end := self._end_behind_table(at)) is not None:
            self.at = end
            return DraftReference(variable, self.text[at:end], start, at, quoted=False)
        match = _BARE.match(self.text, at)
        if match is None:
            raise self.fault("expected the name of a column")
        self.at = match.end()
        return DraftReference(variable, match.group(), start, at, quoted=False)

    def _known_name(self, at: int) -> str | None:
        """The known name at a place, which may have blanks without quotes.

        A name without signs takes precedence over the word at the place, and that over a name with signs.
        """
        match = _BARE.match(self.text, at)
        word = match.group() if match else ""
        found = self._longest(self._plain, at)
        if found is not None or not word or word not in (self.columns or ()):
            return found or self._longest(self._odd, at)
        return word

    def _end_behind_table(self, at: int) -> int | None:
        """The end of a known name behind a table's name and a dot, as in Metanome's rules."""
        match = _BARE.match(self.text, at)
        for dot in re.finditer(r"\.", match.group() if match else ""):
            name = self._longest([*self._plain, *self._odd], at + dot.end())
            if name is not None:
                return at + dot.end() + len(name)
        return None

    def _longest(self, names: Sequence[str], at: int) -> str | None:
        return next((c for c in names if self.text.startswith(c, at) and self._ends(at + len(c))), None)

    def _ends(self, at: int) -> bool:
        """Whether a name can end here."""
        return at == len(self.text) or _BARE.match(self.text, at) is None

    def literal(self) -> DraftLiteral | None:
        """Move past a constant, if one is next: quoted text, a number, true, false, null, or a bare word."""
        at = self.skip_blanks()
        if self.sees("'", '"'):
            return DraftLiteral(Constant(self.quoted(), "text"), at)
        match = _BARE.match(self.text, at)
        if match is None:
            return None
        word = match.group()
        self.at = match.end()
        if spells_number(word):
            return DraftLiteral(number_constant(word, at), at)
        lower = word.lower()
        if lower in ("true", "false"):
            return DraftLiteral(Constant(lower, "boolean"), at)
        if lower == "null":
            return DraftLiteral(Constant("", "null"), at)
        if lower in ("date", "timestamp") and self.sees("'"):
            return DraftLiteral(Constant(self.quoted(), "text"), at)
        self.at = match.end()
        return DraftLiteral(Constant(word, "text"), at, bare=True)

    def operator(self) -> Operator | None:
        """Move past a comparison sign, if one is next."""
        sign = self.take(*OPERATOR_SIGNS)
        return OPERATOR_SIGNS[sign] if sign else None
