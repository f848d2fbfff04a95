"""Rule checking against other implementations: DuckDB's SQL for all classes, Desbordante's where it is right."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from dc.check_tables import Rules, as_rule, constant, random_table
from dc.dc_tables import Table, encode
from oracles.check import Condition, roles_of, violations

from tuplewise.engine.dc.violations.detect import check_rules
from tuplewise.engine.options import DcCheckOptions

pytestmark = pytest.mark.outside

ARROW = {
    "integer": pa.int64(), "decimal": pa.decimal128(38, 6), "double": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "boolean": pa.bool_(), "text": pa.string(),
}  # fmt: skip
SQL = {"==": "=", "!=": "<>", "is": "IS", "is not": "IS NOT"}


def as_sql(table: Table, rule: list[Condition]) -> str:
    """The rule as a query of our own, written from its conditions alone."""

    def value(column: int, v: Any) -> str:
        kind = {"integer": "BIGINT", "decimal": "DECIMAL(38, 6)", "double": "DOUBLE", "text": "VARCHAR"}
        return f"CAST('{constant(v).text}' AS {kind.get(table[column][1], table[column][1].upper())})"

    terms = []
    for role, column, operator, other, right in rule:
        operand = f"{other}.c{right}" if other else "NULL" if right is None else value(column, right)
        terms.append(f"{role}.c{column} {SQL.get(operator, operator)} {operand}")
    if len(roles_of(rule)) == 1:
        role = next(iter(roles_of(rule)))
        return f"SELECT {role}.id, -1 FROM x {role} WHERE {' AND '.join(terms)}"
    return f"SELECT t.id, u.id FROM x t, x u WHERE t.id <> u.id AND {' AND '.join(terms)}"


def test_duckdb_finds_the_same_pairs_for_all_classes() -> None:
    rng = random.Random(21)
    options = DcCheckOptions(device="cpu", pairs=10_000)
    with duckdb.connect() as database:
        for _ in range(12):
            table = random_table(rng, rng.choice([2, 6, 15]))
            columns = {name: pa.array(values, ARROW[type_]) for name, type_, values in table}
            ids = pa.array(range(len(table[0][2])), pa.int64())
            database.register("x", pa.table({"id": ids, **columns}))
            for kind, rule in Rules(rng, table).each():
                theirs = set(database.sql(as_sql(table, rule)).fetchall())
                check = check_rules(encode(table), [as_rule(table, rule)], options).rules[0]
                ours = {(t, u) for t, u in check.pairs.tolist()}
                if check.symmetric:
                    ours |= {(u, t) for t, u in ours}
                assert ours == theirs, (kind, rule, table)
            database.unregister("x")


def test_desbordante_agrees_where_it_is_right(tmp_path: Path) -> None:
    """No nulls, each column once, each predicate `s.X op t.X`: there its verifier has no known fault."""
    desbordante = pytest.importorskip("desbordante", reason="the peer package is not installed")
    rng = random.Random(22)
    for number in range(60):
        n = rng.randint(2, 9)
        table: Table = [(name, "integer", [rng.randint(1, 4) for _ in range(n)]) for name in ("a", "b", "c")]
        path = tmp_path / f"{number}.csv"
        lines = zip(*(values for _, _, values in table), strict=True)
        path.write_text("a,b,c\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))
        some = rng.sample(range(3), rng.randint(1, 3))
        rule: list[Condition] = [("t", c, rng.choice(["==", "!=", "<", "<=", ">", ">="]), "u", c) for c in some]
        text = "!(" + " and ".join(f"t.{'abc'[c]} {op} s.{'abc'[c]}" for _, c, op, _, _ in rule) + ")"
        verifier = desbordante.dc_verification.algorithms.Default()
        verifier.load_data(table=(str(path), ",", True))
        verifier.execute(denial_constraint=text)
        ours = check_rules(encode(table), [as_rule(table, rule)], DcCheckOptions(device="cpu")).rules[0]
        assert ours.holds == verifier.dc_holds(), (text, table)


@pytest.mark.parametrize(
    ("what", "rows", "rule", "listed"),
    [
        ("mixed orientation", [(1, 2), (2, 1)], [("u", 0, "<", "t", 0), ("t", 1, "<", "u", 1)], ((1, 0),)),
        (
            "the same column in two inequalities",
            [(1, 0), (2, 0), (3, 0)],
            [("t", 0, "<", "u", 0), ("t", 0, "<=", "u", 0)],
            ((0, 1), (0, 2), (1, 2)),
        ),
        ("across columns, one orientation", [(1, 5), (4, 0)], [("t", 0, "<", "u", 1)], ((1, 0),)),
        (
            "a predicate about one tuple beside others",
            [(1, 2), (1, 0)],
            [("t", 0, "==", "u", 0), ("t", 0, "<", "t", 1)],
            ((0, 1),),
        ),
        (
            "a constant beside an equality: nobody has the same A",
            [(1, 5), (2, 6), (3, 7)],
            [("t", 0, "==", "u", 0), ("t", 1, ">", None, 5)],
            (),
        ),
    ],
)  # fmt: skip
def test_the_classes_in_which_another_verifier_is_wrong(
    what: str, rows: list[tuple[int, int]], rule: list[Condition], listed: tuple[tuple[int, int], ...]
) -> None:
    table: Table = [("a", "integer", [r[0] for r in rows]), ("b", "integer", [r[1] for r in rows])]
    assert violations(rows, rule, "unknown").listed == tuple(p for p in listed), what
    check = check_rules(encode(table), [as_rule(table, rule)], DcCheckOptions(device="cpu")).rules[0]
    assert tuple(map(tuple, check.pairs.tolist())) == listed, what
