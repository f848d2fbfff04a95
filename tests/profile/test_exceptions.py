"""Rows that break a rule: removing them makes it hold, and likely wrong cells come first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import profile as oracle
from profile_tables import CPU, Table, numbers_of, tables, without_none

from tuplewise.engine.options import Nulls
from tuplewise.engine.profile.exceptions import Exceptions, exceptions_of
from tuplewise.engine.profile.rows import CountedRelation
from tuplewise.engine.profile.rule import Rule

NULLS = st.sampled_from(["unknown", "value"])
quick = settings(deadline=None, max_examples=60)


def rule(kind: str, left: tuple[int, ...], right: tuple[int, ...], sense: str = "") -> Rule:
    return Rule(kind, left, right, sense, 0, 0, 0.0, 0.0, 0.0)  # type: ignore[arg-type]


def exceptions(table: Table, broken: Rule, nulls: Nulls = "unknown") -> Exceptions:
    relation = numbers_of(table)
    return exceptions_of(relation, CountedRelation(relation, nulls, CPU), broken, nulls)


def without(table: Table, found: Exceptions) -> Table:
    removed = set(found.rows.tolist())
    assert len(removed) == len(found.rows)
    return [[value for row, value in enumerate(column) if row not in removed] for column in table]


@quick
@given(tables(columns=3), NULLS, st.sampled_from([(), (0,), (0, 1)]))
def test_fds_and_constants(table: Table, nulls: Nulls, left: tuple[int, ...]) -> None:
    found = exceptions(table, rule("fd" if left else "constant", left, (2,)), nulls)
    seen = table if nulls == "unknown" else without_none(table)
    assert len(found.rows) == oracle.fd_removals(seen, left, 2)
    assert oracle.fd_removals(without(seen, found), left, 2) == 0
    clear = []
    for row, partner, alike, together in np.stack([found.rows, found.partners, found.alike, found.together]).T.tolist():
        members = next(m for m in oracle.classes(seen, left, oracle.rows_with_values(seen, [*left, 2])) if row in m)
        assert partner in members
        values = [seen[2][member] for member in members]
        assert seen[2][partner] != seen[2][row]
        assert values.count(seen[2][partner]) == alike == max(map(values.count, values))
        assert together == len(members)
        clear.append(alike / together)
    assert clear == sorted(clear, reverse=True)


@quick
@given(tables(columns=2), NULLS, st.sampled_from([(0,), (0, 1)]))
def test_keys(table: Table, nulls: Nulls, left: tuple[int, ...]) -> None:
    found = exceptions(table, rule("key", left, ()), nulls)
    seen = table if nulls == "unknown" else without_none(table)
    assert len(found.rows) == oracle.key_removals(seen, left)
    assert oracle.key_removals(without(seen, found), left) == 0
    for row, partner in zip(found.rows.tolist(), found.partners.tolist(), strict=True):
        assert partner < row
        assert all(seen[c][row] == seen[c][partner] is not None for c in left)


HOLDS = {"==": (0,), "<": (-1,), "<=": (-1, 0)}


@quick
@given(tables(columns=2), NULLS, st.sampled_from(list(HOLDS)))
def test_rules_of_one_row(table: Table, nulls: Nulls, sense: str) -> None:
    found = exceptions(table, rule("row", (0,), (1,), sense), nulls)
    seen = table if nulls == "unknown" else without_none(table)
    counted = oracle.compared(seen, 0, 1)
    assert len(found.rows) == sum(counted.values()) - sum(counted[sign] for sign in HOLDS[sense])
    rest = without(seen, found)
    assert {sign for sign, n in oracle.compared(rest, 0, 1).items() if n} <= set(HOLDS[sense])


@quick
@given(tables(columns=3, most_rows=9), NULLS, st.sampled_from([(), (2,)]), st.sampled_from(["ascending", "descending"]))
def test_order_rules(table: Table, nulls: Nulls, context: tuple[int, ...], sense: str) -> None:
    found = exceptions(table, rule("od", context, (0, 1), sense), nulls)
    seen = table if nulls == "unknown" else without_none(table)
    rest = without(seen, found)
    assert oracle.order_holds(rest, context, 0, 1, sense, range(len(rest[0])))
    assert len(found.rows) >= oracle.order_removals(seen, context, 0, 1, sense)
    broken = []
    for row, partner in zip(found.rows.tolist(), found.partners.tolist(), strict=True):
        assert not oracle.order_holds(seen, context, 0, 1, sense, [row, partner])
        others = [u for u in range(len(seen[0])) if not oracle.order_holds(seen, context, 0, 1, sense, [row, u])]
        broken.append(len(others))
    assert broken == sorted(broken, reverse=True)


@pytest.mark.parametrize("kind", ["fd", "key", "row", "od", "constant"])
@pytest.mark.parametrize("table", [[[], [], []], [[1], [1], [1]], [[None, None], [None, None], [None, None]]])
def test_hardly_any_rows(kind: str, table: Table) -> None:
    of_kind = {
        "fd": rule("fd", (0,), (1,)),
        "key": rule("key", (0,), ()),
        "row": rule("row", (0,), (1,), "<="),
        "od": rule("od", (0,), (1, 2), "ascending"),
        "constant": rule("constant", (), (1,)),
    }
    assert len(exceptions(table, of_kind[kind]).rows) == 0


def test_likely_wrong_cells_come_first() -> None:
    """One of 9 rows is a likelier fault than one of 3, and that than one of two."""
    zips = [*[1] * 9, *[2] * 3, *[3] * 2]
    cities = [*[5] * 4, 6, *[5] * 4, 7, 8, 8, 9, 4]
    found = exceptions([zips, cities], rule("fd", (0,), (1,)))
    assert found.rows.tolist() == [4, 9, 12]
    assert found.alike.tolist() == [8, 2, 1]
    assert found.together.tolist() == [9, 3, 2]
