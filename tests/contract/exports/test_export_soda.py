"""SodaCL checks: read as YAML; their queries are run in DuckDB and compared with our check."""

from __future__ import annotations

from typing import Any

import duckdb
from contracts_for_exports import RULES, checked, contract_of, random_table, reference_table
from ruamel.yaml import YAML

from tuplewise.engine.contract.exports.soda import export

TOLERANCES = {
    "key-1": ", tolerance: {max_violations: 9}",
    "fd-1": ", tolerance: {share: 0.05}",
    "fd-2": ", severity: warning",
    "not_null-2": ", tolerance: {max_violations: 2}",
    "dc-2": ", tolerance: {max_violations: 3}",
    "od-1": ", tolerance: {max_violations: 3}",
}


def checks_of(text: str) -> dict[str, Any]:
    """The checks by the ids of their rules: what is measured, and how."""
    document = YAML(typ="safe").load(text)
    assert list(document) == ["checks for the t"]
    found = {}
    for check in document["checks for the t"]:
        ((measured, described),) = check.items()
        found[described["name"].split(":")[0]] = (measured, described)
    return found


def test_checks_fail_where_the_check_does() -> None:
    rules = {name: rule for name, rule in RULES.items() if name != "values-1"}
    rules["ind-1"] = ("ind", "`the t`.x <= ref.id")
    contract, table = contract_of(rules, **TOLERANCES), random_table(4, 20)
    found = checked(contract, table)
    exported = export(contract, None, "duckdb")
    assert exported.left_out == ("od-1",)
    assert "# od-1 is left out: its tolerance is about the fewest rows" in exported.text
    checks = checks_of(exported.text)
    assert set(checks) == set(rules) - {"od-1"}
    base = duckdb.connect()
    base.register("the t", table)
    base.register("ref", reference_table())
    for name, (measured, described) in checks.items():
        level = "warn" if found[name]["severity"] == "warning" else "fail"
        broken = found[name]["exceptions"] > 0
        if measured == "failed rows":
            rows = base.execute(described["fail query"]).fetchall()
            assert bool(rows) == broken == found[name]["failed"], name
            continue
        query = described.get(f"{measured} query")
        if query is None:
            assert measured == {"key-3": "duplicate_count(d)", "not_null-2": "missing_count(k)"}[name]
            continue
        ((value,),) = base.execute(query).fetchall()
        over = value > int(described[level].removeprefix("when > "))
        assert over == (found[name]["failed"] or (broken and level == "warn")), name
    assert checks["not_null-2"] == ("missing_count(k)", {"name": "not_null-2: k is not null", "fail": "when > 2"})
    assert checks["key-1"][0] == "key_1"
    assert checks["not_null-1"][0] == "failed rows"


def test_no_text_of_a_contract_is_a_template() -> None:
    rules = {"a": RULES["values-1"], "b": ("values", "s in ('{% x')"), "c": ("values", "s in ('{{ x }}')")}
    found = export(contract_of({**rules, "d": RULES["row-1"]}), None, "spark")
    assert found.left_out == ("b", "c")
    assert "\\u0024{x}" in found.text
    assert not any(sign in found.text for sign in ("${", "{{", "{%"))
    assert export(contract_of({"a": rules["a"]}), None, "duckdb").left_out == ("a",)
