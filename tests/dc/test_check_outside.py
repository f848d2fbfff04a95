"""Rule checking against other implementations: DuckDB for all classes, Desbordante's verifier where it is right."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from dc.check_tables import Rules, as_arrow, as_rule, random_table
from dc.dc_tables import Table, encode
from oracles.check import Condition, roles_of

import tuplewise as tw
from tuplewise.engine.dc.violations.detect import check_rules
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.report.sql import Writer

pytestmark = pytest.mark.outside

SQL = {"==": "=", "!=": "<>", "is": "IS", "is not": "IS NOT"}
SQL_TYPES = {
    "integer": "DECIMAL(38, 2)", "decimal": "DECIMAL(38, 6)", "double": "DOUBLE", "text": "VARCHAR", "date": "DATE",
    "timestamp": "TIMESTAMP", "boolean": "BOOLEAN",
}  # fmt: skip


def as_sql(table: Table, rule: list[Condition]) -> str:
    """The rule as a query written from its conditions alone, for the rule "unknown"."""
    terms = []
    for role, column, operator, other, right in rule:
        literal = "NULL" if right is None else f"CAST('{right}' AS {SQL_TYPES[table[column][1]]})"
        operand = f"{other}.c{right}" if other else literal
        terms.append(f"{role}.c{column} {SQL.get(operator, operator)} {operand}")
    if len(roles_of(rule)) == 1:
        role = next(iter(roles_of(rule)))
        return f"SELECT {role}.id, -1 FROM x {role} WHERE {' AND '.join(terms)}"
    return f"SELECT t.id, u.id FROM x t, x u WHERE t.id <> u.id AND {' AND '.join(terms)}"


def numbered(table: Table) -> pa.Table:
    rows = len(table[0][2])
    return as_arrow(table).add_column(0, "id", pa.array(range(rows), pa.int64()))


def test_duckdb_finds_the_same_pairs_for_all_classes() -> None:
    """Queries that owe nothing to ours, and numbers as DuckDB has them: no codes, no dictionaries."""
    rng = random.Random(21)
    options = DcCheckOptions(device="cpu", pairs=10_000)
    seen = 0
    with duckdb.connect() as database:
        for _ in range(14):
            table = random_table(rng, rng.choice([2, 6, 15, 30]))
            database.register("x", numbered(table))
            rules = [rule for _, rule in Rules(rng, table).each()]
            checks = check_rules(tw.load(as_arrow(table)), [as_rule(table, rule) for rule in rules], options).rules
            for rule, check in zip(rules, checks, strict=True):
                theirs = sorted(database.sql(as_sql(table, rule)).fetchall())
                assert check.violating_pairs == len(theirs), (check.rule, table)
                listed = [p for p in theirs if p[0] < p[1]] if check.symmetric else theirs
                assert [tuple(p) for p in check.pairs.tolist()] == listed, (check.rule, table)
                seen += len(theirs)
            database.unregister("x")
    assert seen > 5_000


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("key", [(), ("id",)])
def test_the_query_that_is_handed_on_lists_the_same_pairs_in_duckdb(nulls: Any, key: tuple[str, ...]) -> None:
    """Of all classes. Rows are numbered in the order of all columns, and the first one numbers them already."""
    rng = random.Random(23)
    options = DcCheckOptions(device="cpu", pairs=10_000, nulls=nulls)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for _ in range(8):
            table = random_table(rng, rng.choice([1, 2, 7, 20]))
            database.register("things", numbered(table))
            relation = tw.load(numbered(table))
            types = [c.type for c in relation.columns]
            writer = Writer(relation.column_names, types, ["things"], "duckdb", nulls, key, bool(key))
            rules = [as_rule(table, rule) for _, rule in Rules(rng, table).each()]
            for check in check_rules(relation, rules, options).rules:
                query = writer.query(check.rule, check.rule.rule)
                found = database.sql(query).fetchall()
                theirs = sorted((row[0], -1 if check.one_row else row[1]) for row in found)
                assert theirs == [tuple(p) for p in check.pairs.tolist()], (query, table)
            database.unregister("things")


def desbordante_list(path: Path, text: str) -> tuple[bool, set[tuple[int, int]]]:
    """Whether a rule holds, and its unordered pairs of row positions (they count lines, the header as the first)."""
    desbordante = pytest.importorskip("desbordante", reason="the package desbordante isn't installed (extra: peers)")
    verifier = desbordante.dc_verification.algorithms.Default()
    verifier.load_data(table=(str(path), ",", True))
    verifier.execute(denial_constraint=text, do_collect_violations=True)
    lines = {(min(p) - 2, max(p) - 2) for p in verifier.get_violations()}
    return verifier.dc_holds(), lines


def test_desbordante_agrees_where_it_is_right(tmp_path: Path) -> None:
    """No nulls, one type a column, each predicate `s.X op t.X`, each column once: there it has no known fault."""
    path = tmp_path / "known.csv"
    path.write_text("a,b\n1,1\n1,2\n2,2\n")
    assert desbordante_list(path, "!(s.a == t.a and s.b != t.b)") == (False, {(0, 1)})
    assert desbordante_list(path, "!(s.a == t.a and s.b == t.b)") == (True, set())
    rng = random.Random(22)
    held = 0
    for number in range(150):
        n = rng.randint(2, 9)
        table: Table = [(name, "integer", [rng.randint(1, 4) for _ in range(n)]) for name in ("a", "b", "c")]
        table.append(("d", "text", [rng.choice(["x", "y", "zz"]) for _ in range(n)]))
        path = tmp_path / f"{number}.csv"
        lines = zip(*(values for _, _, values in table), strict=True)
        path.write_text("a,b,c,d\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))
        columns = rng.sample(range(4), rng.randint(1, 4))
        operators = ["==", "!=", "<", "<=", ">", ">="]
        rule: list[Condition] = [("t", c, rng.choice(operators[: 2 if c == 3 else 6]), "u", c) for c in columns]
        text = "!(" + " and ".join(f"s.{'abcd'[c]} {op} t.{'abcd'[c]}" for _, c, op, _, _ in rule) + ")"
        (check,) = check_rules(encode(table), [as_rule(table, rule)], DcCheckOptions(device="cpu", pairs=1_000)).rules
        unordered = {(min(t, u), max(t, u)) for t, u in check.pairs.tolist()}
        assert (check.holds, unordered) == desbordante_list(path, text), (text, table)
        held += bool(check.holds)
    assert 30 < held < 120
