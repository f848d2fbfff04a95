"""What is shown and what is folded: nothing shown follows from what is shown before, all that is folded follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import profile as oracle
from profile_tables import table_of

import tuplewise as tw
from tuplewise.engine.options import ProfileOptions
from tuplewise.engine.profile.cover import cover
from tuplewise.engine.profile.rule import Listed, Rule
from tuplewise.engine.profile.search import RuleSearch
from tuplewise.engine.run import Run

COLUMNS = 6


def fd(left: str, right: str, score: float = 1.0, strength: float = 1.0) -> Rule:
    return Rule("fd", columns(left), columns(right), "", 10, 0, 9.0, strength, score)


def key(left: str, score: float = 1.0) -> Rule:
    return Rule("key", columns(left), (), "", 10, 0, 9.0, 1.0, score)


def od(context: str, pair: str, score: float = 1.0, sense: str = "ascending") -> Rule:
    return Rule("od", columns(context), columns(pair), sense, 10, 0, 9.0, 1.0, score)


def row(left: str, sense: str, right: str, score: float = 1.0) -> Rule:
    return Rule("row", columns(left), columns(right), sense, 10, 0, 9.0, 1.0, score)


def constant(column: str, score: float = 1.0) -> Rule:
    return Rule("constant", (), columns(column), "", 10, 0, 9.0, 1.0, score)


def columns(letters: str) -> tuple[int, ...]:
    return tuple("ABCDEF".index(letter) for letter in letters)


@st.composite
def rules(draw: st.DrawFn) -> list[Rule]:
    """Different rules of all kinds about six columns."""
    found: dict[tuple[object, ...], Rule] = {}
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["fd", "fd", "fd", "key", "od", "row", "constant"]))
        order = draw(st.permutations(range(COLUMNS)))
        size = draw(st.integers(0, 2)) if kind == "od" else draw(st.integers(1, 3))
        left, right = tuple(sorted(order[:size])), order[3:4]
        sense = ""
        if kind == "od":
            sense, right = draw(st.sampled_from(["ascending", "descending"])), sorted(order[3:5])
        elif kind == "row":
            sense, left = draw(st.sampled_from(["==", "<", "<="])), tuple(order[:1])
        elif kind != "fd":
            left, right = (left, []) if kind == "key" else ((), right)
        strength, score = draw(st.sampled_from([0.95, 0.995, 1.0])), draw(st.sampled_from([1.0, 2.0, 3.0, 4.0]))
        rule = Rule(kind, left, tuple(right), sense, 10, 0, 9.0, strength, score)  # type: ignore[arg-type]
        found.setdefault((kind, left, frozenset(right)), rule)
    return list(found.values())


Known = list[tuple[set[int], set[int]]]


def implications(listed: Iterable[Listed], count: int) -> Known:
    """What shown rules determine; pairs of equivalent columns determine each other."""
    known: Known = []
    for one in listed:
        rule = one.rule
        if rule.kind == "key":
            known.append((set(rule.left), set(range(count))))
        elif rule.kind in ("fd", "constant") or rule.sense == "==":
            known.append((set(rule.left), set(rule.right)))
        known += [side for a, b in one.equivalent for side in (({a}, {b}), ({b}, {a}))]
        if rule.sense == "==":
            known.append((set(rule.right), set(rule.left)))
    return known


def orders(listed: Iterable[Listed], count: int) -> set[tuple[int, int, bool]]:
    """Pairs of columns, all that follow: at most, or (True) below."""
    found = {(c, c, False) for c in range(count)}
    for one in listed:
        if one.rule.kind == "row":
            (a, b), sense = one.rule.columns, one.rule.sense
            found |= {(a, b, sense == "<")} | ({(b, a, False)} if sense == "==" else set())
    return oracle.transitive(found)


def follows(rule: Rule, listed: Sequence[Listed], count: int = COLUMNS) -> bool:
    """Whether a rule follows from those listed, by the axioms of each kind."""
    closure = oracle.closure(rule.left, implications(listed, count))
    if rule.kind == "key":
        return closure == set(range(count))
    if rule.kind in ("fd", "constant"):
        return rule.kind == "fd" and rule.right[0] in closure
    a, b = rule.columns[-2:]
    if rule.kind == "row":
        kept = [one for one in listed if one.rule.sense == "=="] if rule.sense == "==" else listed
        known = orders(kept, count)
        return (a, b, True) in known or (rule.sense != "<" and (a, b, False) in known)
    known = {
        (*one.rule.columns[-2:], -1 if one.rule.sense == "descending" else 1)
        for one in listed
        if one.rule.sense == "==" or (one.rule.kind == "od" and set(one.rule.left) <= closure)
    }
    determined = {(x, y) for x in range(count) for y in oracle.closure([*rule.left, x], implications(listed, count))}
    ordered = oracle.ordered_alike(known, determined)
    return bool(closure & {a, b}) or (a, b, -1 if rule.sense == "descending" else 1) in ordered


@settings(deadline=None, max_examples=400)
@given(rules())
def test_laws(found: list[Rule]) -> None:
    listed = cover(found, COLUMNS)
    shown = [one.rule for one in listed]
    folded = [rule for one in listed for rule in one.implies]
    assert sorted(map(repr, shown + folded)) == sorted(map(repr, found))
    assert_laws(listed, COLUMNS)


def assert_laws(listed: Sequence[Listed], count: int) -> None:
    shown = [one.rule for one in listed]
    assert [rule.score for rule in shown] == sorted((rule.score for rule in shown), reverse=True)
    for i, one in enumerate(listed):
        rest = one.rule.left == () and one.rule.kind in ("key", "constant")
        assert rest or not follows(one.rule, listed[:i], count)
    for one in listed:
        for rule in one.implies:
            assert follows(rule, listed, count)
        for pair in one.equivalent:
            assert {*pair} == {*one.rule.columns}


def texts(found: Sequence[Rule]) -> list[tuple[Rule, tuple[Rule, ...]]]:
    return [(one.rule, one.implies) for one in cover(found, COLUMNS)]


def test_what_follows_from_better_rules_is_folded_beneath_the_last_of_them() -> None:
    a_b, b_c, a_c = fd("A", "B", 3), fd("B", "C", 2), fd("A", "C", 1)
    assert texts([a_c, a_b, b_c]) == [(a_b, ()), (b_c, (a_c,))]
    identifier, follow = key("A", 3), [fd("AC", "D"), fd("A", "B"), key("AB"), od("A", "BC")]
    ((shown, implied),) = texts([identifier, *follow])
    assert (shown, set(implied)) == (identifier, set(follow))
    assert texts([constant("B", 3), fd("A", "B"), od("", "AB")]) == [(constant("B", 3), (fd("A", "B"), od("", "AB")))]


def test_a_coarser_left_side_comes_first_where_it_is_nearly_as_strong() -> None:
    zip_state, by_zip, by_state = fd("A", "B", 4), fd("AC", "D", 3), fd("BC", "D", 2)
    assert texts([zip_state, by_zip, by_state]) == [(zip_state, ()), (by_state, (by_zip,))]
    weaker = fd("BC", "D", 2, strength=0.95)
    assert texts([zip_state, by_zip, weaker]) == [(zip_state, ()), (by_zip, ()), (weaker, ())]


def test_columns_that_determine_each_other_are_one_group() -> None:
    code, name = fd("A", "B", 3), fd("B", "A", 2)
    (one,) = cover([code, name], COLUMNS)
    assert (one.rule, one.implies, one.equivalent) == (code, (name,), ((0, 1),))
    assert texts([code, name, fd("A", "C", 2), fd("B", "C", 1)]) == [
        (code, (name,)),
        (fd("A", "C", 2), (fd("B", "C", 1),)),
    ]


def test_equal_columns_say_the_same_of_others() -> None:
    equal = row("A", "==", "B", 5)
    assert texts([equal, fd("A", "B", 4), fd("B", "A", 3), od("", "AB", 2)])[0][0] == equal
    assert len(texts([equal, fd("A", "B", 4), fd("B", "A", 3), od("", "AB", 2)])) == 1
    assert texts([equal, od("", "AC", 4), od("", "BC", 3)]) == [(equal, ()), (od("", "AC", 4), (od("", "BC", 3),))]
    assert texts([equal, row("A", "<=", "C", 4), row("B", "<=", "C", 3)]) == [
        (equal, ()),
        (row("A", "<=", "C", 4), (row("B", "<=", "C", 3),)),
    ]


def test_comparisons_follow_step_by_step() -> None:
    low, high = row("A", "<=", "B", 3), row("B", "<", "C", 2)
    assert texts([low, high, row("A", "<", "C")]) == [(low, ()), (high, (row("A", "<", "C"),))]
    assert len(texts([low, row("B", "<=", "C", 2), row("A", "<", "C")])) == 3
    assert len(texts([row("A", "<=", "B", 3), row("C", "<=", "B", 2), row("A", "<=", "C")])) == 3


def test_that_columns_determine_each_other_does_not_make_them_equal() -> None:
    assert len(texts([fd("A", "B", 3), fd("B", "A", 2), row("A", "==", "B", 1)])) == 2


def test_a_finer_context_adds_nothing_unless_it_turns_the_order() -> None:
    overall = od("", "AB", 3)
    assert texts([overall, od("C", "AB", 2)]) == [(overall, (od("C", "AB", 2),))]
    assert len(texts([overall, od("C", "AB", 2, "descending")])) == 2
    by_state = od("D", "AB", 3)
    assert texts([fd("C", "D", 4), by_state, od("C", "AB", 2)])[1] == (by_state, (od("C", "AB", 2),))


def test_what_a_column_orders_its_monotone_functions_order_too() -> None:
    """Months are a function of days and rise with them: what rises with days rises with months."""
    of_day, month = od("", "AB", 5), [fd("A", "C", 4), od("", "AC", 3)]
    folded = od("", "BC", 2)
    assert texts([of_day, *month, folded])[2] == (month[1], (folded,))
    assert len(texts([of_day, month[1], folded])) == 3  # not without the FD
    assert len(texts([of_day, *month, od("", "BC", 2, "descending")])) == 4
    down = [of_day, month[0], od("", "AC", 3, "descending"), od("", "BC", 2, "descending")]
    assert len(texts(down)) == 3


def test_columns_that_are_ordered_alike_are_one_group() -> None:
    count = 400
    day = np.random.default_rng(0).integers(0, 60, count)
    frame = pd.DataFrame({"a": day, "b": day * 2.5, "c": -day, "d": day + 10**6, "e": day // 7})
    found = tw.profile(frame)
    assert sum(rule.kind == "od" for rule in found) <= 4
    scaled = [w["text"] for w in found.warnings]
    assert len(scaled) == len(set(scaled))
    assert "is 2.5 x `a` in every row" in scaled


@pytest.mark.parametrize("name", ["cars", "gapminder", "planes", "seattle", "tax", "weather"])
def test_laws_on_tables_that_people_profile(name: str, shared: Path) -> None:
    relation = tw.load(shared / f"data/golden/{name}.csv", rows=2000)
    listed = RuleSearch(table_of(relation), ProfileOptions(limit=1000), Run()).run().listed
    assert len(listed) >= 2
    assert_laws(listed, len(relation.columns))


@pytest.mark.parametrize("way", [1, -1])
def test_equal_columns_of_a_table(way: int) -> None:
    frame = pd.DataFrame({"a": range(500), "b": range(500), "c": [way * (i // 3) for i in range(500)]})
    shown = [rule.rule for rule in tw.profile(frame)]
    assert shown[0] == "a == b"
    assert "[]: a ~ b" not in shown
    assert not any("b" in rule for rule in shown[1:])
