"""Rules in the syntax of HoloClean and Delphi: `t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b)`.

More is allowed than there: blanks anywhere, comparisons in any order and case, a constant on either side. An IQ as
first comparison is kept (HoloClean's own parser silently drops it).
"""

from __future__ import annotations

import re

from tuplewise.engine.dc.constraint import Constant
from tuplewise.engine.dc.rule_text.draft import DraftLiteral, DraftReference, RuleDraft
from tuplewise.engine.dc.rule_text.logic import NAMED_OPERATORS, named_comparison, term
from tuplewise.engine.dc.rule_text.scanner import Cursor

_TUPLE = r"[^\W\d]\w*['′’]*"
_START = re.compile(rf"{_TUPLE}\s*&(?:\s*{_TUPLE}\s*&)?\s*(?:{'|'.join(NAMED_OPERATORS)})\s*\(", re.IGNORECASE)
_LOOSE_START = re.compile(rf"{_TUPLE}\s*&")
# In HoloClean a quote does not end the text before the bracket does.
_RAW_LITERAL = re.compile(r"""(["'])(.*?)\1(?=\s*\)\s*(?:&|;|$))""", re.DOTALL)


def starts_here(cursor: Cursor, *, loose: bool = False) -> bool:
    """Whether a rule of this form begins at the cursor. `loose`: judge by its first sign."""
    return (_LOOSE_START if loose else _START).match(cursor.text, cursor.skip_blanks()) is not None


def read_holoclean(cursor: Cursor, *, raw: bool = False) -> RuleDraft:
    """Read a rule of this form, and move past it. `raw`: quotes inside a text are not doubled."""
    draft = RuleDraft(negation="&")
    while True:
        comparison = named_comparison(cursor, _raw_term if raw else term)
        if comparison is not None:
            draft.comparisons.append(comparison)
        else:
            at, variable = cursor.skip_blanks(), cursor.variable()
            if variable is None or draft.comparisons or len(draft.declared) == 2:
                cursor.at = at
                raise cursor.fault("expected a comparison such as EQ(t1.a,t2.a)")
            draft.declared.append((variable, at))
        if not cursor.take("&"):
            break
    if not draft.comparisons:
        raise cursor.fault("expected & and a comparison such as EQ(t1.a,t2.a)")
    return draft


def _raw_term(cursor: Cursor) -> DraftReference | DraftLiteral:
    """As `term`, with HoloClean's literals: everything between the quotes, unchanged."""
    at = cursor.skip_blanks()
    literal = _RAW_LITERAL.match(cursor.text, at)
    if literal is None:
        return term(cursor)
    cursor.at = literal.end()
    return DraftLiteral(Constant(literal.group(2), "text"), at)
