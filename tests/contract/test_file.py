"""The file of a contract: comments stay, faults have lines, proposals come once."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.cli.main import run
from tuplewise.engine.contract.contract import Tolerance
from tuplewise.engine.contract.file import ContractFile, schema
from tuplewise.engine.errors import InputError, RuleError

KEPT = """\
# Ours
tuplewise_contract: 1   # the format
tables:
  people:
    columns:
      zip: {type: integer}      # five digits
      city:
      'first name': {type: text}
rules:
  # the towns
  - id: city
    kind: fd
    rule: zip -> city   # see ticket 7
    status: proposed
    tolerance: {share: 0.01}

  - {id: name, table: people, kind: not_null, rule: first name is not null}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "rules.yaml"
    found.write_text(KEPT)
    return found


def test_what_a_file_says(path: Path) -> None:
    contract = ContractFile(path).contract
    assert [(r.id, r.table, r.status, str(r.form)) for r in contract.rules] == [
        ("city", "people", "proposed", "zip -> city"),
        ("name", "people", "accepted", "`first name` is not null"),
    ]
    assert contract.rules[0].tolerance == Tolerance(share=0.01)
    assert [rule.id for rule in contract.accepted()] == ["name"]


def test_a_decision_changes_one_word(path: Path) -> None:
    kept = ContractFile(path)
    assert kept.text() == KEPT
    kept.set_status("city", "rejected")
    kept.save()
    assert path.read_text() == KEPT.replace("proposed", "rejected")
    kept.set_status("name", "rejected")
    assert kept.text() == KEPT.replace("proposed", "rejected").replace("{id: name", "{status: rejected, id: name")
    with pytest.raises(InputError, match="Did you mean 'city'"):
        kept.set_status("citi", "accepted")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("status: proposed", "status: maybe", "line 14, rules[0].status: status: 'maybe'; allowed: proposed, accepted"),
        ("kind: fd", "kind: fdd", "line 12, rules[0].kind: kind: 'fdd'; allowed: key, fd"),
        ("    rule: zip", "    rul: zip", "rule is missing"),
        ("    rule: zip", "    rul: zip", "there is no such entry: 'rul'. Did you mean 'rule'?"),
        ("share: 0.01", "share: 1.5", "line 15"),
        ("share: 0.01", "share: 0.01, max_violations: 3", "line 15"),
        ("id: name", "id: city", "line 17, rules[1]: id 'city' is that of the rule in line 11, too"),
        ("tuplewise_contract: 1", "tuplewise_contract: 2", "line 2, tuplewise_contract: tuplewise_contract: 2; all"),
        ("tuplewise_contract: 1", "other: 1", "tuplewise_contract is missing"),
        ("{type: integer}", "{type: int}", "line 6, tables.people.columns.zip.type: type: 'int'"),
        ("rules:", "rules: 5\nx:", "allowed: a list"),
        ("  - id: city", "  - id: [city", "no YAML"),
        ("    kind: fd", "    kind: fd\n    kind: fd", "duplicate key"),
    ],
)
def test_faults_have_lines(path: Path, before: str, after: str, said: str) -> None:
    path.write_text(KEPT.replace(before, after, 1))
    with pytest.raises(InputError) as error:
        ContractFile(path)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("zip -> city", "zipp -> city", "line 11, rules[0]: rule 'city': rule of the kind fd, position 1: no column"),
        ("table: people", "table: poeple", "there is no table of the name: 'poeple'. Did you mean 'people'?"),
        ("kind: not_null", "kind: range", "rule 'name'"),
    ],
)
def test_rules_that_cannot_be_read_have_lines(path: Path, before: str, after: str, said: str) -> None:
    path.write_text(KEPT.replace(before, after, 1))
    with pytest.raises(RuleError) as error:
        print(ContractFile(path).contract)
    assert said in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "5", "\x00", "a: b: c", "{"])
def test_what_is_no_contract_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(InputError, match="contract"):
        ContractFile(tmp_path / "x.yaml")
    with pytest.raises(InputError, match=r"there is no contract: .*profile with contract=FILE writes one"):
        ContractFile(tmp_path / "none.yaml")


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


TOWNS = pd.DataFrame([(i, 100 + i % 40, f"City {i % 20}", None if i % 9 else i) for i in range(400)])
TOWNS.columns = pd.Index(["no", "zip", "city", "fee"])


def propose(frame: pd.DataFrame, folder: Path, *more: str) -> str:
    frame.to_csv(folder / "towns.csv", index=False)
    args = ["profile", str(folder / "towns.csv"), "--contract", str(folder / "rules.yaml"), *more]
    assert run([*args, "-o", str(folder / "p.json")]) == 0
    notes: list[str] = json.loads((folder / "p.json").read_text())["notes"]
    return next(note for note in notes if "proposed" in note)


def test_a_profile_proposes_rules_once(tmp_path: Path) -> None:
    first = propose(TOWNS, tmp_path)
    kept = ContractFile(tmp_path / "rules.yaml").contract
    assert first.startswith(f"{len(kept.rules)} rules proposed")
    texts = [rule.text for rule in kept.rules]
    assert {"zip -> city", "[no]", "no is not null", "zip between 100 and 139"} <= set(texts)
    assert "fee is not null" not in texts
    assert all(rule.status == "proposed" for rule in kept.rules)
    nulls = {column.name: column.nulls for column in kept.tables["towns"].columns or ()}
    assert nulls == {"no": 0, "zip": 0, "city": 0, "fee": float(TOWNS["fee"].isna().mean())}
    written = (tmp_path / "rules.yaml").read_text()
    assert propose(TOWNS, tmp_path).startswith("0 rules proposed")
    assert (tmp_path / "rules.yaml").read_text() == written


def test_a_column_that_came_is_added(tmp_path: Path) -> None:
    propose(TOWNS, tmp_path)
    propose(TOWNS.assign(more=[f"x{i % 3}" for i in range(400)]), tmp_path)
    kept = ContractFile(tmp_path / "rules.yaml").contract
    assert kept.tables["towns"].column_names == ["no", "zip", "city", "fee", "more"]
    assert "more in ('x0', 'x1', 'x2')" in [rule.text for rule in kept.rules]


def test_rejected_rules_are_not_proposed_again(tmp_path: Path) -> None:
    propose(TOWNS, tmp_path)
    kept = ContractFile(tmp_path / "rules.yaml")
    city = next(rule for rule in kept.contract.rules if rule.text == "zip -> city")
    kept.set_status(city.id, "rejected")
    kept.save()
    assert "1 rejected one not proposed again" in propose(TOWNS, tmp_path)
    after = ContractFile(tmp_path / "rules.yaml").contract.rules
    assert [rule.status for rule in after if rule.text == "zip -> city"] == ["rejected"]


def test_rules_with_exceptions_have_a_tolerance(tmp_path: Path) -> None:
    wrong = TOWNS.copy()
    wrong.loc[[3, 77], "city"] = "Elsewhere"
    propose(wrong, tmp_path)
    path = tmp_path / "rules.yaml"
    found = next(rule for rule in ContractFile(path).contract.rules if rule.text == "zip -> city")
    assert found.tolerance == Tolerance(share=0.005)
    assert found.seen is not None
    assert found.seen["exceptions"] == 2
    path.write_text(path.read_text().replace("status: proposed", "status: accepted"))
    result = tw.check_contract(wrong, path)
    assert not result.failed, [rule for rule in result.rules if rule["failed"]]
    assert result.holds is False


def test_other_nulls_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    propose(TOWNS, tmp_path)
    args = ["profile", str(tmp_path / "towns.csv"), "--contract", str(tmp_path / "rules.yaml"), "--nulls", "value"]
    assert run(args) == 2
    assert "--nulls unknown" in capsys.readouterr().err


def test_other_ends_are_not_proposed_beside_a_range(tmp_path: Path) -> None:
    propose(TOWNS, tmp_path)
    path = tmp_path / "rules.yaml"
    kept = ContractFile(path)
    kept.set_statuses({rule.id: "rejected" for rule in kept.contract.rules})
    kept.save()
    grown = TOWNS.assign(zip=TOWNS["zip"] + 1)
    assert propose(grown, tmp_path).startswith("0 rules proposed")
