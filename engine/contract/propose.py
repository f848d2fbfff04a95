"""The rules that a profile proposes for a contract."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tuplewise.engine.contract.contract import NONE, ContractColumn, ContractRule, ContractTable, Tolerance, id_of
from tuplewise.engine.contract.forms import (
    Form,
    FunctionalDependency,
    Key,
    Kind,
    NotNull,
    OrderCompatibility,
    Range,
    RowOrder,
    ValueSet,
    constant_of,
)
from tuplewise.engine.profile.columns import FEW_VALUES
from tuplewise.engine.report import profile_words

if TYPE_CHECKING:
    from tuplewise.engine.dc.constraint import Operator
    from tuplewise.engine.profile.discover import Profile, TableProfile
    from tuplewise.engine.profile.inclusions import Inclusion
    from tuplewise.engine.profile.rule import Rule
    from tuplewise.engine.report.dependencies import Direction
    from tuplewise.engine.table.relation import Relation

ROWS_A_VALUE = 10
"""Rows for each value of a column, on average, from which on its values are taken for a set."""
FEWEST_ROWS = 20
"""Rows of a table from which on value sets, ranges and columns without nulls are proposed."""
LONGEST = 40
"""Characters of a text that may be one of a set of values."""
EXAMPLES = 3
"""Rows that break a rule, at most, that are kept of it."""


def proposed_tables(profile: Profile, home: Path) -> Iterator[ContractTable]:
    """The profiled tables with their columns. `home`: the folder that paths are given from."""
    for name, table in profile.tables.items():
        relation = table.relation
        rows = max(relation.all_rows, 1)
        columns = tuple(ContractColumn(c.name, c.type, round(c.nulls / rows, 6)) for c in relation.columns)
        yield ContractTable(name, _path_from(relation.path, home), columns)


def proposed_rules(profile: Profile) -> list[ContractRule]:
    """The rules of a profile, best first, each with a tolerance of the share of rows that broke it.

    After them come, of tables of `FEWEST_ROWS` rows and more, what columns were seen to hold: no nulls, a small set of
    values (at most `FEW_VALUES`, each in `ROWS_A_VALUE` rows on average), or a range of numbers, dates or times.
    """
    rules = listed_rules(profile, EXAMPLES)
    for name, table in profile.tables.items():
        rules += [_rule(name, kind, form, english) for kind, form, english in _of_columns(table)]
    return rules


def listed_rules(profile: Profile, examples: int = 0) -> list[ContractRule]:
    """The rules that a profile lists, best first. `examples`: rows, at most, that break each and are told of."""
    scored: list[tuple[float, ContractRule]] = []
    for name, table in profile.tables.items():
        for listed in table.found.listed:
            both = [listed.rule, *(one for one in listed.implies if _is_converse(listed.rule, one))]
            scored += [(listed.rule.score, _of_rule(name, table, rule, examples)) for rule in both]
    scored += [(one.score, _of_inclusion(one)) for one in profile.inclusions]
    scored.sort(key=lambda entry: -entry[0])
    return [rule for _, rule in scored]


def _is_converse(rule: Rule, other: Rule) -> bool:
    return other.kind == "fd" and (other.left, other.right) == (rule.right, rule.left)


def _of_rule(name: str, table: TableProfile, rule: Rule, examples: int) -> ContractRule:
    left, right = (tuple(table.relation.columns[c].name for c in side) for side in (rule.left, rule.right))
    form: Form
    kind: Kind
    if rule.kind == "key":
        kind, form = "key", Key(left)
    elif rule.kind == "od":
        kind, form = "od", OrderCompatibility(left, right[0], right[1], _DIRECTIONS[rule.sense])
    elif rule.kind == "row":
        kind, form = "row", RowOrder(left[0], _OPERATORS[rule.sense], right[0])
    elif rule.kind == "constant":
        kind, form = "values", ValueSet(right[0], (constant_of(table.table.commonest(rule.right[0])),))
    else:
        kind, form = "fd", FunctionalDependency(left, right[0])
    seen = _seen(rule, rule.rows)
    if rule.exceptions and examples:
        relation, broken = table.table.broken(rule, examples)
        seen["examples"] = [one["text"] for one in profile_words.examples(relation, rule, broken)]
    return _rule(name, kind, form, profile_words.meaning(table.table, rule), seen)


_DIRECTIONS: dict[str, Direction] = {"ascending": "ascending", "descending": "descending"}
_OPERATORS: dict[str, Operator] = {"==": "==", "<": "<", "<=": "<="}


def _of_inclusion(one: Inclusion) -> ContractRule:
    return _rule("", "ind", one.ind, profile_words.inclusion_meaning(one), _seen(one, one.values))


def _seen(one: Rule | Inclusion, rows: int) -> dict[str, Any]:
    """What was measured of a rule that speaks of so many rows, or values."""
    evidence, strength = round(one.evidence, 3), round(one.strength, 6)
    return {"rows": rows, "exceptions": one.exceptions, "evidence": evidence, "strength": strength}


def _ceiling(exceptions: int, rows: int) -> float:
    """The share of exceptions, with two significant digits, rounded up.

    Examples
    --------
    >>> _ceiling(1, 3), _ceiling(29, 10_000), _ceiling(5, 5)
    (0.34, 0.0029, 1.0)
    """
    share = Decimal(exceptions) / max(rows, 1)
    digits = share.adjusted() - 1
    return float(share.quantize(Decimal(1).scaleb(digits), rounding=ROUND_CEILING))


def _rule(table: str, kind: Kind, form: Form, english: str, seen: dict[str, Any] | None = None) -> ContractRule:
    text = str(form)
    broken = 0 if seen is None else seen["exceptions"]
    tolerance = Tolerance(share=_ceiling(broken, seen["rows"])) if seen and broken else NONE
    return ContractRule(
        id_of(table, kind, text), table, kind, text, form, english, "proposed", tolerance=tolerance, seen=seen
    )


def _of_columns(profiled: TableProfile) -> Iterator[tuple[Kind, Form, str]]:
    """What columns were seen to hold."""
    table, relation = profiled.table, profiled.relation
    rows = relation.all_rows
    if rows < FEWEST_ROWS:
        return
    keys = {one.rule.left[0] for one in profiled.found.listed if one.rule.kind == "key" and len(one.rule.left) == 1}
    for number, column in enumerate(relation.columns):
        if not column.nulls:
            yield "not_null", NotNull(column.name), f"`{column.name}` has a value in each row"
        if number in keys or not column.distinct:
            continue
        filled = rows - column.nulls
        few = column.distinct <= FEW_VALUES and column.distinct * ROWS_A_VALUE <= filled
        if few and (not column.ordered or column.distinct == 1) and column.type != "boolean":
            (codes,) = table.lowest_values([number], FEW_VALUES)
            values = [_value(relation, number, int(code)) for code in codes]
            if all(len(str(value)) <= LONGEST for value in values):
                listed = ", ".join(profile_words.shown(value) for value in values)
                form = ValueSet(column.name, tuple(map(constant_of, values)))
                words = f"is {listed}" if len(values) == 1 else f"is one of {listed}"
                yield "values", form, f"`{column.name}` {words}"
        elif column.ordered and column.distinct > 1:
            some = table.some_values(number, 2, 0)
            low, high = _value(relation, number, some.lowest), _value(relation, number, some.highest)
            if isinstance(low, float) and not math.isfinite(high - low):
                continue
            form_ = Range(column.name, constant_of(low), constant_of(high))
            between = f"is between {profile_words.shown(low)} and {profile_words.shown(high)}"
            yield "range", form_, f"`{column.name}` {between}"


def _value(relation: Relation, column: int, code: int) -> Any:
    dictionary = relation.dictionaries[relation.columns[column].domain]
    return dictionary.take(pa.array([code], pa.int32()))[0].as_py()


def _path_from(path: str | None, home: Path) -> str | None:
    """A path from the folder of the contract where it is local and one can go there; else as it is."""
    if path is None or "://" in path or path.startswith("spark:"):
        return path
    try:
        return os.path.relpath(os.path.realpath(path), os.path.realpath(home))
    except ValueError:  # another drive
        return path
