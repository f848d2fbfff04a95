"""The check of a contract, by definition: every kind of rule, with nulls left out and with nulls as values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import contract as oracle

import tuplewise as tw
from tuplewise.engine.cli.main import run
from tuplewise.engine.contract.contract import Contract, ContractRule, ContractTable, Severity, Tolerance
from tuplewise.engine.contract.forms import Kind, read_form, read_inclusion
from tuplewise.engine.contract.result import ContractResult
from tuplewise.engine.errors import InputError, RuleError

NAMES = ("a", "b", "c")
VALUES = st.one_of(st.none(), st.integers(0, 3))
TABLES = st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=7)


def frame(table: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*table, strict=True)
    return pa.table({name: pa.array(list(own), pa.int64()) for name, own in zip(NAMES, columns, strict=True)})


def contract_of(rules: dict[str, tuple[Kind, str]], nulls: Any = "unknown", **more: Any) -> Contract:
    tables = {"t": ContractTable("t")}
    kept = [ContractRule(name, "t", kind, text, read_form(kind, text), **more) for name, (kind, text) in rules.items()]
    return Contract("rules.yaml", nulls, tables, tuple(kept))


def checked(table: Any, contract: Contract, **options: Any) -> ContractResult:
    return tw.check_contract({"t": table}, contract, device="cpu", **options)


def counts(found: ContractResult) -> dict[str, int]:
    return {rule["id"]: rule["exceptions"] for rule in found.rules}


RULES: dict[str, tuple[Kind, str]] = {
    "key": ("key", "[a]"),
    "key-2": ("key", "[a, b]"),
    "fd": ("fd", "a -> b"),
    "fd-2": ("fd", "a, b -> c"),
    "constant": ("fd", "[] -> c"),
    "od": ("od", "a ~ b"),
    "od-desc": ("od", "[c]: a ~ b desc"),
    "row": ("row", "a <= b"),
    "row-eq": ("row", "a == c"),
    "values": ("values", "b in (0, 2)"),
    "range": ("range", "c between 1 and 2"),
    "low": ("range", "c >= 1"),
    "dc": ("dc", "not(t.a == u.a and t.b < u.b and t.c > u.c)"),
    "dc-row": ("dc", "not(t.a == t.b and t.c > 1)"),
}


def by_definition(table: list[tuple[Any, ...]]) -> dict[str, int]:
    return {
        "key": oracle.key(table, [0]),
        "key-2": oracle.key(table, [0, 1]),
        "fd": oracle.fd(table, [0], 1),
        "fd-2": oracle.fd(table, [0, 1], 2),
        "constant": oracle.fd(table, [], 2),
        "od": oracle.od(table, [], 0, 1, True),
        "od-desc": oracle.od(table, [2], 0, 1, False),
        "row": oracle.rows(table, [0, 1], lambda r: r[0] > r[1]),
        "row-eq": oracle.rows(table, [0, 2], lambda r: r[0] != r[2]),
        "values": oracle.rows(table, [1], lambda r: r[1] not in (0, 2)),
        "range": oracle.rows(table, [2], lambda r: not 1 <= r[2] <= 2),
        "low": oracle.rows(table, [2], lambda r: r[2] < 1),
        "dc": oracle.pairs(table, [0, 1, 2], lambda t, u: t[0] == u[0] and t[1] < u[1] and t[2] > u[2]),
        "dc-row": oracle.rows(table, [0, 1, 2], lambda r: r[0] == r[1] and r[2] > 1),
    }


@settings(deadline=None, max_examples=25)
@given(TABLES)
def test_every_kind_with_nulls_left_out(table: list[tuple[Any, ...]]) -> None:
    assert counts(checked(frame(table), contract_of(RULES))) == by_definition(table)


@settings(deadline=None, max_examples=25)
@given(TABLES)
def test_every_kind_with_nulls_as_values(table: list[tuple[Any, ...]]) -> None:
    as_values = [tuple(-1 if value is None else value for value in row) for row in table]
    assert counts(checked(frame(table), contract_of(RULES, "value"))) == by_definition(as_values)


@settings(deadline=None, max_examples=20)
@given(TABLES, st.sampled_from(["unknown", "value"]))
def test_columns_without_nulls(table: list[tuple[Any, ...]], nulls: Any) -> None:
    found = checked(frame(table), contract_of({"full": ("not_null", "a is not null")}, nulls))
    assert counts(found) == {"full": sum(row[0] is None for row in table)}


@settings(deadline=None, max_examples=20)
@given(TABLES, TABLES)
def test_inclusions(child: list[tuple[Any, ...]], parent: list[tuple[Any, ...]]) -> None:
    text = "child.a <= parent.b"
    form = read_inclusion(text, {"child": NAMES, "parent": NAMES})
    tables = {"child": ContractTable("child"), "parent": ContractTable("parent")}
    contract = Contract("rules.yaml", "unknown", tables, (ContractRule("in", "", "ind", text, form),))
    found = tw.check_contract({"child": frame(child), "parent": frame(parent)}, contract)
    assert counts(found) == {"in": oracle.missing(child, 0, parent, 1)}


@settings(deadline=None, max_examples=25)
@given(TABLES)
def test_examples_are_rows_that_break_the_rule(table: list[tuple[Any, ...]]) -> None:
    """Without the listed rows of a key, FD or rule of a row it holds; of others there are some where it is broken."""
    found = checked(frame(table), contract_of(RULES), examples=100)
    for rule in found.rules:
        assert bool(rule["examples"]) == (rule["exceptions"] > 0)
        if rule["kind"] in ("key", "fd", "row", "values", "range"):
            named = {example["rows"][0] for example in rule["examples"]}
            assert len(named) == rule["exceptions"] or rule["id"] == "range"
            kept = [row for number, row in enumerate(table) if number not in named]
            if kept:
                assert by_definition(kept)[rule["id"]] == 0


PEOPLE = pd.DataFrame({"zip": [1, 1, 1, 2], "city": ["A", "A", "B", "C"], "age": [10, 20, 30, 200]})


@pytest.mark.parametrize(
    ("tolerance", "within"),
    [
        (Tolerance(), False),
        (Tolerance(max_violations=1), True),
        (Tolerance(share=0.25), True),
        (Tolerance(share=0.2499), False),
        (Tolerance(max_violations=0), False),
    ],
)
@pytest.mark.parametrize("severity", ["error", "warning"])
def test_tolerance_and_severity(tolerance: Tolerance, within: bool, severity: Severity) -> None:
    contract = contract_of({"city": ("fd", "zip -> city")}, tolerance=tolerance, severity=severity)
    found = checked(PEOPLE, contract)
    assert (found.rules[0]["exceptions"], found.rules[0]["of"], found.holds) == (1, 4, False)
    assert found.failed is (not within and severity == "error")


CONTRACT = """
tuplewise_contract: 1
tables:
  people:
    path: people.csv
    columns:
      zip: {type: integer}
      city: {type: text, nulls: 0.0}
      age: {type: double}
rules:
  - {id: city, table: people, kind: fd, rule: zip -> city, note: ask Ann, owner: Bob}
  - {id: age, kind: range, rule: age between 0 and 120, severity: warning}
  - {id: key, kind: key, rule: [zip, city, age]}
  - {id: not-yet, kind: key, rule: [zip], status: proposed}
  - {id: never, kind: key, rule: [city], status: rejected}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(CONTRACT)
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def test_only_accepted_rules_are_checked(files: Path) -> None:
    found = tw.check(files / "people.csv", contract=files / "rules.yaml")
    assert [(rule["id"], rule["failed"]) for rule in found.rules] == [("city", True), ("age", False), ("key", False)]
    assert found.failed
    assert tw.check(PEOPLE.iloc[:2], contract=files / "rules.yaml").failed is False


def test_without_tables_the_paths_of_the_contract_are_read(files: Path) -> None:
    assert counts(tw.check_contract(None, files / "rules.yaml")) == {"city": 1, "age": 1, "key": 0}


def test_columns_that_go_come_or_change(files: Path) -> None:
    odd = PEOPLE.drop(columns="city").assign(age=["x", "y", "z", "w"], more=1)
    found = tw.check_contract(odd, files / "rules.yaml", fail_on_new_columns=True)
    told = {column["name"]: (column["status"], column["failed"]) for column in found.columns}
    assert told == {
        "zip": ("ok", False), "city": ("missing", True), "age": ("other type", True), "more": ("new", True),
    }  # fmt: skip


def test_a_rule_on_a_missing_column_fails(files: Path) -> None:
    found = tw.check_contract(PEOPLE.drop(columns="city"), files / "rules.yaml")
    rule = found.rules[0]
    assert (rule["holds"], rule["failed"], rule["reason"]) == (None, True, "there is no column 'city'")
    new = tw.check_contract(PEOPLE.assign(more=1), files / "rules.yaml")
    assert [column["failed"] for column in new.columns] == [False] * 4


def test_a_rule_whose_column_became_text_is_violated(files: Path) -> None:
    found = tw.check_contract(PEOPLE.assign(age=["x", "y", "z", "w"]), files / "rules.yaml")
    rule = found.rules[1]
    assert (rule["holds"], rule["exceptions"]) == (None, None)
    assert "column 'age', whose type is text" in rule["reason"]


def test_a_sample_is_told_of(files: Path) -> None:
    many = pd.concat([PEOPLE] * 50, ignore_index=True)
    found = tw.check_contract(many, files / "rules.yaml", sample=20)
    assert any("20 of 200 rows were checked" in note for note in found.notes)
    assert {rule["of"] for rule in found.rules} == {20}
    again = tw.check_contract(many, files / "rules.yaml", sample=20)
    assert counts(found) == counts(again)


def test_limits_leave_rules_undecided(files: Path) -> None:
    found = tw.check_contract(PEOPLE, files / "rules.yaml", time_limit=1e-9)
    assert found.partial
    assert [rule["exceptions"] for rule in found.rules if rule["kind"] != "range"] == [None, None]
    assert not found.failed


def test_forms(files: Path) -> None:
    found = tw.check_contract(files / "people.csv", files / "rules.yaml")
    document = json.loads(found.to_json())
    assert document["command"] == "check"
    assert document["result"]["failed"] == 1
    assert set(document["result"]["rules"][0]) >= {
        "id", "kind", "rule", "holds", "failed", "exceptions", "tolerance", "examples",
    }  # fmt: skip
    suites = ElementTree.fromstring(found.to_junit())
    assert [len(suite.findall("testcase/failure")) for suite in suites] == [1]
    assert [case.get("name") for case in suites.iter("testcase") if case.find("skipped") is not None] == ["age"]
    annotations = "".join(found.pieces("github"))
    assert annotations.count("::error ") == 1
    assert annotations.count("::warning ") == 1
    assert "city" in found.to_text()
    assert "zip -&gt; city" in found.to_html()
    assert found.to_pandas()["id"].tolist() == ["city", "age", "key"]
    assert found.to_csv().startswith("id,table,kind,rule")


def test_names_of_tables(files: Path) -> None:
    assert tw.check_contract({"other": PEOPLE}, files / "rules.yaml").rules
    two = CONTRACT.replace("table: people, ", "").replace("kind:", "table: people, kind:")
    (files / "two.yaml").write_text(two.replace("tables:", "tables:\n  towns:"))
    with pytest.raises(InputError, match="'other'"):
        tw.check_contract({"other": PEOPLE}, files / "two.yaml")
    found = tw.check_contract({"people": PEOPLE}, files / "two.yaml")
    assert len(found.rules) == 3


def test_tables_are_read_with_the_types_of_the_contract(tmp_path: Path) -> None:
    """Codes of digits stay text; what can't be of the type is read as it is, and told of."""
    (tmp_path / "rules.yaml").write_text(
        "tuplewise_contract: 1\ntables:\n  t:\n"
        "    columns: {code: {type: text}, day: {type: date}, price: {type: decimal}}\n"
        "rules:\n- {id: codes, kind: values, rule: \"code in ('12', '13')\"}\n"
        "- {id: days, kind: range, rule: day >= '2024-01-01'}\n"
    )
    columns = {"code": ["12", "13"], "day": ["2024-01-05", "2024-02-01"], "price": [1.5, 2.25], "tags": [[1], []]}
    good = pd.DataFrame(columns)
    good.drop(columns="tags").to_csv(tmp_path / "t.csv", index=False)
    for table in (tmp_path / "t.csv", good):
        found = tw.check_contract(table, tmp_path / "rules.yaml")
        assert not found.failed, found.failures()
        assert found.holds
    found = tw.check_contract(good.assign(day=["2024-01-05", "soon"]), tmp_path / "rules.yaml")
    assert {column["name"]: column["status"] for column in found.columns}["day"] == "other type"


@pytest.mark.parametrize(
    ("kind", "rule"), [("range", "a between 8 and 1"), ("row", "a >= 4"), ("row", "a == 'x'"), ("range", "a > 3")]
)
def test_rules_that_cannot_be_meant_are_refused(kind: Kind, rule: str) -> None:
    with pytest.raises(RuleError):
        read_form(kind, rule, ["a", "b"])


def test_nothing_that_is_read_is_written_over(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, contract = str(files / "people.csv"), str(files / "rules.yaml")
    before = {path: path.read_bytes() for path in files.iterdir()}
    for more in (["-o", contract], ["-o", table], ["--repairs", table], ["-o", "x.csv", "--repairs", "x.csv"]):
        assert run(["check", table, "--contract", contract, *more]) == 2
        assert "name another file" in capsys.readouterr().err
    for command in (["export", contract, "--to", "sql"], ["review", contract]):
        assert run([*command, "-o", contract]) == 2
    assert run(["profile", table, "-o", table]) == 2
    assert {path: path.read_bytes() for path in files.iterdir()} == before
