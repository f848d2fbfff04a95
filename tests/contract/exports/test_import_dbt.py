"""Generic tests of dbt as rules."""

from __future__ import annotations

import pytest
from contracts_for_exports import RULES, contract_of

from tuplewise.engine.contract.exports.dbt import PROPERTIES, export, files_of
from tuplewise.engine.contract.imports.dbt import read
from tuplewise.engine.errors import InputError

TEXT = """
version: 2
models:
  - name: orders
    data_tests:
      - unique: {column_name: code}
      - dbt_utils.equal_rowcount: {compare_model: ref('x')}
    columns:
      - name: id
        tests: [unique, not_null]
      - name: state
        data_tests:
          - accepted_values:
              arguments: {values: [open, "it's"]}
              config: {severity: warn}
          - accepted_values: {values: [1, "2", 'x y'], quote: false}
          - accepted_values: {values: [1, "'a''b'", 1.5, "true"], quote: false}
      - name: customer
        data_tests:
          - relationships: {to: ref('customers'), field: id, error_if: "> 3"}
          - relationships: {to: "source('shop', 'people')", field: '"e mail"'}
          - not_null: {config: {where: "x = 1"}}
          - not_null: {config: {error_if: ">10", warn_if: "> 2"}}
          - unique: {config: {error_if: "> 10"}}
          - test_name: not_null
            name: mine
            config: {enabled: false}
sources:
  - name: shop
    tables:
      - name: people
        columns: [{name: id, tests: [not_null]}]
"""


def test_tests_become_proposed_rules() -> None:
    contract, notes = read(TEXT, "schema.yml")
    found = [(rule.table, rule.kind, rule.text, rule.severity, rule.tolerance.record) for rule in contract.rules]
    assert found == [
        ("orders", "key", "[code]", "error", {}),
        ("orders", "key", "[id]", "error", {}),
        ("orders", "not_null", "id is not null", "error", {}),
        ("orders", "values", "state in ('open', 'it''s')", "warning", {}),
        ("orders", "values", "state in (1, 'a''b', 1.5, true)", "error", {}),
        ("", "ind", "orders.customer <= customers.id", "error", {"max_violations": 3}),
        ("", "ind", "orders.customer <= people.`e mail`", "error", {}),
        ("orders", "not_null", "customer is not null", "error", {"max_violations": 10}),
        ("people", "not_null", "id is not null", "error", {}),
    ]
    assert {rule.status for rule in contract.rules} == {"proposed"}
    assert notes == [
        "orders: test 'dbt_utils.equal_rowcount' was not read: only unique, not_null, accepted_values, relationships "
        "have a rule of the same meaning",
        "orders.state: test 'accepted_values' was not read: value 'x y' is no literal that is known",
        "orders.customer: test 'not_null' was not read: it has where: 'x = 1'",
        "orders.customer: test 'unique' was not read: it fails where '> 10' values are wrong, a tolerance counts rows",
        "orders.customer: test 'not_null' was not read: it is not enabled",
    ]
    assert contract.tables["people"].column_names == ["id", "e mail"]
    assert contract.tables["customers"].column_names == ["id"]


def test_what_was_exported_comes_back() -> None:
    rules = {name: RULES[name] for name in ("key-1", "key-3", "not_null-1", "values-2")}
    rules |= {"values-3": ("values", "s in ('a', 'é')"), "ind-1": ("ind", "`the t`.x <= ref.id")}
    tolerances = {"key-1": ", tolerance: {max_violations: 2}", "values-3": ", tolerance: {max_violations: 1}"}
    before = contract_of(rules, **tolerances, **{"ind-1": ", severity: warning"})
    contract, notes = read(files_of(export(before, None, "postgres").text)[PROPERTIES], "tuplewise.yml")
    assert not notes
    kept = {(rule.identity, rule.severity, rule.tolerance.max_violations) for rule in before.rules}
    assert {(rule.identity, rule.severity, rule.tolerance.max_violations) for rule in contract.rules} == kept


def test_other_files_are_refused() -> None:
    with pytest.raises(InputError, match=r"properties of dbt are no YAML: x\.yml"):
        read("a: [", "x.yml")
    with pytest.raises(InputError, match=r"properties of dbt 'x\.yml' hold no mapping"):
        read("- 1", "x.yml")
    assert read("version: 2", "x.yml")[0].rules == ()
