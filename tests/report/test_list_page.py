"""Pages of what discoveries and checks return: each rule in a table, long lists cut, with a line on the rest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_page import Parsed

import tuplewise as tw
from tuplewise.engine.report import page

PEOPLE = pd.DataFrame(
    {"id": [1, 2, 3, 4], "zip": ["01", "01", "02", "03"], "city": ["A", "A", "B", "B"], "pay": [10, 20, 20, 35]}
)
HOSTILE = "<script>alert(1)</script>"


def codes(result: Any, **how: Any) -> list[str]:
    return Parsed(result.to_html(**how)).of("code")


def headings(result: Any, **how: Any) -> list[str]:
    return Parsed(result.to_html(**how)).of("h2")


ENDS = ["Columns", "How it was found", "Settings"]


def test_denial_constraints() -> None:
    found = tw.discover_dcs(PEOPLE)
    best = [rule.rule for rule in found.ranked("genuineness")]
    assert codes(found) == [rule for rule in best if rule in found.to_text(limit=1000)]
    assert codes(found, rank_by="succinctness") == [rule.rule for rule in found.ranked()]
    assert codes(found, rank_by="coverage", limit=2) == [rule.rule for rule in found.ranked("coverage", 2)]
    parsed = Parsed(found.to_html(limit=2))
    note = f"Best first, by genuineness. The first 2 of {len(found)}. All of them: --format json, csv or sql (to a "
    assert parsed.of("p", class_="note")[0].startswith(note)
    assert parsed.of("h2") == ["Denial constraints", *ENDS]
    assert parsed.of("p", class_="subtitle") == [f"{len(found)} minimal denial constraints (exact)"]
    assert parsed.of("th", scope="row") == list(PEOPLE.columns)
    assert "".join(found.pieces("html")) == found.to_html()


def test_rules_that_differ_in_operators_are_one_line() -> None:
    found = tw.discover_dcs(pd.DataFrame({"a": [1, 1, 2, 3], "b": [1, 2, 2, 3], "c": [5, 4, 4, 1]}), shared_values=1)
    parsed = Parsed(found.to_html(limit=1))
    groups = {tuple((p.left, p.right) for p in rule.predicates) for rule in found.constraints}
    assert len(groups) < len(found)
    assert len(codes(found)) == len(groups)
    note = parsed.of("p", class_="note")[0]
    assert f"with the number of its variants. The first 1 of {len(groups)}." in note
    assert "variants" in parsed.of("th", scope="col")


def ranked(found: Any, name: str) -> list[Any]:
    listed: list[Any] = found.to_dict(rank_by="genuineness")["result"][name]
    return listed


def test_dependencies() -> None:
    fds, keys = tw.discover_fds(PEOPLE), tw.discover_keys(PEOPLE)
    assert codes(fds, rank_by="size") == [str(one) for one in fds]
    best = [f"{', '.join(fd['determinant'])} -> {fd['dependent']}" for fd in ranked(fds, "fds")]
    assert codes(fds) == best
    assert headings(fds) == ["Functional dependencies", *ENDS]
    assert codes(keys, rank_by="size") == [str(one) for one in keys]
    assert headings(keys) == ["Keys", *ENDS]
    assert codes(fds, limit=1) == best[:1]
    cut = f"Rows that are equal on the left are equal on the right, by genuineness. The first 1 of {len(fds)}."
    assert Parsed(fds.to_html(limit=1)).of("p", class_="note")[0].startswith(cut)


def test_order_dependencies_and_lists() -> None:
    ods = tw.discover_ods(PEOPLE, lexicographic=2)
    assert headings(ods) == ["Constant", "Order compatible", "Derived", *ENDS]
    assert codes(ods, rank_by="size") == [*map(str, ods), *map(str, ods.lexicographic)]
    assert sorted(codes(ods)) == sorted(codes(ods, rank_by="size"))


def test_inclusion_dependencies_are_drawn() -> None:
    orders = pd.DataFrame({"no": [7, 8, 9], "customer": ["Ann", "Bob", "Ann"]})
    customers = pd.DataFrame({"customer": ["Ann", "Bob", "Eve"]})
    found = tw.discover_inds({"orders": orders, "customers": customers})
    parsed = Parsed(found.to_html())
    assert parsed.of("code") == ["orders.customer <= customers.customer"]
    assert parsed.of("h2")[:2] == ["Inclusion dependencies", "Likely foreign keys"]
    assert parsed.of("desc")[0].startswith("orders (customer) → customers (customer), score ")
    assert parsed.of("h1") == ["orders, customers"]


def test_a_check_shows_violated_rules_first_with_their_pairs() -> None:
    check = tw.check(PEOPLE, ["zip -> city", "city -> zip"])
    parsed = Parsed(check.to_html())
    assert parsed.of("td", class_="mark") == ["Violated", "Holds"]
    assert parsed.of("p", class_="subtitle") == ["2 rules: 1 violated, 1 hold"]
    assert "the only pair" in parsed.of("summary")[0] or "all pairs" in parsed.of("summary")[0]
    assert "t.zip" in parsed.of("th", scope="col")
    assert parsed.of("td", class_="figure") == ["2", "2", "0", "0"]
    assert "".join(check.pieces("html")) == check.to_html()


def test_long_checks_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST", 1)
    parsed = Parsed(tw.check(PEOPLE, ["zip -> city", "city -> zip"]).to_html())
    assert parsed.of("td", class_="mark") == ["Violated"]
    assert parsed.of("p", class_="note")[0].startswith("The first 1 of 2. All of them: --format json")


def test_names_cannot_be_markup() -> None:
    table = pd.DataFrame({HOSTILE: [1, 1, 2], "b\n": ["x", "y", "y"]})
    for result in (
        tw.discover_dcs(table), tw.discover_fds(table), tw.discover_keys(table), tw.discover_ods(table),
        tw.check(table, f"not(t.`{HOSTILE}` == u.`{HOSTILE}`)"), tw.discover_inds({HOSTILE: table, "u": table}),
    ):  # fmt: skip
        made = result.to_html()
        assert HOSTILE not in made
        assert "&lt;script&gt;" in made
        Parsed(made)


def test_nothing_found_is_said() -> None:
    table = pd.DataFrame({"a": ["x", "x"], "b": [1.5, 1.5]})
    assert "There are none." in Parsed(tw.discover_keys(table).to_html()).of("p", class_="note")


def test_a_page_of_many_rules_is_small_and_quick() -> None:
    found = tw.discover_dcs(str(Path(__file__).parents[2] / "examples" / "tax.csv"))
    assert len(found) == 29_942
    start = time.perf_counter()
    made = found.to_html()
    assert time.perf_counter() - start < 1
    assert len(made.encode()) < 1_000_000
    assert len(Parsed(made).of("code")) == page.MOST
