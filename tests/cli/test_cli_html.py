"""`--format html`: a page from each discovery and from `dc check`, also where only a file's name asks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import TABLE, inside

USAGE = 2
COMMANDS = [
    ("dc", "discover"), ("fd", "discover"), ("key", "discover"), ("od", "discover"), ("ind", "discover"),
    ("profile",), ("dc", "check", "--rule", "zip -> city"),
]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_name_of_a_file_asks_for_a_page(
    command: tuple[str, ...], table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.HTML"
    words = [word for word in command[:2] if not word.startswith("-")]
    argv = [*words, table, *command[len(words) :], "--device", "cpu"]
    ran = inside(capsys, *argv, "-o", str(target))
    assert (ran.code, ran.out) == (0, "")
    assert "gets" not in ran.err
    page = target.read_text()
    assert page.startswith("<!doctype html>")
    assert "<h1><bdi>people</bdi></h1>" in page
    assert inside(capsys, *argv, "--format", "html").out.startswith("<!doctype html>")
    inside(capsys, *argv, "-o", str(target), "--format", "json")
    assert json.loads(target.read_text())["command"] == " ".join(words)


def test_limits_and_rankings_count(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = inside(capsys, "dc", "discover", table, "--format", "html", "--limit", "1", "--rank-by", "coverage").out
    assert page.count('<tr class="item"><td class="right"') == 1
    assert "Best first, by coverage. The first 1 of" in page


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["dc", "discover", "--explain-space"], "--explain-space has the formats text and json, not html"),
        (["dc", "check", "--rule", "zip -> city", "--explain"], "--explain has the formats text and json, not html"),
    ],
)
def test_what_has_no_page_says_so(
    argv: list[str], message: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, *argv[:2], table, *argv[2:], "-o", str(tmp_path / "page.html"))
    assert ran.code == USAGE
    assert message in ran.err


def test_states_show_a_page(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("dc", "ind"):
        state = str(tmp_path / kind)
        assert inside(capsys, kind, "init", state, table).code == 0
        ran = inside(capsys, kind, "show", state, "--format", "html")
        assert ran.code == 0
        assert ran.out.startswith("<!doctype html>")
