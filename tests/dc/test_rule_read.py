"""Rules read from every syntax in use: each text beside the one text that all its spellings share."""

from __future__ import annotations

import pytest

from tuplewise.engine.dc.constraint import Constant
from tuplewise.engine.dc.rule_text import read_rule, read_rules
from tuplewise.engine.errors import InputError, RuleError

FD = "not(t.a == u.a and t.b != u.b)"
WEIRD = [
    "Phone No.",
    "a.b",
    "a`b",
    "my col",
    "select",
    "naïve 名",
    "r and d",
    "[x]",
    "ident(String)",
    'say "hi"',
    "a<b",
]


@pytest.mark.parametrize(
    "text",
    [
        # ours, however blanks and signs are set
        "not(t.a == u.a and t.b != u.b)",
        "  not ( t . a==u . a   AND t.b<>u.b )  ",
        "NOT(t.a=u.a & t.b≠u.b)",
        'not(t.`a` == u."a" and t.b != u.`b`)',
        "not((t.a == u.a) and (t.b != u.b))",
        "\ufeffnot(u.b != t.b, u.a = t.a)",
        "not(t.a == u.a and t.a == u.a and u.a == t.a and t.b != u.b)",
        # Desbordante: its verifier's text (A1), its miner's
        "!(t.a==s.a and t.b!=s.b)",
        "!(t.a == s.a AND t.b != s.b)",
        "!(s.b != t.b and s.a == t.a)",
        "¬{ t.a == s.a ∧ t.b != s.b }",
        # FastADC Java, Metanome
        "¬{ t0.a == t1.a ∧ t0.b <> t1.b }",
        "¬{t1.a == t0.a ∧ t1.b <> t0.b}",
        "¬(t0.tab.csv.a==t1.tab.csv.a^t0.tab.csv.b<>t1.tab.csv.b)",
        # NADEEF
        "not(t1.a=t2.a&t1.b!=t2.b)",
        # papers
        "∀t,s∈R: ¬(t.a = s.a ∧ t.b ≠ s.b)",
        "∀t,t'∈R, ¬(t.a = t'.a ∧ t.b ≠ t'.b)",
        "∀ tα, tβ ∈ R : ¬(tα.a = tβ.a ^ tα.b ¬= tβ.b)",
        "∀t∈R ∀s∈R. ~(t.a = s.a, t.b <> s.b)",
        "forall t, u: not(t.a == u.a and t.b != u.b)",
        "for all t₁, t₂ in R: ¬(t₁.a = t₂.a && t₁.b ≠ t₂.b)",
        "¬{ t.a = t′.a ∧ t.b ≠ t′.b }",
        # HoloClean and Delphi; a first IQ is kept (A1)
        "t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b)",
        "t1&t2&IQ(t1.b,t2.b)&EQ(t1.a,t2.a)",
        "t1 & t2 & eq( t1.a , t2.a ) & neq(t1.b, t2.b)",
        "t2&t1&EQ(t1.a,t2.a)&NE(t1.b,t2.b)",
        "not(EQ(t1.a,t2.a) & IQ(t1.b,t2.b))",
        # functional dependencies
        "a -> b",
        "a->b",
        "[a]->b",
        "{a} → {b}",
        "[t.a]->t.b",
        "[tab.csv.a]->tab.csv.b",
        '`a` -> "b"',
    ],
)
@pytest.mark.parametrize("columns", [None, ["b", "a"]])
def test_one_rule_in_many_spellings(text: str, columns: list[str] | None) -> None:
    assert read_rule(text, columns=columns).rule == FD


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("!(t.x < s.x and t.y > s.y)", "not(t.x < u.x and t.y > u.y)"),
        ("!(s.x > t.x and s.y < t.y)", "not(t.x < u.x and t.y > u.y)"),
        ("not(u.x < t.x and t.y > u.z)", "not(t.x > u.x and t.y > u.z)"),
        ("not(t2.x < t1.x)", "not(t.x > u.x)"),
        ("not(t1.x > t2.x)", "not(t.x > u.x)"),
        ("not(t1.x < t0.x)", "not(t.x > u.x)"),
        ("not(t'.x < t.x)", "not(t.x > u.x)"),
        ("not(u.x < t.x)", "not(t.x > u.x)"),
        ("not(x.a < y.a)", "not(t.a < u.a)"),  # other names: the first to appear is t
        ("not(y.a < x.a)", "not(t.a < u.a)"),
        ("∀x,y: not(y.a < x.a)", "not(t.a > u.a)"),
        ("b&a&LT(a.v,b.v)", "not(t.v > u.v)"),
        ("not(t.A < u.A and u.B < t.B)", "not(t.A < u.A and t.B > u.B)"),
        ("not(t.a < u.b and t.a < u.c and t.a != t.b)", "not(t.a != t.b and t.a < u.b and t.a < u.c)"),
        ("not(t.b >= t.a and u.a == u.b)", "not(t.a <= t.b and u.a == u.b)"),
        ("not(t.a > t.a)", "not(t.a < t.a)"),
    ],
)
def test_direction_is_kept_and_written_one_way(text: str, rule: str) -> None:
    assert read_rule(text).rule == rule


@pytest.mark.parametrize("variable", ["t", "u", "s", "t1", "t2", "t0", "x", "row", "t'"])
def test_the_one_tuple_of_a_rule_may_have_any_name(variable: str) -> None:
    found = read_rule(f"not({variable}.hi < {variable}.lo and {variable}.hi > 3)")
    assert found.rule == "not(t.hi < t.lo and t.hi > 3)"
    assert found.names_one_tuple


@pytest.mark.parametrize(
    ("written", "text", "type_"),
    [
        ("5", "5", "integer"),
        ("+5", "5", "integer"),
        ("-0", "0", "integer"),
        ("-12", "-12", "integer"),
        ("9007199254740993", "9007199254740993", "integer"),
        ("1.50", "1.50", "decimal"),
        (".5", "0.5", "decimal"),
        ("-0.0", "0.0", "decimal"),
        ("1e5", "1e5", "double"),
        ("1.5E+05", "1.5e5", "double"),
        ("2e-3", "2e-3", "double"),
        ("true", "true", "boolean"),
        ("False", "false", "boolean"),
        ("'Texas'", "Texas", "text"),
        ("'it''s'", "it's", "text"),
        ("''", "", "text"),
        ("'a and t.b == 5)'", "a and t.b == 5)", "text"),
        ("'x;y -> z # \\n'", "x;y -> z # \\n", "text"),
        ('"HoloClean"', "HoloClean", "text"),
        ('"a""b"', 'a"b', "text"),
        ("date '2024-01-31'", "2024-01-31", "text"),
        ("TIMESTAMP'2024-01-31 10:00:00'", "2024-01-31 10:00:00", "text"),
    ],
)
def test_constants(written: str, text: str, type_: str) -> None:
    for rule in (
        f"not(t.a == {written})",
        f"not({written} == t.a)",
        f"not(EQ(t.a,{written}))",
        f"t1&EQ(t1.a,{written})",
    ):
        (predicate,) = read_rule(rule).predicates
        assert predicate.right == Constant(text, type_)  # type: ignore[arg-type]
        assert (predicate.left_role, predicate.left, predicate.operator) == ("t", "a", "==")


def test_a_constant_on_the_left_turns_the_comparison() -> None:
    assert read_rule("not(5 < t.a and 'x' >= u.b)").rule == "not(t.a > 5 and u.b <= 'x')"


def test_null_tests() -> None:
    assert read_rule("not(t.a IS NULL and u.b is  NOT null)").rule == "not(t.a is null and u.b is not null)"
    assert read_rule("not(t.is is null)").rule == "not(t.is is null)"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("!(s.State == Texas)", "not(t.State == 'Texas')"),
        ("!(t.a == s.a and t.State == Texas)", "not(t.State == 'Texas' and t.a == u.a)"),
        ("not(t1.a=t2.a&t1.st!=TX)", "not(t.a == u.a and t.st != 'TX')"),
        ("¬(t0.tab.csv.a==t1.tab.csv.a^t0.tab.csv.st==TX)", "not(t.a == u.a and t.st == 'TX')"),
        ("¬(t0.tab.csv.age<5)", "not(t.age < 5)"),
        ("!(t.day == 2024-01-31)", "not(t.day == '2024-01-31')"),
    ],
)
def test_bare_words_are_text_in_the_shapes_that_know_no_quotes(text: str, rule: str) -> None:
    assert read_rule(text).rule == rule
    assert read_rule(text, columns=["a", "State", "st", "age", "day"]).rule == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("!(s.State == Texas)", "not(t.State == 'Texas')"),
        ("!(t.City == New York (City) and t.a == s.a)", "not(t.City == 'New York (City)' and t.a == u.a)"),
        ("!(t.Name == 'Texas')", "not(t.Name == '''Texas''')"),  # quotes are part of the text there
        ("!(t.Name == O'Neil)", "not(t.Name == 'O''Neil')"),
        ("!(5 <= t.a and 1.5 > s.a)", "not(t.a >= 5 and u.a < 1.5)"),
        ("!(t.zip == 007)", "not(t.zip == '007')"),
        ("!(t.a == true and t.b == null)", "not(t.a == 'true' and t.b == 'null')"),
        ("!(s.x > t.x and s.y < t.y)", "not(t.x < u.x and t.y > u.y)"),
        ("!(t.a==s.a and t.b!=s.b)", FD),
        ("¬{ t.a == s.b ∧ t.c <= s.c }", "not(t.a == u.b and t.c <= u.c)"),
        ("!(t.Phone No. == s.Phone No.)", "not(t.`Phone No.` == u.`Phone No.`)"),
        ("t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b)", FD),
        ("[a] -> b", FD),
    ],
)
def test_desbordante_mode(text: str, rule: str) -> None:
    assert read_rule(text, syntax="desbordante").rule == rule


def test_desbordante_mode_with_known_columns() -> None:
    columns = ["r and d", "a == b", "t", "City"]
    text = "!(t.r and d == s.r and d and t.a == b != s.0 and t.City == salt & pepper)"
    assert (
        read_rule(text, columns=columns, syntax="desbordante").rule
        == "not(t.City == 'salt & pepper' and t.`a == b` != u.`r and d` and t.`r and d` == u.`r and d`)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "!(t.a == salt and pepper)",
        "!(t.a == x == y)",
        "!(t.a == s.a AND t.b != s.b)",
        "!(t.a == )",
        "!(t.a == b",
        "!()",
    ],
)
def test_desbordante_mode_refuses_what_it_cannot_part(text: str) -> None:
    with pytest.raises(RuleError, match=r"position \d+"):
        read_rule(text, syntax="desbordante")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('t1&EQ(t1.a,"it\'s "so")")&IQ(t1.b,\'5\')', "not(t.a == 'it''s \"so\")' and t.b != '5')"),
        ('t1&t2&EQ(t1.a,t2.a)&EQ(t1.b,"a""b")', "not(t.a == u.a and t.b == 'a\"\"b')"),
        ("t1&GT(t1.age,5)&EQ(t1.sex,'female')", "not(t.age > 5 and t.sex == 'female')"),
    ],
)
def test_holoclean_mode_takes_literals_as_they_stand(text: str, rule: str) -> None:
    assert read_rule(text, syntax="holoclean").rule == rule


@pytest.mark.parametrize("name", WEIRD)
def test_any_name_in_quotes(name: str) -> None:
    """A11: with and without known columns, in back-quotes and double quotes, in every form that has tuples or names."""
    back, double = "`" + name.replace("`", "``") + "`", '"' + name.replace('"', '""') + '"'
    for columns in (None, WEIRD):
        for text in (
            f"not(t.{back} == u.{double})",
            f"!(s.{double} == t.{double})",
            f"t1&t2&EQ(t1.{back},t2.{back})",
            f"[{double}]",
            f"[{back}, {double}]",
        ):
            found = read_rule(text, columns=columns)
            assert {c for p in found.predicates for c in p.columns} == {name}
            assert read_rule(found.rule, columns=columns) == found
        assert read_rule(f"{double} -> {back}", columns=columns).columns == (name,)


@pytest.mark.parametrize("name", [n for n in WEIRD if "`" not in n and '"' not in n])
def test_known_names_need_no_quotes(name: str) -> None:
    for text in (f"not(t.{name} == u.{name})", f"!(s.{name}==t.{name})", f"t1&t2&EQ(t1.{name},t2.{name})"):
        (predicate,) = read_rule(text, columns=WEIRD).predicates
        assert predicate.columns == (name, name)


def test_the_longest_known_name_is_meant_and_a_word_goes_before_signs() -> None:
    (p,) = read_rule("not(t.Phone No. == u.Phone)", columns=["Phone", "Phone No."]).predicates
    assert p.columns == ("Phone No.", "Phone")
    (p,) = read_rule("not(t.a == u.b)", columns=["a", "b", "a == u.b"]).predicates
    assert p.columns == ("a", "b")


def test_names_with_dots_are_names_where_t0_and_t1_do_not_say_metanome() -> None:
    assert read_rule("not(t.a.b == u.a.b)").rule == "not(t.`a.b` == u.`a.b`)"
    with pytest.raises(RuleError, match=r"no column of the name 'a\.b'"):
        read_rule("not(t.a.b == u.a.b)", columns=["a", "b"])


def test_metanome_names_end_in_known_columns() -> None:
    columns = ["Phone No.", "No.", "a.b", "b"]
    text = "¬(t0.x.y.csv.Phone No.==t1.x.y.csv.Phone No.^t0.x.y.csv.a.b<>t1.x.y.csv.b)"
    assert read_rule(text, columns=columns).rule == "not(t.`Phone No.` == u.`Phone No.` and t.`a.b` != u.b)"
    assert read_rule("[x.csv.a.b, x.csv.b]->x.csv.No.", columns=columns).columns == ("No.", "a.b", "b")
    with pytest.raises(RuleError, match="names of two tables, 'x' and 'y'"):
        read_rule("¬(t0.x.b==t1.y.b)", columns=columns)


def test_numbers_of_columns() -> None:
    assert read_rule("!(t.0 == s.0 and t.1 != s.1)", columns=["a", "b"]).rule == FD
    assert read_rule("!(t.0 == s.0)", columns=["a", "0"]).rule == "not(t.`0` == u.`0`)"
    with pytest.raises(RuleError, match="no column of the name '2', and numbers of columns are 0 to 1"):
        read_rule("!(t.2 == s.0)", columns=["a", "b"])


def test_several_rules_in_one_text() -> None:
    assert [r.rule for r in read_rules("a -> b; t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b);not(t.`x;y` == 'a;b') ;")] == [
        FD,
        FD,
        "not(t.`x;y` == 'a;b')",
    ]
    assert [r.rule for r in read_rules("[a, b] -> c, d")] == [
        "not(t.a == u.a and t.b == u.b and t.c != u.c)",
        "not(t.a == u.a and t.b == u.b and t.d != u.d)",
    ]
    with pytest.raises(RuleError, match="one rule was expected, and the text holds: 2"):
        read_rule("a -> b, c")


def test_dependencies_and_keys() -> None:
    assert read_rule("Phone No., first name -> City", columns=["City", "first name", "Phone No."]).kind == "fd"
    assert read_rule("Phone No. -> City").columns == ("City", "Phone No.")
    assert read_rule("a, b, c -> d", columns=["a, b", "c", "d"]).columns == ("a, b", "c", "d")
    assert read_rule("[] -> c").rule == read_rule("-> c").rule == "not(t.c != u.c)"
    assert read_rule("[a, b]").rule == read_rule("[t.a, t.b]").rule == "not(t.a == u.a and t.b == u.b)"
    assert read_rule("[a]").kind == "key"
    assert read_rule("[t.a]", columns=["a"]).rule == "not(t.a == u.a)"
    assert read_rule("[t.a]", columns=["a", "t.a"]).rule == "not(t.`t.a` == u.`t.a`)"
    with pytest.raises(RuleError, match="may be a column, or a column of a table"):
        read_rule("[t.a]")


def test_an_unknown_syntax_is_refused() -> None:
    with pytest.raises(InputError, match="rules syntax: 'yaml'; allowed: 'auto', 'holoclean', 'desbordante'"):
        read_rule("a -> b", syntax="yaml")
