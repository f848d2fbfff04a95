"""Reads rules from text in any known form. A text that can't be read is an error, never half a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.rule_text import dependency, desbordante, holoclean, logic
from tuplewise.engine.dc.rule_text.scanner import Cursor
from tuplewise.engine.errors import Fault, Faults, InputError, RuleError, describe, message

RulesSyntax = Literal["auto", "holoclean", "desbordante"]
SYNTAXES: tuple[str, ...] = get_args(RulesSyntax)
ACCEPTED = (
    "Accepted: not(t.a == u.a and t.b != u.b) | !(s.A == t.A and s.B < 5) | ¬{ t.a = t'.a ∧ t.b ≠ t'.b } | "
    "∀t,u: ¬(...) | t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b) | a, b -> c | [a, b]. "
    "Names that are no plain word stand in `...` or \"...\", text in '...'."
)


def read_rule(
    text: str, *, columns: Sequence[str] | None = None, syntax: RulesSyntax | str = "auto"
) -> DenialConstraint:
    """Read one rule, in any of the accepted forms, and normalise it: all spellings of a rule become equal.

    Parameters
    ----------
    text : the rule. `read_rules` reads texts that hold several.
    columns : names of the table's columns. If given, names in the rule are checked, and need no quotes where no other
        reading is possible. Without them, names are taken as they are.
    syntax : "auto" recognises the form by its shape. "holoclean" takes the text between HoloClean's quotes unchanged,
        "desbordante" takes bare text as constants, as those tools do. Other forms are read as with "auto".

    Raises
    ------
    RuleError : with the position, what was expected, names similar to an unknown one, and the accepted forms

    Notes
    -----
    Tuples: `t` and `u` mean themselves. `t, s`, `t, t'`, `t1, t2` and `t0, t1` mean t, u in this order, whichever comes
    first. Of other names, the first in the rule is t, and so is the only one of a rule about one tuple.

    Constants: text in single quotes (doubled inside), or in double quotes where no dot stands in front; numbers; true
    and false; `is null`, `is not null`. A bare word is text only in the forms of Desbordante, NADEEF and Metanome, and
    only if it is no column. The type of the column decides the value of a constant (constants.py).

    Examples
    --------
    >>> print(read_rule("t1&t2&IQ(t1.city,t2.city)&EQ(t1.zip,t2.zip)"))
    not(t.city != u.city and t.zip == u.zip)
    >>> print(read_rule("!(s.salary > t.salary and s.rate < t.rate)"), read_rule("zip -> city").kind)
    not(t.rate > u.rate and t.salary < u.salary) fd
    """
    found = read_rules(text, columns=columns, syntax=syntax)
    if len(found) > 1:
        raise RuleError(message("one rule was expected, and the text holds", len(found), hint="Give them one by one"))
    return found[0]


def read_rules(
    text: str, *, columns: Sequence[str] | None = None, syntax: RulesSyntax | str = "auto"
) -> list[DenialConstraint]:
    """Read a text of one or more rules: separated by semicolons, or an FD with several columns on the right.

    Parameters and errors are those of `read_rule`.

    Examples
    --------
    >>> print(*read_rules("zip -> city, state; name -> id"), sep="\\n")
    not(t.city != u.city and t.zip == u.zip)
    not(t.state != u.state and t.zip == u.zip)
    not(t.id != u.id and t.name == u.name)
    """
    check_syntax(syntax)
    try:
        return rules_or_faults(text, columns, syntax)
    except Faults as faults:
        raise RuleError(describe(text, faults.found), ACCEPTED) from None


def check_syntax(syntax: str) -> None:
    """Raise InputError for an unknown syntax."""
    if syntax not in SYNTAXES:
        raise InputError(message("rules syntax", syntax, ", ".join(map(repr, SYNTAXES))))


def rules_or_faults(text: str, columns: Sequence[str] | None, syntax: str) -> list[DenialConstraint]:
    """As `read_rules`, raising Faults."""
    cursor = Cursor(text, columns)
    found: list[DenialConstraint] = []
    faults: list[Fault] = []
    while True:
        try:
            found += _next(cursor, syntax)
            if not cursor.at_end() and not cursor.sees(";"):
                raise cursor.fault("expected the end of the rule")
        except Faults as several:
            faults += several.found
        except Fault as fault:
            raise Faults([*faults, fault]) from None
        if not cursor.take(";") or cursor.at_end():
            break
    if faults:
        raise Faults(faults)
    return found


def _next(cursor: Cursor, syntax: str) -> list[DenialConstraint]:
    """The rule, or rules of one FD, at the cursor."""
    if logic.starts_here(cursor):
        draft = desbordante.read_desbordante(cursor) if syntax == "desbordante" else logic.read_logic(cursor)
        return [draft.constraint(cursor.columns)]
    if holoclean.starts_here(cursor):
        return [holoclean.read_holoclean(cursor, raw=syntax == "holoclean").constraint(cursor.columns)]
    if dependency.arrow_ahead(cursor):
        return dependency.read_dependency(cursor)
    if holoclean.starts_here(cursor, loose=True):
        return [holoclean.read_holoclean(cursor).constraint(cursor.columns)]
    if cursor.sees("["):
        return [dependency.read_key(cursor)]
    fault = cursor.fault("expected a rule")
    raise Fault(fault.what, fault.at, "Put its comparisons into not(...)" if cursor.reference() else None)
