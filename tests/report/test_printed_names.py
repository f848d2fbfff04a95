"""What is printed of columns with any name reads back to the same rule: in text for people, in files, in JSON (D19)."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tuplewise as tw
from tuplewise.engine.cli.main import run
from tuplewise.engine.dc.constraint import Constant, DenialConstraint, Predicate
from tuplewise.engine.dc.rule_text import read_rule, read_rule_file, write_rule
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency, parse_ind
from tuplewise.engine.od.list_od import ListOd, OrderedColumn, read_od
from tuplewise.engine.report.dependencies import FunctionalDependency, Key
from tuplewise.engine.report.text import visible
from tuplewise.engine.table.schema import quote_name, quote_text, quoted_text

SIGNS = "`\"'.,;->&(){}[]\\ \n\r\t\x00\x0b\x1c\x85\xa0\u2028\u3000\ufeff\U000e0001tunxU0=<!#→"
WORDS = ("desc", "asc", "and", "is", "null", "not", "t", "u", "t.a", "Unit\nprice", "a\\nb", "\\n", "\n", " ", "`\n`")
names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.text(st.sampled_from(SIGNS), min_size=1, max_size=6),
    st.sampled_from(WORDS),
)
several_names = st.lists(names, min_size=2, max_size=4, unique=True)
checked = settings(max_examples=400, deadline=None, derandomize=True)


def seen(text: str) -> str:
    """What a terminal shows of it, which has to be the whole."""
    assert visible(text) == text
    return text


@checked
@given(st.text(max_size=8), st.sampled_from("`'\""), st.sampled_from(["", " ", ".", ")", ","]))
@example("\\n", "`", "")
@example("", "`", "")
def test_quoted_text_ends_where_it_was_closed(text: str, quote: str, behind: str) -> None:
    written = quote_text(text, quote)
    assert quoted_text(written + behind, 0) == (text, len(written))
    assert seen(written)
    assert quoted_text(written[:1], 0) is None


@checked
@given(several_names, names, st.booleans())
def test_denial_constraints(columns: list[str], constant: str, known: bool) -> None:
    same = [Predicate("t", name, "==", "u", name) for name in columns[1:]]
    unlike = [Predicate("t", columns[0], "!=", "u", columns[0]), Predicate("t", columns[0], "<", None,
              Constant(constant, "text"))]  # fmt: skip
    rule = DenialConstraint((*same, *unlike)).normalised()
    for text in (rule.rule, write_rule(rule, "logic")):
        assert read_rule(seen(text), columns=columns if known else None) == rule


@checked
@given(several_names, st.booleans())
def test_functional_dependencies_and_keys(columns: list[str], known: bool) -> None:
    for one in (FunctionalDependency(tuple(columns[1:]), columns[0]), Key(tuple(columns))):
        assert read_rule(seen(str(one)), columns=columns if known else None) == one.rule.normalised()


@checked
@given(several_names, st.booleans())
def test_order_dependencies(columns: list[str], falling: bool) -> None:
    right = OrderedColumn(columns[0], "desc" if falling else "asc")
    od = ListOd(tuple(map(OrderedColumn, columns[1:])), (right,))
    assert read_od(seen(str(od)), columns) == od


@checked
@given(several_names, several_names)
def test_inclusion_dependencies(tables: list[str], columns: list[str]) -> None:
    there = dict.fromkeys(tables, columns)
    for size in (1, 2):
        sides = [tuple(Attribute(table, name) for name in columns[:size]) for table in tables[:2]]
        ind = InclusionDependency(*sides)
        assert parse_ind(seen(str(ind)), there) == ind


@checked
@given(st.lists(several_names, min_size=1, max_size=3))
def test_a_file_of_printed_rules(all_columns: list[list[str]]) -> None:
    rules = [
        DenialConstraint(tuple(Predicate("t", n, "==", "u", n) for n in columns)).normalised()
        for columns in all_columns
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.txt"
        path.write_bytes("".join(f"{rule}\n" for rule in rules).encode())
        assert [rule for rule, _ in read_rule_file(path)] == rules


HEADERS = ["Unit\nprice", "Unit\\nprice", "a\tb", "a`b", 'a"b', "a.b", " a ", "a\u2028b", "\r\n"]


@pytest.mark.parametrize("name", HEADERS)
def test_through_the_command_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([[name, "b"], ["1", "x"], ["1", "x"], ["2", "y"]])
    path = tmp_path / "t.csv"
    path.write_bytes(text.getvalue().encode())
    assert run(["fd", "discover", str(path), "--format", "text"]) == 0
    shown = f"{quote_name(name)} -> b"
    assert shown in capsys.readouterr().out
    assert tw.check(str(path), shown, device="cpu").holds is True
