"""Rules written for other tools and read back: the same rule, or an error that says why not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuplewise.engine.dc.constraint import NULL, OPERATORS, Constant, DenialConstraint, Predicate
from tuplewise.engine.dc.rule_text import read_rule, write_rule
from tuplewise.engine.dc.rule_text.files import rule_of_triples
from tuplewise.engine.errors import InputError, RuleError

HARD = [
    "",
    " ",
    "`",
    "``",
    '"',
    "'",
    "and",
    "a and t.b",
    "a.b",
    "t",
    "0",
    "a==b",
    "a) and (",
    "EQ",
    "not",
    "->",
    ";",
    "]",
    "名前",
    "\n",
]
HARD_TEXT = [
    "",
    "'",
    "''",
    "it's",
    '"',
    "null",
    "true",
    "5",
    "x and t.a == 1",
    "a,b",
    ") & (",
    "t.a",
    "\\",
    "#",
    "Ä",
    "\n",
    "\0",
]


def numbers() -> st.SearchStrategy[Constant]:
    digits = st.integers(-(10**37), 10**37)
    whole = digits.map(lambda n: Constant(str(n), "integer"))
    parts = st.tuples(st.integers(-999, 999), st.text("0123456789", min_size=1, max_size=9))
    fraction = parts.map(lambda p: Constant(f"{p[0]}.{p[1]}", "decimal"))
    double = st.tuples(st.integers(-999, 999).filter(bool), st.integers(-200, 200)).map(
        lambda p: Constant(f"{p[0]}e{p[1]}", "double")
    )
    return st.one_of(whole, fraction, double)


def constants() -> st.SearchStrategy[Constant]:
    text = st.one_of(st.text(max_size=8), st.sampled_from(HARD_TEXT)).map(lambda t: Constant(t, "text"))
    return st.one_of(text, numbers(), st.sampled_from([Constant("true", "boolean"), Constant("false", "boolean")]))


def names() -> st.SearchStrategy[str]:
    return st.one_of(st.text(max_size=8), st.sampled_from(HARD), st.text("abc", min_size=1, max_size=2))


def predicates(name: st.SearchStrategy[str], constant: st.SearchStrategy[Constant]) -> st.SearchStrategy[Predicate]:
    role, operator = st.sampled_from(["t", "u"]), st.sampled_from(OPERATORS)
    return st.one_of(
        st.builds(Predicate, role, name, operator, role, name),
        st.builds(Predicate, role, name, operator, st.none(), constant),
        st.builds(Predicate, role, name, st.sampled_from(["is", "is not"]), st.none(), st.just(NULL)),
    )


def rules(name: st.SearchStrategy[str], constant: st.SearchStrategy[Constant]) -> st.SearchStrategy[DenialConstraint]:
    several = st.lists(predicates(name, constant), min_size=1, max_size=4)
    return several.map(lambda found: DenialConstraint(tuple(found)))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(rules(names(), constants()), st.lists(names(), max_size=3))
def test_any_rule_round_trips_through_text_and_json(rule: DenialConstraint, others: list[str]) -> None:
    wanted = rule.normalised()
    assert wanted.normalised() == wanted
    for columns in (None, [*rule.columns, *others]):
        for text in (rule.rule, wanted.rule, write_rule(rule, "logic"), write_rule(rule)):
            assert read_rule(text, columns=columns) == wanted
    assert rule_of_triples(json.loads(json.dumps([p.triple for p in rule.predicates]))) == wanted
    if not rule.names_one_tuple:
        assert read_rule(rule.mirror().rule) == rule.mirror().normalised()


def plain_names() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(["a", "b", "zip", "Phone No.", "größe", "EQUAL", "x_1"]), names())


def plain_constants() -> st.SearchStrategy[Constant]:
    return st.one_of(
        st.sampled_from(["texas", "new york", "TX", "a-b"]).map(lambda t: Constant(t, "text")), constants()
    )


@settings(max_examples=400, deadline=None, derandomize=True)
@given(rules(plain_names(), plain_constants()))
def test_what_is_written_for_other_tools_reads_back_or_is_refused(rule: DenialConstraint) -> None:
    for syntax in ("holoclean", "desbordante", "nadeef"):
        try:
            written = write_rule(rule, syntax)
        except RuleError:
            continue  # what the refusals say is tested below
        mode = "auto" if syntax == "nadeef" else syntax
        assert read_rule(written, syntax=mode) == rule.normalised()


@pytest.mark.parametrize(
    ("rule", "syntax", "written"),
    [
        ("a, b -> c", "holoclean", "t1&t2&EQ(t1.a,t2.a)&EQ(t1.b,t2.b)&IQ(t1.c,t2.c)"),
        ("not(t.a != u.a and t.b > u.c)", "holoclean", "t1&t2&GT(t1.b,t2.c)&IQ(t1.a,t2.a)"),
        ("not(t.sex == 'female' and t.b <= t.c)", "holoclean", 't1&EQ(t1.sex,"female")&LTE(t1.b,t1.c)'),
        ("not(t.a != u.a and t.b == u.b)", "desbordante", "!(t.a != s.a and t.b == s.b)"),
        ("not(t.city == 'New York (City)')", "desbordante", "!(t.city == New York (City))"),
        ("not(t.`Phone No.` < u.b and u.c > 5)", "desbordante", "!(t.Phone No. < s.b and s.c > 5)"),
        ("not(t.a == u.a and t.b >= 1.5 and t.c == 'TX')", "nadeef", "not(t1.a=t2.a&t1.b>=1.5&t1.c=TX)"),
        ("not(t.a == u.a and t.b != u.c)", "logic", "∀t,u: ¬(t.a = u.a ∧ t.b ≠ u.c)"),
        ("not(t.a is null and t.`b c` <= 'x')", "logic", "∀t: ¬(t.`b c` ≤ 'x' ∧ t.a is null)"),
    ],
)
def test_written(rule: str, syntax: str, written: str) -> None:
    assert write_rule(read_rule(rule), syntax) == written


@pytest.mark.parametrize(
    ("rule", "syntax", "why"),
    [
        ("not(t.a != u.a)", "holoclean", "loses a first IQ"),
        ("not(t.`a b` == u.`a b`)", "holoclean", "names there hold no blanks"),
        ("not(t.`a.b` == u.`a.b`)", "holoclean", "names there hold no blanks"),
        ("not(t.GTIN == u.GTIN)", "holoclean", "nor EQ, IQ, LT, GT"),
        ("not(t.a == 'Texas')", "holoclean", "lower-cased and trimmed"),
        ("not(t.a == 5)", "holoclean", "put the value in single quotes"),
        ("not(t.a == 'a,b')", "holoclean", "constants there hold no , & or quotes"),
        ("not(t.a is null)", "holoclean", "no test for null"),
        ("not(t.`0` == u.`0`)", "desbordante", "a number there counts columns"),
        ("not(t.`r and d` == u.x)", "desbordante", "names there hold no comparison signs"),
        ("not(t.a == 'salt and pepper')", "desbordante", "constants there hold no comparison signs"),
        ("not(t.a == 's.x')", "desbordante", "nor begin as columns"),
        ("not(t.a == '5')", "desbordante", "this is a number or nothing"),
        ("not(t.a == '')", "desbordante", "this is a number or nothing"),
        ("not(t.a == true)", "desbordante", "its constants are text and numbers"),
        ("not(t.a is not null)", "desbordante", "no test for null"),
        ("not(t.a == u.a and u.b == 5)", "nadeef", "begins with the first tuple"),
        ("not(t.a == 'New York')", "nadeef", "constants there hold no blanks"),
        ("not(t.`a b` == u.a)", "nadeef", "names there hold no blanks"),
        ("not(t.a == 'true')", "nadeef", "signs that the syntax takes for its own"),
    ],
)
def test_refused(rule: str, syntax: str, why: str) -> None:
    with pytest.raises(RuleError, match=rf"rule can't be written for {syntax}: .*(?i:{why})"):
        write_rule(read_rule(rule), syntax)


def test_an_unknown_syntax_is_refused() -> None:
    with pytest.raises(InputError, match="syntax to write rules in: 'sql'; allowed: 'tuplewise', 'holoclean'"):
        write_rule(read_rule("a -> b"), "sql")


@pytest.mark.outside
def test_desbordante_reads_what_is_written_for_it() -> None:
    """Its verifier finds the violations of our texts: each table breaks its rule, and a turned sign would mend it."""
    desbordante = pytest.importorskip("desbordante", reason="the peer is not installed: pip install -e '.[peers]'")
    import pandas as pd

    frame = pd.DataFrame({"x": [1, 2], "y": [5, 6], "State": ["Texas", "New York"], "Phone No.": ["a", "a"]})
    cases: list[tuple[str, bool]] = [
        ("not(t.`Phone No.` == u.`Phone No.` and t.State != u.State)", False),
        ("not(t.x < u.x and t.y < u.y)", False),
        ("not(t.x < u.x and t.y > u.y)", True),
        ("not(t.State == 'New York' and t.x == 2)", False),
        ("not(t.State == 'New York' and t.x == 1)", True),
    ]
    for rule, holds in cases:
        checker: Any = desbordante.dc_verification.algorithms.Default()
        checker.load_data(table=frame)
        checker.execute(denial_constraint=write_rule(read_rule(rule), "desbordante"))
        assert checker.dc_holds() == holds, rule
