"""List order dependencies derived from set-based ones, against their definition."""

from __future__ import annotations

import itertools

import pytest
from od.list_od_tables import FLIGHTS, NAMES, dependencies_of, discovered, list_od, random_values
from oracles import list_od as oracle

from tuplewise.engine.errors import InputError
from tuplewise.engine.od import derive
from tuplewise.engine.od.dependency import CONSTANT
from tuplewise.engine.od.derive import derive_list_ods
from tuplewise.engine.od.implied import SavedOds
from tuplewise.engine.od.lexicographic import set_based, signed
from tuplewise.engine.od.list_od import ListOd, read_od


@pytest.mark.parametrize(("columns", "most"), [(3, 1), (3, 2), (4, 2), (3, 3)])
def test_exactly_the_reduced_ones_are_listed(columns: int, most: int) -> None:
    lengths = set()
    for seed in range(40):
        table = random_values(seed, columns)
        saved = discovered(table)
        found = derive_list_ods(saved, most)
        expected = {list_od(left, right, saved.names) for left, right in oracle.reduced(table, most)}
        assert set(found) == expected, table
        assert len(found) == len(expected)
        lengths |= {(len(od.left), len(od.right)) for od in found}
    assert {(1, 1), *([(2, 1), (2, 2)] if most > 1 else [])} <= lengths


@pytest.mark.parametrize("most", [2, 3])
def test_what_is_not_listed_follows_from_what_is(most: int) -> None:
    for seed in range(40 if most == 2 else 8):
        table = random_values(seed, 3)
        saved = discovered(table)
        places = [(signed(od.left, saved.names), signed(od.right, saved.names)) for od in derive_list_ods(saved, most)]
        rows = [tuple(part) for both in places for part in set_based(*both)]
        dependencies = saved.dependencies
        constancies = dependencies.take(dependencies.kind == CONSTANT)
        for context, left in zip(constancies.contexts[:, 0].tolist(), constancies.left.tolist(), strict=True):
            rows.append((frozenset(c for c in range(3) if context >> c & 1), CONSTANT, left, -1))
        listed = SavedOds(saved.names, dependencies_of(rows))
        orders = oracle.Orders(table)
        for left, right in itertools.product(oracle.lists(range(3), most), repeat=2):
            assert listed.orders(left, right) == orders.holds(left, right), (table, left, right)


def test_the_flight_table() -> None:
    found = derive_list_ods(discovered(FLIGHTS, NAMES), 2)
    listed = {str(od) for od in found}
    assert {"MTOW -> CAP", "CAP -> MTOW", "W -> M", "DT, ET -> DT, AT", "M, W -> W"} <= listed
    assert not {"M -> W", "ET -> AT", "Type -> Type, MC", "DT, ET -> AT"} & listed
    sizes = [len(od.left) + len(od.right) for od in found]
    assert sizes == sorted(sizes)
    assert derive_list_ods(discovered(FLIGHTS, NAMES), 1) == [od for od in found if len(od.left) == len(od.right) == 1]


def test_opposite_directions() -> None:
    saved = discovered([[1, 2, 3], [9, 8, 8]], ["a", "b"])
    assert derive_list_ods(saved, 1) == [read_od("a -> b desc", ["a", "b"])]


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = discovered([[1, 2, 3], [1, 2, 4], [2, 5, 7], [3, 3, 9]])
    monkeypatch.setattr(derive, "MOST_STEPS", 20)
    with pytest.raises(InputError, match=r"of 3 columns: more than 20 lists to look at\. Lower lexicographic"):
        derive_list_ods(saved, 3)
    with pytest.raises(InputError, match="columns of a list: 0; allowed: 1 or more"):
        derive_list_ods(saved, 0)


def test_tables_without_rows_or_pairs_have_none() -> None:
    for table in ([[], []], [[1], [2]], [[1, 2]]):
        assert derive_list_ods(discovered(table), 2) == []
    assert isinstance(derive_list_ods(discovered([[1, 2], [1, 2]]), 1)[0], ListOd)
