"""Rules as a negated conjunction, the form of logic and most tools: `not(t.a == u.a and t.b != u.b)` and the like.

    rule := [("∀" | "forall" | "for all") variables] NOT ( "(" conjunction ")" | "{" conjunction "}" )
    conjunction := predicate (AND predicate)* ;  predicate := term OPERATOR term | term IS [NOT] NULL
        | EQ(term, term) ... | "(" conjunction ")"
    NOT := not ! ¬ ~ ;  AND := and & && ∧ ⋀ ^ ,

This covers our own text, the notation of papers, NADEEF, the miners of Desbordante, FastADC and Metanome, and
Desbordante's verifier as far as its constants are unambiguous (desbordante.py reads all of it).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tuplewise.engine.dc.constraint import NULL, Operator
from tuplewise.engine.dc.rule_text.draft import DraftComparison, DraftLiteral, DraftReference, RuleDraft
from tuplewise.engine.dc.rule_text.scanner import Cursor
from tuplewise.engine.errors import Fault, Wording

NAMED_OPERATORS: dict[str, Operator] = {
    "eq": "==",
    "iq": "!=",
    "neq": "!=",
    "ne": "!=",
    "lt": "<",
    "lte": "<=",
    "le": "<=",
    "gt": ">",
    "gte": ">=",
    "ge": ">=",
}
_FORALL = r"∀|(?:forall|for\s+all)\s+(?=[^\W\d])"
_NEGATION = r"(?:[!¬~]|not)\s*(?=[({])"
_START = re.compile(rf"{_FORALL}|{_NEGATION}|[!¬~∀]", re.IGNORECASE)
_RELATION = re.compile(r"[^\s,:.;∀!¬~(){}]+")
_CONNECTIVES = ("&&", "&", "∧", "⋀", "^", ",")
_COMPARISON = "a comparison (==, !=, <, <=, >, >=, is null)"


def starts_here(cursor: Cursor) -> bool:
    """Whether a rule of this form begins at the cursor."""
    return _START.match(cursor.text, cursor.skip_blanks()) is not None


def read_logic(cursor: Cursor) -> RuleDraft:
    """Read a rule of this form, and move past it."""
    draft = RuleDraft()
    closing = open_rule(cursor, draft)
    _conjunction(cursor, draft, closing)
    return draft


def open_rule(cursor: Cursor, draft: RuleDraft) -> str:
    """Read up to the bracket in front of the comparisons. Returns the bracket that closes them."""
    _quantifier(cursor, draft)
    sign = cursor.take("!", "¬", "~") or cursor.take_word("not")
    if sign is None:
        raise cursor.fault("expected not(...)")
    draft.negation = sign
    bracket = cursor.take("(", "{")
    if bracket is None:
        raise cursor.fault("expected ( or { behind the negation")
    return {"(": ")", "{": "}"}[bracket]


def _quantifier(cursor: Cursor, draft: RuleDraft) -> None:
    """Read `∀t,s∈R:` in front of a rule, in any spelling."""
    if not (cursor.take("∀") or cursor.take_word("forall") or _take_for_all(cursor)):
        return
    while True:
        at = cursor.skip_blanks()
        variable = cursor.variable()
        if variable is None:
            raise cursor.fault("expected the name of a tuple")
        draft.declared.append((variable, at))
        if cursor.take("∈") or cursor.take_word("in"):
            match = _RELATION.match(cursor.text, cursor.skip_blanks())
            if match is None:
                raise cursor.fault("expected the name of a table")
            cursor.at = match.end()
        cursor.take(",", ":", ".")
        if cursor.take("∀") or cursor.take_word("forall"):
            continue
        if cursor.sees("!", "¬", "~") or (cursor.word() or "").lower() == "not":
            return


def _take_for_all(cursor: Cursor) -> bool:
    start = cursor.skip_blanks()
    if cursor.take_word("for") and cursor.take_word("all"):
        return True
    cursor.at = start
    return False


def _conjunction(cursor: Cursor, draft: RuleDraft, closing: str) -> None:
    """Predicates up to the closing bracket."""
    while True:
        if cursor.sees(closing):
            raise cursor.fault("expected a predicate such as t.a == u.a")
        if cursor.take("("):
            _conjunction(cursor, draft, ")")
        else:
            draft.comparisons.append(predicate(cursor))
        if cursor.take(closing):
            return
        sign = cursor.take_word("and") or cursor.take(*_CONNECTIVES)
        if sign is None:
            raise cursor.fault(f"expected `and` or {closing}", _misplaced_hint(cursor, draft))
        draft.connectives.add(sign)


def _misplaced_hint(cursor: Cursor, draft: RuleDraft) -> str | None:
    """A hint on the text behind a comparison."""
    if (cursor.word() or "").lower() == "or":
        return "A rule has no `or`: write a rule for each part"
    right = draft.comparisons[-1].right
    if isinstance(right, DraftLiteral) and right.bare:
        text = "Text stands in single quotes; {rules_syntax} takes bare text of several words"
        return Wording(text, rules_syntax="desbordante")
    if isinstance(right, DraftReference) and not right.quoted:
        return f"Names that are no plain word stand in back-quotes: {right.variable}.`{right.name} ...`"
    return None


def predicate(cursor: Cursor) -> DraftComparison:
    """One comparison, with a sign between its sides or in front of them."""
    at = cursor.skip_blanks()
    named = named_comparison(cursor)
    if named is not None:
        return named
    left = term(cursor)
    operator = cursor.operator()
    if operator is not None:
        return DraftComparison(left, operator, term(cursor), at)
    if not cursor.take_word("is"):
        hint = None
        if isinstance(left, DraftReference) and not left.quoted:
            hint = f"Names that are no plain word stand in back-quotes: {left.variable}.`{left.name} ...`"
        raise cursor.fault(f"expected {_COMPARISON}", hint)
    negated = cursor.take_word("not")
    if not cursor.take_word("null"):
        raise cursor.fault("expected null")
    if isinstance(left, DraftLiteral):
        raise Fault("a constant before `is null`", left.at, "Name a column, such as t.a is null")
    return DraftComparison(left, "is not" if negated else "is", DraftLiteral(NULL, cursor.at), at)


def term(cursor: Cursor) -> DraftReference | DraftLiteral:
    """A column of a tuple or a constant."""
    found = cursor.reference() or cursor.literal()
    if found is None:
        hint = "Put the tuple in front of a column: t.`name`" if cursor.sees("`") else None
        raise cursor.fault("expected a column such as t.a or a constant", hint)
    return found


def named_comparison(
    cursor: Cursor, second: Callable[[Cursor], DraftReference | DraftLiteral] = term
) -> DraftComparison | None:
    """Read `EQ(t1.a, t2.a)` or the like, if it is next. `second`: reads the second side."""
    at, word = cursor.skip_blanks(), cursor.word()
    if word is None:
        return None
    cursor.at += len(word)
    if not cursor.take("("):
        cursor.at = at
        return None
    operator = NAMED_OPERATORS.get(word.lower())
    if operator is None:
        raise Fault(f"no comparison of the name {word!r}", at, "Known: EQ, IQ (or NEQ), LT, LTE, GT, GTE")
    left = term(cursor)
    cursor.expect(",", "a comma between the two sides")
    right = second(cursor)
    cursor.expect(")", ") behind the second side")
    return DraftComparison(left, operator, right, at)
