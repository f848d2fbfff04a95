"""Rules of contracts as text: what can be read, what is written, and what is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tuplewise.engine.contract.forms import (
    Form,
    FunctionalDependency,
    Key,
    Kind,
    NotNull,
    OrderCompatibility,
    Range,
    RowOrder,
    ValueSet,
    columns_of,
    constant_of,
    read_form,
)
from tuplewise.engine.dc.constraint import Constant
from tuplewise.engine.errors import RuleError

FIVE = Constant("5", "integer")

READ: list[tuple[Kind, str, Form]] = [
    ("key", "[a, `b c`]", Key(("a", "b c"))),
    ("key", "a, b", Key(("a", "b"))),
    ("fd", "zip -> city", FunctionalDependency(("zip",), "city")),
    ("fd", "[zip, street] → city", FunctionalDependency(("zip", "street"), "city")),
    ("fd", "[] -> year", FunctionalDependency((), "year")),
    ("od", "[origin]: dep ~ arr desc", OrderCompatibility(("origin",), "dep", "arr", "descending")),
    ("od", "dep ~ arr", OrderCompatibility((), "dep", "arr", "ascending")),
    ("row", "a != b", RowOrder("a", "!=", "b")),
    ("values", "s in ('it''s', 5)", ValueSet("s", (Constant("it's", "text"), FIVE))),
    ("range", "a between -1.5 and 5", Range("a", Constant("-1.5", "decimal"), FIVE)),
    ("range", "a <= 5", Range("a", None, FIVE)),
    ("range", "day >= '2024-01-31'", Range("day", Constant("2024-01-31", "text"), None)),
    ("not_null", "`in` IS NOT NULL", NotNull("in")),
]


@pytest.mark.parametrize(("kind", "text", "form"), READ)
def test_reading(kind: Kind, text: str, form: Form) -> None:
    assert read_form(kind, text) == form


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)
VALUES = st.one_of(st.integers(-(10**9), 10**9), st.text(max_size=5), st.decimals(-100, 100, places=3))
CONSTANTS = VALUES.map(constant_of)


def holds_some(form: Range) -> bool:
    """Whether a range has its lower end first; others are refused."""
    if form.low is None or form.high is None or "text" in (form.low.type, form.high.type):
        return True
    return Decimal(form.low.text) <= Decimal(form.high.text)


FORMS: st.SearchStrategy[tuple[Kind, Form]] = st.one_of(
    st.tuples(st.just("key"), st.lists(NAMES, min_size=1, max_size=3, unique=True).map(lambda n: Key(tuple(n)))),
    st.tuples(st.just("fd"), st.builds(FunctionalDependency, st.lists(NAMES, max_size=2).map(tuple), NAMES)),
    st.tuples(st.just("row"), st.builds(RowOrder, NAMES, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), NAMES)),
    st.tuples(st.just("values"), st.builds(ValueSet, NAMES, st.lists(CONSTANTS, min_size=1, max_size=3).map(tuple))),
    st.tuples(st.just("range"), st.builds(Range, NAMES, CONSTANTS, st.one_of(st.none(), CONSTANTS)).filter(holds_some)),
    st.tuples(st.just("not_null"), st.builds(NotNull, NAMES)),
    st.tuples(
        st.just("od"),
        st.builds(
            OrderCompatibility, st.lists(NAMES, max_size=2).map(tuple), NAMES, NAMES,
            st.sampled_from(["ascending", "descending"]),
        ),
    ),
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FORMS, st.booleans())
def test_what_is_written_is_read_again(written: tuple[Kind, Form], known: bool) -> None:
    kind, form = written
    columns = list(dict.fromkeys([*columns_of(form), "in", "and", "other"])) if known else []
    assert read_form(kind, str(form), columns) == form


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("key", "[]", "position 3: expected the name of a column"),
        ("fd", "a b", "position 3: expected ->"),
        ("fd", "a -> b, c", "position 7: expected a comma or the end"),
        ("values", "a in (b)", "position 7: expected text in single quotes"),
        ("values", "a in ()", "expected text in single quotes"),
        ("range", "a > 3", "expected between, >= or <="),
        ("row", "a ~ b", "expected ==, !=, <, <=, > or >="),
        ("not_null", "a is null", "expected not"),
        ("od", "a", "expected ~"),
        ("key", "[zipp]", "no column of the name 'zipp'. Did you mean 'zip'?"),
        ("dc", "t.a == u.a", "not(...)"),
    ],
)
def test_what_is_refused(kind: Kind, text: str, said: str) -> None:
    with pytest.raises(RuleError) as error:
        read_form(kind, text, ["zip", "a", "b", "c"])
    assert said in str(error.value)


def test_names_with_blanks_need_no_quotes_once_the_columns_are_known() -> None:
    columns = ["first name", "last name", "in"]
    assert read_form("row", "first name <= last name", columns) == RowOrder("first name", "<=", "last name")
    assert read_form("values", "in in (5)", columns) == ValueSet("in", (FIVE,))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (5, "5"), (Decimal("203.000000"), "203"), (Decimal("-0.50"), "-0.5"), (7.0, "7"), (0.1, "0.1"),
        (1e300, "1e300"), (float("nan"), "'nan'"), ("it's", "'it''s'"), (datetime.date(2024, 1, 31), "'2024-01-31'"),
        (datetime.datetime(2024, 1, 31, 10, 5), "'2024-01-31 10:05:00'"),
    ],
)  # fmt: skip
def test_constants(value: object, text: str) -> None:
    assert str(constant_of(value)) == text
