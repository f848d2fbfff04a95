"""List order dependencies and ORDER BY lists as text."""

from __future__ import annotations

import itertools
import random

import pytest

from tuplewise.engine.errors import InputError, RuleError
from tuplewise.engine.od.list_od import ListOd, OrderedColumn, read_od, read_order_by

NAMES = (
    "month", "week", "day of week", "a.b", "a`b", 'say "hi"', "x, y", "asc", "desc", "week desc", "[z]", "naïve 名",
    "2nd",
)  # fmt: skip


def asc(*names: str) -> tuple[OrderedColumn, ...]:
    return tuple(OrderedColumn(name) for name in names)


MONTH_WEEK = ListOd((OrderedColumn("month"), OrderedColumn("week", "desc")), asc("week"))


@pytest.mark.parametrize(
    "text",
    [
        "month, week desc -> week",
        "\ufeff month asc ,week DESC->week  ASC ",
        "[month, week desc] -> [week]",
        "(month, `week` desc) ↦ week",
        '"month", "week" Desc |-> week asc',
        "month,week desc→week",
    ],
)
def test_every_spelling_reads_the_same(text: str) -> None:
    assert read_od(text, NAMES) == MONTH_WEEK


@pytest.mark.parametrize(
    ("text", "od"),
    [
        ("[] -> month", ListOd((), asc("month"))),
        (" -> month", ListOd((), asc("month"))),
        ("month, month -> week, week", ListOd(asc("month", "month"), asc("week", "week"))),
        ("day of week, a.b -> x, y", ListOd(asc("day of week", "a.b"), asc("x, y"))),
        ("day of week desc -> 2nd", ListOd((OrderedColumn("day of week", "desc"),), asc("2nd"))),
        ("asc -> desc", ListOd(asc("asc"), asc("desc"))),
        ("desc desc -> asc asc", ListOd((OrderedColumn("desc", "desc"),), asc("asc"))),
        # A plain word that is known goes before a longer name
        ("week desc -> month", ListOd((OrderedColumn("week", "desc"),), asc("month"))),
        ("`week desc` -> month", ListOd(asc("week desc"), asc("month"))),
        ('`a``b` -> "say ""hi"""', ListOd(asc("a`b"), asc('say "hi"'))),
        ("naïve 名 -> `[z]` desc", ListOd(asc("naïve 名"), (OrderedColumn("[z]", "desc"),))),
    ],
)
def test_names_and_empty_sides(text: str, od: ListOd) -> None:
    assert read_od(text, NAMES) == od


def test_what_is_written_reads_back() -> None:
    rng = random.Random(5)
    for _ in range(300):
        sides = [
            tuple(OrderedColumn(rng.choice(NAMES), rng.choice(["asc", "desc"])) for _ in range(rng.randint(least, 3)))
            for least in (0, 1)
        ]
        od = ListOd(*sides)
        assert read_od(str(od), NAMES) == od
    assert str(MONTH_WEEK) == "month, week desc -> week"
    assert str(ListOd((), asc("day of week"))) == "[] -> `day of week`"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("month -> wek", "order dependency, position 10: no column of the name 'wek'. Did you mean 'week'"),
        ("Month -> week", "position 1: no column of the name 'Month'. Did you mean 'month'?"),
        ("mnth, `wek` -> week", "position 1: no column of the name 'mnth'"),
        ("mnth, `wek` -> week", "position 7: no column of the name 'wek'"),
        ("month week -> week", "position 1: no column of the name 'month week'"),
        ("month", "position 6: expected a comma or ->, but the text ends"),
        ("month, -> week", "position 8: expected the name of a column, found '->'"),
        ("month ->", "position 9: expected the name of a column, but the text ends"),
        ("month -> []", "position 12: expected the name of a column"),
        ("[month -> week", "position 8: expected a comma or ], found '->'"),
        ("month -> week -> month", "position 15: expected a comma or the end, found '->'"),
        ("`month -> week", "position 1: a ` that is not closed. Double it where it belongs to the name: ``"),
        ("`month` down -> week", "position 9: expected a comma or ->, found 'down'"),
        ("", "position 1: expected a comma or ->, but the text ends"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_place(text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_od(text, NAMES)
    assert message in str(caught.value)
    assert "\nAccepted: month, week desc -> week" in str(caught.value)
    assert isinstance(caught.value, InputError)


def test_the_caret_stands_below_the_place() -> None:
    with pytest.raises(RuleError) as caught:
        read_od("month -> wek", NAMES)
    lines = str(caught.value).splitlines()
    assert lines[1].index("wek") == lines[2].index("^")


def test_order_by_lists() -> None:
    assert read_order_by("month, `week` desc", NAMES) == (("month", "asc"), ("week", "desc"))
    assert read_order_by("", NAMES) == ()
    with pytest.raises(RuleError, match="expected a comma or the end"):
        read_order_by("month -> week", NAMES)
    with pytest.raises(RuleError, match="no column of the name 'wek'"):
        read_order_by("wek", NAMES)


def test_names_of_every_kind_stand_bare_where_that_is_clear() -> None:
    names = ["a b", "c-d", "e.f", "ä"]
    for left, right in itertools.permutations(names, 2):
        assert read_od(f"{left} DESC -> {right}", names) == ListOd((OrderedColumn(left, "desc"),), asc(right))
