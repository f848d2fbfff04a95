"""A contract as checks of Soda, in SodaCL.

Metrics of Soda where they mean the rule; a query of failed rows where nothing may break a rule; else a metric of its
own, whose query counts what breaks the rule beyond its tolerance.
"""

from __future__ import annotations

import io
import re
from typing import Any

from tuplewise.engine.contract.contract import Contract, ContractRule
from tuplewise.engine.contract.exports.exported import CannotSay, Exported
from tuplewise.engine.contract.exports.names import names_for
from tuplewise.engine.contract.exports.queries import RuleQueries
from tuplewise.engine.contract.forms import Key, NotNull
from tuplewise.engine.report.text import visible

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names that checks of Soda take without quotes."""
_TEMPLATE = re.compile(r"\$\{|\{[{%#]")
"""What Soda replaces before it reads a file."""


def export(contract: Contract, table: str | None, dialect: str) -> Exported:
    """The accepted rules as SodaCL checks on tables with the names that the contract has.

    Parameters
    ----------
    contract : the contract
    table : the table whose rules are exported; None: all
    dialect : of the data source

    Raises
    ------
    InputError : for another dialect, or a table that the contract doesn't have
    """
    from tuplewise.engine.contract.file import new_yaml

    queries = RuleQueries(contract, dialect)
    rules = contract.accepted(table)
    names = names_for((rule.id for rule in rules), ["rule"])
    checks: dict[str, list[Any]] = {}
    refused, left_out = [], []
    for rule in rules:
        try:
            check = _check(queries, rule, names[rule.id])
            if _TEMPLATE.search(f"{rule.subject} {check}"):
                raise CannotSay("it has a text that Soda would take for a variable")
            checks.setdefault(f"checks for {rule.subject}", []).append(check)
        except CannotSay as why:
            left_out.append(rule.id)
            refused.append(f"# {rule.id} is left out: {why}\n")
    written = io.StringIO()
    name = _TEMPLATE.sub("", visible(contract.name))
    written.write(f"# Rules of contract {name} as SodaCL (dialect of queries: {dialect})\n{''.join(refused)}")
    if checks:
        new_yaml().dump(checks, written)
    return Exported(written.getvalue(), ".yml", tuple(left_out))


def _check(queries: RuleQueries, rule: ContractRule, name: str) -> dict[str, Any]:
    """One check: what it measures, and when it fails."""
    from ruamel.yaml.scalarstring import LiteralScalarString

    form, most = rule.form, rule.tolerance.max_violations or 0
    words = rule.english or rule.text
    told = rule.id if _TEMPLATE.search(words) else f"{rule.id}: {words}"
    level = "warn" if rule.severity == "warning" else "fail"
    counted = rule.tolerance.share is None
    if isinstance(form, NotNull) and counted and _PLAIN.fullmatch(form.column):
        return {f"missing_count({form.column})": {"name": told, level: f"when > {most}"}}
    unary = isinstance(form, Key) and len(form.columns) == 1 and queries.contract.nulls == "unknown"
    if isinstance(form, Key) and unary and rule.is_strict and _PLAIN.fullmatch(form.columns[0]):
        return {f"duplicate_count({form.columns[0]})": {"name": told, level: "when > 0"}}
    if rule.is_strict and level == "fail":
        return {"failed rows": {"name": told, "fail query": LiteralScalarString(queries.rows(rule) + "\n")}}
    query = queries.exceptions(rule)
    if not counted:  # how many rows with more than is allowed: one or none
        query, most = f"SELECT count(*) FROM (\n{queries.beyond(rule)}\n) AS over", 0
    return {name: {"name": told, f"{name} query": LiteralScalarString(query + "\n"), level: f"when > {most}"}}
