"""Suggestions of the fewest rows or cells to change so that broken rules of a contract hold. Nothing is changed.

FD: in each class of rows that are equal on the left side, rows without the most frequent value get it. Key: rows that
repeat another are to be removed, or told apart. Order rule: rows outside a longest chain; with the values of the chain
between which B would have to lie. One row: the row; where a set of values has one that is spelled alike, that one.
The rows are as few as `exceptions` of the check says; which of several sets of that size is chosen is not defined, but
it is the same each time.

Source: g3 per class, Huhtala et al. (TANE), 1999, section 2.3; longest chains: see `chains`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tuplewise.engine.contract.check import CheckedContract, CheckedRule, OpenedTable
from tuplewise.engine.contract.forms import NotNull, OrderCompatibility, Range, RowForm, RowOrder, ValueSet
from tuplewise.engine.dc.violations.listing import iterate_pairs
from tuplewise.engine.errors import InputError, message, number_of
from tuplewise.engine.profile.columns import spelled
from tuplewise.engine.profile.rule import Rule
from tuplewise.engine.report import files
from tuplewise.engine.table.relation import Relation

SCHEMA = pa.schema(
    [
        ("rule_id", pa.string()), ("table", pa.string()), ("kind", pa.string()), ("row", pa.int64()),
        ("action", pa.string()), ("column", pa.string()), ("value", pa.string()), ("suggested", pa.string()),
        ("why", pa.string()),
    ]
)  # fmt: skip
"""Columns of the suggestions: `row` is the 0-based position in the source; `action` is "change" or "remove"."""
ENDINGS = (".parquet", ".csv")
ALIKE = 0.75
"""Likeness of two texts, by `difflib`, from which on one is taken for a misspelling of the other."""
_WHAT = "file of suggestions"


def suggestions(found: CheckedContract, most: int | None = None) -> tuple[pa.Table, list[str]]:
    """What to change so that broken rules hold, rule by rule; and notes on rules without suggestions.

    Parameters
    ----------
    most : suggestions for each rule; None: all
    """
    records: list[Mapping[str, Any]] = []
    notes = []
    for one in found.rules:
        if not one.exceptions:
            continue
        table = found.opened[one.table]
        if one.rule.kind in ("dc", "ind"):
            kinds = "keys, FDs, order rules and rules of one row"
            notes.append(f"rule {one.rule.id!r}: there are suggestions for {kinds} only")
        elif table.in_spark and one.rule.kind not in ("fd", "key"):
            notes.append(f"rule {one.rule.id!r}: of tables in Spark there are suggestions for keys and FDs only")
        else:
            records += _limited(_of_rule(one, table), most)
    columns = [pa.array([record[name] for record in records], SCHEMA.field(name).type) for name in SCHEMA.names]
    return pa.table(columns, schema=SCHEMA), notes


def check_repairs_file(given: str) -> None:
    """Raise InputError now where the file could not be written later."""
    if Path(given).suffix.lower() not in ENDINGS:
        raise InputError(message(_WHAT, given, "a name that ends in .parquet or .csv"))
    files.check_target(_WHAT, given)


def write_suggestions(found: CheckedContract, given: str) -> list[str]:
    """Write the suggestions to a Parquet or CSV file, whole or not at all. Returns notes."""
    check_repairs_file(given)
    table, notes = suggestions(found)
    with files.replacing([Path(os.path.realpath(given))]) as (temporary,):
        if given.lower().endswith(".csv"):
            from pyarrow.csv import write_csv

            write_csv(table, temporary)
        else:
            from pyarrow.parquet import write_table

            write_table(table, temporary)
    return [f"{number_of(table.num_rows, 'suggestion')} written to {given!r}", *notes]


def _limited(records: Iterator[Mapping[str, Any]], most: int | None) -> Iterator[Mapping[str, Any]]:
    for number, record in enumerate(records):
        if most is not None and number >= most:
            return
        yield record


def _of_rule(one: CheckedRule, table: OpenedTable) -> Iterator[Mapping[str, Any]]:
    """The suggestions for a broken rule."""
    own = {"rule_id": one.rule.id, "table": one.table, "kind": one.rule.kind}
    form = one.rule.form
    if isinstance(form, RowForm):
        found = _of_row(form, table.relation, table.nulls)
    elif isinstance(form, OrderCompatibility):
        found = _of_order(table.profiled(form), table)
    else:
        found = _of_classes(table.profiled(form), table)
    for row, action, column, value, suggested, why in found:
        yield {
            **own, "row": row, "action": action, "column": column, "value": value, "suggested": suggested, "why": why,
        }  # fmt: skip


Suggestion = tuple[int, str, str | None, str | None, str | None, str]


def _of_classes(rule: Rule, table: OpenedTable) -> Iterator[Suggestion]:
    """For an FD the values that the majority of each class has; for a key the rows that repeat another."""
    relation, broken = table.rows.broken(rule, None)
    place = _places(relation, broken.rows)
    if rule.kind == "key":
        for row, first in zip(place, _places(relation, broken.partners), strict=True):
            yield row, "remove", None, None, None, f"repeats row {first}"
        return
    column = rule.right[0]
    values, better = (_texts(relation, column, rows) for rows in (broken.rows, broken.partners))
    shares = zip(broken.alike.tolist(), broken.together.tolist(), strict=True)
    for row, value, other, (alike, together) in zip(place, values, better, shares, strict=True):
        name = relation.columns[column].name
        yield row, "change", name, value, other, f"{alike:,} of {together:,} rows have it"


def _of_order(rule: Rule, table: OpenedTable) -> Iterator[Suggestion]:
    """Rows outside a longest chain of their class, and the values between which B would have to lie."""
    relation, b = table.relation, rule.right[1]
    outside = table.out_of_order(rule)
    values, *ends = (_texts(relation, b, rows) for rows in (outside.rows, outside.before, outside.after))
    name = relation.columns[b].name
    for row, value, first, last in zip(_places(relation, outside.rows), values, *ends, strict=True):
        between = [f"from {first}" if first is not None else "", f"to {last}" if last is not None else ""]
        yield row, "change", name, value, " ".join(filter(None, between)) or None, "it is out of order"


def _of_row(form: RowForm, relation: Relation, nulls: str) -> Iterator[Suggestion]:
    """The rows that break a rule about one row; for a set of values one that is spelled alike."""
    for constraint in form.constraints:
        for part in iterate_pairs(relation, constraint, nulls=nulls, device="cpu"):
            rows = part[:, 0]
            column = relation.index_of(form.left if isinstance(form, RowOrder) else form.column)
            name = relation.columns[column].name
            for row, value in zip(_places(relation, rows), _texts(relation, column, rows), strict=True):
                suggested, why = _better(form, value)
                yield row, "change", name, value, suggested, why


def _better(form: RowForm, value: str | None) -> tuple[str | None, str]:
    """A value in place of one that breaks a rule, if there is one at hand; and what is wrong with it."""
    if isinstance(form, NotNull):
        return None, "it is null"
    if isinstance(form, Range):
        return None, f"not {form}"
    if isinstance(form, ValueSet):
        known = {constant.text.casefold(): constant.text for constant in form.values}
        near = difflib.get_close_matches((value or "").casefold().strip(), known, n=1, cutoff=ALIKE)
        return (known[near[0]] if near else None), "it is none of the values"
    return None, f"not {form}"


def _places(relation: Relation, rows: NDArray[np.int64]) -> list[int]:
    """Positions in the source."""
    return [relation.position_of(row) for row in rows.tolist()]


def _texts(relation: Relation, column: int, rows: NDArray[np.int64]) -> list[str | None]:
    """Values as text; None for null, and for row -1."""
    found = relation.values(column, np.maximum(rows, 0)).to_pylist()
    both = zip(rows.tolist(), found, strict=True)
    return [None if value is None or row < 0 else spelled(value) for row, value in both]
