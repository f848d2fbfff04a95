"""SQL of rules with constants and null tests, run on DuckDB and Spark and compared with violations by definition."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from oracles.dc import outcome, satisfies

from tuplewise.engine.dc.constraint import NULL, OPERATORS, Constant, DenialConstraint, Predicate
from tuplewise.engine.dc.rule_text import read_rule
from tuplewise.engine.errors import RuleError
from tuplewise.engine.report.sql import Writer
from tuplewise.engine.report.sql_literal import literal
from tuplewise.engine.table.relation import TypeName

INF, NAN = math.inf, math.nan
UTC = datetime.UTC
HARD_TEXT = [
    "it's",
    "''",
    "back\\slash",
    "\\'",
    "a\\nb",
    "${spark.app.name}",
    "line\nend",
    "\0",
    "%_",
    "ä名",
    '"',
    "",
    "--x",
    "u0024",
]
COLUMNS: dict[str, tuple[TypeName, pa.DataType, list[Any]]] = {
    "i": ("integer", pa.int64(), [1, 5, 2**53 + 1, -7, None]),
    "n": ("decimal", pa.decimal128(12, 2), [Decimal("1.50"), Decimal("-2.25"), Decimal("5.00"), None]),
    "d": ("double", pa.float64(), [0.0, -0.0, 0.1, NAN, INF, -INF, 1e300, None]),
    "day": ("date", pa.date32(), [datetime.date(2024, 1, 31), datetime.date(1, 1, 1), None]),
    "at": (
        "timestamp",
        pa.timestamp("us", tz="UTC"),
        [datetime.datetime(2024, 1, 31, 10, 0, 0, 500000, UTC), datetime.datetime(2024, 1, 31, tzinfo=UTC), None],
    ),
    "flag": ("boolean", pa.bool_(), [True, False, None]),
    "s": ("text", pa.string(), [*HARD_TEXT, None]),
}
# what is written in a rule, and what it means as a value
CONSTANTS: dict[str, list[tuple[Constant, Any]]] = {
    "i": [
        (Constant("5", "integer"), 5),
        (Constant("5.0", "decimal"), 5),
        (Constant("4.5", "decimal"), Decimal("4.5")),
        (Constant("5e0", "double"), 5),
        (Constant("1e300", "double"), 10**300),
        (Constant("-1e300", "double"), -(10**300)),
        (Constant("1e-300", "double"), Decimal("1e-300")),
        (Constant("-7", "text"), -7),
        (Constant("9007199254740992", "integer"), 2**53),
        (Constant("9" * 38, "integer"), 10**38 - 1),
        (Constant("-9223372036854775809", "integer"), -(2**63) - 1),
        (Constant("9223372036854775807.5", "decimal"), Decimal("9223372036854775807.5")),
    ],
    "n": [
        (Constant("1.5", "decimal"), Decimal("1.5")),
        (Constant("5", "integer"), 5),
        (Constant("-2.250", "text"), Decimal("-2.25")),
    ],
    "d": [
        (Constant("0.1", "decimal"), 0.1),
        (Constant("-0", "text"), 0.0),
        (Constant("NaN", "text"), NAN),
        (Constant("inf", "text"), INF),
        (Constant("-Infinity", "text"), -INF),
        (Constant("1e300", "double"), 1e300),
        (Constant("7", "integer"), 7.0),
    ],
    "day": [
        (Constant("2024-01-31", "text"), datetime.date(2024, 1, 31)),
        (Constant("2000-02-29", "text"), datetime.date(2000, 2, 29)),
    ],
    "at": [
        (Constant("2024-01-31", "text"), datetime.datetime(2024, 1, 31, tzinfo=UTC)),
        (Constant("2024-01-31T12:00:00.5+02:00", "text"), datetime.datetime(2024, 1, 31, 10, 0, 0, 500000, UTC)),
    ],
    "flag": [(Constant("true", "boolean"), True), (Constant("False", "text"), False)],
    "s": [(Constant(text, "text"), text) for text in HARD_TEXT],
}
ROWS = 17


def table() -> dict[str, list[Any]]:
    return {name: [values[row % len(values)] for row in range(ROWS)] for name, (_, _, values) in COLUMNS.items()}


def arrow() -> pa.Table:
    numbers = {"pos": pa.array(range(ROWS), pa.int64())}
    return pa.table({**numbers, **{name: pa.array(v, COLUMNS[name][1]) for name, v in table().items()}})


def writer(dialect: str, nulls: str) -> Writer:
    return Writer(["pos", *COLUMNS], ["integer", *(t for t, _, _ in COLUMNS.values())], ["things"], dialect, nulls)


def cases() -> Iterator[tuple[DenialConstraint, list[Any]]]:
    """Rules about one row, each with what stands on the right."""
    for name, constants in CONSTANTS.items():
        for constant, value in constants:
            ordered = OPERATORS if name not in ("flag",) else OPERATORS[:2]
            for operator in ordered:
                yield DenialConstraint((Predicate("t", name, operator, None, constant),)), [value]
        for test in ("is", "is not"):
            yield DenialConstraint((Predicate("t", name, test, None, NULL),)), []  # type: ignore[arg-type]


def comparable(value: Any) -> Any:
    """Text by bytes; the oracle compares the rest."""
    return value.encode() if isinstance(value, str) else value


def violating(rule: DenialConstraint, right: list[Any], nulls: str) -> list[int]:
    (p,) = rule.predicates
    found = []
    for row, given in enumerate(table()[p.left]):
        if not right:
            hit = (given is None) == (p.operator == "is")
        else:
            order = outcome(comparable(given), comparable(right[0]), nulls)
            hit = order is not None and satisfies(order, p.operator)
        if hit:
            found.append(row)
    return found


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("things", arrow())
        yield db


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("dialect", ["duckdb", "ansi"])
def test_duckdb_lists_the_rows_by_definition(database: duckdb.DuckDBPyConnection, dialect: str, nulls: str) -> None:
    write, seen = writer(dialect, nulls), 0
    for rule, right in cases():
        if dialect == "ansi" and right == ["\0"]:
            continue  # DuckDB has no way to write this between quotes; other engines have
        condition = write._condition(rule.predicates[0])
        found = [p for (p,) in database.sql(f"SELECT pos FROM things AS t WHERE {condition}").fetchall()]
        assert sorted(found) == violating(rule, right, nulls), rule.rule
        seen += len(found)
    assert seen > 500


def test_queries_about_one_row(database: duckdb.DuckDBPyConnection) -> None:
    write, text = writer("duckdb", "unknown"), HARD_TEXT[6]
    for rule, right in cases():
        if not right or right == [text]:
            assert len(database.sql(write.query(rule, rule.rule)).fetchall()) == len(violating(rule, right, "unknown"))


@pytest.mark.spark
@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_spark_lists_the_rows_by_definition(nulls: str, spark: Any) -> None:
    spark.createDataFrame(arrow()).createOrReplaceTempView("things")
    write = writer("spark", nulls)
    rules = list(cases())
    found: dict[int, list[int]] = {}
    # one query over all rules: each condition as a column, since a Spark query a rule would take minutes
    conditions = ", ".join(f"({write._condition(rule.predicates[0])}) AS c{i}" for i, (rule, _) in enumerate(rules))
    for row in spark.sql(f"SELECT pos, {conditions} FROM things AS t").collect():
        for i in range(len(rules)):
            if row[f"c{i}"]:
                found.setdefault(i, []).append(row["pos"])
    for i, (rule, right) in enumerate(rules):
        assert sorted(found.get(i, [])) == violating(rule, right, nulls), rule.rule


def test_rules_about_pairs_with_constants(database: duckdb.DuckDBPyConnection) -> None:
    rule = read_rule("not(t.i == u.i and t.d > 0 and u.s is not null and t.flag != u.flag)")
    assert not rule.is_symmetric
    query = writer("duckdb", "unknown").query(rule).rstrip().removesuffix(";")
    cells = table()
    expected = 0
    for t, u in itertools.permutations(range(ROWS), 2):
        i, d, s, flag = cells["i"], cells["d"], cells["s"], cells["flag"]
        if None in (i[t], i[u], d[t], s[u], flag[t], flag[u]):
            continue
        expected += i[t] == i[u] and (d[t] > 0 or math.isnan(d[t])) and flag[t] != flag[u]
    assert expected > 5
    assert database.sql(f"SELECT count(*) FROM ({query})").fetchall() == [(expected,)]


def test_a_symmetric_rule_with_constants_lists_each_pair_once() -> None:
    rule = read_rule("not(t.i == u.i and t.flag == true and u.flag == true)")
    assert rule.is_symmetric
    assert 't."row_id" < u."row_id"' in writer("duckdb", "unknown").query(rule)
    assert not read_rule("not(t.i == u.i and t.flag == true)").is_symmetric


@pytest.mark.parametrize(
    ("constant", "column", "dialect", "written"),
    [
        (Constant("5", "text"), "i", "spark", "5"),
        (Constant("1.50", "decimal"), "n", "duckdb", "1.50"),
        (Constant("2e3", "double"), "i", "spark", "2000"),
        (Constant("5.0", "decimal"), "i", "spark", "5"),
        (Constant("5.5", "decimal"), "i", "spark", "CAST('5.5' AS DECIMAL(2, 1))"),
        (Constant("5.5", "decimal"), "i", "duckdb", "5.5"),
        (Constant("1.5", "decimal"), "d", "spark", "1.5E0"),
        (Constant("NaN", "text"), "d", "ansi", "CAST('NaN' AS DOUBLE PRECISION)"),
        (Constant("-inf", "text"), "d", "duckdb", "CAST('-Infinity' AS DOUBLE)"),
        (Constant("2024-01-31", "text"), "day", "ansi", "DATE '2024-01-31'"),
        (Constant("2024-01-31", "text"), "at", "spark", "TIMESTAMP '2024-01-31 00:00:00Z'"),
        (Constant("2024-01-31T10:00+02", "text"), "at", "duckdb", "TIMESTAMPTZ '2024-01-31 08:00:00+00'"),
        (Constant("2024-01-31 10:00:00.250", "text"), "at", "ansi", "TIMESTAMP '2024-01-31 10:00:00.25+00:00'"),
        (Constant("TRUE", "text"), "flag", "spark", "TRUE"),
        (Constant("it's", "text"), "s", "spark", r"'it\'s'"),
        (Constant("it's", "text"), "s", "duckdb", "'it''s'"),
        (Constant("it's", "text"), "s", "ansi", "'it''s'"),
    ],
)
def test_literals(constant: Constant, column: str, dialect: str, written: str) -> None:
    assert literal(constant, COLUMNS[column][0], column, dialect) == written


def test_constants_of_another_type_are_refused() -> None:
    with pytest.raises(RuleError, match="constant beside column 's', whose type is text: '5'"):
        literal(Constant("5", "integer"), "text", "s", "spark")


def test_beside_a_column_without_values_a_constant_has_its_own_type() -> None:
    """Checking lets any constant pass there: no value has told the column's type."""
    query = Writer(["none"], ["text"], ["things"], "duckdb", "unknown").query(read_rule("not(t.none == 5)"))
    assert 't."none" = 5' in query


def test_the_heading_says_how_timestamps_are_meant() -> None:
    assert "set the session's time zone to UTC" in writer("spark", "unknown").heading()
