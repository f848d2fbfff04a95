"""Which kernels each command calls: how many specialisations a first run compiles, and that none is left out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.cli.kernels import NEEDED, NEEDED_LATER
from tuplewise.gpu_kernels import compiled
from tuplewise.gpu_kernels.building import kernels_named

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "tax.csv"
RULES = (
    "not(t.zip == u.zip and t.city != u.city)",
    "not(t.rate < u.rate)",
    "not(t.salary < u.salary and t.rate > u.rate)",
    "not(t.state == u.state and t.salary < u.salary and t.rate > u.rate)",
)
# Specialisations that a first run compiles before it begins. Each takes a good half of a second: keep them few.
COMPILED = {
    "dc discover": 10,
    "dc discover --error": 9,
    "dc check": 18,
    "dc init": 10,
    "dc insert": 15,
    "fd discover": 11,
    "key discover": 11,
    "od discover": 12,
    "od check": 2,
    "ind discover": 10,
    "profile": 15,
    "check": 9,
    "ind check": 2,
}


@contextmanager
def kernels_called() -> Iterator[set[str]]:
    """Names of the kernels that are called, as in a process that begins here."""
    called: set[str] = set()
    compile_or_load = compiled.Kernel.compile

    def noting(self: compiled.Kernel, types: Any) -> Any:
        called.add(self.full_name)
        return compile_or_load(self, types)

    for kernel in compiled.KERNELS:
        kernel._reset_overloads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled.Kernel, "compile", noting)
        yield called


def inserting(folder: Path, tax: pd.DataFrame) -> Callable[[], Any]:
    state = tw.maintain_dcs(folder / "state", tax[:400])

    def insert() -> None:
        with state:
            state.insert(tax[400:401])
            state.insert(tax[401:450])

    return insert


def work_of(command: str, tax: pd.DataFrame, folder: Path) -> Callable[[], Any]:
    """What a command does on the example, begun: the rest is to be done."""
    example, cities = folder / "tax.csv", folder / "cities.csv"
    tax.to_csv(example, index=False)
    tax[["city", "state"]].drop_duplicates().to_csv(cities, index=False)
    few = tax[["zip", "city", "state", "salary", "rate"]]
    table = tw.load(few)
    return {
        "dc discover": lambda: tw.discover_dcs(table),
        "dc discover --error": lambda: tw.discover_dcs(table, error=0.01),
        "dc check": lambda: tw.check(table, RULES),
        "dc init": lambda: tw.maintain_dcs(folder / "new", few),
        "dc insert": inserting(folder, few),
        "fd discover": lambda: tw.discover_fds(table),
        "key discover": lambda: tw.discover_keys(table),
        "od discover": lambda: tw.discover_ods(table),
        "od check": lambda: tw.check_ods(table, ["zip -> city", "salary, rate -> rate, salary"]),
        "ind discover": lambda: tw.discover_inds([example, cities]),
        "profile": lambda: tw.profile(example),
        "check": lambda: tw.check(tax, contract=EXAMPLE.with_name("rules.yaml")),
        "ind check": lambda: tw.check_inds([example, cities], ["tax[city, state] <= cities[city, state]"]),
    }[command]


@pytest.mark.parametrize("command", COMPILED)
def test_a_command_calls_what_it_is_said_to_need(command: str, tmp_path: Path) -> None:
    work = work_of(command, pd.read_csv(EXAMPLE), tmp_path)
    with kernels_called() as called:
        work()
    assert called - set(NEEDED[command]) == set()


@pytest.mark.parametrize("command", [c for c in NEEDED_LATER if c.endswith(("discover", "--error"))])
def test_what_text_calls_besides_is_compiled_meanwhile(command: str, tmp_path: Path) -> None:
    work = work_of(command, pd.read_csv(EXAMPLE), tmp_path)
    with kernels_called() as called:
        work().to_text()
    assert called - set(NEEDED[command]) - set(NEEDED_LATER[command]) == set()


@pytest.mark.parametrize("command", COMPILED)
def test_a_first_run_compiles_no_more_than_before(command: str) -> None:
    assert sum(len(kernel.signatures) for kernel in kernels_named(NEEDED[command])) == COMPILED[command]
    assert len(set(NEEDED[command])) == len(NEEDED[command])


# Functions that Numba compiles for them, helpers and its own ones too, in an empty cache.
FUNCTIONS = {
    "dc discover": 90,
    "dc check": 39,
    "fd discover": 150,
    "od check": 56,
    "ind discover": 20,
    "ind check": 3,
}


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=() if c == "ind check" else pytest.mark.slow) for c in FUNCTIONS]
)
def test_kernels_bring_no_more_functions_along(command: str) -> None:
    program = [sys.executable, "-m", "benchmarks.compile_events", *NEEDED[command]]
    compiled = json.loads(subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    assert compiled["specialisations"] == COMPILED[command]
    assert compiled["functions"] <= FUNCTIONS[command]


def test_every_list_is_of_a_command_and_of_kernels() -> None:
    assert NEEDED.keys() == COMPILED.keys()
    for command, names in NEEDED_LATER.items():
        assert {kernel.full_name for kernel in kernels_named(names)} == set(names)
        assert not set(names) & set(NEEDED[command])
