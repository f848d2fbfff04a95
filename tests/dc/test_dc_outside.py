"""Discovery against answers of others: published sets, and another implementation on random tables."""

from __future__ import annotations

import json
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from consequences import implies, is_trivial
from dc_tables import Table, encode, random_table, read_table

from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.predicate import build_space
from tuplewise.engine.options import DcDiscoverOptions

pytestmark = pytest.mark.outside
SHARED = Path(os.environ.get("TUPLEWISE_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))


def shared_table(name: str, rows: int | None = None, encoding: str = "utf-8") -> Table:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"outside data {path} is not here (TUPLEWISE_SHARED names its folder)")
    return read_table(path, rows=rows, encoding=encoding)


def airport(rows: int) -> DcDiscovery:
    """Their runs knew no nulls: an empty field is a value, equal to itself, as under the rule "value"."""
    table = shared_table("airport_original.csv", rows, "latin-1")
    return discover(encode(table), DcDiscoverOptions(device="cpu", nulls="value"))


def as_sets(constraints: Any) -> set[frozenset[frozenset[tuple[str, str, str]]]]:
    """Each constraint as the set of its two mirrors, predicates without order."""
    found = set()
    for constraint in constraints:
        forms = constraint, constraint.mirror()
        found.add(frozenset(frozenset((p.left, p.operator, p.right) for p in form.predicates) for form in forms))
    return found


def listed(dcs: list[list[list[str]]]) -> list[DenialConstraint]:
    return [DenialConstraint(tuple(Predicate("t", a, op, "u", b) for a, op, b in dc)) for dc in dcs]  # type: ignore[arg-type]


@pytest.mark.parametrize(("rows", "count"), [(2000, 20), (30000, 31)])
def test_airport_equals_published_constraints(rows: int, count: int) -> None:
    result = airport(rows)
    path = SHARED / "data" / "expected" / f"airport_{rows}.json"
    expected = json.loads(path.read_text(encoding="utf-8"))
    assert len(result.constraints) == count == expected["count"]
    assert as_sets(result.constraints) == as_sets(listed(expected["dcs"]))
    assert result.arrays.violations.sum() == 0


def test_airport_space_has_32_predicates() -> None:
    space = build_space(encode(shared_table("airport_original.csv", None, "latin-1")), DcDiscoverOptions())
    across = (~space.same_column[space.predicate_group]).sum()
    assert (space.predicates, across) == (32, 6)


def test_adult_space_has_54_and_60_predicates() -> None:
    relation = encode(shared_table("adult.csv"))
    assert build_space(relation, DcDiscoverOptions(cross_columns=False)).predicates == 54
    assert build_space(relation, DcDiscoverOptions()).predicates == 60


@pytest.mark.slow
def test_adult_2000_has_62464_constraints() -> None:
    """Found by another implementation in 218 s."""
    relation = encode(shared_table("adult.csv", 2000))
    assert len(discover(relation, DcDiscoverOptions(device="cpu", cross_columns=False)).constraints) == 62_464


# ---------------------------------------------------------------- another implementation, live

PREDICATE = re.compile(r"([st])\.(\w+) (==|!=|<=|>=|<|>) ([st])\.(\w+)")


def fast_adc(table: Table, error: float, cross: bool) -> list[DenialConstraint]:
    """Desbordante's FastADC; its first tuple is t."""
    desbordante = pytest.importorskip("desbordante", reason="the package desbordante isn't installed (extra: peers)")
    pandas = pytest.importorskip("pandas")
    algorithm = desbordante.dc.algorithms.FastADC()
    algorithm.load_data(table=pandas.DataFrame({name: values for name, _, values in table}))
    algorithm.execute(evidence_threshold=error, shard_length=0, allow_cross_columns=cross)
    found = []
    for text in map(str, algorithm.get_dcs()):
        parts = PREDICATE.findall(text)
        assert len(parts) == text.count("t.") == text.count("s."), text
        assert {role for role, *_ in parts} == {"t"}, text
        predicates = tuple(Predicate("t", left, op, "u", right) for _, left, op, _, right in parts)
        found.append(DenialConstraint(predicates))
    return found


@pytest.mark.parametrize("error", ["0", "0.1", "0.02"])
def test_same_column_constraints_equal_fastadc(error: str) -> None:
    for seed in range(25):
        types = [["integer", "text", "integer"], ["text"] * 4, ["integer"] * 3, ["text", "integer", "text", "text"]]
        table = random_table(seed, rows=5 + seed % 9, types=types[seed % 4], values=4, fewest=2)
        table = [(n, t, [abs(v) % 97 if t == "integer" else f"v{v}" for v in vs]) for n, t, vs in table]
        options = DcDiscoverOptions(device="cpu", error=Decimal(error), cross_columns=False)
        theirs = fast_adc(table, float(error), False)
        assert as_sets(discover(encode(table), options).constraints) == as_sets(theirs), seed


@pytest.mark.parametrize("error", ["0", "0.1"])
def test_cross_column_constraints_equal_fastadc_after_reduction(error: str) -> None:
    """Small positive integers: all means are comparable, so that both have every pair of columns with six operators."""
    for seed in range(8):
        types = [["integer"] * 2, ["integer", "text", "integer"], ["integer"] * 3][seed % 3]
        table = random_table(seed, rows=4 + seed % 5, types=types, values=4, fewest=2)
        table = [(n, t, [abs(v) % 3 + 1 if t == "integer" else f"v{v}" for v in vs]) for n, t, vs in table]
        options = DcDiscoverOptions(device="cpu", error=Decimal(error), shared_values=Decimal(0))
        ours = list(discover(encode(table), options).constraints)
        theirs = [c for c in fast_adc(table, float(error), True) if not is_trivial(c)]
        for c in theirs:
            assert any(implies(o, c) for o in ours), f"theirs follows from none of ours: {c}"
        for o in ours:
            assert any(implies(c, o) and implies(o, c) for c in theirs), f"theirs has no equivalent of {o}"
