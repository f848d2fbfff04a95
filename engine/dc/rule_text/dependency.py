"""Functional dependencies and keys as text: `a, b -> c`, `[a, b] -> c`, Metanome's `[t.a, t.b]->t.c`, `[a, b]`."""

from __future__ import annotations

import re

from tuplewise.engine.dc.constraint import DenialConstraint, Operator, Predicate
from tuplewise.engine.dc.rule_text.draft import DraftReference, resolve
from tuplewise.engine.dc.rule_text.scanner import Cursor
from tuplewise.engine.errors import Fault
from tuplewise.engine.scanner import BRACKETS

ARROWS = ("->", "→")
_BRACKETS = {**BRACKETS, "{": "}"}
_ARROW_AHEAD = re.compile(r"""(?:[^"`;]|"[^"]*"|`[^`]*`)*?(?:->|→)""")
_NO_NAME = re.compile(r"""[=<>!≠≤≥¬~"'`\[\]{}]""")


def arrow_ahead(cursor: Cursor) -> bool:
    """Whether an arrow stands between the cursor and the next semicolon, outside of quoted names."""
    return _ARROW_AHEAD.match(cursor.text, cursor.skip_blanks()) is not None


def read_dependency(cursor: Cursor) -> list[DenialConstraint]:
    """Read `X -> Y`, and move past it: one rule for each column of Y."""
    left, bracketed = _side(cursor)
    if not cursor.take(*ARROWS):
        raise cursor.fault("expected ->")
    right, _ = _side(cursor)
    if not right:
        raise cursor.fault("expected the name of a column")
    names = resolve([*left, *right], cursor.columns, tables=bracketed)
    same = [_same(names[r.name_at], "==") for r in left]
    return [DenialConstraint((*same, _same(names[r.name_at], "!="))).normalised() for r in right]


def read_key(cursor: Cursor) -> DenialConstraint:
    """Read `[a, b]`, a key, and move past it."""
    names, _ = _side(cursor)
    if not names:
        raise cursor.fault("expected the name of a column")
    if cursor.columns is None and len(names) == 1 and not names[0].quoted and "." in names[0].name:
        hint = f"Write not(t.`{names[0].name}` == u.`{names[0].name}`), or give the columns of the table"
        raise Fault(f"{names[0].name!r} may be a column, or a column of a table", names[0].name_at, hint)
    found = resolve(names, cursor.columns, tables=True)
    return DenialConstraint(tuple(_same(found[r.name_at], "==") for r in names)).normalised()


def _same(column: str, operator: Operator) -> Predicate:
    return Predicate("t", column, operator, "u", column)


def _side(cursor: Cursor) -> tuple[list[DraftReference], bool]:
    """The names on one side, and whether they stand in square brackets."""
    bracket = cursor.take(*_BRACKETS)
    closing = _BRACKETS[bracket] if bracket else None
    if cursor.take(closing) if closing else cursor.at_end() or cursor.sees(*ARROWS, ";"):
        return [], bracket == "["
    return cursor.separated(lambda: _name(cursor, closing), closing), bracket == "["


def _name(cursor: Cursor, closing: str | None) -> DraftReference:
    """One name: a quoted one, a known one, or all text up to a sign."""
    at = cursor.skip_blanks()
    if cursor.sees('"', "`"):
        return DraftReference("", cursor.quoted(), at, at, quoted=True)
    ends = re.compile(rf"\s*(?:,|;|->|→|{re.escape(closing) if closing else '$'}|\Z)")
    for name in sorted(filter(None, cursor.columns or ()), key=len, reverse=True):
        if cursor.text.startswith(name, at) and ends.match(cursor.text, at + len(name)):
            cursor.at = at + len(name)
            return DraftReference("", name, at, at, quoted=True)
    end = ends.search(cursor.text, at)
    stop = end.start() if end else len(cursor.text)
    name = cursor.text[at:stop]
    odd = _NO_NAME.search(name)
    if not name or odd:
        hint = "The sides of -> are names of columns; other names than plain words stand in back-quotes"
        raise Fault("expected the name of a column", at + odd.start() if odd else at, hint)
    cursor.at = stop
    return DraftReference("", name, at, at, quoted=False)
