"""Inclusion dependencies as text: every spelling, printing and reading, and what is said of faults."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuplewise.engine.errors import RuleError
from tuplewise.engine.ind.dependency import (
    Attribute,
    InclusionDependency,
    ind_of_record,
    names_record,
    parse_attribute,
    parse_ind,
    unary,
)

TABLES = {"child": ["a", "b", "c d"], "parent": ["x", "y", "a"], "my.data": ["k", "a <= b"]}
ODD_NAMES = (
    "Phone No.", "a.b", "a`b", "my col", "select", "naïve 名", "r and d", "[x]", "column_9", "and", "a <= b", "a, b",
    "x.csv", "(y", '"q"', "->", " lead", "trail ", "[=", "⊆", "a.b.c", "null", "1", "-", "`", "``", "a]", "t\nu",
)  # fmt: skip


def two(dependent: str, referenced: str) -> InclusionDependency:
    return unary(parse_attribute(dependent, TABLES), parse_attribute(referenced, TABLES))


@pytest.mark.parametrize(
    "text",
    [
        "child.a <= parent.x", "child.a<=parent.x", " child . a ⊆ parent . x ", "`child`.a -> \"parent\".\"x\"",
        "[child.a][=[parent.x]", "(child.csv, [a]) -> (parent.csv, [x])", "child[a] <= parent[x]",
        "child(a) → parent(x)", "(child, [a]) <= (parent, [x])", "[child.csv.a][=[parent.csv.x]",
        "child.a [= parent.x", "(child.a) <= (parent.x)",
    ],
)  # fmt: skip
def test_every_spelling_of_one(text: str) -> None:
    assert parse_ind(text, TABLES) == InclusionDependency((Attribute("child", "a"),), (Attribute("parent", "x"),))


@pytest.mark.parametrize(
    "text",
    [
        "child[a, `c d`] <= parent[y, x]", "child[a, c d] <= parent[y, x]", "child.a, child.c d <= parent.y, parent.x",
        "[child.a, child.c d][=[parent.y, parent.x]", "(child.csv, [a, c d]) -> (parent.csv, [y, x])",
        'child("a", "c d") ⊆ parent(y, x)', "(child.a, child.`c d`) <= (parent.y, parent.x)",
    ],
)  # fmt: skip
def test_every_spelling_of_several_columns(text: str) -> None:
    found = parse_ind(text, TABLES)
    assert str(found) == "child[a, `c d`] <= parent[y, x]"
    assert found.size == 2
    assert names_record(found.dependent) == ["child.a", "child.`c d`"]


def test_a_table_whose_name_has_a_dot() -> None:
    assert str(parse_ind("my.data.k <= my.data.a <= b", TABLES)) == "`my.data`.k <= `my.data`.`a <= b`"
    assert str(parse_ind("(my.data.csv, [k]) -> (child.tsv.gz, [a])", TABLES)) == "`my.data`.k <= child.a"
    tables = {"a": ["b.c", "b"], "a.b": ["c", "d"]}
    assert parse_attribute("a.b.c", tables) == Attribute("a", "b.c")
    assert parse_attribute("`a.b`.c", tables) == Attribute("a.b", "c")
    assert parse_attribute("a.b.d", tables) == Attribute("a.b", "d")
    assert parse_attribute("a.b", tables) == Attribute("a", "b")
    named = {"t.csv": ["a"], "t": ["b"]}
    assert parse_attribute("t.csv.a", named) == Attribute("t.csv", "a")


names = st.sampled_from(ODD_NAMES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.data())
def test_printing_and_reading_round_trip(data: st.DataObject) -> None:
    several = st.lists(names, min_size=3, max_size=6, unique=True)
    tables = {name: data.draw(several) for name in data.draw(st.lists(names, min_size=1, max_size=4, unique=True))}
    size = data.draw(st.integers(1, 3))
    sides = []
    for _ in range(2):
        table = data.draw(st.sampled_from(sorted(tables)))
        columns = data.draw(st.permutations(tables[table]))[:size]
        sides.append(tuple(Attribute(table, column) for column in columns))
    ind = InclusionDependency(*sides)
    assert parse_ind(str(ind), tables) == ind
    record = {"dependent": names_record(ind.dependent), "referenced": names_record(ind.referenced)}
    assert ind_of_record(record, tables) == ind
    assert all(parse_attribute(str(a), tables) == a for a in (*ind.dependent, *ind.referenced))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("child.a", "position 8: expected a comma or <=, but the text ends"),
        ("child.a <= ", "position 12: expected table.column, but the text ends"),
        ("child.a <= x", "position 12: expected table.column, found 'x'. Write parent.x"),
        ("chlid.a <= parent.x", "position 1: no table of the name 'chlid'. Did you mean 'child'?"),
        ("child.A <= parent.x", "position 7: table 'child' has no column of the name 'A'. Known: 'a'"),
        ("child[a, zz] <= parent[x, y]", "position 10: table 'child' has no column of the name 'zz'. Known: 'a', 'b'"),
        ("chlid[a] <= parent[x]", "position 1: no table of the name 'chlid'. Did you mean 'child'?"),
        ("(chlid.csv, [a]) -> (parent.csv, [x])", "position 2: no table of the name 'chlid.csv'"),
        ("child[a, b] <= parent.x", "position 16: 2 columns on the left, 1 column on the right"),
        ("child.a, parent.x <= parent[x, y]", "position 1: columns of two tables on one side: child.a and parent.x"),
        ("child[a, a] <= parent[x, y]", "position 1: a column that stands twice on one side: child.a"),
        ("child.a <= parent.x <= child.b", "position 21: expected a comma or the end, found '<='"),
        ("child.`a <= parent.x", "position 7: a ` that is not closed"),
        ("child[a <= parent.x", "position 9: expected a comma or ], found '<='"),
        ("(child, [a] -> (parent, [x])", "position 13: expected ), found '->'"),
        ("", "position 1: expected table.column, but the text ends"),
        ("`child`, a <= parent.x", "position 8: expected a dot and the name of a column, found ','"),
        ("child. <= parent.x", "position 8: expected the name of a column, found '<='"),
    ],
)
def test_a_fault_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_ind(text, TABLES)
    assert said in str(caught.value), str(caught.value)
    assert "Accepted: child.a <= parent.b | " in str(caught.value)


def test_all_unknown_names_are_told_at_once() -> None:
    with pytest.raises(RuleError) as caught:
        parse_ind("child.q <= patern.x", TABLES)
    assert "position 7: table 'child' has no column of the name 'q'" in str(caught.value)
    assert "position 12: no table of the name 'patern'. Did you mean 'parent'?" in str(caught.value)


def test_a_dependency_that_can_not_be_is_refused() -> None:
    with pytest.raises(RuleError, match="inclusion dependency: a side without columns"):
        InclusionDependency((), ())
    with pytest.raises(RuleError, match="1 column on the left, 2 columns on the right"):
        InclusionDependency((Attribute("t", "a"),), (Attribute("u", "a"), Attribute("u", "b")))
    with pytest.raises(RuleError, match="'referenced' of an inclusion dependency: 3"):
        ind_of_record({"dependent": "child.a", "referenced": 3}, TABLES)
    assert two("child.a", "parent.x") < two("child.b", "parent.x")
