"""Every command and example of the README gives what the README says."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tuplewise.engine.cli.main import run

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(language: str, page: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def commands(page: str = TEXT) -> list[tuple[str, str]]:
    """Commands after `$ ` with the output shown under each; `...` stands for anything."""
    found = []
    for block in blocks("console", page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


COMMANDS = commands()
EXIT_CODE = '; echo "exit code $?"'


def printed_by(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a shell hands to the command line, in this process: each with a JVM of its own would take minutes."""
    program, *argv = shlex.split(command.removesuffix(EXIT_CODE))
    assert program == "tuplewise"
    capsys.readouterr()
    code = run(argv)
    printed, errors = capsys.readouterr()
    if command.endswith(EXIT_CODE):
        return f"{printed}exit code {code}\n"
    assert code == 0, errors
    return printed


def as_shown(output: str, printed: str) -> bool:
    return output == "" or doctest.OutputChecker().check_output(output, printed, FLAGS)


@pytest.mark.spark
def test_the_first_command_in_a_shell() -> None:
    command, output = COMMANDS[0]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert as_shown(output, done.stdout), done.stdout


@pytest.mark.spark
@pytest.mark.parametrize(("command", "output"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_commands(
    command: str, output: str, spark: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    plain = "".join(shlex.split(command.removesuffix(EXIT_CODE))).replace("->", "").replace("<=", "")
    assert not {"|", ";", "&", ">", "<"} & set(plain), "only a shell can do that"
    printed = printed_by(command, capsys)
    assert as_shown(output, printed), printed


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_examples(number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    test = doctest.DocTestParser().get_doctest(blocks("python")[number], {}, f"python{number}", "README.md", 0)
    assert test.examples
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append)
    assert results.failed == 0, "".join(said)


def test_readme_starts_with_the_two_commands() -> None:
    (first,) = blocks("sh")[:1]
    assert [line.split("#")[0].strip() for line in first.strip().splitlines()] == ["make demo", "make test"]
    assert commands()
    assert blocks("python")


def test_local_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", TEXT):
        assert (ROOT / target).exists(), f"README links to {target}, which isn't there"
