"""Every cell of the notebooks gives the output that is kept in them, and their pages show the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import notebooks

ROOT = Path(__file__).resolve().parent.parent


def test_there_are_three() -> None:
    assert [path.stem for path in notebooks.NOTEBOOKS] == ["first_table", "large_table", "quality_in_ci"]


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    kept = notebooks.read(path)
    assert any(cell.get("outputs") for cell in kept["cells"])
    assert notebooks.executed(kept) == kept, "run: make pages"


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_pages_are_current(path: Path) -> None:
    shown = notebooks.PAGES / path.with_suffix(".md").name
    assert shown.read_text(encoding="utf-8") == notebooks.page(path), "run: make pages"
