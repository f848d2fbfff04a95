"""Rules in the syntax of Desbordante's verifier: `!(t.State == s.State and s.City == New York)`.

Constants have no quotes: all text between a comparison sign and ` and ` or the end belongs to them, quotes and brackets
included. Columns may be numbers, as in `t.0`. A constant that contains ` and ` or ` == ` is ambiguous, and an error.
"""

from __future__ import annotations

import re

from tuplewise.engine.dc.constraint import Constant, Operator
from tuplewise.engine.dc.rule_text.draft import DraftComparison, DraftLiteral, DraftReference, RuleDraft
from tuplewise.engine.dc.rule_text.logic import open_rule
from tuplewise.engine.dc.rule_text.scanner import OPERATOR_SIGNS, Cursor, number_constant, spells_number
from tuplewise.engine.errors import Fault, Wording

_AND = re.compile(r"\s+and\s+|\s*∧\s*")
_SIGNS = "|".join(map(re.escape, OPERATOR_SIGNS))
_SPACED = re.compile(rf"\s+({_SIGNS})\s+")
_TIGHT = re.compile(rf"\s*({_SIGNS})\s*")
_COLUMN = re.compile(r"([ts])\s*\.\s*")


def read_desbordante(cursor: Cursor) -> RuleDraft:
    """Read the whole text as one rule."""
    draft = RuleDraft()
    closing = open_rule(cursor, draft)
    body = cursor.at
    end = len(cursor.text.rstrip())
    if end <= body or cursor.text[end - 1] != closing:
        raise Fault(f"expected {closing} at the end", end)
    references = _known_references(cursor, body, end - 1)
    start = body
    for at, after in [*_places(cursor.text, _AND, body, end - 1, references), (end - 1, end - 1)]:
        draft.comparisons.append(_comparison(cursor.text, start, at, references))
        start = after
    cursor.at = len(cursor.text)
    return draft


def _known_references(cursor: Cursor, start: int, end: int) -> dict[int, tuple[DraftReference, int]]:
    """Columns with known names, by their place, with their ends. Signs inside these names are not signs of the rule."""
    found: dict[int, tuple[DraftReference, int]] = {}
    names = sorted(filter(None, cursor.columns or ()), key=len, reverse=True)
    if not names:
        return found
    known = re.compile(rf"(?<=[\s({{=<>!∧])([ts])\.({'|'.join(map(re.escape, names))})(?=\s|[=<>!]|$)")
    for match in known.finditer(cursor.text[:end], start):
        reference = DraftReference(match.group(1), match.group(2), match.start(), match.start(2), quoted=True)
        found[match.start()] = reference, match.end()
    return found


def _places(
    text: str, pattern: re.Pattern[str], start: int, end: int, references: dict[int, tuple[DraftReference, int]]
) -> list[tuple[int, int]]:
    """The matches of the pattern outside of known names."""
    inside = [(at, stop) for at, (_, stop) in references.items()]
    found = (m.span() for m in pattern.finditer(text[:end], start))
    return [(at, stop) for at, stop in found if not any(a < stop and at < b for a, b in inside)]


def _comparison(text: str, start: int, end: int, references: dict[int, tuple[DraftReference, int]]) -> DraftComparison:
    """One comparison. A sign between blanks takes precedence over one without."""
    signs = _places(text, _SPACED, start, end, references) or _places(text, _TIGHT, start, end, references)
    if len(signs) != 1:
        what = "expected a comparison (==, !=, <, <=, >, >=)" if not signs else "two comparison signs"
        at = signs[1][0] if signs else start
        hint = Wording(
            "Between comparisons stands `and`, in lower case; text that holds signs needs {rules_syntax} and '...'",
            rules_syntax="auto",
        )
        raise Fault(what, at + len(text[at:end]) - len(text[at:end].lstrip()), hint)
    (before, after) = signs[0]
    left = _operand(text, start, before, references)
    right = _operand(text, after, end, references)
    operator: Operator = OPERATOR_SIGNS[text[before:after].strip()]
    return DraftComparison(left, operator, right, left.at)


def _operand(
    text: str, start: int, end: int, references: dict[int, tuple[DraftReference, int]]
) -> DraftReference | DraftLiteral:
    """A column of t or s, or a bare constant: a number if it spells one, else text."""
    given = text[start:end]
    start += len(given) - len(given.lstrip())
    word = given.strip()
    if start in references and references[start][1] == start + len(word):
        return references[start][0]
    match = _COLUMN.match(word)
    if match:
        name = word[match.end() :]
        if not name:
            raise Fault("expected the name of a column", start + match.end())
        return DraftReference(match.group(1), name, start, start + match.end(), quoted=False)
    if not word:
        raise Fault("expected a column such as t.a or a constant", start)
    if spells_number(word) and not re.match("[+-]?0[0-9]", word):
        return DraftLiteral(number_constant(word, start), start)
    return DraftLiteral(Constant(word, "text"), start)
