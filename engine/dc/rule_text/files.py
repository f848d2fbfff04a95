"""Files of rules: one a line with `#` comments, or the JSON of `dc discover` and `dc check`."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from tuplewise.engine.dc.constraint import (
    NULL,
    OPERATORS,
    Constant,
    ConstantType,
    DenialConstraint,
    Operator,
    Predicate,
    Role,
)
from tuplewise.engine.dc.rule_text.reading import ACCEPTED, RulesSyntax, check_syntax, rules_or_faults
from tuplewise.engine.dc.rule_text.scanner import number_constant
from tuplewise.engine.errors import Fault, Faults, RuleError, describe, joined, message, near_hint

Placed = tuple[DenialConstraint, str]

_JSON_START = re.compile(r'\s*(?:\{\s*"|\[\s*[\[{"])')
_OBJECT_START = re.compile(r'\s*\{\s*"[^"]*"\s*:')
_LISTS = ("constraints", "rules")
_TYPES: tuple[str, ...] = get_args(ConstantType)


def read_rule_file(
    path: str | os.PathLike[str], *, columns: Sequence[str] | None = None, syntax: RulesSyntax | str = "auto"
) -> list[Placed]:
    """Read all rules of a file, each with its place (`rules.txt line 3`, `found.json rule 7`).

    Parameters
    ----------
    path : UTF-8 text (with a byte order mark and CRLF, or without): one rule a line, except for blank lines and lines
        that begin with `#`; or the JSON of `dc discover` or `dc check`, or a list of rules, recognised by content.
    columns, syntax : as for `read_rule`

    Raises
    ------
    RuleError : one error with all faults of the file, each with its line; also for a file without rules, unless it is
        a saved result that found none
    """
    check_syntax(syntax)
    name, text = Path(path).name, content_of(Path(path))
    if _JSON_START.match(text):
        try:
            return _from_json(json.loads(text), name, columns, syntax)
        except json.JSONDecodeError as fault:
            if _OBJECT_START.match(text):
                where = f"line {fault.lineno}, column {fault.colno}: {fault.msg}"
                raise RuleError(message(f"rules file {name!r} begins as JSON and isn't", where)) from None
    return _from_lines(text, name, columns, syntax)


def content_of(path: Path, thing: str = "rules file") -> str:
    """The text of a file of rules. `thing`: its name in errors. Raises RuleError if it can't be read as UTF-8."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RuleError(message(f"{thing} can't be read", str(path), hint=error.strerror)) from None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise RuleError(message(f"encoding of {thing}", path.name, "UTF-8", "It is UTF-16: save it as UTF-8"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"{path.name} line {line}"
        raise RuleError(message(f"encoding of {thing}", place, "UTF-8", "Save it as UTF-8")) from None


def _from_lines(text: str, name: str, columns: Sequence[str] | None, syntax: str) -> list[Placed]:
    found: list[Placed] = []
    faults: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        rule = line.strip()
        if not rule or rule.startswith("#"):
            continue
        place = f"{name} line {number}"
        try:
            found += [(r, place) for r in rules_or_faults(line.rstrip("\r"), columns, syntax)]
        except Faults as several:
            faults.append(describe(line.rstrip("\r"), several.found, place))
    return _checked(found, faults, name)


def tells_of_none(document: Any, key: str, count: str = "count") -> bool:
    """Whether one of our saved results says that nothing was found: its list of that key is empty, and complete."""
    result = document.get("result") if isinstance(document, dict) and "command" in document else None
    return isinstance(result, dict) and result.get(key) == [] and not result.get(count)


def _checked(found: list[Placed], faults: list[str], name: str, *, may_be_none: bool = False) -> list[Placed]:
    if faults:
        raise RuleError(joined(faults, "\n"), ACCEPTED)
    if not found and not may_be_none:
        raise RuleError(message("no rules in file", name, "one rule a line, or JSON of `dc discover` or `dc check`"))
    return found


def _entries(document: Any, name: str) -> list[Any]:
    """The list of rules in a JSON document."""
    if isinstance(document, dict) and isinstance(document.get("result"), dict):
        document = document["result"]
    if isinstance(document, dict):
        document = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), None)
    if not isinstance(document, list):
        allowed = "JSON of `dc discover` or `dc check`, or a list of rules"
        raise RuleError(message("no list of rules in JSON file", name, allowed))
    return document


def _from_json(document: Any, name: str, columns: Sequence[str] | None, syntax: str) -> list[Placed]:
    found: list[Placed] = []
    faults: list[str] = []
    for number, entry in enumerate(_entries(document, name), start=1):
        place = f"{name} rule {number}"
        text = entry if isinstance(entry, str) else entry.get("rule") if isinstance(entry, dict) else None
        predicates = entry.get("predicates") if isinstance(entry, dict) else None
        try:
            if isinstance(predicates, list):
                found.append((rule_of_triples(predicates, columns), place))
            elif isinstance(text, str):
                found += [(r, place) for r in rules_or_faults(text, columns, syntax)]
            else:
                faults.append(message(f"{place}: no rule", entry, 'text, or an object with "rule" or "predicates"'))
        except Faults as several:
            faults.append(describe(text, several.found, place) if isinstance(text, str) else _listed(several, place))
        except Fault as fault:
            faults.append(_listed([fault], place))
    none = any(tells_of_none(document, key) for key in _LISTS)
    return _checked(found, faults, name, may_be_none=none)


def _listed(faults: Faults | Iterable[Fault], place: str) -> str:
    several = faults.found if isinstance(faults, Faults) else faults
    return joined((message(f"{place}: {f.what}", hint=f.hint) for f in several), "\n")


def rule_of_triples(predicates: Sequence[Any], columns: Sequence[str] | None = None) -> DenialConstraint:
    """The normalised rule of `[["t.a", "==", "u.a"], ...]`, as in our JSON. Raises Fault.

    Examples
    --------
    >>> print(rule_of_triples([["t.a", "==", "u.a"], [["t", "b.c"], "<", {"value": 5, "type": "integer"}]]))
    not(t.`b.c` < 5 and t.a == u.a)
    """
    if not predicates:
        raise Fault("no predicates", 0)
    return DenialConstraint(tuple(_predicate(p, columns) for p in predicates)).normalised()


def _predicate(triple: Any, columns: Sequence[str] | None) -> Predicate:
    if not isinstance(triple, list | tuple) or len(triple) != 3:
        raise Fault(f"a predicate has to be [operand, operator, operand], not {triple!r}", 0)
    left, sign, right = triple
    role, name = _operand(left, columns)
    if sign in ("is", "is not"):
        if _constant(right) != NULL:
            raise Fault(f"{sign!r} stands before null only, not before {right!r}", 0)
        return Predicate(role, name, sign, None, NULL)
    operator: Operator | None = next((o for o in OPERATORS if o == sign), None)
    if operator is None:
        raise Fault(f"no operator {sign!r}", 0, "Known: " + ", ".join([*OPERATORS, "is", "is not"]))
    if not isinstance(right, dict):
        return Predicate(role, name, operator, *_operand(right, columns))
    constant = _constant(right)
    if constant == NULL:
        raise Fault(f"{operator!r} does not stand before null", 0, "Use is or is not")
    return Predicate(role, name, operator, None, constant)


def _operand(given: Any, columns: Sequence[str] | None) -> tuple[Role, str]:
    pair = given.split(".", 1) if isinstance(given, str) else given
    if (
        not isinstance(pair, list | tuple)
        or len(pair) != 2
        or pair[0] not in ("t", "u")
        or not isinstance(pair[1], str)
    ):
        raise Fault(f'an operand has to be "t.name", "u.name" or ["t", "name"], not {given!r}', 0)
    role: Role = "t" if pair[0] == "t" else "u"
    if columns is not None and pair[1] not in columns:
        raise Fault(f"no column of the name {pair[1]!r}", 0, near_hint(pair[1], columns))
    return role, pair[1]


def _constant(record: Any) -> Constant:
    type_ = record.get("type") if isinstance(record, dict) else None
    value = record.get("value") if isinstance(record, dict) else None
    if type_ == "null" and value is None:
        return NULL
    if type_ == "text" and isinstance(value, str):
        return Constant(value, "text")
    if type_ == "boolean" and isinstance(value, bool):
        return Constant("true" if value else "false", "boolean")
    if (
        type_ in ("integer", "decimal", "double")
        and isinstance(value, str | int | float)
        and not isinstance(value, bool)
    ):
        return number_constant(str(value))
    raise Fault(
        f'a constant has to be {{"value": .., "type": ..}} with a type of {", ".join(_TYPES)}, not {record!r}', 0
    )
