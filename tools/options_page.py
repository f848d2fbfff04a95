"""Writes docs/reference/options.md: every option of the command line and of Python, as it is declared.

    python -m tools.options_page
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import click

import tuplewise as tw
from tuplewise.engine.cli.commands import cli
from tuplewise.engine.cli.settings import DeclaredOption
from tuplewise.engine.options import Option
from tuplewise.engine.options.functions import default_of, help_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "options.md"
_FRONT = """---
hide: [navigation, toc]
---

# Options

Made by `make pages` from the declarations in `engine/options` and `engine/cli`. `tuplewise COMMAND --help` and
`help(tw.FUNCTION)` say the same of one command or function. An option with several meanings has several lines.

| Command line | Python | Commands | Functions | Default | What it does |
|---|---|---|---|---|---|
"""


def commands(group: click.Group = cli, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its whole name."""
    for part, command in group.commands.items():
        whole = f"{name} {part}".strip()
        if isinstance(command, click.Group):
            yield from commands(command, whole)
        else:
            yield whole, command


def functions() -> Iterator[tuple[str, list[Option]]]:
    """Every public function that takes options, with these."""
    for name in tw.__all__:
        options = getattr(getattr(tw, name), "options", None)
        if isinstance(options, list):
            yield name, options


def page() -> str:
    """The whole page."""
    lines = [_line(*one) for one in _declared()]
    lines += [_row(_code(names), "", having, [], "", says) for names, says, having in _undeclared()]
    return _FRONT + "".join(sorted(lines))


def _declared() -> list[tuple[Option, list[str], list[str]]]:
    """Each declaration, with the commands and the functions that have it."""
    found: list[tuple[Option, list[str], list[str]]] = []

    def note(declared: Option, place: int, name: str) -> None:
        entry: Any = next((one for one in found if one[0] == declared), None)
        if entry is None:
            entry = (declared, [], [])
            found.append(entry)
        entry[place].append(name)

    for name, command in commands():
        for param in command.params:
            if isinstance(param, DeclaredOption):
                note(param.declared, 1, name)
    for name, options in functions():
        for declared in options:
            note(declared, 2, name)
    return found


def _undeclared() -> list[tuple[str, str, list[str]]]:
    """The other options of commands: where the result goes, and what one command alone has."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, command in commands():
        for param in command.params:
            if isinstance(param, click.Option) and not isinstance(param, DeclaredOption):
                value = "" if param.is_flag or param.count else f" {param.make_metavar(click.Context(command))}"
                found.setdefault((", ".join(param.opts) + value, param.help or ""), []).append(name)
    return [(*said, having) for said, having in found.items()]


def _line(declared: Option, having: list[str], taking: list[str]) -> str:
    value = " ".join(filter(None, [declared.spelled, declared.metavar or "|".join(declared.choices)]))
    spelled, python = _code(value) if having else "", _code(declared.name) if taking else ""
    return _row(spelled, python, having, taking, default_of(declared), help_of(declared))


def _row(spelled: str, python: str, having: list[str], taking: list[str], default: str, says: str) -> str:
    groups = groupby(having, key=lambda name: name.partition(" ")[0])
    commands = "; ".join(", ".join(names).replace(f", {group} ", ", ") for group, names in groups)
    cells = [spelled, python, commands, ", ".join(taking), default, says]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _code(text: str) -> str:
    return f"`{text}`"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
