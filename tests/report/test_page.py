"""Pages of results: what is on them, that nothing of it can be markup, and that they need nothing else."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from html.parser import HTMLParser
from typing import Any

import profile_documents as documents
import pytest

from tuplewise.engine.report import drawing, page, profile_page
from tuplewise.engine.report.page import render_page
from tuplewise.engine.report.sections import Bar, Entry, Section
from tuplewise.engine.report.text import named_parts, strength, visible

VOID = {"meta", "link", "input", "br", "img", "hr"}
ALL = [
    documents.small, documents.typical, documents.hostile, documents.empty, documents.partial, documents.wide,
]  # fmt: skip


class Parsed(HTMLParser):
    """The elements of a page with their texts; complains about what isn't closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[int, str] = {}
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open, [self.elements[i] for i in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for i in self._open:
            self.texts[i] = self.texts.get(i, "") + data

    def of(self, tag: str, **attributes: str) -> list[str]:
        """The texts of the elements with these attributes."""
        return [
            " ".join(self.texts.get(i, "").split())
            for i, (name, given) in enumerate(self.elements)
            if name == tag and all(given.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]

    def attribute(self, name: str) -> list[str]:
        return [given[name] or "" for _, given in self.elements if name in given]


@pytest.fixture(params=ALL, ids=lambda made: made.__name__)
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    made: dict[str, Any] = request.param()
    return made


def test_every_rule_column_and_warning_is_there(document: dict[str, Any]) -> None:
    parsed, result = Parsed(profile_page.page(document)), document["result"]
    codes = parsed.of("code")
    for rule in result["rules"]:
        assert squeezed(visible(rule["rule"])) in codes
        for implied in rule["implies"]:
            assert squeezed(visible(implied)) in codes
        for example in rule["examples"]:
            assert squeezed(visible(example["text"])) in parsed.of("li")
    names = [squeezed(visible(column["name"])) for column in result["columns"]]
    assert parsed.of("th", scope="row") == names
    said = [one for one in parsed.of("li") if any(squeezed(visible(w["text"])) in one for w in result["warnings"])]
    assert len(said) >= len(result["warnings"])


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_nothing_is_loaded_and_nothing_but_the_script_runs(document: dict[str, Any]) -> None:
    made = profile_page.page(document)
    parsed = Parsed(made)
    assert {tag for tag, _ in parsed.elements} & {"link", "img", "iframe", "object", "embed", "base", "form"} == set()
    assert [tag for tag, _ in parsed.elements].count("script") == 2
    assert parsed.attribute("src") == []
    assert all(target.startswith("#") for target in parsed.attribute("href"))
    assert not [key for _, given in parsed.elements for key in given if key.startswith("on")]
    assert not re.search(r"https?:|url\((?!#)|@import|//\w+\.", page.source("page.css") + page.source("page.js"))
    (policy,) = [given["content"] for tag, given in parsed.elements if given.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")


def test_it_is_well_formed_for_screen_readers(document: dict[str, Any]) -> None:
    parsed = Parsed(profile_page.page(document))
    ids = parsed.attribute("id")
    assert len(ids) == len(set(ids))
    references = [target[1:] for target in parsed.attribute("href")]
    references += [one for key in ("aria-labelledby", "aria-describedby", "for") for one in parsed.attribute(key)]
    assert {one for several in references for one in several.split()} <= set(ids)
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    tags = [tag for tag, _ in parsed.elements]
    assert all(tags.count(landmark) == 1 for landmark in ("header", "nav", "main", "footer"))
    assert all(given.get("scope") in ("col", "row") for tag, given in parsed.elements if tag == "th")
    pictures = [given for tag, given in parsed.elements if tag == "svg"]
    assert all(
        given.get("aria-hidden") or given.get("aria-label") or given.get("aria-labelledby") for given in pictures
    )


def test_no_name_can_be_markup() -> None:
    made = profile_page.page(documents.hostile())
    assert made.encode()  # no half of a pair is left
    for code in (made, profile_page.compact_html(documents.hostile())):
        assert "<script>alert" not in code
        assert "<img" not in code
    shown = re.sub(r'<script type="application/json".*?</script>', "", made, flags=re.DOTALL)
    for text in documents.HOSTILE:
        assert (text in shown) == (text.isprintable() and not set("<>&\"'") & set(text)), text


def test_copies_are_exact_and_a_command_that_a_shell_reads() -> None:
    document = documents.typical()
    copies = _copies(profile_page.page(document))
    by_rule = {rule["rule"]: rule for rule in document["result"]["rules"]}
    assert sorted(one[0] for one in copies) == sorted(by_rule)
    (fd,) = [one for one in copies if one[0] == "zip -> city"]
    assert fd[1] == by_rule["zip -> city"]["sql"]
    assert shlex.split(fd[2]) == [
        "tuplewise", "dc", "check", "data/tax 2024.csv", "--rule", "not(t.zip == u.zip and t.city != u.city)",
    ]  # fmt: skip
    (ind,) = [one for one in copies if one[0] == "tax.zip <= zips.zip"]
    assert shlex.split(ind[1]) == [
        "tuplewise", "ind", "check", "tax=data/tax 2024.csv", "zips=data/zips.parquet", "--ind", "tax.zip <= zips.zip",
    ]  # fmt: skip
    assert [one[0] for one in _copies(profile_page.page(documents.hostile()))] == list(documents.HOSTILE)
    assert "TABLE" in _copies(profile_page.page(documents.small()))[0][2]  # a table in memory has no path


def _copies(made: str) -> list[list[str]]:
    (held,) = re.findall(r'<script type="application/json" id="copies">(.*?)</script>', made, re.DOTALL)
    assert "<" not in held
    copies: list[list[str]] = json.loads(held)
    return copies


def test_rules_come_in_groups_best_first() -> None:
    parsed = Parsed(profile_page.page(documents.typical()))
    assert parsed.of("h2") == [
        "Overview", "Keys", "Functional dependencies", "Orders", "Within a row", "Constants", "Possible foreign keys",
        "Relations between tables", "Warnings", "Columns of tax", "Columns of states", "Columns of zips",
        "How it was found", "Settings",
    ]  # fmt: skip
    marks = [int(mark) for mark in parsed.of("td", class_="mark")]
    assert sorted(marks) == list(range(1, 26))
    assert marks[:5] == [1, 11, 12, 13, 14]
    folds = parsed.of("summary")
    assert "3 exceptions (2 shown)" in folds
    assert "1 exception (0 shown)" not in folds
    assert "implies 3 others" in folds
    assert "1 pair of columns that determine each other" in folds


def test_what_was_cut_short_and_what_was_found_of_nothing_is_said() -> None:
    assert "Partial: a limit was reached; there may be more rules." in Parsed(
        profile_page.page(documents.partial())
    ).of("p", class_="partial")
    parsed = Parsed(profile_page.page(documents.empty()))
    assert "No rule stood out. Every rule that holds: dc, fd, od, key, ind discover." in parsed.of("p", class_="note")
    assert parsed.of("input") == []  # nothing to search


def test_pages_are_small() -> None:
    assert len(profile_page.page(documents.wide()).encode()) < 150_000
    assert len(profile_page.page(documents.small()).encode()) < 30_000


def test_the_table_for_a_notebook_has_the_best_ten_and_no_script() -> None:
    made = profile_page.compact_html(documents.typical())
    parsed = Parsed(made)
    assert [tag for tag, _ in parsed.elements].count("tr") == 11
    assert {tag for tag, _ in parsed.elements} & {"script", "style", "button", "details"} == set()
    assert parsed.attribute("class") == ["tuplewise"]
    assert "15 more: .rules; all of it as a page: .to_html()" in parsed.of("p")
    assert parsed.attribute("id") == []
    partial = profile_page.compact_html(documents.partial())
    assert "Partial: a limit was reached" in partial
    assert "<table" not in profile_page.compact_html(documents.empty())


def test_sections_without_rows_are_left_out_and_figures_are_drawn() -> None:
    rows = [["1", Bar("half", 0.5), "a <= b"]]
    columns = (("#", "right"), ("share", "right"), ("rule", "code"))
    sections = [Section("None", "table"), Section("List", "table", columns, rows, note="a note", folded=True)]
    parsed = Parsed(render_page("a title", "below", sections, footer="the end"))
    assert parsed.of("h2") == ["List"]
    assert parsed.of("footer") == ["the end"]
    assert "a <= b" in parsed.of("code")
    assert [given["width"] for tag, given in parsed.elements if tag == "rect"] == ["100", "50.0"]


def test_a_violated_rule_is_marked() -> None:
    columns = (("verdict", "left"), ("rule", "left"))
    entries = [Entry("Violated", "a -> b", wrong=True), Entry("Holds", "b -> a")]
    parsed = Parsed(render_page("t", "", [Section("Rules", "rules", columns, entries)]))
    assert [given["class"] for tag, given in parsed.elements if tag == "tr" and given.get("class")] == [
        "item wrong", "item",
    ]  # fmt: skip


def test_histograms_and_strips() -> None:
    assert drawing.histogram([0, 5, 10]) == "M40 28v-14h39.2v14zM80 28v-28h39.2v28z"
    assert drawing.histogram([1, 1_000_000]).startswith("M0 28v-1h")  # what is there is seen
    assert drawing.histogram([]) == ""
    assert drawing.strip([3, 1]) == [("0", "89.2"), ("90", "29.2")]
    assert drawing.strip([0]) == [("0", "0.4")]


@pytest.mark.parametrize(
    ("keys", "columns"),
    [
        ([("a", "b"), ("b", "c")], {"a": 0, "b": 1, "c": 2}),
        ([("a", "b"), ("b", "a")], {"a": 0, "b": 0}),
        ([("a", "a")], {"a": 0}),
        ([], {}),
    ],
)
def test_tables_stand_to_the_left_of_those_they_refer_to(keys: list[tuple[str, str]], columns: dict[str, int]) -> None:
    drawn = drawing.relations((start, ["x"], end, ["y", "z"], 0.9) for start, end in keys)
    places = sorted({box.x for box in drawn.boxes})
    assert {box.name: places.index(box.x) for box in drawn.boxes} == columns
    assert len(drawn.arrows) == len(keys)
    boxes = sorted(drawn.boxes, key=lambda box: (box.x, box.y))
    assert all(a.x < b.x or a.y + a.height < b.y for a, b in itertools.pairwise(boxes))
    assert all(box.y + box.height <= drawn.height and box.x + drawn.box <= drawn.width for box in boxes)


def test_circles_of_tables_are_drawn() -> None:
    drawn = drawing.relations((a, ["x"], b, ["y"], 0.1) for a, b in ("ab", "bc", "ca", "cd"))
    assert {box.name for box in drawn.boxes} == set("abcd")
    assert [arrow.sure for arrow in drawn.arrows] == [False] * 4


def test_an_arrow_over_a_table_in_between_has_a_lane_above_it() -> None:
    drawn = drawing.relations((a, ["x"], b, ["y"], 0.9) for a, b in ("ab", "bc", "ac"))
    lane = float(re.findall(r"C.*? ([\d.]+)H", drawn.arrows[2].path)[0])
    assert all(lane < box.y for box in drawn.boxes)


@pytest.mark.parametrize(("value", "shown"), [(1, "1"), (0.99999, "0.999"), (0.5, "0.500"), (0, "0.000")])
def test_a_strength_that_is_not_1_does_not_read_as_1(value: float, shown: str) -> None:
    assert strength(value) == shown


def test_names_in_back_quotes_are_told_from_the_sentence() -> None:
    assert named_parts("each `a b` has one `c`") == [("each ", False), ("a b", True), (" has one ", False), ("c", True)]
    assert named_parts("a ` alone") == [("a ` alone", False)]
