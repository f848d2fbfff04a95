"""Queries that list violations, run on DuckDB and Spark SQL and compared with violations by definition."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from oracles.dc import outcome, satisfies

from tuplewise.engine.dc.constraint import OPERATORS, DenialConstraint, Predicate
from tuplewise.engine.errors import InputError
from tuplewise.engine.report.sql import Writer, check_dialect, quote, table_parts

ROWS = 9
INF, NAN = math.inf, math.nan
WEIRD = ["Id[Integer]", "a.b", "a`b", 'q"uo"te', "my col", "select", "naïve 名", "r and d", "row_id", "line\nend"]


def small_table(seed: int) -> dict[str, list[Any]]:
    """Columns of a few values each, with nulls, NaN, both zeros; the first column numbers the rows."""
    rng = random.Random(seed)
    values: dict[str, list[Any]] = {
        "x": [1, 2, 2, 3, None],
        "y": [0, 1, 2, 2, None],
        "d": [0.0, -0.0, NAN, INF, 1.5, None],
        "e": [0.0, NAN, -INF, 1.5, None],
        "s": ["a", "B", "é", "", "a ", None],
        "w": ["a", "b", "", None],
        "day": [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), None],
        "flag": [True, False, None],
    }
    table: dict[str, list[Any]] = {"pos": list(range(ROWS))}
    table.update({name: [rng.choice(few) for _ in range(ROWS)] for name, few in values.items()})
    return table


TYPES = {
    "pos": pa.int64(), "x": pa.int64(), "y": pa.int64(), "d": pa.float64(), "e": pa.float64(), "s": pa.string(),
    "w": pa.string(), "day": pa.date32(), "flag": pa.bool_(),
}  # fmt: skip


def arrow(table: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(values, TYPES.get(name, pa.int64())) for name, values in table.items()})


def random_rule(rng: random.Random) -> DenialConstraint:
    """One to three predicates over columns of one type, across tuples or within one."""
    comparable = [("x", "y"), ("d", "e"), ("s", "w"), ("day",), ("flag",)]
    predicates = []
    one_row = rng.random() < 0.2
    for _ in range(rng.randint(1, 3)):
        columns = rng.choice(comparable[:3] if one_row else comparable)
        left, right = rng.choice(columns), rng.choice(columns)
        within = one_row or (left != right and rng.random() < 0.2)
        predicates.append(Predicate("t", left, rng.choice(OPERATORS), "t" if within else "u", right))
    if not one_row and all(p.right_role == "t" for p in predicates):
        predicates.append(Predicate("t", "x", "==", "u", "x"))
    return DenialConstraint(tuple(predicates))


def violations(rule: DenialConstraint, table: dict[str, list[Any]], nulls: str) -> set[tuple[int, ...]]:
    """By definition: rows of a rule about one row, ordered pairs otherwise."""
    rows = len(next(iter(table.values())))

    def violated(t: int, u: int) -> bool:
        at = {"t": t, "u": u}
        for p in rule.predicates:
            found = outcome(table[p.left][at[p.left_role]], table[p.right][at[p.right_role]], nulls)
            if found is None or not satisfies(found, p.operator):
                return False
        return True

    if all(p.right_role == "t" for p in rule.predicates):
        return {(t,) for t in range(rows) if violated(t, t)}
    return {(t, u) for t, u in itertools.permutations(range(rows), 2) if violated(t, u)}


def own_mirror(rule: DenialConstraint) -> bool:
    """Whether exchanging t and u gives the same set of comparisons, spelled out by hand."""
    turned = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
    other = {"t": "u", "u": "t"}

    def both(p: Predicate, roles: dict[str, str]) -> frozenset[Any]:
        left, right = (roles[p.left_role], p.left), (roles[p.right_role], p.right)
        return frozenset({(left, p.operator, right), (right, turned[p.operator], left)})

    same = {"t": "t", "u": "u"}
    return {both(p, same) for p in rule.predicates} == {both(p, other) for p in rule.predicates}


def expected(rule: DenialConstraint, table: dict[str, list[Any]], nulls: str) -> list[tuple[int, ...]]:
    found = violations(rule, table, nulls)
    if own_mirror(rule):
        assert {(u, t) for t, u in found} == found
        found = {(t, u) for t, u in found if t < u}
    return sorted(found)


def writer(table: dict[str, list[Any]], dialect: str, nulls: str, name: str = "things") -> Writer:
    return Writer(list(table), ["integer"] * len(table), [name], dialect, nulls)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("dialect", ["duckdb", "ansi"])
def test_duckdb_lists_the_violations_by_definition(dialect: str, nulls: str) -> None:
    seen = 0
    with duckdb.connect() as db:
        for seed in range(15):
            table = small_table(seed)
            db.register("things", arrow(table))
            rng = random.Random(seed)
            for rule in [random_rule(rng) for _ in range(5)]:
                found = db.sql(writer(table, dialect, nulls).query(rule, rule.rule)).fetchall()
                width = 1 if rule.names_one_tuple else 2
                assert sorted(row[:width] for row in found) == expected(rule, table, nulls), rule
                seen += len(found)
    assert seen > 300  # the rules are not all without violations


@pytest.mark.spark
@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_spark_lists_the_violations_by_definition(nulls: str, spark: Any) -> None:
    table = small_table(7)
    spark.createDataFrame(arrow(table)).createOrReplaceTempView("things")
    rng = random.Random(70)
    rules = [random_rule(rng) for _ in range(8)]
    parts = []
    for number, rule in enumerate(rules):
        query = writer(table, "spark", nulls).query(rule).rstrip().removesuffix(";")
        second = "CAST(NULL AS BIGINT)" if rule.names_one_tuple else "u"
        parts.append(f"(SELECT {number} AS rule, t, {second} AS u FROM ({query}))")
    found: dict[int, list[tuple[int, ...]]] = {number: [] for number in range(len(rules))}
    for number, t, u in spark.sql(" UNION ALL ".join(parts)).collect():
        found[number].append((t,) if u is None else (t, u))
    for number, rule in enumerate(rules):
        assert sorted(found[number]) == expected(rule, table, nulls), rule
    assert sum(map(len, found.values())) > 30
    # one of them as it is written, heading, semicolon and all
    script = "".join(writer(table, "spark", nulls).script(iter([(rules[0].rule, rules[0])])))
    assert len(spark.sql(script.rstrip().removesuffix(";")).collect()) == len(found[0])


def weird_case() -> tuple[dict[str, list[Any]], DenialConstraint]:
    rng = random.Random(3)
    table = {"pos": list(range(ROWS)), **{name: [rng.randint(0, 2) for _ in range(ROWS)] for name in WEIRD}}
    rules = [Predicate("t", name, ">=", "u", name) for name in WEIRD[:6]]
    return table, DenialConstraint(
        (*rules, Predicate("t", WEIRD[6], "!=", "u", WEIRD[7]), Predicate("t", "line\nend", "<=", "u", "row_id"))
    )


def test_any_name_can_be_a_column_or_a_table_in_duckdb() -> None:
    table, rule = weird_case()
    name = 'ta"b`le.x; -- 名'
    script = "".join(writer(table, "duckdb", "unknown", name).script(iter([(rule.rule, rule)])))
    with duckdb.connect() as db:
        db.register("given", arrow(table))
        db.execute(f"CREATE TABLE {quote(name, 'duckdb')} AS SELECT * FROM given")
        found = db.sql(script)
        assert found.columns[:4] == ["t", "u", "t_Id[Integer]", "u_Id[Integer]"]
        assert sorted(row[:2] for row in found.fetchall()) == expected(rule, table, "unknown")


@pytest.mark.spark
def test_any_name_can_be_a_column_in_spark(spark: Any) -> None:
    table, rule = weird_case()
    spark.createDataFrame(arrow(table)).createOrReplaceTempView("weird_names")
    query = writer(table, "spark", "unknown", "weird_names").query(rule, rule.rule)
    found = spark.sql(query.rstrip().removesuffix(";")).collect()
    assert sorted(tuple(row[:2]) for row in found) == expected(rule, table, "unknown")


def test_equal_rows_are_told_apart() -> None:
    table = {"a": [1, 1, 2], "b": [5, 5, 5]}
    rule = DenialConstraint((Predicate("t", "a", "==", "u", "a"), Predicate("t", "b", "==", "u", "b")))
    with duckdb.connect() as db:
        db.register("things", arrow(table))
        found = db.sql(writer(table, "duckdb", "unknown").query(rule)).fetchall()
    assert found == [(0, 1, 1, 1, 5, 5)]


def test_the_cells_that_the_rule_names_are_listed_once() -> None:
    table = {"a": [1, 1], "b": [2, 3], "c": [0, 0]}
    rule = DenialConstraint(
        (Predicate("t", "b", "<", "u", "b"), Predicate("t", "a", "==", "u", "a"), Predicate("t", "b", "!=", "u", "a"))
    )
    with duckdb.connect() as db:
        db.register("things", arrow(table))
        found = db.sql(writer(table, "duckdb", "unknown").query(rule))
        assert found.columns == ["t", "u", "t_b", "u_b", "t_a", "u_a"]
        assert Counter(found.fetchall()) == {(0, 1, 2, 3, 1, 1): 1}


def test_comments_stay_on_their_line() -> None:
    table = {"a\n; DROP TABLE x; --": [1, 1]}
    name = next(iter(table))
    rule = DenialConstraint((Predicate("t", name, "==", "u", name),))
    script = "".join(writer(table, "spark", "value").script(iter([(rule.rule, rule)])))
    before_code = script[: script.index("WITH numbered_rows")].splitlines()
    assert all(line.startswith("-- ") for line in before_code if line)
    assert sum("; DROP TABLE x" in line for line in before_code) == 2


def test_heading_states_what_the_queries_mean() -> None:
    table = {"A": [1], "a": [1]}
    heading = writer(table, "ansi", "unknown").heading()
    assert "row_number()" in heading
    assert "not the row's position in a file" in heading
    assert "a comparison with a null is never true" in heading
    assert "differ in case only" in heading
    assert "NaN" in heading
    assert "null is a value" in writer(table, "spark", "value").heading()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ["orders"]),
        ("main.orders", ["main", "orders"]),
        ('"my db"."a.b"', ["my db", "a.b"]),
        ("`a``b`.c", ["a`b", "c"]),
        ('"a""b"', ['a"b']),
        ("naïve 名", ["naïve 名"]),
    ],
)
def test_table_names_are_read_as_sql_writes_them(text: str, parts: list[str]) -> None:
    assert table_parts(text) == parts


@pytest.mark.parametrize("text", ["", "a.", ".a", '"open', "a..b"])
def test_table_names_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match=r"SQL table name: .*; allowed: a name such as"):
        table_parts(text)


def test_unknown_dialect() -> None:
    with pytest.raises(InputError, match=r"dialect: 'oracle'; allowed: 'spark', 'duckdb', 'postgres', 'ansi'"):
        check_dialect("oracle")
