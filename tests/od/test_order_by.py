"""ORDER BY lists shortened: the result sorts the same way, and no shorter list does."""

from __future__ import annotations

import random

import pytest
from od.list_od_tables import FLIGHTS, NAMES, Values, discovered, random_values
from oracles import list_od as oracle

from tuplewise.engine.errors import InputError
from tuplewise.engine.od import order_by
from tuplewise.engine.od.list_od import read_order_by
from tuplewise.engine.od.order_by import shortest_order_by


def shortened(table: Values, items: oracle.Items) -> oracle.Items:
    saved = discovered(table)
    asked = [(saved.names[c], "asc" if up else "desc") for c, up in items]
    return tuple((saved.names.index(name), way == "asc") for name, way in shortest_order_by(asked, saved).items)


def groups(table: Values, items: oracle.Items) -> list[set[int]]:
    """The rows in order, those that are equal on the list together; sorted column by column, the last one first."""

    def value(row: int, column: int) -> tuple[bool, int]:
        cell = table[column][row]
        return (cell is not None, cell or 0)

    rows = list(range(len(table[0])))
    for column, ascends in reversed(items):
        rows.sort(key=lambda row: value(row, column), reverse=not ascends)
    found: list[set[int]] = []
    for place, row in enumerate(rows):
        if place and all(table[c][rows[place - 1]] == table[c][row] for c, _ in items):
            found[-1].add(row)
        else:
            found.append({row})
    return found


def test_the_same_sorting_with_the_fewest_columns() -> None:
    rng = random.Random(3)
    lengths = []
    for seed in range(150):
        table = random_values(seed, 4, most_rows=9)
        columns = rng.sample(range(4), rng.choice([1, 2, 3, 3, 3]))
        items = tuple((c, rng.random() < 0.7) for c in columns)
        if rng.random() < 0.2:
            items = (*items, (items[0][0], False))
        found = shortened(table, items)
        assert groups(table, found) == groups(table, items), (table, items)
        assert len(found) == oracle.shortest_equivalent(table, items), (table, items)
        lengths.append((len(items), len(found)))
    assert {(3, 3), (3, 2), (3, 1), (2, 1), (1, 0)} <= set(lengths)


def test_another_order_of_the_columns_can_be_the_only_shorter_one() -> None:
    table: Values = [[1, 1, 1, 2], [1, 1, 2, 0], [1, 2, 2, 3]]
    items = ((0, True), (1, True), (2, True))
    assert shortened(table, items) == ((2, True), (1, True))


@pytest.mark.parametrize(
    ("given", "short"),
    [
        ("M, W", "W"),
        ("CAP, MTOW", "CAP"),
        ("Type, MC", "Type"),
        ("M, M desc, W", "W"),
        ("MTOW desc, CAP, M", "MTOW desc"),
        ("ET", "ET"),
        ("", ""),
    ],
)
def test_the_flight_table(given: str, short: str) -> None:
    found = shortest_order_by(read_order_by(given, NAMES), discovered(FLIGHTS, NAMES))
    assert (found.items, found.shortest, found.notes) == (read_order_by(short, NAMES), True, ())


def test_beyond_the_limit_the_list_is_still_equivalent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_by, "MOST_STEPS", 0)
    shorter = 0
    for seed in range(60):
        table = random_values(seed, 4)
        items = ((0, True), (1, False), (2, True), (3, True))
        found = shortened(table, items)
        assert groups(table, found) == groups(table, items)
        shorter += len(found) < len(items)
    assert shorter > 10


def test_what_is_not_in_the_discovery_is_an_error() -> None:
    saved = discovered(FLIGHTS, NAMES)
    with pytest.raises(InputError, match=r"no column of that name in the discovery: 'MTOV'\. Did you mean 'MTOW'"):
        shortest_order_by([("MTOV", "asc")], saved)
    with pytest.raises(InputError, match="direction of 'M' in ORDER BY: 'down'; allowed: 'asc' or 'desc'"):
        shortest_order_by([("M", "down")], saved)


def test_a_column_that_was_not_given_can_take_the_place_of_several() -> None:
    table: Values = [[1, 1, 2, 2], [1, 2, 1, 2], [-11, -12, -21, -22], [0, 0, 1, 1]]
    assert shortened(table, ((0, True), (1, True))) == ((2, False),)
    assert shortened(table, ((0, True),)) == ((0, True),), "as short as any: what was given stays"


def test_a_limited_discovery_may_lack_what_makes_it_shorter() -> None:
    table: Values = [[1, 1, 2, 2], [1, 2, 1, 2], [3, 4, 4, 5]]
    saved = discovered(table, max_context=1)
    found = shortest_order_by([("c0", "asc"), ("c1", "asc")], saved)
    assert (found.shortest, found.notes) == (
        False, ("the discovery was limited: there may be a shorter one that sorts alike",)
    )  # fmt: skip
    assert shortest_order_by([("c0", "asc")], saved).shortest
