"""Every command and example of docs/ gives what its page says, one after the other, in a folder of its own."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML
from test_readme import FLAGS, ROOT, as_shown, blocks, commands, printed_by

from tuplewise.engine.cli.commands import cli

DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)): page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}
LANGUAGES = {"bash", "console", "json", "py", "python", "sh", "text", "toml", "yaml"}  # py: of notebooks
HELD = ("console", "python", "bash", "yaml", "json", "toml")


def having(language: str) -> list[str]:
    """The pages with blocks of a language."""
    return [name for name, page in PAGES.items() if blocks(language, page)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize("name", having("console"))
@pytest.mark.usefixtures("folder")
def test_commands(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = commands(PAGES[name])
    assert shown
    for command, output in shown:
        printed = printed_by(command, capsys)
        assert as_shown(output, printed), f"{command}\n{printed}"


@pytest.mark.parametrize("name", having("python"))
@pytest.mark.usefixtures("folder")
def test_python_examples(name: str) -> None:
    names: dict[str, object] = {}
    for number, block in enumerate(blocks("python", PAGES[name])):
        test = doctest.DocTestParser().get_doctest(block, names, f"{Path(name).stem}{number}", name, 0)
        assert test.examples, block
        said: list[str] = []
        results = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append, clear_globs=False)
        assert results.failed == 0, "".join(said)
        names = test.globs


@pytest.mark.parametrize("name", having("bash"))
def test_commands_for_other_machines_can_be_parsed(name: str) -> None:
    """What needs a cluster or a GPU isn't run, but each command and option of it is there."""
    for block in blocks("bash", PAGES[name]):
        for line in block.strip().splitlines():
            program, *argv = shlex.split(line)
            assert program == "tuplewise"
            command: click.Command = cli
            context = click.Context(cli)
            while isinstance(command, click.Group):
                part, *argv = argv
                command, context = command.commands[part], click.Context(command.commands[part], context)
            command.parse_args(context, argv)


@pytest.mark.parametrize("name", having("yaml"))
def test_yaml_can_be_read(name: str) -> None:
    for block in blocks("yaml", PAGES[name]):
        assert YAML(typ="safe").load(block)


def test_other_data_can_be_read() -> None:
    for page in PAGES.values():
        for block in blocks("json", page):
            assert json.loads(block)
        for block in blocks("toml", page):
            assert tomllib.loads(block)


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_it_is(name: str) -> None:
    """So none escapes the tests above."""
    fences = re.findall(r"^ *```(.*)$", PAGES[name], re.MULTILINE)
    assert len(fences) % 2 == 0
    assert set(fences[::2]) <= LANGUAGES
    held = [language for language in fences[::2] if language in HELD]
    assert len(held) == sum(len(blocks(language, PAGES[name])) for language in HELD)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", PAGES[name]):
        assert ((DOCS / name).parent / target).exists(), f"{name} links to {target}, which isn't there"
    for kept in re.findall(r"github\.com/tuplewise/tuplewise/(?:blob|tree)/main/([^)#\s]+)", PAGES[name]):
        assert (ROOT / kept).exists(), f"{name} links to {kept} of the repository, which isn't there"


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert named == set(PAGES)


def test_code_cites_pages_that_are_there() -> None:
    folders = ("engine", "gpu_kernels", "spark_conf", "src/tuplewise", "tests", "tools", "benchmarks")
    modules = {path for name in folders for path in (ROOT / name).rglob("*.py")}
    cited = {(path, page) for path in modules for page in re.findall(r"[\w/.-]+\.md\b", path.read_text("utf-8"))}
    pages = {(path, page) for path, page in cited if "docs/" in page or page in ("semantics.md", "interface.md")}
    assert len(pages) > 8
    for path, page in sorted(pages):
        if path != Path(__file__):
            assert (ROOT / page).exists(), f"{path.relative_to(ROOT)} cites {page}, which isn't there"


def test_commands_of_a_shell_name_what_is_there() -> None:
    """What installs, builds or measures isn't run, but its targets, modules and files are there."""
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    texts = [*PAGES.values(), *((ROOT / name).read_text("utf-8") for name in ("README.md", "CONTRIBUTING.md"))]
    given = [block.replace("\\\n", "") for text in texts for block in blocks("sh", text)]
    lines = [line for block in given for line in block.splitlines() if line.strip()]
    assert len(lines) > 10
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            assert words[1] in targets, line
        elif words[:2] == ["python", "-m"]:
            assert ROOT.joinpath(*words[2].split(".")).with_suffix(".py").exists(), line
        elif words[:2] == ["pip", "install"]:
            assert set(re.findall(r"\w+", "".join(re.findall(r"\[(.*)\]", line)))) <= set(extras), line
        elif words[:2] == ["docker", "build"]:
            assert (ROOT / words[words.index("-f") + 1]).exists(), line
        else:
            assert words[0] == "docker" or words[0].startswith("SPARK_WORKER_OPTS="), line
