"""dbt tests of contracts, run by dbt on DuckDB and compared with our check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contracts_for_exports import RULES, TYPES, contract_of, random_table, reference_table, table_of_rows

import tuplewise as tw
from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.contract.exports.dbt import PROPERTIES, export, files_of
from tuplewise.engine.contract.file import ContractFile

DBT = Path(sys.prefix, "dbt", "bin", "dbt")
ODD = "lines\r\nand {% endraw %} {{ 1 }} it's\n# ==> models/x.yml <==\n"
CLEAN = [(i, text, 1, 2, None, "a", None, True) for i, text in enumerate(["it's", 'q"uo', "back\\slash", "${x}"])]
MORE: dict[str, Any] = {  # rules whose tolerance or severity matters
    "key-4": ("key", "[x]", {"tolerance": {"max_violations": 3}}),
    "key-5": ("key", "[x]", {"tolerance": {"share": 0.75}}),
    "fd-4": ("fd", "`a b` -> s", {"severity": "warning"}),
    "fd-5": ("fd", "`a b` -> x", {"tolerance": {"max_violations": 4}}),
    "od-4": ("od", "x ~ y", {"tolerance": {"share": 0.5}}),
    "values-3": ("values", "x in (1)", {"tolerance": {"max_violations": 5}, "severity": "warning"}),
    "not_null-3": ("not_null", "x is not null", {"tolerance": {"max_violations": 1}}),
    "dc-5": ("dc", "not(t.x == u.x and t.day != u.day)", {"tolerance": {"max_violations": 9}}),
    "dc-6": ("dc", "not(t.x > t.y)", {"tolerance": {"share": 0.3}}),
    "values-4": ("values", "s in ('a', '" + ODD.replace("'", "''") + "')"),
    "values-5": ("values", "s in ('a', 'B', 'é')"),
}


def contract_on(tables: list[str], nulls: str) -> Contract:
    """Each rule for each table; the ids begin with the table."""
    columns = {name: {"type": type_} for name, (type_, _) in TYPES.items()}
    described: dict[str, Any] = {name: {"columns": columns} for name in tables}
    described["ref"] = {"columns": {"id": {"type": "integer"}, "s": {"type": "text"}}}
    rules = []
    for name in tables:
        for rule_id, (kind, rule, *more) in {**RULES, **MORE}.items():
            rules.append({"id": f"{name}.{rule_id}", "table": name, "kind": kind, "rule": rule, **dict(*more)})
        rules.append({"id": f"{name}.ind-1", "kind": "ind", "rule": f"{name}.x <= ref.id"})
        rules.append({"id": f"{name}.ind-2", "kind": "ind", "rule": f"{name}[x, s] <= ref[id, s]"})
    document = {"tuplewise_contract": 1, "nulls": nulls, "tables": described, "rules": rules}
    return ContractFile("rules.yaml", json.dumps(document)).contract


def run_dbt(folder: Path, files: dict[str, str], tables: dict[str, pa.Table]) -> dict[str, str]:
    """Build a project with these files and tables. Returns the status of each test."""
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
        files[f"models/{name}.sql"] = (
            "{{ config(materialized='table') }}\nselect * from read_parquet('" + str(folder / f"{name}.parquet") + "')"
        )
    files["dbt_project.yml"] = "name: shop\nversion: '1.0'\nprofile: shop\n"
    output = {"type": "duckdb", "path": str(folder / "shop.duckdb"), "threads": 1}
    files["profiles.yml"] = json.dumps({"shop": {"target": "dev", "outputs": {"dev": output}}})
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8", newline="")
    command = [DBT, "build", "--project-dir", folder, "--profiles-dir", folder, "--no-use-colors"]
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    results = folder / "target" / "run_results.json"
    assert results.exists(), done.stdout + done.stderr
    assert "Deprecat" not in done.stdout, done.stdout
    found = json.loads(results.read_text())["results"]
    assert not [one for one in found if one["status"] == "error"], done.stdout
    return {one["unique_id"].split(".")[2]: one["status"] for one in found if one["unique_id"].startswith("test.")}


@pytest.mark.skipif(not DBT.exists(), reason=f"dbt is not installed: {DBT}")
def test_dbt_fails_where_the_check_does(tmp_path: Path) -> None:
    tables = {"clean": table_of_rows(CLEAN), "others": random_table(2, 25)}
    contract = contract_on(list(tables), "unknown")
    tables["ref"] = reference_table()
    found = export(contract, None, "duckdb")
    statuses = run_dbt(tmp_path, files_of(found.text), tables)
    assert found.left_out == tuple(f"{name}.od-4" for name in tables if name != "ref")
    expected = {}
    for rule in tw.check_contract(tables, contract).rules:
        within = {"max_violations": rule["exceptions"] <= rule["tolerance"].get("max_violations", 0)}
        if "share" in rule["tolerance"]:
            within = {"share": rule["exceptions"] <= rule["tolerance"]["share"] * rule["of"]}
        broken = "warn" if rule["severity"] == "warning" else "fail"
        expected[rule["id"].replace(".", "_").replace("-", "_")] = "pass" if all(within.values()) else broken
    for left_out in found.left_out:
        del expected[left_out.replace(".", "_").replace("-", "_")]
    assert statuses == expected
    assert {status for name, status in statuses.items() if name.startswith("clean")} == {"pass"}
    assert {"fail", "warn"} == {status for name, status in statuses.items() if name.startswith("others")}


def test_null_as_a_value_takes_singular_tests() -> None:
    contract = contract_of({name: RULES[name] for name in ("key-1", "values-2", "not_null-1")}, "value")
    files = files_of(export(contract, None, "postgres").text)
    assert list(files) == [PROPERTIES, "tests/tuplewise/key_1.sql", "tests/tuplewise/values_2.sql"]
    assert 'OR t."x" IS NULL' in files["tests/tuplewise/values_2.sql"]


def test_no_text_of_a_contract_reaches_jinja() -> None:
    jinja2 = pytest.importorskip("jinja2")
    rules = {"v": ("values", f"`a b` in ('{ODD.replace(chr(39), chr(39) * 2)}')")}
    for dialect in ("duckdb", "spark", "postgres"):
        files = files_of(export(contract_of(rules, v=", english: '{{ 1/0 }} {% raw %}'"), None, dialect).text)
        assert list(files) == [PROPERTIES, "tests/tuplewise/v.sql"]
        template = jinja2.Environment(keep_trailing_newline=True).from_string(files["tests/tuplewise/v.sql"])
        rendered = template.render(ref=lambda name: f"<{name}>", config=lambda **given: "")
        assert "-- v: {{ 1/0 }} {% raw %}" in rendered
        assert "FROM <the t>" in rendered
        literal = ODD.replace("'", "\\'") if dialect == "spark" else ODD.replace("'", "''")
        assert f"NOT IN ('{literal}')" in rendered


def test_rules_of_a_share_count_in_their_query() -> None:
    contract = contract_of({"not_null-1": RULES["not_null-1"]}, **{"not_null-1": ", tolerance: {share: 0.00001}"})
    files = files_of(export(contract, "the t", "duckdb").text)
    assert "counted.exceptions > 0.00001 * counted.spoken_of" in files["tests/tuplewise/not_null_1.sql"]
    assert "not_null" not in files[PROPERTIES]
