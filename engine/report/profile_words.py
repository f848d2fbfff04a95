"""Rules of a profile, and the rows that break them, in plain English."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tuplewise.engine.dc.constraint import DenialConstraint, Operator, Predicate
from tuplewise.engine.errors import number_of
from tuplewise.engine.profile.exceptions import Exceptions
from tuplewise.engine.profile.inclusions import Inclusion
from tuplewise.engine.profile.rule import Listed, Rule
from tuplewise.engine.profile.table import ProfiledTable
from tuplewise.engine.report.dependencies import Constancy, FunctionalDependency, Key, OrderCompatibility
from tuplewise.engine.report.text import LONGEST_VALUE
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import quote_name

_NOT: dict[str, Operator] = {"==": "!=", "<": ">=", "<=": ">"}


def rule_text(relation: Relation, rule: Rule) -> str:
    """A rule as results list it: `zip -> city`, `[state]: salary ~ rate`, `[carrier, flight]`, `depart <= arrive`."""
    if rule.kind == "row":
        (left,), (right,) = _names(relation, rule.left), _names(relation, rule.right)
        return f"{quote_name(left)} {rule.sense} {quote_name(right)}"
    return str(_named(relation, rule))


def constraint(relation: Relation, rule: Rule) -> DenialConstraint:
    """A rule as a denial constraint."""
    if rule.kind == "row":
        (left,), (right,) = _names(relation, rule.left), _names(relation, rule.right)
        return DenialConstraint((Predicate("t", left, _NOT[rule.sense], "t", right),))
    return _named(relation, rule).rule


def _named(relation: Relation, rule: Rule) -> FunctionalDependency | Constancy | OrderCompatibility | Key:
    left, right = _names(relation, rule.left), _names(relation, rule.right)
    if rule.kind == "key":
        return Key(left)
    if rule.kind == "od":
        return OrderCompatibility(left, right[0], right[1], "ascending" if rule.sense == "ascending" else "descending")
    if rule.kind == "constant":
        return Constancy((), right[0])
    return FunctionalDependency(left, right[0])


def _names(relation: Relation, columns: Sequence[int]) -> tuple[str, ...]:
    return tuple(relation.columns[c].name for c in columns)


def english(table: ProfiledTable, listed: Listed) -> str:
    """The meaning of a rule, and the number of rows that break it."""
    return f"{_said(table, listed)}{_broken(table, listed)}"


def meaning(table: ProfiledTable, rule: Rule) -> str:
    """The meaning of a rule, whatever breaks it."""
    return _said(table, Listed(rule))


def _said(table: ProfiledTable, listed: Listed) -> str:
    rule = listed.rule
    left, right = ([f"`{n}`" for n in _names(table.relation, side)] for side in (rule.left, rule.right))
    if rule.kind == "key":
        return f"{_all(left)} {'together identify' if len(left) > 1 else 'identifies'} a row"
    if rule.kind == "fd":
        if _converse(listed) is not None:
            return f"{left[0]} and {right[0]} determine each other"
        each = {1: "", 2: "pair of "}.get(len(left), "combination of ")
        return f"each {each}{_all(left)} has one {right[0]}"
    if rule.kind == "od":
        way = "falls" if rule.sense == "ascending" else "rises"
        within = f"within each {'' if len(left) == 1 else 'pair of '}{_all(left)}, " if left else ""
        return f"{within}{right[1]} never {way} as {right[0]} rises"
    if rule.kind == "row":
        times = table.relation.columns[rule.left[0]].domain in ("date", "timestamp")
        words = {
            "==": "is equal to",
            "<": "is always before" if times else "is always below",
            "<=": "is never after" if times else "is never above",
        }
        return f"{left[0]} {words[rule.sense]} {right[0]}"
    return f"{right[0]} is {shown(table.commonest(rule.right[0]))}" + ("" if rule.exceptions else " in every row")


def _all(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _converse(listed: Listed) -> Rule | None:
    """The FD with exchanged sides, if both sides determine each other."""
    left, right = listed.rule.left, listed.rule.right
    return next((one for one in listed.implies if one.kind == "fd" and (one.left, one.right) == (right, left)), None)


_VERBS = {"key": ("repeats another", "repeat another"), "fd": ("differs", "differ")}


def _broken(table: ProfiledTable, listed: Listed) -> str:
    """The number of rows that break a rule, and of those that nulls leave out."""
    rule, converse = listed.rule, _converse(listed)
    left_out = table.count - rule.rows
    nulls = f", and {number_of(left_out, 'row')} with a null {'is' if left_out == 1 else 'are'} left out"
    said = nulls if left_out else ""
    if converse is not None and converse.exceptions:
        return f"; {rule.exceptions:,} and {converse.exceptions:,} of {rule.rows:,} rows differ{said}"
    if not rule.exceptions:
        return said.replace(", and", ";", 1)
    verb = _VERBS.get(rule.kind, ("breaks it", "break it"))[rule.exceptions > 1]
    return f"; {rule.exceptions:,} of {rule.rows:,} rows {verb}{said}"


def inclusion_english(inclusion: Inclusion) -> str:
    """The meaning of a likely foreign key, and the number of values that break it."""
    dependent, referenced = inclusion.ind.dependent[0], inclusion.ind.referenced[0]
    found = f"`{referenced.table}.{referenced.column}`"
    if not inclusion.exceptions:
        return inclusion_meaning(inclusion)
    kept = inclusion.values - inclusion.exceptions
    return f"{kept:,} of {inclusion.values:,} values of `{dependent.table}.{dependent.column}` occur in {found}"


def inclusion_meaning(inclusion: Inclusion) -> str:
    """The meaning of a likely foreign key, whatever breaks it."""
    dependent, referenced = inclusion.ind.dependent[0], inclusion.ind.referenced[0]
    return f"each `{dependent.table}.{dependent.column}` occurs in `{referenced.table}.{referenced.column}`"


def examples(relation: Relation, rule: Rule, found: Exceptions) -> list[dict[str, Any]]:
    """The rows that break a rule, in words; rows are named by their 0-based position in the source."""
    listed = []
    for i in range(len(found.rows)):
        row, partner = int(found.rows[i]), int(found.partners[i])
        rows = [relation.position_of(row)] + ([relation.position_of(partner)] if partner >= 0 else [])
        words = _contradiction(relation, rule, row, partner, int(found.alike[i]), int(found.together[i]))
        listed.append({"text": f"row {rows[0]}: {words}", "rows": rows})
    return listed


def _contradiction(relation: Relation, rule: Rule, row: int, partner: int, alike: int, together: int) -> str:
    """The cells of a row that break a rule, and what contradicts them."""
    if rule.kind in ("fd", "constant"):
        target = rule.right[0]
        said = f"{_cell(relation, target, row)}; {alike:,} of {together:,} rows"
        if rule.left:
            said += " with " + " and ".join(_cell(relation, c, row, " ") for c in rule.left)
        return f"{said} have {shown(_value(relation, target, partner))}"
    columns = {"key": rule.left, "od": rule.right, "row": rule.columns}[rule.kind]
    cells = " and ".join(_cell(relation, c, row) for c in columns)
    if rule.kind == "key":
        return f"{cells}, as in row {relation.position_of(partner)}"
    if rule.kind == "row" or partner < 0:
        return cells
    others = " and ".join(_cell(relation, c, partner) for c in columns)
    return f"{cells}, but in row {relation.position_of(partner)} {others}"


def _cell(relation: Relation, column: int, row: int, joint: str = " is ") -> str:
    return f"`{relation.columns[column].name}`{joint}{shown(_value(relation, column, row))}"


def _value(relation: Relation, column: int, row: int) -> Any:
    code = int(relation.codes[column, row])
    return None if code < 0 else relation.dictionaries[relation.columns[column].domain][code].as_py()


def shown(value: Any) -> str:
    """A value in a sentence: text in quotes, shortened if it is long."""
    if value is None:
        return "null"
    if not isinstance(value, str):
        decimal = isinstance(value, Decimal) and "." in str(value)
        return format(value, "f").rstrip("0").rstrip(".") if decimal else str(value)
    text = "".join(c if c.isprintable() else " " for c in value)
    return f"'{text}'" if len(text) <= LONGEST_VALUE else f"'{text[: LONGEST_VALUE - 1]}…'"
