"""Errors by pairs and relative to chance: dependencies found against the definition."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dependency_tables import as_set, encode, functional_and_keys, random_table
from oracles import chance as oracle

import tuplewise as tw
from tuplewise import InputError
from tuplewise.engine.od import levelwise
from tuplewise.engine.od.chance import Errors
from tuplewise.engine.od.dependency import Targets
from tuplewise.engine.od.found import FoundDependencies
from tuplewise.engine.run import Run

TABLES = 60
BOUNDS = ("0.02", "0.2", "0.35", "0.6", "0.9")


def find(columns: list[Any], targets: Targets, measure: Any, bound: str, nulls: Any, most: int) -> FoundDependencies:
    codes = encode(columns)
    errors = Errors(codes, nulls, measure, Decimal(bound), device="cpu", run=Run())
    return levelwise.find(codes, targets, nulls=nulls, errors=errors, max_context=most, device="cpu")


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("measure", ["g1", "lift", "mu"])
def test_functional_dependencies_and_keys_equal_definition(measure: str, nulls: str) -> None:
    rng = random.Random(f"{measure} {nulls}")
    for number in range(TABLES):
        columns = random_table(rng, 4)
        most, bound = rng.choice([1, 2, 3]), rng.choice(BOUNDS)
        asked = (columns, nulls, measure, Fraction(bound), most)
        functional, both = Targets.of_functional(len(columns)), functional_and_keys(len(columns))
        fds = oracle.minimal_fds(*asked)
        assert as_set(find(columns, functional, measure, bound, nulls, most)) == fds, (number, columns, bound)
        if measure != "mu":
            keys = {(key,) for key in oracle.minimal_keys(*asked)}
            assert as_set(find(columns, Targets.of_keys(), measure, bound, nulls, most)) == keys, (columns, bound)
            assert as_set(find(columns, both, measure, bound, nulls, most)) == fds | keys, (columns, bound)


@pytest.mark.parametrize("measure", ["g1", "lift"])
def test_orders_equal_definition(measure: str) -> None:
    rng = random.Random(measure)
    for _ in range(TABLES):
        columns = random_table(rng, 4)
        most, bound = rng.choice([0, 1, 2]), rng.choice(BOUNDS)
        constants, compatible = oracle.minimal_ods(columns, measure, Fraction(bound), most)
        found = find(columns, Targets.of_orders(len(columns)), measure, bound, "value", most)
        assert as_set(found) == constants | compatible, (columns, bound)


# ---------------------------------------------------------------- what is listed, and what is refused


@pytest.fixture(scope="module")
def towns() -> pd.DataFrame:
    """`zip` has the value 0 four times in 400 rows, else each once; `kind` is 1 there, else 0; one of these four
    has a wrong state."""
    rows = np.arange(400)
    zips = np.where(rows < 4, 0, rows)
    states = zips % 4
    states[3] = 1
    return pd.DataFrame({"zip": zips, "state": states, "kind": (zips == 0).astype(int)})


def test_what_holds_nearly_by_itself_hides_a_true_rule_by_rows_and_not_by_chance(towns: pd.DataFrame) -> None:
    def found(measure: Any) -> tuple[set[str], set[str]]:
        of: dict[str, Any] = {"error": "0.01", "error_measure": measure}
        return set(map(str, tw.discover_fds(towns, **of).fds)), set(map(str, tw.discover_keys(towns, **of).keys))

    fds, keys = found("g3")
    assert "[] -> kind" in fds
    assert "zip -> kind" not in fds
    assert keys == {"[zip]"}
    fds, keys = found("lift")
    assert "zip -> kind" in fds
    assert "[] -> kind" not in fds
    assert not keys


@pytest.mark.parametrize("measure", ["g1", "g3", "lift", "mu"])
def test_without_an_error_all_measures_list_what_holds(towns: pd.DataFrame, measure: Any) -> None:
    exact = tw.discover_fds(towns)
    found = tw.discover_fds(towns, error=0, error_measure=measure)
    assert list(found.fds) == list(exact.fds)
    assert found.to_dict()["result"]["measure"] is None
    assert "(exact)" in found.to_text()


def test_a_set_that_passes_hides_supersets_that_fail_and_one_that_fails_does_not() -> None:
    """Two columns are doubled less than half as often as by chance, and with a third as often as by chance."""
    rows = np.arange(64)
    table = pd.DataFrame({"a": rows % 8, "b": (rows // 8 + (rows == 9)) % 8, "c": rows // 32})
    found = {key.columns: key.error for key in tw.discover_keys(table, error="0.5", error_measure="lift").keys}
    assert ("a", "b") in found
    assert 0 < found["a", "b"] < 0.5
    assert ("a", "b", "c") not in found


def test_what_is_said_of_errors(towns: pd.DataFrame) -> None:
    found = tw.discover_fds(towns, error="0.5", error_measure="mu")
    assert "(1 - mu <= 0.5)" in found.to_text()
    assert "only sets of at most 3 columns were looked at" in " ".join(found.notes)
    record = found.to_dict()["result"]["fds"][0]
    assert set(record) == {"determinant", "dependent", "rows_to_remove", "mu"}
    assert list(found.to_pandas().columns) == list(record)
    bounded = tw.discover_fds(towns, error="0.9", error_measure="lift", max_context=1)
    assert "relative to chance" not in " ".join(bounded.notes)
    assert bounded.to_dict()["result"]["measure"] == "lift"
    best = next(fd for fd in bounded.fds if str(fd) == "zip -> state")
    # Of the 12 ordered pairs with zip 0, 6 differ in the state; the others would by the share of all that do.
    counts = towns["state"].value_counts().to_numpy()
    differing = (400 * 400 - int((counts**2).sum())) / (400 * 399)
    assert best.error == pytest.approx(6 / (12 * differing))
    assert best.rows_to_remove == 1


@pytest.mark.parametrize("discover", [tw.discover_keys, tw.discover_ods])
def test_mu_is_of_functional_dependencies(discover: Any, towns: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"error_measure: 'mu'; allowed: 'g3', 'g1', 'lift'\. mu is defined for"):
        discover(towns, error=0.1, error_measure="mu")
    with pytest.raises(InputError, match=r"error_measure: 'tau'; allowed: 'g3', 'g1', 'lift'$"):
        discover(towns, error=0.1, error_measure="tau")


def test_a_time_limit_is_kept(towns: pd.DataFrame) -> None:
    found = tw.discover_ods(towns, error="0.1", error_measure="lift", time_limit=1e-6)
    assert found.partial
    assert not len(found)
