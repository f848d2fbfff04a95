"""How constraints are written, named and told apart."""

from __future__ import annotations

import pickle

import pytest

from tuplewise.engine.dc.constraint import NULL, Constant, DenialConstraint, Operator, Predicate
from tuplewise.engine.table.schema import quote_name


def same(column: str, operator: Operator) -> Predicate:
    return Predicate("t", column, operator, "u", column)


def across(left: str, operator: Operator, right: str) -> Predicate:
    return Predicate("t", left, operator, "u", right)


def within(left: str, operator: Operator, right: str) -> Predicate:
    return Predicate("t", left, operator, "t", right)


def beside(column: str, operator: Operator, text: str, type_: str, role: str = "t") -> Predicate:
    return Predicate(role, column, operator, None, Constant(text, type_))  # type: ignore[arg-type]


def test_canonical_text_and_id() -> None:
    constraint = DenialConstraint((same("a", "=="), same("b", "!=")))
    assert str(constraint) == constraint.rule == "not(t.a == u.a and t.b != u.b)"
    assert constraint.id == "42e26a09c76f", "the id of a rule is a promise between versions"
    assert [p.triple for p in constraint.predicates] == [("t.a", "==", "u.a"), ("t.b", "!=", "u.b")]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a", "a"),
        ("_x9", "_x9"),
        ("9x", "`9x`"),
        ("", "``"),
        ("ident(String)", "`ident(String)`"),
        ("two words", "`two words`"),
        ("a.b", "`a.b`"),
        ("`", "````"),
        ("größe", "`größe`"),
        ("and", "`and`"),
        ("Not", "`Not`"),
        ("line\nbreak", r"`line`\n`break`"),
    ],
)
def test_names_are_quoted_where_they_are_no_plain_word(name: str, written: str) -> None:
    assert quote_name(name) == written


def test_a_name_with_a_dot_makes_the_operand_a_pair() -> None:
    assert across("a.b", "<", "c").triple == (("t", "a.b"), "<", "u.c")
    assert str(across("a.b", "<", "c")) == "t.`a.b` < u.c"


@pytest.mark.parametrize(
    ("predicates", "kind"),
    [
        ((same("a", "=="),), "key"),
        ((same("a", "=="), same("b", "==")), "key"),
        ((same("a", "!="),), "constant"),
        ((same("a", "=="), same("b", "!=")), "fd"),
        ((same("a", "!="), same("b", "=="), same("c", "==")), "fd"),
        ((same("a", "!="), same("b", "!=")), "dc"),
        ((same("a", "<"), same("b", ">=")), "od"),
        ((same("a", "=="), same("b", "<"), same("c", ">")), "od"),
        ((same("a", "<"), same("b", "!=")), "dc"),
        ((same("a", "<="),), "dc"),
        ((across("a", "==", "b"),), "dc"),
        ((within("a", "==", "b"), same("c", "==")), "dc"),
        ((beside("a", "==", "5", "integer"),), "dc"),
        ((same("a", "=="), beside("a", "!=", "5", "integer")), "dc"),
        ((Predicate("t", "a", "is", None, NULL),), "dc"),
    ],
)
def test_kind(predicates: tuple[Predicate, ...], kind: str) -> None:
    assert DenialConstraint(predicates).kind == kind


def test_mirror() -> None:
    constraint = DenialConstraint((same("a", "<"), across("a", ">=", "b"), within("a", "!=", "b")))
    assert str(constraint.mirror()) == "not(t.a > u.a and t.b <= u.a and u.a != u.b)"
    assert constraint.mirror().mirror() == constraint
    assert not constraint.is_symmetric
    assert DenialConstraint((same("a", "=="), same("b", "!="))).is_symmetric


def test_one_tuple() -> None:
    assert DenialConstraint((within("a", "==", "b"),)).names_one_tuple
    assert not DenialConstraint((within("a", "==", "b"), same("a", "=="))).names_one_tuple


def test_constraints_are_values() -> None:
    one = DenialConstraint((same("a", "=="), same("b", "!=")))
    two = DenialConstraint((same("a", "=="), same("b", "!=")))
    assert one == two
    assert hash(one) == hash(two)
    assert one.rule
    assert pickle.loads(pickle.dumps(one)) == one
    assert pickle.loads(pickle.dumps(one)).rule == one.rule
    key = DenialConstraint((same("z", "=="),))
    assert sorted([one, key]) == [key, one]
    assert len(one) == 2
    with pytest.raises(AttributeError):
        one.predicates = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("constant", "written", "record"),
    [
        (Constant("it's", "text"), "'it''s'", {"value": "it's", "type": "text"}),
        (Constant("", "text"), "''", {"value": "", "type": "text"}),
        (Constant("5", "text"), "'5'", {"value": "5", "type": "text"}),
        (Constant("9007199254740993", "integer"), "9007199254740993", {"value": 9007199254740993, "type": "integer"}),
        (Constant("1.50", "decimal"), "1.50", {"value": "1.50", "type": "decimal"}),
        (Constant("1e300", "double"), "1e300", {"value": "1e300", "type": "double"}),
        (Constant("false", "boolean"), "false", {"value": False, "type": "boolean"}),
        (NULL, "null", {"value": None, "type": "null"}),
    ],
)
def test_constants_are_written_and_recorded(constant: Constant, written: str, record: dict[str, object]) -> None:
    predicate = Predicate("u", "a.b", "is" if constant == NULL else "<=", None, constant)
    assert str(predicate) == f"u.`a.b` {predicate.operator} {written}"
    assert predicate.triple == (("u", "a.b"), predicate.operator, record)
    assert (predicate.columns, predicate.right) == (("a.b",), constant)
    assert predicate.roles == {"u"}


def test_mirror_with_constants() -> None:
    constraint = DenialConstraint(
        (same("a", "<"), beside("b", ">", "5", "integer"), Predicate("u", "b", "is", None, NULL))
    )
    assert str(constraint.mirror()) == "not(t.a > u.a and u.b > 5 and t.b is null)"
    assert constraint.mirror().mirror() == constraint
    assert not constraint.is_symmetric
    both = (beside("b", "==", "5", "integer"), beside("b", "==", "5", "integer", "u"))
    assert DenialConstraint((same("a", "=="), *both)).is_symmetric
    assert DenialConstraint(both[1:]).names_one_tuple
    assert not DenialConstraint(both).names_one_tuple
    assert constraint.columns == ("a", "b")


def test_the_same_rule_has_one_text_and_id_when_normalised() -> None:
    one = DenialConstraint(
        (same("b", "!="), Predicate("u", "c", "<", "t", "a"), within("d", ">", "c"), same("b", "!="))
    )
    two = DenialConstraint(
        (within("c", "<", "d"), Predicate("t", "a", ">", "u", "c"), Predicate("u", "b", "!=", "t", "b"))
    )
    assert one.normalised() == two.normalised()
    assert one.normalised().rule == "not(t.a > u.c and t.b != u.b and t.c < t.d)"
    assert one.normalised().id == two.normalised().id != one.id
    assert DenialConstraint((Predicate("u", "b", "<", "u", "a"),)).normalised().rule == "not(t.a > t.b)"
    assert one.normalised().normalised() == one.normalised()
