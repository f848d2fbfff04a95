"""A contract as dbt tests: generic tests in a properties file, and a singular test in SQL for each other rule.

The text holds the files one after another, each under a line `# ==> PATH <==`; `files_of` takes it apart. A project
has one properties entry for a model: where it describes the model already, its tests go there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuplewise.engine.contract.contract import Contract, ContractRule
from tuplewise.engine.contract.exports.exported import CannotSay, Exported
from tuplewise.engine.contract.exports.names import names_for
from tuplewise.engine.contract.exports.queries import (
    RuleQueries,
    said,
)
from tuplewise.engine.contract.forms import DenialConstraint, InclusionDependency, Key, NotNull, ValueSet
from tuplewise.engine.report import files, sql

PROPERTIES = "models/tuplewise.yml"
_TESTS = "tests/tuplewise"
_MARK = re.compile(r"^# ==> (\S+) <==\n", re.MULTILINE)
_QUOTED = {True: re.compile(r"'(?:\\.|[^'\\])*'|`(?:``|[^`])*`", re.S), False: re.compile(r"'[^']*'|\"[^\"]*\"", re.S)}
"""Literals and names in quotes, in Spark and elsewhere."""
_HARMLESS = re.compile(r"[^\"`\\{}\r\n\0]+")
"""Names that dbt puts in quotes as they are, and that Jinja leaves alone."""


def export(contract: Contract, table: str | None, dialect: str) -> Exported:
    """The accepted rules as dbt tests on models with the names of the tables.

    A test of a rule within its tolerance passes. One of severity "warning" warns.

    Parameters
    ----------
    contract : the contract
    table : the table whose rules are exported; None: all
    dialect : of the warehouse

    Raises
    ------
    InputError : for another dialect, or a table that the contract doesn't have
    """
    rules = contract.accepted(table)
    queries = RuleQueries(contract, dialect)
    names = names_for(rule.id for rule in rules)
    models: dict[str, dict[str | None, list[Any]]] = {}
    singular, refused, left_out = [], [], []
    for rule in rules:
        try:
            generic = _generic(queries, rule, names[rule.id])
            if generic is None:
                singular.append((f"{_TESTS}/{names[rule.id]}.sql", _singular(queries, rule)))
            else:
                models.setdefault(rule.subject, {}).setdefault(generic[0], []).append(generic[1])
        except CannotSay as why:
            left_out.append(rule.id)
            refused.append(f"# {rule.id} is left out: {why}\n")
    text = _properties(contract, models, refused)
    parts = [(PROPERTIES, text), *singular]
    return Exported("".join(f"# ==> {path} <==\n{content}" for path, content in parts), ".txt", tuple(left_out))


def files_of(text: str) -> dict[str, str]:
    """The files that an export holds, by their paths from the folder of the dbt project."""
    parts = _MARK.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def write_files(text: str, folder: Path) -> list[str]:
    """Write the files of an export into the folder of a dbt project, all together or none.

    Returns the other tests in `tests/tuplewise`: those of rules that are exported no more, and a user's own.
    """
    contents = {folder / path: content for path, content in files_of(text).items()}
    for path in contents:
        path.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(list(contents)) as temporary:
        for path, content in zip(temporary, contents.values(), strict=True):
            path.write_text(content, encoding="utf-8")
    return sorted(str(path) for path in (folder / _TESTS).glob("*.sql") if path not in contents)


def _properties(contract: Contract, models: Mapping[str, Mapping[str | None, list[Any]]], refused: list[str]) -> str:
    import io

    from tuplewise.engine.contract.file import new_yaml

    written = io.StringIO()
    heading = f"Generic tests of contract {contract.name}, for dbt 1.10.8 and newer"
    written.write(f"# {sql.comment(heading).removeprefix('-- ')}" + "".join(refused))
    listed = []
    for name, columns in models.items():
        entries = [{"name": column, "quote": True, "data_tests": tests} for column, tests in columns.items()]
        listed.append({"name": name, "columns": entries})
    new_yaml().dump({"version": 2, "models": listed} if listed else {"version": 2}, written)
    return written.getvalue()


def _config(rule: ContractRule, factor: int = 1) -> dict[str, Any]:
    """When a test fails. `factor`: violations for each row that the test counts."""
    found: dict[str, Any] = {"severity": "warn" if rule.severity == "warning" else "error"}
    if rule.tolerance.max_violations and rule.tolerance.share is None:
        over = f"> {rule.tolerance.max_violations // factor}"
        found |= {"warn_if": over} if rule.severity == "warning" else {"error_if": over, "warn_if": over}
    return found


def _generic(queries: RuleQueries, rule: ContractRule, name: str) -> tuple[str, dict[str, Any]] | None:
    """A column, and the generic test of it; None where no generic test says the rule."""
    form, nulls = rule.form, queries.contract.nulls
    column, test, more = "", "", dict[str, Any]()
    counted = None
    if rule.tolerance.share:  # generic tests know no number of rows
        return None
    if isinstance(form, NotNull):
        column, test = form.column, "not_null"
    elif isinstance(form, Key) and len(form.columns) == 1 and nulls == "unknown":
        column, test, counted = form.columns[0], "unique", "coalesce(sum(n_records - 1), 0)"
    elif isinstance(form, ValueSet) and nulls == "unknown":
        values = queries.values_of(rule.table, form)
        column, test, counted = form.column, "accepted_values", "coalesce(sum(n_records), 0)"
        type_ = queries.types(rule.table).get(form.column)
        literals = [sql.literal_for(value, type_, column, queries.dialect) for value in form.values]
        if not _HARMLESS.fullmatch(values):
            return None
        more = {"values": list(dict.fromkeys(literals)), "quote": False}
        if all(re.fullmatch(r"'[^']*'", literal) for literal in literals):
            more = {"values": [literal[1:-1] for literal in dict.fromkeys(literals)]}
    elif isinstance(form, InclusionDependency) and len(form.dependent) == 1:
        (own,), (theirs,) = form.dependent, form.referenced
        if not all(map(_HARMLESS.fullmatch, (theirs.table, theirs.column))) or "'" in theirs.table:
            return None
        column, test = own.column, "relationships"
        more = {"to": f"ref('{theirs.table}')", "field": queries.name(theirs.column)}
    if not test or not all(map(_HARMLESS.fullmatch, (column, rule.subject))):
        return None
    config = _config(rule)
    if counted and len(config) > 1:
        config["fail_calc"] = counted
    entry: dict[str, Any] = {"name": name} | ({"arguments": more} if more else {}) | {"config": config}
    return column, {test: entry}


def _singular(queries: RuleQueries, rule: ContractRule) -> str:
    """A singular test: the tables are common table expressions of their names, on what `ref` finds."""
    form = rule.form
    tables = [rule.subject]
    if isinstance(form, InclusionDependency) and form.referenced[0].table not in tables:
        tables.append(form.referenced[0].table)
    twice = isinstance(form, DenialConstraint) and not form.names_one_tuple and form.is_symmetric
    by_query = not rule.is_strict and (rule.tolerance.share is not None or rule.kind == "od")
    query = queries.beyond(rule) if by_query else queries.rows(rule)
    config = ", ".join(f"{key}='{value}'" for key, value in _config(rule, 2 if twice else 1).items())
    common = ", ".join(
        f"{_for_jinja(queries.name(name), queries.dialect)} AS (SELECT * FROM {{{{ ref({_jinja_text(name)}) }}}})"
        for name in tables
    )
    comment = _for_jinja(sql.comment(said(rule)), queries.dialect, quotes=False)
    body = _for_jinja(query, queries.dialect)
    return f"{comment}{{{{ config({config}) }}}}\nWITH {common}\nSELECT * FROM (\n{body}\n) AS broken\n"


def _jinja_text(text: str) -> str:
    """Text as a literal of Jinja."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def _for_jinja(text: str, dialect: str, *, quotes: bool = True) -> str:
    """SQL that Jinja leaves as it is. Line ends within literals and names are written by Jinja, too."""

    def escaped(found: re.Match[str]) -> str:
        return re.sub(r"[\r\n]", lambda end: _ENDS[end[0]], found[0])

    text = text.replace("{", "{{ '{' }}")
    return _QUOTED[dialect == "spark"].sub(escaped, text) if quotes else text


_ENDS = {"\n": "{{ '\\n' }}", "\r": "{{ '\\r' }}"}
