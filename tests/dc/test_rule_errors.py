"""Texts that are no rules: the message says where, what was expected, what is near, and which forms there are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuplewise.engine.dc.rule_text import read_rule, read_rules
from tuplewise.engine.errors import RuleError

COLUMNS = ["a", "b", "zip", "city", "State"]


@pytest.mark.parametrize(
    ("text", "position", "what"),
    [
        ("", 1, "expected a rule, but the text ends"),
        ("hello", 1, "expected a rule, found 'hello'"),
        ("t.a == u.a", 1, r"expected a rule, found 't\.a'\. Put its comparisons into not\(\.\.\.\)"),
        ("not", 1, "expected a rule"),
        ("not t.a == u.a", 1, "expected a rule"),
        ("!t.a == u.a", 2, r"expected \( or \{ behind the negation, found 't\.a'"),
        ("not()", 5, "expected a predicate such as t.a == u.a"),
        ("not(t.a == u.a", 15, r"expected `and` or \), but the text ends"),
        ("not(t.a == u.a}", 15, r"expected `and` or \), found '}'"),
        ("not(t.a == u.a) and", 17, "expected the end of the rule, found 'and'"),
        ("not(t.a == u.a and)", 19, "expected a predicate such as t.a == u.a"),
        ("not(t.a == u.a or t.b == u.b)", 16, "expected `and` .*no `or`: write a rule for each part"),
        ("not(t.a ~ u.a)", 9, "expected a comparison"),
        ("not(t.a <=> u.a)", 11, "expected a column such as t.a or a constant"),
        ("not(t.a in (1, 2))", 9, "expected a comparison"),
        ("not(t.a == u.`a)", 14, "a ` that is not closed.*Double it"),
        ("not(t.a == 'x)", 12, "a ' that is not closed"),
        ("not(t. == u.a)", 8, "expected the name of a column"),
        ("not(`a` == u.a)", 5, "Put the tuple in front of a column"),
        ("not(t.a == 007)", 12, "leading zeros.*Write '007' in quotes"),
        ("not(t.a == 1e999)", 12, "too large or too small"),
        ("not(t.a == 1e-999)", 12, "too large or too small"),
        ("not(t.a == " + "1" * 39 + ")", 12, "more than 38 digits"),
        ("not(5 == 5)", 5, "two constants"),
        ("not(5 is null)", 5, "a constant before `is null`"),
        ("not(t.a is 5)", 12, "expected null, found '5'"),
        ("not(t.a == null)", 12, "Write `t.a is null`"),
        ("not(null != t.a)", 5, "Write `t.a is null` or `t.a is not null`"),
        ("not(t.a == u.a and t.a == s.a)", 27, "a third tuple, 's'"),
        ("∀t,s: ¬(u.a == s.a)", 9, "tuple 'u' is not declared. Declared: t, s"),
        ("∀: ¬(u.a == s.a)", 2, "expected the name of a tuple"),
        ("∀t∈: ¬(t.a == 5)", 4, "expected the name of a table"),
        ("not(t.a == b)", 12, "'b' is a column, but of which tuple. Write t.b or u.b"),
        ("!(t.a == s)", 10, "'s' is neither a column of a tuple nor a constant"),
        ("not(t.a == Texas)", 12, "Write 'Texas' for text"),
        (
            "!(s.State == New York)",
            18,
            "expected `and` or .*rules_syntax='desbordante' takes bare text of several words",
        ),
        ("t1&t2", 6, "expected &"),
        ("t1&t2&t3&EQ(t1.a,t2.a)", 7, "expected a comparison such as EQ"),
        ("t1&t2&XQ(t1.a,t2.a)", 7, "no comparison of the name 'XQ'. Known: EQ, IQ"),
        ("t1&t2&EQ(t1.a,t2.a)&", 21, "expected a comparison such as EQ"),
        ("t1&EQ(t1.a,t2.a)", 12, "tuple 't2' is not declared"),
        ("t1&t2&EQ(t1.a t2.a)", 15, "expected a comma between the two sides"),
        ("t1&t2&EQ(t1.a,t2.a", 19, "expected .* behind the second side"),
        ("a -> ", 6, "expected the name of a column"),
        ("a, -> b", 4, "expected the name of a column"),
        ("t.a == u.a -> b", 5, "names of columns; other names than plain words stand in back-quotes"),
        ("[a, b -> c", 7, r"expected a comma or \]"),
        ("[]", 3, "expected the name of a column"),
        ("a -> b -> city", 8, "expected the end of the rule, found '-'"),
        ("¬{ t.a == s.a ∧ ", 17, "expected a column such as t.a or a constant, but the text ends"),
    ],
)
def test_where_and_what(text: str, position: int, what: str) -> None:
    with pytest.raises(RuleError, match=rf"rule, position {position}: .*{what}") as caught:
        read_rule(text, columns=COLUMNS)
    lines = str(caught.value).splitlines()
    assert lines[1] == "    " + text
    assert lines[2] == "    " + " " * (position - 1) + "^"
    assert lines[3].startswith("Accepted: not(t.a == u.a and t.b != u.b) | ")


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("!(t.nosuch == s.a)", 5, "Known: 'a', 'b', 'zip', 'city', 'State'"),  # A1
        ("not(t.zap == u.zip)", 7, "Did you mean 'zip'?"),
        ("not(t.ZIP == u.zip)", 7, "Did you mean 'zip'?|Known: 'zip'"),
        ("not(t.`ci ty` == u.city)", 7, "Did you mean 'city'?"),
        ("t1&t2&EQ(t1.citty,t2.city)", 13, "Did you mean 'city'?"),
        ("zip, citi -> State", 6, "Did you mean 'city'?"),
        ("[zip, citi]", 7, "Did you mean 'city'?"),
        ("¬(t0.tab.csv.zap==t1.tab.csv.zip)", 6, "Did you mean 'zip'?"),
    ],
)
def test_unknown_columns(text: str, position: int, hint: str) -> None:
    with pytest.raises(RuleError, match=rf"rule, position {position}: no column of the name '.*(?:{hint})"):
        read_rule(text, columns=COLUMNS)


def test_all_unknown_columns_of_a_text_are_in_one_error() -> None:
    with pytest.raises(RuleError) as caught:
        read_rules("not(t.x1 == u.x2 and t.a == u.x3); x4 -> a; not(5 == 5)", columns=COLUMNS)
    text = str(caught.value)
    assert [f"position {at}:" in text for at in (7, 15, 31, 36, 49)] == [True] * 5
    assert text.count("Accepted:") == 1


def test_the_caret_stands_below_wide_signs_and_in_long_texts() -> None:
    with pytest.raises(RuleError) as caught:
        read_rule("not(t.`名\n前` == u.x y)")
    _, shown, caret, *_ = str(caught.value).splitlines()
    assert shown == "    not(t.`名 前` == u.x y)"
    assert caret == "    " + " " * 20 + " ^"  # two signs are two cells wide
    long = "not(" + " and ".join(f"t.c{i} == u.c{i}" for i in range(99)) + " and t.a & & t.b)"
    with pytest.raises(RuleError) as caught:
        read_rule(long)
    _, shown, caret, *_ = str(caught.value).splitlines()
    assert len(shown) < 120
    assert shown[caret.index("^") :].startswith("& & t.b")


@pytest.mark.parametrize("text", ["not(t.a == u.a", "t1&t2&EQ(t1.a", "a, b ->", "¬{", "∀", "[", "[a,", "`", "!(t.`"])
@pytest.mark.parametrize("syntax", ["auto", "holoclean", "desbordante"])
def test_cut_texts_are_errors_of_ours(text: str, syntax: str) -> None:
    with pytest.raises(RuleError, match="position"):
        read_rule(text, syntax=syntax)


PIECES = [
    "not(", "!(", "¬{", "∀t,s:", "t.a", "s.b", "t1&t2&", "EQ(t1.a,t2.a)", "t0.x.csv.a", " == ", "=", "<", "≠", " and ",
    "&", "^", "∧", ",", ")", "}", "[a, b]", "->", "a", "5", "-1.5", "'x'", '"y"', "`a b`", "'", '"', "`", " is null",
    " is not ", "null", ";", "Texas", ".", " ", "\n", "名", "or", "#", "0",
]  # fmt: skip


@settings(max_examples=600, deadline=None, derandomize=True)
@given(
    st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text(max_size=20)),
    st.sampled_from([None, COLUMNS, ["a b", "名", "x.csv.a", "", "a"]]),
    st.sampled_from(["auto", "holoclean", "desbordante"]),
)
def test_any_text_is_a_rule_that_can_be_read_again_or_an_error_of_ours(
    text: str, columns: list[str] | None, syntax: str
) -> None:
    try:
        found = read_rules(text, columns=columns, syntax=syntax)
    except RuleError:
        return
    assert found
    for rule in found:
        assert read_rule(rule.rule, columns=columns) == rule
        assert columns is None or set(rule.columns) <= set(columns)
