"""SQL that defines tables as rules."""

from __future__ import annotations

import sys

import pytest
from contracts_for_exports import RULES, contract_of

from tuplewise.engine.contract.exports.sql import export
from tuplewise.engine.contract.imports.sql_ddl import read
from tuplewise.engine.errors import InputError

pytest.importorskip("sqlglot")

TEXT = """
CREATE TABLE shop.orders (
  id bigint PRIMARY KEY, code varchar(3) NOT NULL UNIQUE, n int DEFAULT 5 CHECK (n > 0), at timestamp,
  price decimal(10, 2), customer int REFERENCES customers (id), whole numeric(9),
  CONSTRAINT fk FOREIGN KEY (code, n) REFERENCES other (x, "y z") ON DELETE CASCADE,
  UNIQUE (code, n),
  CHECK (code IN ('x', 'it''s') AND n BETWEEN -1 AND 5 AND (price >= 0.50 AND 9 >= price)),
  CHECK (upper(code) = code),
  CHECK (NOT (n IS NULL AND price < 2)),
  CHECK (code IS NOT NULL AND n <> whole),
  CHECK (n NOT IN (1, 2)), CHECK (n NOT BETWEEN 1 AND 2), CHECK (n = 1 OR n = 2)
);
CREATE UNIQUE INDEX i ON orders (at, n);
CREATE INDEX j ON orders (at);
CREATE UNIQUE INDEX k ON orders (lower(code));
ALTER TABLE orders ALTER COLUMN price SET NOT NULL, ADD CONSTRAINT u UNIQUE NULLS NOT DISTINCT (price);
CREATE VIEW v AS SELECT 1;
"""


NO_COMPARISON = "it is no comparison of columns and constants"
OTHERS = ("NOT n IN (1, 2)", "NOT n BETWEEN 1 AND 2", "n = 1 OR n = 2")


def test_constraints_become_proposed_rules() -> None:
    contract, notes = read(TEXT, "schema.sql", "postgres")
    assert [(rule.table, rule.kind, rule.text) for rule in contract.rules] == [
        ("orders", "not_null", "id is not null"),
        ("orders", "key", "[id]"),
        ("orders", "not_null", "code is not null"),
        ("orders", "key", "[code]"),
        ("orders", "dc", "not(t.n <= 0)"),
        ("", "ind", "orders.customer <= customers.id"),
        ("", "ind", "orders[code, n] <= other[x, `y z`]"),
        ("orders", "key", "[code, n]"),
        ("orders", "values", "code in ('x', 'it''s')"),
        ("orders", "range", "n between -1 and 5"),
        ("orders", "range", "price between 0.5 and 9"),
        ("orders", "dc", "not(t.n is null and t.price < 2)"),
        ("orders", "row", "n != whole"),
        ("orders", "key", "[at, n]"),
        ("orders", "not_null", "price is not null"),
    ]
    assert {rule.status for rule in contract.rules} == {"proposed"}
    assert [(one.name, one.type) for one in contract.tables["orders"].columns or ()] == [
        ("id", "integer"), ("code", "text"), ("n", "integer"), ("at", "timestamp"), ("price", "decimal"),
        ("customer", "integer"), ("whole", "integer"),
    ]  # fmt: skip
    assert contract.tables["other"].column_names == ["x", "y z"]
    assert notes == [
        f"table 'orders': CHECK (UPPER(code) = code) was not read: {NO_COMPARISON}",
        *(f"table 'orders': CHECK ({one}) was not read: {NO_COMPARISON}" for one in OTHERS),
        "CREATE UNIQUE INDEX k ON orders(LOWER(code)) was not read",
        "table 'orders': UNIQUE NULLS NOT DISTINCT (price) was not read: nulls are equal in it, in the contract they "
        "are unknown",
        "CREATE VIEW v AS SELECT 1 was not read",
    ]


def test_what_was_exported_comes_back() -> None:
    names = ("key-1", "key-2", "row-1", "row-2", "values-1", "values-2", "range-1", "range-2", "range-3")
    rules = {name: RULES[name] for name in (*names, "not_null-1", "not_null-2", "dc-3")}
    before = contract_of(rules)
    for dialect in ("postgres", "ansi"):
        contract, notes = read(export(before, None, dialect).text, "rules.sql", dialect)
        assert not notes
        assert {rule.identity for rule in contract.rules} >= {r.identity for r in before.rules if r.kind != "dc"}
        assert {frozenset(map(str, r.form.predicates)) for r in contract.rules if r.kind == "dc"} == {
            frozenset({"t.s is null", "t.x > 1"})
        }


def test_other_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"SQL can't be read: x\.sql"):
        read("CREATE TABLE (", "x.sql")
    with pytest.raises(InputError, match="dialect: 'oracle'"):
        read("", "x.sql", "oracle")
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(InputError, match=r"not installed: 'sqlglot'.*tuplewise\[sql\]"):
        read("", "x.sql")
