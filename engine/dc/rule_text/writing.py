"""Writes rules in the syntaxes of other tools, or an error if a syntax can't express a rule exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, get_args

from tuplewise.engine.dc.constraint import Constant, DenialConstraint, Predicate
from tuplewise.engine.dc.rule_text.reading import read_rule
from tuplewise.engine.dc.rule_text.scanner import spells_number
from tuplewise.engine.errors import InputError, RuleError, message
from tuplewise.engine.table.schema import quote_name

WrittenSyntax = Literal["tuplewise", "holoclean", "desbordante", "nadeef", "logic"]
WRITTEN: tuple[str, ...] = get_args(WrittenSyntax)

_LOGIC_SIGNS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥"}
_HOLOCLEAN_NAMES = {"==": "EQ", "!=": "IQ", "<": "LT", ">": "GT", "<=": "LTE", ">=": "GTE"}
_HOLOCLEAN_ORDER = ("==", "<", ">", "<=", ">=", "!=")
_DESBORDANTE_ODD = r"==|!=|<|>|\band\b|\\|^\s|\s\Z"
_ODD_NAMES = {
    "holoclean": (
        re.compile(r"[\s.,&()'\"`]|EQ|IQ|LT|GT"), "names there hold no blanks . , & ( ) quotes, nor EQ, IQ, LT, GT"
    ),
    "desbordante": (
        re.compile(_DESBORDANTE_ODD), "names there hold no comparison signs, `and`, \\ or blanks at an end"
    ),
    "nadeef": (
        re.compile(r"[\s.<>=!&()'\"`]"), "names there hold no blanks . & ( ) quotes or comparison signs"
    ),
}  # fmt: skip


def write_rule(rule: DenialConstraint, syntax: WrittenSyntax | str = "tuplewise") -> str:
    """Write a rule: "tuplewise" (its own text), "logic" (`∀t,u: ¬(...)`), "holoclean", "desbordante" or "nadeef".

    The text reads back as the same rule: by `read_rule` with the same syntax for "holoclean" and "desbordante", with
    "auto" for the others.

    Raises
    ------
    RuleError : if the syntax can't express the rule exactly, with the reason

    Examples
    --------
    >>> rule = read_rule("not(t.zip == u.zip and t.city != u.city)")
    >>> for syntax in ("logic", "holoclean", "desbordante", "nadeef"):
    ...     print(write_rule(rule, syntax))
    ∀t,u: ¬(t.city ≠ u.city ∧ t.zip = u.zip)
    t1&t2&EQ(t1.zip,t2.zip)&IQ(t1.city,t2.city)
    !(t.city != s.city and t.zip == s.zip)
    not(t1.city!=t2.city&t1.zip=t2.zip)
    """
    if syntax not in WRITTEN:
        raise InputError(message("syntax to write rules in", syntax, ", ".join(map(repr, WRITTEN))))
    if syntax == "tuplewise":
        return rule.rule
    wanted = rule.normalised()
    if syntax != "logic" and any(p.operator in ("is", "is not") for p in wanted.predicates):
        raise _refused(syntax, "is null", "it has no test for null")
    written = _WRITERS[syntax](wanted)
    try:
        read = read_rule(written, syntax=syntax if syntax in ("holoclean", "desbordante") else "auto")
    except RuleError:
        read = None
    if read != wanted:
        raise _refused(syntax, wanted.rule, "its names or constants hold signs that the syntax takes for its own")
    return written


def _refused(syntax: str, what: object, reason: str) -> RuleError:
    return RuleError(message(f"rule can't be written for {syntax}", str(what), hint=reason[:1].upper() + reason[1:]))


def _operands(
    p: Predicate, roles: Mapping[str, str], name: Callable[[str], str], constant: Callable[[Constant], str]
) -> tuple[str, str]:
    """Both operands as text."""
    left = f"{roles[p.left_role]}.{name(p.left)}"
    if isinstance(p.right, Constant):
        return left, constant(p.right)
    return left, f"{roles[p.right_role or 't']}.{name(p.right)}"


def _name(syntax: str, column: str) -> str:
    """A column's name, which stands there as it is."""
    odd, reason = _ODD_NAMES[syntax]
    if not column or odd.search(column):
        raise _refused(syntax, column, reason)
    return column


def _logic(rule: DenialConstraint) -> str:
    parts = []
    for p in rule.predicates:
        left, right = _operands(p, {"t": "t", "u": "u"}, quote_name, str)
        parts.append(f"{left} {_LOGIC_SIGNS.get(p.operator, p.operator)} {right}")
    return f"∀{'t' if rule.names_one_tuple else 't,u'}: ¬({' ∧ '.join(parts)})"


def _holoclean(rule: DenialConstraint) -> str:
    """Comparisons with EQ first and IQ last: HoloClean loses a first IQ."""
    if all(p.operator == "!=" for p in rule.predicates):
        raise _refused("holoclean", rule, "its parser loses a first IQ, so one other comparison is needed")
    parts = []
    for p in sorted(rule.predicates, key=lambda p: _HOLOCLEAN_ORDER.index(p.operator)):
        left, right = _operands(p, {"t": "t1", "u": "t2"}, partial(_name, "holoclean"), _holoclean_constant)
        parts.append(f"{_HOLOCLEAN_NAMES[p.operator]}({left},{right})")
    return "&".join([*(["t1"] if rule.names_one_tuple else ["t1", "t2"]), *parts])


def _holoclean_constant(constant: Constant) -> str:
    text = constant.text
    if constant.type != "text":
        raise _refused("holoclean", constant, "its constants are text: put the value in single quotes")
    if not text or text != text.strip().lower():
        raise _refused("holoclean", constant, "its data are lower-cased and trimmed, so no value would equal this text")
    if re.search(r"[,&'\"]", text):
        raise _refused("holoclean", constant, "constants there hold no , & or quotes")
    return f'"{text}"'


def _desbordante(rule: DenialConstraint) -> str:
    def name(column: str) -> str:
        if _name("desbordante", column).isdigit():
            raise _refused("desbordante", column, "a number there counts columns")
        return column

    reason = "constants there hold no comparison signs, `and`, \\ or blanks at an end, nor begin as columns"
    bare = partial(_bare, "desbordante", re.compile(rf"[ts]\s*\.|.*({_DESBORDANTE_ODD})", re.DOTALL), reason)
    parts = []
    for p in rule.predicates:
        left, right = _operands(p, {"t": "t", "u": "s"}, name, bare)
        parts.append(f"{left} {p.operator} {right}")
    return f"!({' and '.join(parts)})"


def _bare(syntax: str, odd: re.Pattern[str], reason: str, constant: Constant) -> str:
    """A constant without quotes, if that keeps its type and it doesn't match `odd`."""
    if constant.type == "text":
        if not constant.text or spells_number(constant.text):
            raise _refused(syntax, constant, "without quotes, which it lacks, this is a number or nothing")
    elif constant.type not in ("integer", "decimal", "double"):
        raise _refused(syntax, constant, "its constants are text and numbers")
    if odd.match(constant.text):
        raise _refused(syntax, constant, reason)
    return constant.text


def _nadeef(rule: DenialConstraint) -> str:
    reason = "constants there hold no blanks & ( ) or comparison signs"
    bare = partial(_bare, "nadeef", re.compile(r".*[\s<>=!&()]", re.DOTALL), reason)
    parts = []
    for p in rule.predicates:
        if p.left_role != "t":
            raise _refused("nadeef", p, "a comparison there begins with the first tuple")
        left, right = _operands(p, {"t": "t1", "u": "t2"}, partial(_name, "nadeef"), bare)
        parts.append(f"{left}{'=' if p.operator == '==' else p.operator}{right}")
    return f"not({'&'.join(parts)})"


_WRITERS: dict[str, Callable[[DenialConstraint], str]] = {
    "logic": _logic,
    "holoclean": _holoclean,
    "desbordante": _desbordante,
    "nadeef": _nadeef,
}
