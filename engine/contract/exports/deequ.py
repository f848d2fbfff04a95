"""A contract as checks of Deequ, in Scala and in Python (PyDeequ).

Deequ knows shares of rows, no numbers of rows: a rule with `max_violations` is left out, and so is what compares two
rows but a key. On a table without rows to speak of, Deequ finds no share and fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tuplewise.engine.contract.contract import Contract, ContractRule
from tuplewise.engine.contract.exports.exported import CannotSay, Exported
from tuplewise.engine.contract.exports.names import names_for
from tuplewise.engine.contract.exports.queries import (
    RuleQueries,
    is_one_row,
    said,
)
from tuplewise.engine.contract.forms import InclusionDependency, Key, NotNull
from tuplewise.engine.report.text import visible

_ADDRESSABLE = re.compile(r"[^.`]+")
"""Names that Deequ finds a column by."""


@dataclass(frozen=True)
class _Constraint:
    """A call of a method of Check: its arguments, and what the share that it measures must be at least; None: 1."""

    method: str
    arguments: tuple[str | list[str], ...]
    least: str | None
    where: str = ""


def export(contract: Contract, table: str | None, dialect: str = "spark") -> Exported:
    """The accepted rules as Scala source: a function for each table that returns its checks.

    Whatever the dialect, conditions are those of Spark.

    Raises InputError for a table that the contract doesn't have.
    """
    return _export(contract, table, _Scala())


def export_python(contract: Contract, table: str | None, dialect: str = "spark") -> Exported:
    """The accepted rules as Python source for PyDeequ: see `export`."""
    return _export(contract, table, _Python())


def _export(contract: Contract, table: str | None, language: _Scala | _Python) -> Exported:
    queries = RuleQueries(contract, "spark")
    checks: dict[str, list[str]] = {}
    left_out = []
    for rule in contract.accepted(table):
        own = checks.setdefault(rule.subject, [])
        try:
            own.append(language.check(rule, _constraint(queries, rule)))
        except CannotSay as why:
            left_out.append(rule.id)
            own.append(language.comment(f"{rule.id} is left out: {why}"))
    names = names_for(checks)
    functions = [language.function(names[name], name, own) for name, own in checks.items()]
    return Exported(language.module(functions), language.suffix, tuple(left_out))


def _constraint(queries: RuleQueries, rule: ContractRule) -> _Constraint:
    """What says a rule. Raises CannotSay where nothing does."""
    form = rule.form
    if rule.tolerance.share is None and not rule.is_strict:
        raise CannotSay("Deequ measures shares, and its tolerance is a number")
    if isinstance(form, InclusionDependency) or not (is_one_row(form) or isinstance(form, Key)):
        raise CannotSay("Deequ compares no two rows but for keys")
    least = None if rule.is_strict else f"{1 - Decimal(str(rule.tolerance.share)):f}"
    filled = " AND ".join(f"{queries.name(column)} IS NOT NULL" for column in queries.left_out_by_nulls(rule))
    if isinstance(form, Key):
        if not all(map(_ADDRESSABLE.fullmatch, form.columns)):
            raise CannotSay("Deequ has no key of a column with a dot or a back-quote in its name")
        if queries.contract.nulls == "value":
            raise CannotSay("Deequ leaves nulls out of keys")
        if least is None and len(form.columns) == 1:
            return _Constraint("isUnique", form.columns, None)
        return _Constraint("hasDistinctness", (list(form.columns),), least or "1.0", filled)
    if isinstance(form, NotNull) and _ADDRESSABLE.fullmatch(form.column):
        method = "isComplete" if least is None else "hasCompleteness"
        return _Constraint(method, (form.column,), least)
    kept = f"NOT coalesce({queries.broken(rule, roles=False)}, FALSE)"
    return _Constraint("satisfies", (kept, rule.id), least or "1.0", filled if least else "")


class _Scala:
    """Scala source."""

    suffix = ".scala"

    def text(self, text: str) -> str:
        """A literal. Scala reads those of JSON."""
        return json.dumps(text)

    def comment(self, text: str) -> str:
        """A line of a comment. A backslash before u would be read as a character."""
        return f"    // {visible(text)}\n".replace("\\u", "\\ u")

    def check(self, rule: ContractRule, one: _Constraint) -> str:
        level = "Warning" if rule.severity == "warning" else "Error"
        given = [self.text(a) if isinstance(a, str) else f"Seq({', '.join(map(self.text, a))})" for a in one.arguments]
        if one.least:
            given.append(f"(share: Double) => share >= {one.least}")
        where = f".where({self.text(one.where)})" if one.where else ""
        call = f".{one.method}({', '.join(given)}){where}"
        comment = self.comment(said(rule))
        return f"{comment}    Check(CheckLevel.{level}, {self.text(rule.id)}){call},\n"

    def function(self, name: str, table: str, checks: Sequence[str]) -> str:
        comment = self.comment(f"table {table}")[2:]
        return f"{comment}  def {name}: Seq[Check] = Seq(\n{''.join(_closed(checks))}  )\n"

    def module(self, functions: Sequence[str]) -> str:
        heading = (
            "import com.amazon.deequ.checks.{Check, CheckLevel}\n\n"
            "// VerificationSuite().onData(df).addChecks(Rules.TABLE).run()\n"
        )
        return heading + "object Rules {\n" + "\n".join(functions) + "}\n"


def _closed(checks: Sequence[str]) -> Iterator[str]:
    """Items of a list in Scala, which has no comma behind the last."""
    last = max((n for n, check in enumerate(checks) if check.endswith(",\n")), default=-1)
    for number, check in enumerate(checks):
        yield check.removesuffix(",\n") + "\n" if number == last else check


class _Python:
    """Python source."""

    suffix = ".py"

    def comment(self, text: str) -> str:
        return f"        # {visible(text)}\n"

    def check(self, rule: ContractRule, one: _Constraint) -> str:
        level = "Warning" if rule.severity == "warning" else "Error"
        given = [repr(argument) for argument in one.arguments]
        if one.least:
            given.append(f"lambda share: share >= {one.least}")
        where = f".where({one.where!r})" if one.where else ""
        call = f".{one.method}({', '.join(given)}){where}"
        return f"{self.comment(said(rule))}        Check(spark, CheckLevel.{level}, {rule.id!r}){call},\n"

    def function(self, name: str, table: str, checks: Sequence[str]) -> str:
        comment = self.comment(f"table {table}").strip()
        return f"\n\n{comment}\ndef {name}(spark):\n    return [\n{''.join(checks)}    ]\n"

    def module(self, functions: Sequence[str]) -> str:
        heading = (
            '"""Checks of PyDeequ, a list for each table.\n\n'
            "VerificationSuite(spark).onData(df), then .addCheck(check) for each, then .run().\n"
            '"""\n\nfrom pydeequ.checks import Check, CheckLevel\n'
        )
        return heading + "".join(functions)
