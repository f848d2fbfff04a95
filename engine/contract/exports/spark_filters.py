"""A contract as Python source for Spark: for each rule a function that returns the rows that break it."""

from __future__ import annotations

from collections.abc import Iterator

from tuplewise.engine.contract.contract import Contract, ContractRule
from tuplewise.engine.contract.exports.exported import Exported
from tuplewise.engine.contract.exports.names import names_for
from tuplewise.engine.contract.exports.queries import RuleQueries, is_one_row, said
from tuplewise.engine.contract.forms import (
    DenialConstraint,
    FunctionalDependency,
    InclusionDependency,
    Key,
    OrderCompatibility,
)
from tuplewise.engine.report import sql
from tuplewise.engine.report.text import visible

_HEADING = '''\
"""The rows of Spark DataFrames that break the rules of a contract: a function for each rule.

RULES has the functions by the ids of the rules, and the table of each. A function takes the DataFrame of its table;
that of a reference takes the DataFrame of the referenced table, too. Tolerances are not applied: what is returned
may be allowed. Of a key come the rows after the first of each value, of an FD the rows without the most frequent
value, of an order rule the rows that contradict another, of other rules of two rows the pairs. Timestamps are moments
in UTC: set spark.sql.session.timeZone to UTC.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
'''
_TAKEN = ("DataFrame", "F", "RULES", "df", "referenced")
_PREFIX = "tuplewise_"


def export(contract: Contract, table: str | None, dialect: str = "spark") -> Exported:
    """The accepted rules as functions on DataFrames. Whatever the dialect, they are for Spark.

    Raises InputError for a table that the contract doesn't have.
    """
    rules = contract.accepted(table)
    queries = RuleQueries(contract, "spark")
    names = names_for((rule.id for rule in rules), _TAKEN)
    parts = [_HEADING]
    for rule in rules:
        given = "df: DataFrame" + ", referenced: DataFrame" * isinstance(rule.form, InclusionDependency)
        body = "".join(f"    {line}\n" for line in _body(queries, rule))
        parts.append(f"\n\n# {visible(said(rule))}\ndef {names[rule.id]}({given}) -> DataFrame:\n{body}")
    entries = "".join(f"    {rule.id!r}: ({rule.subject!r}, {names[rule.id]}),\n" for rule in rules)
    parts.append(f"\n\nRULES = {{\n{entries}}}\n")
    return Exported("".join(parts), ".py", ())


def _body(queries: RuleQueries, rule: ContractRule) -> Iterator[str]:
    """The lines of a function. Names and values stand in literals that Python wrote."""
    form = rule.form
    if isinstance(form, InclusionDependency):
        own = [f"d.{queries.name(a.column)}" for a in form.dependent]
        theirs = [f"r.{queries.name(b.column)}" for b in form.referenced]
        same = " AND ".join(f"{b} = {a}" for a, b in zip(own, theirs, strict=True))
        filled = " AND ".join(f"{column} IS NOT NULL" for column in own)
        yield f"filled = df.alias('d').filter({filled!r})"
        yield f"return filled.join(referenced.alias('r'), F.expr({same!r}), 'left_anti')"
    elif isinstance(form, (Key, FunctionalDependency, OrderCompatibility)):
        steps = queries.steps(rule, _PREFIX)
        if steps.filled:
            yield f"df = df.filter({steps.filled!r})"
        added = [one for step in steps.added for one in step]
        for name, expression in added:
            yield f"df = df.withColumn({_bare(name)!r}, F.expr({expression!r}))"
        dropped = ", ".join(repr(_bare(name)) for name, _ in added)
        yield f"return df.filter({steps.broken!r}).drop({dropped})"
    elif is_one_row(form):
        yield f"return df.filter({queries.broken(rule, roles=False)!r})"
    else:
        assert isinstance(form, DenialConstraint)
        yield from _pairs(queries.writer(rule), form)


def _pairs(writer: sql.Writer, form: DenialConstraint) -> Iterator[str]:
    cells = [sql.quote(column, "spark") for column in form.columns]
    numbered = ", ".join(repr(one) for one in (*cells, writer.number))
    shown = [f"{role}.{writer.row} AS `{role}`" for role in "tu"]
    for column, cell in zip(form.columns, cells, strict=True):
        shown += [f"{role}.{cell} AS {sql.quote(f'{role}_{column}', 'spark')}" for role in "tu"]
    yield f"rows = df.selectExpr({numbered})"
    yield f"pairs = rows.alias('t').join(rows.alias('u'), F.expr({' AND '.join(writer.conditions(form))!r}))"
    yield f"return pairs.selectExpr({', '.join(map(repr, shown))})"


def _bare(name: str) -> str:
    return name.strip("`")
