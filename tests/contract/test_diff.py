"""What differs between two tables, contracts or results: rules, rows that break them, columns."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.cli.main import run
from tuplewise.engine.contract.contract import Tolerance
from tuplewise.engine.contract.diff import _stricter
from tuplewise.engine.contract.diff_result import CHANGES


def people(wrong: int = 0, seed: int = 1) -> pd.DataFrame:
    """600 rows: `no` is a key, each zip has one city, but in `wrong` rows."""
    draw = random.Random(seed)
    zips = [draw.randrange(40) for _ in range(600)]
    cities = [f"City {zip_ // 2}" for zip_ in zips]
    for row in draw.sample(range(600), wrong):
        cities[row] = f"Else {draw.randrange(50)}"
    return pd.DataFrame({"no": range(600), "zip": [10_000 + zip_ for zip_ in zips], "city": cities})


def removals(table: pd.DataFrame, left: str, right: str) -> int:
    """The fewest rows to remove so that left determines right, by definition."""
    classes: dict[Any, Counter[Any]] = {}
    for a, b in zip(table[left], table[right], strict=True):
        classes.setdefault(a, Counter())[b] += 1
    return sum(sum(own.values()) - max(own.values()) for own in classes.values())


def rules(found: tw.DiffResult) -> dict[str, list[str]]:
    return {change: [one["rule"] for one in getattr(found, change)] for change in CHANGES if getattr(found, change)}


# ---------------------------------------------------------------- tables


def test_a_table_does_not_differ_from_itself() -> None:
    found = tw.diff(people(), people())
    assert (rules(found), found.columns, found.differs, found.regressed) == ({}, [], False, False)
    assert found.to_dict()["result"]["unchanged"] > 0
    with pytest.raises(TypeError, match=r"ask \.differs or \.regressed"):
        bool(found)


def test_a_lost_rule_comes_with_a_row_that_breaks_it_and_is_gained_the_other_way() -> None:
    old, new = people(), people(wrong=300)
    found = tw.diff(old, new)
    (lost,) = [one for one in found.lost if one["rule"] == "zip -> city"]
    expected = removals(new, "zip", "city")
    assert (lost["kind"], lost["before"]["exceptions"], lost["after"]["exceptions"]) == ("fd", 0, expected)
    assert lost["after"]["share"] == expected / 600
    assert lost["why"] == f"{expected} of 600 rows break it"
    row, *_ = lost["broken_by"]["rows"]
    same = new[new["zip"] == new["zip"][row]]["city"]
    assert Counter(same)[new["city"][row]] < max(Counter(same).values())
    assert found.regressed
    back = tw.diff(new, old)
    assert "zip -> city" in rules(back)["gained"]
    assert not back.lost


def test_more_exceptions_are_weaker_and_fewer_stronger() -> None:
    few, more = people(wrong=3), people(wrong=9)
    found = tw.diff(few, more)
    (one,) = [one for one in found.weaker if one["rule"] == "zip -> city"]
    counts = [removals(table, "zip", "city") for table in (few, more)]
    assert [one[side]["exceptions"] for side in ("before", "after")] == counts
    assert not found.regressed
    assert "zip -> city" in rules(tw.diff(more, few))["stronger"]


def test_what_is_not_listed_and_holds_is_not_lost() -> None:
    """A table of few rows gives too little evidence for a rule that still holds in it."""
    found = tw.diff(people(), people().head(4))
    assert not found.lost
    assert not found.weaker


def test_columns_and_rules_on_columns_that_are_gone() -> None:
    old = people().assign(more=range(600))
    new = people().rename(columns={"city": "town"})
    new.loc[:19, "town"] = None
    new["no"] = [f"n{i}" for i in range(600)]
    found = tw.diff(old, new)
    said = {(one["change"], one["name"]) for one in found.columns}
    assert said == {("removed", "city"), ("removed", "more"), ("added", "town"), ("type", "no")}
    (lost,) = [one for one in found.lost if one["rule"] == "zip -> city"]
    assert (lost["why"], lost["after"]["exceptions"]) == ("there is no column 'city'", None)


@pytest.mark.parametrize(("nulls", "differs"), [(0, False), (1, True), (30, True)])
def test_shares_of_nulls(nulls: int, differs: bool) -> None:
    new = people()
    new.loc[new.index[:nulls], "city"] = None
    found = tw.diff(people(), new)
    changed = [one for one in found.columns if one["change"] == "nulls"]
    assert bool(changed) == differs
    if differs:
        assert (changed[0]["before"]["nulls"], changed[0]["after"]["nulls"]) == (0, nulls / 600)


def test_small_changes_of_nulls_are_left_out() -> None:
    old, new = people(), people()
    old.loc[:29, "city"] = None
    new.loc[:34, "city"] = None
    assert not tw.diff(old, new).columns
    new.loc[:36, "city"] = None
    assert [one["change"] for one in tw.diff(old, new).columns] == ["nulls"]


# ---------------------------------------------------------------- contracts

RULES = """\
tuplewise_contract: 1
tables: {t: {columns: {zip: {type: integer, nulls: 0.0}, city: {type: text}, no: {type: integer}}}}
rules:
- {id: a, kind: fd, rule: zip -> city}
- {id: b, kind: key, rule: [no], tolerance: {share: 0.01}}
- {id: c, kind: not_null, rule: no is not null, status: proposed}
- {id: d, kind: not_null, rule: zip is not null, status: rejected}
"""


def contracts(tmp_path: Path, *changes: tuple[str, str]) -> tuple[Path, Path]:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    text = RULES
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    old.write_text(RULES)
    new.write_text(text)
    return old, new


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("# none", "# none"), {}),
        (("- {id: a, kind: fd, rule: zip -> city}\n", ""), {"lost": ["zip -> city"]}),
        (("rule: zip -> city}", "rule: zip -> city, status: rejected}"), {"lost": ["zip -> city"]}),
        (("rule: zip -> city}", "rule: zip -> city, status: proposed}"), {"weaker": ["zip -> city"]}),
        (("rule: zip -> city}", "rule: zip -> city, severity: warning}"), {"weaker": ["zip -> city"]}),
        (("share: 0.01", "share: 0.02"), {"weaker": ["[no]"]}),
        (("share: 0.01", "share: 0.001"), {"stronger": ["[no]"]}),
        (("share: 0.01", "max_violations: 5"), {"changed": ["[no]"]}),
        (("share: 0.01", "max_violations: 0"), {"stronger": ["[no]"]}),
        (("share: 0.01}}", "share: 0.02}, status: proposed}"), {"weaker": ["[no]"]}),
        (("status: proposed", "status: accepted"), {"stronger": ["no is not null"]}),
        (("status: proposed", "status: rejected"), {"weaker": ["no is not null"]}),
        (("status: rejected", "status: proposed"), {"gained": ["zip is not null"]}),
        (("- {id: d, kind: not_null, rule: zip is not null, status: rejected}\n", ""), {}),
        (("{id: a,", "{id: other, note: hm,"), {}),
    ],
)
def test_contracts(tmp_path: Path, change: tuple[str, str], found: dict[str, list[str]]) -> None:
    changes = () if change[0] == "# none" else (change,)
    old, new = contracts(tmp_path, *changes)
    assert rules(tw.diff(old, new)) == found


def test_columns_of_contracts(tmp_path: Path) -> None:
    old, new = contracts(tmp_path, ("city: {type: text}", "city: {type: date}"), ("nulls: 0.0", "nulls: 0.2"))
    found = {(one["change"], one["name"]) for one in tw.diff(old, new).columns}
    assert found == {("type", "city"), ("nulls", "zip")}


def test_tolerances_in_both_ways() -> None:
    tolerances = [Tolerance(), Tolerance(2), Tolerance(5), Tolerance(share=0.1), Tolerance(share=0.2)]
    for old in tolerances:
        for new in tolerances:
            there, back = _stricter(old, new), _stricter(new, old)
            assert (there is None) == (back is None)
            if there is not None and back is not None:
                assert there == -back
                # as many are allowed, or fewer, of however many there are
                wider, closer = (old, new) if there >= 0 else (new, old)
                assert all(wider.allows(k, 20) or not closer.allows(k, 20) for k in range(21))


def test_a_contract_and_a_table(tmp_path: Path) -> None:
    old, _ = contracts(tmp_path)
    new = people(wrong=50)
    new["city"] = pd.date_range("2024-01-01", periods=600)
    new.loc[1:8, "no"] = 0
    found = tw.diff(old, new)
    assert rules(found) == {"lost": ["zip -> city", "[no]"]}
    assert found.lost[0]["after"]["exceptions"] == removals(new, "zip", "city")
    assert found.lost[1]["after"]["exceptions"] == 8
    assert len(found.lost[1]["broken_by"]["rows"]) == 2
    assert ("type", "city") in {(one["change"], one["name"]) for one in found.columns}
    with pytest.raises(tw.InputError, match="can't be compared: 'a table and a contract'; allowed: two tables"):
        tw.diff(new, old)


# ---------------------------------------------------------------- results


def saved(tmp_path: Path, name: str, table: pd.DataFrame, *argv: str) -> Path:
    csv, path = tmp_path / f"{name}.csv", tmp_path / f"{name}.json"
    table.to_csv(csv, index=False)
    command = [str(csv) if one == "T" else one for one in argv]
    assert run([*command, "-o", str(path), "--quiet", "--format", "json"]) in (0, 1)
    return path


SMALL = pd.DataFrame({"a": [1, 1, 2, 3], "b": [1, 1, 2, 2], "c": [5, 6, 7, 8]})
BROKEN = pd.DataFrame({"a": [1, 1, 2, 3], "b": [1, 3, 2, 2], "c": [5, 6, 7, 7]})


@pytest.mark.parametrize(
    ("argv", "kind", "lost"),
    [
        (["fd", "discover", "T"], "fd", "a -> b"),
        (["key", "discover", "T"], "key", "[c]"),
        (["od", "discover", "T"], "od", "[]: a ~ b"),
        (["dc", "discover", "T"], "dc", "not(t.c == u.c)"),
        (["dc", "check", "T", "--rule", "not(t.a == u.a and t.b != u.b)"], "dc", "not(t.a == u.a and t.b != u.b)"),
        (["od", "check", "T", "--od", "a -> b"], "od", "a -> b"),
        (["ind", "check", "T", "--ind", "t.b <= t.a"], "ind", None),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_results_of_each_command(tmp_path: Path, argv: list[str], kind: str, lost: str | None) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    old = saved(tmp_path / "old", "t", SMALL, *argv)
    new = saved(tmp_path / "new", "t", BROKEN, *argv)
    found = tw.diff(old, new)
    assert not tw.diff(old, old).differs
    if lost is None:
        assert not found.differs
        return
    assert (kind, lost) in {(one["kind"], one["rule"]) for one in found.lost}
    if argv[1] == "check":
        assert sorted(found.lost[0]["broken_by"]["rows"]) == [0, 1]
    assert lost in [one["rule"] for one in tw.diff(new, old).gained]


def test_results_of_checks_of_contracts_and_of_profiles(tmp_path: Path) -> None:
    contract, _ = contracts(tmp_path)
    old, new = people(), people(wrong=40)
    checked = [tw.check_contract(table, contract) for table in (old, new)]
    found = tw.diff(*checked)
    assert rules(found) == {"lost": ["zip -> city"]}
    assert found.lost[0]["broken_by"]["text"].startswith("row ")
    profiled = tw.diff(tw.profile(people()), tw.profile(people(wrong=5)))
    assert "zip -> city" in rules(profiled)["weaker"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: {**d, "schema": "tuplewise/2"}, "is of another version: 'tuplewise/2'; allowed: 'tuplewise/1'"),
        (lambda d: {**d, "command": "doctor"}, "is of a command: 'doctor'; allowed: profile, dc discover"),
        (lambda d: {**d, "result": {"count": 1}}, "can't be read: \"'fds'\". It was cut or changed after it was saved"),
        (lambda d: {**d, "result": {"fds": [7]}}, "It was cut or changed after it was saved"),
        (lambda d: {**d, "tables": 5}, "It was cut or changed after it was saved"),
        (lambda d: {**d, "command": ["x"]}, "is of a command"),
    ],
)
def test_results_that_cannot_be_read(tmp_path: Path, change: Any, said: str) -> None:
    path, other = saved(tmp_path, "t", SMALL, "fd", "discover", "T"), tmp_path / "other.json"
    other.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(tw.InputError) as error:
        tw.diff(path, other)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_result_that_was_cut_and_results_of_two_commands(tmp_path: Path) -> None:
    path, other = saved(tmp_path, "t", SMALL, "fd", "discover", "T"), tmp_path / "cut.json"
    other.write_text(path.read_text()[:-40])
    with pytest.raises(tw.InputError, match=r"cut.json' is no JSON: 'line \d+"):
        tw.diff(path, other)
    keys = saved(tmp_path, "u", SMALL, "key", "discover", "T")
    with pytest.raises(tw.InputError, match="of different commands"):
        tw.diff(path, keys)
    with pytest.raises(tw.InputError, match="can't be compared: 'a result and a table'"):
        tw.diff(path, SMALL)


# ---------------------------------------------------------------- the command


def test_the_command_its_forms_and_its_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = contracts(tmp_path, ("- {id: a, kind: fd, rule: zip -> city}\n", ""))
    assert run(["diff", str(old), str(new), "--format", "text"]) == 0
    assert "lost fd  zip -> city" in capsys.readouterr().out
    assert run(["diff", str(old), str(new), "--exit-code"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "diff"
    assert document["result"]["a"] == {"name": str(old), "kind": "contract", "command": None}
    assert set(document["result"]["lost"][0]) == {
        "table", "kind", "rule", "english", "why", "before", "after", "broken_by",
    }  # fmt: skip
    assert set(document["result"]) == {
        "a", "b", "differs", "regressed", "unchanged", "undecided", "columns", *CHANGES,
    }  # fmt: skip
    assert run(["diff", str(new), str(old), "--exit-code"]) == 0
    page = tmp_path / "diff.html"
    capsys.readouterr()
    assert run(["diff", str(old), str(new), "-o", str(page)]) == 0
    text = page.read_text()
    assert "Lost rules" in text
    assert "<bdi>zip -&gt; city</bdi>" in text
    assert run(["diff", str(tmp_path / "none.yaml"), str(new)]) == 2
    assert "there is no contract" in capsys.readouterr().err


def test_the_command_on_two_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for table, path in zip((people(), people(wrong=300)), paths, strict=True):
        table.to_csv(path, index=False)
    assert run(["diff", *map(str, paths), "--format", "text", "--exit-code"]) == 1
    shown = capsys.readouterr().out
    assert f"{paths[0]} → {paths[1]}: rules: " in shown
    assert "lost fd  zip -> city" in shown
    assert "broken by" in shown
    assert run(["diff", *map(str, paths)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [table["name"] for table in document["tables"]] == list(map(str, paths))
    assert document["options"]["limit"] == 25


def test_columns_that_determine_each_other_are_no_loss_when_they_are_listed_the_other_way() -> None:
    towns = pd.DataFrame([(i, f"Z{i % 40}", f"C{i % 40}") for i in range(400)], columns=["no", "zip", "city"])
    wrong = towns.copy()
    wrong.loc[3, "city"] = "Wrong"
    before, after = tw.profile(towns), tw.profile(wrong)
    assert {rule.rule for rule in before.rules} != {rule.rule for rule in after.rules}
    assert not tw.diff(before, after).lost
