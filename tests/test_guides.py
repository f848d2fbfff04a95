"""Every command and example of the guides gives what the guide says, one after the other, in a folder of its own."""

from __future__ import annotations

import doctest
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from test_readme import EXIT_CODE, FLAGS, ROOT, as_shown, blocks, commands

from tuplewise.engine.cli.main import run

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize("guide", GUIDES, ids=[guide.stem for guide in GUIDES])
@pytest.mark.usefixtures("folder")
def test_commands(guide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = commands(guide.read_text(encoding="utf-8"))
    assert shown
    for command, output in shown:
        program, *argv = shlex.split(command.removesuffix(EXIT_CODE))
        assert program == "tuplewise"
        code = run(argv)
        printed, errors = capsys.readouterr()
        if command.endswith(EXIT_CODE):
            printed += f"exit code {code}\n"
        else:
            assert code == 0, errors
        assert as_shown(output, printed), f"{command}\n{printed}\n{errors}"


@pytest.mark.parametrize("guide", GUIDES, ids=[guide.stem for guide in GUIDES])
@pytest.mark.usefixtures("folder")
def test_python_examples(guide: Path) -> None:
    names: dict[str, object] = {}
    for number, block in enumerate(blocks("python", guide.read_text(encoding="utf-8"))):
        test = doctest.DocTestParser().get_doctest(block, names, f"{guide.stem}{number}", guide.name, 0)
        said: list[str] = []
        results = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append, clear_globs=False)
        assert results.failed == 0, "".join(said)
        names = test.globs


@pytest.mark.parametrize("guide", GUIDES, ids=[guide.stem for guide in GUIDES])
def test_yaml_can_be_read(guide: Path) -> None:
    for block in blocks("yaml", guide.read_text(encoding="utf-8")):
        assert YAML(typ="safe").load(block)
