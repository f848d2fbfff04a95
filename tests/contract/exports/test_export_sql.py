"""SQL of contracts: run in DuckDB and compared with our check, parsed in the other dialects."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from contracts_for_exports import RULES, checked, contract_of, random_table, reference_table, table_of_rows

from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.contract.exports.queries import CannotSay, RuleQueries
from tuplewise.engine.contract.exports.sql import export
from tuplewise.engine.contract.file import ContractFile
from tuplewise.engine.errors import InputError

IND = {"ind-1": ("ind", "`the t`.x <= ref.id"), "ind-2": ("ind", "`the t`[x, s] <= ref[id, s]")}
ALL = {**RULES, **IND}
CLEAN = (1, "it's", 1, 2, 0.0, "a", None, True)


def database(table: pa.Table) -> Any:
    """A database with the table and the one that it refers to."""
    found = duckdb.connect()
    found.register("given", table)
    found.register("given_ref", reference_table())
    found.execute('CREATE TABLE "the t" AS SELECT * FROM given')
    found.execute("CREATE TABLE ref AS SELECT * FROM given_ref")
    return found


def rows_of(database: Any, contract: Contract, rule_id: str) -> list[tuple[Any, ...]]:
    rule = next(rule for rule in contract.rules if rule.id == rule_id)
    return list(database.execute(RuleQueries(contract, "duckdb").rows(rule)).fetchall())


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("seed", range(6))
def test_queries_list_what_the_check_lists(seed: int, nulls: str) -> None:
    table, contract = random_table(seed), contract_of(ALL, nulls)
    found, base = checked(contract, table), database(table)
    queries = RuleQueries(contract, "duckdb")
    for rule in contract.rules:
        ours, rows = found[rule.id], rows_of(base, contract, rule.id)
        places = [tuple(example["rows"]) for example in ours["examples"]]
        if rule.kind == "ind":
            assert len(rows) == ours["exceptions"], rule.id
        elif rule.kind == "dc" and len(places[:1]) and len(places[0]) == 2:
            assert sorted(row[:2] for row in rows) == sorted(places), rule.id
        else:  # the first row of an example is the one that breaks the rule
            assert sorted({row[0] for row in rows}) == sorted({place[0] for place in places}), rule.id
            assert len(rows) == len({row[0] for row in rows}), rule.id
        if rule.kind != "od":
            assert base.execute(queries.exceptions(rule)).fetchall() == [(ours["exceptions"],)], rule.id
        assert base.execute(queries.spoken_of(rule)).fetchall() == [(ours["of"],)], rule.id


def test_a_tolerance_is_as_the_check_has_it() -> None:
    table = random_table(1, 40)
    rules = {name: rule for name, rule in ALL.items() if not name.startswith("od")}
    exact = checked(contract_of(rules), table)
    base = database(table)
    ways = {
        "as many": lambda broken, of: f"max_violations: {broken}",
        "one less": lambda broken, of: f"max_violations: {max(broken - 1, 0)}",
        "that share": lambda broken, of: f"share: {broken / of:.12f}",
        "a lower share": lambda broken, of: f"share: {max(broken / of - 1e-9, 0):.12f}",
    }
    for way, written in ways.items():
        tolerances = {name: f", tolerance: {{{written(one['exceptions'], one['of'])}}}" for name, one in exact.items()}
        contract = contract_of(rules, **tolerances)
        found = checked(contract, table)
        for rule in contract.rules:
            rows = base.execute(RuleQueries(contract, "duckdb").beyond(rule)).fetchall()
            assert len(rows) == found[rule.id]["failed"], (rule.id, way)
            if way in ("as many", "one less"):
                assert len(rows) == (way == "one less" and exact[rule.id]["exceptions"] > 0), rule.id


def test_an_order_rule_with_a_tolerance_has_no_count() -> None:
    contract = contract_of({"od-1": RULES["od-1"]}, **{"od-1": ", tolerance: {max_violations: 1}"})
    with pytest.raises(CannotSay, match="fewest rows to remove"):
        RuleQueries(contract, "duckdb").beyond(contract.rules[0])


BREAKING = {  # a row beside a clean one that breaks the rule
    "key-1": (1, None, 1, 2, 0.5, "a", None, True),
    "key-2": (2, "it's", 1, 2, 0.5, "a", None, True),
    "key-3": (2, "x", 1, 2, 0.0, "a", None, True),
    "not_null-1": (2, None, 1, 2, 0.5, "a", None, True),
    "not_null-2": (None, "x", 1, 2, 0.5, "a", None, True),
}


def statements(text: str) -> list[str]:
    """The ALTER TABLE statements of a script."""
    return [line for line in text.splitlines() if line.startswith("ALTER TABLE")]


@pytest.mark.parametrize("rule_id", BREAKING)
def test_duckdb_takes_constraints_on_clean_rows_and_refuses_others(rule_id: str) -> None:
    text = export(contract_of({rule_id: RULES[rule_id]}), None, "duckdb").text
    (statement,) = statements(text)
    clean = database(table_of_rows([CLEAN, (None, None, *CLEAN[2:]) if rule_id[0] == "k" else CLEAN]))
    if rule_id == "key-3":
        clean = database(table_of_rows([CLEAN, (*CLEAN[:4], None, *CLEAN[5:])]))
    clean.execute(statement)
    with pytest.raises(duckdb.Error):
        clean.execute('INSERT INTO "the t" VALUES (9, ?, ?, ?, ?, ?, ?, ?, ?)', BREAKING[rule_id])
    with pytest.raises(duckdb.Error):
        database(table_of_rows([CLEAN, BREAKING[rule_id]])).execute(statement)


def test_all_constraints_of_a_contract_go_together() -> None:
    found = export(contract_of(ALL), None, "duckdb")
    base = database(table_of_rows([CLEAN]))
    for statement in duckdb.extract_statements(found.text):
        assert base.execute(statement).fetchall() == []
    assert found.suffix == ".sql"
    assert found.left_out == ()
    assert 'ADD CONSTRAINT "key-1" PRIMARY KEY ("k")' in found.text
    assert len(duckdb.extract_statements(found.text)) == len(ALL)


def test_created_tables_keep_what_checks_of_postgres_say() -> None:
    """DuckDB reads the CHECK constraints of the other dialects in CREATE TABLE."""
    for nulls in ("unknown", "value"):
        contract = contract_of(RULES, nulls)
        lines = statements(export(contract, None, "ansi").text)
        checks = {line.split('"')[3]: line.split(" CHECK ", 1)[1][:-1] for line in lines if " CHECK " in line}
        assert set(checks) >= {"row-1", "values-1", "range-1", "dc-3", "dc-4"}
        table = random_table(5, 30)
        base = database(table)
        for rule_id, check in checks.items():
            listed = {row[0] for row in rows_of(base, contract, rule_id)}
            broken = base.execute(f'SELECT pos FROM "the t" WHERE NOT coalesce({check}, TRUE)').fetchall()
            assert {row[0] for row in broken} == listed, rule_id


def test_only_strict_errors_become_constraints() -> None:
    contract = contract_of(
        {name: RULES[name] for name in ("key-1", "key-3", "not_null-2", "row-1")},
        **{"key-1": ", tolerance: {share: 0.1}", "not_null-2": ", severity: warning"},
        **{"row-1": ", tolerance: {share: 0}"},
    )
    text = export(contract, None, "postgres").text
    assert [line.split("ADD CONSTRAINT ")[1].split()[0] for line in statements(text)] == ['"key-3"', '"row-1"']
    assert "-- key-1: [k] (tolerance: 10 %)\nSELECT" in text
    assert "-- not_null-2: k is not null (warning)\nSELECT" in text


def test_references_need_a_key() -> None:
    text = """
tuplewise_contract: 1
tables: {child: {columns: {a: {type: integer}}}, parent: {columns: {x: {type: integer}}}}
rules:
  - {id: in, kind: ind, rule: child.a <= parent.x}
  - {id: key, table: parent, kind: key, rule: [x]}
"""
    contract = ContractFile("rules.yaml", text).contract
    reference = 'ALTER TABLE "child" ADD CONSTRAINT "in" FOREIGN KEY ("a") REFERENCES "parent" ("x");'
    assert statements(export(contract, None, "postgres").text)[-1] == reference
    assert not statements(export(contract, "child", "postgres").text)
    assert "FOREIGN KEY (" not in export(contract, None, "duckdb").text
    assert len(statements(export(contract, "parent", "ansi").text)) == 1
    with pytest.raises(InputError, match=r"no table of this name in contract 'rules\.yaml': 'chid'"):
        export(contract, "chid", "ansi")
    with pytest.raises(InputError, match="dialect: 'oracle'"):
        export(contract, None, "oracle")


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("dialect", ["spark", "postgres", "ansi"])
def test_other_dialects_parse(dialect: str, nulls: str) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    found = export(contract_of(ALL, nulls), None, dialect)
    trees = sqlglot.parse(found.text, dialect={"spark": "databricks"}.get(dialect, "postgres"))
    kinds = Counter(type(tree).__name__ for tree in trees if tree is not None)
    assert sum(kinds.values()) == len(ALL)
    assert set(kinds) == {"Alter", "Select"}


HOSTILE = "x'); DROP TABLE \"the t\"; --"


def test_names_and_values_stay_names_and_values() -> None:
    name, table = 'a"b`c\nd', 't"; DROP TABLE x; --'
    columns = f"{{? {_yaml(name)} : {{type: text}}}}"
    rule = f"{_rule_name(name)} in ('{HOSTILE.replace(chr(39), chr(39) * 2)}', 'back\\slash''')"
    text = (
        f"tuplewise_contract: 1\ntables: {{? {_yaml(table)} : {{columns: {columns}}}}}\nrules:\n"
        f"  - {{id: v, kind: values, english: {_yaml('one' + chr(10) + 'DROP TABLE y;')}, rule: {_yaml(rule)}}}\n"
    )
    contract = ContractFile("rules.yaml", text).contract
    base = duckdb.connect()
    base.execute('CREATE TABLE "t""; DROP TABLE x; --" ("a""b`c\nd" VARCHAR)')
    values = [HOSTILE, "back\\slash'", "other"]
    base.executemany('INSERT INTO "t""; DROP TABLE x; --" VALUES (?)', [[value] for value in values])
    found = export(contract, None, "duckdb").text
    (statement,) = duckdb.extract_statements(found)
    assert base.execute(statement).fetchall() == [("other",)]
    sqlglot = pytest.importorskip("sqlglot")
    for dialect in ("spark", "postgres"):
        trees = sqlglot.parse(export(contract, None, dialect).text, dialect=dialect)
        assert [type(tree).__name__ for tree in trees if tree is not None] == ["Alter"]


def _yaml(text: str) -> str:
    import json

    return json.dumps(text)


def _rule_name(name: str) -> str:
    from tuplewise.engine.table.schema import quote_name

    return quote_name(name)


def test_postgres_has_no_character_zero() -> None:
    text = 'tuplewise_contract: 1\ntables: {t: }\nrules: [{id: v, kind: values, rule: "a in (\'b\\0\', \'c\')"}]'
    contract = ContractFile("rules.yaml", text).contract
    found = export(contract, None, "postgres")
    assert found.left_out == ("v",)
    assert found.text.splitlines()[-1] == "-- v is left out: PostgreSQL has no character 0"
    base = duckdb.connect()
    base.execute("CREATE TABLE t AS SELECT unnest(['b' || chr(0), 'c', 'b']) AS a")
    assert base.execute(export(contract, None, "duckdb").text).fetchall() == [("b",)]
