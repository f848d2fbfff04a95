"""Properties of dbt models as a contract: the generic tests unique, not_null, accepted_values and relationships."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tuplewise.engine.contract.contract import (
    Contract,
    ContractColumn,
    ContractRule,
    ContractTable,
    Severity,
    Tolerance,
    id_of,
)
from tuplewise.engine.contract.forms import (
    Constant,
    Form,
    InclusionDependency,
    Key,
    Kind,
    NotNull,
    ValueSet,
    constant_of,
)
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.ind.dependency import Attribute

_REF = re.compile(r"""\s*(?:\{\{\s*)?(?:ref\(\s*|source\(\s*(?:'[^']*'|"[^"]*")\s*,\s*)(['"])(?P<name>[^'"]+)\1\s*\)""")
_OVER = re.compile(r"\s*>\s*(\d+)\s*")
_READ = ("unique", "not_null", "accepted_values", "relationships")


class _Unread(Exception):
    """Why a test is not read."""


def read(text: str, name: str) -> tuple[Contract, list[str]]:
    """A contract of the tests of models, seeds, snapshots and sources, all proposed.

    Parameters
    ----------
    text : content of a properties file
    name : what messages call it

    Returns
    -------
    contract : its rules, proposed
    notes : one for each test that was not read

    Raises
    ------
    InputError : for text that is no YAML, or holds no mapping
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise InputError(message(f"properties of dbt are no YAML: {name}", str(error).splitlines()[0])) from None
    if not isinstance(document, Mapping):
        raise InputError(message(f"properties of dbt {name!r} hold no mapping", hint="They begin with version: 2"))
    tables: dict[str, ContractTable] = {}
    rules: dict[str, ContractRule] = {}
    notes: list[str] = []
    for resource in _resources(document):
        table = str(resource["name"])
        columns = [entry for entry in resource.get("columns") or () if isinstance(entry, Mapping) and "name" in entry]
        known = tuple(ContractColumn(str(entry["name"])) for entry in columns)
        tables[table] = ContractTable(table, None, known or None)
        own: list[tuple[str | None, Any]] = [(None, test) for test in _tests(resource)]
        own += [(str(entry["name"]), test) for entry in columns for test in _tests(entry)]
        for column, test in own:
            place = f"{table}.{column}" if column else table
            try:
                rule = _rule(table, column, test)
                rules.setdefault(rule.id, rule)
            except _Unread as why:
                notes.append(f"{place}: test {_name_of(test)} was not read: {why}")
    for rule in list(rules.values()):
        if isinstance(rule.form, InclusionDependency):
            for attribute in rule.form.referenced:
                _mention(tables, attribute)
    return Contract(name, "unknown", tables, tuple(rules.values())), notes


def _resources(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind in ("models", "seeds", "snapshots", "sources"):
        for entry in document.get(kind) or ():
            if isinstance(entry, Mapping):
                found = entry.get("tables") or () if kind == "sources" else (entry,)
                yield from (one for one in found if isinstance(one, Mapping) and "name" in one)


def _tests(entry: Mapping[str, Any]) -> list[Any]:
    return [*(entry.get("data_tests") or ()), *(entry.get("tests") or ())]


def _mention(tables: dict[str, ContractTable], attribute: Attribute) -> None:
    """Add a referenced column to its table, which the file may not describe."""
    table = tables.get(attribute.table, ContractTable(attribute.table))
    if attribute.column not in table.column_names:
        columns = (*(table.columns or ()), ContractColumn(attribute.column))
        tables[attribute.table] = replace(table, columns=columns)


def _name_of(test: Any) -> str:
    if isinstance(test, Mapping):
        return repr(str(test.get("test_name") or next(iter(test), "")))
    return repr(str(test))


def _rule(table: str, column: str | None, test: Any) -> ContractRule:
    kind, given = _parts(test)
    if kind not in _READ:
        raise _Unread(f"only {', '.join(_READ)} have a rule of the same meaning")
    config = {**given, **(given.get("config") or {})}
    arguments = {**given, **(given.get("arguments") or {})}
    column = str(arguments.get("column_name") or column or "")
    if not column:
        raise _Unread("it names no column")
    condition = [key for key in ("where", "limit") if config.get(key) is not None]
    if condition:
        raise _Unread(f"it has {condition[0]}: {config[condition[0]]!r}")
    if config.get("enabled") is False:
        raise _Unread("it is not enabled")
    form, of = _form(table, column.strip('"`'), kind, arguments)
    severity: Severity = "warning" if str(config.get("severity", "error")).lower() == "warn" else "error"
    text = str(form)
    table = "" if of == "ind" else table
    return ContractRule(
        id=id_of(table, of, text),
        table=table,
        kind=of,
        text=text,
        form=form,
        english=str(given.get("description") or ""),
        status="proposed",
        severity=severity,
        tolerance=_tolerance(kind, config, severity),
    )


def _parts(test: Any) -> tuple[str, Mapping[str, Any]]:
    """The name of a test and what it is given: `unique`, `unique: {...}`, `{test_name: unique, ...}`."""
    if not isinstance(test, Mapping):
        return str(test), {}
    if "test_name" in test:
        return str(test["test_name"]), test
    kind, given = next(iter(test.items()), ("", None))
    if given is not None and not isinstance(given, Mapping):
        raise _Unread(f"it is given {given!r}")
    return str(kind), given or {key: value for key, value in test.items() if key != kind}


def _form(table: str, column: str, kind: str, arguments: Mapping[str, Any]) -> tuple[Form, Kind]:
    if kind == "unique":
        return Key((column,)), "key"
    if kind == "not_null":
        return NotNull(column), "not_null"
    if kind == "accepted_values":
        return ValueSet(column, _values(arguments)), "values"
    found = _REF.match(str(arguments.get("to", "")))
    field = arguments.get("field")
    if found is None or not field:
        raise _Unread(f"it refers to {arguments.get('to')!r}, field {field!r}")
    referenced = Attribute(found["name"], str(field).strip('"`'))
    return InclusionDependency((Attribute(table, column),), (referenced,)), "ind"


def _values(arguments: Mapping[str, Any]) -> tuple[Constant, ...]:
    """The accepted values; without quotes they are SQL: numbers, true, false, or text in quotes of its own."""
    given = arguments.get("values")
    if not isinstance(given, list) or not given or any(value is None for value in given):
        raise _Unread(f"its values are {given!r}")
    if arguments.get("quote", True):
        return tuple(Constant(str(value), "text") for value in given)
    found = []
    for value in given:
        if isinstance(value, str):
            quoted = re.fullmatch(r"'((?:''|[^'])*)'", value)
            if quoted:
                value = quoted[1].replace("''", "'")
            elif re.fullmatch(r"-?\d+", value):
                value = int(value)
            elif re.fullmatch(r"-?\d*\.\d+", value):
                from decimal import Decimal

                value = Decimal(value)
            elif value.lower() in ("true", "false"):
                value = value.lower() == "true"
            else:
                raise _Unread(f"value {value!r} is no literal that is known")
        found.append(constant_of(value))
    return tuple(found)


def _tolerance(kind: str, config: Mapping[str, Any], severity: str) -> Tolerance:
    """What error_if, or of a warning warn_if, allows. dbt counts values of `unique` and `accepted_values`, not rows."""
    given = config.get("warn_if" if severity == "warning" else "error_if")
    if given is None or re.fullmatch(r"\s*(!=|>|<>)\s*0\s*", str(given)):
        return Tolerance()
    over = _OVER.fullmatch(str(given))
    if over is None:
        raise _Unread(f"its condition is {given!r}, not '> N'")
    if kind in ("unique", "accepted_values") and "n_records" not in str(config.get("fail_calc")):
        raise _Unread(f"it fails where {given!r} values are wrong, a tolerance counts rows")
    return Tolerance(max_violations=int(over[1]))
