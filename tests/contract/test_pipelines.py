"""Contracts where data passes: in tests, before commits, in workflows, and in every kind of frame."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ruamel.yaml import YAML

import tuplewise as tw
from tuplewise.testing import assert_contract

ROOT = Path(__file__).resolve().parents[2]
TOWNS = {"zip": [1, 1, 2], "city": ["A", "A", "B"]}
WRONG = {"zip": [1, 1, 1, 2], "city": ["A", "A", "B", "B"]}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    tables = "tuplewise_contract: 1\ntables:\n  t:\n    path: t.csv\n"
    path.write_text(f"{tables}rules:\n- {{id: city, kind: fd, rule: zip -> city}}\n")
    return path


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: pl.DataFrame(columns).lazy()])
def test_frames(rules: Path, make: Any) -> None:
    assert tw.check(make(TOWNS), contract=rules).failed is False
    assert tw.check(make(WRONG), contract=rules).rules[0]["exceptions"] == 1


def test_an_assertion_says_what_is_broken_and_where(rules: Path) -> None:
    assert assert_contract(pd.DataFrame(TOWNS), rules).holds
    with pytest.raises(AssertionError) as error:
        assert_contract(pd.DataFrame(WRONG), rules)
    assert "city: zip -> city: 1 of 4 rows breaks it" in str(error.value)
    assert "row 2: `city` is 'B'; 2 of 3 rows with `zip` 1 have 'A'" in str(error.value)
    with pytest.raises(AssertionError, match="undecided"):
        assert_contract(pd.DataFrame(TOWNS), rules, time_limit=1e-9)
    with pytest.raises(TypeError, match="no option: 'sampel'"):
        assert_contract(pd.DataFrame(TOWNS), rules, sampel=3)  # type: ignore[call-arg]


def test_a_check_takes_rules_or_a_contract(rules: Path) -> None:
    with pytest.raises(TypeError, match="not both"):
        tw.check(pd.DataFrame(TOWNS), "zip -> city", contract=rules)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="rules, or a contract"):
        tw.check(pd.DataFrame(TOWNS))  # type: ignore[call-overload]


def test_the_hook_runs_the_check(rules: Path) -> None:
    """pre-commit calls the entry with the arguments of the user's configuration and no files."""
    (hook,) = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["pass_filenames"] is False
    program, *args = hook["entry"].split()
    assert program == "tuplewise"
    pd.DataFrame(WRONG).to_csv(rules.with_name("t.csv"), index=False)
    command = [sys.executable, "-m", "tuplewise.engine.cli.main", *args, *hook["args"], "--contract", str(rules)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "zip -> city" in done.stdout


def test_the_action_runs_the_check() -> None:
    action = YAML(typ="safe").load((ROOT / "action.yml").read_text())
    (run,) = [step["run"] for step in action["runs"]["steps"] if "tuplewise check" in step.get("run", "")]
    assert "--format github" in run
    for name in action["inputs"]:
        used = [step for step in action["runs"]["steps"] if f"inputs.{name}" in str(step)]
        assert used, name
    assert "${{" not in run, "inputs reach the shell as variables: text in them must not be run"
