"""Contracts and tables that the tests of exports share."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

import pyarrow as pa

import tuplewise as tw
from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.contract.file import ContractFile
from tuplewise.engine.contract.forms import OrderCompatibility
from tuplewise.engine.dc.constraint import DenialConstraint, Operator, Predicate

TYPES = {
    "pos": ("integer", pa.int64()), "k": ("integer", pa.int64()), "a b": ("text", pa.string()),
    "x": ("integer", pa.int64()), "y": ("integer", pa.int64()), "d": ("double", pa.float64()),
    "s": ("text", pa.string()), "day": ("date", pa.date32()), "flag": ("boolean", pa.bool_()),
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "k": [1, 2, 3, 4, 5, None],
    "a b": ["it's", 'q"uo', "back\\slash", "${x}", "{{ y }}", None],
    "x": [1, 2, 3, None],
    "y": [1, 2, 3, None],
    "d": [0.0, -0.0, float("nan"), 1.5, None],
    "s": ["a", "B", "é", "b", None],
    "day": [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), datetime.date(2026, 1, 3), None],
    "flag": [True, False, None],
}
RULES = {
    "key-1": ("key", "[k]"),
    "key-2": ("key", "['a b', x]".replace("'", "`")),
    "key-3": ("key", "[d]"),
    "fd-1": ("fd", "`a b` -> s"),
    "fd-2": ("fd", "x, y -> d"),
    "fd-3": ("fd", "[] -> flag"),
    "od-1": ("od", "[flag]: x ~ day"),
    "od-2": ("od", "s ~ d desc"),
    "od-3": ("od", "[]: flag ~ `a b`"),
    "row-1": ("row", "x <= y"),
    "row-2": ("row", "x != y"),
    "values-1": ("values", "`a b` in ('it''s', 'q\"uo', 'back\\slash', '${x}')"),
    "values-2": ("values", "x in (1, 2)"),
    "range-1": ("range", "d between 0 and 1"),
    "range-2": ("range", "s >= 'a'"),
    "range-3": ("range", "day between '2026-01-01' and '2026-01-02'"),
    "not_null-1": ("not_null", "`a b` is not null"),
    "not_null-2": ("not_null", "k is not null"),
    "dc-1": ("dc", "not(t.s == u.s and t.x < u.x and t.y > u.y)"),
    "dc-2": ("dc", "not(t.x == u.x and t.day != u.day)"),
    "dc-3": ("dc", "not(t.x > 1 and t.s is null)"),
    "dc-4": ("dc", "not(u.x > u.y and u.s == 'a')"),
}


def contract_text(rules: dict[str, Any], nulls: str = "unknown", **more: str) -> str:
    """A contract on table `the t` with these rules, and on table `ref` with an inclusion. `more`: of rules by id."""
    columns = "".join(f"      {name!r}: {{type: {type_}}}\n" for name, (type_, _) in TYPES.items())
    text = f"tuplewise_contract: 1\nnulls: {nulls}\ntables:\n  the t:\n    columns:\n{columns}"
    text += "  ref:\n    columns:\n      id: {type: integer}\n      s: {type: text}\nrules:\n"
    for rule_id, (kind, rule) in rules.items():
        table = "" if kind == "ind" else "table: the t, "
        text += f"  - {{id: {rule_id}, {table}kind: {kind}, rule: {_quoted(rule)}{more.get(rule_id, '')}}}\n"
    return text


def _quoted(text: str) -> str:
    return json.dumps(text)


def contract_of(rules: dict[str, Any], nulls: str = "unknown", **more: str) -> Contract:
    """The contract that `contract_text` writes."""
    return ContractFile("rules.yaml", contract_text(rules, nulls, **more)).contract


def table_of_rows(rows: list[tuple[Any, ...]]) -> pa.Table:
    """A table of rows without `pos`, which is their number."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * (len(TYPES) - 1)
    arrays = [list(range(len(rows))), *map(list, columns)]
    return pa.table({n: pa.array(v, t) for (n, (_, t)), v in zip(TYPES.items(), arrays, strict=True)})


def random_table(seed: int, rows: int = 14) -> pa.Table:
    """Rows of few values, with nulls, NaN and both zeros."""
    rng = random.Random(seed)
    return table_of_rows([tuple(rng.choice(own) for own in VALUES.values()) for _ in range(rows)])


def reference_table() -> pa.Table:
    """The table that others refer to."""
    return pa.table({"id": pa.array([1, 2, None], pa.int64()), "s": ["a", "é", "b"]})


def checked(contract: Contract, table: pa.Table) -> dict[str, dict[str, Any]]:
    """What our check finds, by rule, with every row."""
    tables = {"the t": table, "ref": reference_table()}
    found = {rule["id"]: rule for rule in tw.check_contract(tables, contract, examples=10_000).rules}
    for rule in contract.rules:
        if isinstance(rule.form, OrderCompatibility) and rule.id in found:
            rows = in_contradicting_pairs(table, rule.form, contract.nulls)
            found[rule.id]["examples"] = [{"rows": [row]} for row in rows]
    return found


def in_contradicting_pairs(table: Any, form: OrderCompatibility, nulls: Any) -> list[int]:
    """The rows in pairs that contradict an order rule: exports list them, our check the fewest to remove."""
    predicates = [Predicate("t", column, "==", "u", column) for column in form.context]
    predicates.append(Predicate("t", form.left, "<", "u", form.left))
    against: Operator = ">" if form.direction == "ascending" else "<"
    predicates.append(Predicate("t", form.right, against, "u", form.right))
    found = tw.check(table, DenialConstraint(tuple(predicates)), nulls=nulls, device="cpu")
    return [int(row) for row in found.rows()["row"]]
