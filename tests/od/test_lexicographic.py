"""List order dependencies checked on tables, against their definition."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest
from od.list_od_tables import FLIGHTS, NAMES, list_od, random_values, relation_of
from oracles import list_od as oracle
from oracles import od as set_oracle

from tuplewise.engine.errors import InputError
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT
from tuplewise.engine.od.lexicographic import OdViolation, SetOd, check_orders, set_based, signed
from tuplewise.engine.od.list_od import ListOd, OrderedColumn, read_od
from tuplewise.engine.run import Run


def some_lists(rng: random.Random, columns: int) -> oracle.Items:
    """Up to three columns, which may be repeated."""
    return tuple((rng.randrange(columns), rng.random() < 0.6) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))


def holds_by_definition(table: list[list[int | None]], part: SetOd) -> bool:
    if part.kind == CONSTANT:
        return set_oracle.constant_removals(table, part.context, part.left) == 0
    direction = set_oracle.ASCENDING if part.kind == ASCENDING else set_oracle.DESCENDING
    return set_oracle.pair_removals(table, part.context, part.left, part.right, direction) == 0


def test_the_mapping_holds_exactly_where_the_list_does() -> None:
    rng = random.Random(1)
    verdicts = []
    for seed in range(150):
        table = random_values(seed, 4)
        names = [f"c{i}" for i in range(4)]
        for _ in range(8):
            left, right = some_lists(rng, 4), some_lists(rng, 4)
            od = list_od(left, right, names)
            parts = set_based(signed(od.left, names), signed(od.right, names))
            assert len(parts) <= len(right) + len(left) * len(right)
            verdicts.append(oracle.holds(table, left, right))
            assert all(holds_by_definition(table, part) for part in parts) == verdicts[-1], (table, str(od))
    assert 0.2 < sum(verdicts) / len(verdicts) < 0.8


def test_a_checked_list_holds_or_has_a_real_violation() -> None:
    rng = random.Random(2)
    kinds = set()
    for seed in range(120):
        table = random_values(seed, 4, most_rows=9)
        relation = relation_of(table)
        asked = [(some_lists(rng, 4), some_lists(rng, 4)) for _ in range(6)]
        ods = [list_od(left, right, relation.column_names) for left, right in asked]
        checks = check_orders(relation, ods, device="cpu")
        assert [c.od for c in checks] == ods
        for (left, right), check in zip(asked, checks, strict=True):
            assert check.holds == oracle.holds(table, left, right), (table, str(check.od))
            assert (check.violation is None) == check.holds
            if check.violation is not None:
                t, u = check.violation.rows
                assert oracle.violates(table, left, right, t, u) == check.violation.kind
                assert (check.violation.t, check.violation.u) == (t, u)
                assert check.violation.kind == "swap" or t < u
                kinds.add(check.violation.kind)
    assert kinds == {"split", "swap"}


HOLDING = (
    "MTOW -> CAP", "Type -> MC", "Type -> Type, MC", "M, W -> W, M", "W, M -> M, W", "DT, ET -> DT, AT",
    "MTOW desc -> CAP desc", "M -> M", "[DT, DT desc, ET] -> [DT, AT, AT desc]",
)  # fmt: skip
BROKEN = {
    "M -> W": "split", "ET -> AT": "swap", "DT, ET -> AT": "swap", "MTOW -> CAP desc": "swap", "[] -> M": "split",
    "M -> M desc": "swap", "W -> DT": "split", "MC -> Type": "split",
}  # fmt: skip


@pytest.mark.parametrize("text", HOLDING)
def test_the_flight_table_holds(text: str) -> None:
    (check,) = check_orders(relation_of(FLIGHTS, NAMES), [read_od(text, NAMES)], device="cpu")
    assert (check.holds, check.violation) == (True, None)


@pytest.mark.parametrize("text", BROKEN)
def test_the_flight_table_breaks(text: str) -> None:
    (check,) = check_orders(relation_of(FLIGHTS, NAMES), [read_od(text, NAMES)], device="cpu")
    assert check.holds is False
    assert check.violation is not None
    assert check.violation.kind == BROKEN[text]


def test_null_is_the_lowest_value_and_nan_the_highest() -> None:
    relation = relation_of([[None, 1, 2], [1, 2, None]], ["x", "y"])
    asked = [read_od(text, ["x", "y"]) for text in ("x -> y", "x -> y desc", "y -> x desc")]
    first, second, third = check_orders(relation, asked, device="cpu")
    assert first.violation is not None
    assert first.violation.kind == "swap"
    assert first.violation.u == 2
    assert (second.holds, third.holds) == (False, False)


def test_violations_name_the_rows_by_their_position_in_the_source() -> None:
    relation = replace(relation_of([[1, 1, 2]], ["a"]), positions=np.array([3, 5, 8]))
    (check,) = check_orders(relation, [ListOd((), (OrderedColumn("a"),))], device="cpu")
    assert check.violation is not None
    t, u = check.violation.rows
    assert (check.violation.t, check.violation.u) == (relation.position_of(t), relation.position_of(u))
    assert {*check.violation.rows} in ({0, 2}, {1, 2})
    assert check.violation == OdViolation("split", check.violation.t, 8, (t, 2))


def test_a_limit_that_is_over_decides_nothing_but_what_needs_no_rows() -> None:
    shares: list[float] = []
    ods = [read_od(text, NAMES) for text in ("MTOW -> CAP", "M, W -> M")]
    late = Run(progress=lambda stage, share: shares.append(share), deadline=time.monotonic() - 1)
    checks = check_orders(relation_of(FLIGHTS, NAMES), ods, device="cpu", run=late)
    assert [c.holds for c in checks] == [None, True]
    assert shares == [0.5, 1.0]


def test_wide_tables_and_unknown_columns() -> None:
    table: list[list[int | None]] = [[1, 1, 2, 2]] * 129 + [[1, 2, 3, 4], [1, 2, 4, 3]]
    relation = relation_of(table)
    asked = [read_od(text, relation.column_names) for text in ("c129 -> c0, c64", "c128, c130 -> c64, c129")]
    first, second = check_orders(relation, asked, device="cpu")
    assert first.holds is True
    assert second.violation == OdViolation("swap", 3, 2, (3, 2))
    with pytest.raises(InputError, match=r"no column of that name in table 'table': 'c131'\. Did you mean"):
        check_orders(relation, [ListOd((), (OrderedColumn("c131"),))], device="cpu")
