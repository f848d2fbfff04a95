"""Writes rules in the syntaxes of other tools, or an error if a syntax can't express a rule exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from tuplewise.engine.dc.constraint import Constant, DenialConstraint, Operator, Predicate
from tuplewise.engine.dc.rule_text.reading import read_rule
from tuplewise.engine.dc.rule_text.scanner import spells_number
from tuplewise.engine.errors import InputError, RuleError, message
from tuplewise.engine.table.schema import quote_name

WrittenSyntax = Literal["tuplewise", "holoclean", "desbordante", "nadeef", "logic"]
WRITTEN: tuple[str, ...] = get_args(WrittenSyntax)

_LOGIC_SIGNS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥"}
_HOLOCLEAN_NAMES = {"==": "EQ", "!=": "IQ", "<": "LT", ">": "GT", "<=": "LTE", ">=": "GTE"}
_HOLOCLEAN_ORDER = ("==", "<", ">", "<=", ">=", "!=")
_HOLOCLEAN_WORDS = re.compile("EQ|IQ|LT|GT")
_DESBORDANTE_SIGNS = re.compile(r"==|!=|<|>|\band\b|\\")


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
    written, wanted = _WRITERS[syntax](rule.normalised()), rule.normalised()
    try:
        read = read_rule(written, syntax=syntax if syntax in ("holoclean", "desbordante") else "auto")
    except RuleError:
        read = None
    if read != wanted:
        raise _refused(syntax, wanted.rule, "its names or constants hold signs that the syntax takes for its own")
    return written


def _refused(syntax: str, what: object, reason: str) -> RuleError:
    return RuleError(message(f"rule can't be written for {syntax}", str(what), hint=reason[:1].upper() + reason[1:]))


def _column(p: Predicate, roles: Mapping[str, str], name: Callable[[str], str]) -> tuple[str, str | None]:
    """Both operands as text; None for a constant on the right."""
    left = f"{roles[p.left_role]}.{name(p.left)}"
    if p.right_role is None or isinstance(p.right, Constant):
        return left, None
    return left, f"{roles[p.right_role]}.{name(p.right)}"


def _logic(rule: DenialConstraint) -> str:
    parts = []
    for p in rule.predicates:
        left, right = _column(p, {"t": "t", "u": "u"}, quote_name)
        parts.append(f"{left} {_LOGIC_SIGNS.get(p.operator, p.operator)} {right if right is not None else p.right}")
    return f"∀{'t' if rule.names_one_tuple else 't,u'}: ¬({' ∧ '.join(parts)})"


def _holoclean(rule: DenialConstraint) -> str:
    """Comparisons with EQ first and IQ last: HoloClean loses a first IQ."""

    def name(column: str) -> str:
        if not column or re.search(r"[\s.,&()'\"`]", column) or _HOLOCLEAN_WORDS.search(column):
            raise _refused("holoclean", column, "names there hold no blanks . , & ( ) quotes, nor EQ, IQ, LT, GT")
        return column

    operators = [p.operator for p in rule.predicates]
    _refuse_nulls("holoclean", operators)
    if all(o == "!=" for o in operators):
        raise _refused("holoclean", rule, "its parser loses a first IQ, so one other comparison is needed")
    parts = []
    for p in sorted(rule.predicates, key=lambda p: _HOLOCLEAN_ORDER.index(p.operator)):
        left, right = _column(p, {"t": "t1", "u": "t2"}, name)
        if right is None:
            right = f'"{_holoclean_constant(p.right)}"'
        parts.append(f"{_HOLOCLEAN_NAMES[p.operator]}({left},{right})")
    return "&".join([*(["t1"] if rule.names_one_tuple else ["t1", "t2"]), *parts])


def _holoclean_constant(constant: str | Constant) -> str:
    if not isinstance(constant, Constant) or constant.type != "text":
        raise _refused("holoclean", constant, "its constants are text: put the value in single quotes")
    text = constant.text
    if not text or text != text.strip().lower():
        raise _refused("holoclean", constant, "its data are lower-cased and trimmed, so no value would equal this text")
    if re.search(r"[,&'\"]", text):
        raise _refused("holoclean", constant, "constants there hold no , & or quotes")
    return text


def _refuse_nulls(syntax: str, operators: list[Operator]) -> None:
    if "is" in operators or "is not" in operators:
        raise _refused(syntax, "is null", "it has no test for null")


def _desbordante(rule: DenialConstraint) -> str:
    def name(column: str) -> str:
        if not column or column != column.strip() or _DESBORDANTE_SIGNS.search(column):
            raise _refused("desbordante", column, "names there hold no comparison signs, `and`, \\ or blanks at an end")
        if column.isdigit():
            raise _refused("desbordante", column, "a number there counts columns")
        return column

    _refuse_nulls("desbordante", [p.operator for p in rule.predicates])
    parts = []
    for p in rule.predicates:
        left, right = _column(p, {"t": "t", "u": "s"}, name)
        if right is None:
            right = _bare("desbordante", p.right)
            if right != right.strip() or re.match(r"[ts]\s*\.", right) or _DESBORDANTE_SIGNS.search(right):
                reason = "constants there hold no comparison signs, `and`, \\ or blanks at an end, nor begin as columns"
                raise _refused("desbordante", p.right, reason)
        parts.append(f"{left} {p.operator} {right}")
    return f"!({' and '.join(parts)})"


def _bare(syntax: str, constant: str | Constant) -> str:
    """A constant without quotes, if that keeps its type."""
    if isinstance(constant, Constant) and constant.type in ("integer", "decimal", "double"):
        return constant.text
    if not isinstance(constant, Constant) or constant.type != "text":
        raise _refused(syntax, constant, "its constants are text and numbers")
    if not constant.text or spells_number(constant.text):
        raise _refused(syntax, constant, "without quotes, which it lacks, this is a number or nothing")
    return constant.text


def _nadeef(rule: DenialConstraint) -> str:
    def name(column: str) -> str:
        if not column or re.search(r"[\s.<>=!&()'\"`]", column):
            raise _refused("nadeef", column, "names there hold no blanks . & ( ) quotes or comparison signs")
        return column

    _refuse_nulls("nadeef", [p.operator for p in rule.predicates])
    parts = []
    for p in rule.predicates:
        if p.left_role != "t":
            raise _refused("nadeef", p, "a comparison there begins with the first tuple")
        left, right = _column(p, {"t": "t1", "u": "t2"}, name)
        if right is None:
            right = _bare("nadeef", p.right)
            if re.search(r"[\s<>=!&()]", right):
                raise _refused("nadeef", p.right, "constants there hold no blanks & ( ) or comparison signs")
        parts.append(f"{left}{'=' if p.operator == '==' else p.operator}{right}")
    return f"not({'&'.join(parts)})"


_WRITERS: dict[str, Callable[[DenialConstraint], str]] = {
    "logic": _logic,
    "holoclean": _holoclean,
    "desbordante": _desbordante,
    "nadeef": _nadeef,
}
